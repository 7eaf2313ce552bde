//! The lines `info` about a search.
//!
//! A score `cp` is an estimate, in hundredths of a stone. If it is equal to a proved bound, `lowerbound` or
//! `upperbound` follows; what is proved stands in lines of its own, `info string proved LOW HIGH`, in stones.

use game::Pit;
use game::notation::{MoveText, Side};
use search::{MoveEstimate, SearchReport};
use std::fmt::Write;

/// What is said of a search, without what was said before.
#[derive(Debug)]
pub(super) struct SearchInfo {
    side: Side,
    /// The number of moves to report.
    lines: usize,
    /// The last bounds that were reported, for each place.
    proved: Vec<Option<(i8, i8)>>,
    /// Depth, best move and estimate of the last report.
    last: Option<(u32, Option<Pit>, i32)>,
}

impl SearchInfo {
    pub(super) fn new(side: Side, lines: usize) -> SearchInfo {
        SearchInfo { side, lines, proved: vec![None; lines], last: None }
    }

    /// Formats a report, if it says something new.
    pub(super) fn text(&mut self, report: &SearchReport) -> String {
        let mut text = String::new();
        let now = (report.depth, report.moves.first().map(|searched| searched.pit), report.estimate);
        let is_new = self.last != Some(now);
        self.last = Some(now);
        for (place, searched) in report.moves.iter().take(self.lines).enumerate() {
            let bounds = if place == 0 { (report.low, report.high) } else { (searched.low, searched.high) };
            let estimate = if place == 0 { report.estimate } else { searched.estimate.hundredths() };
            let numbered = |before: &str, after: &str| match self.lines {
                1 => String::new(),
                _ => format!("{before}multipv {}{after}", place + 1),
            };
            if is_new {
                let is_most = matches!(searched.estimate, MoveEstimate::AtMost(_)) && place > 0;
                let score = score(estimate, bounds, is_most);
                let _ = write!(text, "info depth {}{} {score}", report.depth.max(1), numbered(" ", ""));
                let _ = write!(text, " nodes {} nps {}", report.nodes, nodes_a_second(report));
                let _ = write!(text, " hashfull {} tbhits {}", report.table_permille, report.probes);
                let _ = writeln!(text, " time {} pv {}", report.time.as_millis(), moves(&searched.line, self.side));
            }
            if self.proved[place] != Some(bounds) {
                self.proved[place] = Some(bounds);
                let _ = writeln!(text, "info string {}proved {} {}", numbered("", " "), bounds.0, bounds.1);
            }
        }
        text
    }
}

/// Formats a score: an estimate, and whether it is a bound.
fn score(estimate: i32, (low, high): (i8, i8), is_most: bool) -> String {
    let (low, high) = (i32::from(low) * 100, i32::from(high) * 100);
    let estimate = estimate.clamp(low, high);
    let bound = match estimate {
        _ if low == high => "",
        _ if is_most || estimate == high => " upperbound",
        _ if estimate == low => " lowerbound",
        _ => "",
    };
    format!("score cp {estimate}{bound}")
}

fn nodes_a_second(report: &SearchReport) -> u64 {
    let seconds = report.time.as_secs_f64();
    if seconds > 0.0 { (report.nodes as f64 / seconds) as u64 } else { 0 }
}

/// Formats moves without separators, as oware programs do: `FfBd`.
pub(super) fn moves(pits: &[Pit], side: Side) -> String {
    let mut mover = side;
    let mut text = String::new();
    for &pit in pits {
        let _ = write!(text, "{}", MoveText { pit, side: mover });
        mover = mover.other();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use search::SearchedMove;
    use std::time::Duration;

    fn report() -> SearchReport {
        let searched = |pit: usize, low, high, estimate| SearchedMove {
            pit: Pit::ALL[pit],
            captured: 0,
            low,
            high,
            estimate,
            line: vec![Pit::ALL[pit], Pit::ALL[0]],
        };
        SearchReport {
            low: -3,
            high: 7,
            estimate: 125,
            moves: vec![searched(5, -3, 7, MoveEstimate::About(125)), searched(1, -9, 1, MoveEstimate::AtMost(50))],
            depth: 9,
            nodes: 5000,
            probes: 12,
            time: Duration::from_millis(10),
            contradiction: None,
            table_permille: 3,
        }
    }

    #[test]
    fn a_report_is_said_once() {
        let mut info = SearchInfo::new(Side::North, 1);
        let line = "info depth 9 score cp 125 nodes 5000 nps 500000 hashfull 3 tbhits 12 time 10 pv fA\n";
        assert_eq!(info.text(&report()), format!("{line}info string proved -3 7\n"));
        assert_eq!(info.text(&report()), "");
        let deeper = SearchReport { depth: 10, ..report() };
        assert_eq!(info.text(&deeper), line.replace("depth 9", "depth 10"));
        let narrower = SearchReport { depth: 10, low: 0, ..report() };
        assert_eq!(info.text(&narrower), "info string proved 0 7\n");
    }

    #[test]
    fn several_lines_are_numbered() {
        let text = SearchInfo::new(Side::South, 6).text(&report());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[0].starts_with("info depth 9 multipv 1 score cp 125 nodes ") && lines[0].ends_with(" pv Fa"));
        assert_eq!(lines[1], "info string multipv 1 proved -3 7");
        assert!(lines[2].starts_with("info depth 9 multipv 2 score cp 50 upperbound nodes "), "{text}");
    }

    #[test]
    fn proved_scores_are_told_apart() {
        for (estimate, bounds, expected) in [
            (300, (3, 3), "score cp 300"),
            (300, (3, 9), "score cp 300 lowerbound"),
            (900, (3, 9), "score cp 900 upperbound"),
            (-2000, (3, 9), "score cp 300 lowerbound"),
            (450, (3, 9), "score cp 450"),
        ] {
            assert_eq!(score(estimate, bounds, false), expected);
        }
    }
}
