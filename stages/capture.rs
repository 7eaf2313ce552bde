//! The stage `capture:n`: the best captures of all n-stone positions, from the smaller databases.

use crate::{Settings, Shared, files, watch::Watch};
use engines::capture::{SlabScores, Smaller, in_memory, none};
use engines::{Bytes, Tables};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use store::{Codec, Flat, FlatSlab, Kind, Scores};

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let mut best = Bytes::filled(index.positions() as usize, none(stones)).map_err(StageError::failed)?;
    let databases = open_smaller(settings, stones, context)?;
    let groups = groups(&databases, index.positions());
    let tables = shared.tables();
    for (turn, group) in groups.iter().enumerate() {
        group.capture(
            &databases,
            tables,
            &index,
            &mut best,
            &Watch::turn(context, index.positions(), turn, groups.len()),
        )?;
    }
    let path = context.output(&files::capture(stones));
    files::write(context.disk(), &path, settings, Kind::Capture, &index, Codec::Packed, &best)?;
    Ok(StageReport::new(index.positions()))
}

/// The smaller databases that captures can lead to, by their stones: none has one or `stones` captured less.
fn open_smaller(settings: &Settings, stones: u32, context: &StageContext) -> Result<Vec<Scores>, StageError> {
    settings
        .smaller(stones)
        .map(|stones| {
            let name = files::database(stones);
            let index = Index::new(stones, settings.set);
            files::open(context.disk(), &context.input(&name), settings, Kind::Database, &index)
                .map_err(|error| files::unreadable(&name, error))
        })
        .collect()
}

/// Databases read in one pass over the captures, by their stones.
struct Group {
    from: usize,
    to: usize,
}

/// Compressed databases are decoded in groups of no more positions than the database to come has.
fn groups(databases: &[Scores], positions: u64) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut group = Group { from: databases.len(), to: databases.len() };
    let mut decoded = 0;
    for (stones, database) in databases.iter().enumerate().rev() {
        let bytes = if database.codec() == Codec::Zstd { database.shape().positions() } else { 0 };
        if decoded + bytes > positions && group.from < group.to {
            groups.push(group);
            group = Group { from: stones + 1, to: stones + 1 };
            decoded = 0;
        }
        decoded += bytes;
        group.from = stones;
    }
    groups.push(group);
    groups
}

impl Group {
    fn capture(
        &self,
        databases: &[Scores],
        tables: &Tables,
        index: &Index,
        best: &mut Bytes,
        watch: &Watch,
    ) -> Result<(), StageError> {
        let mut held = Vec::new();
        for (stones, database) in (self.from..self.to).zip(&databases[self.from..self.to]) {
            let damaged = |error| files::unreadable(&files::database(stones as u32), error);
            held.push(match database.flat().map_err(damaged)? {
                Some(flat) => Held::InPlace(flat),
                None => {
                    let index = Index::new(stones as u32, index.set());
                    let mut scores = Bytes::zeroed(index.positions() as usize).map_err(StageError::failed)?;
                    database.read_into(&mut scores).map_err(damaged)?;
                    Held::Decoded(index, scores)
                }
            });
        }
        let mut smaller: Vec<Option<Smaller>> = (0..self.from).map(|_| None).collect();
        smaller.extend(held.iter().map(|held| Some(held.slabs())));
        engines::capture::capture(tables, index, &smaller, best, watch).map_err(|_| StageError::Stopped)
    }
}

/// A smaller database as captures read it.
enum Held<'a> {
    InPlace(Flat<'a>),
    Decoded(Index, Bytes),
}

impl Held<'_> {
    fn slabs(&self) -> Smaller<'_> {
        match self {
            Held::InPlace(flat) => flat.slabs().iter().map(|&slab| in_place(slab)).collect(),
            Held::Decoded(index, scores) => in_memory(index, scores),
        }
    }
}

fn in_place(slab: FlatSlab<'_>) -> SlabScores<'_> {
    match slab.signed() {
        Some(scores) => SlabScores::Raw(scores),
        None => SlabScores::Packed { bytes: slab.bytes(), bits: slab.bits(), low: slab.low() },
    }
}
