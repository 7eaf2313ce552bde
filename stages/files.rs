//! Which files a run has, and opening them as what they must be.

use disk::{Digest, Disk};
use game::{Index, PositionSet, Slab};
use pipeline::{ArtifactName, StageError};
use planner::Settings;
use std::path::Path;
use store::{
    Codec, FileKind, FileOrientation, Identity, Role, Scores, Shape, SlabShape, StoreError, Unverified, ValueRange,
    Writer,
};

/// `databases/NN.awari`.
pub(crate) fn database(stones: u32) -> ArtifactName {
    name(format!("databases/{stones:02}.awari"))
}

/// `captures/NN.cap`.
pub(crate) fn capture(stones: u32) -> ArtifactName {
    name(format!("captures/{stones:02}.cap"))
}

/// `stats/NN.json`.
pub(crate) fn stats(stones: u32) -> ArtifactName {
    name(format!("stats/{stones:02}.json"))
}

/// The fact that a database was verified.
pub(crate) fn verification(stones: u32) -> ArtifactName {
    name(format!("verified/{stones:02}"))
}

/// Whether a file of some build can have a name.
pub(crate) fn is_name(name: &ArtifactName) -> bool {
    let mut parts = name.as_str().split('/');
    let (folder, mut rest) = (parts.next().unwrap_or_default(), parts);
    let is_number = |text: &str| text.len() >= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbered = |extension: &str, file: Option<&str>| {
        file.and_then(|file| file.split_once('.')).is_some_and(|(stem, rest)| is_number(stem) && rest == extension)
    };
    let is_file = match folder {
        "databases" => numbered("awari", rest.next()),
        "captures" => numbered("cap", rest.next()),
        "stats" => numbered("json", rest.next()),
        "planes" => {
            let is_stones = rest.next().is_some_and(is_number);
            let file = rest.next();
            is_stones
                && (["seed", "won", "lost", "plane"].iter().any(|extension| numbered(extension, file))
                    || ["win.seeds", "candidate.seeds"].iter().any(|name| file == Some(name)))
        }
        _ => false,
    };
    is_file && rest.next().is_none()
}

fn name(text: String) -> ArtifactName {
    ArtifactName::new(text).expect("names of artifacts are made of letters, digits and slashes")
}

/// What a file with `stones` stones says it is.
pub fn identity(rules: &str, set: PositionSet, kind: FileKind, stones: u32) -> Identity {
    Identity {
        kind,
        rules: rules.to_owned(),
        positions: set.to_string(),
        stones: stones as u8,
        orientation: match kind {
            FileKind::Capture | FileKind::Plane { role: Role::CandidateSeeds | Role::Lost, .. } => {
                FileOrientation::MoverMajor
            }
            FileKind::Database | FileKind::Snapshot | FileKind::Plane { .. } => FileOrientation::OpponentMajor,
        },
    }
}

/// The shape of a file over an index.
pub fn shape(index: &Index, orientation: FileOrientation) -> Shape {
    shape_of(index.slabs(), orientation)
}

/// As [`shape`], without the tables of an index.
pub fn shape_of(slabs: &[Slab], orientation: FileOrientation) -> Shape {
    let orientation = match orientation {
        FileOrientation::MoverMajor => game::Orientation::MoverMajor,
        FileOrientation::OpponentMajor => game::Orientation::OpponentMajor,
    };
    let slabs = slabs.iter().map(|slab| {
        let (rows, columns) = slab.rows_columns(orientation);
        SlabShape { rows, columns }
    });
    Shape::new(slabs.collect()).expect("an index has 1 to 49 slabs, none of them empty")
}

/// The values that a file may hold.
pub fn range(kind: FileKind, stones: u32) -> ValueRange {
    match kind {
        FileKind::Capture => ValueRange::new(engines::capture::none(stones), stones as i8),
        FileKind::Database | FileKind::Snapshot => ValueRange::new(-(stones as i8), stones as i8),
        FileKind::Plane { .. } => ValueRange::new(i8::MIN, i8::MAX),
    }
}

