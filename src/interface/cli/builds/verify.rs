//! `awari verify`: checks databases without their intermediate files.
//!
//! From smaller to larger databases: all checksums and the digest, scores by the plain rules, counts by the published
//! tables, and on request the certificate, a rebuild by another method and external files. The journal records wrong
//! databases, so that the next run rebuilds them. It does not record differences from external files, which may be
//! wrong.

mod files;
mod rebuild;

use crate::args::VerifyArgs;
use crate::builds::request::ResolvedBuild;
use crate::error::{CliError, Result};
use crate::files::databases::{DamagedDatabase, OpenedDatabases, artifact, library, threads};
use crate::output::print;
use crate::signals;
use crate::text::quantity;
use crate::text::shell::{building, command_line};
use crate::text::terminal::say;
use check::{CheckError, Extent, Published, Sample, WrongScore};
use disk::{Disk, RealDisk, clock};
use files::ScoreFiles;
use game::STONES_MAX;
use oracle::Library;
use pipeline::directory::journal_path;
use pipeline::journal::{Contents, JournalState, Record};
use pipeline::{ArtifactName, Directory, Exit, Orchestrator, PipelineError, Reason};
use rebuild::{Rebuild, RebuildComparison, RebuildRequest, built_alike};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use store::StoreError;

/// The checks of databases that take longer are announced.
const ANNOUNCED_POSITIONS_MIN: u64 = 10_000_000;

/// The probability of detection that is quoted for a sample.
const CHANCE: f64 = 0.95;

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let dir = &args.databases.dir;
    let requested = args.databases.stones.clone();
    let library = match library(&disk, dir) {
        // The journal may list missing ones.
        Err(CliError::NoDatabases { .. }) => Library::new([])?,
        other => other?,
    };
    let mut missing = missing(&disk, dir, &library);
    missing.retain(|stones, _| requested.as_ref().is_none_or(|range| range.contains(stones)));
    let known: BTreeSet<u32> = library.files().keys().chain(missing.keys()).copied().collect();
    let chosen: Vec<u32> = match &requested {
        None => known.into_iter().collect(),
        Some(range) if known.iter().any(|stones| range.contains(stones)) => {
            let is_asked = |stones: &u32| known.contains(stones) || !library.is_omitted(*stones);
            range.clone().filter(is_asked).collect()
        }
        Some(_) => Vec::new(),
    };
    if chosen.is_empty() {
        let build = building(dir, requested.as_ref().map(|range| *range.end()));
        return Err(CliError::NoDatabases { dir: dir.clone(), stones: requested, build });
    }
    let (rules, set) = (library.rules(), library.set());
    let omitted = (0..=STONES_MAX).find(|&stones| library.is_omitted(stones));
    let opened = OpenedDatabases::new(library)?;
    // Only a rebuild has to catch signals: it removes its directory.
    let stop = match args.against {
        Some(_) => signals::stop_flag()?,
        None => Arc::default(),
    };
    let there = chosen.iter().copied().filter(|stones| opened.sound.get(*stones).is_ok());
    let rebuild = match (args.against, there.max()) {
        (Some(method), Some(stones_max)) => {
            let alike = built_alike(&disk, dir, method, &chosen);
            if !alike.is_empty() {
                say(format_args!(
                    "{} {} built by {method} or a similar method: a rebuild by another method is a \
                     stronger check",
                    if alike.len() == 1 { "database" } else { "databases" },
                    quantity::ranges(&alike, |stones| stones + 1) + if alike.len() == 1 { " was" } else { " were" },
                ));
            }
            let request = RebuildRequest {
                rules,
                set,
                stones_max,
                has_gap: omitted.is_some_and(|omitted| omitted + 1 == stones_max),
                method,
            };
            Some(Rebuild::new(&disk, request, args, &stop)?)
        }
        _ => None,
    };
    let files = args.against_files.as_ref().map(|directory| ScoreFiles::new(&disk, directory));
    if let Some(files) = &files {
        files.check(chosen.iter().filter_map(|stones| opened.sound.get(*stones).ok()))?;
    }
    let verifier = Verifier { opened, missing, args, rebuild, files, stop: Arc::clone(&stop) };
    let exit = verifier.verify_all(&disk, chosen);
    // Removes the rebuilt databases.
    drop(verifier);
    match exit {
        Err(CliError::Check(CheckError::Stopped)) => {
            say("stopped on request; the rebuild was removed, and the same command starts over");
            Ok(Exit::Stopped)
        }
        exit => exit,
    }
}

