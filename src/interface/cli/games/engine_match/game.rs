//! One game of a match: asks the engines in turn, keeps the clocks, and ends by the rules or by a fault.

use super::process::{EngineFault, EngineProcess, EngineReply, NoReply, Patience};
use crate::args::ClockControl;
use game::notation::{MoveText, Side};
use game::play::{Game, GameEnd};
use game::transcript::side_name;
use std::fmt::Write;
use std::time::Duration;

/// The most moves of a game; then the remaining stones are shared out.
const MOVES_MAX: usize = 500;

/// The limits of each move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MoveLimits {
    pub(super) clock: Option<ClockControl>,
    pub(super) move_time: Option<Duration>,
    pub(super) nodes: Option<u64>,
    pub(super) depth: Option<u32>,
}

impl MoveLimits {
    /// Describes the limits.
    pub(super) fn text(&self) -> String {
        let clock = self.clock.map(|ClockControl { base, increment }| format!("time {base:?}+{increment:?}"));
        let move_time = self.move_time.map(|time| format!("movetime {time:?}"));
        let nodes = self.nodes.map(|nodes| format!("nodes {nodes}"));
        let depth = self.depth.map(|depth| format!("depth {depth}"));
        [clock, move_time, nodes, depth].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A finished game.
#[derive(Clone, Debug)]
pub(super) struct FinishedGame {
    pub(super) game: Game,
    /// The winner, if there is one.
    pub(super) winner: Option<Side>,
    /// Stones of South minus those of North.
    pub(super) lead: i16,
    /// How the game ended.
    pub(super) reason: String,
    /// The side that lost by a fault.
    pub(super) fault: Option<(Side, EngineFault)>,
}

/// The clocks of South and North, of a side that has one.
struct MatchClocks {
    controls: [Option<ClockControl>; 2],
    remaining: [Duration; 2],
}

impl MatchClocks {
    fn new(limits: &[MoveLimits; 2]) -> MatchClocks {
        let controls = [limits[0].clock, limits[1].clock];
        MatchClocks {
            controls,
            remaining: controls.map(|control| control.map_or(Duration::ZERO, |control| control.base)),
        }
    }

    /// Returns the remaining time of a side, if it has a clock.
    fn remaining(&self, side: Side) -> Option<Duration> {
        self.controls[index(side)].map(|_| self.remaining[index(side)])
    }

    /// Takes the time of a move, and adds the increment.
    fn spend(&mut self, side: Side, elapsed: Duration) {
        if let Some(control) = self.controls[index(side)] {
            let remaining = &mut self.remaining[index(side)];
            *remaining = remaining.saturating_sub(elapsed) + control.increment;
        }
    }
}

fn index(side: Side) -> usize {
    usize::from(side == Side::North)
}

/// Plays a game from an opening between South and North, each within its limits. Returns `None` if the match is to end.
pub(super) fn play(
    opening: &Game,
    engines: &mut [&mut EngineProcess; 2],
    limits: &[MoveLimits; 2],
    patience: Patience<'_>,
) -> Option<FinishedGame> {
    let mut game = opening.clone();
    let mut clocks = MatchClocks::new(limits);
    for side in [Side::South, Side::North] {
        match engines[index(side)].begin_game(patience) {
            Ok(()) => {}
            Err(NoReply::Stopped) => return None,
            Err(NoReply::Fault(fault)) => return Some(lost(game, side, fault)),
        }
    }
    loop {
        if let Some(finished) = finished(&game) {
            return Some(finished);
        }
        let side = game.now().seats.side;
        let move_time = limits[index(side)].move_time;
        let allowed = match (clocks.remaining(side), move_time) {
            (Some(remaining), Some(time)) => Some(remaining.min(time)),
            (remaining, time) => remaining.or(time),
        };
        let go = go(&limits[index(side)], &clocks);
        match engines[index(side)].best_move(&position(&game), &go, allowed, patience) {
            Err(NoReply::Stopped) => return None,
            Err(NoReply::Fault(fault)) => return Some(lost(game, side, fault)),
            Ok(EngineReply { best_move, elapsed }) => {
                let named = best_move.parse::<MoveText>().ok().filter(|named| named.side == side);
                if named.is_none_or(|named| game.play(named.pit).is_err()) {
                    return Some(lost(game, side, EngineFault::Illegal(best_move)));
                }
                clocks.spend(side, elapsed);
            }
        }
    }
}

/// Returns the result of a game that is over by the rules, decided, or too long.
fn finished(game: &Game) -> Option<FinishedGame> {
    let now = game.now();
    let (south, north) = (i16::from(now.seats.south_store), i16::from(now.seats.north_store));
    let all = south + north + now.board.stones() as i16;
    let (lead, reason) = if let Some(outcome) = game.outcome() {
        let reason = match outcome.end {
            GameEnd::CannotMove(side) => format!("{} cannot move", side_name(side)),
            GameEnd::Repeats { .. } => "the position is repeated".to_owned(),
        };
        (i16::from(outcome.lead), reason)
    } else if 2 * south.max(north) > all {
        (south - north, "more than half of the stones are captured".to_owned())
    } else if game.turns().len() >= MOVES_MAX {
        (south - north, format!("{MOVES_MAX} moves were played"))
    } else {
        return None;
    };
    let winner = match lead {
        0 => None,
        lead if lead > 0 => Some(Side::South),
        _ => Some(Side::North),
    };
    Some(FinishedGame { game: game.clone(), winner, lead, reason, fault: None })
}

/// Returns the result of a game that a side loses by a fault.
pub(super) fn lost(game: Game, side: Side, fault: EngineFault) -> FinishedGame {
    let seats = game.now().seats;
    let lead = i16::from(seats.south_store) - i16::from(seats.north_store);
    let reason = format!("{} {fault}", side_name(side));
    FinishedGame { game, winner: Some(side.other()), lead, reason, fault: Some((side, fault)) }
}

/// Returns the result of a recorded game, which ended for this reason; `None` if it did not.
pub(super) fn recorded(game: Game, reason: &str) -> Option<FinishedGame> {
    let fault_of = |side| {
        let fault = reason.strip_prefix(side_name(side))?.strip_prefix(' ')?;
        fault.parse().ok().map(|fault| (side, fault))
    };
    match [Side::South, Side::North].into_iter().find_map(fault_of) {
        Some((side, fault)) => Some(lost(game, side, fault)),
        None => finished(&game),
    }
}

/// Formats the command `position` for the current position, with all moves, so that the engine knows of repetitions.
pub(super) fn position(game: &Game) -> String {
    let start = game.start();
    let mut text = if start == Game::new(*game.rules()).start() {
        "position startpos".to_owned()
    } else {
        format!("position fen {}", start.text())
    };
    if !game.turns().is_empty() {
        text.push_str(" moves ");
    }
    for turn in game.turns() {
        let _ = write!(text, "{}", turn.text());
    }
    text
}

/// Formats the command `go` for a side with these limits.
fn go(limits: &MoveLimits, clocks: &MatchClocks) -> String {
    let mut text = "go".to_owned();
    if limits.clock.is_some() {
        for (side, time, increment) in [(Side::South, "wtime", "winc"), (Side::North, "btime", "binc")] {
            if let (Some(remaining), Some(control)) = (clocks.remaining(side), clocks.controls[index(side)]) {
                let (remaining, added) = (remaining.as_millis(), control.increment.as_millis());
                let _ = write!(text, " {time} {remaining} {increment} {added}");
            }
        }
    }
    if let Some(time) = limits.move_time {
        let _ = write!(text, " movetime {}", time.as_millis());
    }
    if let Some(nodes) = limits.nodes {
        let _ = write!(text, " nodes {nodes}");
    }
    if let Some(depth) = limits.depth {
        let _ = write!(text, " depth {depth}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::engine;
    use game::Rules;

    fn game(text: &str) -> Game {
        engine::position(Rules::AWARI, text).unwrap()
    }

    #[test]
    fn engines_receive_the_whole_game() {
        for text in ["startpos", "startpos moves FfBd", "fen 0-1-0-2-0-1-1-0-2-0-1-0-20-20-S moves Da"] {
            assert_eq!(position(&game(text)), format!("position {text}"));
        }
    }

    #[test]
    fn clocks_run() {
        let control = ClockControl { base: Duration::from_secs(10), increment: Duration::from_millis(100) };
        let clock = MoveLimits { clock: Some(control), move_time: None, nodes: None, depth: Some(7) };
        let mut clocks = MatchClocks::new(&[clock, clock]);
        clocks.spend(Side::North, Duration::from_millis(3100));
        assert_eq!(go(&clock, &clocks), "go wtime 10000 winc 100 btime 7000 binc 100 depth 7");
        clocks.spend(Side::South, Duration::from_secs(60));
        assert_eq!(clocks.remaining(Side::South), Some(Duration::from_millis(100)));
        // A side without a clock.
        let fixed = MoveLimits { clock: None, move_time: Some(Duration::from_millis(50)), nodes: Some(9), depth: None };
        let mut clocks = MatchClocks::new(&[clock, fixed]);
        clocks.spend(Side::North, Duration::from_secs(1));
        assert_eq!((clocks.remaining(Side::North), go(&fixed, &clocks).as_str()), (None, "go movetime 50 nodes 9"));
        assert_eq!(go(&clock, &clocks), "go wtime 10000 winc 100 depth 7");
    }

    #[test]
    fn games_end_by_the_rules() {
        assert!(finished(&game("startpos")).is_none());
        let ended = finished(&game("fen 0-0-0-0-0-0-1-1-0-0-0-1-20-25-S")).unwrap();
        assert_eq!((ended.winner, ended.lead), (Some(Side::North), -8));
        // South has 25 of 48 stones.
        let decided = finished(&game("fen 0-1-0-2-0-1-1-0-2-0-1-0-25-15-S")).unwrap();
        assert_eq!((decided.winner, decided.lead), (Some(Side::South), 10));
        assert!(finished(&game("fen 0-1-0-2-0-1-1-0-2-0-1-0-24-16-S")).is_none());
        let fault = lost(game("startpos moves F"), Side::North, EngineFault::Stall);
        assert_eq!((fault.winner, fault.reason.as_str()), (Some(Side::South), "North stalls"));
    }
}
