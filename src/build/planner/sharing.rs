//! How ranks share the work of a class of stages.

use crate::method::StageClass;

/// What several ranks compute and exchange while they solve a database in one stage.
#[derive(Clone, Copy)]
pub(crate) enum RankModel {
    /// What a [`SweepJob`](crate::SweepJob) predicts.
    Sweep,
    /// Messages at random: their number follows from the positions.
    Messages {
        sharing: Sharing,
        /// Bytes sent for each position whose parents are of other ranks.
        sent_bytes: f64,
        /// Supersteps of each bound.
        supersteps: f64,
    },
}

/// How the work of a class of stages is shared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    /// Additional work with each doubling of the ranks, as a share of that of one machine.
    pub(crate) more_work: f64,
    /// Nanoseconds for a byte sent, of sender and receiver together.
    pub(crate) byte_nanoseconds: f64,
    /// Excess of the busiest rank over the mean, if there are several, in a stage: a vote ends each.
    pub(crate) uneven: f64,
    /// The same of the rank that sends the most.
    pub(crate) unevenly_sent: f64,
}

impl Sharing {
    /// Returns how the work of a class is shared: what was measured with 4 ranks at 20 stones and 8 ranks at 20,
    /// 23, 24 and 28, by two-bit.
    pub(crate) const fn of(class: StageClass) -> Sharing {
        let (more_work, byte_nanoseconds, uneven, unevenly_sent) = match class {
            // Smaller databases are read more often the more stripes there are, which the load of one
            // machine has already.
            StageClass::Capture => (0.0, 4.0, 0.18, 0.9),
            StageClass::OneStage(method) => match method.model().ranks {
                RankModel::Sweep => (0.0, 0.0, 0.0, 0.0),
                RankModel::Messages { sharing, .. } => return sharing,
            },
            StageClass::Seeds => (0.2, 4.0, 0.15, 0.5),
            StageClass::PreprocessTwoBit | StageClass::PreprocessOneBit => (0.0, 4.0, 0.33, 1.0),
            StageClass::ProcessTwoBit | StageClass::ProcessOneBit | StageClass::ProcessOneBitDual => {
                (0.4, 5.0, 0.22, 0.46)
            }
            StageClass::Postprocess => (0.4, 4.0, 0.45, 1.0),
            StageClass::Merge => (0.12, 4.0, 0.08, 0.7),
            StageClass::Verify | StageClass::Stats | StageClass::Evaluation => (0.0, 4.0, 0.08, 0.5),
        };
        Sharing { more_work, byte_nanoseconds, uneven, unevenly_sent }
    }
}
