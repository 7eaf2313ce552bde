//! Export of a database in another layout.

mod csv;
#[cfg(feature = "parquet")]
mod parquet;
mod raw;
mod sink;

use self::sink::ExportSink;
use crate::error::ExchangeError;
use crate::lexicographic::{Lexicographic, file_of, require_scores};
use disk::{Disk, bytes_of};
use game::{Index, Score};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use store::Scores;

/// A layout of exported files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Format {
    /// `NN.raw`, a signed byte a position in canonical order, and `NN.json`, which describes it. Of a database of pairs
    /// `NN.low.raw` and `NN.high.raw`.
    Raw,
    /// `NN.csv`, a line `position,score` for each position, or `position,low,high,score`.
    Csv,
    /// `NN.parquet`, a table of twelve pits and a score, or two bounds and a score; only with the feature `parquet`.
    Parquet,
    /// `scores.N`, as the Vrije Universiteit published those of 2002: see [`Lexicographic`]. Holds scores only.
    Vu,
}

/// Options of an export.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The layout.
    pub format: Format,
    /// Whether other files of the same name may be replaced, and csv files may have any size.
    pub force: bool,
    /// The most bytes of scores held to change their order; twice as many halve the reading.
    pub memory_bytes: u64,
    /// Set to stop the export.
    pub stop: &'a AtomicBool,
}

/// An exported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Whether it was written; otherwise one with the same bytes existed.
    pub is_new: bool,
}

/// The most positions of a csv file without `force`: up to 14 stones, 120 MB.
pub const CSV_POSITIONS_MAX: u64 = 5_000_000;

/// Approximate bytes of a line of csv.
const CSV_LINE_BYTES: u64 = 28;

/// Writes a database into a directory and returns its files.
///
/// # Errors
/// [`ExchangeError::Exists`] for a file that exists with other bytes, [`ExchangeError::TooLarge`] for csv,
/// both unless forced; [`ExchangeError::Unsupported`] if the format cannot represent the database;
/// [`ExchangeError::NoParquet`]; [`ExchangeError::Stopped`]; [`ExchangeError::Store`] and
/// [`ExchangeError::Disk`]. Completed files are kept.
///
/// # Panics
/// When the database is not of this index.
pub fn export(
    disk: &dyn Disk,
    scores: &Scores,
    index: &Index,
    directory: &Path,
    options: &Options<'_>,
) -> Result<Vec<Exported>, ExchangeError> {
    let positions = index.positions();
    let mut exporter = Exporter::new(disk, scores, index, directory, options);
    let values = if exporter.has_pairs { 2 * positions } else { positions };
    assert_eq!(scores.shape().positions(), values, "the database is of this index");
    match options.format {
        Format::Raw => raw::write(&mut exporter)?,
        Format::Csv if positions > CSV_POSITIONS_MAX && !options.force => {
            return Err(ExchangeError::TooLarge {
                stones: index.stones(),
                positions,
                bytes: positions * CSV_LINE_BYTES,
                limit: CSV_POSITIONS_MAX,
            });
        }
        Format::Csv => csv::write(&mut exporter)?,
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::write(&mut exporter)?,
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => return Err(ExchangeError::NoParquet),
        Format::Vu => write_lexicographic(&mut exporter)?,
    }
    Ok(exporter.files)
}

/// The state of an export.
pub(crate) struct Exporter<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) scores: &'a Scores,
    pub(crate) index: &'a Index,
    /// Whether positions have two bounds instead of a score.
    pub(crate) has_pairs: bool,
    directory: &'a Path,
    options: &'a Options<'a>,
    files: Vec<Exported>,
}

