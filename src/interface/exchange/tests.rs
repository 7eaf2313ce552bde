//! Database files for this crate's tests, from the slow reference solver.

use disk::{Disk, MemoryDisk};
use game::{Board, Halves, Index, Orientation, PositionSet, Score, reference};
use std::path::Path;
use std::sync::LazyLock;
use store::{Codec, FileKind, Identity, Scores, Shape, SlabShape, ValueRange};

const STONES_MAX: u8 = 6;

static SOLVED: LazyLock<Vec<reference::ReferenceScores>> = LazyLock::new(|| reference::solve_up_to(STONES_MAX));

/// What a position of at most 6 stones scores.
pub(crate) fn score(board: &Board) -> Score {
    SOLVED[board.stones() as usize][&board.0]
}

/// The database of `stones` stones (at most 6), as a file that was written and opened.
pub(crate) fn solved(stones: u32, set: PositionSet, codec: Codec) -> (Scores, Index) {
    written(Index::new(stones, set), codec, score)
}

/// A database that scores every position 0.
pub(crate) fn draws(stones: u32) -> (Scores, Index) {
    written(Index::new(stones, PositionSet::All), Codec::Zstd, |_| 0)
}

fn written(index: Index, codec: Codec, score: impl Fn(&Board) -> Score) -> (Scores, Index) {
    let (stones, set) = (index.stones(), index.set());
    let disk = MemoryDisk::new();
    let identity = Identity {
        kind: FileKind::Database,
        rules: "awari".to_owned(),
        positions: set.to_string(),
        stones: stones as u8,
        orientation: store::FileOrientation::OpponentMajor,
    };
    let slabs = (0..=stones).map(|mover_stones| SlabShape {
        rows: set.opponent_halves(stones - mover_stones),
        columns: Halves::count(mover_stones),
    });
    let shape = Shape::new(slabs.collect()).unwrap();
    let boards = (0..index.positions()).map(|position| index.unrank(position, Orientation::OpponentMajor));
    let scores: Vec<Score> = boards.map(|board| score(&board)).collect();
    let range = ValueRange::new(-(stones as i8), stones as i8);
    let path = Path::new("databases/x.awari");
    store::write(&disk, path, &identity, &shape, range, codec, &scores).unwrap();
    (Scores::open(&disk as &dyn Disk, path).unwrap().expect(&identity, &shape).unwrap(), index)
}
