//! Journals: decoding, appending, and use by plan and status.

use super::run::SmallBuild;
use super::{seal_journal, split};
use disk::{MemoryDisk, clock};
use pipeline::journal::{Contents, Entry, Journal, JournalState, Record, RunEnd};
use std::path::Path;

/// Bytes of the header of a record.
const HEADER_BYTES: usize = 16;

/// The bit of the first byte that asks for right checksums.
const SEAL: u8 = 1;

/// Decodes a journal: the number of records is bounded by the length, a prefix has a prefix of the records,
/// and an appended record is read again. Plan and status do not panic.
pub fn journal(bytes: &[u8]) {
    let Some((choice, journal)) = split(bytes) else { return };
    let mut journal = journal.to_vec();
    if choice & SEAL != 0 {
        seal_journal(&mut journal);
    }
    let contents = Contents::decode(&journal);
    let length = journal.len() as u64;
    assert_eq!(contents.valid_bytes + contents.torn_bytes, length);
    assert!(contents.damaged_bytes <= contents.valid_bytes);
    let records = contents.entries.len() + contents.unknown + contents.fenced;
    assert!(records * HEADER_BYTES <= journal.len());
    assert!(contents.entries.is_sorted_by_key(|entry| entry.run), "later runs have higher numbers");
    for at in [journal.len() / 3, journal.len() / 2, journal.len().saturating_sub(1)] {
        let shorter = Contents::decode(&journal[..at]);
        assert!(contents.entries.starts_with(&shorter.entries), "cut at {at}");
        assert!(shorter.valid_bytes <= contents.valid_bytes);
    }
    let valid = &journal[..contents.valid_bytes as usize];
    let whole = Contents::decode(valid);
    assert_eq!((&whole.entries, whole.torn_bytes), (&contents.entries, 0));
    appended(&journal, &contents);
    for entry in &contents.entries {
        let _ = clock::utc(entry.at);
    }
    if !contents.entries.is_empty() {
        read_by_others(&journal);
    }
}

/// A record can be appended, and is read.
fn appended(bytes: &[u8], contents: &Contents) {
    let disk = MemoryDisk::new();
    let path = Path::new("journal");
    disk.put(path, bytes);
    let mut journal = Journal::open(&disk, path).expect("any bytes are a journal");
    assert_eq!(journal.cut_bytes(), contents.torn_bytes);
    assert_eq!(*journal.state(), JournalState::replay(&contents.entries));
    assert!(contents.entries.iter().all(|entry| entry.run < journal.run()), "the next holder has a higher number");
    journal.append(Record::RunEnded { how: RunEnd::Done }).expect("the disk has room");
    let again = Contents::read(&disk, path).expect("it was written");
    assert_eq!(again.entries.len(), contents.entries.len() + 1, "what is appended is read");
    assert!(again.entries.starts_with(&contents.entries));
    assert_eq!((again.torn_bytes, again.unknown), (0, contents.unknown));
}

/// Reads the journal by plan and status.
fn read_by_others(bytes: &[u8]) {
    let build = SmallBuild::sweep();
    let disk = build.disk();
    disk.put(&SmallBuild::path("journal"), bytes);
    let plan = build.plan(&disk).expect("any journal allows a plan");
    let prediction = &plan.prediction;
    assert!(prediction.seconds >= 0.0, "{prediction:?}");
    let _ = plan.steps.iter().map(|step| step.reason.to_string().len()).sum::<usize>();
    build.status(&disk).expect("any journal allows a status");
}

pub(super) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (name, build) in [("sweep", SmallBuild::sweep()), ("two-bit", SmallBuild::two_bit())] {
        let written = build.disk().peek(&SmallBuild::path("journal")).expect("a build writes a journal");
        // Some records of each are enough to a mutator.
        let entries = Contents::decode(&written).entries.into_iter().step_by(7).take(6);
        let bytes: Vec<u8> = entries.map(anonymous).flat_map(|entry| framed(&entry)).collect();
        let choices = [("as-is", 0), ("sealed", SEAL)];
        seeds.extend(
            choices.map(|(how, choice)| ("journal", format!("{name}-{how}"), [&[choice], &bytes[..]].concat())),
        );
    }
    let all: Vec<u8> = all_kinds().iter().flat_map(framed).collect();
    seeds.push(("journal", "all-kinds".to_owned(), [&[SEAL], &all[..]].concat()));
    seeds
}

/// Removes host, process and times, which vary.
fn anonymous(mut entry: Entry) -> Entry {
    (entry.at, entry.millis) = (5, 0);
    match &mut entry.record {
        Record::RunStarted { host, pid, .. } => (*host, *pid) = ("here".to_owned(), 7),
        Record::StageDone { measured, .. } => {
            measured.wall_seconds = 0.5;
            measured.cpu_seconds = 0.25;
            measured.memory_peak_bytes = Some(1 << 20);
        }
        _ => {}
    }
    entry
}

fn framed(entry: &Entry) -> Vec<u8> {
    let payload = serde_json::to_vec(entry).expect("a record is JSON");
    let mut bytes = [&b"\xFFJR\x01"[..], &(payload.len() as u32).to_le_bytes(), &[0; 8], &payload].concat();
    seal_journal(&mut bytes);
    bytes
}

/// Records of the kinds that an undisturbed build does not write.
fn all_kinds() -> Vec<Entry> {
    let name = || "databases/01.awari".parse().expect("a name");
    let records = [
        Record::DamageFound { artifact: name(), what: "block 1".to_owned(), silent: false },
        Record::Verified { artifact: name(), digest: disk::Digest::of(b""), how: "full".to_owned(), sampled: false },
        Record::Removed { artifacts: vec![name()] },
        Record::StageFailed { stage: "sweep:1".parse().expect("a stage"), message: "no".to_owned() },
        Record::RunEnded { how: RunEnd::Failed("x".to_owned()) },
    ];
    records.into_iter().map(|record| Entry { run: 1, at: 5, millis: 0, record }).collect()
}
