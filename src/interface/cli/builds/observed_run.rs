//! A snapshot of the manifest and the status of a run directory.

use crate::builds::request::ResolvedBuild;
use crate::error::{CliError, Result};
use crate::files::databases::artifact;
use crate::text::terminal::say;
use disk::{Disk, RealDisk};
use pipeline::directory::journal_path;
use pipeline::status::{Status, status};
use pipeline::{Keep, Work};
use std::path::Path;

/// The manifest and the status of a run directory, read together.
pub(crate) struct ObservedRun {
    pub(crate) request: Option<ResolvedBuild>,
    pub(crate) status: Status,
}

/// Reads the manifest and the status of a run directory.
pub(crate) fn observe(disk: &RealDisk, dir: &Path) -> Result<ObservedRun> {
    let request = match ResolvedBuild::of_directory(disk, dir) {
        Ok(request) => request,
        Err(error @ (CliError::NotADirectory(_) | CliError::DanglingLink { .. })) => return Err(error),
        Err(error) => {
            error.show();
            say("showing the journal without the manifest");
            None
        }
    };
    let is_run = disk.bytes(&journal_path(dir))?.is_some() || request.is_some();
    if !is_run && disk.bytes(&artifact(0).below(dir))?.is_none() {
        return Err(CliError::NoRunDirectory(dir.to_path_buf()));
    }
    let keep = request.as_ref().map_or(Keep::Targets, |request| request.settings().keep);
    let status = status(disk, dir, request.as_ref().map(|request| request.work() as &dyn Work), keep)?;
    Ok(ObservedRun { request, status })
}
