//! Proofs of draws, against scores by the rule text.

use super::awari::engine;
use crate::{
    AwariGame, BookFile, DrawProof, DrawProofError, DrawVerdict, KeptPosition, ProofRole, check_book, check_kept,
    enter_proof,
};
use crate::{BookSides, Strategy};
use disk::RealDisk;
use game::reference::{self, ReferenceScores};
use game::{Board, Pit, Rules, Score};
use search::{ExactScores, SearchStop};

struct SolvedBelow(Vec<ReferenceScores>);

impl ExactScores for SolvedBelow {
    fn knows(&self, stones: u32) -> bool {
        (stones as usize) < self.0.len()
    }

    fn score(&self, board: &Board) -> Option<Score> {
        Some(self.0.get(board.stones() as usize)?[&board.0])
    }
}

fn prove(databases: &SolvedBelow, board: &Board, role: ProofRole, nodes: u64) -> DrawVerdict {
    let mut proof = DrawProof::new(Rules::AWARI, databases, nodes, 0).unwrap();
    proof.prove(board, role, usize::MAX, &SearchStop::new(), &mut |_| {}).unwrap()
}

/// A claim is kept if and only if it is true, and what keeps it holds by the rule text.
#[test]
fn claims_are_kept_where_they_are_true() {
    let all = reference::solve_up_to(5);
    for stones in 2..=5 {
        let databases = SolvedBelow(all[..stones].to_vec());
        for (&pits, &score) in all[stones].iter().step_by(if stones == 5 { 23 } else { 7 }) {
            let board = Board(pits);
            for (role, is_true) in [(ProofRole::Defender, score >= 0), (ProofRole::Attacker, score <= 0)] {
                match prove(&databases, &board, role, 10) {
                    DrawVerdict::Kept(set) => {
                        assert!(is_true, "{pits:?}, {role:?}");
                        assert_eq!((set[0].board, set[0].role), (board, role));
                        check_kept(&Rules::AWARI, &set, &databases).unwrap();
                    }
                    verdict => assert!(!is_true && verdict == DrawVerdict::Refuted, "{pits:?}, {role:?}: {verdict:?}"),
                }
            }
        }
    }
}

fn draw() -> (SolvedBelow, Board, Vec<Vec<KeptPosition>>) {
    let mut all = reference::solve_up_to(6);
    let last = all.pop().unwrap();
    let databases = SolvedBelow(all);
    let sets_of = |pits| {
        let sets = [ProofRole::Defender, ProofRole::Attacker].map(|role| prove(&databases, &Board(pits), role, 10));
        sets.into_iter().map(|verdict| match verdict {
            DrawVerdict::Kept(set) => set,
            other => panic!("{other:?}"),
        })
    };
    let draws = last.iter().filter(|(_, score)| **score == 0).step_by(11);
    let (board, sets) = draws
        .map(|(&pits, _)| (Board(pits), sets_of(pits).collect::<Vec<_>>()))
        .find(|(_, sets)| sets.iter().all(|set| set.len() > 20))
        .unwrap();
    (databases, board, sets)
}

/// A set without one of its positions, or with another move of the defender, is no proof.
#[test]
fn sets_with_planted_errors_are_refused() {
    let (databases, _, sets) = draw();
    for set in &sets {
        check_kept(&Rules::AWARI, set, &databases).unwrap();
        for gone in 1..set.len() {
            let mut less = set.clone();
            less.remove(gone);
            assert!(check_kept(&Rules::AWARI, &less, &databases).is_err(), "{:?}", set[gone]);
        }
        let at = set.iter().position(|kept| kept.role == ProofRole::Defender).unwrap();
        let mut wrong = set.clone();
        wrong[at].pit = Pit::ALL.into_iter().find(|&pit| wrong[at].board.play(&Rules::AWARI, pit).is_err());
        assert!(check_kept(&Rules::AWARI, &wrong, &databases).is_err());
    }
    assert!(check_kept(&Rules::AWARI, &[], &databases).is_err());
}

/// The book of a proof has the proved value at its root, also without what searches found.
#[test]
fn a_book_holds_a_proof() {
    let (databases, board, sets) = draw();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("draw.sqlite");
    let mut file = BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap();
    let sets: Vec<&[KeptPosition]> = sets.iter().map(Vec::as_slice).collect();
    enter_proof(&mut file, &Rules::AWARI, &sets, &databases).unwrap();
    let book = file.load(Strategy::Proof, BookSides::Both).unwrap();
    assert_eq!(AwariGame::board(book.graph().node(book.roots()[0]).key), board);
    let check = check_book(&book, &databases, true);
    assert_eq!(check.wrong, Vec::<String>::new());
    assert_eq!(check.certificate.map(|found| (found.root.low, found.root.high)), Some((0, 0)));
}

/// Without a database that a capture leads to, a proof ends with an error that names the position.
#[test]
fn missing_databases_are_errors() {
    let databases = SolvedBelow(reference::solve_up_to(2));
    let board = Board([0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
    for role in [ProofRole::Defender, ProofRole::Attacker] {
        let mut proof = DrawProof::new(Rules::AWARI, &databases, 10, 0).unwrap();
        let error = proof.prove(&board, role, usize::MAX, &SearchStop::new(), &mut |_| {}).unwrap_err();
        assert!(matches!(&error, DrawProofError::Missing { position } if !position.is_empty()), "{error}");
    }
}

/// A proof is entered as a whole: after a failed write the book has nothing of it, and takes it later.
#[test]
fn a_proof_is_entered_whole_or_not_at_all() {
    let (databases, _, sets) = draw();
    let sets: Vec<&[KeptPosition]> = sets.iter().map(Vec::as_slice).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("draw.sqlite");
    let create = || BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap();
    let mut file = create();
    file.fail_beyond(file.pages());
    let failed = enter_proof(&mut file, &Rules::AWARI, &sets, &databases).unwrap_err();
    assert!(failed.to_string().contains("full"), "{failed}");
    assert!(!file.has_root());
    drop(file);
    let mut file = create();
    assert!(!file.has_root());
    let expansions = enter_proof(&mut file, &Rules::AWARI, &sets, &databases).unwrap();
    assert!(file.has_root() && expansions > 20, "{expansions}");
}
