//! The program itself, killed with SIGKILL.

use super::each;
use crate::Random;
use crate::directory::walk;
use planner::Method;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

/// Kills to carry out.
#[derive(Clone, Debug)]
pub struct Kills {
    /// The program.
    pub awari: PathBuf,
    /// Seed of the pseudo-random generator.
    pub seed: u64,
    /// Kills of a running process, in all.
    pub kills: u64,
    /// Number of concurrent builds.
    pub builds: usize,
    /// Only these methods.
    pub methods: Vec<Method>,
    /// Databases to build by a method.
    pub stones: fn(Method) -> u32,
    /// Only the build of this number.
    pub only: Option<u64>,
}

/// Outcomes of kills.
#[derive(Clone, Debug, Default)]
pub struct KillReport {
    /// Processes killed, by method.
    pub kills: BTreeMap<String, u64>,
    /// Number of builds.
    pub builds: u64,
    /// For each kill, the time since a file of the run last changed, which is the work lost.
    pub lost: Vec<Duration>,
    /// Mistakes, each with the command that repeats it.
    pub wrong: Vec<String>,
}

/// Kills of one build, at most.
const KILLS_A_BUILD: u64 = 5;

/// Files by their path below the run directory.
pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A manifest, with the files and the time of an undisturbed build.
struct Undisturbed {
    method: Method,
    manifest: String,
    made: Files,
    kept: Files,
    time: Duration,
}

/// A temporary directory for one build.
pub(super) struct KillDirectory<'a> {
    awari: &'a Path,
    directory: tempfile::TempDir,
}

impl Kills {
    /// Runs the builds and kills them.
    ///
    /// # Errors
    /// If an undisturbed build fails, or the operating system does.
    pub fn run(&self) -> io::Result<KillReport> {
        let all = self.methods.iter().map(|&method| self.undisturbed(method, "all", None));
        let all = all.collect::<io::Result<Vec<_>>>()?;
        let kept = all.iter().map(|all| self.undisturbed(all.method, "databases", Some(&all.made)));
        let kept = kept.collect::<io::Result<Vec<_>>>()?;
        let undisturbed: Vec<Undisturbed> = all.into_iter().chain(kept).collect();
        let report = Mutex::new(KillReport::default());
        let rounds = self.kills.div_ceil(KILLS_A_BUILD);
        let numbers: Vec<u64> = self.only.map_or_else(|| (0..rounds).collect(), |only| vec![only]);
        each(numbers.iter(), self.builds, |&number| {
            let mut random = Random::of(&[self.seed, number]);
            let build = &undisturbed[number as usize % undisturbed.len()];
            let wanted = match self.only {
                None => KILLS_A_BUILD.min(self.kills - number * KILLS_A_BUILD),
                Some(_) => KILLS_A_BUILD,
            };
            let outcome = self.one(build, wanted, &mut random);
            let mut report = report.lock().expect("a panic while counting ends the harness");
            report.builds += 1;
            match outcome {
                Ok(lost) => {
                    *report.kills.entry(build.method.to_string()).or_default() += lost.len() as u64;
                    report.lost.extend(lost);
                }
                Err(wrong) => {
                    let again = format!("torture --faults 0 --seed {} --kill {number}", self.seed);
                    report.wrong.push(format!("{again}: {}, {wrong}", build.method));
                }
            }
        });
        let mut report = report.into_inner().expect("all threads have ended");
        report.lost.sort();
        Ok(report)
    }

    /// Builds without kills. `made` are the files that exist at some time, if not all are kept.
    fn undisturbed(&self, method: Method, keep: &str, made: Option<&Files>) -> io::Result<Undisturbed> {
        let stones = (self.stones)(method);
        let manifest = |stages: u32| {
            format!(
                "[build]\nstones = \"0..{stones}\"\nmethod = \"{method}\"\nsnapshot = \"0 s\"\nthreads = 2\n\
                 stages-at-a-time = {stages}\n[store]\ncodec = \"zstd\"\nkeep = \"{keep}\"\n[check]\nverify = \"full\"\n"
            )
        };
        let place = KillDirectory::new(&self.awari, &manifest(1))?;
        let start = Instant::now();
        place.finish().map_err(io::Error::other)?;
        let time = start.elapsed();
        let kept = place.files()?;
        let made = made.cloned().unwrap_or_else(|| kept.clone());
        // Those that keep all files are killed with one stage at a time, the others with several.
        let stages = if keep == "all" { 1 } else { 3 };
        Ok(Undisturbed { method, manifest: manifest(stages), made, kept, time })
    }

