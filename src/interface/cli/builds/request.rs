//! The manifest of a command, with the changes of the command line.

use crate::args::{ChangeArgs, ManifestArgs, PlanArgs, SelectionArgs};
use crate::error::{CliError, Result};
use crate::files::databases::refuse_file;
use crate::text::shell::{command_line, own_command};
use disk::{Disk, DiskError};
use pipeline::manifest::{Diagnostic, MANIFEST_BYTES_MAX, Origin};
use pipeline::{Budget, Manifest, RunOptions, StageName};
use planner::{Hardware, Method, Settings, schema};
use stages::Awari;
use stages::distributed::JobLeader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name and version of the program.
pub(crate) const PROGRAM: &str = concat!("awari ", env!("CARGO_PKG_VERSION"));

/// A resolved manifest, and the stages that build it.
pub(crate) struct ResolvedBuild {
    manifest: Manifest,
    work: Awari,
}

impl ResolvedBuild {
    /// Reads the manifest of a command line, for a build.
    pub(crate) fn read(disk: &dyn Disk, args: &ManifestArgs) -> Result<ResolvedBuild> {
        let text = read_manifest(disk, &args.manifest)?;
        let overrides = with_directory(&args.manifest, &text, args.changes.overrides()?);
        let request = ResolvedBuild::parse(&args.manifest, text, &overrides, |settings| settings)?;
        refuse_file(disk, &request.dir())?;
        Ok(request)
    }

    /// Distributes the build among all ranks of a job.
    pub(crate) fn led(mut self, job: Arc<JobLeader>) -> ResolvedBuild {
        self.work = Awari::led(self.settings().clone(), job);
        self
    }

    /// Reads the manifest of a command line, for a plan on a given machine.
    pub(crate) fn read_to_plan(disk: &dyn Disk, args: &PlanArgs) -> Result<ResolvedBuild> {
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
        let ranks = args.ranks.map_or(1, usize::from);
        let request = ResolvedBuild::parse(path, text, &overrides, |settings| {
            let settings = settings.with_ranks(ranks);
            let Some(hardware) = hardware else { return settings };
            let is_given = |key: &str| overrides.iter().any(|change| change.key == key);
            let memory_bytes = if is_given("build.memory") { settings.memory_bytes } else { hardware.memory_bytes };
            let threads = if is_given("build.threads") { settings.threads } else { hardware.cores };
            settings.for_machine(hardware, memory_bytes, threads)
        })?;
        if args.databases().is_none() {
            refuse_file(disk, &request.dir())?;
        }
        Ok(request)
    }

    /// Reads the resolved manifest of a run directory, if there is one.
    pub(crate) fn of_directory(disk: &dyn Disk, dir: &Path) -> Result<Option<ResolvedBuild>> {
        refuse_file(disk, dir)?;
        let path = pipeline::directory::manifest_path(dir);
        match read_text(disk, &path) {
            Err(CliError::Unreadable(error)) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
            Ok(text) => ResolvedBuild::parse(&path, text, &[], |settings| settings).map(Some),
        }
    }

    fn parse(
        path: &Path,
        text: String,
        overrides: &[KeyOverride],
        adapt: impl FnOnce(Settings) -> Settings,
    ) -> Result<ResolvedBuild> {
        match parse_manifest(path, &text, overrides) {
            Ok(manifest) => {
                let settings = Settings::new(&manifest);
                let refused = beyond_the_game(&manifest, &settings)
                    .or_else(|| other_method(&manifest, &settings))
                    .or_else(|| without_scores(&manifest, &settings));
                if let Some(diagnostic) = refused {
                    return Err(mistaken(path, text, vec![diagnostic], overrides));
                }
                let work = Awari::new(adapt(settings));
                Ok(ResolvedBuild { manifest, work })
            }
            Err(diagnostics) => Err(mistaken(path, text, diagnostics, overrides)),
        }
    }

    /// Returns the settings.
    pub(crate) fn settings(&self) -> &Settings {
        self.work.settings()
    }

    /// Returns the stages.
    pub(crate) fn work(&self) -> &Awari {
        &self.work
    }

    /// Returns the run directory.
    pub(crate) fn dir(&self) -> PathBuf {
        self.settings().dir.clone()
    }

    /// Returns the requested threads per rank; 0 is one per core.
    pub(crate) fn threads_asked(&self) -> i64 {
        self.manifest.integer("build.threads")
    }

