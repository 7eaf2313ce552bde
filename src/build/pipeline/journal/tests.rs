//! Journals: torn, damaged, foreign and hostile.

use crate::fingerprint::Fingerprint;
use crate::journal::record::{ArtifactRecord, LastHeartbeat, Measured, Record, RunEnd};
use crate::journal::state::JournalState;
use crate::journal::{Contents, Journal, JournalError, PAYLOAD_BYTES_MAX};
use crate::report::StageReport;
use crate::toy::artifact;
use disk::{Digest, Disk, Fault, MemoryDisk};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

const PATH: &str = "/run/journal";

fn records() -> Vec<Record> {
    let stage = || "solve:3".parse().unwrap();
    let made = ArtifactRecord {
        name: artifact("databases/3"),
        digest: Digest::of(b"3"),
        bytes: 32,
        fingerprint: Fingerprint {
            content: "database".to_owned(),
            version: 1,
            identity: BTreeMap::from([("rules".to_owned(), "toy".to_owned())]),
            inputs: BTreeMap::from([(artifact("databases/2"), Digest::of(b"2"))]),
        },
    };
    vec![
        Record::RunStarted {
            command: "run \"a\"\n".to_owned(),
            program: "toy 1".to_owned(),
            host: "here".to_owned(),
            pid: 7,
            threads: 2,
            memory_bytes: 1 << 40,
            manifest: Digest::of(b"manifest"),
            killed: Some(LastHeartbeat { run: 4, at: 5 }),
        },
        Record::StageStarted { stage: stage(), reason: "forced".to_owned() },
        Record::StageDone {
            stage: stage(),
            artifacts: vec![made.clone()],
            measured: Measured {
                wall_seconds: 0.1,
                cpu_seconds: 1.0,
                memory_peak_bytes: Some(u64::MAX),
                read_bytes: Some(u64::MAX),
                written_bytes: Some(0),
                report: StageReport::new(5).with("passes", 3u64).with("share", 0.5),
            },
        },
        Record::StageFailed { stage: stage(), message: "no".to_owned() },
        Record::Adopted { artifact: made },
        Record::DamageFound { artifact: artifact("databases/3"), what: "block 1".to_owned(), silent: false },
        Record::Verified {
            artifact: artifact("databases/3"),
            digest: Digest::of(b"3"),
            how: "full".to_owned(),
            sampled: false,
        },
        Record::Removed { artifacts: vec![artifact("captures/3")] },
        Record::RunEnded { how: RunEnd::Failed("x".to_owned()) },
    ]
}

/// A disk with a journal of all kinds of records, and its bytes.
fn written() -> (MemoryDisk, Vec<u8>) {
    let disk = MemoryDisk::new();
    let mut journal = Journal::open(&disk, Path::new(PATH)).unwrap();
    for record in records() {
        journal.append(record).unwrap();
    }
    drop(journal);
    let bytes = disk.peek(Path::new(PATH)).unwrap();
    (disk, bytes)
}

/// Where each record ends.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        at += 16 + length as usize;
        ends.push(at);
    }
    ends
}

#[test]
fn records_survive_a_round_trip() {
    let (disk, bytes) = written();
    let contents = Contents::read(&disk, Path::new(PATH)).unwrap();
    let found: Vec<Record> = contents.entries.iter().map(|entry| entry.record.clone()).collect();
    assert_eq!(found, records());
    assert!(contents.entries.iter().all(|entry| entry.run == 1 && entry.at > 0));
    assert_eq!(contents.valid_bytes, bytes.len() as u64);
    let journal = Journal::open(&disk, Path::new(PATH)).unwrap();
    assert_eq!((journal.run(), journal.cut_bytes()), (2, 0));
    assert_eq!(*journal.state(), JournalState::replay(&contents.entries));
}

