//! Commands at once in one run directory, killed, stopped, and with files damaged under them.
//!
//! A *storm* is a directory, a manifest, and a few rounds. In each round some commands start together, of
//! which some are killed or get a signal; meanwhile files of the directory are cut, overwritten in place,
//! removed, or replaced by links to a file elsewhere. No command may end by a signal that the storm did not
//! send, panic, hang, or exit with a code that is no failure of its surroundings; an answer must be the right
//! one; and no file may have other bytes than an undisturbed build gives it, but those that were damaged. In
//! the end `verify` and `run` must bring every byte back.

use super::kills::{Files, KillDirectory};
use crate::Random;
use crate::directory::walk;
use planner::Method;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Storms to run.
#[derive(Clone, Debug)]
pub struct Storms {
    /// The program.
    pub awari: PathBuf,
    /// Seed of the pseudo-random generator.
    pub seed: u64,
    /// Number of storms.
    pub storms: u64,
    /// Number of concurrent storms.
    pub threads: usize,
    /// Time after which no further storm begins.
    pub time_max: Duration,
    /// Only these methods.
    pub methods: Vec<Method>,
    /// Only the storm of this number.
    pub only: Option<u64>,
}

/// Outcomes of storms.
#[derive(Clone, Debug, Default)]
pub struct StormReport {
    /// Number of storms.
    pub storms: u64,
    /// Commands by name and by how they ended.
    pub ends: BTreeMap<(&'static str, String), u64>,
    /// Files damaged, by kind of damage.
    pub damage: BTreeMap<&'static str, u64>,
    /// Mistakes, each with the command that repeats it.
    pub wrong: Vec<String>,
}

/// Time after which a command counts as hung.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// Exit codes possible in a disturbed directory: all but 1 (internal error), 2 (usage) and 11 (manifest).
const EXPLAINED: [i32; 10] = [0, 3, 10, 12, 13, 14, 15, 16, 75, 130];

const ROUNDS: u64 = 6;
const COMMANDS_A_ROUND: u64 = 4;

/// Beginning of each journal.
const JOURNAL_MAGIC: [u8; 4] = [0xFF, b'J', b'R', 1];

/// Content of the file that planted links lead to.
const ELSEWHERE: &[u8] = b"a file that no run may change\n";

/// A manifest and the files of undisturbed builds of it.
struct Calm {
    method: Method,
    manifest: String,
    made: Files,
    kept: Files,
    questions: Vec<Question>,
}

/// A question and its right answer.
struct Question {
    position: String,
    score: i64,
}

/// A process under way.
struct Running<'a> {
    name: &'static str,
    line: String,
    child: Child,
    question: Option<&'a Question>,
    files: [tempfile::NamedTempFile; 2],
    struck: Option<Signal>,
    start: Instant,
}

impl Storms {
    /// Runs the storms.
    ///
    /// # Errors
    /// If an undisturbed build fails, or the operating system does.
    pub fn run(&self) -> io::Result<StormReport> {
        let calms: Vec<Calm> = self.methods.iter().map(|&method| self.calm(method)).collect::<io::Result<_>>()?;
        let numbers: Vec<u64> = self.only.map_or_else(|| (0..self.storms).collect(), |only| vec![only]);
        let report = Mutex::new(StormReport::default());
        let start = Instant::now();
        super::each(numbers.into_iter(), self.threads, |number| {
            if start.elapsed() >= self.time_max {
                return;
            }
            let mut storm_report = StormReport { storms: 1, ..StormReport::default() };
            let calm = &calms[number as usize % calms.len()];
            if let Err(wrong) = self.one(calm, &mut Random::of(&[self.seed, number]), &mut storm_report) {
                let again = format!("torture --seed {} --storm {number}", self.seed);
                storm_report.wrong.push(format!("{again}: {}, {wrong}", calm.method));
            }
            report.lock().expect("a panic while counting ends the harness").add(storm_report);
        });
        Ok(report.into_inner().expect("all threads have ended"))
    }