    /// Returns the options of a run.
    pub(crate) fn options(&self, selection: Option<&SelectionArgs>) -> RunOptions {
        let settings = self.settings();
        RunOptions {
            until: selection.and_then(|selection| selection.until.clone()),
            force: selection.map(|selection| selection.force.clone()).unwrap_or_default(),
            frozen: selection.is_some_and(|selection| selection.frozen),
            replace: selection.is_some_and(|selection| selection.replace),
            manifest: self.manifest.to_toml(),
            ..run_options(settings)
        }
    }
}

/// Returns the diagnostic for databases of more stones than the game has.
fn beyond_the_game(manifest: &Manifest, settings: &Settings) -> Option<Diagnostic> {
    let (most, asked) = (settings.set.stones_max(), settings.stones_max());
    (asked > most).then(|| {
        let opening = manifest.integer("game.opening");
        let message = format!("must end at {most}: the game has no more stones, since game.opening is {opening}");
        manifest.diagnose("build.stones", &message, Some("choose fewer stones, or positions = \"all\""))
    })
}

/// Returns the diagnostic for a method that cannot solve databases by the rules.
pub(crate) fn other_method(manifest: &Manifest, settings: &Settings) -> Option<Diagnostic> {
    let rules = settings.rules;
    let asked = |stones| settings.asked_method(stones).filter(|method| method.refusal(&rules).is_some());
    let method = settings.stones().find_map(asked)?;
    let key = if manifest.string("build.method") == method.word() { "build.method" } else { "build.methods" };
    let why = method.refusal(&rules).unwrap_or_default();
    let message = format!("must not be {method} where game.rules is {}: {why}", rules.name);
    let can: Vec<&str> =
        Method::ALL.into_iter().filter(|other| other.refusal(&rules).is_none()).map(Method::word).collect();
    let remedy = if key == "build.method" { "build.method=auto" } else { "build.methods={}" };
    let help = format!("choose {}, or leave the choice to the program: `--set {remedy}`", can.join(" or "));
    Some(manifest.diagnose(key, &message, Some(&help)))
}

/// Returns the diagnostic for what is made from scores, by rules that give a board two bounds.
fn without_scores(manifest: &Manifest, settings: &Settings) -> Option<Diagnostic> {
    if settings.rules.has_scores() {
        return None;
    }
    let wants = [
        ("book.positions", "book", "a book holds one value"),
        ("evaluation.games", "evaluation", "an evaluation is fitted to scores"),
        ("puzzles.count", "puzzles", "a puzzle has one best move"),
    ];
    let (key, what, needs) = wants.into_iter().find(|(key, ..)| manifest.integer(key) > 0)?;
    let message = format!(
        "must be 0 where game.rules is {}, found {}: a board has two bounds by these rules, and {needs}",
        settings.rules.name,
        manifest.integer(key)
    );
    let help = format!("choose other rules, or no {what}: `--set {key}=0`");
    Some(manifest.diagnose(key, &message, Some(&help)))
}

/// Refuses a job of several ranks where only one can solve databases by the rules.
pub(crate) fn refuse_job(settings: &Settings) -> Result<()> {
    if settings.rules.has_scores() { Ok(()) } else { Err(CliError::OneRank { rules: settings.rules.name }) }
}

/// Returns the options of a run of all stages that the settings request.
pub(crate) fn run_options(settings: &Settings) -> RunOptions {
    RunOptions {
        keep: settings.keep,
        stages_at_a_time: settings.stages_at_a_time,
        threads: settings.threads,
        memory: Budget::new(settings.memory_bytes),
        snapshot_interval: settings.snapshot,
        command: command_line(own_command()),
        program: PROGRAM.to_owned(),
        ..RunOptions::default()
    }
}

