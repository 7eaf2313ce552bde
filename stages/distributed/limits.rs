//! Bounds on the numbers that messages between ranks may have.

/// Upper bound on the ranks of a job.
pub(crate) const RANKS_MAX: usize = 1 << 16;

/// Upper bound on the logical processors of a rank.
pub(crate) const PROCESSORS_MAX: usize = 1 << 16;