    /// Undisturbed builds by a method: what a run makes at any time, what it keeps, and some answers.
    fn calm(&self, method: Method) -> io::Result<Calm> {
        let stones: u32 = if method.has_bounds() { 5 } else { 8 };
        let manifest = |keep: &str| {
            format!(
                "[build]\nstones = \"0..{stones}\"\nmethod = \"{method}\"\nsnapshot = \"0 s\"\nthreads = 2\n\
                 memory = \"128 MiB\"\n[store]\ncodec = \"{}\"\nkeep = \"{keep}\"\n[check]\nverify = \"full\"\n",
                if method.has_bounds() { "packed" } else { "zstd" }
            )
        };
        let built = |keep: &str| -> io::Result<(KillDirectory<'_>, Files)> {
            let place = KillDirectory::new(&self.awari, &manifest(keep))?;
            place.finish().map_err(io::Error::other)?;
            let files = place.files()?;
            Ok((place, files))
        };
        let (place, made) = built("all")?;
        let (_, kept) = built("databases")?;
        let mut random = Random::of(&[self.seed]);
        let questions = (0..16).map(|_| {
            let stones = 1 + random.below(u64::from(stones)) as u32;
            let position = random.board(stones).0.map(|pit| pit.to_string()).join(" ");
            let answer = Command::new(&self.awari)
                .args(["probe", "--json", "--dir"])
                .arg(place.run())
                .arg(&position)
                .output()?;
            let score = score_of(&answer.stdout).ok_or_else(|| io::Error::other(format!("no score of {position}")))?;
            Ok(Question { position, score })
        });
        let questions = questions.collect::<io::Result<_>>()?;
        Ok(Calm { method, manifest: manifest("databases"), made, kept, questions })
    }

    fn one(&self, calm: &Calm, random: &mut Random, report: &mut StormReport) -> Result<(), String> {
        let place = KillDirectory::new(&self.awari, &calm.manifest).map_err(|error| error.to_string())?;
        let ended = self.in_place(&place, calm, random, report);
        ended.map_err(|wrong| format!("{wrong} (all of it is left in {})", place.keep().display()))
    }

    fn in_place(
        &self,
        place: &KillDirectory<'_>,
        calm: &Calm,
        random: &mut Random,
        report: &mut StormReport,
    ) -> Result<(), String> {
        let failed = |error: io::Error| error.to_string();
        let outside = place.path().join("outside");
        fs::create_dir(&outside).and_then(|()| fs::write(outside.join("file"), ELSEWHERE)).map_err(failed)?;
        let mut damaged = BTreeSet::new();
        for _ in 0..ROUNDS {
            let mut running = Vec::new();
            for _ in 0..1 + random.below(COMMANDS_A_ROUND) {
                running.push(self.start(calm, place, &outside, random).map_err(failed)?);
                std::thread::sleep(Duration::from_millis(random.below(60)));
            }
            for _ in 0..random.below(4) {
                if let Some(kind) = damage(place, &outside, random, &mut damaged).map_err(failed)? {
                    *report.damage.entry(kind).or_default() += 1;
                }
                std::thread::sleep(Duration::from_millis(random.below(100)));
            }
            for running in &mut running {
                if random.below(2) == 0 {
                    std::thread::sleep(Duration::from_millis(random.below(80)));
                    running.strike(random);
                }
            }
            for running in running {
                running.end(report)?;
            }
            check(place, calm, &damaged, &outside)?;
        }
        // As an administrator would, remove planted links, and a directory without any sign of a run.
        let mut links = Vec::new();
        walk(&place.run(), &mut |path| links.extend(path.is_symlink().then(|| path.to_owned()))).map_err(failed)?;
        links.iter().try_for_each(fs::remove_file).map_err(failed)?;
        let is_report = |path: &PathBuf| path.starts_with("stats");
        let has_journal = fs::read(place.run().join("journal")).is_ok_and(|bytes| bytes.starts_with(&JOURNAL_MAGIC));
        let has_sign = has_journal || place.run().join("lock").exists();
        if !has_sign && place.files().map_err(failed)?.keys().all(is_report) && place.run().exists() {
            fs::remove_dir_all(place.run()).map_err(failed)?;
        }
        self.start_named("verify", calm, place, &outside, random).map_err(failed)?.end(report)?;
        // A run ends at the first damaged file, and the next one rebuilds it.
        for _ in 0..damaged.len() {
            self.start_named("run", calm, place, &outside, random).map_err(failed)?.end(report)?;
        }
        place.finish().map_err(|error| format!("the last run: {error}"))?;
        place.check(&calm.kept)?;
        check(place, calm, &BTreeSet::new(), &outside)?;
        let mut last = self.start_named("verify", calm, place, &outside, random).map_err(failed)?;
        let (status, _, errors) = last.wait()?;
        match status.code() {
            Some(0) => Ok(()),
            _ => Err(format!("the last verify ended with {status}: {errors}")),
        }
    }

