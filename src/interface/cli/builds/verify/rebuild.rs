//! Databases rebuilt by another method, to compare with those under test.
//!
//! The stages of `awari run` build them in a temporary directory. Only rules and position set are taken from the
//! databases under test.

use crate::args::{ProgressMode, VerifyArgs};
use crate::builds::progress::ProgressDisplay;
use crate::builds::request::{KeyOverride, other_method, read_own_manifest, run_options};
use crate::error::{CliError, Result};
use crate::files::databases::artifact;
use crate::text::quantity;
use crate::text::terminal::say;
use check::{CheckError, Database, Databases, Differences};
use disk::{Digest, Disk};
use game::{PositionSet, Rules};
use pipeline::journal::{Contents, JournalState};
use pipeline::{Budget, Keep, Manifest, Orchestrator, RunOptions};
use planner::{Method, Settings};
use stages::{Awari, kinds};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use store::{BlockCache, CachedScores, Scores};

/// The cache of decoded blocks of a rebuilt database, which is read once from start to end.
const CACHE_BYTES_MAX: u64 = 1 << 20;

/// The requested rebuild.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RebuildRequest {
    /// The rules of the databases under test.
    pub(crate) rules: Rules,
    /// Their position set.
    pub(crate) set: PositionSet,
    /// The largest number of stones.
    pub(crate) stones_max: u32,
    /// Whether to omit the next to largest number, since its database is not there.
    pub(crate) has_gap: bool,
    /// The method.
    pub(crate) method: Method,
}

/// Rebuilds databases on demand, from smaller to larger.
pub(crate) struct Rebuild<'a> {
    disk: &'a dyn Disk,
    request: RebuildRequest,
    work: Awari,
    options: RunOptions,
    directory: RebuildDirectory<'a>,
    stop: &'a AtomicBool,
    progress: ProgressMode,
}

/// The comparison of a database with the rebuilt one.
#[derive(Debug)]
pub(crate) enum RebuildComparison {
    /// The content digests are the same.
    Same(Digest),
    /// Scores differ.
    Differs(Differences),
}

/// A directory that is removed on drop.
struct RebuildDirectory<'a> {
    disk: &'a dyn Disk,
    path: PathBuf,
    /// Its parent directory, if that was created for it.
    made: Option<PathBuf>,
}

impl Drop for RebuildDirectory<'_> {
    fn drop(&mut self) {
        let mut done = self.disk.remove_dir_all(&self.path);
        if let Some(made) = self.made.as_ref().filter(|made| self.disk.list(made).is_ok_and(|names| names.is_empty())) {
            done = done.and_then(|()| self.disk.remove_dir_all(made));
        }
        if let Err(error) = done {
            say(format_args!("cannot remove {}: {error}", self.path.display()));
        }
    }
}

