//! Archives: databases in their smallest form, and their restoration.
//!
//! The best capture of a position follows from the smaller databases, and more than a third of all positions score
//! exactly that. An archive is a file of scores coded with the best capture of each as context (see
//! [`store::Archive`]), in some 2 bits a position. Writing and reading it takes the smaller databases, so archives are
//! restored from the smallest up.

use crate::error::ExchangeError;
use crate::export::Exported;
use disk::Disk;
use game::{Index, Orientation, Score, Slab};
use rayon::prelude::*;
use solvers::capture::{self, CaptureError, ChildRow, SmallerRows};
use solvers::{Bytes, DriverObserver, Tables};
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Archive, CachedScores, Codec, Identity, Scores, Shape, StoreError, ValueRange, Window, Writer};

/// Side of the squares in which captures are transposed: two of them fit in the first-level cache.
const SQUARE: usize = 64;

/// The best capture of every position in the slabs of a database, in memory: a byte a position.
#[derive(Debug)]
pub struct BestCaptures {
    index: Index,
    /// By section of the database, `MoverMajor`.
    sections: Vec<Bytes>,
}

/// The smaller databases by number of stones, and the request to stop.
struct OpenDatabases<'a> {
    databases: &'a [CachedScores],
    stop: &'a AtomicBool,
}

impl SmallerRows for OpenDatabases<'_> {
    type Window = Window;
    type Error = StoreError;

    fn window(&self) -> Window {
        Window::new()
    }

    fn row<'w>(&'w self, window: &'w mut Window, row: ChildRow) -> Result<&'w [Score], StoreError> {
        self.databases[row.stones as usize].row(row.mover_stones as usize, row.row, row.columns, window)
    }
}

impl DriverObserver for OpenDatabases<'_> {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl BestCaptures {
    /// Derives the best captures from the databases of 0, 1, 2 stones and so on, up to two stones fewer than the index
    /// has: for each section of the database from a section of the smaller ones.
    ///
    /// # Errors
    /// [`ExchangeError::Store`] if one cannot be read, [`ExchangeError::Stopped`], [`ExchangeError::Memory`].
    ///
    /// # Panics
    /// When there are too few databases, or the tables are of other positions.
    pub fn of(
        tables: &Tables,
        index: Index,
        sections: &[&[CachedScores]],
        stop: &AtomicBool,
    ) -> Result<BestCaptures, ExchangeError> {
        let positions = index.slab_positions() as usize;
        let captures = |databases: &&[CachedScores]| {
            let mut scores =
                Bytes::zeroed(positions).map_err(|source| ExchangeError::Memory { bytes: positions, source })?;
            let files = OpenDatabases { databases, stop };
            match capture::capture_into(tables, &index, &files, &files, &mut scores, &mut |_| Ok(())) {
                Ok(()) => Ok(scores),
                Err(CaptureError::Stopped(_)) => Err(ExchangeError::Stopped),
                Err(CaptureError::Failed(error)) => Err(error.into()),
            }
        };
        let sections = sections.iter().map(captures).collect::<Result<_, ExchangeError>>()?;
        Ok(BestCaptures { index, sections })
    }

    /// Returns the number of values in the database.
    fn values(&self) -> u64 {
        self.index.positions() * self.sections.len() as u64
    }

    /// Copies the captures of some whole rows of a slab, `OpponentMajor`. The opening counts as a position without
    /// captures.
    fn of_rows(&self, positions: &Range<u64>, out: &mut Vec<i8>) {
        let section = positions.start / self.index.positions();
        let first = section * self.index.positions();
        let positions = positions.start - first..positions.end - first;
        if positions.start >= self.index.slab_positions() {
            out.clear();
            out.resize((positions.end - positions.start) as usize, capture::none(self.index.stones()));
            return;
        }
        let slab = self.slab(positions.start);
        let (rows, columns) = slab.rows_columns(Orientation::OpponentMajor);
        let (rows, columns) = (rows as usize, columns as usize);
        let first = (positions.start - slab.offset) as usize / columns;
        let scores = &self.sections[section as usize][slab.offset as usize..][..rows * columns];
        out.resize((positions.end - positions.start) as usize, 0);
        out.par_chunks_mut(SQUARE * columns).enumerate().for_each(|(band, out)| {
            let first = first + band * SQUARE;
            for column in (0..columns).step_by(SQUARE) {
                for (row, out) in out.chunks_exact_mut(columns).enumerate() {
                    let end = columns.min(column + SQUARE);
                    for (to, out) in (column..end).zip(&mut out[column..end]) {
                        *out = scores[to * rows + first + row];
                    }
                }
            }
        });
    }

    fn slab(&self, position: u64) -> &Slab {
        let slabs = self.index.slabs();
        &slabs[slabs.partition_point(|slab| slab.offset + slab.positions() <= position)]
    }
}

