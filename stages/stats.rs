//! The stage `stats:n`: the figures that the papers report, counted over the whole database.

use crate::{Shared, files, sweep};
use check::{Choice, Databases, Histogram, Statistics};
use disk::Staged;
use engines::Bytes;
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use store::Kind;

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let captures = sweep::read_captures(settings, &index, context)?;
    let name = files::database(stones);
    let damaged = |error| files::unreadable(&name, error);
    let file = files::open(context.disk(), &context.input(&name), settings, Kind::Database, &index).map_err(damaged)?;
    let mut scores = Bytes::zeroed(index.positions() as usize).map_err(StageError::failed)?;
    file.read_into(&mut scores).map_err(damaged)?;
    let choice = engines::choice(shared.tables(), &index, &captures, &scores);
    let choice = Choice { positions: index.positions(), offered: choice.offered, declined: choice.declined };
    let mut databases = Databases::new(settings.rules, settings.set);
    databases.insert(stones, &scores[..]).map_err(StageError::failed)?;
    let histogram = databases.get(stones).and_then(Histogram::of).map_err(StageError::failed)?;
    let text = Statistics::new(stones, histogram, choice).json() + "\n";
    let path = context.output(&files::stats(stones));
    let mut staged = Staged::create(context.disk(), &path, text.len() as u64)?;
    staged.write(text.as_bytes())?;
    staged.publish()?;
    Ok(StageReport::new(index.positions()))
}
