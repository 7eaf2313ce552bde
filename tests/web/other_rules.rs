//! Databases of wari, oware and others of the family: answers, lines and searches by the rules of the databases, in
//! positions that a database holds and beyond, against the slow solver.

use crate::http::{get, json_of, run, text_of};
use disk::{Disk, MemoryDisk};
use game::play::Game;
use game::reference::{self, ReferenceMove, ReferenceScores, boards};
use game::{Board, Pit, Rules, Score, Slam};
use oracle::{Bounds, Library, LineEnd, Oracle, OracleError};
use pipeline::{Manifest, Orchestrator, RunOptions};
use planner::{Settings, schema};
use search::Evaluation;
use serde_json::Value;
use server::{Catalogue, ServerLimits, Site, SiteEngine};
use stages::Awari;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Scores;
use tests::Random;

/// What the slow solver says of boards by some rules.
enum ReferenceTruth {
    Scores(Vec<ReferenceScores>),
    Bounds(Vec<reference::ReferenceBounds>),
}

impl ReferenceTruth {
    fn new(rules: &Rules, stones: u8) -> ReferenceTruth {
        if rules.has_scores() {
            return ReferenceTruth::Scores(reference::solve_up_to_by(rules, stones));
        }
        let mut solved = Vec::new();
        for stones in 0..=stones {
            let bounds = reference::solve_bounds(rules, stones, &solved);
            solved.push(bounds);
        }
        ReferenceTruth::Bounds(solved)
    }

    fn of(&self, pits: &[u8; 12]) -> (Score, Score) {
        let stones = usize::from(pits.iter().sum::<u8>());
        match self {
            ReferenceTruth::Scores(solved) => (solved[stones][pits], solved[stones][pits]),
            ReferenceTruth::Bounds(solved) => (solved[stones].low[pits], solved[stones].high[pits]),
        }
    }

    /// The bounds of a move.
    fn of_move(&self, captured: u8, child: &[u8; 12]) -> (Score, Score) {
        let (low, high) = self.of(child);
        (captured as Score - high, captured as Score - low)
    }
}

/// Builds databases of 0 to `stones` stones by the stages of a run.
fn library(rules: &Rules, stones: u32) -> Library {
    let text = format!("[game]\nrules = \"{}\"\n[build]\nstones = \"0..{stones}\"\n", rules.name);
    let disk = MemoryDisk::new();
    let work = Awari::new(Settings::new(&Manifest::parse(&text, "test", &schema(), &[]).unwrap()));
    Orchestrator::new(&disk, Path::new("run"), &work, RunOptions::default()).run().unwrap();
    let path = |stones: u32| PathBuf::from(format!("run/databases/{stones:02}.awari"));
    Library::new((0..=stones).map(|stones| (path(stones), Scores::open(&disk as &dyn Disk, &path(stones))))).unwrap()
}

fn site(rules: &Rules, stones: u32) -> Arc<Site> {
    let library = library(rules, stones);
    let catalogue = Catalogue::new(&library);
    let engine = SiteEngine::new(library.rules(), 1 << 20, Evaluation::default(), || {}).unwrap();
    Site::new(Oracle::new(library, 1 << 20), catalogue, engine, None, ServerLimits::default())
}

/// The legal moves by the slow rules: pit, captured stones, child.
fn legal(rules: &Rules, pits: [u8; 12]) -> Vec<(Pit, u8, [u8; 12])> {
    let moves = Pit::ALL.into_iter().zip(reference::moves_by(rules, pits));
    let legal = moves.filter_map(|(pit, played)| match played {
        ReferenceMove::Legal { captured, child } => Some((pit, captured, child)),
        _ => None,
    });
    legal.collect()
}

fn pit_of(valued: &Value) -> Pit {
    Pit::new(valued["pit"].as_str().unwrap().to_ascii_uppercase().as_bytes()[0] - b'A').unwrap()
}

fn spaced(pits: &[u8; 12]) -> String {
    pits.map(|pit| pit.to_string()).join("+")
}

/// The stones that the players of an exact line get, for the player to move at its begin, are the score. A
/// line may end where the player to move has stones, but no legal move.
#[test]
fn lines_reach_the_score_by_all_rules() {
    lines_reach_the_score(7);
}

