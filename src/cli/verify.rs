//! `awari verify`: whether databases are what they should be, told from the databases alone.
//!
//! Each in turn, smaller ones first: every checksum and the digest, scores by the plain rules, counts by the published
//! tables, and on request the certificate. What is wrong is put into the journal, so that the next run rebuilds it.

use crate::args::VerifyArgs;
use crate::databases::{Shelf, artifact, chosen, library, threads};
use crate::error::CliError;
use crate::output::{print, say};
use crate::quantity;
use crate::request::command_line;
use check::{CheckError, Extent, Published, Sample};
use disk::{Disk, RealDisk};
use pipeline::directory::{journal_path, manifest_path};
use pipeline::record::Record;
use pipeline::{Directory, Exit, PipelineError};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Instant;
use store::StoreError;

/// Databases that take longer are announced before they are checked.
const ANNOUNCED_POSITIONS_MIN: u64 = 10_000_000;

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit, CliError> {
    let disk = RealDisk::default();
    let dir = &args.databases.dir;
    let library = library(&disk, dir)?;
    let chosen = chosen(&library, &args.databases)?;
    let shelf = Shelf::new(library)?;
    let mut journal = JournalOf { disk: &disk, dir, exists: disk.bytes(&journal_path(dir))?.is_some() };
    let verifier = Verifier { shelf, args };
    let mut outcomes = BTreeMap::new();
    print("stones,status\n")?;
    threads(args.databases.threads)?.install(|| -> Result<(), CliError> {
        for stones in chosen {
            let outcome = verifier.verify(stones, &outcomes)?;
            print(&format!("{stones},{}\n", outcome.status))?;
            for line in &outcome.lines {
                say(format_args!("{stones:>3}  {line}"));
            }
            journal.note(&verifier, stones, &outcome);
            outcomes.insert(stones, outcome.status);
        }
        Ok(())
    })?;
    let is_bad = |status: &Status| matches!(status, Status::Damaged | Status::Wrong);
    let bad: Vec<u32> = outcomes.iter().filter(|(_, status)| is_bad(status)).map(|(stones, _)| *stones).collect();
    if !bad.is_empty() {
        let bad = quantity::ranges(&bad, |stones| stones + 1);
        say(format_args!("stones {bad}: damaged or wrong; to rebuild them:\n  {}", rebuilding(&disk, dir)));
        return Ok(Exit::Integrity);
    }
    if outcomes.values().any(|status| matches!(status, Status::Unchecked | Status::Missing)) {
        return Ok(Exit::NoAnswer);
    }
    say("nothing is wrong");
    Ok(Exit::Done)
}

/// What became of one database. Printed on stdout, so the words never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Every score follows from the rules.
    Verified,
    /// Those of a sample do.
    Sampled,
    /// Every score is proved.
    Certified,
    /// The file is not what was written.
    Damaged,
    /// The file is what was written, but that is wrong.
    Wrong,
    /// Databases that its captures lead to are missing, damaged or wrong; its checksums are right.
    Unchecked,
    /// There is no such database.
    Missing,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Verified => "verified",
            Status::Sampled => "sampled",
            Status::Certified => "certified",
            Status::Damaged => "damaged",
            Status::Wrong => "wrong",
            Status::Unchecked => "unchecked",
            Status::Missing => "missing",
        })
    }
}

/// The status of a database, and what there is to say about it.
struct Outcome {
    status: Status,
    lines: Vec<String>,
}

struct Verifier<'a> {
    shelf: Shelf,
    args: &'a VerifyArgs,
}