impl<'a> Rebuild<'a> {
    /// Prepares a rebuild, and checks that memory and disk suffice.
    ///
    /// # Errors
    /// [`CliError::Disk`](crate::error::CliError::Disk) if the directory cannot be used;
    /// [`pipeline::PipelineError::Preflight`] if resources are short;
    /// [`CliError::CommandLine`](crate::error::CliError::CommandLine) if no database with this number of stones can be
    /// built.
    pub(crate) fn new(
        disk: &'a dyn Disk,
        request: RebuildRequest,
        args: &VerifyArgs,
        stop: &'a AtomicBool,
    ) -> Result<Rebuild<'a>> {
        let manifest = manifest(request, args)?;
        let settings = Settings::new(&manifest);
        if let Some(diagnostic) = other_method(&manifest, &settings) {
            return Err(CliError::CommandLine { diagnostics: vec![diagnostic] });
        }
        let work = Awari::new(settings);
        let settings = work.settings();
        let options = RunOptions { keep: Keep::Targets, ..run_options(settings) };
        // An unusable directory is reported before the prediction.
        let place = args.scratch.as_ref().unwrap_or(&args.databases.dir);
        let made = (!place.is_dir()).then(|| place.clone());
        disk.create_dir(place)?;
        let path = disk.create_private_dir(place, "against-")?;
        let directory = RebuildDirectory { disk, path: path.clone(), made };
        let orchestrator = Orchestrator::new(disk, &path, &work, options.clone());
        let plan = orchestrator.plan()?;
        orchestrator.preflight(&plan.prediction)?;
        let range = quantity::ranges(&settings.stones().collect::<Vec<_>>(), |stones| stones + 1);
        say(format_args!(
            "rebuilding {range} by {} in {}: about {}, {} of disk space, {} of memory",
            request.method,
            path.display(),
            quantity::about(plan.prediction.seconds),
            Budget::show(plan.prediction.disk_bytes),
            Budget::show(plan.prediction.memory_bytes),
        ));
        // Each database has its own run, and is reported after its verification.
        let unasked = if std::io::stderr().is_terminal() { ProgressMode::Bar } else { ProgressMode::None };
        let progress = args.progress.unwrap_or(unasked);
        Ok(Rebuild { disk, request, work, options, directory, stop, progress })
    }

    /// Returns the method.
    pub(crate) fn method(&self) -> Method {
        self.request.method
    }

    /// Rebuilds the missing databases of up to `stones` stones.
    ///
    /// # Errors
    /// [`CheckError::Stopped`], or the error of the run.
    pub(crate) fn up_to(&self, stones: u32) -> Result<()> {
        let options = RunOptions { until: Some(format!("stats:{stones}")), ..self.options.clone() };
        let watching = ProgressDisplay::new(self.progress);
        let orchestrator = Orchestrator::new(self.disk, &self.directory.path, &self.work, options);
        let done = orchestrator.observer(&watching).stop(self.stop).run();
        // Removes the bar before anything else is printed.
        drop(watching);
        if self.stop.load(Ordering::Relaxed) {
            return Err(CheckError::Stopped.into());
        }
        done.inspect_err(|_| say("the rebuild ended early and was removed"))?;
        Ok(())
    }

    /// Compares a database with the rebuilt one.
    pub(crate) fn compare(&self, found: &Database<CachedScores>) -> Result<RebuildComparison> {
        let stones = found.index().stones();
        let path = artifact(stones).below(&self.directory.path);
        let rebuilt = Scores::open(self.disk, &path).map_err(CheckError::from)?;
        let scores = found.scores().scores();
        let rebuilt = rebuilt.expect(scores.identity(), scores.shape()).map_err(CheckError::from)?;
        if rebuilt.digest() == scores.digest() {
            return Ok(RebuildComparison::Same(rebuilt.digest()));
        }
        let mut expected = Databases::new(self.request.rules, self.request.set);
        let cache = BlockCache::new(CACHE_BYTES_MAX);
        let rebuilt = if found.scores().positions() == scores.shape().positions() {
            CachedScores::sharing(rebuilt, cache)
        } else {
            // The lower bounds; the upper ones follow from them.

            let [lows, _] = CachedScores::sections(rebuilt, cache);
            lows
        };
        expected.insert(stones, rebuilt)?;
        Ok(RebuildComparison::Differs(check::differences(found, expected.get(stones)?)?))
    }
}

/// Makes the manifest of a rebuild, without checks.
fn manifest(request: RebuildRequest, args: &VerifyArgs) -> Result<Manifest> {
    let RebuildRequest { rules, set, stones_max, has_gap, method } = request;
    let stones = match stones_max.checked_sub(2).filter(|_| has_gap) {
        Some(below) => format!("0..{below}, {stones_max}"),
        None => format!("0..{stones_max}"),
    };
    let (opening, threads) = (set.start().pit_stones(), args.databases.threads);
    let mut text = format!(
        "[game]\nrules = \"{}\"\npositions = \"{set}\"\nopening = {opening}\n[build]\nstones = \"{stones}\"\nmethod = \
         \"{method}\"\nthreads = {threads}\n",
        rules.name
    );
    text.push_str("[check]\nverify = \"none\"\npublished = false\n");
    let changes: Vec<KeyOverride> = args.memory.map(KeyOverride::memory).into_iter().collect();
    read_own_manifest(&text, &changes)
}

/// Returns the databases that were built by the same method, as the journal says. Methods with bounds count as one, as
/// they share most of their code.
pub(crate) fn built_alike(disk: &dyn Disk, dir: &Path, method: Method, stones: &[u32]) -> Vec<u32> {
    let Ok(journal) = Contents::read(disk, &pipeline::directory::journal_path(dir)) else {
        return Vec::new();
    };
    let state = JournalState::replay(&journal.entries);
    let is_same = |stones: &&u32| {
        let maker = state.built(&artifact(**stones)).and_then(|built| built.stage.as_ref());
        maker.is_some_and(|stage| kinds::makes_database_by(stage, method))
    };
    stones.iter().filter(is_same).copied().collect()
}
