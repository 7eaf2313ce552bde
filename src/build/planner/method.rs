//! The methods that solve a database, and the classes of stages with a common cost model.

use game::Rules;
use std::str::FromStr;
use strum::EnumCount;

/// Algorithm that solves a database. All algorithms give the same scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, EnumCount, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Method {
    /// Counts of undecided children (Bal & Allis 1995).
    Counting,
    /// A byte a position, swept until nothing changes.
    Sweep,
    /// Bound after bound, two bits a position in memory (Romein & Bal 2002).
    TwoBit,
    /// Bound after bound, one bit a position in memory (Lincke 2002, section 2.4).
    OneBit,
    /// Bound after bound, a cache of bits in memory (Lincke 2002, section 2.5).
    OneBitDual,
}

/// Planes of a database that a bound method keeps in memory while it solves a bound. The others are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanesInMemory {
    /// A cache of wins.
    None,
    /// Wins, which are read at random places.
    Wins,
    /// Wins and candidates, which are read in order.
    WinsAndCandidates,
}

/// What stages and plans depend on, where methods differ.
struct MethodFacts {
    /// Whether `auto` may choose the method.
    is_chosen: bool,
    /// Why it cannot solve databases with two bounds a board.
    refusal: Option<&'static str>,
    /// The stages from captures to scores.
    stages: &'static [StageClass],
    /// For methods that solve bound after bound, through planes.
    planes: Option<PlanesInMemory>,
}

/// Of bound methods.
const ONE_SCORE: Option<&str> =
    Some("it decides each position at one score, and a board has two bounds by these rules");

/// A value for each method, in the order of [`Method::ALL`].
pub type ByMethod<T> = [T; Method::ALL.len()];

const _: () = assert!(Method::ALL.len() == Method::COUNT, "a method is missing");

impl Method {
    /// All methods.
    pub const ALL: [Method; 5] = [Method::Counting, Method::Sweep, Method::TwoBit, Method::OneBit, Method::OneBitDual];

    /// Returns the name in manifests.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Returns why the method cannot solve databases by some rules; `None` if it can.
    pub fn refusal(self, rules: &Rules) -> Option<&'static str> {
        if rules.has_scores() { None } else { self.facts().refusal }
    }

    /// Whether a plan may choose the method if the manifest names none.
    pub(crate) fn is_chosen(self) -> bool {
        self.facts().is_chosen
    }

    /// Whether the method solves bound after bound, through planes.
    pub fn has_bounds(self) -> bool {
        self.planes_in_memory().is_some()
    }

    /// Returns the planes in memory of a method that solves bound after bound.
    pub fn planes_in_memory(self) -> Option<PlanesInMemory> {
        self.facts().planes
    }

    /// Returns the method as one that makes all scores in one stage; `None` if it solves bound after bound.
    pub(crate) fn one_stage(self) -> Option<OneStage> {
        match *self.stages() {
            [StageClass::OneStage(method)] => Some(method),
            _ => None,
        }
    }

    /// Whether the stages of bounds count choices on the way: ranks in all storages, one machine only with
    /// all wins in memory.
    pub(crate) fn bounds_count_choices(self, ranks: usize) -> bool {
        self.planes_in_memory().is_some_and(|planes| ranks > 1 || planes.has_wins())
    }

    /// Returns the classes of the stages from captures to scores.
    pub fn stages(self) -> &'static [StageClass] {
        self.facts().stages
    }

    fn facts(self) -> MethodFacts {
        use StageClass::{
            Merge, Postprocess, PreprocessOneBit, PreprocessTwoBit, ProcessOneBit, ProcessOneBitDual, ProcessTwoBit,
            Seeds,
        };
        match self {
            Method::Counting => MethodFacts {
                // It needs as much memory as sweep, and more time.
                is_chosen: false,
                refusal: Some(
                    "a count of undecided moves ends at one score, and a board has two bounds by these rules",
                ),
                stages: &[StageClass::OneStage(OneStage::Counting)],
                planes: None,
            },
            Method::Sweep => MethodFacts {
                is_chosen: true,
                refusal: None,
                stages: &[StageClass::OneStage(OneStage::Sweep)],
                planes: None,
            },
            Method::TwoBit => MethodFacts {
                is_chosen: true,
                refusal: ONE_SCORE,
                stages: &[Seeds, PreprocessTwoBit, ProcessTwoBit, Postprocess, Merge],
                planes: Some(PlanesInMemory::WinsAndCandidates),
            },
            Method::OneBit => MethodFacts {
                is_chosen: true,
                refusal: ONE_SCORE,
                stages: &[Seeds, PreprocessOneBit, ProcessOneBit, Postprocess, Merge],
                planes: Some(PlanesInMemory::Wins),
            },
            Method::OneBitDual => MethodFacts {
                is_chosen: true,
                refusal: ONE_SCORE,
                stages: &[Seeds, PreprocessOneBit, ProcessOneBitDual, Postprocess, Merge],
                planes: Some(PlanesInMemory::None),
            },
        }
    }
}

