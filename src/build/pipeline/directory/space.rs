//! Disk space that a run directory already takes and that planned stages reuse.
//!
//! An interrupted stage continues in its files, and new files replace old ones. Sizes are allocated bytes, not lengths:
//! a file may have holes, or be preallocated.

use crate::artifact::{ArtifactKind, ArtifactName, Inspection};
use crate::directory::layout::snapshots_path;
use crate::directory::survey::Inspections;
use crate::graph::Graph;
use crate::stage::StageSpec;
use disk::{Disk, DiskError, is_leftover};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

/// The space taken in a run directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space {
    artifacts: BTreeMap<ArtifactName, u64>,
    /// By the file name of the stage.
    snapshots: BTreeMap<String, u64>,
    /// Temporary files that the next run removes before it starts.
    pub(crate) leftover_bytes: u64,
}

/// Depth of the search: folders of snapshots hold files, and a folder with files for each rank.
const DEPTH_MAX: u32 = 4;

impl Space {
    /// Measures a run directory; `folders` may hold temporary files of dead runs.
    pub(crate) fn survey<'p>(
        disk: &dyn Disk,
        directory: &Path,
        found: &Inspections,
        folders: impl IntoIterator<Item = &'p Path>,
    ) -> Result<Space, DiskError> {
        let mut space = Space::default();
        for (name, _) in found.iter().filter(|(_, found)| **found != Inspection::Absent) {
            space.artifacts.insert(name.clone(), disk.allocated_bytes(&name.below(directory))?);
        }
        for path in disk.list_directories(&snapshots_path(directory))? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            space.snapshots.insert(name, taken_below(disk, &path, DEPTH_MAX)?);
        }
        for folder in folders {
            for path in disk.list(folder)?.iter().filter(|path| is_leftover(path)) {
                space.leftover_bytes = space.leftover_bytes.saturating_add(disk.allocated_bytes(path)?);
            }
        }
        Ok(space)
    }

    /// Measures an artifact again.
    pub(crate) fn measure(&mut self, disk: &dyn Disk, directory: &Path, name: &ArtifactName) -> Result<(), DiskError> {
        self.artifacts.insert(name.clone(), disk.allocated_bytes(&name.below(directory))?);
        Ok(())
    }

    /// Returns the space with artifacts that a run removes before its next stage: as good as free.
    pub(crate) fn without(&self, names: &[ArtifactName]) -> Space {
        let mut space = self.clone();
        for name in names {
            let bytes = space.artifacts.remove(name).unwrap_or(0);
            space.leftover_bytes = space.leftover_bytes.saturating_add(bytes);
        }
        space
    }

    /// Drops the snapshots of a stage that is done.
    pub(crate) fn forget_snapshots(&mut self, stage: &StageSpec) {
        self.snapshots.remove(&stage.name.file_name());
    }

    /// Returns the bytes of an artifact.
    pub(crate) fn of(&self, name: &ArtifactName) -> u64 {
        self.artifacts.get(name).copied().unwrap_or(0)
    }

    /// Returns the bytes of the snapshots of a stage.
    pub(crate) fn of_snapshots(&self, stage: &StageSpec) -> u64 {
        if self.snapshots.is_empty() {
            return 0;
        }
        self.snapshots.get(&stage.name.file_name()).copied().unwrap_or(0)
    }

    /// Returns the bytes of the predicted disk space of a stage that its files already take.
    pub(crate) fn there(&self, stage: &StageSpec) -> u64 {
        let below = stage.folder.iter().flat_map(|folder| {
            let from = (Bound::Included(folder.as_str()), Bound::Unbounded);
            let is_below = move |name: &ArtifactName| name.as_str().starts_with(folder.as_str());
            self.artifacts.range::<str, _>(from).take_while(move |(name, _)| is_below(name))
        });
        below.map(|(_, bytes)| *bytes).fold(self.of_snapshots(stage), u64::saturating_add)
    }

    /// Returns the bytes that a stage frees when its outputs replace older files. Intermediates are excluded: the
    /// stages that need them count their space.
    pub(crate) fn replaced(&self, graph: &Graph, at: usize) -> u64 {
        let outputs = graph.outputs(at).filter(|output| output.kind != ArtifactKind::Intermediate);
        outputs.map(|output| self.of(&output.name)).fold(0, u64::saturating_add)
    }
}

/// Adds up the allocated bytes of the files below a directory.
fn taken_below(disk: &dyn Disk, directory: &Path, depth_max: u32) -> Result<u64, DiskError> {
    let mut bytes = 0u64;
    for path in disk.list(directory)? {
        bytes = bytes.saturating_add(disk.allocated_bytes(&path)?);
    }
    if depth_max > 0 {
        for path in disk.list_directories(directory)? {
            bytes = bytes.saturating_add(taken_below(disk, &path, depth_max - 1)?);
        }
    }
    Ok(bytes)
}