#[test]
#[ignore = "slow tier: every third board"]
fn many_lines_reach_the_score_by_all_rules() {
    lines_reach_the_score(3);
}

/// Checks the lines of every `step`-th board.
fn lines_reach_the_score(step: usize) {
    for rules in Rules::with_scores() {
        let (oracle, truth) = (Oracle::new(library(&rules, 6), 1 << 20), ReferenceTruth::new(&rules, 6));
        let (mut over, mut with_stones) = (0, 0);
        for pits in (1..=6).flat_map(boards).step_by(step) {
            let line = oracle.line(&Board(pits), 1000).unwrap();
            let (mut at, mut sign, mut gained) = (pits, 1, 0);
            for valued in &line.moves {
                let found = legal(&rules, at).into_iter().find(|(pit, ..)| *pit == valued.pit);
                let (_, captured, child) = found.unwrap_or_else(|| panic!("{} {pits:?} {line:?}", rules.name));
                assert_eq!((captured, Board(child)), (valued.captured, valued.child));
                gained += sign * captured as Score;
                (at, sign) = (child, -sign);
            }
            match line.end {
                LineEnd::Over => {
                    assert!(legal(&rules, at).is_empty());
                    let (rest, _) = truth.of(&at);
                    gained += sign * rest;
                    over += 1;
                    with_stones += u32::from(at[..6] != [0; 6]);
                }
                LineEnd::Repeats { .. } => {}
                other => panic!("{} {pits:?}: {other:?}", rules.name),
            }
            assert_eq!(gained, truth.of(&pits).0, "{} {pits:?}: {line:?}", rules.name);
        }
        assert!(over > 100, "{}: {over}", rules.name);
        // Only an illegal slam leaves a player with stones without a move.
        assert_eq!(with_stones > 0, rules.slam == Slam::Illegal, "{}: {with_stones}", rules.name);
    }
}

/// Boards of 5 and 6 stones with databases of up to 4: the bounds of positions and moves hold what the slow
/// solver says.
#[test]
fn answers_beyond_the_databases_hold_the_truth() {
    for rules in [Rules::WARI, Rules::SLAM_ILLEGAL_OWN_SIDE, Rules::OWARE] {
        let (oracle, truth) = (Oracle::new(library(&rules, 4), 1 << 20), ReferenceTruth::new(&rules, 6));
        let mut narrowed = 0;
        for pits in (5..=6).flat_map(boards).step_by(23) {
            let answer = match oracle.answer(&Board(pits)) {
                Err(OracleError::Missing { .. }) => continue,
                answer => answer.unwrap(),
            };
            let holds = |found: Bounds, (low, high)| found.low() <= low && high <= found.high();
            assert!(holds(answer.score, truth.of(&pits)), "{} {pits:?} {answer:?}", rules.name);
            let expected = legal(&rules, pits);
            assert_eq!(answer.moves.len(), expected.len(), "{} {pits:?}", rules.name);
            for (valued, (pit, captured, child)) in answer.moves.iter().zip(expected) {
                assert_eq!((valued.pit, valued.captured, valued.child.0), (pit, captured, child));
                assert!(holds(valued.value, truth.of_move(captured, &child)), "{} {pits:?} {valued:?}", rules.name);
            }
            narrowed += u32::from(answer.score != Bounds::anything(Board(pits).stones()));
        }
        assert!(narrowed > 100, "{}: {narrowed}", rules.name);
    }
}