impl ChangeArgs {
    /// Returns the changed keys in order. Options count as `--set` of their key, after all others.
    fn overrides(&self) -> Result<Vec<KeyOverride>> {
        let given =
            |(key, value): &(String, String)| KeyOverride { option: None, key: key.clone(), value: value.clone() };
        let mut overrides: Vec<KeyOverride> = self.set.iter().map(given).collect();
        if let Some(threads) = self.threads {
            overrides.push(KeyOverride::option("--threads", "build.threads", threads.to_string()));
        }
        if let Some(stages) = self.stages_at_a_time {
            overrides.push(KeyOverride::option("--stages-at-a-time", "build.stages-at-a-time", stages.to_string()));
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

/// A key of a manifest with its value on the command line.
#[derive(Clone, Debug)]
pub(crate) struct KeyOverride {
    /// The option that sets the key; `None` for `--set`.
    option: Option<&'static str>,
    key: String,
    value: String,
}

impl KeyOverride {
    fn option(option: &'static str, key: &str, value: String) -> KeyOverride {
        KeyOverride { option: Some(option), key: key.to_owned(), value }
    }

    /// Makes the override of `--memory`.
    pub(crate) fn memory(memory: Budget) -> KeyOverride {
        KeyOverride::option("--memory", "build.memory", quoted(&memory.to_string()))
    }
}

/// Parses a manifest with the changes of the command line.
fn parse_manifest(path: &Path, text: &str, overrides: &[KeyOverride]) -> Result<Manifest, Vec<Diagnostic>> {
    let pairs: Vec<_> = overrides.iter().map(|change| (change.key.clone(), change.value.clone())).collect();
    Manifest::parse(text, &path.display().to_string(), &schema(), &pairs)
}

/// Returns the error of mistakes in a manifest or on the command line. A mistake in the value of an option names the
/// option.
fn mistaken(path: &Path, text: String, mut diagnostics: Vec<Diagnostic>, overrides: &[KeyOverride]) -> CliError {
    for diagnostic in &mut diagnostics {
        let Origin::Set(argument) = &diagnostic.origin else { continue };
        let is_it = |change: &&KeyOverride| *argument == format!("{}={}", change.key, change.value);
        if let Some(option) = overrides.iter().filter(is_it).find_map(|change| change.option) {
            diagnostic.origin = Origin::Option(option);
        }
    }
    if path.as_os_str().is_empty() {
        CliError::CommandLine { diagnostics }
    } else {
        CliError::Manifest { name: path.display().to_string(), text, diagnostics }
    }
}

/// Parses a manifest that the program has made, with the changes of the command line.
pub(crate) fn read_own_manifest(text: &str, overrides: &[KeyOverride]) -> Result<Manifest> {
    let none = Path::new("");
    parse_manifest(none, text, overrides).map_err(|diagnostics| mistaken(none, text.to_owned(), diagnostics, overrides))
}

/// Adds the default run directory, which is named after the manifest so that two manifests do not share one.
fn with_directory(path: &Path, text: &str, mut overrides: Vec<KeyOverride>) -> Vec<KeyOverride> {
    const KEY: &str = "run.dir";
    let name = path.file_stem().and_then(|stem| stem.to_str());
    let Some(name) = name.filter(|name| !name.starts_with('-')) else { return overrides };
    // The mistakes of an invalid manifest are reported later.
    let given = parse_manifest(path, text, &overrides).map(|manifest| manifest.is_given(KEY));
    if given == Ok(false) {
        let value = quoted(&format!("runs/{name}"));
        overrides.push(KeyOverride { option: None, key: KEY.to_owned(), value });
    }
    overrides
}

/// Returns the hardware of a known name, or of a file that describes it.
fn hardware(disk: &dyn Disk, name: &str) -> Result<Hardware> {
    if let Some(known) = Hardware::named(name) {
        return Ok(known);
    }
    let text = read_text(disk, Path::new(name)).map_err(|error| match error {
        CliError::Unreadable(error) if !error.is_of_system() => CliError::NoHardware { name: name.to_owned(), error },
        other => other,
    })?;
    match Manifest::parse(&text, name, &Hardware::schema(), &[]) {
        Ok(file) => Ok(Hardware::of_manifest(&file)),
        Err(diagnostics) => Err(CliError::Manifest { name: name.to_owned(), text, diagnostics }),
    }
}

/// Reads the manifest that a command line names.
fn read_manifest(disk: &dyn Disk, path: &Path) -> Result<String> {
    read_text(disk, path).map_err(|error| match error {
        CliError::Unreadable(error) if !error.is_of_system() => no_manifest(disk, path, &error),
        other => other,
    })
}

/// Returns the error of a path that is not a manifest.
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

fn read_text(disk: &dyn Disk, path: &Path) -> Result<String> {
    let bytes = disk.read_given(path, MANIFEST_BYTES_MAX).map_err(CliError::Unreadable)?;
    String::from_utf8(bytes).map_err(|_| CliError::NotText { path: path.to_path_buf() })
}

/// Quotes a TOML string: JSON has the same escapes.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
