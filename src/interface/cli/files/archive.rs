//! `awari archive` and `awari restore`: databases in their smallest form, and back.

use crate::args::{ArchiveArgs, RestoreArgs};
use crate::error::{CliError, Result};
use crate::files::databases::{
    artifact, cache_bytes, chosen, holds_artifacts, library, refuse_file, report, sound, stopped_at, threads,
};
use crate::signals;
use crate::text::quantity;
use crate::text::shell::{building, command_line, path_argument};
use crate::text::terminal::say;
use disk::{Disk, RealDisk};
use exchange::{BestCaptures, ExchangeError, Exported, RestoreTarget};
use game::{Index, PositionSet, Rules};
use oracle::{Library, OracleError};
use pipeline::Exit;
use pipeline::directory::Directory;
use solvers::Tables;
use stages::files;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use store::{Archive, BlockCache, CachedScores, Codec, Scores, StoreError, Unverified};

/// The suffix of archives: `12.archive`.
const SUFFIX: &str = ".archive";

pub(crate) fn archive(args: &ArchiveArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let library = library(&disk, &args.databases.dir)?;
    let chosen = chosen(&library, &args.databases)?;
    let stop = signals::stop_flag()?;
    disk.create_dir(&args.out)?;
    let threads = threads(args.databases.threads)?;
    let (rules, set) = (library.rules(), library.set());
    let tables = Tables::new(rules, set, chosen.iter().copied().max().unwrap_or(0));
    let mut smaller = CaptureSources::new(&args.databases.dir, rules, set);
    for stones in chosen {
        let scores = sound(&library, stones)?;
        let path = args.out.join(format!("{stones:02}{SUFFIX}"));
        let archive_database = || {
            let captures = smaller.captures(&disk, &tables, stones, &stop)?;
            Ok(exchange::archive(&disk, scores, &captures, &path, args.force, &stop)?)
        };
        match threads.install(archive_database) {
            Ok(file) => report(&file)?,
            Err(CliError::Exchange(ExchangeError::Stopped)) => return Ok(stopped_at(stones)),
            Err(error) => return Err(error),
        }
    }
    Ok(Exit::Done)
}

pub(crate) fn restore(args: &RestoreArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    refuse_file(&disk, &args.dir)?;
    let archives = archives(&disk, &args.from)?;
    let chosen: Vec<_> = match &args.stones {
        Some(range) => archives.into_iter().filter(|(stones, ..)| range.contains(stones)).collect(),
        None => archives.into_iter().collect(),
    };
    if chosen.is_empty() {
        return Err(CliError::NoArchives { dir: args.from.clone(), stones: args.stones.clone() });
    }
    let (rules, set) = Library::kind_of(chosen.iter().map(|(stones, (path, file))| (*stones, &**path, file)))?;
    let stop = signals::stop_flag()?;
    let threads = threads(args.threads)?;
    // The lock is held until the end, so that no other command writes databases to the directory.
    let _lock = Directory::open(&disk, &args.dir, "awari restore", &|| Ok(holds_artifacts(&disk, &args.dir)))?;
    let stones_max = chosen.iter().map(|&(stones, _)| stones).max().unwrap_or(0);
    let tables = Tables::new(rules, set, stones_max);
    let mut smaller = CaptureSources::new(&args.dir, rules, set);
    // Existing databases with another codec than the requested one.
    let mut others: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut is_new = false;
    for (stones, (path, file)) in chosen {
        let kind = files::database_kind(&rules);
        let identity = files::identity(rules.name, set, kind, stones);
        let shape = files::shape_of(set, kind, stones);
        let range = files::range(kind, stones);
        let archive = Archive::expect(file, &identity, &shape).map_err(|error| damaged_archive(error, &path))?;
        if archive.range() != range {
            let what = format!("{} has values in {}, expected {range}", path.display(), archive.range());
            return Err(CliError::Damaged { what });
        }
        let to = artifact(stones).below(&args.dir);
        if let Some(bytes) = disk.bytes(&to)? {
            let there = Scores::open(&disk, &to).and_then(|there| there.expect(&identity, &shape));
            if let Some(there) = there.ok().filter(|there| there.digest() == archive.digest()) {
                if args.codec.is_some_and(|codec| codec != there.codec()) {
                    others.entry(there.codec().to_string()).or_default().push(stones);
                }
                report(&Exported { path: to, bytes, is_new: false })?;
                continue;
            }
            return Err(CliError::OtherDatabase { path: to });
        }
        let target =
            RestoreTarget { identity: &identity, shape: &shape, range, codec: args.codec.unwrap_or(Codec::Zstd) };
        let restore_database = || {
            let captures = smaller.captures(&disk, &tables, stones, &stop)?;
            Ok(exchange::restore(&disk, &archive, &captures, &to, &target, &stop)?)
        };
        match threads.install(restore_database) {
            Ok(file) => {
                is_new = true;
                report(&file)?;
            }
            Err(CliError::Oracle(OracleError::Missing { stones, .. })) => {
                return Err(CliError::NoSmaller {
                    archive: path,
                    needed: artifact(stones).below(&args.dir),
                    restore: restoring(args, stones_max),
                });
            }
            Err(CliError::Exchange(ExchangeError::Store(error))) if error.path() == Some(&path) => {
                return Err(damaged_archive(*error, &path));
            }
            Err(CliError::Exchange(ExchangeError::Stopped)) => return Ok(stopped_at(stones)),
            Err(error) => return Err(error),
        }
    }
    for (codec, stones) in others {
        say(format_args!(
            "databases {} have the codec {codec} and are kept, because --codec applies to new files only; to convert them, restore \
             into another directory",
            quantity::ranges(&stones, |stones| stones + 1)
        ));
    }
    if is_new {
        say(format_args!("to adopt the databases: {}", building(&args.dir, None)));
    }
    Ok(Exit::Done)
}