impl Verifier<'_> {
    /// Verifies a database, given what became of smaller ones.
    fn verify(&self, stones: u32, smaller: &BTreeMap<u32, Status>) -> Result<Outcome, CliError> {
        let begun = Instant::now();
        let outcome = |status, line: String| Ok(Outcome { status, lines: vec![line] });
        if let Some((_, what)) = self.shelf.damaged.get(&stones) {
            return outcome(Status::Damaged, what.clone());
        }
        let Ok(database) = self.shelf.sound.get(stones) else {
            return outcome(Status::Missing, format!("there is no {}", artifact(stones)));
        };
        let scores = database.scores().scores();
        let positions = database.positions();
        if positions >= ANNOUNCED_POSITIONS_MIN {
            say(format_args!("{stones:>3}  {} positions ...", quantity::grouped(positions)));
        }
        if let Err(error) = check::check_integrity(scores) {
            return Ok(Outcome { status: Status::Damaged, lines: damage(error)? });
        }
        if let Some(why) = self.unusable(stones, smaller) {
            let blocks = quantity::plural(scores.block_count() as u64, "block");
            return outcome(Status::Unchecked, format!("{blocks} sound, but scores cannot be checked: {why}"));
        }
        let verified = match check::verify(&self.shelf.sound, stones, self.extent()) {
            Ok(verified) => verified,
            Err(error) => return self.wrong(error),
        };
        let mut parts = vec![match verified.is_full() {
            true => "every score follows from the rules".to_owned(),
            false => {
                format!("{} scores follow from the rules", quantity::grouped(verified.checked()))
            }
        }];
        match Published::compare(stones, self.shelf.sound.set(), verified.histogram()) {
            Published::Matches => parts.push("matches published counts".to_owned()),
            Published::Absent => {}
            Published::Differs { score, expected, found } => {
                let counts = format!("{found} positions score {score}, published are {expected}");
                return outcome(Status::Wrong, counts);
            }
        }
        let mut status = if verified.is_full() { Status::Verified } else { Status::Sampled };
        if self.args.certify {
            match check::certify(&self.shelf.sound, stones) {
                Ok(certified) => {
                    parts.push(format!("{} wins and losses derived", quantity::grouped(certified.claims())));
                    // Derived claims are a proof only together with the consistency of all scores.
                    if verified.is_full() {
                        status = Status::Certified;
                    }
                }
                Err(error) => return self.wrong(error),
            }
        }
        parts.push(quantity::plural(scores.block_count() as u64, "block") + " sound");
        parts.push(quantity::time(begun.elapsed().as_secs_f64()));
        outcome(status, format!("{}: {}", quantity::plural(positions, "position"), parts.join(", ")))
    }

    fn extent(&self) -> Extent {
        match self.args.sample {
            None => Extent::Full,
            Some(one_in) => Extent::Sample(Sample { one_in, ..Sample::default() }),
        }
    }

    /// Why scores cannot be compared with those of the databases that captures lead to, if they cannot.
    fn unusable(&self, stones: u32, smaller: &BTreeMap<u32, Status>) -> Option<String> {
        let capture_low = u32::from(self.shelf.sound.rules().capture_low);
        (0..(stones + 1).saturating_sub(capture_low)).find_map(|needed| match smaller.get(&needed) {
            Some(Status::Damaged) => Some(format!("{} is damaged", artifact(needed))),
            Some(Status::Wrong) => Some(format!("{} is wrong", artifact(needed))),
            _ if self.shelf.damaged.contains_key(&needed) => Some(format!("{} is damaged", artifact(needed))),
            _ if self.shelf.sound.get(needed).is_err() => Some(format!("{} is missing", artifact(needed))),
            _ => None,
        })
    }

    /// Scores that do not follow from the rules, or an error about another database.
    fn wrong(&self, error: CheckError) -> Result<Outcome, CliError> {
        match error {
            CheckError::Store(error) => match &*error {
                StoreError::Disk(_) => Err(CheckError::Store(error).into()),
                // Not of the database at hand: its blocks have just been found sound.
                _ => {
                    Ok(Outcome { status: Status::Unchecked, lines: vec![format!("scores cannot be checked: {error}")] })
                }
            },
            wrong => Ok(Outcome { status: Status::Wrong, lines: vec![wrong.to_string()] }),
        }
    }
}

/// Everything that is damaged in a file.
fn damage(error: CheckError) -> Result<Vec<String>, CliError> {
    match error {
        CheckError::Store(error) if matches!(*error, StoreError::Disk(_)) => Err(CheckError::Store(error).into()),
        CheckError::Damaged { path, blocks, first } => {
            let count = quantity::plural(blocks.len() as u64, "damaged block");
            let all = quantity::ranges(&blocks, |block| block + 1);
            let mut lines = vec![format!("{}: {count}: {all}", path.display())];
            lines.extend(first.iter().map(ToString::to_string));
            if blocks.len() > first.len() {
                lines.push(format!("and {} more", blocks.len() - first.len()));
            }
            Ok(lines)
        }
        other => Ok(vec![other.to_string()]),
    }
}

/// The journal of the directory, if there is one that can be written.
struct JournalOf<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    exists: bool,
}

impl JournalOf<'_> {
    /// Records what became of a database. Holds the lock only for that, so a run may go on meanwhile.
    fn note(&mut self, verifier: &Verifier<'_>, stones: u32, outcome: &Outcome) {
        let (how, sampled) = match outcome.status {
            Status::Damaged | Status::Wrong => {
                let what = outcome.lines.join("; ");
                let record = Record::DamageFound { artifact: artifact(stones), what };
                match self.append(record) {
                    Ok(()) => say("     recorded in the journal: the next run rebuilds it"),
                    Err(error) => say(format_args!(
                        "     not recorded in the journal, so a run will not notice by itself: {error}"
                    )),
                }
                return;
            }
            Status::Verified => ("scores by the plain rules", false),
            Status::Sampled => ("a sample of scores by the plain rules", true),
            Status::Certified => ("scores by the plain rules, and a certificate", false),
            Status::Unchecked | Status::Missing => return,
        };
        let digest = verifier.shelf.sound.get(stones).map(|database| database.scores().scores().digest());
        if let (true, Ok(digest)) = (self.exists, digest) {
            let record = Record::Verified { artifact: artifact(stones), digest, how: how.to_owned(), sampled };
            // A directory that cannot be written, or is in use, loses nothing by it.
            let _ = self.append(record);
        }
    }

    fn append(&mut self, record: Record) -> Result<(), PipelineError> {
        let command = command_line(std::env::args());
        Directory::open(self.disk, self.dir, &command)?.journal().append(record)?;
        self.exists = true;
        Ok(())
    }
}

/// The command that rebuilds what is damaged.
fn rebuilding(disk: &dyn Disk, dir: &Path) -> String {
    let manifest = manifest_path(dir);
    let manifest = match disk.bytes(&manifest) {
        Ok(Some(_)) => manifest.display().to_string(),
        _ => "MANIFEST".to_owned(),
    };
    let words = ["awari", "run", &manifest, "--dir", &dir.display().to_string()];
    command_line(words.map(str::to_owned))
}
