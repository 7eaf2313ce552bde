//! The files of a run: names, identities, and opening and writing them.

use disk::{Digest, Disk, Staged};
use game::{Index, PositionSet, Rules, Slab};
use pipeline::{ArtifactName, StageContext, StageError, StageReport, StageResult as Result};
use planner::Settings;
use std::path::Path;
use store::{
    Codec, FileKind, FileOrientation, Identity, Role, Scores, Shape, SlabShape, StoreError, Unverified, ValueRange,
    Writer,
};

/// Returns `databases/NN.awari`.
pub(crate) fn database(stones: u32) -> ArtifactName {
    name(format!("databases/{stones:02}.awari"))
}

/// Returns `captures/NN.cap`.
pub(crate) fn capture(stones: u32) -> ArtifactName {
    name(format!("captures/{stones:02}.cap"))
}

/// Returns the name of an artifact.
pub(crate) fn name(text: String) -> ArtifactName {
    ArtifactName::new(text).expect("names of artifacts are made of letters, digits and slashes")
}

/// Returns the identity of a file, for its header.
pub fn identity(rules: &str, set: PositionSet, kind: FileKind, stones: u32) -> Identity {
    Identity {
        kind,
        rules: rules.to_owned(),
        positions: set.to_string(),
        stones: stones as u8,
        orientation: orientation(kind),
    }
}

/// Returns the kind of databases by some rules: scores, or pairs of bounds.
pub fn database_kind(rules: &Rules) -> FileKind {
    if rules.has_scores() { FileKind::Database } else { FileKind::Bounds }
}

/// Returns the kind of captures by some rules.
pub(crate) fn capture_kind(rules: &Rules) -> FileKind {
    if rules.has_scores() { FileKind::Capture } else { FileKind::BoundCaptures }
}

fn orientation(kind: FileKind) -> FileOrientation {
    match kind {
        FileKind::Capture
        | FileKind::BoundCaptures
        | FileKind::Plane { role: Role::CandidateSeeds | Role::Lost, .. } => FileOrientation::MoverMajor,
        FileKind::Database
        | FileKind::Snapshot
        | FileKind::Bounds
        | FileKind::BoundSnapshot
        | FileKind::Plane { .. } => FileOrientation::OpponentMajor,
    }
}

/// Returns the shape of a file over an index.
pub fn shape(index: &Index, kind: FileKind) -> Shape {
    shape_of(index.set(), kind, index.stones())
}

/// As [`shape`], without the tables of an index. Databases alone have the opening position, as a slab of its own. A
/// file of pairs has all slabs twice.
pub fn shape_of(set: PositionSet, kind: FileKind, stones: u32) -> Shape {
    let opening = set.opening(stones).filter(|_| matches!(kind, FileKind::Database | FileKind::Bounds));
    let opening = opening.map(|_| SlabShape { rows: 1, columns: 1 });
    let slabs: Vec<SlabShape> = slab_shapes(&set.slabs(stones), orientation(kind)).chain(opening).collect();
    let sections = if kind.has_pairs() { 2 } else { 1 };
    Shape::new(slabs.repeat(sections)).expect("an index has 1 to 49 slabs, none of them empty")
}

/// Returns the shapes of slabs in an orientation.
fn slab_shapes(slabs: &[Slab], orientation: FileOrientation) -> impl Iterator<Item = SlabShape> + '_ {
    let orientation = match orientation {
        FileOrientation::MoverMajor => game::Orientation::MoverMajor,
        FileOrientation::OpponentMajor => game::Orientation::OpponentMajor,
    };
    slabs.iter().map(move |slab| {
        let (rows, columns) = slab.rows_columns(orientation);
        SlabShape { rows, columns }
    })
}

/// Returns the range of the values in a file.
pub fn range(kind: FileKind, stones: u32) -> ValueRange {
    match kind {
        FileKind::Capture | FileKind::BoundCaptures => ValueRange::new(solvers::capture::none(stones), stones as i8),
        FileKind::Database | FileKind::Snapshot | FileKind::Bounds | FileKind::BoundSnapshot => {
            ValueRange::new(-(stones as i8), stones as i8)
        }
        FileKind::Plane { .. } => ValueRange::new(i8::MIN, i8::MAX),
    }
}

/// Opens captures or a database through a map, and checks what they are.
pub(crate) fn open(disk: &dyn Disk, path: &Path, settings: &Settings, kind: FileKind, index: &Index) -> Result<Scores> {
    let opened = Scores::open(disk, path).and_then(|file| expect(file, settings, kind, index));
    opened.map_err(|error| unreadable_as(kind, index, error))
}

/// As [`open`], for reads block by block.
pub(crate) fn open_windowed(
    disk: &dyn Disk,
    path: &Path,
    settings: &Settings,
    kind: FileKind,
    index: &Index,
) -> Result<Scores> {
    let opened = Scores::open_windowed(disk, path).and_then(|file| expect(file, settings, kind, index));
    opened.map_err(|error| unreadable_as(kind, index, error))
}

