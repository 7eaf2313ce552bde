//! Best captures in the working file, in the order of the tasks: for each task, by the mover's half, those of its
//! columns.
//!
//! Capture databases have whole rows of all columns. They are read once, sequentially, and distributed to the tasks.
//! Tasks depend on the memory, so every process distributes anew, and keeps the checksums in memory.

use super::CellFile;
use super::cells::Cells;
use super::plan::{DiskPlan, SweepTask};
use std::sync::{Mutex, PoisonError};

/// Captures of the tasks of a plan, in the working file.
pub(crate) struct TaskCaptures {
    /// By task.
    pieces: Vec<Mutex<Vec<CaptureRun>>>,
}

/// Run of captures that was written at once. The runs of a task are consecutive.
#[derive(Clone, Copy)]
struct CaptureRun {
    bytes: usize,
    sum: u64,
}

/// Reader of consecutive best captures, `MoverMajor`: gets the first position and the buffer.
pub type ReadCaptures<'a, E> = &'a mut dyn FnMut(u64, &mut [i8]) -> Result<(), E>;

impl TaskCaptures {
    /// Distributes all captures, a batch of whole rows at a time.
    pub(crate) fn distribute<W: CellFile>(
        cells: &Cells<W>,
        plan: &DiskPlan,
        batch: &mut [i8],
        read: ReadCaptures<W::Error>,
    ) -> Result<TaskCaptures, W::Error> {
        let captures = TaskCaptures { pieces: plan.tasks.iter().map(|_| Mutex::new(Vec::new())).collect() };
        let mut first = 0;
        for (number, slab) in plan.layout.slabs.iter().take(plan.layout.stones as usize + 1).enumerate() {
            let tasks: Vec<_> = plan.tasks.iter().enumerate().filter(|(_, task)| task.slab == number).collect();
            // Rows are the mover's halves here.
            let (rows, columns) = (slab.columns, slab.rows);
            let mut longer = vec![0; if batch.len() < columns { columns } else { 0 }];
            let batch = if longer.is_empty() { &mut *batch } else { &mut longer };
            let rows_at_once = batch.len() / columns;
            for row in (0..rows).step_by(rows_at_once) {
                let batch = &mut batch[..rows_at_once.min(rows - row) * columns];
                read(first, batch)?;
                first += batch.len() as u64;
                let batch = &*batch;
                cells.each(tasks.clone(), |(at, task), buffer| {
                    let mut pieces = captures.pieces[at].lock().unwrap_or_else(PoisonError::into_inner);
                    append_rows(cells, task, &mut pieces, batch.chunks_exact(columns), buffer)
                })?;
            }
        }
        Ok(captures)
    }

    /// Returns the runs of a task: position in the file, checksum, and destination.
    pub(crate) fn pieces<'m>(
        &self,
        at: usize,
        task: &SweepTask,
        mut into: &'m mut [i8],
    ) -> Vec<(u64, u64, &'m mut [i8])> {
        let mut place = task.captures_place;
        let pieces = self.pieces[at].lock().unwrap_or_else(PoisonError::into_inner);
        pieces
            .iter()
            .map(|piece| {
                let (mine, rest) = std::mem::take(&mut into).split_at_mut(piece.bytes);
                into = rest;
                place += piece.bytes as u64;
                (place - piece.bytes as u64, piece.sum, mine)
            })
            .collect()
    }

    /// Reads a run, and verifies its checksum.
    pub(crate) fn read<W: CellFile>(
        cells: &Cells<W>,
        (place, sum, into): (u64, u64, &mut [i8]),
    ) -> Result<(), W::Error> {
        cells.file().read(place, into)?;
        cells.counts.add_read(into.len());
        if cells.file().checksum(into) == sum {
            Ok(())
        } else {
            Err(cells.file().is_damaged("best captures read back are not what was written"))
        }
    }
}

/// Appends the columns of a task from some rows to its captures.
fn append_rows<'r, W: CellFile>(
    cells: &Cells<W>,
    task: &SweepTask,
    pieces: &mut Vec<CaptureRun>,
    rows: impl Iterator<Item = &'r [i8]>,
    buffer: &mut [i8],
) -> Result<(), W::Error> {
    let mut place = task.captures_place + pieces.iter().map(|piece| piece.bytes as u64).sum::<u64>();
    let mut filled = 0;
    let mut put = |bytes: &[i8]| {
        cells.file().write(place, bytes)?;
        cells.counts.add_written(bytes.len());
        pieces.push(CaptureRun { bytes: bytes.len(), sum: cells.file().checksum(bytes) });
        place += bytes.len() as u64;
        Ok(())
    };
    for row in rows {
        let mut rest = &row[task.rows.clone()];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(buffer.len() - filled));
            buffer[filled..filled + now.len()].copy_from_slice(now);
            filled += now.len();
            rest = later;
            if filled == buffer.len() {
                put(buffer)?;
                filled = 0;
            }
        }
    }
    if filled > 0 { put(&buffer[..filled]) } else { Ok(()) }
}
