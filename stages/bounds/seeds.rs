//! The stage `seeds:n`: the captures, sorted by the bound at which they begin to matter.
//!
//! A capture of score b > 0 wins from bound b down. A position whose captures score at most -b can be lost at bound b,
//! which begins at the bound that is its best capture, negated, or at n if it has none. So each position is in at most
//! one plane of win seeds or one of candidate seeds, and bound after bound they are read once in all.

use super::planes::{GROUP_WORDS, Group, Plane, PlaneWriter};
use super::state::stop;
use crate::{Shared, files};
use engines::bound::{PlaneLayout, PlaneSlab};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use rayon::prelude::*;
use store::Kind;

/// Planes of a group, and a place for what is in none.
const PLACES: usize = game::STONES_MAX as usize + 1;

/// Rows that a thread sorts at a time.
const ROWS: usize = 64;

/// Bytes of a group, its captures and all its planes of both files.
pub(crate) fn group_bytes(stones: u32) -> u64 {
    (GROUP_WORDS * (64 + 2 * 8 * stones as usize)) as u64
}

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let name = files::capture(stones);
    let damaged = |error| files::unreadable(&name, error);
    let path = context.input(&name);
    let captures = files::open_windowed(context.disk(), &path, settings, Kind::Capture, &index).map_err(damaged)?;
    let none = i32::from(engines::capture::none(stones));
    // The place of a plane in a group, bounds descending; or behind all planes.
    let wins = |best: i32| if best > 0 { stones as i32 - best } else { stones as i32 };
    let candidates = |best: i32| match best {
        best if best == none => 0,
        best if best < 0 => stones as i32 + best,
        _ => stones as i32,
    };
    let places = [places(stones, candidates), places(stones, wins)];
    let layout = PlaneLayout::new(&index, Plane::WinSeeds.orientation());
    let mut writers = [Plane::CandidateSeeds, Plane::WinSeeds]
        .into_iter()
        .map(|plane| PlaneWriter::output(context, settings, &index, plane))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut values, mut words) = (Vec::new(), [Vec::new(), Vec::new()]);
    context.progress().begin(index.positions(), "positions");
    for group in Group::all(&layout.units()) {
        stop(context)?;
        let (slab, offset) = (&layout.slabs()[group.slab], index.slabs()[group.slab].offset);
        values.resize(group.rows.len() * slab.columns, 0);
        let first = offset + (group.rows.start * slab.columns) as u64;
        captures.read_range(first..first + values.len() as u64, &mut values).map_err(damaged)?;
        let both = writers.par_iter_mut().zip(&mut words).zip(&places);
        both.try_for_each(|((writer, words), places)| {
            words.clear();
            words.resize(stones as usize * group.words.len(), 0u64);
            sort(&values, slab, places, words);
            writer.append(words)
        })?;
        context.progress().advance(values.len() as u64);
    }
    writers.into_iter().try_for_each(PlaneWriter::finish)?;
    Ok(StageReport::new(index.positions()))
}

/// By best capture, as a byte, the place of its plane.
fn places(stones: u32, place: impl Fn(i32) -> i32) -> [u8; 256] {
    let mut places = [0; 256];
    for best in i8::MIN..=i8::MAX {
        places[usize::from(best as u8)] = place(i32::from(best)).clamp(0, stones as i32) as u8;
    }
    places
}

/// Sorts the best captures of rows of a slab into planes, one behind the other.
fn sort(values: &[i8], slab: &PlaneSlab, places: &[u8; 256], words: &mut [u64]) {
    let row_words = slab.row_words;
    let rows = values.len() / slab.columns;
    // Rows write one piece of each plane.
    let mut planes: Vec<_> =
        words.chunks_mut(rows * row_words).map(|plane| plane.chunks_mut(ROWS * row_words)).collect();
    let pieces: Vec<Vec<&mut [u64]>> =
        (0..rows.div_ceil(ROWS)).map(|_| planes.iter_mut().filter_map(Iterator::next).collect()).collect();
    pieces.into_par_iter().zip(values.par_chunks(ROWS * slab.columns)).for_each(|(mut planes, values)| {
        for (row, values) in values.chunks(slab.columns).enumerate() {
            for (word, values) in values.chunks(64).enumerate() {
                let mut bits = [0u64; PLACES];
                for (bit, &best) in values.iter().enumerate() {
                    bits[usize::from(places[usize::from(best as u8)])] |= 1 << bit;
                }
                for (plane, bits) in planes.iter_mut().zip(bits) {
                    plane[row * row_words + word] = bits;
                }
            }
        }
    });
}
