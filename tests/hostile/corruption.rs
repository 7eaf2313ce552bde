//! Small run directories with one or two changed files: a run rebuilds them, or names the damage for the next
//! run to repair; the oracle and the verifier refuse them.
//!
//! Every change is made to single files, which are opened and checked, and some to files of whole runs.
//! `--nocapture` prints the numbers.

use check::check_integrity;
use disk::{Disk, MemoryDisk};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{Codec, FileKind, FileOrientation, Identity, Role, Scores, Shape, SlabShape, ValueRange};
use tests::Random;
use tests::hostile::{self, SmallBuild, damage};
use tests::stored_scores::{StoredScores, accepted};

/// Counts of cases and outcomes.
#[derive(Default)]
struct CorruptionCounts {
    /// By build and folder.
    cases: BTreeMap<(String, String), Outcomes>,
}

#[derive(Default)]
struct Outcomes {
    cases: usize,
    /// A run that stopped and named the damage.
    refused: usize,
    /// Damage found only by reading all blocks, as `awari verify` does.
    verified: usize,
    /// Damaged intermediates that no stage reads.
    unread: usize,
}

impl CorruptionCounts {
    fn of(&mut self, build: &SmallBuild, path: &Path) -> &mut Outcomes {
        let folder = path.iter().nth(1).map_or_else(String::new, |part| part.to_string_lossy().into_owned());
        let outcomes = self.cases.entry((build.name().to_owned(), folder)).or_default();
        outcomes.cases += 1;
        outcomes
    }

    fn show(&self, change: &str) {
        println!("{change:<28} {:<19} {:<14} cases  refused  verify  unread", "build", "files");
        for ((build, folder), Outcomes { cases, refused, verified, unread }) in &self.cases {
            println!("{:<28} {build:<19} {folder:<14} {cases:>5} {refused:>8} {verified:>7} {unread:>7}", "");
        }
        let sum = |count: fn(&Outcomes) -> usize| self.cases.values().map(count).sum::<usize>();
        let (cases, refused) = (sum(|outcomes| outcomes.cases), sum(|outcomes| outcomes.refused));
        println!("{change:<28} {:<19} {:<14} {cases:>5} {refused:>8}", "all", "");
        assert!(cases > 0);
    }
}

/// Runs until the files are as before. The stages `forced` are run again in any case.
fn settle(build: &SmallBuild, disk: &MemoryDisk, forced: &[String], outcomes: &mut Outcomes, what: &str) {
    if !forced.is_empty()
        && let Err(error) = build.run_forced(disk, forced)
    {
        assert_eq!(error.exit(), pipeline::Exit::Integrity, "{what}: {error}");
        outcomes.refused += 1;
    }
    outcomes.refused += build.run_until_done(disk);
    let found = build.verify(disk);
    if found > 0 {
        outcomes.verified += 1;
        outcomes.refused += build.run_until_done(disk);
    }
    let differences = build.differences(disk);
    outcomes.unread += usize::from(!differences.is_empty());
    for (path, is_damaged) in differences {
        let is_database = path.starts_with(SmallBuild::path("databases"));
        let is_read = !forced.is_empty() && !only_of_zeros(disk, &path);
        assert!(is_damaged && !is_database && !is_read, "{}: {what}: {}", build.name(), path.display());
    }
}

/// Whether only blocks of zeros are damaged: readers of planes take these from the index.
fn only_of_zeros(disk: &MemoryDisk, path: &Path) -> bool {
    let Ok(file) = Scores::open(disk, path) else { return false };
    let file = accepted(file);
    file.damaged_blocks().into_iter().all(|block| file.is_zeros(block))
}

fn is_of_scores(path: &Path) -> bool {
    ["databases", "captures", "planes"].iter().any(|folder| path.starts_with(SmallBuild::path(folder)))
}

/// Asserts that all ways of reading refuse a file of scores.
fn look(build: &SmallBuild, path: &Path, bytes: &[u8], what: &str) {
    let disk = MemoryDisk::new();
    disk.put(path, bytes);
    assert!(damage(&disk, path).is_some(), "{}: {what}", build.name());
    let Ok(file) = Scores::open_windowed(&disk, path) else { return };
    let file = accepted(file);
    assert!(check_integrity(&file).is_err(), "{}: {what}", build.name());
}

/// Factor by which the fast tier does fewer whole runs.
const FAST: usize = 64;