/// The outcome for one database. The words are part of the stable output of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
enum VerifyStatus {
    /// Every score follows from the rules.
    Verified,
    /// The scores of a sample follow from the rules.
    Sampled,
    /// Every score is proved, in this and all smaller databases.
    Certified,
    /// Another method computed the same scores.
    Rebuilt,
    /// A checksum or the digest of the file is wrong.
    Damaged,
    /// All checksums of the file are right, but its scores are wrong.
    Wrong,
    /// External files have other scores; either may be wrong.
    Differs,
    /// The checksums are right, but databases that its captures lead to are missing, damaged or wrong.
    Unchecked,
    /// The database is missing or cannot be opened.
    Missing,
}

impl VerifyStatus {
    /// Whether all checks passed, so that the message names no fault.
    fn is_sound(self) -> bool {
        use VerifyStatus::{Certified, Rebuilt, Sampled, Verified};
        matches!(self, Verified | Sampled | Certified | Rebuilt)
    }
}

/// The status of a database, with a message.
struct DatabaseVerdict {
    status: VerifyStatus,
    lines: Vec<String>,
    /// The message for the journal, without the path.
    recorded: String,
    /// Whether no checksum detects the damage, so that files derived from it are suspect.
    silent: bool,
}

impl DatabaseVerdict {
    fn new(status: VerifyStatus, lines: Vec<String>) -> DatabaseVerdict {
        let recorded = lines.join("; ");
        DatabaseVerdict { status, lines, recorded, silent: status == VerifyStatus::Wrong }
    }

    /// Creates the verdict of a damaged file. The first line is a summary.
    fn damaged(path: &Path, mut lines: Vec<String>) -> DatabaseVerdict {
        // The summary and the first block, which fit a table.
        let recorded = lines.iter().take(2).cloned().collect::<Vec<_>>().join("; ");
        lines[0] = format!("{} is damaged: {}", path.display(), lines[0]);
        DatabaseVerdict { recorded, ..DatabaseVerdict::new(VerifyStatus::Damaged, lines) }
    }
}

struct Verifier<'a> {
    opened: OpenedDatabases,
    /// The messages of finished databases without a file, by stones.
    missing: BTreeMap<u32, String>,
    args: &'a VerifyArgs,
    rebuild: Option<Rebuild<'a>>,
    files: Option<ScoreFiles<'a>>,
    stop: Arc<AtomicBool>,
}