/// Writes the archive of a database.
///
/// An existing archive of the same scores is kept.
///
/// # Errors
/// [`ExchangeError::Others`] if there is another file, unless `force`; [`ExchangeError::Store`];
/// [`ExchangeError::Stopped`].
///
/// # Panics
/// When captures and scores are of different databases.
pub fn archive(
    disk: &dyn Disk,
    scores: &Scores,
    captures: &BestCaptures,
    path: &Path,
    force: bool,
    stop: &AtomicBool,
) -> Result<Exported, ExchangeError> {
    assert_eq!(scores.shape().positions(), captures.values(), "captures of the same database");
    disk.check_replaceable(path)?;
    if !force && let Some(bytes) = disk.bytes(path)? {
        let there = Scores::open(disk, path).and_then(|file| Archive::expect(file, scores.identity(), scores.shape()));
        return match there {
            Ok(archive) if archive.digest() == scores.digest() && archive.verify_blocks().is_ok() => {
                Ok(Exported { path: path.to_path_buf(), bytes, is_new: false })
            }
            _ => Err(ExchangeError::Others { path: path.to_path_buf() }),
        };
    }
    let (identity, shape) = (scores.identity(), scores.shape());
    let mut writer = Writer::create(disk, path, identity, shape, scores.range(), Codec::Floors)?;
    let (mut floors, mut band) = (Vec::new(), Vec::new());
    while let Some(positions) = writer.next_band() {
        going_on(stop)?;
        captures.of_rows(&positions, &mut floors);
        band.resize(floors.len(), 0);
        scores.read_range(positions, &mut band)?;
        writer.append_band(&band, &floors)?;
    }
    let written = writer.finish()?;
    Ok(Exported { path: path.to_path_buf(), bytes: written.bytes, is_new: true })
}

/// The parameters of a restored file.
#[derive(Clone, Copy, Debug)]
pub struct RestoreTarget<'a> {
    /// The identity of the file.
    pub identity: &'a Identity,
    /// The shape of the database.
    pub shape: &'a Shape,
    /// The range of the scores.
    pub range: ValueRange,
    /// The codec.
    pub codec: Codec,
}

/// Restores the database of an archive, and publishes it once its digest is right.
///
/// # Errors
/// [`ExchangeError::Restored`] if the digest differs: a smaller database is not the one that the archive was made with.
/// [`ExchangeError::Store`], [`ExchangeError::Stopped`].
///
/// # Panics
/// When the captures are of another database.
pub fn restore(
    disk: &dyn Disk,
    archive: &Archive,
    captures: &BestCaptures,
    path: &Path,
    target: &RestoreTarget<'_>,
    stop: &AtomicBool,
) -> Result<Exported, ExchangeError> {
    assert_eq!(target.shape.positions(), captures.values(), "captures of the same database");
    let mut writer = Writer::create(disk, path, target.identity, target.shape, target.range, target.codec)?;
    let (mut floors, mut band) = (Vec::new(), Vec::new());
    let mut hasher = blake3::Hasher::new();
    for number in 0..archive.bands() {
        going_on(stop)?;
        captures.of_rows(&archive.band(number), &mut floors);
        band.resize(floors.len(), 0);
        archive.read_band(number, &floors, &mut band)?;
        hasher.update_rayon(disk::bytes_of(&band));
        writer.append(&band)?;
    }
    if *hasher.finalize().as_bytes() != archive.digest().0 {
        return Err(ExchangeError::Restored { path: archive.path().to_path_buf() });
    }
    let written = writer.finish()?;
    Ok(Exported { path: path.to_path_buf(), bytes: written.bytes, is_new: true })
}

fn going_on(stop: &AtomicBool) -> Result<(), ExchangeError> {
    if stop.load(Ordering::Relaxed) { Err(ExchangeError::Stopped) } else { Ok(()) }
}
