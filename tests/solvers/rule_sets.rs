//! The rules of the family: moves against the slow twin, engines against the slow solver, methods against each other.

use check::{Databases, Extent, certify, verify};
use disk::{Digest, Disk, MemoryDisk};
use game::reference::{self, ReferenceMove};
use game::{Board, Illegal, Index, Orientation, Pit, PositionSet, Rules, Score};
use pipeline::{Manifest, Orchestrator, RunOptions};
use planner::{Method, Settings, schema};
use solvers::capture::InMemory;
use solvers::{Bytes, Kernel, Tables, capture, sweep};
use stages::Awari;
use std::path::{Path, PathBuf};
use tests::Random;

const SETS: [PositionSet; 2] = [PositionSet::All, PositionSet::REACHABLE];

fn check_moves(rules: &Rules, board: Board) {
    let mut legal = Vec::new();
    for (pit, expected) in Pit::ALL.into_iter().zip(reference::moves_by(rules, board.0)) {
        let found = board.play(rules, pit);
        match expected {
            ReferenceMove::Empty => assert_eq!(found, Err(Illegal::Empty(pit)), "{board:?} {}", rules.name),
            ReferenceMove::Starves => assert_eq!(found, Err(Illegal::Starves(pit)), "{board:?} {}", rules.name),
            ReferenceMove::Slam => assert_eq!(found, Err(Illegal::Slam(pit)), "{board:?} {}", rules.name),
            ReferenceMove::Legal { captured, child } => {
                let played = found.unwrap_or_else(|error| panic!("{board:?} {}: {error}", rules.name));
                assert_eq!((played.captured, played.child.0), (captured, child), "{board:?} {}", rules.name);
                legal.push((pit, played));
            }
        }
    }
    assert_eq!(board.moves(rules).collect::<Vec<_>>(), legal, "{board:?} {}", rules.name);
}

/// Half of the boards have one pit of the opponent with stones, and some of the mover near it: slams are frequent.
#[test]
fn moves_of_random_positions() {
    let mut random = Random::new(11);
    let mut slams = 0;
    for at in 0..40_000 {
        let mut board = random.board(at % 49);
        if at % 2 == 0 {
            board.0[6..].fill(0);
            board.0[6 + random.below(2) as usize] = 1 + random.below(2) as u8;
            board.0[5 - random.below(3) as usize] = 1 + random.below(4) as u8;
        }
        Rules::KNOWN.iter().for_each(|rules| check_moves(rules, board));
        slams += u32::from(reference::moves_by(&Rules::SLAM_ILLEGAL, board.0).contains(&ReferenceMove::Slam));
    }
    assert!(slams > 1_000, "only {slams} boards with a slam");
}

/// Databases 0 to `stones` by sweep, in canonical order.
fn swept(rules: Rules, set: PositionSet, stones: u32, kernel: Kernel) -> Vec<Vec<Score>> {
    let tables = Tables::new(rules, set, stones);
    let mut databases: Vec<Vec<Score>> = Vec::new();
    for stones in 0..=stones {
        let index = Index::new(stones, set);
        let smaller = InMemory::new(set, databases.iter().map(Vec::as_slice));
        let mut best = Bytes::zeroed(index.positions() as usize).unwrap();
        capture::capture_into(&tables, &index, &smaller, &(), &mut best, &mut |_| Ok(())).unwrap();
        let (scores, _) = sweep::solve(&tables, &index, &best, kernel).unwrap();
        databases.push(scores.to_vec());
    }
    databases
}

#[test]
fn sweep_agrees_with_the_reference_by_all_rules() {
    for rules in Rules::with_scores() {
        let stones = 6;
        let solved = reference::solve_up_to_by(&rules, stones);
        for set in SETS {
            for kernel in Kernel::available() {
                for (stones, scores) in swept(rules, set, stones.into(), kernel).iter().enumerate() {
                    let index = Index::new(stones as u32, set);
                    for (position, &score) in scores.iter().enumerate() {
                        let board = index.unrank(position as u64, Orientation::OpponentMajor);
                        assert_eq!(score, solved[stones][&board.0], "{board:?} {} {kernel:?}", rules.name);
                    }
                }
            }
        }
    }
}