impl Verifier<'_> {
    fn verify_all(&self, disk: &dyn Disk, chosen: Vec<u32>) -> Result<Exit> {
        let dir = &self.args.databases.dir;
        let mut journal = OutcomeJournal { disk, dir, exists: disk.bytes(&journal_path(dir))?.is_some() };
        let mut outcomes = BTreeMap::new();
        let threads = threads(self.args.databases.threads)?;
        // On a terminal, the lines on stderr say everything.
        let is_list = !(std::io::stdout().is_terminal() && std::io::stderr().is_terminal());
        if is_list {
            print("stones,status\n")?;
        }
        for stones in chosen {
            if let (Some(rebuild), Ok(_)) = (&self.rebuild, self.opened.sound.get(stones)) {
                rebuild.up_to(stones)?;
            }
            let outcome = threads.install(|| self.verify_unchanged(stones, &outcomes))?;
            if is_list {
                print(&format!("{stones},{}\n", outcome.status))?;
            }
            for line in &outcome.lines {
                let is_said = is_list || !outcome.status.is_sound();
                let status = if is_said { String::new() } else { format!("{}: ", outcome.status) };
                say(format_args!("{stones:>3}  {status}{line}"));
            }
            journal.record(self, stones, &outcome);
            outcomes.insert(stones, outcome.status);
        }
        let is_bad = |status: &VerifyStatus| matches!(status, VerifyStatus::Damaged | VerifyStatus::Wrong);
        let differing: Vec<u32> = outcomes
            .iter()
            .filter(|(_, status)| **status == VerifyStatus::Differs)
            .map(|(stones, _)| *stones)
            .collect();
        let bad: Vec<u32> = outcomes.iter().filter(|(_, status)| is_bad(status)).map(|(stones, _)| *stones).collect();
        let missing: Vec<u32> = self.missing.keys().copied().collect();
        if !bad.is_empty() {
            for line in doubtful_files(disk, dir) {
                say(line);
            }
        }
        let unsound = [(bad, "damaged or wrong"), (missing, "finished according to the journal, but missing")];
        let unsound = unsound.into_iter().filter(|(stones, _)| !stones.is_empty());
        let unsound: Vec<String> = unsound
            .map(|(stones, what)| format!("stones {}: {what}", quantity::ranges(&stones, |stones| stones + 1)))
            .collect();
        if !unsound.is_empty() {
            say(format_args!("{}; to rebuild them:\n  {}", unsound.join("; "), building(dir, None)));
            return Ok(Exit::Integrity);
        }
        if !differing.is_empty() {
            let differing = quantity::ranges(&differing, |stones| stones + 1);
            say(format_args!(
                "stones {differing}: the files have other scores; --certify can prove those of the databases"
            ));
            return Ok(Exit::Integrity);
        }
        if outcomes.values().any(|status| matches!(status, VerifyStatus::Unchecked | VerifyStatus::Missing)) {
            return Ok(Exit::NoAnswer);
        }
        say("all checks passed");
        Ok(Exit::Done)
    }

    /// Verifies a database, and repeats this if another process replaces a database in the meantime.
    fn verify_unchanged(&self, stones: u32, smaller: &BTreeMap<u32, VerifyStatus>) -> Result<DatabaseVerdict> {
        let databases = &self.opened.sound;
        let editions = databases.editions();
        let outcome = self.verify(stones, smaller)?;
        // Replacing a file cannot cause a wrong checksum.
        if outcome.status == VerifyStatus::Damaged || databases.unchanged(&editions).is_ok() {
            return Ok(outcome);
        }
        let editions = databases.editions();
        let outcome = self.verify(stones, smaller)?;
        databases.unchanged(&editions)?;
        Ok(outcome)
    }

    /// Verifies a database after all smaller ones.
    fn verify(&self, stones: u32, smaller: &BTreeMap<u32, VerifyStatus>) -> Result<DatabaseVerdict> {
        let started = Instant::now();
        let outcome = |status, line: String| Ok(DatabaseVerdict::new(status, vec![line]));
        match self.opened.damaged.get(&stones) {
            Some(DamagedDatabase { path, what, is_damage: true, .. }) => {
                return Ok(DatabaseVerdict::damaged(path, vec![what.clone()]));
            }
            Some(DamagedDatabase { message, .. }) => return outcome(VerifyStatus::Missing, message.clone()),
            None => {}
        }
        if let Some(what) = self.missing.get(&stones) {
            return outcome(VerifyStatus::Missing, what.clone());
        }
        let Ok(database) = self.opened.sound.get(stones) else {
            return outcome(VerifyStatus::Missing, format!("no such file: {}", artifact(stones)));
        };
        let scores = database.scores().scores();
        let positions = database.positions();
        if positions >= ANNOUNCED_POSITIONS_MIN {
            say(format_args!("{stones:>3}  {} ...", quantity::plural(positions, "position")));
        }
        if let Err(error) = check::check_integrity(scores) {
            // Every reader verifies blocks, but not the digest.
            let silent =
                matches!(&error, CheckError::Store(error) if matches!(**error, StoreError::DigestDiffers { .. }));
            return Ok(DatabaseVerdict { silent, ..DatabaseVerdict::damaged(scores.path(), damage(error)?) });
        }
        let blocks = quantity::plural(scores.block_count() as u64, "block") + " sound";
        let by_rules = match self.unusable(stones, smaller) {
            Some(why) => RuleFindings::unchecked(why),
            None => self.by_rules(stones, smaller)?,
        };
        let RuleFindings { mut status, mut parts, mut wrong } = by_rules;
        if let Some(rebuild) = &self.rebuild {
            match rebuild.compare(database)? {
                RebuildComparison::Same(digest) => {
                    parts.push(format!("{} makes the same scores, digest {}", rebuild.method(), short(digest)));
                    if !matches!(status, VerifyStatus::Certified | VerifyStatus::Wrong) {
                        status = VerifyStatus::Rebuilt;
                    }
                }
                RebuildComparison::Differs(differences) => {
                    status = VerifyStatus::Wrong;
                    wrong.push(difference(rebuild, &differences.first, differences.positions));
                }
            }
        }
        if status == VerifyStatus::Wrong {
            return Ok(DatabaseVerdict::new(status, wrong));
        }
        if let Some(files) = &self.files {
            let compared = files.compare(database, &self.stop)?;
            if !compared.differences.is_empty() {
                return Ok(DatabaseVerdict::new(VerifyStatus::Differs, compared.differences));
            }
            parts.push(compared.agreement);
        }
        parts.push(blocks);
        parts.push(quantity::time(started.elapsed().as_secs_f64()));
        outcome(status, format!("{}: {}", quantity::plural(positions, "position"), parts.join(", ")))
    }

    /// Checks a sound file by the rules, the published counts and the certificate.
    fn by_rules(&self, stones: u32, smaller: &BTreeMap<u32, VerifyStatus>) -> Result<RuleFindings> {
        let databases = &self.opened.sound;
        let watch =
            || if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let extent = self.extent();
        let verified = match &self.opened.upper {
            Some(upper) => {
                check::verify_bounds_watched(databases, upper, stones, extent, &|_| watch()).map(|[lows, _]| lows)
            }
            None => check::verify_watched(databases, stones, extent, &|_| watch()),
        };
        let (score, wins) = match self.opened.upper {
            Some(_) => ("bound", "guarantees"),
            None => ("score", "wins and losses"),
        };
        let verified = match verified {
            Ok(verified) => verified,
            Err(error) => return failed(error),
        };
        let mut parts = vec![match extent {
            Extent::Sample(sample) if !verified.is_full() => format!(
                "{} from the rules (if {} did not, the sample would have found one with a probability \
                 of {:.0} %)",
                match verified.checked() {
                    1 => format!("1 {score} follows"),
                    checked => format!("{} {score}s follow", quantity::grouped(checked)),
                },
                quantity::grouped(sample.detectable(verified.histogram().total(), CHANCE)),
                CHANCE * 100.0
            ),
            _ => format!("every {score} follows from the rules"),
        }];
        match Published::compare(databases.rules(), stones, databases.set(), verified.histogram()) {
            Published::Matches => parts.push("matches published counts".to_owned()),
            Published::Absent => {}
            Published::Differs { score, expected, found } => {
                return Ok(RuleFindings::wrong(format!(
                    "{} of score {score}, published: {expected}",
                    quantity::plural(found, "position")
                )));
            }
        }
        let mut status = if verified.is_full() { VerifyStatus::Verified } else { VerifyStatus::Sampled };
        if self.args.certify {
            let certified = match &self.opened.upper {
                Some(upper) => check::certify_bounds_watched(databases, upper, stones, &watch),
                None => check::certify_watched(databases, stones, &watch),
            };
            let certified = match certified {
                Ok(certified) => certified,
                Err(error) => return failed(error),
            };
            parts.push(format!("{} {wins} derived", quantity::grouped(certified.claims())));
            // Derived claims prove scores only if all scores are consistent and smaller databases are right.
            let unproved: Vec<u32> = self
                .smaller(stones)
                .filter(|needed| !matches!(smaller.get(needed), Some(VerifyStatus::Certified)))
                .collect();
            if !verified.is_full() {
                parts.push("no proof without all scores".to_owned());
            } else if unproved.is_empty() {
                status = VerifyStatus::Certified;
            } else {
                let unproved = quantity::ranges(&unproved, |stones| stones + 1);
                parts.push(format!("a proof only with certified databases {unproved}"));
            }
        }
        Ok(RuleFindings { status, parts, wrong: Vec::new() })
    }

    fn extent(&self) -> Extent {
        match self.args.sample {
            None => Extent::Full,
            Some(one_in) => Extent::Sample(Sample { one_in, seed: self.args.seed, ..Sample::default() }),
        }
    }

    /// Returns the stones of the databases that captures lead to.
    fn smaller(&self, stones: u32) -> std::ops::Range<u32> {
        0..(stones + 1).saturating_sub(u32::from(self.opened.sound.rules().capture_low))
    }

    /// Describes a database that captures lead to and that cannot be used, if there is one.
    fn unusable(&self, stones: u32, smaller: &BTreeMap<u32, VerifyStatus>) -> Option<String> {
        self.smaller(stones).find_map(|needed| match smaller.get(&needed) {
            Some(VerifyStatus::Damaged) => Some(format!("{} is damaged", artifact(needed))),
            Some(VerifyStatus::Wrong) => Some(format!("{} is wrong", artifact(needed))),
            _ if self.opened.damaged.contains_key(&needed) => Some(format!("{} is damaged", artifact(needed))),
            _ if self.opened.sound.get(needed).is_err() => Some(format!("{} is missing", artifact(needed))),
            _ => None,
        })
    }
}