impl PlanesInMemory {
    /// Returns how many bits of a position are in memory, besides the cache.
    pub fn bits(self) -> u64 {
        u64::from(self.has_wins()) + u64::from(self.has_candidates())
    }

    /// Whether the wins are in memory, not behind a cache.
    pub fn has_wins(self) -> bool {
        match self {
            PlanesInMemory::None => false,
            PlanesInMemory::Wins | PlanesInMemory::WinsAndCandidates => true,
        }
    }

    pub(crate) fn has_candidates(self) -> bool {
        match self {
            PlanesInMemory::None | PlanesInMemory::Wins => false,
            PlanesInMemory::WinsAndCandidates => true,
        }
    }

    /// Returns how many planes several ranks have on disk while they solve a bound: the wins so far,
    /// candidates, and the wins that each keeps. `kept_shares` is how many ranks keep a row of wins.
    pub(crate) fn on_disks_of_ranks(self, kept_shares: f64) -> f64 {
        let candidates = if self.has_candidates() { 0.0 } else { 1.0 };
        let kept_wins = if self.has_wins() { 0.0 } else { kept_shares };
        1.0 + candidates + kept_wins
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Method, String> {
        Method::ALL.into_iter().find(|method| method.word() == text).ok_or_else(|| format!("`{text}` is not a method"))
    }
}

/// A method that makes the scores of a database in one stage, with all captures and scores in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display, EnumCount)]
pub enum OneStage {
    /// `counting:n`.
    Counting,
    /// `sweep:n`.
    Sweep,
}

/// Stages of one kind of one database, for the bound methods of all bounds together. Costs differ by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display, EnumCount)]
pub enum StageClass {
    /// `capture:n`.
    Capture,
    /// Those of a method that makes all scores in one stage.
    #[strum(transparent)]
    OneStage(OneStage),
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
    pub const ALL: [StageClass; 14] = [
        StageClass::Capture,
        StageClass::OneStage(OneStage::Counting),
        StageClass::OneStage(OneStage::Sweep),
        StageClass::Seeds,
        StageClass::PreprocessTwoBit,
        StageClass::PreprocessOneBit,
        StageClass::ProcessTwoBit,
        StageClass::ProcessOneBit,
        StageClass::ProcessOneBitDual,
        StageClass::Postprocess,
        StageClass::Merge,
        StageClass::Verify,
        StageClass::Stats,
        StageClass::Evaluation,
    ];

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

    /// Returns its index in [`ALL`](Self::ALL).
    pub(crate) fn number(self) -> usize {
        StageClass::ALL.iter().position(|&class| class == self).expect("ALL has every class")
    }
}

const _: () = assert!(StageClass::ALL.len() == StageClass::COUNT - 1 + OneStage::COUNT, "a class is missing");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_the_order_of_their_types() {
        assert!(Method::ALL.iter().enumerate().all(|(at, &method)| method as usize == at));
        assert!(
            StageClass::ALL.is_sorted() && StageClass::ALL.iter().enumerate().all(|(at, class)| class.number() == at)
        );
        assert_eq!(
            [StageClass::OneStage(OneStage::Sweep), StageClass::Seeds].map(|class| class.to_string()),
            ["Sweep", "Seeds"]
        );
    }
}
