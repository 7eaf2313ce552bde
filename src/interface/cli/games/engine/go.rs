//! The command `go`: what limits a search, and when its reply is due.

use super::time::{PlayerClock, ThinkingTime};
use game::notation::Side;
use search::SearchLimits;
use std::iter::Peekable;
use std::str::SplitWhitespace;
use std::time::Duration;

/// The time to think if nothing limits the search.
const TIME_DEFAULT: Duration = Duration::from_secs(1);

/// The largest depth of a search. Positions of many stones do not reach it in any time.
const DEPTH_MAX: u32 = 63;

/// A time to think that no program waits for: a day.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The parameters, which are never the number of another one.
const PARAMETERS: [&str; 10] =
    ["infinite", "ponder", "depth", "nodes", "movetime", "wtime", "btime", "winc", "binc", "movestogo"];

/// The parameters of `go`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GoCommand {
    depth: Option<u32>,
    nodes: Option<u64>,
    move_time: Option<Duration>,
    /// The remaining times of South (white) and North (black).
    remaining: [Option<Duration>; 2],
    /// The increments of South and North.
    increments: [Duration; 2],
    moves_to_go: Option<u32>,
    /// The reply is due at `stop`.
    pub(super) is_infinite: bool,
    /// The position is the expected one: the reply is due at `ponderhit` or `stop`.
    pub(super) is_ponder: bool,
}

impl GoCommand {
    /// Parses the parameters. What is not understood is skipped, with a remark.
    pub(super) fn parse(text: &str) -> (GoCommand, Vec<String>) {
        let mut go = GoCommand::default();
        let mut remarks = Vec::new();
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            match word {
                "infinite" => go.is_infinite = true,
                "ponder" => go.is_ponder = true,
                "depth" => {
                    go.depth =
                        number(word, &mut words, &mut remarks).map(|depth| depth.clamp(1, DEPTH_MAX.into()) as u32)
                }
                "nodes" => go.nodes = number(word, &mut words, &mut remarks).map(|nodes| nodes.max(1)),
                "movetime" => go.move_time = number(word, &mut words, &mut remarks).map(Duration::from_millis),
                "wtime" => go.remaining[0] = number(word, &mut words, &mut remarks).map(Duration::from_millis),
                "btime" => go.remaining[1] = number(word, &mut words, &mut remarks).map(Duration::from_millis),
                "winc" => go.increments[0] = Duration::from_millis(number(word, &mut words, &mut remarks).unwrap_or(0)),
                "binc" => go.increments[1] = Duration::from_millis(number(word, &mut words, &mut remarks).unwrap_or(0)),
                "movestogo" => {
                    let moves = number(word, &mut words, &mut remarks);
                    go.moves_to_go = moves.map(|moves| u32::try_from(moves).unwrap_or(u32::MAX));
                }
                _ => {
                    let word: String = word.chars().take(40).collect();
                    remarks.push(format!("go: {word} is not supported and was ignored"));
                }
            }
        }
        (go, remarks)
    }

    /// Returns the limits of a search for a side.
    pub(super) fn limits(&self, side: Side) -> SearchLimits {
        let GoCommand { depth, nodes, move_time, moves_to_go, .. } = *self;
        let mut limits = SearchLimits { depth, nodes, time: None, iteration_time: None };
        if self.is_infinite || self.is_ponder {
            return limits;
        }
        let player = usize::from(side == Side::North);
        let clock = self.remaining[player].map(|remaining| {
            PlayerClock { remaining, increment: self.increments[player], moves_to_go }.thinking_time()
        });
        if let Some(ThinkingTime { most, iteration }) = clock {
            (limits.time, limits.iteration_time) = (Some(most), Some(iteration));
        }
        if let Some(time) = move_time {
            limits.time = Some(limits.time.map_or(time, |most| most.min(time)));
        }
        if depth.is_none() && nodes.is_none() && limits.time.is_none() {
            limits.time = Some(TIME_DEFAULT);
        }
        limits
    }

    /// Whether the reply is due when the search ends, and not at another command.
    pub(super) fn is_due(&self) -> bool {
        !self.is_infinite && !self.is_ponder
    }

    /// Whether the search for a side ends by itself. A number that no search reaches is no limit.
    pub(super) fn has_end(&self, side: Side) -> bool {
        let SearchLimits { depth, nodes, time, .. } = self.limits(side);
        let is_limited = depth.is_some_and(|depth| depth < DEPTH_MAX)
            || nodes.is_some_and(|nodes| nodes < u64::MAX)
            || time.is_some_and(|time| time < TIME_MAX);
        is_limited && self.is_due()
    }

    /// Returns the same search with the clock running, after `ponderhit`.
    pub(super) fn after_hit(&self) -> GoCommand {
        GoCommand { is_ponder: false, ..self.clone() }
    }
}