/// The result of checking the scores of a database.
struct RuleFindings {
    status: VerifyStatus,
    parts: Vec<String>,
    /// Descriptions of wrong scores or counts.
    wrong: Vec<String>,
}

impl RuleFindings {
    fn wrong(what: String) -> RuleFindings {
        RuleFindings { status: VerifyStatus::Wrong, parts: Vec::new(), wrong: vec![what] }
    }

    fn unchecked(why: String) -> RuleFindings {
        let part = format!("cannot check scores by the rules: {why}");
        RuleFindings { status: VerifyStatus::Unchecked, parts: vec![part], wrong: Vec::new() }
    }
}

/// Turns the error of a check into findings; stops and failures of the disk remain errors.
fn failed(error: CheckError) -> Result<RuleFindings> {
    match error {
        CheckError::Stopped | CheckError::Memory { .. } => Err(error.into()),
        CheckError::Store(error) => match &*error {
            StoreError::Disk(disk) if !disk.is_unreadable() => Err(CheckError::Store(error).into()),
            // In another database: all blocks of this one are sound.
            _ => Ok(RuleFindings::unchecked(error.to_string())),
        },
        wrong => Ok(RuleFindings::wrong(wrong.to_string())),
    }
}

/// Returns messages about databases that are finished in the journal but have no file, by stones.
fn missing(disk: &dyn Disk, dir: &Path, library: &Library) -> BTreeMap<u32, String> {
    let journal = match Contents::read(disk, &journal_path(dir)) {
        Ok(journal) => journal,
        Err(error) => {
            say(format_args!("cannot read from the journal whether databases are missing: {error}"));
            return BTreeMap::new();
        }
    };
    let state = JournalState::replay(&journal.entries);
    let finished = state.artifacts().filter(|(_, built)| !built.removed).filter_map(|(name, _)| {
        let path = name.below(dir);
        let stones = Library::stones_of(&path).filter(|&stones| artifact(stones) == *name)?;
        Some((stones, path))
    });
    let of_file = |(stones, path): (u32, PathBuf)| {
        if library.files().contains_key(&stones) {
            return None;
        }
        match disk.bytes(&path) {
            // A run may have finished it since the library was read.
            Ok(Some(_)) => None,
            Ok(None) => {
                Some((stones, format!("finished according to the journal, but no such file: {}", artifact(stones))))
            }
            Err(error) => Some((stones, format!("finished according to the journal, but {error}; move it away"))),
        }
    };
    finished.filter_map(of_file).collect()
}

