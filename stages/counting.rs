//! The stage `counting:n`: the scores of all n-stone positions, told from children to parents.
//!
//! Between bounds what is decided so far is snapshot on a timer, and when the run is asked to stop; the same bytes come
//! out of it on any number of threads.

use crate::{Shared, files, sweep, watch::Watch};
use engines::Bytes;
use engines::counting::{CountingError, Distribution, checkpoint_range, counting};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use planner::Settings;
use std::path::Path;
use std::time::Duration;
use store::{Codec, FileKind, FileOrientation, Identity, Scores, StoreError, ValueRange};

/// A stage that ran for less than this when it was asked to stop is sooner repeated than snapshot.
const WORTH_A_SNAPSHOT: Duration = Duration::from_secs(10);

/// Runs the stage.
pub(crate) fn run(shared: &Shared, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let (captures, _) = sweep::read_captures(shared, &index, context)?;
    let snapshot = Snapshot { settings, index: &index, context };
    let (mut values, mut resumed) = snapshot.read()?;
    tracing::info!(resumed, threads = context.threads(), "captures read");
    let started = context.stopwatch();
    let mut last = started;
    let watch = Watch::new(context, index.positions());
    let distribution = Distribution::new(context.threads());
    let mut solve = |values: &mut Bytes| {
        counting(&shared.tables(), &index, &captures, values, distribution, &watch, &mut |values| {
            if last.elapsed() >= context.snapshots().interval() {
                // Without a snapshot a crash costs more time, and that is all: no reason to give up the work.
                match snapshot.write(values) {
                    Ok(()) => tracing::info!("snapshot after {:.1} s", started.elapsed().as_secs_f64()),
                    Err(error) => tracing::warn!("cannot save a snapshot of counting:{stones}: {error}"),
                }
                last.restart();
            }
        })
    };
    let mut report = solve(&mut values);
    if resumed && report == Err(CountingError::Inconsistent) {
        tracing::warn!("ignoring the snapshot of counting:{stones}, which does not hold its counts");
        values.fill(0);
        resumed = false;
        report = solve(&mut values);
    }
    let report = match report {
        Ok(report) => report,
        Err(CountingError::Stopped(_)) => {
            if started.elapsed() >= WORTH_A_SNAPSHOT {
                snapshot.write(&values)?;
            }
            return Err(StageError::Stopped);
        }
        Err(error @ CountingError::Inconsistent) => return Err(StageError::failed(error)),
    };
    watch.end();
    shared.handed().give_back(captures);
    tracing::info!(supersteps = report.supersteps, "solved after {:.3} s", started.elapsed().as_secs_f64());
    let path = context.output(&files::database(stones));
    files::write(context.disk(), &path, settings, FileKind::Database, &index, settings.codec, [&values[..]])?;
    let total = report.total();
    Ok(StageReport::new(index.positions())
        .with("processors", report.processors.len() as u64)
        .with("supersteps", report.supersteps)
        .with("updates", total.updates())
        .with("messages", total.messages)
        .with("combining", total.combining().unwrap_or(0.0))
        .with("volume", total.volume_bytes())
        .with("resumed", u64::from(resumed)))
}

/// The snapshot of a stage that is under way: `MoverMajor`, scores and counts.
struct Snapshot<'a> {
    settings: &'a Settings,
    index: &'a Index,
    context: &'a StageContext<'a>,
}

const SNAPSHOT: &str = "counts";

impl Snapshot<'_> {
    /// The array to start from, and whether it comes from a snapshot.
    fn read(&self) -> Result<(Bytes, bool), StageError> {
        let mut values = Bytes::zeroed(self.index.positions() as usize).map_err(StageError::failed)?;
        let Some(saved) = self.context.snapshots().saved() else { return Ok((values, false)) };
        let Err(error) = self.read_into(&saved.join(SNAPSHOT), &mut values) else { return Ok((values, true)) };
        files::begin_anew(saved, error)?;
        values.fill(0);
        Ok((values, false))
    }

    fn read_into(&self, path: &Path, values: &mut [i8]) -> Result<(), StoreError> {
        // Not through a map: where the disk fails, a map ends the process.
        let file = Scores::open_windowed(self.context.disk(), path)?;
        let (expected, found) = (self.range(), file.range());
        if found != expected {
            return Err(StoreError::Mismatch {
                path: path.to_path_buf(),
                expected: format!("values in {expected}"),
                found: format!("values in {found}"),
            });
        }
        let identity = self.identity();
        let shape = files::shape(self.index, identity.orientation);
        file.expect(&identity, &shape)?.read_into(values)
    }

    fn write(&self, values: &[i8]) -> Result<(), StageError> {
        let path = self.context.snapshots().prepare()?.join(SNAPSHOT);
        let identity = self.identity();
        let shape = files::shape(self.index, identity.orientation);
        match store::write(self.context.disk(), &path, &identity, &shape, self.range(), Codec::Packed, values) {
            Ok(_) => Ok(()),
            Err(StoreError::Disk(error)) => Err(StageError::Disk(error)),
            Err(error) => Err(StageError::failed(error)),
        }
    }

    fn identity(&self) -> Identity {
        let Settings { rules, set, .. } = self.settings;
        let identity = files::identity(rules.name, *set, FileKind::Snapshot, self.index.stones());
        Identity { orientation: FileOrientation::MoverMajor, ..identity }
    }

    fn range(&self) -> ValueRange {
        let (low, high) = checkpoint_range(self.index.stones());
        ValueRange::new(low, high)
    }
}