/// Parses the number of a parameter. A negative one is 0, and one that is too large the largest.
fn number(name: &str, words: &mut Peekable<SplitWhitespace<'_>>, remarks: &mut Vec<String>) -> Option<u64> {
    let word = words.next_if(|word| !PARAMETERS.contains(word)).unwrap_or("");
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        let word: String = word.chars().take(40).collect();
        remarks.push(format!("go: expected a number after {name}, found \"{word}\""));
        return None;
    }
    if digits.len() < word.len() { Some(0) } else { Some(digits.parse().unwrap_or(u64::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> GoCommand {
        let (go, remarks) = GoCommand::parse(text);
        assert_eq!(remarks, Vec::<String>::new());
        go
    }

    #[test]
    fn parameters_limit_the_search() {
        let limits = |text: &str| parsed(text).limits(Side::South);
        let seconds = |number| Some(Duration::from_secs(number));
        assert_eq!(limits(""), SearchLimits { time: seconds(1), ..SearchLimits::default() });
        let depth = SearchLimits { depth: Some(9), ..SearchLimits::default() };
        assert_eq!(limits("depth 9"), depth);
        assert_eq!(limits("depth 9 movetime 2000"), SearchLimits { time: seconds(2), ..depth });
        assert_eq!(limits("nodes 5000 infinite").time, None);
        assert_eq!(limits("nodes 5000").nodes, Some(5000));
        let clocks = parsed("wtime 60000 btime 1000 winc 0 binc 500 movestogo 40");
        let (south, north) = (clocks.limits(Side::South), clocks.limits(Side::North));
        assert!(south.time > north.time && south.iteration_time < south.time, "{south:?} {north:?}");
        assert!(limits("wtime 60000 movetime 10").time == Some(Duration::from_millis(10)));
        // The clock of the other side says nothing.
        assert_eq!(parsed("btime 5").limits(Side::South).time, seconds(1));
    }

    #[test]
    fn pondering_has_no_limit_until_the_hit() {
        let go = parsed("ponder wtime 1000 btime 1000");
        assert_eq!(go.limits(Side::North).time, None);
        assert!(go.after_hit().limits(Side::North).time.is_some());
    }

    #[test]
    fn numbers_that_no_search_reaches_are_no_limits() {
        let huge = "99999999999999999999";
        for text in ["depth 63", "nodes H", "movetime H", "wtime H", "depth H nodes H movetime H", "infinite depth 3"] {
            assert!(!parsed(&text.replace('H', huge)).has_end(Side::South), "{text}");
        }
        for text in ["", "depth 62", "depth H nodes 5", "movetime 60000 depth H", "wtime H btime 5 depth 1", "wtime -H"]
        {
            assert!(parsed(&text.replace('H', huge)).has_end(Side::South), "{text}");
        }
        let pondering = parsed("ponder movetime 5");
        assert!(!pondering.has_end(Side::South) && pondering.after_hit().has_end(Side::South));
    }

    #[test]
    fn hostile_parameters_are_answered_with_remarks() {
        for text in ["depth", "depth x", "wtime 1e3", "nodes +5", "movetime --1", "searchmoves A", "mate 3"] {
            let (_, remarks) = GoCommand::parse(text);
            assert!(!remarks.is_empty(), "{text}");
        }
        // A missing number does not swallow the next parameter.
        let (go, remarks) = GoCommand::parse("wtime btime 1000 depth infinite");
        assert_eq!((remarks.len(), go.remaining[1], go.is_infinite), (2, Some(Duration::from_secs(1)), true));
        let (go, remarks) = GoCommand::parse("movetime -5 depth 99999999999999999999 movestogo 99999999999 wtime -1");
        assert!(remarks.is_empty());
        let limits = go.limits(Side::South);
        assert_eq!((limits.depth, limits.time), (Some(63), Some(Duration::ZERO)));
    }
}
