//! The oracle's answers compared with the slow reference solver, for every codec and position set; and directories and
//! files that it must refuse.

use disk::{Disk, MemoryDisk};
use game::reference::{self, ReferenceScores, boards};
use game::{Board, Index, Pit, PositionSet, Rules, Score};
use oracle::{Answer, AnswerSource, Bounds, Library, LibraryFile, LineEnd, Oracle, OracleError, PrincipalLine};
use std::path::Path;
use std::sync::LazyLock;
use store::{Codec, FileKind, FileOrientation, Identity, Scores, Shape, SlabShape, ValueRange};
use tests::Random;

const STONES_MAX: u8 = 7;

pub(crate) static SOLVED: LazyLock<Vec<ReferenceScores>> = LazyLock::new(|| reference::solve_up_to(STONES_MAX));

/// Writes the databases of 0 to `stones` stones (at most 7) as `databases/NN.awari`.
pub fn databases(disk: &dyn Disk, stones: u32, set: PositionSet, codec: Codec) {
    for stones in 0..=stones {
        write(disk, Path::new(&format!("databases/{stones:02}.awari")), stones, set, codec);
    }
}

/// Writes one database.
fn write(disk: &dyn Disk, path: &Path, stones: u32, set: PositionSet, codec: Codec) {
    write_forged(disk, path, stones, set, codec, |_, score| score);
}

/// Writes one database with other scores than the right ones, by their positions.
fn write_forged(
    disk: &dyn Disk,
    path: &Path,
    stones: u32,
    set: PositionSet,
    codec: Codec,
    mut change: impl FnMut([u8; 12], Score) -> Score,
) {
    let orientation = game::Orientation::OpponentMajor;
    let index = Index::new(stones, set);
    let solved = &SOLVED[stones as usize];
    let scores = (0..index.positions()).map(|position| {
        let pits = index.unrank(position, orientation).0;
        change(pits, solved[&pits])
    });
    let scores: Vec<Score> = scores.collect();
    let identity = Identity {
        kind: FileKind::Database,
        rules: Rules::AWARI.name.to_owned(),
        positions: set.to_string(),
        stones: stones as u8,
        orientation: FileOrientation::OpponentMajor,
    };
    let slabs = index.slabs().iter().map(|slab| {
        let (rows, columns) = slab.rows_columns(orientation);
        SlabShape { rows, columns }
    });
    let shape = Shape::new(slabs.collect()).unwrap();
    let range = ValueRange::new(-(stones as i8), stones as i8);
    store::write(disk, path, &identity, &shape, range, codec, &scores).unwrap();
}

pub fn library(disk: &dyn Disk) -> Result<Library, OracleError> {
    let paths = disk.list(Path::new("databases")).unwrap();
    Library::new(paths.into_iter().map(|path| (path.clone(), Scores::open(disk, &path))))
}

fn oracle(disk: &dyn Disk) -> Oracle {
    Oracle::new(library(disk).unwrap(), 1 << 20)
}

/// Every position, in the set or not, against the slow solver and the slow rules.
#[test]
fn answers_agree_with_the_reference() {
    for (set, codec) in [
        (PositionSet::All, Codec::Packed),
        (PositionSet::REACHABLE, Codec::Packed),
        (PositionSet::REACHABLE, Codec::Zstd),
        (PositionSet::All, Codec::Raw),
    ] {
        let disk = MemoryDisk::new();
        databases(&disk, 7, set, codec);
        let oracle = oracle(&disk);
        assert_eq!(oracle.stones().collect::<Vec<_>>(), (0..=7).collect::<Vec<_>>());
        for stones in 0..=7 {
            for pits in boards(stones) {
                let board = Board(pits);
                let answer = oracle.answer(&board).unwrap();
                let score = SOLVED[usize::from(stones)][&pits];
                assert_eq!(answer.score, Bounds::exact(score), "{board:?}");
                assert_eq!(oracle.score(&board).unwrap(), answer.score);
                let outside = set != PositionSet::All && board.opponent_full();
                let source = match (answer.moves.is_empty(), outside) {
                    (true, _) => AnswerSource::Rules,
                    (false, true) => AnswerSource::Children,
                    (false, false) => AnswerSource::Database,
                };
                assert_eq!(answer.source, source);
                compare_moves(&answer, &reference::moves(pits));
            }
        }
    }
}

