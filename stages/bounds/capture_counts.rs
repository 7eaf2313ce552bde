//! What the stages of the bounds of a database count on the way, so that its statistics need not read its seeds again.
//!
//! No capture is a best move of a position that scores more than its best capture; where that is not so, they
//! are equal. So all positions with a capture decline it, except those whose best capture is what they score:
//!
//! * of positive scores those that a capture wins at the bound and nothing at higher ones, which `preprocess` finds;
//! * of negative scores those lost at the bound at which their capture made them candidates;
//! * of score 0 those that are no candidates, since a capture that scores 0 prevents any loss.

use messaging::Communicator;
use solvers::ChoiceCounts;

/// Counts of a database whose bounds were solved from the highest on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CaptureCounts {
    without_capture: u64,
    best_captures: u64,
    decided: u64,
}

impl CaptureCounts {
    /// Adds positions without a capture.
    pub(crate) fn add_without_capture(&mut self, positions: u64) {
        self.without_capture += positions;
    }

    /// Adds positions whose best capture is what they score.
    pub(crate) fn add_best_captures(&mut self, positions: u64) {
        self.best_captures += positions;
    }

    /// Adds positions won or lost at a bound. Those lost may instead be left among the open ones of
    /// [`choice`](Self::choice).
    pub(crate) fn add_decided(&mut self, positions: u64) {
        self.decided += positions;
    }

    /// Returns the sums over the ranks of a job, and of another count of each; nothing if some rank has none.
    pub(crate) fn of_ranks(
        own: Option<(CaptureCounts, u64)>,
        communicator: &mut dyn Communicator,
    ) -> messaging::Result<Option<(CaptureCounts, u64)>> {
        let (CaptureCounts { without_capture, best_captures, decided }, other) = own.unwrap_or_default();
        let sums = communicator.sum(&[own.is_none().into(), without_capture, best_captures, decided, other])?;
        let [0, without_capture, best_captures, decided, other] = sums[..] else { return Ok(None) };
        Ok(Some((CaptureCounts { without_capture, best_captures, decided }, other)))
    }

    /// Returns the choices when all bounds are done, or nothing if the planes cannot be those of a game. `open` of all
    /// `positions` are candidates that are neither won nor lost, and `offered` have a choice.
    pub(crate) fn choice(self, positions: u64, open: u64, offered: u64) -> Option<ChoiceCounts> {
        let drawn_by_capture = positions.checked_sub(self.decided)?.checked_sub(open)?;
        let with_capture = positions.checked_sub(self.without_capture)?;
        let declined = with_capture.checked_sub(self.best_captures)?.checked_sub(drawn_by_capture)?;
        Some(ChoiceCounts { offered, declined })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging::{NetworkFaults, ThreadCommunicator};
    use std::thread;

    #[test]
    fn counts_are_known_only_if_all_ranks_have_them() {
        let counts = CaptureCounts { without_capture: 5, best_captures: 3, decided: 2 };
        for (has_none, expected) in [(3, Some((15, 9, 6, 21))), (1, None), (0, None)] {
            let rank = |(number, mut end): (usize, ThreadCommunicator)| {
                let own = (number != has_none).then_some((counts, 7));
                let sum = CaptureCounts::of_ranks(own, &mut end).unwrap();
                sum.map(|(total, other)| (total.without_capture, total.best_captures, total.decided, other))
            };
            thread::scope(|scope| {
                let ends = ThreadCommunicator::job(3, NetworkFaults::none()).into_iter().enumerate();
                let running: Vec<_> = ends.map(|end| scope.spawn(|| rank(end))).collect();
                running.into_iter().for_each(|rank| assert_eq!(rank.join().unwrap(), expected));
            });
        }
    }
}
