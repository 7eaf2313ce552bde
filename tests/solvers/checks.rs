//! Checks of files: the same verdicts and statistics as for scores in memory, for every codec.

use check::{Databases, Extent, Published, Sample, Statistics, certify, check_integrity, verify};
use disk::MemoryDisk;
use game::reference;
use game::{Index, PositionSet, Rules, Score};
use stages::files;
use std::path::{Path, PathBuf};
use store::{CachedScores, Codec, FileKind, Identity, Scores, Shape, StoreError, ValueRange};
use tests::Random;

const SETS: [PositionSet; 2] = [PositionSet::All, PositionSet::REACHABLE];
const CODECS: [Codec; 4] = Codec::ALL;

/// Decoded blocks that a test may keep: a few, so that blocks are decoded again and again.
const CACHE_BYTES_MAX: u64 = 1 << 18;

const SAMPLE: Extent = Extent::Sample(Sample { one_in: 20, at_least: 500, seed: 7 });

/// Scores by number of stones, in canonical order.
fn solved(stones: u8, set: PositionSet) -> Vec<Vec<Score>> {
    let scores = reference::solve_up_to(stones);
    let in_order = |(stones, scores): (u32, reference::ReferenceScores)| {
        let index = Index::new(stones, set);
        (0..index.positions())
            .map(|position| scores[&index.unrank(position, game::Orientation::OpponentMajor).0])
            .collect()
    };
    (0..).zip(scores).map(in_order).collect()
}

fn in_memory(scores: &[Vec<Score>], set: PositionSet) -> Databases<Vec<Score>> {
    let mut databases = Databases::new(Rules::AWARI, set);
    for (stones, scores) in (0..).zip(scores) {
        databases.insert(stones, scores.clone()).expect("as many scores as positions");
    }
    databases
}

fn in_files(disk: &MemoryDisk, scores: &[Vec<Score>], set: PositionSet, codec: Codec) -> Databases<CachedScores> {
    let mut databases = Databases::new(Rules::AWARI, set);
    for (stones, scores) in (0..).zip(scores) {
        let file = write(disk, stones, scores, set, codec);
        databases.insert(stones, file).expect("as many scores as positions");
    }
    databases
}

fn path(stones: u32, set: PositionSet, codec: Codec) -> PathBuf {
    Path::new("/").join(format!("{set}-{codec}-{stones:02}.awari"))
}

fn header(stones: u32, set: PositionSet) -> (Identity, Shape) {
    let identity = files::identity(Rules::AWARI.name, set, FileKind::Database, stones);
    let shape = files::shape(&Index::new(stones, set), identity.kind);
    (identity, shape)
}

fn write(disk: &MemoryDisk, stones: u32, scores: &[Score], set: PositionSet, codec: Codec) -> CachedScores {
    let (identity, shape) = header(stones, set);
    let range = ValueRange::new(-(stones as Score), stones as Score);
    let path = path(stones, set, codec);
    store::write(disk, &path, &identity, &shape, range, codec, scores).expect("the disk is in memory");
    open(disk, stones, set, codec).expect("the file has just been written")
}

/// Opens a file mapped or by blocks, which must not matter.
fn open(disk: &MemoryDisk, stones: u32, set: PositionSet, codec: Codec) -> Result<CachedScores, StoreError> {
    let open = if stones.is_multiple_of(2) { Scores::open_windowed } else { Scores::open };
    let (identity, shape) = header(stones, set);
    let scores = open(disk, &path(stones, set, codec))?.expect(&identity, &shape)?;
    Ok(CachedScores::new(scores, CACHE_BYTES_MAX))
}

#[test]
fn right_files_are_verified_and_certified() {
    for set in SETS {
        let scores = solved(6, set);
        for codec in CODECS {
            let disk = MemoryDisk::new();
            let databases = in_files(&disk, &scores, set, codec);
            for stones in 0..=6 {
                let sampled = verify(&databases, stones, SAMPLE).expect("the scores are right");
                assert_eq!(sampled.checked(), SAMPLE.count(set.positions(stones)));
                let verified = verify(&databases, stones, Extent::Full).expect("the scores are right");
                assert!(verified.is_full());
                assert!(certify(&databases, stones).is_ok());
                let file = databases.get(stones).expect("it is there").scores();
                assert!(check_integrity(file.scores()).is_ok());
                let expected = match set {
                    PositionSet::All => Published::Matches,
                    PositionSet::Reachable { .. } => Published::Absent,
                };
                assert_eq!(Published::compare(databases.rules(), stones, set, verified.histogram()), expected);
            }
        }
    }
}

/// Random scores, in databases of several blocks a slab.
#[test]
fn statistics_of_files_and_memory_agree() {
    let stones = 11;
    for set in SETS {
        let mut random = Random::new(5);
        let scores: Vec<Vec<Score>> = (0..=stones)
            .map(|stones| {
                let positions = set.positions(stones);
                let spread = u64::from(2 * stones + 1);
                (0..positions).map(|_| random.below(spread) as Score - stones as Score).collect()
            })
            .collect();
        let memory = in_memory(&scores, set);
        let figures = Statistics::of(&memory, stones, SAMPLE).expect("all are in memory");
        let wrong = verify(&memory, stones, Extent::Full).expect_err("random scores are wrong").to_string();
        for codec in CODECS {
            let disk = MemoryDisk::new();
            let files = in_files(&disk, &scores, set, codec);
            let found = Statistics::of(&files, stones, SAMPLE).expect("all are on disk");
            assert_eq!(found, figures, "{set} {codec}");
            let error = verify(&files, stones, Extent::Full).expect_err("random scores are wrong");
            assert_eq!(error.to_string(), wrong, "{set} {codec}");
        }
    }
}