fn compare_moves(answer: &Answer, moves: &[reference::ReferenceMove]) {
    assert_eq!(answer.moves.len() + answer.illegal.len(), 6);
    assert_eq!(answer.moves.is_empty(), !answer.moves.iter().any(|valued| valued.is_best));
    for (pit, played) in Pit::ALL.into_iter().zip(moves) {
        let ours = answer.moves.iter().find(|valued| valued.pit == pit);
        match played {
            reference::ReferenceMove::Legal { captured, child } => {
                let ours = ours.unwrap();
                let left = answer.board.stones() as usize - usize::from(*captured);
                let value = *captured as i8 - SOLVED[left][child];
                assert_eq!((ours.captured, ours.value), (*captured, Bounds::exact(value)));
                assert_eq!(ours.is_best, Some(value) == answer.score.score());
            }
            _ => assert!(ours.is_none() && answer.illegal.iter().any(|illegal| illegal.pit == pit)),
        }
    }
}

#[test]
fn missing_databases_are_named() {
    let disk = MemoryDisk::new();
    databases(&disk, 4, PositionSet::All, Codec::Packed);
    let oracle = oracle(&disk);
    let error = oracle.indexed(48).unwrap_err();
    assert!(matches!(error, OracleError::Missing { stones: 48, largest: Some(4) }));
    assert_eq!(error.to_string(), "no 48-stone database here (the largest has 4)");
    // The opening is estimated, and little is proved.
    let opening = oracle.answer(&Board::OPENING).unwrap();
    assert_eq!((opening.source, opening.score.score()), (AnswerSource::Search, None));
    assert!(opening.estimate.is_some_and(|estimate| estimate.abs() < 1_000), "{opening:?}");
    // A player without a move needs no database.
    let lost = oracle.answer(&Board([0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4])).unwrap();
    assert_eq!((lost.score, lost.source), (Bounds::exact(-24), AnswerSource::Rules));
}

/// Beyond the databases, bounds contain the right score, and many are exact; also if a database in the middle
/// is missing. What is not proved has an estimate within the bounds. An answer does not depend on those
/// before it.
#[test]
fn bounds_beyond_the_databases_are_correct() {
    for missing in [None, Some(2), Some(6)] {
        let disk = MemoryDisk::new();
        databases(&disk, if missing == Some(6) { 7 } else { 5 }, PositionSet::All, Codec::Packed);
        if let Some(missing) = missing {
            disk.remove(Path::new(&format!("databases/{missing:02}.awari"))).unwrap();
        }
        let oracle = oracle(&disk);
        let fresh = self::oracle(&disk);
        let (mut exact, mut bounded) = (0, 0);
        for stones in 0..=7 {
            for pits in boards(stones).into_iter().step_by(29) {
                let right = SOLVED[usize::from(stones)][&pits];
                let answer = oracle.answer(&Board(pits)).unwrap();
                if exact % 50 == 0 {
                    assert_eq!(fresh.answer(&Board(pits)).unwrap(), answer);
                }
                let holds = |bounds: Bounds, score: Score| bounds.low() <= score && score <= bounds.high();
                assert!(holds(answer.score, right), "{pits:?}: {} is not {right}", answer.score);
                let fits = |bounds: Bounds, estimate: Option<i32>| match estimate {
                    None => bounds.score().is_some(),
                    Some(estimate) => {
                        let (low, high) = (i32::from(bounds.low()) * 100, i32::from(bounds.high()) * 100);
                        low < high && (low..=high).contains(&estimate)
                    }
                };
                assert!(fits(answer.score, answer.estimate), "{answer:?}");
                for valued in &answer.moves {
                    let left = usize::from(stones) - usize::from(valued.captured);
                    let value = valued.captured as i8 - SOLVED[left][&valued.child.0];
                    assert!(holds(valued.value, value), "{pits:?} {valued:?}");
                    assert!(answer.source != AnswerSource::Search || fits(valued.value, valued.estimate), "{valued:?}");
                    assert!(!valued.is_best || value == right, "{pits:?} {valued:?}");
                }
                match answer.score.score() {
                    Some(_) => exact += 1,
                    None => bounded += 1,
                }
            }
        }
        println!("{missing:?}: {exact} exact, {bounded} bounded");
        assert!(exact > 400 && bounded > 40, "{missing:?}: {exact} {bounded}");
    }
}

