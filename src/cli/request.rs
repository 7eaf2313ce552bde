//! What is asked for: a manifest, with what the command line changes in it.

use crate::args::{ManifestArgs, SelectionArgs};
use crate::error::CliError;
use disk::Disk;
use pipeline::{Budget, Manifest, RunOptions};
use stages::{Awari, Settings, schema};
use std::path::{Path, PathBuf};

/// A longer file is no manifest.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// A manifest, read and understood.
pub(crate) struct Request {
    manifest: Manifest,
    work: Awari,
}

impl Request {
    /// Reads the manifest of a command line. Options count as `--set` of the key they stand for, after all others.
    pub(crate) fn read(disk: &dyn Disk, args: &ManifestArgs) -> Result<Request, CliError> {
        let text = read_text(disk, &args.manifest)?;
        let mut overrides = args.set.clone();
        let mut set = |key: &str, value: String| overrides.push((key.to_owned(), value));
        if let Some(threads) = args.threads {
            set("build.threads", threads.to_string());
        }
        if let Some(memory) = args.memory {
            set("build.memory", quoted(&memory.to_string()));
        }
        if let Some(dir) = &args.dir {
            let dir = dir.to_str().ok_or_else(|| CliError::PathNotText(dir.clone()))?;
            set("run.dir", quoted(dir));
        }
        Request::parse(&args.manifest, text, &overrides)
    }

    /// Reads the resolved manifest that a run has left in its directory; none if there is none.
    pub(crate) fn of_directory(disk: &dyn Disk, dir: &Path) -> Result<Option<Request>, CliError> {
        let path = pipeline::directory::manifest_path(dir);
        match read_text(disk, &path) {
            Err(CliError::Unreadable(error)) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
            Ok(text) => Request::parse(&path, text, &[]).map(Some),
        }
    }

    fn parse(path: &Path, text: String, overrides: &[(String, String)]) -> Result<Request, CliError> {
        let name = path.display().to_string();
        match Manifest::parse(&text, &name, &schema(), overrides) {
            Ok(manifest) => {
                let work = Awari::new(Settings::new(&manifest));
                Ok(Request { manifest, work })
            }
            Err(diagnostics) => Err(CliError::Manifest { name, text, diagnostics }),
        }
    }

    /// What it asks for.
    pub(crate) fn settings(&self) -> &Settings {
        self.work.settings()
    }

    /// The stages.
    pub(crate) fn work(&self) -> &Awari {
        &self.work
    }

    /// The run directory.
    pub(crate) fn dir(&self) -> PathBuf {
        self.settings().dir.clone()
    }

    /// How to run it.
    pub(crate) fn options(&self, selection: Option<&SelectionArgs>) -> RunOptions {
        let settings = self.settings();
        RunOptions {
            until: selection.and_then(|selection| selection.until.clone()),
            force: selection.map(|selection| selection.force.clone()).unwrap_or_default(),
            frozen: selection.is_some_and(|selection| selection.frozen),
            keep: settings.keep,
            threads: settings.threads,
            memory: Budget::new(settings.memory_bytes),
            snapshot_interval: settings.snapshot,
            command: command_line(std::env::args()),
            program: concat!("awari ", env!("CARGO_PKG_VERSION")).to_owned(),
            manifest: self.manifest.to_toml(),
        }
    }
}

fn read_text(disk: &dyn Disk, path: &Path) -> Result<String, CliError> {
    let bytes = disk.read(path, MANIFEST_BYTES_MAX).map_err(CliError::Unreadable)?;
    String::from_utf8(bytes).map_err(|_| CliError::NotText { path: path.to_path_buf() })
}

/// A TOML string: JSON has the same escapes.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Arguments as somebody would write them to a shell.
pub(crate) fn command_line(arguments: impl IntoIterator<Item = String>) -> String {
    let words: Vec<String> = arguments.into_iter().map(|word| shell_word(&word)).collect();
    words.join(" ")
}

fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        let words = ["awari", "run", "a b.toml", "--set", "build.methods.\"1..2\"=sweep", "it's", ""];
        assert_eq!(
            command_line(words.map(str::to_owned)),
            "awari run 'a b.toml' --set 'build.methods.\"1..2\"=sweep' 'it'\\''s' ''"
        );
    }
}