/// Returns the first characters of a digest.
fn short(digest: disk::Digest) -> String {
    digest.to_string().chars().take(12).collect()
}

/// Describes the differences from the rebuilt database.
fn difference(rebuild: &Rebuild<'_>, first: &[WrongScore], positions: u64) -> String {
    let first: Vec<String> = first.iter().map(ToString::to_string).collect();
    let count = quantity::plural(positions, "position");
    match positions {
        // Impossible: the digest matches the scores.
        0 => format!("{} derives the same scores with a different digest", rebuild.method()),
        _ => format!("{} scores {count} differently: {}", rebuild.method(), first.join("; ")),
    }
}

/// Lists all damaged blocks of a file.
fn damage(error: CheckError) -> Result<Vec<String>> {
    match error {
        CheckError::Store(error) if matches!(&*error, StoreError::Disk(disk) if !disk.is_unreadable()) => {
            Err(CheckError::Store(error).into())
        }
        CheckError::Damaged { blocks, first, .. } => {
            let mut lines: Vec<String> = first.iter().map(StoreError::what).collect();
            if blocks.len() > 1 {
                let all = quantity::ranges(&blocks, |block| block + 1);
                lines.insert(0, format!("{} blocks: {all}", blocks.len()));
            }
            if blocks.len() > first.len() {
                lines.push(format!("and {} more", blocks.len() - first.len()));
            }
            Ok(lines)
        }
        other => Ok(vec![other.what()]),
    }
}