/// Makes every change to every file of every build: checks the file, and after every `step`-th change runs the build.
fn each(change: &str, step: usize, changes: impl Fn(&[u8]) -> Vec<(String, Vec<u8>)>) {
    let mut counts = CorruptionCounts::default();
    let mut looks = 0;
    for build in SmallBuild::all() {
        for (file, (path, bytes)) in build.files().iter().enumerate() {
            // Counted by file, for the length of some, like the journal, varies.
            let mut number = file;
            let readers = build.readers(path);
            // Small files, every byte of which matters.
            let step = if path.starts_with(SmallBuild::path("snapshots")) { step.div_ceil(12) } else { step };
            for (what, changed) in changes(bytes) {
                let what = format!("{}: {change} {what}", path.display());
                if changed == *bytes {
                    continue;
                }
                if is_of_scores(path) {
                    look(build, path, &changed, &what);
                    looks += 1;
                }
                number += 1;
                if number % step != 0 {
                    continue;
                }
                let disk = build.disk();
                disk.put(path, &changed);
                // Every other time the stages that read the file are forced to run.
                let forced = if (number / step).is_multiple_of(2) { &readers[..] } else { &[] };
                settle(build, &disk, forced, counts.of(build, path), &what);
            }
        }
    }
    println!("{change}: {looks} looks");
    counts.show(change);
}

#[test]
fn changed_files() {
    flipped_bytes(211 * FAST);
    truncated_files(149 * FAST);
    lengthened_files(FAST);
    lost_or_zeroed_files(FAST);
    swapped_files(FAST);
    files_of_another_kind(FAST);
}

#[test]
#[ignore = "slow tier: thousands of runs"]
fn changed_files_by_small_steps() {
    flipped_bytes(4003);
    truncated_files(3001);
    lengthened_files(1);
    lost_or_zeroed_files(1);
    swapped_files(1);
    files_of_another_kind(1);
}

fn flipped_bytes(step: usize) {
    each("flip", step, |bytes| {
        let masks = |at: usize| [1u8 << (at % 8), 0xFF].map(|mask| (at, mask));
        let flipped = (0..bytes.len()).flat_map(masks).map(|(at, mask)| {
            let mut changed = bytes.to_vec();
            changed[at] ^= mask;
            (format!("byte {at} by {mask:#04x}"), changed)
        });
        flipped.collect()
    });
}

fn truncated_files(step: usize) {
    each("truncate", step, |bytes| {
        (0..bytes.len()).map(|length| (format!("to {length} bytes"), bytes[..length].to_vec())).collect()
    });
}

fn lengthened_files(step: usize) {
    each("append", step, |bytes| {
        let garbage = [&[0][..], &[0; 512], b"garbage\n", &[0xFF; 64], bytes];
        garbage.iter().map(|more| (format!("{} bytes", more.len()), [bytes, more].concat())).collect()
    });
}

fn lost_or_zeroed_files(step: usize) {
    each("zero", step, |bytes| {
        let half = [&bytes[..bytes.len() / 2], &vec![0; bytes.len() - bytes.len() / 2]].concat();
        vec![("all".to_owned(), vec![0; bytes.len()]), ("the second half".to_owned(), half)]
    });
    let mut counts = CorruptionCounts::default();
    for build in SmallBuild::all() {
        for path in build.files().keys().step_by(step) {
            let disk = build.disk();
            disk.remove(path).expect("it is there");
            settle(build, &disk, &[], counts.of(build, path), &path.to_string_lossy());
        }
    }
    counts.show("remove");
}

/// Exchanges two files, of the same kind or not.
fn swapped_files(step: usize) {
    let mut counts = CorruptionCounts::default();
    for build in SmallBuild::all() {
        let files: Vec<(&PathBuf, &Vec<u8>)> = build.files().iter().collect();
        for (number, (path, one_bytes)) in files.iter().enumerate() {
            for (other, other_bytes) in files[number + 1..].iter().skip(number % step).step_by(step) {
                if one_bytes == other_bytes {
                    continue;
                }
                let disk = build.disk();
                disk.put(path, other_bytes);
                disk.put(other, one_bytes);
                let what = format!("{} and {}", path.display(), other.display());
                settle(build, &disk, &[], counts.of(build, path), &what);
            }
        }
    }
    counts.show("swap");
}

