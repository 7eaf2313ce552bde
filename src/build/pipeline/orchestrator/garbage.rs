//! Garbage collection of the unneeded files of a run directory.
//!
//! A run removes its intermediates once no stage needs them. It leaves files that only a previous manifest requested,
//! files that the manifest asks to keep, snapshots of stages of another method, and files that were published but never
//! recorded. Garbage collection classifies every file of the directory as needed, as garbage with a reason, or as
//! strange: strange files are identified by neither manifest, journal nor header, and are listed but never removed.

use crate::artifact::ArtifactName;
use crate::directory::{
    heartbeat_path, is_leftover_of, journal_path, manifest_path, snapshots_path, stop_path, survey,
};
use crate::error::{Result, unusable};
use crate::journal::{Contents, JournalState, Record};
use crate::orchestrator::Orchestrator;
use crate::plan::{Keep, Plan, PlanOptions, SettledReason, SettledStage};
use crate::planning::plan;
use crate::snapshots::is_snapshots;
use crate::status::holder;
use disk::{Disk, DiskError, is_leftover};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Why a file is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GarbageReason {
    /// It is an unfinished file of a dead run.
    Leftover,
    /// It is a snapshot of a stage that is done, or of another result.
    Snapshot,
    /// It is an intermediate that no stage will read, and the manifest does not keep it.
    Unread,
    /// It is an intermediate that no stage will read. The manifest keeps it, so the next run would rebuild it.
    Kept,
    /// The manifest does not request it.
    Unasked,
}

/// A file or folder of snapshots that could be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GarbageItem {
    /// The file, or the folder of snapshots.
    #[serde(serialize_with = "crate::path_text::one")]
    pub path: PathBuf,
    /// Its length, or the total length of its files.
    pub bytes: u64,
    /// Why it is not needed.
    pub why: GarbageReason,
    /// The artifact, if it is one.
    pub artifact: Option<ArtifactName>,
}

/// The garbage of a run directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// Files that nothing needs, by reason and path.
    pub items: Vec<GarbageItem>,
    /// Files that neither manifest, journal nor header identify. Never removed.
    #[serde(serialize_with = "crate::path_text::many")]
    pub strange: Vec<PathBuf>,
    /// The holder of the lock, if a command is active: its temporary files and snapshots are not listed.
    pub holder: Option<String>,
}

