//! The stage `seeds:n`: the captures, sorted by the bound at which they begin to matter.
//!
//! A capture of score b > 0 wins from bound b down. A position can be lost at bound b if all its captures score at most
//! -b: from the bound that is its best capture, negated, or from n if it has none. So a position is in one plane of win
//! seeds or of candidate seeds at most, and all bounds together read each plane once.

use super::planes::{PlaneFile, PlanePortion, PlaneWriter, UnitGroup};
use super::state::stop;
use crate::{BuildContext, Result, files};
use engines::bounds::{BitKernel, PlaneLayout, PlaneSlab};
use game::Index;
use pipeline::{StageContext, StageReport};
use rayon::prelude::*;
use store::FileKind;

/// Rows in a unit of work.
const ROWS: usize = 64;

/// Runs the stage.
pub(crate) fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let name = files::capture(stones);
    let damaged = |error| files::unreadable(&name, error);
    let path = context.input(&name);
    let captures = files::open_windowed(context.disk(), &path, settings, FileKind::Capture, &index).map_err(damaged)?;
    let none = i32::from(engines::capture::none(stones));
    // The index of a plane in a group, bounds descending; the number of planes if the position is in no plane.
    let targets = targets(stones, |best| match best {
        best if best == none => (CANDIDATES, 0),
        best if best < 0 => (CANDIDATES, stones as i32 + best),
        best if best > 0 => (WINS, stones as i32 - best),
        _ => (WINS, stones as i32),
    });
    let layout = PlaneLayout::new(&index, PlaneFile::WinSeeds.orientation());
    let mut writers = [PlaneFile::CandidateSeeds, PlaneFile::WinSeeds]
        .into_iter()
        .map(|plane| PlaneWriter::output(context, settings, &index, plane))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut values, mut words) = (Vec::new(), [Vec::new(), Vec::new()]);
    context.progress().begin(index.positions(), "positions");
    for group in UnitGroup::all(&layout.units()) {
        stop(context)?;
        let (slab, offset) = (&layout.slabs()[group.slab], index.slabs()[group.slab].offset);
        values.resize(group.rows.len() * slab.columns, 0);
        let first = offset + (group.rows.start * slab.columns) as u64;
        captures.read_range(first..first + values.len() as u64, &mut values).map_err(damaged)?;
        for words in &mut words {
            words.clear();
            words.resize(stones as usize * group.words.len(), 0u64);
        }
        sort(&values, slab, &targets, &mut words);
        let both = writers.par_iter_mut().zip(&mut words);
        both.try_for_each(|(writer, words)| writer.append(PlanePortion::Words(words)))?;
        context.progress().advance(values.len() as u64);
    }
    writers.into_iter().try_for_each(|writer| writer.finish().map(|_| ()))?;
    Ok(StageReport::new(index.positions()))
}

/// Indices of the two files.
const CANDIDATES: usize = 0;
const WINS: usize = 1;

/// Returns the file and the index of the plane there, by best capture as a byte.
fn targets(stones: u32, target: impl Fn(i32) -> (usize, i32)) -> [(usize, usize); 256] {
    let mut targets = [(0, 0); 256];
    for best in i8::MIN..=i8::MAX {
        let (file, at) = target(i32::from(best));
        targets[usize::from(best as u8)] = (file, at.clamp(0, stones as i32) as usize);
    }
    targets
}

/// Sorts the best captures of rows of a slab into planes, which must be zero and are concatenated in each file.
fn sort(values: &[i8], slab: &PlaneSlab, targets: &[(usize, usize); 256], words: &mut [Vec<u64>; 2]) {
    let row_words = slab.row_words;
    let rows = values.len() / slab.columns;
    // A unit of rows writes one piece of each plane.
    let mut planes = words.each_mut().map(|words| {
        let planes = words.chunks_mut(rows * row_words);
        planes.map(|plane| plane.chunks_mut(ROWS * row_words)).collect::<Vec<_>>()
    });
    let pieces: Vec<[Vec<&mut [u64]>; 2]> = (0..rows.div_ceil(ROWS))
        .map(|_| planes.each_mut().map(|planes| planes.iter_mut().filter_map(Iterator::next).collect()))
        .collect();
    let kernel = BitKernel::detect();
    pieces.into_par_iter().zip(values.par_chunks(ROWS * slab.columns)).for_each(|(mut planes, values)| {
        for (row, values) in values.chunks(slab.columns).enumerate() {
            for (word, values) in values.chunks(64).enumerate() {
                kernel.by_value(values, |best, bits| {
                    let (file, target) = targets[usize::from(best as u8)];
                    if let Some(plane) = planes[file].get_mut(target) {
                        plane[row * row_words + word] |= bits;
                    }
                });
            }
        }
    });
}