/// Returns the command that restores the databases of 0 to `stones_max` stones.
fn restoring(args: &RestoreArgs, stones_max: u32) -> String {
    let [awari, restore, from, dir, stones] = ["awari", "restore", "--from", "--dir", "--stones"].map(OsStr::new);
    let range = OsString::from(format!("0..{stones_max}"));
    let [source, directory] = [&args.from, &args.dir].map(|path| path_argument(path).into_os_string());
    command_line([awari, restore, from, &source, dir, &directory, stones, &range])
}

/// Returns the error of a damaged or unreadable archive.
fn damaged_archive(error: StoreError, path: &Path) -> CliError {
    if let StoreError::Disk(error) = error {
        return error.into();
    }
    let out = path.parent().unwrap_or(Path::new("."));
    let again = ["awari", "archive", "--dir", "DIR", "--force", "--out"].map(OsStr::new).into_iter();
    let again = command_line(again.chain([path_argument(out).as_os_str()]));
    CliError::Damaged {
        what: format!(
            "the archive {} is damaged: {}; to write it again from its database: {again}",
            path.display(),
            error.what()
        ),
    }
}

/// The databases that captures lead to, opened on demand.
struct CaptureSources<'a> {
    dir: &'a Path,
    rules: Rules,
    set: PositionSet,
    cache: Arc<BlockCache>,
    /// By section.
    open: [Vec<CachedScores>; 2],
}

impl<'a> CaptureSources<'a> {
    fn new(dir: &'a Path, rules: Rules, set: PositionSet) -> CaptureSources<'a> {
        CaptureSources { dir, rules, set, cache: BlockCache::new(cache_bytes()), open: Default::default() }
    }

    /// Computes the best captures of the `stones`-stone database.
    fn captures(&mut self, disk: &RealDisk, tables: &Tables, stones: u32, stop: &AtomicBool) -> Result<BestCaptures> {
        let needed = self.rules.smaller(stones).end;
        for smaller in self.open[0].len() as u32..needed {
            let path = artifact(smaller).below(self.dir);
            if disk.bytes(&path)?.is_none() {
                return Err(OracleError::Missing { stones: smaller, largest: None }.into());
            }
            let kind = files::database_kind(&self.rules);
            let identity = files::identity(self.rules.name, self.set, kind, smaller);
            let shape = files::shape_of(self.set, kind, smaller);
            let scores = Scores::open(disk, &path).and_then(|file| file.expect(&identity, &shape));
            let scores = scores.map_err(OracleError::from)?;
            let cache = Arc::clone(&self.cache);
            if kind.has_pairs() {
                for (open, section) in self.open.iter_mut().zip(CachedScores::sections(scores, cache)) {
                    open.push(section);
                }
            } else {
                self.open[0].push(CachedScores::sharing(scores, cache));
            }
        }
        let index = Index::new(stones, self.set);
        let [first, second] = self.open.each_ref().map(|open| &open[..open.len().min(needed as usize)]);
        // A lower bound follows from the upper ones of smaller databases, and the other way round.
        let sections = if self.rules.has_scores() { vec![first] } else { vec![second, first] };
        Ok(BestCaptures::of(tables, index, &sections, stop)?)
    }
}

/// Opens the archives of a directory, and returns them by number of stones.
fn archives(disk: &RealDisk, dir: &Path) -> Result<BTreeMap<u32, (PathBuf, Unverified)>> {
    let mut archives = BTreeMap::new();
    for path in disk.list(dir)? {
        if let Some(stones) = Library::stones_before(&path, SUFFIX) {
            let file = Scores::open(disk, &path).map_err(|error| damaged_archive(error, &path))?;
            archives.insert(stones, (path, file));
        }
    }
    Ok(archives)
}
