//! The stage `capture:n`: the best captures of all n-stone positions, from the smaller databases.

use crate::{Settings, Shared, files, watch::Watch};
use engines::capture::{SlabScores, Smaller, none};
use engines::{Bytes, Tables};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use store::{Codec, FlatSlab, Kind, Scores};

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
    let name = files::capture(stones);
    let identity = files::identity(settings.rules.name, settings.set, Kind::Capture, stones);
    let shape = files::shape(&index, identity.orientation);
    let range = files::range(Kind::Capture, stones);
    store::write(context.disk(), &context.output(&name), &identity, &shape, range, Codec::Packed, &best)
        .map_err(files::unwritable)?;
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
        let mut decoded: Vec<Option<Bytes>> = Vec::new();
        for (stones, database) in databases[self.from..self.to].iter().enumerate() {
            let damaged = |error| files::unreadable(&files::database((self.from + stones) as u32), error);
            decoded.push(match database.flat().map_err(damaged)? {
                Some(_) => None,
                None => {
                    let mut scores =
                        Bytes::zeroed(database.shape().positions() as usize).map_err(StageError::failed)?;
                    database.read_into(&mut scores).map_err(damaged)?;
                    Some(scores)
                }
            });
        }
        let mut smaller: Vec<Option<Smaller>> = (0..self.from).map(|_| None).collect();
        for (at, decoded) in decoded.iter().enumerate() {
            let stones = self.from + at;
            let database = &databases[stones];
            smaller.push(Some(match decoded {
                Some(scores) => (0..=stones)
                    .map(|slab| {
                        let range = database.shape().slab_positions(slab);
                        SlabScores::Raw(&scores[range.start as usize..range.end as usize])
                    })
                    .collect(),
                None => {
                    let flat =
                        database.flat().map_err(|error| files::unreadable(&files::database(stones as u32), error))?;
                    let flat = flat.expect("what was flat a moment ago is flat");
                    flat.slabs().iter().map(|&slab| in_place(slab)).collect()
                }
            }));
        }
        engines::capture::capture(tables, index, &smaller, best, watch).map_err(|_| StageError::Stopped)
    }
}

fn in_place(slab: FlatSlab<'_>) -> SlabScores<'_> {
    match slab.signed() {
        Some(scores) => SlabScores::Raw(scores),
        None => SlabScores::Packed { bytes: slab.bytes(), bits: slab.bits(), low: slab.low() },
    }
}
