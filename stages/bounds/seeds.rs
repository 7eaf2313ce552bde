//! The stage `seeds:n`: the captures, sorted by the bound at which they begin to matter.
//!
//! A capture of score b > 0 wins from bound b down. A position whose captures score at most -b can be lost at bound b,
//! which begins at the bound that is its best capture, negated, or at n if it has none. So each position is in at most
//! one plane of win seeds or one of candidate seeds, and bound after bound they are read once in all.

use super::planes::{Group, Plane, PlaneWriter};
use super::state::stop;
use crate::{Shared, files, watch::Watch};
use engines::Progress;
use engines::bound::PlaneLayout;
use game::{Index, Slab};
use pipeline::{StageContext, StageError, StageReport};
use rayon::prelude::*;
use store::{Kind, Scores, StoreError};

/// Planes of a group, and a place for what is in none.
const PLACES: usize = game::STONES_MAX as usize + 1;

/// Rows read at a time.
const ROWS: usize = 64;

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let name = files::capture(stones);
    let damaged = |error| files::unreadable(&name, error);
    let path = context.input(&name);
    let captures = files::open_windowed(context.disk(), &path, settings, Kind::Capture, &index).map_err(damaged)?;
    let captures = Captures { scores: captures, index: &index };
    let none = i32::from(engines::capture::none(stones));
    // The place of a plane in a group, bounds descending; or behind all planes.
    let wins = |best: i32| if best > 0 { stones as i32 - best } else { stones as i32 };
    let candidates = |best: i32| match best {
        best if best == none => 0,
        best if best < 0 => stones as i32 + best,
        _ => stones as i32,
    };
    let watch = Watch::new(context, index.positions());
    write(shared, &captures, Plane::CandidateSeeds, candidates, context, (&watch, 0))?;
    write(shared, &captures, Plane::WinSeeds, wins, context, (&watch, 1))?;
    Ok(StageReport::new(index.positions()))
}

struct Captures<'a> {
    scores: Scores,
    index: &'a Index,
}

fn write(
    shared: &Shared,
    captures: &Captures,
    plane: Plane,
    place: impl Fn(i32) -> i32,
    context: &StageContext,
    (watch, turn): (&Watch, u64),
) -> Result<(), StageError> {
    let index = captures.index;
    let stones = index.stones() as usize;
    let layout = PlaneLayout::new(index, plane.orientation());
    let mut places = [0u8; 256];
    for best in i8::MIN..=i8::MAX {
        places[usize::from(best as u8)] = place(i32::from(best)).clamp(0, stones as i32) as u8;
    }
    let mut writer = PlaneWriter::output(context, shared.settings(), index, plane)?;
    let (mut values, mut words) = (Vec::new(), Vec::new());
    for group in Group::all(&layout, &layout.units()) {
        stop(context)?;
        let (slab, rows) = (&layout.slabs()[group.slab], &group.rows);
        let read = captures.read(plane, &index.slabs()[group.slab], rows.clone(), &mut values);
        read.map_err(|error| files::unreadable(&files::capture(index.stones()), error))?;
        let row_words = slab.row_words;
        words.clear();
        words.resize(stones * group.words.len(), 0u64);
        // By row: the planes of one group are interleaved by whole planes, so each row writes one piece of each.
        let mut planes: Vec<_> =
            words.chunks_mut(group.words.len().max(1)).map(|plane| plane.chunks_mut(row_words)).collect();
        let rows: Vec<Vec<&mut [u64]>> =
            (0..rows.len()).map(|_| planes.iter_mut().filter_map(Iterator::next).collect()).collect();
        rows.into_par_iter().zip(values.par_chunks(slab.columns)).for_each(|(mut planes, values)| {
            for (word, values) in values.chunks(64).enumerate() {
                let mut bits = [0u64; PLACES];
                for (bit, &best) in values.iter().enumerate() {
                    bits[usize::from(places[usize::from(best as u8)])] |= 1 << bit;
                }
                for (plane, bits) in planes.iter_mut().zip(bits) {
                    plane[word] = bits;
                }
            }
        });
        writer.append(&mut words)?;
        if watch.advance(turn * layout.words() as u64 + group.words.end as u64, 2 * layout.words() as u64).is_break() {
            return Err(StageError::Stopped);
        }
    }
    writer.finish()
}

impl Captures<'_> {
    /// The best captures of rows of a slab, in the orientation of a plane.
    fn read(
        &self,
        plane: Plane,
        slab: &Slab,
        rows: std::ops::Range<usize>,
        into: &mut Vec<i8>,
    ) -> Result<(), StoreError> {
        let (mover, opponent) = (slab.mover_halves as usize, slab.opponent_halves as usize);
        let first = |row: usize| slab.offset + (row * opponent) as u64;
        if plane.orientation() == game::Orientation::MoverMajor {
            into.resize(rows.len() * opponent, 0);
            return self.scores.read_range(first(rows.start)..first(rows.end), into);
        }
        into.resize(rows.len() * mover, 0);
        let mut piece = Vec::new();
        for from in (0..mover).step_by(ROWS) {
            let upto = mover.min(from + ROWS);
            piece.resize((upto - from) * opponent, 0);
            self.scores.read_range(first(from)..first(upto), &mut piece)?;
            let columns = rows.clone();
            into.par_chunks_mut(mover).zip(columns).for_each(|(row, column)| {
                for (to, from) in row[from..upto].iter_mut().zip(piece[column..].iter().step_by(opponent)) {
                    *to = *from;
                }
            });
        }
        Ok(())
    }
}