    fn start<'c>(
        &self,
        calm: &'c Calm,
        place: &KillDirectory<'_>,
        outside: &Path,
        random: &mut Random,
    ) -> io::Result<Running<'c>> {
        const NAMES: [&str; 16] = [
            "run", "run", "run", "run", "run", "verify", "probe", "probe", "gc", "status", "plan", "explain", "stats",
            "report", "export", "stop",
        ];
        let name = *random.pick(&NAMES);
        self.start_named(name, calm, place, outside, random)
    }

    fn start_named<'c>(
        &self,
        name: &'static str,
        calm: &'c Calm,
        place: &KillDirectory<'_>,
        outside: &Path,
        random: &mut Random,
    ) -> io::Result<Running<'c>> {
        let mut command = Command::new(&self.awari);
        command.arg(name);
        let mut question = None;
        let manifest = place.path().join("manifest.toml");
        match name {
            "run" => {
                let stages = *random.pick(&["1", "2", "3"]);
                command.arg(&manifest).args(["--progress", "none", "--stages-at-a-time", stages]);
            }
            "plan" => drop(command.arg(&manifest)),
            "explain" => drop(command.arg(&manifest).arg(random.pick(&["capture:3", "verify:2", "stats:4"]))),
            "verify" if random.below(2) == 0 => drop(command.arg("--certify")),
            "gc" if random.below(2) == 0 => drop(command.arg("--delete")),
            "report" => drop(command.arg("--out").arg(outside.join(format!("report-{}", random.bits())))),
            "export" => {
                command.args(["--format", "raw", "--out"]).arg(outside.join(format!("export-{}", random.bits())));
            }
            "probe" => {
                let asked = random.pick(&calm.questions);
                command.args(["--json", &asked.position]);
                question = Some(asked);
            }
            _ => {}
        }
        command.arg("--dir").arg(place.run());
        let files = [tempfile::NamedTempFile::new()?, tempfile::NamedTempFile::new()?];
        let [out, err] = &files;
        command.stdin(Stdio::null()).stdout(out.reopen()?).stderr(err.reopen()?);
        let child = command.spawn()?;
        let line = format!("{command:?}");
        Ok(Running { name, line, child, question, files, struck: None, start: Instant::now() })
    }
}