#[test]
fn torn_at_every_byte() {
    let (_, bytes) = written();
    let ends = ends(&bytes);
    for cut in 0..=bytes.len() {
        let disk = MemoryDisk::new();
        disk.put(Path::new(PATH), &bytes[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let valid = ends[..whole].last().copied().unwrap_or(0);
        let contents = Contents::read(&disk, Path::new(PATH)).unwrap();
        assert_eq!(contents.entries.len(), whole);
        assert_eq!(contents.torn_bytes as usize, cut - valid);
        assert_eq!(disk.peek(Path::new(PATH)).unwrap().len(), cut, "reading changed it");

        let mut journal = Journal::open(&disk, Path::new(PATH)).unwrap();
        assert_eq!(journal.cut_bytes() as usize, cut - valid);
        assert_eq!(disk.peek(Path::new(PATH)).unwrap().len(), valid);
        journal.append(Record::RunEnded { how: RunEnd::Done }).unwrap();
        let contents = Contents::read(&disk, Path::new(PATH)).unwrap();
        assert_eq!((contents.entries.len(), contents.torn_bytes), (whole + 1, 0));
    }
}

#[test]
fn a_flipped_byte_costs_one_record() {
    let (_, bytes) = written();
    let ends = ends(&bytes);
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        let contents = Contents::decode(&flipped);
        assert_eq!(contents.entries.len(), ends.len() - 1, "byte {at}");
        let is_last = at >= ends[ends.len() - 2];
        assert_eq!(contents.torn_bytes > 0, is_last);
        assert_eq!(contents.damaged_bytes > 0, !is_last);
    }
}

/// A frame around any payload.
fn framed(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    let checksum = Digest::of(&[&length[..], payload].concat());
    [&[0xFF, b'J', b'R', 1][..], &length, &checksum.0[..8], payload].concat()
}

#[test]
fn older_journals_have_whole_seconds_and_fields_of_newer_ones_are_passed_over() {
    let old = br#"{"run":1,"at":7,"kind":"run-ended","how":"done"}"#;
    let new = br#"{"run":1,"at":7,"millis":250,"later":{"x":[1]},"kind":"run-ended","how":"done","more":1}"#;
    let strange = br#"{"run":1,"at":7,"millis":65535,"kind":"run-ended","how":"done"}"#;
    let contents = Contents::decode(&[framed(old), framed(new), framed(strange)].concat());
    let seconds: Vec<f64> = contents.entries.iter().map(|entry| entry.seconds()).collect();
    assert_eq!((seconds, contents.unknown), (vec![7.0, 7.25, 7.999], 0));
}

#[test]
fn records_of_newer_versions_are_passed_over() {
    let (_, mut bytes) = written();
    for payload in [
        r#"{"run":1,"at":5,"kind":"telepathy","what":{"deep":[1,2]}}"#,
        r#"{"run":1,"at":5,"kind":"stage-started","stage":"../..","reason":""}"#,
        r#"[[[["#,
        "",
    ] {
        bytes.extend(framed(payload.as_bytes()));
    }
    let more = r#"{"run":1,"at":5,"kind":"run-ended","how":"done","mood":"fine"}"#;
    bytes.extend(framed(more.as_bytes()));
    let contents = Contents::decode(&bytes);
    assert_eq!((contents.entries.len(), contents.unknown), (records().len() + 1, 4));
    assert_eq!((contents.torn_bytes, contents.damaged_bytes), (0, 0));
}

#[test]
fn records_of_an_overtaken_run_are_ignored() {
    let (_, mut bytes) = written();
    let entry = |run| format!(r#"{{"run":{run},"at":5,"kind":"run-ended","how":"done"}}"#);
    for run in [3, 2, 3] {
        bytes.extend(framed(entry(run).as_bytes()));
    }
    let contents = Contents::decode(&bytes);
    assert_eq!((contents.entries.len(), contents.fenced), (records().len() + 2, 1));
    let disk = MemoryDisk::new();
    disk.put(Path::new(PATH), &bytes);
    assert_eq!(Journal::open(&disk, Path::new(PATH)).unwrap().run(), 4);
}

/// A record with the greatest number would fence off all later runs: their numbers would overflow.
#[test]
fn numbers_leave_room_for_the_next() {
    for run in [u64::MAX, u64::MAX - 1, 1 << 33] {
        let (_, mut bytes) = written();
        bytes.extend(framed(format!(r#"{{"run":{run},"at":5,"kind":"run-ended","how":"done"}}"#).as_bytes()));
        let disk = MemoryDisk::new();
        disk.put(Path::new(PATH), &bytes);
        let mut journal = Journal::open(&disk, Path::new(PATH)).unwrap();
        assert_eq!(journal.run(), 2);
        journal.append(Record::RunEnded { how: RunEnd::Done }).unwrap();
        let contents = Contents::read(&disk, Path::new(PATH)).unwrap();
        assert_eq!((contents.entries.len(), contents.unknown, contents.fenced), (records().len() + 1, 1, 0));
    }
}

/// Bytes that begin a record of the maximal length every sixteen bytes: digesting all of them took 40 s for these four
/// mebibytes, and would take an hour for the longest journal.
#[test]
fn records_within_records_are_none() {
    let inner = framed(br#"{"run":1,"at":5,"kind":"run-ended","how":"done"}"#);
    let contents = Contents::decode(&framed(&inner));
    assert_eq!((contents.entries.len(), contents.unknown), (1, 0), "only the inner one is text");
    let length = (PAYLOAD_BYTES_MAX as u32).to_le_bytes();
    let begun = [&[0xFF, b'J', b'R', 1][..], &length, &[0; 8]].concat();
    let contents = Contents::decode(&begun.repeat(4 << 16));
    assert_eq!((contents.entries.len(), contents.valid_bytes), (0, 0));
}

#[test]
fn a_failed_write_leaves_no_trace_for_the_next() {
    for k in 0..40 {
        let (disk, bytes) = written();
        let mut journal = Journal::open(&disk, Path::new(PATH)).unwrap();
        let ended = || Record::RunEnded { how: RunEnd::Done };
        journal.append(ended()).unwrap();
        disk.fail_at(disk.operations() + k, Fault::NoSpace);
        let appended = 1 + (0..3).filter(|_| journal.append(ended()).is_ok()).count();
        disk.fail_never();
        journal.append(ended()).unwrap();
        let contents = Contents::read(&disk, Path::new(PATH)).unwrap();
        assert_eq!(contents.entries.len(), records().len() + appended + 1);
        assert_eq!((contents.torn_bytes, contents.damaged_bytes), (0, 0));
        assert!(contents.valid_bytes > bytes.len() as u64);
    }
}

fn ended() -> Record {
    Record::RunEnded { how: RunEnd::Done }
}

/// Two journals of one directory, of which the first has written.
fn two_holders(disk: &MemoryDisk) -> [Journal<'_>; 2] {
    let open = || Journal::open(disk, Path::new(PATH)).unwrap();
    let mut first = open();
    first.append(ended()).unwrap();
    [first, open()]
}

/// Two runs in one directory, as on a file system whose locks do not reach the other machine: the later run continues,
/// the earlier one writes no more.
#[test]
fn an_overtaken_run_writes_no_more() {
    let (disk, _) = written();
    let [mut first, mut second] = two_holders(&disk);
    let path = Path::new(PATH);
    assert_eq!(second.run(), first.run() + 1);
    first.append(ended()).unwrap();
    let error = second.append(ended()).unwrap_err();
    assert!(matches!(error, JournalError::Overtaken { .. }), "{error}");
    let mut second = Journal::open(&disk, path).unwrap();
    second.append(ended()).unwrap();
    let before = disk.peek(path).unwrap();
    for _ in 0..2 {
        let error = first.append(ended()).unwrap_err();
        let expect = format!("was written by run {} while this run held the directory", second.run());
        assert!(error.to_string().contains(&expect), "{error}");
    }
    assert_eq!(disk.peek(path).unwrap(), before);
    second.append(ended()).unwrap();
}

/// A run that was suspended between check and write: readers ignore its record, and the later run continues.
#[test]
fn a_late_record_of_an_earlier_run_is_ignored() {
    let (disk, _) = written();
    let [mut first, mut second] = two_holders(&disk);
    let path = Path::new(PATH);
    second.append(ended()).unwrap();
    let mut late = disk.append(path).unwrap();
    late.write(&framed(format!(r#"{{"run":{},"at":5,"kind":"run-ended","how":"done"}}"#, first.run()).as_bytes()))
        .unwrap();
    late.sync().unwrap();
    second.append(ended()).unwrap();
    second.append(ended()).unwrap();
    let contents = Contents::read(&disk, path).unwrap();
    assert_eq!((contents.entries.len(), contents.fenced), (records().len() + 4, 1));
    assert!(matches!(first.append(ended()), Err(JournalError::Overtaken { .. })));
}

#[test]
fn a_removed_journal_is_not_recreated() {
    let (disk, _) = written();
    let path = Path::new(PATH);
    let mut journal = Journal::open(&disk, path).unwrap();
    journal.append(Record::RunEnded { how: RunEnd::Done }).unwrap();
    disk.remove(path).unwrap();
    let error = journal.append(Record::RunEnded { how: RunEnd::Done }).unwrap_err();
    assert!(error.to_string().contains("has shrunk"), "{error}");
    assert_eq!(disk.peek(path), None);
}

#[test]
fn payloads_and_run_numbers_are_bounded() {
    let disk = MemoryDisk::new();
    let mut journal = Journal::open(&disk, Path::new(PATH)).unwrap();
    let long = Record::RunEnded { how: RunEnd::Failed("x".repeat(PAYLOAD_BYTES_MAX)) };
    let error = journal.append(long).unwrap_err();
    assert!(matches!(error, JournalError::RecordTooLong { .. }), "{error}");
    assert_eq!(disk.bytes(Path::new(PATH)).unwrap(), None);
    let mut large = framed(&vec![b' '; PAYLOAD_BYTES_MAX + 1]);
    large.extend(framed(br#"{"run":1,"at":5,"kind":"run-ended","how":"done"}"#));
    let contents = Contents::decode(&large);
    assert_eq!((contents.entries.len(), contents.unknown), (1, 0));
}

#[test]
fn the_longest_record_is_written_and_read() {
    let disk = MemoryDisk::new();
    let mut journal = Journal::open(&disk, Path::new(PATH)).unwrap();
    journal.append(ended()).unwrap();
    let frame = Contents::read(&disk, Path::new(PATH)).unwrap().valid_bytes as usize;
    // The milliseconds of a record have up to this many bytes.
    let varying = r#","millis":999"#.len();
    let mut length = PAYLOAD_BYTES_MAX;
    let longest = loop {
        let record = Record::RunEnded { how: RunEnd::Failed("x".repeat(length)) };
        match journal.append(record.clone()) {
            Ok(()) => break record,
            Err(JournalError::RecordTooLong { bytes }) => length -= bytes - PAYLOAD_BYTES_MAX,
            Err(error) => panic!("{error}"),
        }
    };
    let contents = Contents::read(&disk, Path::new(PATH)).unwrap();
    let payload = contents.valid_bytes as usize - frame - 16;
    assert!((PAYLOAD_BYTES_MAX - varying..=PAYLOAD_BYTES_MAX).contains(&payload), "{payload}");
    assert_eq!((contents.entries.len(), contents.torn_bytes), (2, 0));
    assert_eq!(contents.entries[1].record, longest);
}

/// A journal that cannot be read is not taken for an empty one, which the next run would overwrite.
#[test]
fn a_journal_that_cannot_be_read_is_not_empty() {
    let (disk, bytes) = written();
    for fault in [Fault::Io, Fault::PermissionDenied] {
        disk.fail_at(disk.operations(), fault);
        assert!(matches!(Contents::read(&disk, Path::new(PATH)), Err(JournalError::Disk(_))));
        disk.fail_at(disk.operations(), fault);
        assert!(Journal::open(&disk, Path::new(PATH)).is_err());
    }
    assert_eq!(disk.peek(Path::new(PATH)).unwrap(), bytes);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let contents = Contents::decode(&bytes);
        prop_assert_eq!(contents.valid_bytes + contents.torn_bytes, bytes.len() as u64);
    }

    #[test]
    fn any_payload_is_survived(text in ".{0,80}") {
        let bytes = framed(text.as_bytes());
        let contents = Contents::decode(&bytes);
        prop_assert_eq!(contents.torn_bytes, 0);
        JournalState::replay(&contents.entries);
    }
}

/// Older versions did not count bytes read and written.
#[test]
fn old_measurements_are_read() {
    let old = r#"{"wall_seconds":1.5,"cpu_seconds":2.0,"memory_peak_bytes":7,"positions":3,"counters":{}}"#;
    let measured: Measured = serde_json::from_str(old).unwrap();
    assert_eq!((measured.read_bytes, measured.written_bytes), (None, None));
    assert_eq!((measured.memory_peak_bytes, measured.report.positions), (Some(7), 3));
}
