//! Access to the databases of a run directory.

use crate::args::{DatabasesArgs, LibraryArgs};
use crate::error::{CliError, Result};
use crate::output::print;
use crate::text::shell::{building, command_line, path_argument};
use crate::text::terminal::say;
use check::Databases;
use disk::{Disk, clock};
use exchange::Exported;
use game::Rules;
use oracle::{Library, LibraryFile, Oracle};
use pipeline::{ArtifactName, Exit, Plan};
use rayon::ThreadPool;
use search::Evaluation;
use stages::kinds;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{BlockCache, CachedScores, Scores};

/// The databases of a library, with indices for checks.
pub(crate) struct OpenedDatabases {
    /// Databases with a sound header and block index: their scores, or their lower bounds.
    pub(crate) sound: Databases<CachedScores>,
    /// The upper bounds of the same databases, if they are of pairs.
    pub(crate) upper: Option<Databases<CachedScores>>,
    /// The other databases by stones.
    pub(crate) damaged: BTreeMap<u32, DamagedDatabase>,
}

/// A database whose file is damaged or cannot be opened.
pub(crate) struct DamagedDatabase {
    pub(crate) path: PathBuf,
    /// The message, with path and remedy.
    pub(crate) message: String,
    /// The message without path and remedy.
    pub(crate) what: String,
    /// Whether its bytes are wrong; otherwise it cannot be opened.
    pub(crate) is_damage: bool,
}

impl OpenedDatabases {
    /// Returns the lower and the upper bounds of positions; scores are both.
    pub(crate) fn bounds(&self) -> [&Databases<CachedScores>; 2] {
        [&self.sound, self.upper.as_ref().unwrap_or(&self.sound)]
    }

    /// Indexes the databases of a library. Their decoded blocks share a bounded cache.
    pub(crate) fn new(library: Library) -> Result<OpenedDatabases> {
        OpenedDatabases::with_cache(library, cache_bytes())
    }

    /// As [`new`](Self::new), with a cache of a number of bytes.
    pub(crate) fn with_cache(library: Library, bytes: u64) -> Result<OpenedDatabases> {
        let cache = BlockCache::new(bytes);
        let none = || Databases::new(library.rules(), library.set());
        let upper = (!library.rules().has_scores()).then(none);
        let mut databases = OpenedDatabases { sound: none(), upper, damaged: BTreeMap::new() };
        for (stones, held) in library.into_files() {
            match held {
                LibraryFile::Sound(scores) => match &mut databases.upper {
                    Some(upper) => {
                        let [lows, highs] = CachedScores::sections(*scores, Arc::clone(&cache));
                        databases.sound.insert(stones, lows)?;
                        upper.insert(stones, highs)?;
                    }
                    None => databases.sound.insert(stones, CachedScores::sharing(*scores, Arc::clone(&cache)))?,
                },
                LibraryFile::Damaged { path, error, is_damage } => {
                    let (message, what) = (error.to_string(), error.what());
                    databases.damaged.insert(stones, DamagedDatabase { path, message, what, is_damage });
                }
            }
        }
        Ok(databases)
    }
}

/// Refuses a run directory that is a file or a special file, or a link to nothing.
pub(crate) fn refuse_file(disk: &dyn Disk, dir: &Path) -> Result<()> {
    if let (Ok(target), false) = (dir.read_link(), dir.exists()) {
        return Err(CliError::DanglingLink { link: dir.to_path_buf(), target });
    }
    match disk.bytes(dir) {
        Ok(Some(_)) => Err(CliError::NotADirectory(dir.to_path_buf())),
        Err(_) if dir.exists() && !dir.is_dir() => Err(CliError::NotADirectory(dir.to_path_buf())),
        _ => Ok(()),
    }
}

/// Opens all databases of a directory.
pub(crate) fn library(disk: &dyn Disk, dir: &Path) -> Result<Library> {
    refuse_file(disk, dir)?;
    let paths = disk.list(&dir.join("databases"))?;
    let named = paths.into_iter().filter(|path| Library::stones_of(path).is_some());
    let library = Library::new(named.map(|path| (path.clone(), Scores::open(disk, &path))))?;
    if library.files().is_empty() {
        if disk.list(dir)?.iter().any(|path| Library::stones_of(path).is_some()) {
            return Err(CliError::DatabasesFolder { dir: dir.to_path_buf(), remedy: folder_remedy(dir) });
        }
        return Err(CliError::NoDatabases { dir: dir.to_path_buf(), stones: None, build: building(dir, None) });
    }
    Ok(library)
}

/// Says what to do about a directory that holds databases itself.
fn folder_remedy(dir: &Path) -> String {
    let is_folder = dir.file_name().is_some_and(|name| name == "databases");
    match dir.parent().filter(|_| is_folder) {
        Some(above) if above.as_os_str().is_empty() => "use --dir .".to_owned(),
        Some(above) => format!("use {}", command_line([Path::new("--dir"), &path_argument(above)])),
        None => format!("move them to {}", dir.join("databases").display()),
    }
}

/// Opens all databases of a directory; without a directory there are none. The rules that are `wanted`, if
/// any, must be those of the databases; without databases they are those of awari by default.
pub(crate) fn library_by(disk: &dyn Disk, args: &LibraryArgs) -> Result<Library> {
    let Some(dir) = &args.dir else { return Ok(Library::empty(args.rules.unwrap_or(Rules::AWARI))) };
    let library = library(disk, dir)?;
    match args.rules {
        Some(wanted) if wanted != library.rules() => {
            Err(CliError::OtherRules { dir: dir.to_path_buf(), found: library.rules().name, wanted: wanted.name })
        }
        _ => Ok(library),
    }
}

