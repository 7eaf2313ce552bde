//! The summary of the opening book of a build.

use crate::text::quantity::grouped;
use pipeline::Counter;
use pipeline::journal::Measured;
use pipeline::status::Status;
use stages::{Phase, kinds};
use std::fmt;

/// What the book of a manifest knew when its last stage ended.
#[derive(Debug, PartialEq)]
pub(crate) struct BookSummary {
    positions: u64,
    expanded: u64,
    closed: u64,
    /// Lower bound, estimate and upper bound of the root, in stones.
    root: [f64; 3],
    /// The ply at which the second player, and the first, can leave the book for nothing.
    left_at: [Option<u64>; 2],
}

impl BookSummary {
    /// Makes the summary from the measured stages; `None` if no stage of a book is done.
    pub(crate) fn new(status: &Status) -> Option<BookSummary> {
        let done = status.stages.iter().filter(|stage| kinds::phase(&stage.stage) == Some(Phase::Book));
        let done = done.filter_map(|stage| stage.measured.as_ref());
        done.max_by_key(|measured| measured.report.positions).and_then(BookSummary::of)
    }

    fn of(measured: &Measured) -> Option<BookSummary> {
        let counter = |name: &str| measured.report.counters.get(name).copied().map(Counter::as_f64);
        let count = |name: &str| counter(name).map(|count| count as u64);
        Some(BookSummary {
            positions: measured.report.positions,
            expanded: count("expanded")?,
            closed: count("closed")?,
            root: [counter("root_at_least")?, counter("root_estimate")?, counter("root_at_most")?],
            left_at: [count("left_at_ply_by_second"), count("left_at_ply_by_first")],
        })
    }
}

impl fmt::Display for BookSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BookSummary { positions, expanded, closed, root: [low, estimate, high], left_at } = self;
        let share = *closed as f64 * 100.0 / (*positions).max(1) as f64;
        let (positions, expanded) = (grouped(*positions), grouped(*expanded));
        write!(f, "opening book: {positions} positions, {expanded} expanded, {share:.1} % closed; ")?;
        if low == high {
            return write!(f, "root {low}, proved");
        }
        let ply = |ply: Option<u64>| ply.map_or_else(|| "never".to_owned(), |ply| format!("at ply {ply}"));
        let [second, first] = left_at.map(ply);
        write!(
            f,
            "root {estimate} in {low}..{high}; left for nothing {second} by the second player, {first} by the first"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_have_bounds_or_a_value() {
        let open = BookSummary {
            positions: 10_007,
            expanded: 2_012,
            closed: 410,
            root: [-48.0, 0.35, 48.0],
            left_at: [Some(8), None],
        };
        assert_eq!(
            open.to_string(),
            "opening book: 10,007 positions, 2,012 expanded, 4.1 % closed; root 0.35 in -48..48; left for nothing at ply 8 by \
             the second player, never by the first"
        );
        let solved = BookSummary { root: [0.0; 3], ..open };
        assert!(solved.to_string().ends_with("4.1 % closed; root 0, proved"), "{solved}");
    }
}
