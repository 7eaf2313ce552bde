//! What is asked for: a manifest, with what the command line changes in it.

use crate::args::{ChangeArgs, ManifestArgs, PlanArgs, SelectionArgs};
use crate::databases::refuse_file;
use crate::error::CliError;
use crate::output::is_command;
use disk::{Disk, DiskError};
use game::{PositionSet, STONES_MAX};
use pipeline::manifest::{Diagnostic, Origin};
use pipeline::{Budget, Manifest, RunOptions, StageName, Work};
use planner::{Hardware, Settings, schema};
use stages::Awari;
use stages::distributed::JobLeader;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A longer file is no manifest.
const MANIFEST_BYTES_MAX: u64 = 64 << 10;

/// A manifest, read and understood.
pub(crate) struct BuildRequest {
    manifest: Manifest,
    work: Awari,
}

impl BuildRequest {
    /// Reads the manifest of a command line, to build what it asks for.
    pub(crate) fn read(disk: &dyn Disk, args: &ManifestArgs) -> Result<BuildRequest, CliError> {
        let text = read_manifest(disk, &args.manifest)?;
        let overrides = with_directory(&args.manifest, &text, args.changes.overrides()?);
        let request = BuildRequest::parse(&args.manifest, text.clone(), &overrides, |_| {})?;
        let settings = request.settings();
        refuse_file(disk, &settings.dir)?;
        if settings.set == PositionSet::Reachable && settings.stones_max() == STONES_MAX {
            let message = format!("must end at {}: files cannot hold the opening position yet", STONES_MAX - 1);
            let help = "choose fewer stones, or predict with `awari plan`";
            let diagnostics = vec![request.manifest.diagnose("build.stones", &message, Some(help))];
            return Err(mistaken(&args.manifest, text, diagnostics, &overrides));
        }
        Ok(request)
    }

    /// The same, to be built by all ranks of a job.
    pub(crate) fn led(mut self, job: Arc<JobLeader>) -> BuildRequest {
        self.work = Awari::led(self.settings().clone(), job);
        self
    }

    /// Reads what a command line wants to be planned, and for which machine.
    pub(crate) fn read_to_plan(disk: &dyn Disk, args: &PlanArgs) -> Result<BuildRequest, CliError> {
        let (path, text) = match &args.manifest {
            Some(path) => (path.as_path(), read_manifest(disk, path)?),
            None => (Path::new(""), String::new()),
        };
        let mut overrides = with_directory(path, &text, args.changes.overrides()?);
        let hardware = match &args.hardware {
            Some(name) => Some(hardware(disk, name)?),
            None => args.manifest.is_none().then(Hardware::this),
        };
        if let Some(stones) = args.databases() {
            overrides.push(KeyOverride::option("--stones", "build.stones", format!("\"0..{}\"", stones.end())));
        }
        let request = BuildRequest::parse(path, text, &overrides, |settings| {
            let Some(hardware) = hardware else { return };
            let is_given = |key: &str| overrides.iter().any(|one| one.key == key);
            settings.hardware = hardware;
            if !is_given("build.memory") {
                settings.memory_bytes = hardware.memory_bytes;
            }
            if !is_given("build.threads") {
                settings.threads = hardware.cores;
            }
        })?;
        if args.databases().is_none() {
            refuse_file(disk, &request.dir())?;
        }
        Ok(request)
    }

    /// Reads the resolved manifest that a run has left in its directory; none if there is none.
    pub(crate) fn of_directory(disk: &dyn Disk, dir: &Path) -> Result<Option<BuildRequest>, CliError> {
        refuse_file(disk, dir)?;
        let path = pipeline::directory::manifest_path(dir);
        match read_text(disk, &path) {
            Err(CliError::Unreadable(error)) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
            Ok(text) => BuildRequest::parse(&path, text, &[], |_| {}).map(Some),
        }
    }

    fn parse(
        path: &Path,
        text: String,
        overrides: &[KeyOverride],
        adapt: impl FnOnce(&mut Settings),
    ) -> Result<BuildRequest, CliError> {
        match parse_manifest(path, &text, overrides) {
            Ok(manifest) => {
                let mut settings = Settings::new(&manifest);
                adapt(&mut settings);
                Ok(BuildRequest { manifest, work: Awari::new(settings) })
            }
            Err(diagnostics) => Err(mistaken(path, text, diagnostics, overrides)),
        }
    }