/// Replays a line by the slow rules: returns its positions, and what the player to move at its begin gains on the way.
fn replayed(pits: [u8; 12], line: &PrincipalLine) -> (Vec<[u8; 12]>, Score) {
    let (mut at, mut sign, mut gained) = (pits, 1, 0);
    let mut seen = vec![pits];
    for valued in &line.moves {
        let moves = reference::moves(at);
        let reference::ReferenceMove::Legal { captured, child } = moves[valued.pit.number()] else {
            panic!("{valued:?}")
        };
        assert_eq!((captured, Board(child)), (valued.captured, valued.child));
        gained += sign * captured as i8;
        (at, sign) = (child, -sign);
        seen.push(at);
    }
    // What is left is worth its score: all moves were best.
    let left: u8 = at.iter().sum();
    let total = gained + sign * SOLVED[usize::from(left)][&at];
    assert_eq!(total, SOLVED[usize::from(pits.iter().sum::<u8>())][&pits], "{pits:?}: {line:?}");
    (seen, gained)
}

fn is_over(pits: [u8; 12]) -> bool {
    !reference::moves(pits).iter().any(|played| matches!(played, reference::ReferenceMove::Legal { .. }))
}

/// Every principal line, replayed by the slow rules: only best moves, and no position twice while anything is
/// at stake. It ends with the game.
#[test]
fn principal_lines_reach_the_score() {
    let disk = MemoryDisk::new();
    databases(&disk, 6, PositionSet::All, Codec::Packed);
    let oracle = oracle(&disk);
    let mut ends = [0; 2];
    for stones in 1..=6 {
        for pits in boards(stones).into_iter().step_by(5) {
            let line = oracle.line(&Board(pits), 1000).unwrap();
            let (seen, gained) = replayed(pits, &line);
            let at = seen[seen.len() - 1];
            match line.end {
                LineEnd::Over => {
                    let repeated = seen.iter().enumerate().any(|(number, pits)| seen[..number].contains(pits));
                    assert!(!repeated && is_over(at));
                    ends[0] += 1;
                }
                LineEnd::Repeats { from } => {
                    assert_eq!(seen[from], at);
                    assert_eq!(gained, SOLVED[usize::from(stones)][&pits], "{pits:?}: {line:?}");
                    ends[1] += 1;
                }
                other => panic!("{pits:?}: {other:?}"),
            }
        }
    }
    assert!(ends.iter().all(|&count| count > 100), "{ends:?}");
    let short = oracle.line(&Board([1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1]), 2).unwrap();
    assert_eq!((short.moves.len(), short.end), (2, LineEnd::CutOff));
}

/// Without some of the databases, lines have only best moves as well. They end where the next move is not
/// proved, or after a number of searches that takes no time that a person notices.
#[test]
fn lines_without_databases_end_early() {
    let (mut ends, mut searches_max) = ([0; 4], 0);
    for (largest, missing) in [(4, None), (7, Some(5))] {
        let disk = MemoryDisk::new();
        databases(&disk, largest, PositionSet::All, Codec::Packed);
        if let Some(missing) = missing {
            disk.remove(Path::new(&format!("databases/{missing:02}.awari"))).unwrap();
        }
        let oracle = oracle(&disk);
        for pits in (5..=7).flat_map(boards).step_by(151) {
            let searches = oracle.searches();
            let line = oracle.line(&Board(pits), 1000).unwrap();
            searches_max = searches_max.max(oracle.searches() - searches);
            let (seen, _) = replayed(pits, &line);
            let at = seen[seen.len() - 1];
            let end = match line.end {
                LineEnd::Over => {
                    assert!(is_over(at), "{pits:?}: {line:?}");
                    0
                }
                LineEnd::Repeats { from } => {
                    assert_eq!(seen[from], at);
                    1
                }
                LineEnd::CutOff => 2,
                LineEnd::Unknown => {
                    let answer = oracle.answer(&Board(at)).unwrap();
                    assert!(!answer.moves.is_empty());
                    assert!(
                        answer.score.score().is_none() || !answer.moves.iter().any(|valued| valued.is_best),
                        "{answer:?}"
                    );
                    3
                }
            };
            ends[end] += 1;
        }
    }
    assert!(ends.iter().all(|&count| count > 0), "{ends:?}");
    assert!((100..106).contains(&searches_max), "{searches_max}");
}

