//! Completions of values that are not a closed set.

use crate::request::ResolvedBuild;
use clap_complete::engine::CompletionCandidate;
use disk::RealDisk;
use engines::Kernel;
use game::STONES_MAX;
use planner::schema;
use std::path::PathBuf;

/// The kinds of stages of every method.
const KINDS: [&str; 4] = ["capture", "sweep", "verify", "stats"];

/// Returns the kernels that this processor supports.
pub(crate) fn kernels() -> Vec<CompletionCandidate> {
    Kernel::available().map(|kernel| CompletionCandidate::new(kernel.to_string())).collect()
}

/// Returns the stages of the manifest on the command line; without one, common stages.
pub(crate) fn stages() -> Vec<CompletionCandidate> {
    let words = std::env::args_os().skip(1).map(PathBuf::from);
    let manifests = words.filter(|word| word.extension().is_some_and(|extension| extension == "toml"));
    let disk = RealDisk::default();
    let mut names = manifests.map(|path| ResolvedBuild::stage_names(&disk, &path)).find(|names| !names.is_empty());
    let names = names.get_or_insert_with(|| {
        KINDS.iter().flat_map(|kind| (0..=STONES_MAX).map(move |stones| format!("{kind}:{stones}"))).collect()
    });
    names.iter().enumerate().map(|(at, name)| CompletionCandidate::new(name).display_order(Some(at))).collect()
}

/// Returns the keys of a manifest, each with an equals sign.
pub(crate) fn keys() -> Vec<CompletionCandidate> {
    schema().paths().map(|path| CompletionCandidate::new(format!("{path}="))).collect()
}
