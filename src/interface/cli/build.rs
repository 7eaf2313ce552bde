//! Names the commit and the features of the program for `--version`. Without git, or outside of a clone,
//! there is no commit; a packager may give one in the variable `AWARI_COMMIT`.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=AWARI_COMMIT");
    let given = env::var("AWARI_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    // The commit changes with these files: `HEAD`, the branch that it names, and the packed branches.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    let features: Vec<&str> = [("CARGO_FEATURE_MPI", "mpi"), ("CARGO_FEATURE_PARQUET", "parquet")]
        .into_iter()
        .filter(|(variable, _)| env::var_os(variable).is_some())
        .map(|(_, feature)| feature)
        .collect();
    let commit = commit.map_or_else(|| "unknown commit".to_owned(), |commit| format!("commit {commit}"));
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    println!("cargo::rustc-env=AWARI_VERSION={version} ({commit}; features: {features})");
}

/// Returns what git prints, if it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