#[test]
fn damage_and_contradictions_are_refused() {
    let disk = MemoryDisk::new();
    databases(&disk, 4, PositionSet::All, Codec::Packed);
    let path = Path::new("databases/03.awari");
    disk.truncate(path, 100).unwrap();
    let error = oracle(&disk).answer(&Board([1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0])).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("databases/03.awari"), "{error}");

    write_forged(&disk, path, 3, PositionSet::All, Codec::Packed, |_, score| -score);
    let error = oracle(&disk).answer(&Board([0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0])).unwrap_err();
    assert!(matches!(error, OracleError::Inconsistent { .. }), "{error}");
}

/// Whether a score contradicts the slow rules and the scores of the children.
fn contradicts(forged: &[ReferenceScores], pits: [u8; 12]) -> bool {
    let moves = reference::moves(pits);
    let values = moves.iter().filter_map(|played| match played {
        reference::ReferenceMove::Legal { captured, child } => {
            let left = child.iter().sum::<u8>();
            Some(*captured as i8 - forged[usize::from(left)][child])
        }
        _ => None,
    });
    let stones = pits.iter().sum::<u8>();
    values.max().is_some_and(|best| best != forged[usize::from(stones)][&pits])
}

/// Wrong scores with right checksums: an answer is refused exactly if its position or a child contradicts its
/// own moves. With few wrong scores no wrong value is returned; many can support each other.
#[test]
fn forged_scores_are_refused_with_the_moves_that_lead_to_them() {
    for (one_in, step, codec) in [(300, 1, Codec::Packed), (20, 5, Codec::Packed), (2, 5, Codec::Zstd)] {
        let disk = MemoryDisk::new();
        databases(&disk, 3, PositionSet::All, codec);
        let mut forged = SOLVED.clone();
        let (mut random, mut wrong_scores) = (Random::of(&[one_in]), 0);
        for stones in 4..=6 {
            let path = format!("databases/{stones:02}.awari");
            write_forged(&disk, Path::new(&path), stones, PositionSet::All, codec, |pits, score| {
                let is_terminal = pits[..6] == [0; 6];
                if is_terminal || random.bits() % one_in != 0 {
                    return score;
                }
                let most = stones as i8;
                let other = (score + most + 1 + (random.bits() % (2 * stones as u64)) as i8) % (2 * most + 1) - most;
                assert!(other != score && other.abs() <= most);
                forged[stones as usize].insert(pits, other);
                wrong_scores += 1;
                other
            });
        }
        let oracle = oracle(&disk);
        let (mut refused, mut wrong) = (0, 0);
        for stones in 4..=6 {
            for pits in boards(stones).into_iter().step_by(step) {
                let children = reference::moves(pits).into_iter().filter_map(|played| match played {
                    reference::ReferenceMove::Legal { child, .. } => Some(child),
                    _ => None,
                });
                let visible =
                    contradicts(&forged, pits) || children.into_iter().any(|child| contradicts(&forged, child));
                let answer = match oracle.answer(&Board(pits)) {
                    Ok(answer) => answer,
                    Err(error) => {
                        assert!(visible && matches!(error, OracleError::Inconsistent { .. }), "{pits:?}: {error}");
                        refused += 1;
                        continue;
                    }
                };
                assert!(!visible, "{pits:?}");
                let is_wrong = answer.moves.iter().any(|valued| {
                    let left = usize::from(stones) - usize::from(valued.captured);
                    valued.value != Bounds::exact(valued.captured as i8 - SOLVED[left][&valued.child.0])
                });
                wrong += u32::from(is_wrong || answer.score != Bounds::exact(SOLVED[usize::from(stones)][&pits]));
            }
        }
        assert!(wrong_scores > 50 && refused > wrong_scores / step as u32, "one in {one_in}: {wrong_scores} {refused}");
        assert!(wrong == 0 || one_in < 300, "one in {one_in}: {wrong} wrong, {refused} refused, {wrong_scores} forged");
    }
}