/// Makes an oracle of the [library](library_by). A search decodes thousands of blocks, which the cache keeps.
pub(crate) fn oracle(disk: &dyn Disk, args: &LibraryArgs) -> Result<Oracle> {
    Ok(Oracle::new(library_by(disk, args)?, cache_bytes()))
}

/// Returns the evaluation of a run directory, if the stage `evaluation` has made one; else the one that the
/// program contains.
pub(crate) fn evaluation(disk: &dyn Disk, dir: Option<&Path>) -> Result<UsedEvaluation> {
    let path = dir.map(Evaluation::path);
    let read = path.as_ref().map(|path| disk.read(path, Evaluation::FILE_BYTES + 1));
    match (path, read) {
        (Some(path), Some(Ok(bytes))) => match Evaluation::from_bytes(&bytes) {
            Ok(evaluation) => Ok(UsedEvaluation { evaluation, path: Some(path) }),
            Err(error) => Err(CliError::Evaluation { path, error: error.to_string() }),
        },
        (Some(path), Some(Err(error))) if !error.is_not_found() => {
            Err(CliError::Evaluation { path, error: error.to_string() })
        }
        _ => Ok(UsedEvaluation { evaluation: Evaluation::default(), path: None }),
    }
}

/// An evaluation and the file that it was read from.
#[derive(Clone)]
pub(crate) struct UsedEvaluation {
    pub(crate) evaluation: Evaluation,
    /// None if the program contains it.
    pub(crate) path: Option<PathBuf>,
}

impl UsedEvaluation {
    /// Says where the evaluation comes from.
    pub(crate) fn text(&self) -> String {
        match &self.path {
            Some(path) => format!("estimates by the evaluation {}", path.display()),
            None => "estimates by the evaluation of the program".to_owned(),
        }
    }
}

/// Whether a directory holds databases or captures, sound or damaged.
pub(crate) fn holds_artifacts(disk: &dyn Disk, dir: &Path) -> bool {
    let is_artifact = |path: &PathBuf| Library::stones_of(path).is_some();
    let folders = ["databases", "captures"];
    folders.iter().any(|folder| disk.list(&dir.join(folder)).is_ok_and(|paths| paths.iter().any(is_artifact)))
}

/// Returns the scores of a database.
pub(crate) fn sound(library: &Library, stones: u32) -> Result<&Scores> {
    match library.files().get(&stones) {
        Some(LibraryFile::Sound(scores)) => Ok(scores),
        Some(LibraryFile::Damaged { error, .. }) => Err(CliError::Damaged { what: error.to_string() }),
        None => Err(library.missing(stones).into()),
    }
}

/// Prints the line of a written file.
pub(crate) fn report(file: &Exported) -> Result<()> {
    let what = if file.is_new { "written" } else { "identical" };
    print(&format!("{} {what} {}\n", file.path.display(), file.bytes))
}

/// Reports that writing files stopped on request.
pub(crate) fn stopped_at(stones: u32) -> Exit {
    say(format_args!("stopped at {}; files written before it are complete", artifact(stones)));
    Exit::Stopped
}

/// Returns the requested stones: those of the range, or of all databases.
pub(crate) fn chosen(library: &Library, args: &DatabasesArgs) -> Result<Vec<u32>> {
    let there = |range: &RangeInclusive<u32>| library.files().keys().any(|stones| range.contains(stones));
    match &args.stones {
        None => Ok(library.files().keys().copied().collect()),
        Some(range) if there(range) => Ok(range.clone().filter(|&stones| !library.is_omitted(stones)).collect()),
        Some(range) => Err(CliError::NoDatabases {
            dir: args.dir.clone(),
            stones: Some(range.clone()),
            build: building(&args.dir, Some(*range.end())),
        }),
    }
}

/// Returns the artifact of a database.
pub(crate) fn artifact(stones: u32) -> ArtifactName {
    name(format!("databases/{stones:02}.awari"))
}

/// Returns the artifact of the statistics of a database.
pub(crate) fn statistics(stones: u32) -> ArtifactName {
    name(format!("stats/{stones:02}.json"))
}

fn name(text: String) -> ArtifactName {
    ArtifactName::new(text).expect("names of artifacts are made of letters, digits and slashes")
}

/// Makes a pool of threads; 0 is one per core.
pub(crate) fn threads(requested: u16) -> Result<ThreadPool> {
    let threads = if requested == 0 { clock::cores() } else { usize::from(requested) };
    Ok(stages::thread_pool(threads)?)
}

/// Returns the size of a cache for decoded blocks: a quarter of the available memory, within limits.
pub(crate) fn cache_bytes() -> u64 {
    const LEAST: u64 = 64 << 20;
    const MOST: u64 = 4 << 30;
    clock::available_bytes().map_or(LEAST, |available| (available / 4).clamp(LEAST, MOST))
}

/// Returns the stones of the databases that a plan solves.
pub(crate) fn solved(plan: &Plan) -> Vec<u32> {
    let solved = plan.steps.iter().filter(|step| kinds::makes_database(&step.stage));
    solved.filter_map(|step| step.stage.parameters().first().copied()).collect()
}
