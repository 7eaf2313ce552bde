//! Transfer of cells between the working file and memory, and the state of each cell.

use super::layout::{CellLayout, CellSlab, SUM_BYTES};
use super::{CellFile, RUN_BYTES};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Bytes read or written at a time; at least one cell.
pub(crate) const BUFFER_BYTES: usize = 512 << 10;

/// I/O threads. Each processes one run of cells at a time, in many requests.
const THREADS: usize = 4;

/// Bytes of all buffers.
pub(crate) const BUFFERS_BYTES: usize = THREADS * BUFFER_BYTES;

/// Bytes of the state of a cell.
pub(crate) const CELL_STATE_BYTES: usize = 12;

/// State of a cell that counts as zeros.
const ZEROS: u64 = 0;
/// State of a cell of a previous process: valid if its checksum is right.
const UNKNOWN: u64 = 1;

/// Cells of a database.
pub(crate) struct Cells<'a, W> {
    file: &'a W,
    layout: &'a CellLayout,
    /// By cell: [`ZEROS`], [`UNKNOWN`], or the checksum of its content.
    sums: Vec<AtomicU64>,
    /// By cell, the time of its last change.
    changed: Vec<AtomicU32>,
    buffers: Vec<Mutex<Vec<i8>>>,
    /// Whether scores were lost, so that everything must be recomputed.
    pub(crate) is_lost: AtomicBool,
    pub(crate) counts: CellTraffic,
}

/// Counters of I/O.
#[derive(Default)]
pub(crate) struct CellTraffic {
    pub(crate) read_bytes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    /// Cells with wrong checksums.
    pub(crate) damaged: AtomicU64,
}

/// Columns of a slab, ascending, in pieces within groups.
pub(crate) struct ColumnPieces {
    pieces: Vec<ColumnPiece>,
    columns: usize,
}

/// Part of a slab in memory, row by row.
#[derive(Clone)]
pub(crate) struct SlabPart<'m> {
    pub(crate) groups: Range<usize>,
    pub(crate) columns: Range<usize>,
    pub(crate) from: &'m [i8],
}

struct ColumnPiece {
    group: usize,
    /// First column, within the group.
    from: usize,
    /// Its index among all columns.
    to: usize,
    length: usize,
}

impl ColumnPieces {
    /// Cuts ascending columns into pieces.
    pub(crate) fn new(slab: &CellSlab, columns: impl Iterator<Item = usize>) -> ColumnPieces {
        let mut all = ColumnPieces { pieces: Vec::new(), columns: 0 };
        for column in columns {
            let (group, from) = (column / slab.width, column % slab.width);
            match all.pieces.last_mut() {
                Some(last) if last.group == group && last.from + last.length == from => last.length += 1,
                _ => all.pieces.push(ColumnPiece { group, from, to: all.columns, length: 1 }),
            }
            all.columns += 1;
        }
        all
    }

    /// Number of columns.
    pub(crate) fn len(&self) -> usize {
        self.columns
    }
}

/// Reads the checksum field of a cell: its last eight bytes.
fn number_of(bytes: &[i8]) -> u64 {
    let last: &[i8; SUM_BYTES] = bytes.last_chunk().expect("a cell has a checksum");
    u64::from_le_bytes(last.map(|byte| byte as u8))
}

fn put_number(bytes: &mut [i8], number: u64) {
    let last: &mut [i8; SUM_BYTES] = bytes.last_chunk_mut().expect("a cell has a checksum");
    *last = number.to_le_bytes().map(|byte| byte as i8);
}

/// Copies the pieces of a group from a row.
fn copy(pieces: &[ColumnPiece], row: &[i8], into: &mut [i8]) {
    for piece in pieces {
        into[piece.to..][..piece.length].copy_from_slice(&row[piece.from..][..piece.length]);
    }
}

fn clear(pieces: &[ColumnPiece], into: &mut [i8]) {
    pieces.iter().for_each(|piece| into[piece.to..][..piece.length].fill(0));
}

impl CellTraffic {
    pub(crate) fn add_read(&self, bytes: usize) {
        self.read_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn add_written(&self, bytes: usize) {
        self.written_bytes.fetch_add(bytes as u64, Relaxed);
    }
}

impl<'a, W: CellFile> Cells<'a, W> {
    /// Creates the state of the cells of a file: zeros, or `kept` from a previous process.
    pub(crate) fn new(file: &'a W, layout: &'a CellLayout, kept: bool) -> Cells<'a, W> {
        let state = if kept { UNKNOWN } else { ZEROS };
        Cells {
            file,
            layout,
            sums: (0..layout.cells).map(|_| AtomicU64::new(state)).collect(),
            changed: (0..layout.cells).map(|_| AtomicU32::new(0)).collect(),
            buffers: (0..THREADS).map(|_| Mutex::new(vec![0; BUFFER_BYTES.max(2 * layout.cell_bytes_max())])).collect(),
            is_lost: AtomicBool::new(false),
            counts: CellTraffic::default(),
        }
    }

