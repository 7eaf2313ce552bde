//! The databases of a directory.

use crate::error::{Mixed, OracleError};
use game::{Halves, Opening, PositionSet, Rules, STONES_MAX};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{FileKind, FileOrientation, Identity, Scores, Shape, SlabShape, StoreError, Unverified, ValueRange};

/// Databases of one rule set and one position set, at most one for each number of stones.
#[derive(Debug)]
pub struct Library {
    rules: Rules,
    set: PositionSet,
    files: BTreeMap<u32, LibraryFile>,
}

/// The file of a database, opened or damaged.
#[derive(Debug)]
pub enum LibraryFile {
    /// The header and block index are sound, and match the name.
    Sound(Box<Scores>),
    /// The file cannot be opened, or its header or block index is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        error: Arc<StoreError>,
        /// Whether its bytes are wrong, or something else stands in its place; otherwise this process cannot open it.
        is_damage: bool,
    },
}

impl LibraryFile {
    fn damaged(path: PathBuf, error: StoreError) -> LibraryFile {
        let is_damage = match &error {
            StoreError::Disk(error) => error.is_unreadable() || !error.is_of_system(),
            _ => true,
        };
        LibraryFile::Damaged { path, error: Arc::new(error), is_damage }
    }
}

impl Library {
    /// Makes a library without databases.
    pub fn empty(rules: Rules) -> Library {
        Library { rules, set: PositionSet::All, files: BTreeMap::new() }
    }