    /// The stages of a manifest, in the order in which they run; none if it cannot be used.
    pub(crate) fn stage_names(disk: &dyn Disk, path: &Path) -> Vec<String> {
        let request = read_text(disk, path).and_then(|text| BuildRequest::parse(path, text, &[], |_| {}));
        let Ok(request) = request else { return Vec::new() };
        request.work().graph().stages().iter().map(|stage| stage.name.to_string()).collect()
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

    /// Threads a rank, as asked; 0 is one for each core of its machine.
    pub(crate) fn threads_asked(&self) -> i64 {
        self.manifest.integer("build.threads")
    }

    /// How to run it.
    pub(crate) fn options(&self, selection: Option<&SelectionArgs>) -> RunOptions {
        let settings = self.settings();
        RunOptions {
            until: selection.and_then(|selection| selection.until.clone()),
            force: selection.map(|selection| selection.force.clone()).unwrap_or_default(),
            frozen: selection.is_some_and(|selection| selection.frozen),
            replace: selection.is_some_and(|selection| selection.replace),
            keep: settings.keep,
            threads: settings.threads,
            memory: Budget::new(settings.memory_bytes),
            snapshot_interval: settings.snapshot,
            command: command_line(std::env::args_os()),
            program: concat!("awari ", env!("CARGO_PKG_VERSION")).to_owned(),
            manifest: self.manifest.to_toml(),
        }
    }
}

impl ChangeArgs {
    /// The keys that are changed, in order. Options count as `--set` of the key they stand for, after all others.
    fn overrides(&self) -> Result<Vec<KeyOverride>, CliError> {
        let given =
            |(key, value): &(String, String)| KeyOverride { option: None, key: key.clone(), value: value.clone() };
        let mut overrides: Vec<KeyOverride> = self.set.iter().map(given).collect();
        if let Some(threads) = self.threads {
            overrides.push(KeyOverride::option("--threads", "build.threads", threads.to_string()));
        }
        if let Some(memory) = self.memory {
            overrides.push(KeyOverride::memory(memory));
        }
        if let Some(dir) = &self.dir {
            let dir = dir.to_str().ok_or_else(|| CliError::PathNotText(dir.clone()))?;
            overrides.push(KeyOverride::option("--dir", "run.dir", quoted(dir)));
        }
        Ok(overrides)
    }
}

/// A key of a manifest with the value that the command line gives it.
#[derive(Clone, Debug)]
pub(crate) struct KeyOverride {
    /// The option that stands for the key; none where it is set by `--set`.
    option: Option<&'static str>,
    key: String,
    value: String,
}

impl KeyOverride {
    fn option(option: &'static str, key: &str, value: String) -> KeyOverride {
        KeyOverride { option: Some(option), key: key.to_owned(), value }
    }