/// Opens a file of `index` as what it must be, mapped.
pub(crate) fn open(
    disk: &dyn Disk,
    path: &Path,
    settings: &Settings,
    kind: FileKind,
    index: &Index,
) -> Result<Scores, StoreError> {
    expect(Scores::open(disk, path)?, settings, kind, index)
}

/// As [`open`], but to be read block by block.
pub(crate) fn open_windowed(
    disk: &dyn Disk,
    path: &Path,
    settings: &Settings,
    kind: FileKind,
    index: &Index,
) -> Result<Scores, StoreError> {
    expect(Scores::open_windowed(disk, path)?, settings, kind, index)
}

fn expect(file: Unverified, settings: &Settings, kind: FileKind, index: &Index) -> Result<Scores, StoreError> {
    let identity = identity(settings.rules.name, settings.set, kind, index.stones());
    let shape = shape(index, identity.orientation);
    let range = range(kind, index.stones());
    if file.range() != range {
        return Err(StoreError::Mismatch {
            path: file.path().to_path_buf(),
            expected: format!("values in {range}"),
            found: format!("values in {}", file.range()),
        });
    }
    file.expect(&identity, &shape)
}

/// Begins a file of `index`, to be opened by [`open`] once it is finished.
pub(crate) fn create<'d>(
    disk: &'d dyn Disk,
    path: &Path,
    settings: &Settings,
    kind: FileKind,
    index: &Index,
    codec: Codec,
) -> Result<Writer<'d>, StageError> {
    let identity = identity(settings.rules.name, settings.set, kind, index.stones());
    let shape = shape(index, identity.orientation);
    Writer::create(disk, path, &identity, &shape, range(kind, index.stones()), codec).map_err(unwritable)
}

/// Publishes a file of `index`, to be opened by [`open`]. Its scores come in runs, in canonical order. Returns their
/// digest.
pub(crate) fn write<'a>(
    disk: &dyn Disk,
    path: &Path,
    settings: &Settings,
    kind: FileKind,
    index: &Index,
    codec: Codec,
    runs: impl IntoIterator<Item = &'a [i8]>,
) -> Result<Digest, StageError> {
    let mut writer = create(disk, path, settings, kind, index, codec)?;
    let appended = runs.into_iter().try_for_each(|run| writer.append(run));
    let finished = appended.and_then(|()| writer.finish());
    let finished = finished.map_err(|error| match kind {
        FileKind::Database => unwritable_scores(index.stones(), error),
        _ => unwritable(error),
    });
    Ok(finished?.digest)
}

/// The error of a stage whose output could not be written.
pub(crate) fn unwritable(error: StoreError) -> StageError {
    match error {
        StoreError::Disk(error) => StageError::Disk(error),
        error => StageError::failed(error),
    }
}

/// The error of a stage that could not write the scores of a database. Scores that cannot be come of wrong captures under
/// right checksums.
pub(crate) fn unwritable_scores(stones: u32, error: StoreError) -> StageError {
    match error {
        StoreError::OutOfRange { position, value, range, .. } => StageError::Damaged {
            artifact: capture(stones),
            what: format!("it gives position {position} of {stones} stones the score {value}, expected {range}"),
            silent: true,
        },
        error => unwritable(error),
    }
}

/// The error of a stage whose input could not be read.
pub(crate) fn unreadable(artifact: &ArtifactName, error: StoreError) -> StageError {
    match error {
        StoreError::Disk(error) => StageError::Disk(error),
        error => StageError::Damaged {
            artifact: artifact.clone(),
            what: error.what(),
            // Every other error is one that each reader runs into.
            silent: matches!(error, StoreError::DigestDiffers { .. }),
        },
    }
}

/// What to do where the snapshot in `directory` could not be read. One that is damaged or of something else costs time
/// only: the stage begins anew. Where the disk failed it may be whole, and hours of work, and a stage that began anew
/// would soon replace it: that is for the user to say.
///
/// # Errors
/// The failure of the disk, with the remedy.
pub(crate) fn begin_anew(directory: &Path, error: StoreError) -> Result<(), StageError> {
    match error {
        StoreError::Disk(error) if !error.is_not_found() => Err(StageError::failed(format!(
            "cannot read its snapshot: {error}; if this persists, remove {}, and the stage starts over",
            directory.display()
        ))),
        _ => Ok(()),
    }
}