    /// Runs all jobs on the I/O threads, each with a buffer.
    pub(crate) fn each<T: Send>(
        &self,
        mut jobs: Vec<T>,
        work: impl Fn(T, &mut [i8]) -> Result<(), W::Error> + Sync,
    ) -> Result<(), W::Error> {
        // Jobs are taken from the end.
        jobs.reverse();
        let threads = THREADS.min(jobs.len());
        let jobs = Mutex::new(jobs);
        let failure = Mutex::new(None);
        let thread = |buffer: &Mutex<Vec<i8>>| {
            let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                let Some(job) = jobs.lock().unwrap_or_else(PoisonError::into_inner).pop() else { break };
                if let Err(error) = work(job, &mut buffer) {
                    jobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            let thread = &thread;
            for buffer in &self.buffers[..threads] {
                // If a thread cannot be started, the existing threads execute all jobs.
                if std::thread::Builder::new().spawn_scoped(scope, move || thread(buffer)).is_err() {
                    thread(buffer);
                    break;
                }
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Whether any cell of a group of rows changed after `time`.
    pub(crate) fn rows_changed_after(&self, slab: &CellSlab, group: usize, time: u32) -> bool {
        (0..slab.column_groups).any(|column| self.changed[slab.cell(column, group)].load(Relaxed) > time)
    }

    /// Whether any cell of some groups of columns changed after `time`.
    pub(crate) fn changed_after(&self, slab: &CellSlab, groups: &Range<usize>, time: u32) -> bool {
        // Cells of neighbouring groups are consecutive.
        let cells = slab.cell(groups.start, 0)..slab.cell(groups.end, 0);
        self.changed[cells].iter().any(|changed| changed.load(Relaxed) > time)
    }

    /// Reads columns of all rows of some groups.
    pub(crate) fn read(
        &self,
        slab: &CellSlab,
        pieces: &ColumnPieces,
        groups: &Range<usize>,
        into: &mut [i8],
    ) -> Result<(), W::Error> {
        let rows: Vec<_> = slab.rows_of(groups).collect();
        self.read_rows(slab, pieces, groups, &rows, into)
    }

    /// Reads columns of the given rows, ascending, of some groups.
    pub(crate) fn read_rows(
        &self,
        slab: &CellSlab,
        pieces: &ColumnPieces,
        groups: &Range<usize>,
        wanted: &[usize],
        into: &mut [i8],
    ) -> Result<(), W::Error> {
        // Copies pieces from a cell, or zeros if the cell has none.
        let mut give = |group: usize, pieces_of_group: &[ColumnPiece], cell: Option<&[i8]>| {
            let rows = slab.rows_of(&(group..group + 1));
            let from = wanted.partition_point(|&row| row < rows.start);
            let until = wanted.partition_point(|&row| row < rows.end);
            let into = into[from * pieces.columns..until * pieces.columns].chunks_exact_mut(pieces.columns);
            match cell {
                Some(cell) => into.zip(&wanted[from..until]).for_each(|(into, row)| {
                    copy(pieces_of_group, &cell[(row - rows.start) * slab.width..][..slab.width], into);
                }),
                None => into.for_each(|into| clear(pieces_of_group, into)),
            }
        };
        let at_once = RUN_BYTES / slab.cell_bytes;
        // Location of each run, and the group of its first cell.
        let (mut runs, mut firsts) = (Vec::new(), Vec::new());
        for pieces_of_group in pieces.pieces.chunk_by(|one, other| one.group == other.group) {
            for start in groups.clone().step_by(at_once) {
                let end = groups.end.min(start + at_once);
                let run = slab.cell(pieces_of_group[0].group, start)..slab.cell(pieces_of_group[0].group, end);
                if self.is_zeros(&run) {
                    (start..end).for_each(|group| give(group, pieces_of_group, None));
                } else {
                    runs.push((slab.offset_of(run.start), run.len() * slab.cell_bytes));
                    firsts.push((run.start, start, pieces_of_group));
                }
            }
        }
        self.file.read_runs(&runs, &mut |run, cells| {
            self.counts.add_read(cells.len());
            let (cell, group, pieces_of_group) = firsts[run];
            for (at, bytes) in cells.chunks_exact_mut(slab.cell_bytes).enumerate() {
                let is_sound = self.is_sound(cell + at, bytes);
                give(group + at, pieces_of_group, is_sound.then_some(&*bytes));
            }
        })
    }

    /// Whether all of a run of cells are zeros.
    fn is_zeros(&self, run: &Range<usize>) -> bool {
        self.sums[run.clone()].iter().all(|sum| sum.load(Relaxed) == ZEROS)
    }

    /// Reads a run of cells, unless all are zeros.
    fn fetch(&self, slab: &CellSlab, run: Range<usize>, buffer: &mut [i8]) -> Result<bool, W::Error> {
        let place = slab.offset_of(run.start);
        let into = &mut buffer[..run.len() * slab.cell_bytes];
        if self.is_zeros(&run) {
            return Ok(false);
        }
        self.file.read(place, into)?;
        self.counts.add_read(into.len());
        Ok(true)
    }

    /// Verifies the checksum of a cell. A damaged cell counts as zeros from here on, which is a change.
    fn is_sound(&self, cell: usize, bytes: &mut [i8]) -> bool {
        let known = self.sums[cell].load(Relaxed);
        if known == ZEROS {
            return false;
        }
        let sum = number_of(bytes);
        let found = self.sum(cell, bytes);
        let is_sound = sum == found;
        if is_sound && known == found {
            return true;
        }
        if is_sound && known == UNKNOWN {
            self.sums[cell].store(found, Relaxed);
            return true;
        }
        self.sums[cell].store(ZEROS, Relaxed);
        if known != UNKNOWN {
            // Other tasks may have read it when it was sound, and its own task assumes that it is stored.
            self.is_lost.store(true, Relaxed);
        }
        self.counts.damaged.fetch_add(1, Relaxed);
        false
    }

    /// Computes the checksum of a cell, with its number in the checksum field. Differs from [`ZEROS`] and [`UNKNOWN`].
    fn sum(&self, cell: usize, bytes: &mut [i8]) -> u64 {
        put_number(bytes, cell as u64);
        self.file.checksum(bytes).max(UNKNOWN + 1)
    }

    /// Writes the changed cells of a part of a slab, in some of its groups of columns.
    pub(crate) fn write(
        &self,
        slab: &CellSlab,
        part: &SlabPart,
        column_groups: Range<usize>,
        time: u32,
        buffer: &mut [i8],
    ) -> Result<(), W::Error> {
        // The second half holds cells that must be read first because they also contain other columns.
        let (buffer, others) = buffer.split_at_mut(buffer.len() / 2);
        let at_once = buffer.len() / slab.cell_bytes;
        let first_row = part.groups.start * slab.height;
        // Changed cells, consecutive in the buffer.
        let mut changed = Vec::with_capacity(at_once);
        for column_group in column_groups {
            let columns = slab.columns_of(column_group);
            let mine = columns.start.max(part.columns.start)..columns.end.min(part.columns.end);
            let at = mine.start - columns.start;
            for start in part.groups.clone().step_by(at_once) {
                let end = part.groups.end.min(start + at_once);
                let run = slab.cell(column_group, start)..slab.cell(column_group, end);
                let is_there = mine != columns && self.fetch(slab, run.clone(), others)?;
                for (cell, (group, other)) in run.zip((start..end).zip(others.chunks_exact_mut(slab.cell_bytes))) {
                    if changed.len() == at_once {
                        self.put(slab, &mut changed, time, buffer)?;
                    }
                    let bytes = &mut buffer[changed.len() * slab.cell_bytes..][..slab.cell_bytes];
                    let is_known = is_there && self.is_sound(cell, other);
                    let scores = &mut bytes[..slab.cell_bytes - SUM_BYTES];
                    if is_known {
                        scores.copy_from_slice(&other[..scores.len()])
                    } else {
                        scores.fill(0)
                    }
                    let rows = slab.rows_of(&(group..group + 1));
                    for (to, row) in scores.chunks_exact_mut(slab.width).zip(rows) {
                        let row = &part.from[(row - first_row) * part.columns.len()..][..part.columns.len()];
                        to[at..at + mine.len()].copy_from_slice(&row[mine.start - part.columns.start..][..mine.len()]);
                    }
                    let is_zeros = scores.iter().all(|&score| score == 0);
                    let known = self.sums[cell].load(Relaxed);
                    let found = self.sum(cell, bytes);
                    if known != found && !(known == ZEROS && is_zeros) {
                        put_number(bytes, found);
                        changed.push(cell);
                    }
                }
            }
        }
        self.put(slab, &mut changed, time, buffer)
    }

    /// Writes the cells in the buffer, and clears the list.
    fn put(&self, slab: &CellSlab, cells: &mut Vec<usize>, time: u32, buffer: &[i8]) -> Result<(), W::Error> {
        let bytes = &buffer[..cells.len() * slab.cell_bytes];
        let mut rest = bytes;
        let runs = cells.chunk_by(|one, next| one + 1 == *next).map(|run| {
            let (mine, others) = rest.split_at(run.len() * slab.cell_bytes);
            rest = others;
            (slab.offset_of(run[0]), mine)
        });
        let runs: Vec<_> = runs.collect();
        self.file.write_runs(&runs)?;
        self.counts.add_written(bytes.len());
        for (&cell, bytes) in cells.iter().zip(bytes.chunks_exact(slab.cell_bytes)) {
            self.sums[cell].store(number_of(bytes), Relaxed);
            self.changed[cell].store(time, Relaxed);
        }
        cells.clear();
        Ok(())
    }

    pub(crate) fn file(&self) -> &'a W {
        self.file
    }

    pub(crate) fn layout(&self) -> &'a CellLayout {
        self.layout
    }
}