impl Running<'_> {
    fn strike(&mut self, random: &mut Random) {
        let signal = *random.pick(&[Signal::KILL, Signal::KILL, Signal::INT, Signal::TERM]);
        // The child was not waited for yet, so its number is still valid.
        let child = Pid::from_child(&self.child);
        if kill_process(child, signal).is_ok() {
            self.struck = Some(signal);
        }
    }

    fn wait(&mut self) -> Result<(ExitStatus, Vec<u8>, String), String> {
        let failed = |error: io::Error| error.to_string();
        let status = loop {
            match self.child.try_wait().map_err(failed)? {
                Some(status) => break status,
                None if self.start.elapsed() > HANGS_AFTER => {
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    return Err(format!("{} hangs", self.line));
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let [out, err] = &self.files;
        let out = fs::read(out.path()).map_err(failed)?;
        let err = fs::read(err.path()).map_err(failed)?;
        Ok((status, out, String::from_utf8_lossy(&err).into_owned()))
    }

    fn end(mut self, report: &mut StormReport) -> Result<(), String> {
        let (status, out, errors) = self.wait()?;
        let end = match (status.code(), status.signal()) {
            (Some(code), _) => format!("{code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        };
        *report.ends.entry((self.name, end)).or_default() += 1;
        let is_explained = match status.code() {
            Some(code) => EXPLAINED.contains(&code),
            // A command that catches no signals ends by the one that it got, as programs do.
            None => self.struck.is_some_and(|signal| status.signal() == Some(signal.as_raw())),
        };
        if !is_explained || errors.contains("panicked") {
            return Err(format!("{} ended with {status}: {errors}", self.line));
        }
        if let (Some(question), Some(0)) = (self.question, status.code())
            && score_of(&out).is_some_and(|score| score != question.score)
        {
            let out = String::from_utf8_lossy(&out);
            return Err(format!("{} answered wrongly, expected {}: {out}", self.line, question.score));
        }
        Ok(())
    }
}

/// The exact score in an answer of `probe --json`, if it has one.
fn score_of(answer: &[u8]) -> Option<i64> {
    serde_json::from_slice::<serde_json::Value>(answer).ok()?.get("score")?.as_i64()
}

/// Opens a file to damage it in place, without following a planted link.
fn in_place(path: &Path) -> io::Result<fs::File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}

/// Damages a file of the run. Returns the kind of damage.
fn damage(
    place: &KillDirectory<'_>,
    outside: &Path,
    random: &mut Random,
    damaged: &mut BTreeSet<PathBuf>,
) -> io::Result<Option<&'static str>> {
    let run = place.run();
    let mut paths: Vec<PathBuf> = place.files()?.into_keys().collect();
    paths.push("journal".into());
    let name = random.pick(&paths).clone();
    let path = run.join(&name);
    let Ok(bytes) = fs::metadata(&path).map(|metadata| metadata.len()) else { return Ok(None) };
    let kind = match random.below(6) {
        0 | 1 => {
            let Ok(file) = in_place(&path) else { return Ok(None) };
            damaged.insert(name);
            file.set_len(random.below(bytes.max(1)))?;
            "cut"
        }
        2 | 3 => {
            let Ok(mut file) = in_place(&path) else { return Ok(None) };
            damaged.insert(name);
            file.seek(SeekFrom::Start(random.below(bytes.max(1))))?;
            file.write_all(&random.bits().to_le_bytes()[..1 + random.below(8) as usize])?;
            "overwritten"
        }
        4 => {
            damaged.insert(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => "removed",
            }
        }
        _ => {
            let link = match random.below(5) {
                0 => run.join("lock"),
                1 => run.join("heartbeat"),
                2 => run.join("stop"),
                3 => run.join("journal"),
                _ => path,
            };
            if let Ok(name) = link.strip_prefix(&run) {
                damaged.insert(name.to_path_buf());
            }
            let aside = outside.join("link");
            symlink(outside.join("file"), &aside)?;
            match fs::rename(&aside, &link) {
                // Its folder has gone meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::remove_file(&aside)?;
                    return Ok(None);
                }
                renamed => renamed?,
            }
            "linked"
        }
    };
    Ok(Some(kind))
}

/// Compares the files with those of an undisturbed run.
fn check(place: &KillDirectory<'_>, calm: &Calm, damaged: &BTreeSet<PathBuf>, outside: &Path) -> Result<(), String> {
    let files = place.files().map_err(|error| error.to_string())?;
    for (path, bytes) in files {
        if calm.made.get(&path) != Some(&bytes) && !damaged.contains(&path) {
            return Err(format!("{} is not what it should be", path.display()));
        }
    }
    match fs::read(outside.join("file")) {
        Ok(bytes) if bytes == ELSEWHERE => Ok(()),
        found => Err(format!("a file outside of the run directory was changed through a link: {found:?}")),
    }
}

impl StormReport {
    fn add(&mut self, other: StormReport) {
        self.storms += other.storms;
        other.ends.into_iter().for_each(|(end, count)| *self.ends.entry(end).or_default() += count);
        other.damage.into_iter().for_each(|(kind, count)| *self.damage.entry(kind).or_default() += count);
        self.wrong.extend(other.wrong);
    }

    /// One line for each command, with the counts of its exit codes.
    pub fn table(&self) -> String {
        let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((name, end), count) in &self.ends {
            lines.entry(name).or_default().push(format!("{end}: {count}"));
        }
        let lines: String = lines.iter().map(|(name, ends)| format!("  {name:8} {}\n", ends.join(", "))).collect();
        let damage: Vec<String> = self.damage.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let commands: u64 = self.ends.values().sum();
        format!(
            "{} storms, {commands} commands, damage: {}; exit codes\n{lines}  {} wrong",
            self.storms,
            damage.join(", "),
            self.wrong.len()
        )
    }
}
