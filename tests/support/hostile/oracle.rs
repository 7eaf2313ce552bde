//! Questions to databases of which one is hostile.

use super::split;
use disk::MemoryDisk;
use game::{Board, PositionSet, Rules, Score, reference};
use oracle::{Library, Oracle};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use store::{Codec, FileKind, Scores, ValueRange, write};

/// The most stones of the databases.
const STONES: u8 = 3;

struct Truth {
    scores: BTreeMap<[u8; 12], Score>,
    /// By position set and stones, the file.
    files: BTreeMap<(usize, usize), Vec<u8>>,
}

const SETS: [PositionSet; 2] = [PositionSet::All, PositionSet::REACHABLE];

fn truth() -> &'static Truth {
    static TRUTH: OnceLock<Truth> = OnceLock::new();
    TRUTH.get_or_init(|| {
        let solved = reference::solve_up_to(STONES);
        let mut files = BTreeMap::new();
        for (number, set) in SETS.into_iter().enumerate() {
            for (stones, scores) in solved.iter().enumerate() {
                let index = game::Index::new(stones as u32, set);
                let identity = stages::files::identity(Rules::AWARI.name, set, FileKind::Database, stones as u32);
                let shape = stages::files::shape(&index, identity.kind);
                let in_order = (0..shape.positions())
                    .map(|position| scores[&index.unrank(position, game::Orientation::OpponentMajor).0]);
                let range = ValueRange::new(-(stones as i8), stones as i8);
                let (disk, path) = (MemoryDisk::new(), Path::new("x"));
                let codec = Codec::ALL[stones % Codec::ALL.len()];
                write(&disk, path, &identity, &shape, range, codec, &in_order.collect::<Vec<_>>())
                    .expect("scores are in the range");
                files.insert((number, stones), disk.peek(path).expect("it was written"));
            }
        }
        let scores = solved.into_iter().flatten().collect();
        Truth { scores, files }
    })
}

/// Replaces a database, which the first byte chooses, together with the way of opening: every answer is right
/// or an error.
pub fn oracle(bytes: &[u8]) {
    let Some((choice, file)) = split(bytes) else { return };
    let truth = truth();
    let replaced = usize::from(choice) % (usize::from(STONES) + 1);
    let set = usize::from(choice >> 2) % SETS.len();
    let windowed = choice & 8 != 0;
    let disk = MemoryDisk::new();
    let files = (0..=usize::from(STONES)).map(|stones| {
        let path = PathBuf::from(format!("{stones:02}.awari"));
        disk.put(&path, if stones == replaced { file } else { &truth.files[&(set, stones)] });
        let opened = if windowed { Scores::open_windowed(&disk, &path) } else { Scores::open(&disk, &path) };
        (path, opened)
    });
    // Files of different kinds are refused.
    let Ok(library) = Library::new(files) else { return };
    let oracle = Oracle::new(library, 0);
    let is_whole = *file == truth.files[&(set, replaced)];
    for (pits, &score) in &truth.scores {
        let board = Board(*pits);
        if let Ok(found) = oracle.score(&board) {
            assert_eq!(found.score(), Some(score), "{board:?}");
        }
        let Ok(answer) = oracle.answer(&board) else {
            assert!(!is_whole, "{board:?} has an answer");
            continue;
        };
        assert_eq!(answer.score.score(), Some(score), "{board:?}");
        for valued in &answer.moves {
            assert_eq!(
                valued.value.score(),
                Some(valued.captured as Score - truth.scores[&valued.child.0]),
                "{board:?}"
            );
            assert_eq!(valued.is_best, valued.value.score() == Some(score), "{board:?}");
        }
    }
}

pub(super) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let files = truth().files.iter();
    let seed = |(&(set, stones), file): (&(usize, usize), &Vec<u8>)| {
        let choice = (set << 2 | stones | (stones % 2) << 3) as u8;
        ("oracle", format!("{}-{stones}", SETS[set]), [&[choice], &file[..]].concat())
    };
    files.map(seed).collect()
}
