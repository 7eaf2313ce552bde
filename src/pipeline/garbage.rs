//! Garbage: what in a run directory nothing needs any more.
//!
//! A run removes by itself what it no longer needs. What it cannot know about is left: what a manifest that was changed
//! since no longer asks for, what is kept because the manifest says so, snapshots of stages that another method has
//! made needless. Files that neither the manifest nor the journal knows are told of and never touched.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use disk::{Disk, is_leftover};
use serde::Serialize;

use crate::artifact::{ArtifactName, Found};
use crate::directory::{journal_path, snapshots_path, unusable};
use crate::error::PipelineError;
use crate::journal::Contents;
use crate::orchestrator::{Orchestrator, survey};
use crate::plan::{Keep, PlanOptions, Why, plan};
use crate::record::Record;
use crate::state::State;

/// Why something is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needless {
    /// A dead run has not finished writing it.
    Leftover,
    /// It is saved work of a stage that is done, or of another result.
    Snapshot,
    /// It is an intermediate that nothing will read, and the manifest does not ask to keep it.
    Unread,
    /// It is an intermediate that nothing will read. The manifest asks to keep it: the next run makes it again.
    Kept,
    /// The manifest no longer asks for it.
    Unasked,
}

/// Something that could be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// The file, or the directory of a snapshot.
    pub path: PathBuf,
    /// Its length, or that of the files in it.
    pub bytes: u64,
    /// Why it is not needed.
    pub why: Needless,
    /// The artifact that it is, if it is one.
    pub artifact: Option<ArtifactName>,
}

/// What could be removed from a run directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// What nothing needs, by reason and path.
    pub items: Vec<Item>,
    /// Files that nobody knows. Never removed.
    pub strange: Vec<PathBuf>,
}

impl Orchestrator<'_> {
    /// What could be removed. Writes nothing and takes no lock.
    ///
    /// # Errors
    /// As [`Orchestrator::plan`].
    pub fn garbage(&self) -> Result<Garbage, PipelineError> {
        let journal = Contents::read(self.disk, &journal_path(&self.directory))?;
        self.collect(&State::replay(&journal.entries))
    }

    /// Removes what is needless for one of the reasons given, and returns it.
    ///
    /// # Errors
    /// [`PipelineError::Locked`] while a run goes on; what the operating system says.
    pub fn remove_garbage(&self, reasons: &BTreeSet<Needless>) -> Result<Vec<Item>, PipelineError> {
        let mut directory = self.open()?;
        let journal = directory.journal();
        let mut items = self.collect(journal.state())?.items;
        items.retain(|item| reasons.contains(&item.why));
        // First the record: what is recorded as removed and still there is found again, not the other way round.
        let artifacts: Vec<ArtifactName> = items.iter().filter_map(|item| item.artifact.clone()).collect();
        if !artifacts.is_empty() {
            journal.append(Record::Removed { artifacts })?;
        }
        for item in &items {
            match item.why {
                Needless::Snapshot => self.disk.remove_dir_all(&item.path)?,
                _ => self.disk.remove(&item.path)?,
            }
        }
        Ok(items)
    }

    fn collect(&self, state: &State) -> Result<Garbage, PipelineError> {
        let graph = self.work.graph();
        let unusable = |source| unusable(&self.directory, source);
        let found = survey(self.disk, &self.directory, self.work)?;
        let options = PlanOptions { keep: Keep::Targets, ..PlanOptions::default() };
        let plan = plan(graph, state, &found, &options)?;
        let mut garbage = Garbage::default();
        let mut put = |path: PathBuf, bytes, why, artifact| garbage.items.push(Item { path, bytes, why, artifact });

        let why = if self.options.keep == Keep::All { Needless::Kept } else { Needless::Unread };
        for name in &plan.removable {
            let path = name.below(&self.directory);
            let bytes = self.disk.bytes(&path)?.unwrap_or(0);
            put(path, bytes, why, Some(name.clone()));
        }
        for (name, built) in state.artifacts() {
            let path = name.below(&self.directory);
            if graph.artifact(name).is_none()
                && !built.removed
                && let Some(bytes) = self.disk.bytes(&path)?
            {
                put(path, bytes, Needless::Unasked, Some(name.clone()));
            }
        }
        for settled in plan.fresh.iter().filter(|settled| settled.why != Why::NotRequested) {
            let path = snapshots_path(&self.directory).join(settled.stage.file_name());
            let files = self.disk.list(&path).map_err(unusable)?;
            if !files.is_empty() {
                put(path, length(self.disk, &files), Needless::Snapshot, None);
            }
        }
        let known = |path: &Path| {
            let name = path.strip_prefix(&self.directory).ok().and_then(|path| path.to_str());
            let name = name.and_then(|name| ArtifactName::new(name).ok());
            name.is_some_and(|name| {
                found.get(&name).is_some_and(|found| *found != Found::Absent) || state.built(&name).is_some()
            })
        };
        let mut strange = Vec::new();
        for directory in self.directories() {
            for path in self.disk.list(&directory).map_err(unusable)? {
                if is_leftover(&path) {
                    let bytes = self.disk.bytes(&path).ok().flatten().unwrap_or(0);
                    put(path, bytes, Needless::Leftover, None);
                } else if directory != self.directory && !known(&path) {
                    strange.push(path);
                }
            }
        }
        garbage.strange = strange;
        garbage.items.sort_by(|a, b| (a.why, &a.path).cmp(&(b.why, &b.path)));
        Ok(garbage)
    }
}

/// The length of files together.
fn length(disk: &dyn Disk, files: &[PathBuf]) -> u64 {
    files.iter().filter_map(|path| disk.bytes(path).ok().flatten()).sum()
}
