//! Classes of stages with a common cost model.

use crate::Method;

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

    /// Returns the class of the stages of a kind, for a database that is solved by a method.
    pub fn of(kind: &str, method: Method) -> Option<StageClass> {
        Some(match (kind, method) {
            ("capture", _) => StageClass::Capture,
            ("counting", _) => StageClass::Counting,
            ("sweep", _) => StageClass::Sweep,
            ("seeds", _) => StageClass::Seeds,
            ("preprocess", Method::TwoBit) => StageClass::PreprocessTwoBit,
            ("preprocess", _) => StageClass::PreprocessOneBit,
            ("process", Method::TwoBit) => StageClass::ProcessTwoBit,
            ("process", Method::OneBit) => StageClass::ProcessOneBit,
            ("process", _) => StageClass::ProcessOneBitDual,
            ("postprocess", _) => StageClass::Postprocess,
            ("merge", _) => StageClass::Merge,
            ("verify", _) => StageClass::Verify,
            ("stats", _) => StageClass::Stats,
            ("evaluation", _) => StageClass::Evaluation,
            _ => return None,
        })
    }

    /// Whether nearly all of its traffic is with scratch files.
    pub(crate) const fn is_scratch(self) -> bool {
        matches!(
            self,
            StageClass::PreprocessTwoBit
                | StageClass::PreprocessOneBit
                | StageClass::ProcessTwoBit
                | StageClass::ProcessOneBit
                | StageClass::ProcessOneBitDual
        )
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

    /// Returns the classes of stages from captures to scores.
    pub fn solving(method: Method) -> &'static [StageClass] {
        match method {
            Method::Counting => &[StageClass::Counting],
            Method::Sweep => &[StageClass::Sweep],
            Method::TwoBit => &[
                StageClass::Seeds,
                StageClass::PreprocessTwoBit,
                StageClass::ProcessTwoBit,
                StageClass::Postprocess,
                StageClass::Merge,
            ],
            Method::OneBit => &[
                StageClass::Seeds,
                StageClass::PreprocessOneBit,
                StageClass::ProcessOneBit,
                StageClass::Postprocess,
                StageClass::Merge,
            ],
            Method::OneBitDual => &[
                StageClass::Seeds,
                StageClass::PreprocessOneBit,
                StageClass::ProcessOneBitDual,
                StageClass::Postprocess,
                StageClass::Merge,
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_methods_determine_classes() {
        for (at, class) in StageClass::ALL.iter().enumerate() {
            assert_eq!(*class as usize, at, "rates are looked up by index");
        }
        for method in Method::ALL {
            let kinds = ["seeds", "preprocess", "process", "postprocess", "merge"];
            let kinds = if method.has_bounds() { &kinds[..] } else { &[method.word()] };
            let classes: Vec<_> = kinds.iter().map(|kind| StageClass::of(kind, method).unwrap()).collect();
            assert_eq!(classes, StageClass::solving(method));
        }
        assert_eq!(StageClass::of("cook", Method::Sweep), None);
    }
}
