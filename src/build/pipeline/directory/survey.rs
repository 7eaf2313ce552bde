//! The survey of a run directory: an inspection of the file of every artifact.

use crate::artifact::{ArtifactName, ArtifactSpec, Inspection};
use crate::error::{Result, unusable};
use crate::work::Work;
use disk::Disk;
use std::collections::BTreeMap;
use std::path::Path;

/// The inspections of the files of a run directory, by artifact.
pub type Inspections = BTreeMap<ArtifactName, Inspection>;

/// Inspects the file of every artifact.
pub(crate) fn survey(disk: &dyn Disk, directory: &Path, work: &dyn Work) -> Result<Inspections> {
    let mut found = Inspections::new();
    for artifact in work.graph().artifacts().filter(|artifact| artifact.kind.is_file()) {
        found.insert(artifact.name.clone(), inspect_artifact(disk, directory, work, artifact)?);
    }
    Ok(found)
}

/// Inspects the file of an artifact.
pub(crate) fn inspect_artifact(
    disk: &dyn Disk,
    directory: &Path,
    work: &dyn Work,
    artifact: &ArtifactSpec,
) -> Result<Inspection> {
    let path = artifact.name.below(directory);
    let inspect = || work.inspect(disk, &path, artifact);
    let found = match inspect() {
        // A file that cannot be read twice in a row is rebuilt; other failures are for the user to fix.
        Err(error) if error.is_unreadable() => match inspect() {
            Err(error) if error.is_unreadable() => Ok(Inspection::Unreadable(error.to_string())),
            found => found,
        },
        found => found,
    };
    found.map_err(|source| unusable(directory, source))
}