#[test]
fn databases_of_all_rules_differ_and_are_certified() {
    const STONES: u32 = 8;
    let mut all: Vec<Vec<Vec<Score>>> = Vec::new();
    for rules in Rules::with_scores() {
        let scores = swept(rules, PositionSet::All, STONES, Kernel::detect());
        check_and_certify(rules, PositionSet::All, &scores);
        assert!(all.iter().all(|other| *other != scores), "{} is like other rules", rules.name);
        if rules == Rules::WARI {
            check_digests(&scores);
        }
        all.push(scores);
    }
}

fn check_and_certify(rules: Rules, set: PositionSet, scores: &[Vec<Score>]) {
    let mut databases: Databases<&[Score]> = Databases::new(rules, set);
    for (stones, scores) in (0..).zip(scores) {
        databases.insert(stones, scores.as_slice()).unwrap();
        assert!(verify(&databases, stones, Extent::Full).is_ok(), "{stones} {}", rules.name);
        assert!(certify(&databases, stones).is_ok(), "{stones} {}", rules.name);
    }
}

/// Compares databases of wari, all positions, with the digests of the first ones that were certified.
fn check_digests(scores: &[Vec<Score>]) {
    let digests = include_str!("../data/wari-digests.csv").lines().skip(1);
    let mut checked = 0;
    for (line, scores) in digests.zip(scores) {
        let (stones, digest) = line.split_once(',').unwrap();
        assert_eq!(Digest::of_i8(scores).to_string(), digest, "{stones} stones");
        checked += 1;
    }
    assert_eq!(checked, scores.len());
}

/// The databases of a build by the stages of a run, as bytes.
fn built(rules: Rules, set: PositionSet, stones_max: u32, method: Method) -> Vec<Vec<u8>> {
    let text = format!(
        "[game]\nrules = \"{}\"\npositions = \"{set}\"\n[build]\nstones = \"0..{stones_max}\"\nmethod = \"{}\"\n\
         [check]\nverify = \"none\"\n",
        rules.name,
        method.word()
    );
    let disk = MemoryDisk::new();
    let work = Awari::new(Settings::new(&Manifest::parse(&text, "test", &schema(), &[]).unwrap()));
    Orchestrator::new(&disk, Path::new("run"), &work, RunOptions::default()).run().unwrap();
    let path = |stones: u32| PathBuf::from(format!("run/databases/{stones:02}.awari"));
    (0..=stones_max).map(|stones| disk.read(&path(stones), 1 << 30).unwrap()).collect()
}

fn methods_agree(rules: Rules, set: PositionSet, stones_max: u32) {
    let [first, others @ ..] = Method::ALL;
    let expected = built(rules, set, stones_max, first);
    for method in others {
        assert!(built(rules, set, stones_max, method) == expected, "{} {set} {method}", rules.name);
    }
}

#[test]
fn methods_agree_by_all_rules() {
    SETS.iter().for_each(|&set| methods_agree(Rules::WARI, set, 8));
    let others = Rules::with_scores().filter(|rules| ![Rules::AWARI, Rules::WARI].contains(rules));
    for (rules, set) in others.zip(SETS.into_iter().cycle()) {
        methods_agree(rules, set, 6);
    }
}

/// Reachable positions have the scores that all positions have, so one certificate is that of both.
#[test]
#[ignore = "slow: all methods to 13 stones, and certificates to 11"]
fn wari_is_the_same_by_all_methods() {
    SETS.into_iter().zip([12, 13]).for_each(|(set, stones)| methods_agree(Rules::WARI, set, stones));
    let [all, reachable] = SETS.map(|set| swept(Rules::WARI, set, 11, Kernel::detect()));
    check_and_certify(Rules::WARI, PositionSet::All, &all);
    for (stones, scores) in (0..).zip(&reachable) {
        let (index, few) = (Index::new(stones, PositionSet::All), Index::new(stones, PositionSet::REACHABLE));
        for (position, score) in (0..).zip(scores) {
            let board = few.unrank(position, Orientation::OpponentMajor);
            let at = index.rank(&board, Orientation::OpponentMajor).unwrap();
            assert_eq!(*score, all[stones as usize][at as usize], "{board:?}");
        }
    }
}
