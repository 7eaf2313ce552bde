//! Shell completions of values that are not a closed set.

use clap_complete::engine::CompletionCandidate;
use disk::{Disk, RealDisk};
use game::STONES_MAX;
use pipeline::manifest::MANIFEST_BYTES_MAX;
use pipeline::{Manifest, Work};
use planner::{Settings, schema};
use solvers::Kernel;
use stages::{Awari, kinds};
use std::path::PathBuf;

/// Returns the kernels that this processor supports.
pub(crate) fn kernels() -> Vec<CompletionCandidate> {
    Kernel::available().map(|kernel| CompletionCandidate::new(kernel.to_string())).collect()
}

/// Returns the stages of the manifest on the command line; without one, those of which a database has one of a kind.
pub(crate) fn stages() -> Vec<CompletionCandidate> {
    let words = std::env::args_os().skip(1).map(PathBuf::from);
    let manifests = words.filter(|word| word.extension().is_some_and(|extension| extension == "toml"));
    let mut names = manifests.filter_map(stage_names).next();
    let names = names.get_or_insert_with(|| {
        kinds::of_one_database()
            .flat_map(|kind| (0..=STONES_MAX).map(move |stones| format!("{kind}:{stones}")))
            .collect()
    });
    names.iter().enumerate().map(|(at, name)| CompletionCandidate::new(name).display_order(Some(at))).collect()
}

/// Returns the stages of a manifest in order, if it is valid.
fn stage_names(path: PathBuf) -> Option<Vec<String>> {
    let text = String::from_utf8(RealDisk::default().read(&path, MANIFEST_BYTES_MAX).ok()?).ok()?;
    let manifest = Manifest::parse(&text, "", &schema(), &[]).ok()?;
    let awari = Awari::new(Settings::new(&manifest));
    Some(awari.graph().stages().iter().map(|stage| stage.name.to_string()).collect())
}

/// Returns the keys of a manifest, each with an equals sign.
pub(crate) fn keys() -> Vec<CompletionCandidate> {
    schema().paths().map(|path| CompletionCandidate::new(format!("{path}="))).collect()
}
