//! One case: a build, disturbed for a few runs, then finished.

use super::build::{Ended, artifacts};
use super::class::{FaultClass, FaultRound, Injection};
use super::conditions::Conditions;
use super::journal;
use super::journal::{DIRECTORY, RANK_SCRATCH};
use super::subject::Subject;
use disk::{MemoryDisk, Operation, is_leftover};
use pipeline::{Exit, PipelineError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A case to run.
pub(crate) struct FaultCase<'a> {
    pub(crate) seed: u64,
    pub(crate) class: FaultClass,
    pub(crate) number: u64,
    subject: &'a Subject,
    rounds: Vec<FaultRound>,
    /// Seed of the state of the disk after failures.
    chance: u64,
}

/// Outcome of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CaseOutcome {
    /// Injected faults.
    pub(crate) struck: u64,
    /// Runs that ended early.
    pub(crate) ended: u64,
    /// Stages that began and were not finished in the same run.
    pub(crate) begun_in_vain: u64,
    /// Stages that resumed from a snapshot.
    pub(crate) from_snapshots: u64,
    /// Runs that a request to stop ended.
    pub(crate) stopped: u64,
    /// Runs that ended because a rank was lost.
    pub(crate) lost_ranks: u64,
    /// Losses of power.
    pub(crate) power_lost: u64,
    /// Operations of the disk in all.
    pub(crate) operations: u64,
    /// The mistake, if there was one.
    pub(crate) wrong: Option<String>,
}

impl<'a> FaultCase<'a> {
    pub(crate) fn new(seed: u64, class: FaultClass, subjects: &'a [Subject], number: u64) -> FaultCase<'a> {
        let first = &subjects[0];
        let mut random = class.random(seed, first, number);
        let is_first = number < class.extent(first);
        let subject = if is_first { first } else { random.pick(subjects) };
        let at = if is_first { number } else { random.below(class.extent(subject)) };
        let rounds = class.rounds(subject, at, is_first, &mut random);
        FaultCase { seed, class, number, subject, rounds, chance: random.bits() }
    }

    pub(crate) fn method(&self) -> planner::Method {
        self.subject.method()
    }

    /// The command that runs just this one.
    pub(crate) fn again(&self) -> String {
        format!(
            "torture --kills 0 --seed {} --class {} --method {} --case {}",
            self.seed,
            self.class.names().0,
            self.method(),
            self.number
        )
    }

    pub(crate) fn run(&self) -> CaseOutcome {
        Trial::new(self.subject, self.chance).run(&self.rounds, &Conditions::default())
    }
}

/// A case under way.
pub(crate) struct Trial<'a> {
    subject: &'a Subject,
    disk: MemoryDisk,
    /// Stages that the journal must record as done.
    done: BTreeSet<String>,
    /// Stages that were done at some time.
    done_once: BTreeSet<String>,
    /// A sync that failed may have lost what a later one promised: then a loss of power may take records along.
    has_failed_syncs: bool,
    /// A run may have ended between a rename and the sync that makes the name durable.
    has_unsynced_names: bool,
    /// Whether every run so far had one rank: several ranks save fewer snapshots.
    is_alone: bool,
    outcome: CaseOutcome,
}