/// Records verdicts in the journal of the directory.
struct OutcomeJournal<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    exists: bool,
}

impl OutcomeJournal<'_> {
    /// Records a verdict. Locks the directory only for that.
    fn record(&mut self, verifier: &Verifier<'_>, stones: u32, outcome: &DatabaseVerdict) {
        let (how, sampled) = match outcome.status {
            VerifyStatus::Damaged | VerifyStatus::Wrong => {
                let what = outcome.recorded.clone();
                let record = Record::DamageFound { artifact: artifact(stones), what, silent: outcome.silent };
                match self.append(record) {
                    Ok(()) => say("     recorded in the journal; the next run rebuilds it"),
                    Err(error) => say(format_args!(
                        "     cannot record the damage in the journal, so the next run will not rebuild the file: {error}"
                    )),
                }
                return;
            }
            VerifyStatus::Verified => ("scores by the plain rules".to_owned(), false),
            VerifyStatus::Sampled => ("a sample of scores by the plain rules".to_owned(), true),
            VerifyStatus::Certified => ("scores by the plain rules, and a certificate".to_owned(), false),
            VerifyStatus::Rebuilt => ("its content digest".to_owned(), false),
            VerifyStatus::Differs | VerifyStatus::Unchecked | VerifyStatus::Missing => return,
        };
        let how = match &verifier.rebuild {
            Some(rebuild) => format!("{how}, rebuilt by {}", rebuild.method()),
            None => how,
        };
        let digest = verifier.opened.sound.get(stones).map(|database| database.scores().scores().digest());
        if let (true, Ok(digest)) = (self.exists, digest) {
            let record = Record::Verified { artifact: artifact(stones), digest, how, sampled };
            // An unwritable or locked directory is no failure: the verdict is printed too.
            let _ = self.append(record);
        }
    }

    fn append(&mut self, record: Record) -> Result<(), PipelineError> {
        let command = command_line(std::env::args_os());
        Directory::open(self.disk, self.dir, &command, &|| Ok(true))?.journal().append(record)?;
        self.exists = true;
        Ok(())
    }
}

/// Lists the files that the next run rebuilds because they were made from wrong ones. Empty without a manifest.
fn doubtful_files(disk: &dyn Disk, dir: &Path) -> Vec<String> {
    let Ok(Some(request)) = ResolvedBuild::of_directory(disk, dir) else { return Vec::new() };
    let plan = Orchestrator::new(disk, dir, request.work(), request.options(None)).plan();
    let mut by_source: BTreeMap<(ArtifactName, Option<u64>), Vec<ArtifactName>> = BTreeMap::new();
    for step in plan.map(|plan| plan.steps).unwrap_or_default() {
        if let Reason::Doubtful { artifact, source, good_at, .. } = step.reason {
            by_source.entry((source, good_at)).or_default().push(artifact);
        }
    }
    let line = |((source, good_at), made): ((ArtifactName, Option<u64>), Vec<ArtifactName>)| {
        let since = good_at.map_or("with no record of when it was last good".to_owned(), |at| {
            format!("since it was last known to be good, at {}", clock::utc(at))
        });
        let made: Vec<&str> = made.iter().map(ArtifactName::as_str).collect();
        format!("made from {source} {since}: {}; the next run rebuilds them too", made.join(", "))
    };
    by_source.into_iter().map(line).collect()
}
