//! The rules of oware against those of OpenSpiel (Lanctot et al. 2019), an implementation by others: legal
//! moves, boards, stores and ends of random games, move by move. `tests/data/openspiel-oware.txt` holds games
//! that `openspiel_oware.py`, which explains the format, printed with OpenSpiel 2.0.2.

use game::notation::{MoveText, Seats, Side};
use game::play::{Game, GameEnd};
use game::{Board, Rules};
use std::process::Command;
use tests::needs::{Need, python};
use tests::root;

/// Environment variable with the number of random games, 5,000 by default.
const GAMES_VARIABLE: &str = "AWARI_TEST_GAMES";

/// Plies after which OpenSpiel ends a game.
const PLIES_MAX: usize = 1_000;

/// How replayed games ended.
#[derive(Debug, Default)]
struct EndCounts {
    majority: u32,
    cannot_move: u32,
    /// A player had stones, and no move gave the opponent any.
    cannot_feed: u32,
    repeats: u32,
    plies: u32,
    slams: u32,
}

/// Replays a game, and counts how it ended.
fn replay(line: &str, ends: &mut EndCounts) {
    let words: Vec<&str> = line.split(' ').collect();
    let [seeds, moves @ .., last] = &words[..] else { panic!("{line}") };
    let seeds: u8 = seeds.parse().unwrap();
    let mut game = Game::from(Rules::OWARE, &game::notation::PositionText::of_board(Board([seeds; 12])));
    for (ply, word) in moves.iter().enumerate() {
        let what = || format!("move {} of {line}", ply + 1);
        assert!(end_of(&game, seeds, ply).is_none(), "{}: the game is over", what());
        let (letter, rest) = word.split_at(1);
        let (mask, after) = rest.split_at(2);
        let MoveText { pit, side } = letter.parse().unwrap();
        assert_eq!(side, game.now().seats.side, "{}", what());
        let legal = game.moves().iter().fold(0, |mask, (pit, _)| mask | 1u8 << pit.number());
        assert_eq!(legal, u8::from_str_radix(mask, 16).unwrap(), "{}", what());
        ends.slams += u32::from(game.now().board.offers_slam(game.rules()));
        game.play(pit).unwrap_or_else(|error| panic!("{}: {error}", what()));
        if !after.is_empty() {
            assert_eq!(numbers(&game), after.bytes().map(|byte| byte - 48).collect::<Vec<_>>(), "{}", what());
        }
    }
    let end = end_of(&game, seeds, moves.len()).unwrap_or_else(|| panic!("OpenSpiel ended {line}"));
    let stores: Vec<i8> = last[1..].bytes().map(|byte| byte as i8 - 48).collect();
    let Seats { south_store, north_store, side } = game.now().seats;
    let board = game.now().board;
    let rows = [board.mover(), board.opponent()].map(|half| half.iter().sum::<u8>());
    let [south, north] = if side == Side::South { rows } else { [rows[1], rows[0]] };
    let own_rows = [(south_store + south) as i8, (north_store + north) as i8];
    // However a game ends, OpenSpiel gives each player the seeds of the own row.
    assert_eq!(stores, own_rows, "{line}");
    match end {
        OpenSpielEnd::Majority => ends.majority += 1,
        OpenSpielEnd::Plies => ends.plies += 1,
        OpenSpielEnd::Over(over) => {
            assert_eq!(game.outcome().unwrap().lead, stores[0] - stores[1], "{line}");
            match over {
                GameEnd::CannotMove(_) if board.mover_starves() => ends.cannot_move += 1,
                GameEnd::CannotMove(_) => ends.cannot_feed += 1,
                GameEnd::Repeats { .. } => ends.repeats += 1,
            }
        }
    }
}

/// Why OpenSpiel ends a game.
enum OpenSpielEnd {
    /// A player has more than half of the seeds, or each has half.
    Majority,
    /// By the rules of both programs.
    Over(GameEnd),
    Plies,
}

fn end_of(game: &Game, seeds: u8, plies: usize) -> Option<OpenSpielEnd> {
    let (half, Seats { south_store, north_store, .. }) = (6 * seeds, game.now().seats);
    if south_store.max(north_store) > half || (south_store, north_store) == (half, half) {
        return Some(OpenSpielEnd::Majority);
    }
    if let Some(outcome) = game.outcome() {
        return Some(OpenSpielEnd::Over(outcome.end));
    }
    (plies >= PLIES_MAX).then_some(OpenSpielEnd::Plies)
}

/// The pits from A round to f, and the stores.
fn numbers(game: &Game) -> Vec<u8> {
    let Seats { south_store, north_store, side } = game.now().seats;
    let board = game.now().board;
    let board = if side == Side::South { board } else { board.turned() };
    board.0.into_iter().chain([south_store, north_store]).collect()
}

fn replay_all(games: &str) -> EndCounts {
    let mut ends = EndCounts::default();
    games.lines().for_each(|line| replay(line, &mut ends));
    println!("{ends:?}");
    ends
}

#[test]
fn recorded_games_agree_with_open_spiel() {
    let ends = replay_all(include_str!("../data/openspiel-oware.txt"));
    assert!(ends.majority > 50 && ends.cannot_feed > 20 && ends.repeats > 10 && ends.slams > 50, "{ends:?}");
}

/// A changed record is refused: the comparison is not empty.
#[test]
fn a_wrong_record_is_noticed() {
    let games = include_str!("../data/openspiel-oware.txt");
    let line = games.lines().next().unwrap();
    for (from, to) in [("=", "=0"), (" B3f1", " B3f2"), (" B3f", " B3e")] {
        let wrong = line.replacen(from, to, 1);
        assert_ne!(wrong, line);
        assert!(std::panic::catch_unwind(|| replay(&wrong, &mut EndCounts::default())).is_err(), "{wrong}");
    }
}

#[test]
#[ignore = "slow tier: needs the package open-spiel"]
fn random_games_agree_with_open_spiel() {
    if !Need::OpenSpiel.is_met() {
        return;
    }
    let script = root().join("tests/solvers/openspiel_oware.py");
    let seed = std::env::var(tests::SEED_VARIABLE).unwrap_or_else(|_| "2".to_owned());
    let games: usize = std::env::var(GAMES_VARIABLE).map_or(5_000, |games| games.parse().expect("a number of games"));
    let out = Command::new(python()).arg(script).args([&games.to_string(), &seed]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text.lines().count(), games);
    replay_all(&text);
}