impl<'a> Trial<'a> {
    /// A trial on an empty disk; the seed determines its state after failures.
    pub(crate) fn new(subject: &'a Subject, seed: u64) -> Trial<'a> {
        let disk = MemoryDisk::new();
        disk.seed(seed);
        Trial {
            subject,
            disk,
            done: BTreeSet::new(),
            done_once: BTreeSet::new(),
            has_failed_syncs: false,
            has_unsynced_names: false,
            is_alone: true,
            outcome: CaseOutcome::default(),
        }
    }

    /// Runs the rounds, and then a last one to the end.
    pub(crate) fn run(mut self, rounds: &[FaultRound], last: &Conditions) -> CaseOutcome {
        if let Err(wrong) = self.all(rounds, last) {
            self.outcome.wrong = Some(format!("{wrong}\n  in {rounds:?}\n  and {last:?}"));
        }
        self.outcome.operations = self.disk.operations();
        self.outcome
    }

    fn all(&mut self, rounds: &[FaultRound], last: &Conditions) -> Result<(), String> {
        for (number, round) in rounds.iter().enumerate() {
            self.round(round).map_err(|wrong| format!("run {}: {wrong}", number + 1))?;
        }
        self.disk.make_room();
        let (ended, _) = self.watched(last).map_err(|wrong| format!("the last run: {wrong}"))?;
        match &ended.result {
            Ok(Ok(_)) if !ended.lost.is_empty() => return Err(format!("the last run is done, but {:?}", ended.lost)),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(format!("the last run, without faults, failed: {error}")),
            Err(panic) => return Err(format!("the last run panicked: {panic}")),
        }
        self.check_artifacts()?;
        if artifacts(&self.disk) != self.subject.kept {
            return Err("in the end there are other files than after an undisturbed build".to_owned());
        }
        let snapshots = Path::new(DIRECTORY).join("snapshots");
        // A power loss may restore removed scratch files of ranks; the next stage with such files removes them.
        let is_left = |path: &Path| path.starts_with(DIRECTORY) && is_leftover(path);
        let left: Vec<PathBuf> =
            self.disk.paths().into_iter().filter(|path| path.starts_with(&snapshots) || is_left(path)).collect();
        if !left.is_empty() {
            return Err(format!("in the end there are {left:?}"));
        }
        match self.subject.build().run(&self.disk) {
            Ok(summary) if summary.ran.is_empty() => {}
            Ok(summary) => {
                return Err(format!("after the end {} was run again: {}", summary.ran[0].stage, summary.ran[0].reason));
            }
            Err(error) => return Err(format!("a run with nothing to do failed: {error}")),
        }
        match self.subject.verification().run(&self.disk) {
            Ok(summary) => match summary.ran.iter().find(|ran| !ran.stage.to_string().starts_with("verify:")) {
                Some(ran) => Err(format!("to verify, {} was run: {}", ran.stage, ran.reason)),
                None => Ok(()),
            },
            Err(error) => Err(format!("the verification failed: {error}")),
        }
    }

    fn round(&mut self, round: &FaultRound) -> Result<(), String> {
        let struck_before = self.disk.injected_faults().len();
        let first_operation = self.disk.operations();
        for injection in &round.injections {
            injection.plan(&self.disk);
        }
        let has_death = round.injections.iter().any(Injection::is_death);
        let bound = first_operation + self.subject.operations_max(round.conditions.ranks);
        if !has_death {
            self.disk.die_at(bound);
        }
        let (ended, snapshots) = self.watched(&round.conditions)?;
        if !has_death && self.disk.operations() > bound {
            return Err(format!("no end after {} operations", bound - first_operation));
        }
        let strikes = self.disk.injected_faults().split_off(struck_before);
        self.has_failed_syncs |= strikes.iter().any(|strike| strike.operation == Operation::Sync);
        let died = round.injections.iter().any(|injection| match injection {
            Injection::Die(at) => self.disk.operations() > first_operation + at,
            _ => false,
        });
        let planned = round.injections.iter().filter(|injection| !injection.is_death()).count();
        let mut struck = strikes.len().min(planned) + usize::from(died);
        let is_stopped = ended.is_stopped();
        match &ended.result {
            Ok(Ok(_)) if is_stopped && round.conditions.stop.is_none() => {
                return Err("stopped, and nothing had asked for it".to_owned());
            }
            Ok(Ok(_)) => {}
            Ok(Err(error)) if died => drop(error.to_string()),
            Ok(Err(PipelineError::StageFailed { .. })) if round.conditions.loses_rank() => self.outcome.lost_ranks += 1,
            Ok(Err(error)) => {
                let mut paths: BTreeSet<PathBuf> = strikes.iter().map(|strike| strike.path.clone()).collect();
                if round.injections.iter().any(|injection| injection.takes_room()) || self.disk.is_limited() {
                    struck = struck.max(1);
                    // A full disk stops whatever is written next, in the run directory or beside it.
                    paths.extend([DIRECTORY, RANK_SCRATCH].map(PathBuf::from));
                }
                check_error(error, &paths)?;
            }
            Err(panic) => return Err(format!("panicked: {panic}")),
        }
        self.outcome.struck += struck as u64;
        self.outcome.ended += u64::from(is_stopped || !matches!(ended.result, Ok(Ok(_))));
        self.outcome.stopped += u64::from(is_stopped);
        self.outcome.power_lost += u64::from(round.end.loses_power());
        round.end.apply(&self.disk);
        if !self.has_failed_syncs && journal::read(&self.disk).damaged_bytes > 0 {
            return Err("the journal is damaged, and no sync had failed".to_owned());
        }
        self.subject.build().status(&self.disk).map_err(|error| format!("its status cannot be read: {error}"))?;
        if round.end.loses_power() && self.has_failed_syncs {
            self.done.clear();
        }
        self.check_artifacts()?;
        // A snapshot exists until its stage is done. (One whose name was never synced may be lost.)
        let now = self.snapshots();
        let may_go = round.end.loses_power() && self.has_unsynced_names;
        self.has_unsynced_names |= died || self.has_failed_syncs;
        let may_go = may_go || !self.is_alone;
        let is_over = |stage: &String| now.contains(stage) || self.is_over(stage);
        match snapshots.iter().find(|stage| !may_go && !is_over(stage)) {
            Some(stage) => Err(format!("the snapshot of {stage} is gone, and {stage} is not done")),
            None => Ok(()),
        }
    }

    /// Whether a stage was done at some time, or its outputs are there.
    fn is_over(&self, stage: &str) -> bool {
        self.done_once.contains(stage) || self.subject.build().is_made(stage, &self.disk)
    }

    /// Runs the build, and checks that no finished stage is repeated. Returns also the unfinished stages with
    /// snapshots.
    fn watched(&mut self, conditions: &Conditions) -> Result<(Ended, Vec<String>), String> {
        self.is_alone &= conditions.ranks == 1;
        let mut snapshots = self.snapshots();
        snapshots.retain(|stage| !self.is_over(stage));
        let ended = self.subject.build().run_watched(&self.disk, conditions);
        if let Some(wrong) = &ended.journal {
            return Err(wrong.clone());
        }
        if let Some(again) = ended.started.iter().find(|stage| self.done.contains(&stage.to_string())) {
            return Err(format!("{again} was done, and began again"));
        }
        for (stage, resumed) in &ended.done {
            let stage = stage.to_string();
            if !resumed && self.is_alone && snapshots.contains(&stage) {
                return Err(format!("{stage} had a snapshot, and began from nothing"));
            }
            self.outcome.from_snapshots += u64::from(*resumed);
            self.done_once.insert(stage.clone());
            self.done.insert(stage);
        }
        self.outcome.begun_in_vain += (ended.started.len() - ended.done.len()) as u64;
        Ok((ended, snapshots))
    }

    /// Files with their final names are complete.
    fn check_artifacts(&self) -> Result<(), String> {
        for (path, bytes) in artifacts(&self.disk) {
            match self.subject.made.get(&path) {
                Some(expected) if *expected == bytes => {}
                Some(expected) => {
                    return Err(format!(
                        "{} has {} bytes, not the {} it should",
                        path.display(),
                        bytes.len(),
                        expected.len()
                    ));
                }
                None => return Err(format!("{} is no file of this build", path.display())),
            }
        }
        Ok(())
    }

    /// The stages with a complete snapshot.
    fn snapshots(&self) -> Vec<String> {
        let folder = Path::new(DIRECTORY).join("snapshots");
        let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for path in self.disk.paths() {
            let inside = path.strip_prefix(&folder).ok().and_then(|path| path.to_str()?.split_once('/'));
            if let Some((stage, file)) = inside {
                files.entry(stage.replace('-', ":")).or_default().insert(file.to_owned());
            }
        }
        let is_whole = |files: &BTreeSet<String>| {
            let has = |name: &str| files.contains(name);
            // Of one rank.
            let solves = |file: &String| file == "part-0-of-1" || file.starts_with("counts-");
            has("fingerprint") && (files.iter().any(solves) || (has("wins") && has("candidates")))
        };
        files.into_iter().filter(|(_, files)| is_whole(files)).map(|(stage, _)| stage).collect()
    }
}

/// Checks that an error has the right class and names a file with a fault.
fn check_error(error: &PipelineError, struck: &BTreeSet<PathBuf>) -> Result<(), String> {
    let text = error.to_string();
    let exit = error.exit();
    let is_right = match error {
        PipelineError::Preflight(_) => exit == Exit::PreflightFailed,
        PipelineError::StageFailed { .. } | PipelineError::Journal(_) | PipelineError::Disk(_) => {
            exit == Exit::StageFailed
        }
        _ => false,
    };
    if !is_right {
        return Err(format!("ended with exit code {}: {text}", exit.code()));
    }
    if !struck.iter().any(|path| text.contains(&path.display().to_string())) {
        return Err(format!("the error names none of {struck:?}: {text}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::DiskError;
    use std::io;

    #[test]
    fn errors_name_the_faulty_file() {
        let error = |path: &str| {
            let source = io::ErrorKind::StorageFull.into();
            PipelineError::Disk(DiskError::from_io(Operation::Write, Path::new(path), source))
        };
        let struck = BTreeSet::from([PathBuf::from("run/databases/03.awari")]);
        assert!(check_error(&error("run/databases/03.awari"), &struck).is_ok());
        assert!(check_error(&error("run/journal"), &struck).is_err());
        let other = PipelineError::Locked { directory: "run/databases/03.awari".into(), holder: String::new() };
        assert!(check_error(&other, &struck).is_err());
    }
}
