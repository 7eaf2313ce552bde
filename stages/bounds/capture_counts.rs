//! What the stages of the bounds of a database count on the way, so that its statistics need not read its seeds again.
//!
//! No capture is a best move of a position that scores more than its best capture; where that is not so, they are equal. So
//! all positions with a capture decline it, except those whose best capture is what they score:
//!
//! * of positive scores those that a capture wins at the bound and nothing at higher ones, which `preprocess` finds;
//! * of negative scores those lost at the bound at which their capture made them candidates;
//! * of score 0 those that are no candidates, since a capture that scores 0 prevents any loss.

/// Counts of a database whose bounds were solved from the highest on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CaptureCounts {
    /// Positions without a capture.
    pub(crate) none: u64,
    /// Positions whose best capture is what they score.
    pub(crate) best: u64,
    /// Positions won or lost at the bounds so far.
    pub(crate) decided: u64,
}

impl CaptureCounts {
    /// Returns how many of all positions decline every capture, when all bounds are done. `open` of them are candidates that
    /// are neither won nor lost.
    pub(crate) fn declined(self, positions: u64, open: u64) -> u64 {
        let drawn_by_capture = positions - self.decided - open;
        positions - self.none - self.best - drawn_by_capture
    }
}
