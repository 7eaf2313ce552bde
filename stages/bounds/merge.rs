//! The stage `merge:n`: the database, from the planes of all bounds.
//!
//! A position won at bound b scores b, one lost at b scores -b, and an undecided one 0.

use super::planes::{PlaneFile, PlaneReader};
use super::state::stop;
use crate::database_file::DatabaseWriter;
use crate::{BuildContext, Result, files};
use engines::bounds::{BitKernel, PlaneLayout};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use rayon::prelude::*;

/// Compressed bytes that all readers hold: less than the state of a bound, which is dropped.
const READ_BYTES: u64 = 8 << 20;

/// Rows in a unit of work.
const ROWS: usize = 64;

/// Runs the stage.
pub(crate) fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    // Drops the tables for pushing wins: they are large, and this stage does not need them.
    build.forget_tables();
    build.slot().clear();
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let open = |plane| {
        let reader = PlaneReader::input(context, settings, &index, plane)?;
        Ok::<_, StageError>((plane, reader.with_share(READ_BYTES, 2 * stones)))
    };
    let bounds = (1..=stones).flat_map(|bound| [(bound, PlaneFile::Won(bound)), (bound, PlaneFile::Decided(bound))]);
    let planes = bounds.map(|(bound, plane)| {
        let score = bound as i8;
        let score = if plane == PlaneFile::Won(bound) { score } else { -score };
        open(plane).map(|(plane, reader)| MergeInput { score, plane, reader, words: Vec::new(), has_bits: false })
    });
    let mut planes = planes.collect::<Result<Vec<_>, _>>()?;
    let mut writer = DatabaseWriter::create(context, settings, &index)?;
    let layout = PlaneLayout::new(&index, PlaneFile::Won(1).orientation());
    let mut scores: Vec<i8> = Vec::new();
    let kernel = BitKernel::detect();
    context.progress().begin(index.slab_positions(), "positions");
    for unit in layout.units() {
        stop(context)?;
        let slab = &layout.slabs()[unit.slab];
        planes.par_iter_mut().try_for_each(|input| {
            input.words.resize(unit.words.len(), 0);
            let read = input.reader.read(unit.words.clone(), &mut input.words);
            input.has_bits = read.map_err(|error| files::unreadable(&input.plane.name(stones), error))?;
            Ok::<_, StageError>(())
        })?;
        let planes: Vec<_> = planes.iter().filter(|input| input.has_bits).collect();
        scores.resize(unit.rows.len() * slab.columns, 0);
        scores.par_chunks_mut(ROWS * slab.columns).enumerate().for_each(|(at, scores)| {
            let first = at * ROWS * slab.row_words;
            let marks: Vec<_> = planes.iter().map(|input| (input.score, &input.words[first..])).collect();
            kernel.mark(scores, slab.columns, &marks);
        });
        writer.append(&scores)?;
        context.progress().advance(scores.len() as u64);
    }
    writer.finish()?;
    Ok(StageReport::new(index.positions()))
}

struct MergeInput {
    score: i8,
    plane: PlaneFile,
    reader: PlaneReader,
    words: Vec<u64>,
    /// Whether any word may have a bit.
    has_bits: bool,
}