    /// Kills a build `wanted` times, then lets it finish. Returns the time that each kill lost.
    fn one(&self, build: &Undisturbed, kills: u64, random: &mut Random) -> Result<Vec<Duration>, String> {
        let failed = |error: io::Error| error.to_string();
        let mut place = KillDirectory::new(&self.awari, &build.manifest).map_err(failed)?;
        let mut lost = Vec::new();
        let mut time = build.time;
        while (lost.len() as u64) < kills {
            let mut child = place.start().map_err(failed)?;
            // Uniform over the time of a build; a resumed one is shorter.
            let most = time.as_micros() as u64 / (lost.len() as u64 + 1);
            std::thread::sleep(Duration::from_micros(random.below(most.max(1))));
            child.kill().map_err(failed)?;
            let killed = SystemTime::now();
            if child.wait().map_err(failed)?.success() {
                // The build was done before the kill: start again, and kill earlier.
                time /= 2;
                place.check(&build.kept)?;
                place = KillDirectory::new(&self.awari, &build.manifest).map_err(failed)?;
                continue;
            }
            lost.push(place.last_change().and_then(|at| killed.duration_since(at).ok()).unwrap_or_default());
            for (path, bytes) in place.files().map_err(failed)? {
                if build.made.get(&path) != Some(&bytes) {
                    return Err(format!("after kill {}, {} is not what it should be", lost.len(), path.display()));
                }
            }
        }
        place.finish()?;
        place.check(&build.kept)?;
        Ok(lost)
    }
}

impl<'a> KillDirectory<'a> {
    pub(super) fn new(awari: &'a Path, manifest: &str) -> io::Result<KillDirectory<'a>> {
        let directory = tempfile::tempdir()?;
        fs::write(directory.path().join("manifest.toml"), manifest)?;
        Ok(KillDirectory { awari, directory })
    }

    /// The path, which is removed when this is dropped.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Keeps the directory for inspection.
    pub(super) fn keep(self) -> PathBuf {
        self.directory.keep()
    }

    pub(super) fn run(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.awari);
        command.arg("run").arg(self.directory.path().join("manifest.toml")).arg("--dir").arg(self.run());
        command.args(["--progress", "none"]).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn start(&self) -> io::Result<Child> {
        self.command().stderr(Stdio::null()).spawn()
    }

    pub(super) fn finish(&self) -> Result<(), String> {
        let output = self.command().output().map_err(|error| format!("{}: {error}", self.awari.display()))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
        }
    }

    /// Compares the final files.
    pub(super) fn check(&self, kept: &Files) -> Result<(), String> {
        let found = self.files().map_err(|error| error.to_string())?;
        if let Some(path) = found.keys().chain(kept.keys()).find(|path| found.get(*path) != kept.get(*path)) {
            return Err(format!("in the end {} is not as after an undisturbed build", path.display()));
        }
        let mut left = Vec::new();
        walk(&self.run().join("snapshots"), &mut |path| left.push(path.to_path_buf()))
            .map_err(|error| error.to_string())?;
        if left.is_empty() { Ok(()) } else { Err(format!("in the end there are {left:?}")) }
    }

    /// The files whose bytes depend on the manifest alone, with their final names.
    pub(super) fn files(&self) -> io::Result<Files> {
        let mut files = Files::new();
        let run = self.run();
        let mut failed = Ok(());
        for folder in stages::kinds::folders() {
            walk(&run.join(folder), &mut |path| {
                if disk::is_leftover(path) {
                    return;
                }
                match (path.strip_prefix(&run), fs::read(path)) {
                    (Ok(name), Ok(bytes)) => {
                        files.insert(name.to_path_buf(), bytes);
                    }
                    // A command under way may remove it between the two calls.
                    (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
                    (_, Err(error)) => failed = Err(error),
                    (Err(_), _) => {}
                }
            })?;
        }
        failed.map(|()| files)
    }

    /// The last time at which a file of the run changed.
    fn last_change(&self) -> Option<SystemTime> {
        let mut last = None;
        walk(&self.run(), &mut |path| {
            if !disk::is_leftover(path) && !path.ends_with("lock") {
                let changed = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
                last = last.max(changed);
            }
        })
        .ok()?;
        last
    }
}

impl KillReport {
    /// All kills.
    pub fn total(&self) -> u64 {
        self.kills.values().sum()
    }

    /// The work lost at the median kill and at the worst.
    pub fn lost(&self) -> Option<(Duration, Duration)> {
        Some((*self.lost.get(self.lost.len() / 2)?, *self.lost.last()?))
    }
}