/// Checks that a file of `index` is of this kind.
pub(crate) fn expect(file: Unverified, settings: &Settings, kind: FileKind, index: &Index) -> store::Result<Scores> {
    let identity = identity(settings.rules.name, settings.set, kind, index.stones());
    expect_values(file, &identity, &shape(index, kind), range(kind, index.stones()))
}

fn unreadable_as(kind: FileKind, index: &Index, error: StoreError) -> StageError {
    let is_capture = matches!(kind, FileKind::Capture | FileKind::BoundCaptures);
    unreadable(&if is_capture { capture(index.stones()) } else { database(index.stones()) }, error)
}

/// Checks identity, shape and range of a file.
fn expect_values(file: Unverified, identity: &Identity, shape: &Shape, range: ValueRange) -> store::Result<Scores> {
    if file.range() != range {
        return Err(StoreError::Mismatch {
            path: file.path().to_path_buf(),
            expected: format!("values in {range}"),
            found: format!("values in {}", file.range()),
        });
    }
    file.expect(identity, shape)
}

/// Identity and range of snapshots of counting: scores and counts, `MoverMajor`.
pub(crate) struct CountsFormat {
    identity: Identity,
    range: ValueRange,
}

impl CountsFormat {
    /// Returns the format for the database of `index`.
    pub(crate) fn new(rules: &str, index: &Index) -> CountsFormat {
        let identity = identity(rules, index.set(), FileKind::Snapshot, index.stones());
        let (low, high) = solvers::counting::checkpoint_range(index.stones());
        let identity = Identity { orientation: FileOrientation::MoverMajor, ..identity };
        CountsFormat { identity, range: ValueRange::new(low, high) }
    }

    /// Opens a snapshot. It is not mapped: a read error of a map ends the process.
    pub(crate) fn open(&self, disk: &dyn Disk, path: &Path, shape: &Shape) -> store::Result<Scores> {
        expect_values(Scores::open_windowed(disk, path)?, &self.identity, shape, self.range)
    }

    /// Publishes a snapshot.
    pub(crate) fn write(&self, disk: &dyn Disk, path: &Path, shape: &Shape, values: &[i8]) -> store::Result<()> {
        store::write(disk, path, &self.identity, shape, self.range, Codec::Packed, values).map(drop)
    }
}

/// Writes a small file, and adds it to the report.
pub(crate) fn publish(
    context: &StageContext,
    report: StageReport,
    name: ArtifactName,
    bytes: &[u8],
) -> Result<StageReport> {
    let mut staged = Staged::create(context.disk(), &context.output(&name), bytes.len() as u64)?;
    staged.write(bytes)?;
    staged.publish()?;
    Ok(report.wrote(name, Digest::of(bytes)))
}

/// Returns the writer of a file of `index`.
pub(crate) fn create<'d>(
    disk: &'d dyn Disk,
    path: &Path,
    settings: &Settings,
    kind: FileKind,
    index: &Index,
    codec: Codec,
) -> Result<Writer<'d>> {
    let identity = identity(settings.rules.name, settings.set, kind, index.stones());
    let shape = shape(index, kind);
    Writer::create(disk, path, &identity, &shape, range(kind, index.stones()), codec).map_err(unwritable)
}

/// Publishes a file of `index` with the scores in `runs`, in canonical order, and returns their digest.
pub(crate) fn write<'a>(
    disk: &dyn Disk,
    path: &Path,
    settings: &Settings,
    kind: FileKind,
    index: &Index,
    codec: Codec,
    runs: impl IntoIterator<Item = &'a [i8]>,
) -> Result<Digest> {
    let mut writer = create(disk, path, settings, kind, index, codec)?;
    let appended = runs.into_iter().try_for_each(|run| writer.append(run));
    let finished = appended.and_then(|()| writer.finish());
    let finished = finished.map_err(|error| match kind {
        FileKind::Database | FileKind::Bounds => unwritable_scores(index.stones(), error),
        _ => unwritable(error),
    });
    Ok(finished?.digest)
}

/// Converts an error of writing an output.
pub(crate) fn unwritable(error: StoreError) -> StageError {
    match error {
        StoreError::Disk(error) => StageError::Disk(error),
        error => StageError::failed(error),
    }
}

/// Converts an error of writing the scores of a database. Impossible scores follow from wrong captures with valid
/// checksums.
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

/// Converts an error of reading an input.
pub(crate) fn unreadable(artifact: &ArtifactName, error: StoreError) -> StageError {
    match error {
        StoreError::Disk(error) => StageError::Disk(error),
        error => StageError::Damaged {
            artifact: artifact.clone(),
            what: error.what(),
            // Every reader detects any other damage.
            silent: matches!(error, StoreError::DigestDiffers { .. }),
        },
    }
}

/// Handles an error of reading the snapshot in `directory`. A damaged or unrelated one is ignored: the stage starts
/// over. After a failure of the disk the snapshot may be intact and hold hours of work, which a stage that starts over
/// would replace, so the user decides.
pub(crate) fn ignore_snapshot(directory: &Path, error: StoreError) -> Result<()> {
    match error {
        StoreError::Disk(error) if !error.is_not_found() => Err(StageError::failed(format!(
            "cannot read its snapshot: {error}; if this persists, remove {} to start the stage over",
            directory.display()
        ))),
        _ => Ok(()),
    }
}