    /// `--memory`.
    pub(crate) fn memory(memory: Budget) -> KeyOverride {
        KeyOverride::option("--memory", "build.memory", quoted(&memory.to_string()))
    }
}

/// Reads a manifest with what the command line changes in it.
fn parse_manifest(path: &Path, text: &str, overrides: &[KeyOverride]) -> Result<Manifest, Vec<Diagnostic>> {
    let pairs: Vec<_> = overrides.iter().map(|one| (one.key.clone(), one.value.clone())).collect();
    Manifest::parse(text, &path.display().to_string(), &schema(), &pairs)
}

/// Mistakes in a manifest, or on the command line. A mistake in the value of an option names the option.
fn mistaken(path: &Path, text: String, mut diagnostics: Vec<Diagnostic>, overrides: &[KeyOverride]) -> CliError {
    for diagnostic in &mut diagnostics {
        let Origin::Set(argument) = &diagnostic.origin else { continue };
        let is_it = |one: &&KeyOverride| *argument == format!("{}={}", one.key, one.value);
        if let Some(option) = overrides.iter().filter(is_it).find_map(|one| one.option) {
            diagnostic.origin = Origin::Option(option);
        }
    }
    match path.as_os_str().is_empty() {
        true => CliError::CommandLine { diagnostics },
        false => CliError::Manifest { name: path.display().to_string(), text, diagnostics },
    }
}

/// Reads a manifest that the program has written, with what the command line changes in it.
///
/// # Errors
/// [`CliError::CommandLine`] if that makes no sense.
pub(crate) fn read_own_manifest(text: &str, overrides: &[KeyOverride]) -> Result<Manifest, CliError> {
    let none = Path::new("");
    parse_manifest(none, text, overrides).map_err(|diagnostics| mistaken(none, text.to_owned(), diagnostics, overrides))
}

/// The same where the run directory is given: if nothing else says where it is, it is named after the manifest, so that
/// two manifests do not share one.
fn with_directory(path: &Path, text: &str, mut overrides: Vec<KeyOverride>) -> Vec<KeyOverride> {
    const KEY: &str = "run.dir";
    let name = path.file_stem().and_then(|stem| stem.to_str());
    let Some(name) = name.filter(|name| !name.starts_with('-')) else { return overrides };
    // A manifest with mistakes is reported as it stands.
    let given = parse_manifest(path, text, &overrides).map(|manifest| manifest.is_given(KEY));
    if given == Ok(false) {
        let value = quoted(&format!("runs/{name}"));
        overrides.push(KeyOverride { option: None, key: KEY.to_owned(), value });
    }
    overrides
}

/// The machine that a command line names, or that a file describes.
fn hardware(disk: &dyn Disk, name: &str) -> Result<Hardware, CliError> {
    if let Some(known) = Hardware::named(name) {
        return Ok(known);
    }
    let text = read_text(disk, Path::new(name)).map_err(|error| match error {
        CliError::Unreadable(error) => CliError::NoHardware { name: name.to_owned(), error },
        other => other,
    })?;
    match Manifest::parse(&text, name, &Hardware::schema(), &[]) {
        Ok(file) => Ok(Hardware::of_manifest(&file)),
        Err(diagnostics) => Err(CliError::Manifest { name: name.to_owned(), text, diagnostics }),
    }
}

/// Reads the manifest that a command line names.
fn read_manifest(disk: &dyn Disk, path: &Path) -> Result<String, CliError> {
    read_text(disk, path).map_err(|error| match error {
        CliError::Unreadable(error) => no_manifest(disk, path, &error),
        other => other,
    })
}

/// What a command line names instead of a manifest, and what to write.
fn no_manifest(disk: &dyn Disk, path: &Path, error: &DiskError) -> CliError {
    let shown = path.display();
    if path.is_dir() {
        let left = pipeline::directory::manifest_path(path);
        let help = match disk.bytes(&left) {
            Ok(Some(_)) => format!("the manifest of its latest run is {}", left.display()),
            _ => "it holds no manifest.toml of a run either".to_owned(),
        };
        return CliError::NoManifestThere { what: format!("{shown} is a directory, expected a manifest"), help };
    }
    let is_stage = path.to_str().is_some_and(|name| name.parse::<StageName>().is_ok() && name.contains(':'));
    if error.is_not_found() && is_stage {
        let help = "the manifest comes first, then the stage".to_owned();
        return CliError::NoManifestThere {
            what: format!("{shown} is the name of a stage, expected a manifest"),
            help,
        };
    }
    let help = "a manifest of two lines is enough: `[build]` and `stones = \"0..12\"`".to_owned();
    CliError::NoManifestThere { what: error.to_string(), help }
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
pub(crate) fn command_line(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    let words: Vec<String> = arguments.into_iter().map(|word| shell_word(word.as_ref())).collect();
    words.join(" ")
}

fn shell_word(word: &OsStr) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    match word.to_str() {
        Some(word) if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        Some(word) if !word.contains(is_command) => format!("'{}'", word.replace('\'', "'\\''")),
        // No text, or none to be shown: by its bytes, as shells read them.
        _ => {
            let byte = |&byte: &u8| match byte {
                b' '..=b'~' if byte != b'\'' && byte != b'\\' => char::from(byte).to_string(),
                byte => format!("\\x{byte:02x}"),
            };
            format!("$'{}'", word.as_bytes().iter().map(byte).collect::<String>())
        }
    }
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
        let odd = [OsStr::from_bytes(b"it's \xff"), OsStr::new("\u{1b}[31m\\"), OsStr::new("\u{202e}")];
        assert_eq!(command_line(odd), r"$'it\x27s \xff' $'\x1b[31m\x5c' $'\xe2\x80\xae'");
    }
}