/// The same for `/v1/analysis`, which searches: its moves are those of the rules, with the positions that they lead to.
#[test]
fn analyses_beyond_the_databases_follow_the_rules() {
    for rules in [Rules::WARI, Rules::SLAM_ILLEGAL_OWN_SIDE, Rules::OWARE] {
        let (site, truth) = (site(&rules, 4), ReferenceTruth::new(&rules, 6));
        run(async {
            let (mut slams, mut narrowed) = (0, 0);
            let all: Vec<[u8; 12]> = (5..=6).flat_map(boards).collect();
            // Boards with other moves than by awari, and any boards.
            let is_other = |pits: &&[u8; 12]| legal(&rules, **pits) != legal(&Rules::AWARI, **pits);
            let chosen = all.iter().filter(is_other).chain(all.iter().step_by(197));
            for pits in chosen {
                let path = format!("/v1/analysis?pos={}&nodes=200&time=5000&lines=6&format=json", spaced(pits));
                let found = json_of(&site, &path).await;
                let bounds =
                    |proved: &Value| (proved["lo"].as_i64().unwrap() as Score, proved["hi"].as_i64().unwrap() as Score);
                let holds = |(lo, hi): (Score, Score), (low, high)| lo <= low && high <= hi;
                assert!(holds(bounds(&found["proved"]), truth.of(pits)), "{} {found}", rules.name);
                let expected = legal(&rules, *pits);
                let moves = found["moves"].as_array().unwrap();
                assert_eq!(moves.len(), expected.len(), "{} {found}", rules.name);
                for valued in moves {
                    let (_, captured, child) = expected.iter().find(|(pit, ..)| *pit == pit_of(valued)).unwrap();
                    assert_eq!(valued["captures"], *captured, "{} {found}", rules.name);
                    assert_eq!(valued["next"], spaced(child).replace('+', " "), "{} {found}", rules.name);
                    assert!(
                        holds(bounds(&valued["proved"]), truth.of_move(*captured, child)),
                        "{} {valued}",
                        rules.name
                    );
                }
                slams += u32::from(expected != legal(&Rules::AWARI, *pits));
                narrowed += u32::from(
                    bounds(&found["proved"]) != (-(Board(*pits).stones() as Score), Board(*pits).stones() as Score),
                );
            }
            assert!(slams > 10 && narrowed > 30, "{}: {slams} {narrowed}", rules.name);
        });
    }
}

/// Perfect players of a site of oware know the game so far, and search where the bounds of a board differ:
/// against random moves they get more than the lower bounds of the first positions guarantee, and hardly ever
/// less.
#[test]
fn players_of_a_site_get_more_than_the_databases_guarantee() {
    let (site, truth) = (site(&Rules::OWARE, 6), ReferenceTruth::new(&Rules::OWARE, 6));
    let mut random = Random::new(3);
    run(async {
        let (mut moves, mut repeated, mut below, mut gained) = (0, 0, 0, 0);
        for at in 0..50 {
            let board = random.board(2 + at % 5);
            let start = board.0.map(|pit| pit.to_string()).join("-") + "-0-0-S";
            let mut game = Game::from(Rules::OWARE, &start.parse().unwrap());
            let mut letters = String::new();
            while game.outcome().is_none() {
                let pit = match game.turns().len() % 2 {
                    0 => {
                        let path = format!("/v1/choose?pos={start}&moves={letters}&level=perfect&seed=1");
                        let (status, body) = text_of(&site, get(&path)).await;
                        assert_eq!(status, 200, "{path}: {body}");
                        let chosen: Value = serde_json::from_str(&body).unwrap();
                        assert!(["database", "search"].contains(&chosen["source"].as_str().unwrap()), "{chosen}");
                        moves += 1;
                        pit_of(&chosen["move"])
                    }
                    _ => random.pick(&game.moves()).0,
                };
                letters += &game.play(pit).unwrap().text().to_string();
            }
            let outcome = game.outcome().unwrap();
            let (low, _) = truth.of(&board.0);
            below += u32::from(outcome.lead < low);
            gained += i32::from(outcome.lead) - i32::from(low);
            repeated += u32::from(matches!(outcome.end, game::play::GameEnd::Repeats { .. }));
        }
        assert!(moves > 150 && repeated > 0, "{moves} {repeated}");
        assert!(below < 5 && gained > 50, "{below} games below the guarantee, {gained} stones above it in all");
    });
}

/// The page says in words which rules it plays, and its script receives their parameters.
#[test]
fn the_page_says_which_rules_it_plays() {
    for rules in [Rules::AWARI, Rules::WARI, Rules::OWARE] {
        let site = site(&rules, 1);
        let (status, page) = run(text_of(&site, get("/")));
        assert_eq!(status, 200);
        assert!(page.contains(&format!("rules: {}", rules.name)) && page.contains(&rules.text()), "{page}");
        let parameters = format!(
            "data-slam=\"{}\" data-rest=\"{}\" data-repetition=\"{}\"",
            rules.slam, rules.rest, rules.repetition
        );
        assert!(page.contains(&parameters), "{page}");
        let two = "a board has two numbers: what the player to move can force";
        assert_eq!(page.contains(two), !rules.has_scores(), "{page}");
    }
}