/// Searches beyond the databases refuse forged scores, too.
#[test]
fn searches_refuse_contradictory_scores() {
    let disk = MemoryDisk::new();
    databases(&disk, 4, PositionSet::All, Codec::Packed);
    let path = Path::new("databases/03.awari");
    let pits = [0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0];
    write_forged(
        &disk,
        path,
        3,
        PositionSet::All,
        Codec::Packed,
        |at, score| if at == pits { -score - 1 } else { score },
    );
    let oracle = oracle(&disk);
    let (mut refused, mut told) = (0, 0);
    for stones in 5..=6 {
        for pits in boards(stones).into_iter().step_by(7) {
            match oracle.answer(&Board(pits)) {
                Ok(answer) => {
                    let right = SOLVED[usize::from(stones)][&pits];
                    assert!(answer.score.low() <= right && right <= answer.score.high(), "{pits:?}");
                    told += 1;
                }
                Err(OracleError::Inconsistent { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(refused > 10 && told > 100, "{refused} {told}");
}

#[test]
fn other_files_are_ignored() {
    let disk = MemoryDisk::new();
    databases(&disk, 2, PositionSet::All, Codec::Packed);
    disk.create(Path::new("databases/notes.awari")).unwrap().write(b"mine").unwrap();
    assert_eq!(library(&disk).unwrap().files().len(), 3);
}

#[test]
fn databases_of_different_kinds_are_refused() {
    let disk = MemoryDisk::new();
    databases(&disk, 2, PositionSet::All, Codec::Packed);
    write(&disk, Path::new("databases/03.awari"), 3, PositionSet::REACHABLE, Codec::Raw);
    let error = library(&disk).unwrap_err();
    assert!(error.is_damage());
    let text = error.to_string();
    assert!(
        text.starts_with(
            "databases/03.awari has rules awari, positions reachable, \
             but databases/00.awari has rules awari, positions all"
        ),
        "{text}"
    );
}

#[test]
fn a_file_under_another_name_is_refused() {
    let disk = MemoryDisk::new();
    databases(&disk, 2, PositionSet::All, Codec::Packed);
    write(&disk, Path::new("databases/04.awari"), 3, PositionSet::All, Codec::Raw);
    let text = library(&disk).unwrap_err().to_string();
    assert!(text.contains("04.awari is the database of 3 stones"), "{text}");
    assert!(text.contains("expected the database of 4 stones"), "{text}");
}

#[test]
fn damaged_databases_are_listed() {
    let disk = MemoryDisk::new();
    databases(&disk, 2, PositionSet::All, Codec::Packed);
    disk.truncate(Path::new("databases/01.awari"), 90).unwrap();
    let library = library(&disk).unwrap();
    assert!(matches!(library.files()[&1], LibraryFile::Damaged { .. }));
    assert!(matches!(library.files()[&2], LibraryFile::Sound(_)));
}

/// Scores out of the range of the stones would overflow values computed from them.
#[test]
fn a_file_of_other_scores_is_damaged() {
    let disk = MemoryDisk::new();
    databases(&disk, 2, PositionSet::All, Codec::Packed);
    let path = Path::new("databases/02.awari");
    let file = Scores::open(&disk, path).unwrap();
    let (identity, shape) = (file.identity().clone(), file.shape().clone());
    let scores = vec![i8::MIN; shape.positions() as usize];
    store::write(&disk, path, &identity, &shape, ValueRange::new(-128, 127), Codec::Raw, &scores).unwrap();
    let LibraryFile::Damaged { error, .. } = &library(&disk).unwrap().into_files()[&2] else { panic!("it is damaged") };
    assert!(error.to_string().contains("expected values in -2..=2, found values in -128..=127"), "{error}");
    let error = oracle(&disk).answer(&Board([0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0])).unwrap_err();
    assert!(error.is_damage(), "{error}");
}