impl Orchestrator<'_> {
    /// Lists the garbage. Writes nothing and takes no lock.
    pub fn garbage(&self) -> Result<Garbage> {
        let holder = holder(self.disk, &self.directory);
        let journal = Contents::read(self.disk, &journal_path(&self.directory))?;
        let mut garbage = self.collect(&JournalState::replay(&journal.entries))?;
        if holder.is_some() {
            let is_in_use = |item: &GarbageItem| matches!(item.why, GarbageReason::Leftover | GarbageReason::Snapshot);
            garbage.items.retain(|item| !is_in_use(item));
        }
        Ok(Garbage { holder, ..garbage })
    }

    /// Removes garbage of the given reasons, and returns it.
    ///
    /// # Errors
    /// [`PipelineError::Locked`](crate::PipelineError::Locked) while a run is active; if the operating system fails.
    pub fn remove_garbage(&self, reasons: &BTreeSet<GarbageReason>) -> Result<Vec<GarbageItem>> {
        let mut directory = self.open()?;
        let journal = directory.journal();
        let mut items = self.collect(journal.state())?.items;
        items.retain(|item| reasons.contains(&item.why));
        // The record comes first: a file that is recorded as removed but still exists is found again.
        let artifacts: Vec<ArtifactName> = items.iter().filter_map(|item| item.artifact.clone()).collect();
        if !artifacts.is_empty() {
            journal.append(Record::Removed { artifacts })?;
        }
        for item in &items {
            match item.why {
                GarbageReason::Snapshot => self.disk.remove_dir_all(&item.path)?,
                _ => self.disk.remove(&item.path)?,
            }
        }
        Ok(items)
    }

    fn collect(&self, state: &JournalState) -> Result<Garbage> {
        let found = survey(self.disk, &self.directory, self.work)?;
        let options = PlanOptions { keep: Keep::Targets, ..PlanOptions::default() };
        let plan = plan(self.work.graph(), state, &found, &options)?;
        let mut garbage = Garbage::default();
        self.collect_artifacts(state, &plan, &mut garbage)?;
        self.collect_snapshots(&plan, &mut garbage)?;
        self.collect_files(state, &mut garbage)?;
        garbage.items.sort_by(|a, b| (a.why, &a.path).cmp(&(b.why, &b.path)));
        Ok(garbage)
    }

    /// Collects artifacts that no stage reads any more, or that no manifest asks for.
    fn collect_artifacts(&self, state: &JournalState, plan: &Plan, garbage: &mut Garbage) -> Result<()> {
        let why = if self.options.keep == Keep::All { GarbageReason::Kept } else { GarbageReason::Unread };
        for name in &plan.removable {
            let path = name.below(&self.directory);
            let bytes = self.disk.bytes(&path)?.unwrap_or(0);
            garbage.items.push(GarbageItem { path, bytes, why, artifact: Some(name.clone()) });
        }
        for (name, built) in state.artifacts() {
            let path = name.below(&self.directory);
            if self.work.graph().artifact(name).is_none()
                && !built.removed
                && let Some(bytes) = self.disk.bytes(&path)?
            {
                let (why, artifact) = (GarbageReason::Unasked, Some(name.clone()));
                garbage.items.push(GarbageItem { path, bytes, why, artifact });
            }
        }
        Ok(())
    }

    /// Collects snapshots that no stage will resume from.
    fn collect_snapshots(&self, plan: &Plan, garbage: &mut Garbage) -> Result<()> {
        let unusable = |source| unusable(&self.directory, source);
        let is_settled = |settled: &&SettledStage| settled.why != SettledReason::NotRequested;
        let settled: BTreeSet<_> =
            plan.fresh.iter().filter(is_settled).map(|settled| settled.stage.file_name()).collect();
        let stages: BTreeSet<_> = self.work.graph().stages().iter().map(|stage| stage.name.file_name()).collect();
        for path in self.disk.list_directories(&snapshots_path(&self.directory)).map_err(unusable)? {
            let files = files_below(self.disk, &path, DEPTH_MAX).map_err(unusable)?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let is_ours = stages.contains(&name) || is_snapshots(self.disk, &path).map_err(unusable)?;
            if stages.contains(&name) && !settled.contains(&name) {
                // The stage will resume from its snapshots, but not from unfinished ones.
                let leftovers = files.into_iter().filter(|path| is_leftover(path));
                leftovers.for_each(|path| self.put_file(garbage, path, GarbageReason::Leftover));
            } else if is_ours && !files.is_empty() {
                self.put_snapshots(garbage, path, &files);
            } else {
                garbage.strange.extend(files);
            }
        }
        let local = self.work.local_snapshots(self.disk, &self.directory);
        if let Some(path) = local.filter(|_| plan.steps.is_empty()) {
            let files = files_below(self.disk, &path, DEPTH_MAX).map_err(unusable)?;
            if !files.is_empty() && is_snapshots(self.disk, &path).map_err(unusable)? {
                self.put_snapshots(garbage, path, &files);
            }
        }
        Ok(())
    }

    /// Collects the other files of the directory: leftovers, files that no manifest asks for, and strange ones.
    fn collect_files(&self, state: &JournalState, garbage: &mut Garbage) -> Result<()> {
        let unusable = |source| unusable(&self.directory, source);
        let name_of = |path: &Path| {
            let name = path.strip_prefix(&self.directory).ok().and_then(Path::to_str);
            name.and_then(|name| ArtifactName::new(name).ok())
        };
        let is_known = |name: &ArtifactName| {
            // A run may have published an artifact of the graph since the survey.
            self.work.is_kept(name) || self.work.graph().artifact(name).is_some() || state.built(name).is_some()
        };
        let mut folders = self.directories();
        folders.extend(self.work.folders().iter().map(|folder| self.directory.join(folder)));
        folders.remove(&self.directory);
        let mut files = BTreeSet::new();
        for folder in &folders {
            files.extend(files_below(self.disk, folder, DEPTH_MAX).map_err(unusable)?);
        }
        // Snapshots are folders.
        for folder in [self.directory.clone(), self.directory.join(LOGS), snapshots_path(&self.directory)] {
            files.extend(self.disk.list(&folder).map_err(unusable)?);
        }
        for path in files {
            let name = name_of(&path);
            let is_of_runs = path.starts_with(self.directory.join(LOGS)) || is_of_run(&self.directory, &path);
            if is_leftover_of(&self.directory, &path, self.work) {
                self.put_file(garbage, path, GarbageReason::Leftover);
            } else if !is_of_runs && !name.as_ref().is_some_and(is_known) {
                match name {
                    Some(name) if self.work.recognises(self.disk, &path, &name).map_err(unusable)? => {
                        self.put_file(garbage, path, GarbageReason::Unasked);
                    }
                    _ => garbage.strange.push(path),
                }
            }
        }
        let local = self.work.local_snapshots(self.disk, &self.directory);
        let is_known = |path: &PathBuf| {
            let holds = |folder: &PathBuf| folder.starts_with(path);
            let is_ours = [LOGS, SNAPSHOTS].iter().any(|name| path.ends_with(name));
            is_ours || folders.iter().any(holds) || local.as_ref().is_some_and(holds)
        };
        let directories = self.disk.list_directories(&self.directory).map_err(unusable)?;
        garbage.strange.extend(directories.into_iter().filter(|path| !is_known(path)));
        Ok(())
    }

    fn put_file(&self, garbage: &mut Garbage, path: PathBuf, why: GarbageReason) {
        let bytes = length(self.disk, std::slice::from_ref(&path));
        garbage.items.push(GarbageItem { path, bytes, why, artifact: None });
    }

    fn put_snapshots(&self, garbage: &mut Garbage, path: PathBuf, files: &[PathBuf]) {
        let (bytes, why) = (length(self.disk, files), GarbageReason::Snapshot);
        garbage.items.push(GarbageItem { path, bytes, why, artifact: None });
    }
}

/// The depth of folders: `snapshots/STAGE/` and `planes/NN/` hold files.
const DEPTH_MAX: u32 = 4;

/// The folder of logs, which are never garbage.
const LOGS: &str = "logs";

/// The folder of snapshots.
const SNAPSHOTS: &str = "snapshots";

/// Whether a file at the top of a run directory belongs to runs.
fn is_of_run(directory: &Path, path: &Path) -> bool {
    let own = [journal_path(directory), manifest_path(directory), heartbeat_path(directory), stop_path(directory)];
    own.iter().any(|own| own == path) || path == directory.join("lock")
}

/// Lists the files below a directory.
fn files_below(disk: &dyn Disk, directory: &Path, depth_max: u32) -> Result<Vec<PathBuf>, DiskError> {
    let mut files = disk.list(directory)?;
    if depth_max > 0 {
        for path in disk.list_directories(directory)? {
            files.extend(files_below(disk, &path, depth_max - 1)?);
        }
    }
    Ok(files)
}

/// Adds up the lengths of files.
fn length(disk: &dyn Disk, files: &[PathBuf]) -> u64 {
    files.iter().filter_map(|path| disk.bytes(path).ok().flatten()).sum()
}