impl<'a> Exporter<'a> {
    pub(crate) fn new(
        disk: &'a dyn Disk,
        scores: &'a Scores,
        index: &'a Index,
        directory: &'a Path,
        options: &'a Options<'a>,
    ) -> Exporter<'a> {
        let has_pairs = scores.identity().kind.has_pairs();
        Exporter { disk, scores, index, has_pairs, directory, options, files: Vec::new() }
    }

    /// Reads the scores of consecutive positions into `low`, or their bounds into `low` and `high`. Without
    /// pairs `high` becomes empty.
    pub(crate) fn read(
        &self,
        positions: Range<u64>,
        low: &mut Vec<Score>,
        high: &mut Vec<Score>,
    ) -> Result<(), ExchangeError> {
        let (first, count) = (positions.start, (positions.end - positions.start) as usize);
        low.resize(count, 0);
        high.resize(if self.has_pairs { count } else { 0 }, 0);
        self.scores.read_range(positions.clone(), low)?;
        if self.has_pairs {
            let second = self.index.positions();
            self.scores.read_range(second + positions.start..second + positions.end, high)?;
            self.scores.check_bounds(first, low, high)?;
        }
        Ok(())
    }

    /// The path of a file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Begins a file; 0 bytes reserve nothing.
    pub(crate) fn begin(&self, name: &str, bytes: u64) -> Result<ExportSink<'a>, ExchangeError> {
        ExportSink::begin(self.disk, &self.path(name), self.options.force, bytes)
    }

    /// Completes a file.
    pub(crate) fn finish(&mut self, name: &str, sink: ExportSink<'_>) -> Result<(), ExchangeError> {
        let (bytes, is_new) = sink.finish()?;
        self.files.push(Exported { path: self.path(name), bytes, is_new });
        Ok(())
    }

    /// Writes a small file.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), ExchangeError> {
        let mut sink = self.begin(name, bytes.len() as u64)?;
        sink.write(bytes)?;
        self.finish(name, sink)
    }

    /// Fails if a stop was requested.
    pub(crate) fn check_stop(&self) -> Result<(), ExchangeError> {
        if self.options.stop.load(Ordering::Relaxed) { Err(ExchangeError::Stopped) } else { Ok(()) }
    }
}

/// Writes `scores.N`.
fn write_lexicographic(exporter: &mut Exporter<'_>) -> Result<(), ExchangeError> {
    require_scores(exporter.scores)?;
    let order = Lexicographic::new(exporter.index)?;
    let name = file_of(exporter.index.stones());
    let mut sink = exporter.begin(&name, order.positions())?;
    let mut buffer = Vec::new();
    for part in order.parts(exporter.options.memory_bytes) {
        exporter.check_stop()?;
        let positions = part.positions();
        buffer.resize((positions.end - positions.start) as usize, 0);
        order.fill(exporter.scores, &part, &mut buffer)?;
        sink.write(bytes_of(&buffer))?;
    }
    exporter.finish(&name, sink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{draws, solved};
    use disk::{Fault, MemoryDisk, is_leftover};
    use game::PositionSet;
    use std::collections::BTreeMap;
    use store::Codec;

    const FORMATS: &[Format] = if cfg!(feature = "parquet") {
        &[Format::Raw, Format::Csv, Format::Vu, Format::Parquet]
    } else {
        &[Format::Raw, Format::Csv, Format::Vu]
    };

    fn files(disk: &MemoryDisk) -> BTreeMap<PathBuf, Vec<u8>> {
        disk.paths().into_iter().map(|path| (path.clone(), disk.peek(&path).unwrap())).collect()
    }

    #[test]
    fn no_failure_leaves_an_incomplete_file() {
        let (scores, index) = solved(4, PositionSet::All, Codec::Packed);
        let stop = AtomicBool::new(false);
        for &format in FORMATS {
            let options = Options { format, force: true, memory_bytes: 100, stop: &stop };
            let right = MemoryDisk::new();
            let export = |disk: &MemoryDisk| super::export(disk, &scores, &index, Path::new("out"), &options);
            export(&right).unwrap();
            let right = files(&right);
            let mut failures = 0;
            loop {
                let disk = MemoryDisk::new();
                disk.fail_at(failures, Fault::NoSpace);
                match export(&disk) {
                    Ok(_) => break assert!(files(&disk) == right),
                    Err(error) => assert!(matches!(error, ExchangeError::Disk(_)), "{format}: {error}"),
                }
                for (path, bytes) in files(&disk) {
                    assert!(!is_leftover(&path) && right[&path] == bytes, "{format}: {}", path.display());
                }
                failures += 1;
            }
            assert!(failures > 3, "{format}");
        }
    }

    #[test]
    fn a_stop_leaves_nothing_behind() {
        let (scores, index) = solved(4, PositionSet::REACHABLE, Codec::Zstd);
        let stop = AtomicBool::new(true);
        for &format in FORMATS {
            let disk = MemoryDisk::new();
            let options = Options { format, force: false, memory_bytes: 100, stop: &stop };
            let ended = export(&disk, &scores, &index, Path::new("out"), &options);
            assert!(matches!(ended, Err(ExchangeError::Stopped)) && disk.paths().is_empty());
        }
    }

    #[test]
    fn large_text_is_refused() {
        let (scores, index) = draws(15);
        let stop = AtomicBool::new(false);
        let options = Options { format: Format::Csv, force: false, memory_bytes: 100, stop: &stop };
        let disk = MemoryDisk::new();
        let error = export(&disk, &scores, &index, Path::new("out"), &options).unwrap_err().to_string();
        assert!(error.contains("has 7,726,160 positions") && error.contains("--force"), "{error}");
        assert!(disk.paths().is_empty());
    }
}