    /// Makes a library of opened files. A file is named after its stones, `12.awari`; others are ignored.
    ///
    /// # Errors
    /// [`OracleError::Mixed`], [`OracleError::Misplaced`] or [`OracleError::Unknown`] with the path of the wrong file;
    /// [`OracleError::Store`] if the operating system fails. A damaged or unreadable file is not an error.
    pub fn new(
        files: impl IntoIterator<Item = (PathBuf, Result<Unverified, StoreError>)>,
    ) -> Result<Library, OracleError> {
        let mut library = Library::empty(Rules::AWARI);
        let mut first: Option<(PathBuf, Identity)> = None;
        let mut named = Vec::new();
        for (path, opened) in files {
            let Some(stones) = Library::stones_of(&path) else { continue };
            let file = match opened {
                Ok(file) => file,
                Err(error) if is_of_the_file(&error) => {
                    library.files.insert(stones, LibraryFile::damaged(path, error));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let found = file.identity().clone();
            match &first {
                None => {
                    (library.rules, library.set) = kind_of(&path, &found)?;
                    first = Some((path.clone(), found.clone()));
                }
                Some((first_path, identity))
                    if (&identity.rules, &identity.positions) != (&found.rules, &found.positions) =>
                {
                    return Err(OracleError::Mixed(Box::new(Mixed {
                        first_path: first_path.clone(),
                        first_rules: identity.rules.clone(),
                        first_positions: identity.positions.clone(),
                        path,
                        rules: found.rules,
                        positions: found.positions,
                    })));
                }
                Some(_) => {}
            }
            let expected = library.identity(stones);
            if found != expected {
                let (expected, found) = (expected.to_string(), found.to_string());
                return Err(OracleError::Misplaced { path, expected, found });
            }
            let range = ValueRange::new(-(stones as i8), stones as i8);
            if file.range() != range {
                let (expected, found) = (format!("values in {range}"), format!("values in {}", file.range()));
                let error = StoreError::Mismatch { path: path.clone(), expected, found };
                library.files.insert(stones, LibraryFile::damaged(path, error));
                continue;
            }
            named.push((stones, path, file));
        }
        library.set = with_opening(library.set, named.iter().map(|(stones, path, file)| (*stones, &**path, file)))?;
        for (stones, _, file) in named {
            let scores = file.expect(&library.identity(stones), &library.shape(stones)?)?;
            library.files.insert(stones, LibraryFile::Sound(Box::new(scores)));
        }
        Ok(library)
    }

    /// Returns the rules and positions that files of several numbers of stones have in common.
    ///
    /// # Errors
    /// [`OracleError::Unknown`], [`OracleError::Beyond`].
    ///
    /// # Panics
    /// Without files.
    pub fn kind_of<'a>(
        files: impl IntoIterator<Item = (u32, &'a Path, &'a Unverified)> + Clone,
    ) -> Result<(Rules, PositionSet), OracleError> {
        let (_, path, first) = files.clone().into_iter().next().expect("there are files");
        let (rules, set) = kind_of(path, first.identity())?;
        Ok((rules, with_opening(set, files)?))
    }

    /// Returns the stones in the name of a file: 12 for `12.awari`.
    pub fn stones_of(path: &Path) -> Option<u32> {
        Library::stones_before(path, ".awari")
    }

    /// Returns the stones in the name of a file before a suffix, in two digits.
    pub fn stones_before(path: &Path, suffix: &str) -> Option<u32> {
        let stem = path.file_name()?.to_str()?.strip_suffix(suffix)?;
        let stones: u32 = stem.parse().ok()?;
        (stones <= STONES_MAX && format!("{stones:02}") == stem).then_some(stones)
    }

    /// Returns the rules of all databases.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Returns the position set of all databases.
    pub fn set(&self) -> PositionSet {
        self.set
    }

    /// Returns the files by stones, ascending.
    pub fn files(&self) -> &BTreeMap<u32, LibraryFile> {
        &self.files
    }

    /// Returns the error of a missing database.
    pub fn missing(&self, stones: u32) -> OracleError {
        OracleError::Missing { stones, largest: self.files.keys().max().copied() }
    }

    /// Returns the files by stones, ascending.
    pub fn into_files(self) -> BTreeMap<u32, LibraryFile> {
        self.files
    }

    /// Whether a number of stones is omitted as in the whole game: the databases are complete without it, since no
    /// capture leads there from the largest one.
    pub fn is_omitted(&self, stones: u32) -> bool {
        let Some(&largest) = self.files.keys().max() else { return false };
        let mut needed = self.rules.smaller(largest);
        stones < largest
            && !self.files.contains_key(&stones)
            && !needed.contains(&stones)
            && needed.all(|needed| self.files.contains_key(&needed))
    }

    fn identity(&self, stones: u32) -> Identity {
        Identity {
            kind: if self.rules.has_scores() { FileKind::Database } else { FileKind::Bounds },
            rules: self.rules.name.to_owned(),
            positions: self.set.to_string(),
            stones: stones as u8,
            orientation: FileOrientation::OpponentMajor,
        }
    }

    fn shape(&self, stones: u32) -> Result<Shape, StoreError> {
        let slabs = (0..=stones).map(|mover_stones| SlabShape {
            rows: self.set.opponent_halves(stones - mover_stones),
            columns: Halves::count(mover_stones),
        });
        let opening = self.set.opening(stones).map(|_| SlabShape { rows: 1, columns: 1 });
        let sections = if self.rules.has_scores() { 1 } else { 2 };
        Shape::new(slabs.chain(opening).collect::<Vec<_>>().repeat(sections))
    }
}

/// Returns the rules and positions that a header names.
fn kind_of(path: &Path, identity: &Identity) -> Result<(Rules, PositionSet), OracleError> {
    let unknown = |what: String| OracleError::Unknown { path: path.to_path_buf(), what };
    let rules = Rules::by_name(&identity.rules).ok_or_else(|| unknown(format!("the rules \"{}\"", identity.rules)))?;
    let set = identity.positions.parse().map_err(|_| unknown(format!("the positions \"{}\"", identity.positions)))?;
    Ok((rules, set))
}

/// Returns the position set with the opening that a file has as one slab more than its stones require. No
/// other file has more stones.
fn with_opening<'a>(
    set: PositionSet,
    files: impl IntoIterator<Item = (u32, &'a Path, &'a Unverified)> + Clone,
) -> Result<PositionSet, OracleError> {
    if set == PositionSet::All {
        return Ok(set);
    }
    let has_opening = |stones: u32, file: &Unverified| {
        let sections = if file.identity().kind.has_pairs() { 2 } else { 1 };
        file.shape().slabs().len() == sections * (stones as usize + 2)
    };
    let openings = files.clone().into_iter().filter(|(stones, _, file)| has_opening(*stones, file));
    let Some((opening, holder)) = openings
        .filter_map(|(stones, path, _)| Some((Opening::with_stones(stones)?, path)))
        .min_by_key(|(o, _)| o.stones())
    else {
        return Ok(set);
    };
    match files.into_iter().find(|(stones, ..)| *stones > opening.stones()) {
        Some((_, path, _)) => Err(OracleError::Beyond {
            path: path.to_path_buf(),
            opening: opening.stones(),
            holder: holder.to_path_buf(),
        }),
        None => Ok(PositionSet::Reachable { opening }),
    }
}

/// Whether an error concerns only one file, so that the others can be used.
fn is_of_the_file(error: &StoreError) -> bool {
    match error {
        StoreError::Disk(error) => !error.is_of_limits(),
        StoreError::Version { .. } => true,
        error => error.is_damage(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_the_stones() {
        let check = |name: &str, expect| assert_eq!(Library::stones_of(Path::new(name)), expect, "{name}");
        check("x/12.awari", Some(12));
        check("00.awari", Some(0));
        for other in ["0.awari", "012.awari", "+1.awari", "49.awari", "12.cap", "x.awari", ".awari"] {
            check(other, None);
        }
    }
}
