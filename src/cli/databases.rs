//! The databases of a run directory, opened.

use crate::args::DatabasesArgs;
use crate::error::CliError;
use crate::request::command_line;
use check::Databases;
use disk::{Disk, clock, heap};
use oracle::{Library, LibraryFile};
use pipeline::ArtifactName;
use pipeline::directory::manifest_path;
use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{BlockCache, CachedScores, Scores};

/// The databases of a library, ready to be checked, and the files that are not.
pub(crate) struct OpenedDatabases {
    /// Those whose frame is sound.
    pub(crate) sound: Databases<CachedScores>,
    /// The others by their stones.
    pub(crate) damaged: BTreeMap<u32, DamagedDatabase>,
}

/// A file that cannot be used.
pub(crate) struct DamagedDatabase {
    pub(crate) path: PathBuf,
    /// The message on it, with its path and the remedy.
    pub(crate) message: String,
    /// What is wrong, without them.
    pub(crate) what: String,
    /// Whether its bytes are wrong, as against a file that cannot be opened.
    pub(crate) is_damage: bool,
}

impl OpenedDatabases {
    /// Takes over a library. Decoded blocks of all its databases share a bounded cache.
    pub(crate) fn new(library: Library) -> Result<OpenedDatabases, CliError> {
        let cache = BlockCache::new(cache_bytes());
        let mut shelf =
            OpenedDatabases { sound: Databases::new(library.rules(), library.set()), damaged: BTreeMap::new() };
        for (stones, held) in library.into_files() {
            match held {
                LibraryFile::Sound(scores) => {
                    shelf.sound.insert(stones, CachedScores::sharing(*scores, Arc::clone(&cache)))?
                }
                LibraryFile::Damaged { path, what, brief, is_damage } => {
                    shelf.damaged.insert(stones, DamagedDatabase { path, message: what, what: brief, is_damage });
                }
            }
        }
        Ok(shelf)
    }
}

/// Opens all databases of a directory.
pub(crate) fn library(disk: &dyn Disk, dir: &Path) -> Result<Library, CliError> {
    refuse_file(disk, dir)?;
    let paths = disk.list(&dir.join("databases"))?;
    let named = paths.into_iter().filter(|path| Library::stones_of(path).is_some());
    let library = Library::new(named.map(|path| (path.clone(), Scores::open(disk, &path))))?;
    if library.files().is_empty() {
        return Err(CliError::NoDatabases { dir: dir.to_path_buf(), stones: None, build: building(dir, None) });
    }
    Ok(library)
}

/// The numbers of stones that are asked for: those of the range, or of all databases that are there.
///
/// # Errors
/// [`CliError::NoDatabases`] if there is none of the range.
pub(crate) fn chosen(library: &Library, args: &DatabasesArgs) -> Result<Vec<u32>, CliError> {
    let there = |range: &RangeInclusive<u32>| library.files().keys().any(|stones| range.contains(stones));
    match &args.stones {
        None => Ok(library.files().keys().copied().collect()),
        Some(range) if there(range) => Ok(range.clone().collect()),
        Some(range) => Err(CliError::NoDatabases {
            dir: args.dir.clone(),
            stones: Some(range.clone()),
            build: building(&args.dir, Some(*range.end())),
        }),
    }
}

/// Refuses a run directory that is a file.
///
/// # Errors
/// [`CliError::NotADirectory`].
pub(crate) fn refuse_file(disk: &dyn Disk, dir: &Path) -> Result<(), CliError> {
    match disk.bytes(dir) {
        Ok(Some(_)) => Err(CliError::NotADirectory(dir.to_path_buf())),
        _ => Ok(()),
    }
}

/// The command that builds databases in a directory, up to so many stones if the manifest does not ask for them.
pub(crate) fn building(dir: &Path, stones: Option<u32>) -> String {
    let path = manifest_path(dir);
    let manifest = if path.is_file() { path.into_os_string() } else { "MANIFEST".into() };
    let mut words = vec!["awari".into(), "run".into(), manifest, "--dir".into(), dir.as_os_str().to_owned()];
    if let Some(stones) = stones {
        words.extend(["--set".into(), format!("build.stones=0..{stones}").into()]);
    }
    command_line(words)
}

/// The name under which a run knows a database.
pub(crate) fn artifact(stones: u32) -> ArtifactName {
    name(format!("databases/{stones:02}.awari"))
}

/// The name under which a run knows the statistics of a database.
pub(crate) fn statistics(stones: u32) -> ArtifactName {
    name(format!("stats/{stones:02}.json"))
}

fn name(text: String) -> ArtifactName {
    ArtifactName::new(text).expect("names of artifacts are made of letters, digits and slashes")
}

/// As many threads as asked for; 0 is one for each core.
pub(crate) fn threads(asked: u16) -> Result<ThreadPool, CliError> {
    let threads = if asked == 0 { clock::cores() } else { usize::from(asked) };
    heap::room_for_threads(threads).map_err(CliError::Thread)?;
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?)
}

/// Bytes for decoded blocks: enough for the rows at hand, little beside what the machine has.
pub(crate) fn cache_bytes() -> u64 {
    const LEAST: u64 = 64 << 20;
    const MOST: u64 = 4 << 30;
    clock::available_bytes().map_or(LEAST, |available| (available / 4).clamp(LEAST, MOST))
}
