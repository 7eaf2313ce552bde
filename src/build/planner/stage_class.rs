//! Classes of stages with a common cost model.

/// Stages of one kind of one database, for the bound methods of all bounds together. Costs differ by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::VariantArray)]
pub enum StageClass {
    /// `capture:n`.
    Capture,
    /// `counting:n`.
    Counting,
    /// `sweep:n`.
    Sweep,
    /// `seeds:n`.
    Seeds,
    /// `preprocess:n:b`, candidates in memory.
    PreprocessTwoBit,
    /// `preprocess:n:b`, candidates on disk.
    PreprocessOneBit,
    /// `process:n:b`, two-bit.
    ProcessTwoBit,
    /// `process:n:b`, one-bit.
    ProcessOneBit,
    /// `process:n:b`, one-bit-dual, but for its misses.
    ProcessOneBitDual,
    /// `postprocess:n:b`.
    Postprocess,
    /// `merge:n`.
    Merge,
    /// `verify:n`.
    Verify,
    /// `stats:n`.
    Stats,
    /// `evaluation:n`.
    Evaluation,
}

impl StageClass {
    /// All classes.
    pub const ALL: &[StageClass] = <StageClass as strum::VariantArray>::VARIANTS;

    /// Whether its stages are `process:n:b`.
    pub(crate) const fn is_process(self) -> bool {
        matches!(self, StageClass::ProcessTwoBit | StageClass::ProcessOneBit | StageClass::ProcessOneBitDual)
    }

    /// Whether nearly all of its traffic is with scratch files.
    pub(crate) const fn is_scratch(self) -> bool {
        self.is_process() || matches!(self, StageClass::PreprocessTwoBit | StageClass::PreprocessOneBit)
    }

    /// Whether a database has one stage of the class for each bound.
    pub(crate) const fn is_repeated(self) -> bool {
        self.is_scratch() || matches!(self, StageClass::Postprocess)
    }

    /// Whether the time per position grows because of cache misses: each update goes to a random position, and the
    /// cache holds a smaller share of them.
    pub(crate) const fn waits_for_memory(self) -> bool {
        matches!(self, StageClass::Counting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_the_order_of_their_numbers() {
        for (at, class) in StageClass::ALL.iter().enumerate() {
            assert_eq!(*class as usize, at, "rates are looked up by index");
        }
    }
}
