//! The standing of stages in a plan, and the number of stages of each: one classification for every command.

use crate::plan::steps::{Plan, SettledReason};
use crate::stage::StageName;
use serde::Serialize;
use std::fmt;

/// The standing of a stage in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The stage runs.
    ToRun,
    /// Its outputs are up to date.
    UpToDate,
    /// It makes only intermediates, and no stage that runs reads them.
    NotNeeded,
    /// It would run, but comes after the last stage that was requested.
    NotRequested,
}

impl Standing {
    /// Every standing, in display order.
    pub const ALL: [Standing; 4] = [Standing::ToRun, Standing::UpToDate, Standing::NotNeeded, Standing::NotRequested];

    /// Returns the words of the standing.
    pub fn words(self) -> &'static str {
        match self {
            Standing::ToRun => "to run",
            Standing::UpToDate => "up to date",
            Standing::NotNeeded => "not needed",
            Standing::NotRequested => "not requested",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl From<SettledReason> for Standing {
    fn from(why: SettledReason) -> Standing {
        match why {
            SettledReason::Recorded | SettledReason::Adopted => Standing::UpToDate,
            SettledReason::NotNeeded => Standing::NotNeeded,
            SettledReason::NotRequested => Standing::NotRequested,
        }
    }
}

/// The number of stages of each standing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageCounts {
    /// Stages to run.
    pub to_run: usize,
    /// Stages that are up to date, adopted ones included.
    pub up_to_date: usize,
    /// Stages that are not needed.
    pub not_needed: usize,
    /// Stages that are not requested.
    pub not_requested: usize,
    /// Stages that are up to date because their outputs are adopted; part of `up_to_date`.
    pub adopted: usize,
}

impl StageCounts {
    /// Returns the number of stages of a standing.
    pub fn of(&self, standing: Standing) -> usize {
        match standing {
            Standing::ToRun => self.to_run,
            Standing::UpToDate => self.up_to_date,
            Standing::NotNeeded => self.not_needed,
            Standing::NotRequested => self.not_requested,
        }
    }

    /// Moves a stage of a standing to those that run.
    pub(crate) fn run(&mut self, standing: Standing) {
        let from = match standing {
            Standing::ToRun => return,
            Standing::UpToDate => &mut self.up_to_date,
            Standing::NotNeeded => &mut self.not_needed,
            Standing::NotRequested => &mut self.not_requested,
        };
        *from = from.saturating_sub(1);
        self.to_run += 1;
    }

    /// Returns the number of all stages.
    pub fn stages(&self) -> usize {
        Standing::ALL.iter().map(|standing| self.of(*standing)).sum()
    }
}

/// `12 to run, 38 up to date (2 adopted), 2 not needed`, without the zeros.
impl fmt::Display for StageCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for standing in Standing::ALL.into_iter().filter(|standing| self.of(*standing) > 0) {
            write!(f, "{separator}{} {standing}", self.of(standing))?;
            if standing == Standing::UpToDate && self.adopted > 0 {
                write!(f, " ({} adopted)", self.adopted)?;
            }
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("no stages") } else { Ok(()) }
    }
}

impl Plan {
    /// Counts the stages of each standing.
    pub fn stage_counts(&self) -> StageCounts {
        let count = |is: fn(SettledReason) -> bool| self.fresh.iter().filter(|settled| is(settled.why)).count();
        StageCounts {
            to_run: self.steps.len(),
            up_to_date: count(|why| Standing::from(why) == Standing::UpToDate),
            not_needed: count(|why| why == SettledReason::NotNeeded),
            not_requested: count(|why| why == SettledReason::NotRequested),
            adopted: count(|why| why == SettledReason::Adopted),
        }
    }

    /// Returns the standing of a stage.
    pub fn standing(&self, stage: &StageName) -> Standing {
        let settled = self.fresh.iter().find(|settled| settled.stage == *stage);
        settled.map_or(Standing::ToRun, |settled| settled.why.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_not_shown() {
        let check = |counts: StageCounts, text: &str| assert_eq!(counts.to_string(), text);
        check(StageCounts::default(), "no stages");
        check(StageCounts { to_run: 3, ..StageCounts::default() }, "3 to run");
        let counts = StageCounts { to_run: 1, up_to_date: 5, not_needed: 2, not_requested: 4, adopted: 3 };
        check(counts, "1 to run, 5 up to date (3 adopted), 2 not needed, 4 not requested");
        assert_eq!(counts.stages(), 12);
    }
}
