//! The stage `postprocess:n:b`: the positions lost at bound b, turned into the orientation of the database.

use super::planes::{Plane, PlaneReader, PlaneWriter};
use super::state::stop;
use crate::{Shared, files};
use engines::bound::PlaneLayout;
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use rayon::prelude::*;
use std::time::{Duration, Instant};

/// Bytes of the plane that are turned in memory at a time.
const TURNED_BYTES: usize = 8 << 20;

/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let start = Instant::now();
    let lost = Plane::Lost(bound);
    let mut reader = PlaneReader::input(context, settings, &index, lost)?;
    let mut writer = PlaneWriter::output(context, settings, &index, Plane::Decided(bound))?;
    let layout = PlaneLayout::new(&index, lost.orientation());
    let turned_layout = PlaneLayout::new(&index, Plane::Decided(bound).orientation());
    let (mut rows, mut turned) = (Vec::new(), Vec::new());
    context.progress().begin(index.positions(), "positions");
    for (from, to) in layout.slabs().iter().zip(turned_layout.slabs()) {
        // Whole words of columns at a time.
        let words = (TURNED_BYTES / 8 / to.row_words / 64).clamp(1, from.row_words);
        for first in (0..from.row_words).step_by(words) {
            let upto = from.row_words.min(first + words);
            let columns = first * 64..to.rows.min(upto * 64);
            turned.clear();
            turned.resize(columns.len() * to.row_words, 0u64);
            let batch = (READ_BYTES / 8 / from.row_words).next_multiple_of(64);
            for row in (0..from.rows).step_by(batch) {
                stop(context)?;
                let count = (from.rows - row).min(batch);
                rows.resize(count * from.row_words, 0);
                reader
                    .read(from.word(row)..from.word(row + count), &mut rows)
                    .map_err(|error| files::unreadable(&lost.name(stones), error))?;
                turned.par_chunks_mut(64 * to.row_words).enumerate().for_each(|(at, turned)| {
                    turn(&rows, from.row_words, first + at, turned, to.row_words, row / 64);
                });
            }
            writer.append(&mut turned)?;
        }
        context.progress().advance((from.rows * from.columns) as u64);
    }
    writer.finish()?;
    let [before, solving] = shared.slot().times(stones, bound);
    let mut report = StageReport::new(index.positions());
    // Known only where all three stages of the bound ran in one go.
    if before > Duration::ZERO && solving > Duration::ZERO {
        let around = (before + start.elapsed()).as_secs_f64();
        report = report.with("share of pre- and postprocessing", around / (around + solving.as_secs_f64()));
    }
    Ok(report)
}

/// Turns the word `word` of all rows into columns: words from `to_word` on of up to 64 rows of `turned`.
fn turn(rows: &[u64], row_words: usize, word: usize, turned: &mut [u64], to_words: usize, to_word: usize) {
    for (block_number, rows) in rows.chunks(64 * row_words).enumerate() {
        let mut block = [0; 64];
        let mut any = 0;
        for (block, row) in block.iter_mut().zip(rows.chunks(row_words)) {
            *block = row[word];
            any |= row[word];
        }
        if any != 0 {
            transpose(&mut block);
            for (turned, &bits) in turned.chunks_mut(to_words).zip(&block) {
                turned[to_word + block_number] = bits;
            }
        }
    }
}

/// Transposes 64 by 64 bits, by halves of halves (Warren, Hacker's Delight, section 7-3).
fn transpose(block: &mut [u64; 64]) {
    let (mut width, mut mask) = (32, 0x0000_0000_ffff_ffffu64);
    while width > 0 {
        let mut at = 0;
        while at < 64 {
            let swap = (block[at] >> width ^ block[at + width]) & mask;
            block[at] ^= swap << width;
            block[at + width] ^= swap;
            at = (at + width + 1) & !width;
        }
        width /= 2;
        mask ^= mask << width;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bits_change_places() {
        let block: [u64; 64] = std::array::from_fn(|at| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut turned = block;
        super::transpose(&mut turned);
        for (row, word) in block.iter().enumerate() {
            for (column, other) in turned.iter().enumerate() {
                assert_eq!(word >> column & 1, other >> row & 1);
            }
        }
    }
}