/// Returns files with right checksums and the same scores, but of other rules, positions, stones, kind,
/// orientation or range.
fn foreign(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let disk = MemoryDisk::new();
    let path = Path::new("foreign");
    disk.put(path, bytes);
    let Ok(file) = StoredScores::read(&disk, path) else { return Vec::new() };
    let StoredScores { identity, shape, range, codec, scores } = file;
    let others = [
        Identity { rules: "oware".to_owned(), ..identity.clone() },
        Identity { positions: "reachable".to_owned(), ..identity.clone() },
        Identity { stones: identity.stones + 1, ..identity.clone() },
        Identity { stones: 48, ..identity.clone() },
        Identity { kind: FileKind::Snapshot, ..identity.clone() },
        Identity { kind: FileKind::Plane { role: Role::Won, bound: 7 }, ..identity.clone() },
        Identity {
            orientation: match identity.orientation {
                FileOrientation::MoverMajor => FileOrientation::OpponentMajor,
                FileOrientation::OpponentMajor => FileOrientation::MoverMajor,
            },
            ..identity.clone()
        },
    ];
    let mut files = Vec::new();
    let mut add = |what: String, identity: &Identity, shape: &Shape, range: ValueRange| {
        store::write(&disk, path, identity, shape, range, codec, &scores).expect("the scores are in the range");
        files.push((what, disk.peek(path).expect("it was written")));
    };
    for other in others.iter().filter(|other| **other != identity) {
        add(other.to_string(), other, &shape, range);
    }
    add("a wider range".to_owned(), &identity, &shape, ValueRange::new(i8::MIN, i8::MAX));
    // Planes are known by their shape once they are read.
    if !matches!(identity.kind, FileKind::Plane { .. }) {
        let row = SlabShape { rows: 1, columns: shape.positions() as u32 };
        add("one row".to_owned(), &identity, &Shape::new(vec![row]).expect("it has columns"), range);
    }
    files
}

fn files_of_another_kind(step: usize) {
    let mut counts = CorruptionCounts::default();
    for build in SmallBuild::all() {
        for (number, (path, bytes)) in build.files().iter().enumerate() {
            for (what, changed) in
                foreign(bytes).into_iter().skip(number % step).step_by(step).filter(|(_, changed)| changed != bytes)
            {
                let disk = build.disk();
                disk.put(path, &changed);
                settle(build, &disk, &[], counts.of(build, path), &format!("{}: {what}", path.display()));
            }
        }
    }
    counts.show("of something else");
}

/// Another codec is not damage: nothing is solved again.
#[test]
fn files_of_another_codec() {
    let build = SmallBuild::sweep();
    for (path, bytes) in build.files().iter().filter(|(path, _)| path.starts_with(SmallBuild::path("databases"))) {
        let disk = build.disk();
        let file = StoredScores::read(&disk, path).expect("it was written");
        StoredScores { codec: Codec::Raw, ..file }.write(&disk, path);
        assert_ne!(disk.peek(path).as_ref(), Some(bytes));
        let summary = build.run(&disk).expect("nothing is damaged");
        assert!(summary.ran.is_empty(), "{}: {:?}", path.display(), summary.ran[0].stage);
    }
}

/// Snapshots with right checksums and random values: a sweep from some would not terminate, and some have
/// lower counts than there are children.
#[test]
fn snapshots_of_random_values() {
    let mut random = Random::new(7);
    let mut cases = 0;
    for (method, stones, count) in [("sweep", "0..6", 15), ("counting", "0..6", 15), ("two-bit", "0..4", 6)] {
        let build = SmallBuild::interrupted(method, stones);
        let is_saved = |path: &&PathBuf| path.extension().is_none() && path.starts_with(SmallBuild::path("snapshots"));
        for path in build.files().keys().filter(is_saved) {
            let disk = build.disk();
            let Ok(mut file) = StoredScores::read(&disk, path) else { continue };
            let range = file.range;
            file.codec = Codec::Packed;
            let values = u64::from(range.high().wrapping_sub(range.low()) as u8) + 1;
            for case in 0..count {
                file.scores.fill_with(|| (i64::from(range.low()) + random.below(values) as i64) as i8);
                let disk = build.disk();
                file.write(&disk, path);
                build.run_until_done(&disk);
                assert!(build.differences(&disk).is_empty(), "{}: {}, case {case}", build.name(), path.display());
                cases += 1;
            }
        }
    }
    println!("snapshots: {cases} cases");
    assert!(cases >= 40);
}

/// Flips every byte, cuts at every length, and exchanges files with those of the other position set.
#[test]
fn the_oracle_is_never_wrong() {
    let mut cases = 0;
    let files: Vec<Vec<u8>> =
        hostile::seeds().into_iter().filter(|(property, ..)| *property == "oracle").map(|(.., bytes)| bytes).collect();
    for file in &files {
        for at in 1..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 1 << (at % 8);
            hostile::oracle(&changed);
            hostile::oracle(&file[..at]);
            cases += 2;
        }
        for other in &files {
            hostile::oracle(&[&file[..1], &other[1..]].concat());
            cases += 1;
        }
    }
    println!("oracle: {cases} cases");
}
