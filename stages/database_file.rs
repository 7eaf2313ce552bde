//! The stage that solves a database in one step, and the writer of its output.

use crate::opening::OpeningSolver;
use crate::{Result, declaration, files, opening};
use disk::Digest;
use game::{Index, Score};
use pipeline::{ArtifactSpec, StageContext, StageSpec};
use planner::{DatabasePlan, Settings};
use store::{FileKind, Writer};

/// Declares the stage that solves a database from its captures.
pub(crate) fn declare_solver(settings: &Settings, plan: &DatabasePlan, kind: &str) -> (StageSpec, Vec<ArtifactSpec>) {
    let stones = plan.stones();
    let inputs = [files::capture(stones)].into_iter().chain(opening::inputs(settings, stones)).collect();
    let stage = declaration::stage(plan, kind, None, inputs, vec![files::database(stones)]);
    (stage, vec![files::declare_database(settings, stones)])
}

/// Writer of the database that a stage makes. It receives the scores of all slabs, and adds that of the opening.
pub(crate) struct DatabaseWriter<'d> {
    writer: Writer<'d>,
    stones: u32,
    opening: Option<OpeningSolver>,
    /// Scores received.
    received: u64,
}

impl<'d> DatabaseWriter<'d> {
    /// Creates the output of a stage.
    pub(crate) fn create(context: &'d StageContext, settings: &Settings, index: &Index) -> Result<DatabaseWriter<'d>> {
        let (disk, stones) = (context.disk(), index.stones());
        let path = context.output(&files::database(stones));
        let writer = files::create(disk, &path, settings, FileKind::Database, index, settings.codec)?;
        let capture = opening::best_capture(settings, stones, disk, |name| context.input(name), 0)?;
        Ok(DatabaseWriter { writer, stones, opening: OpeningSolver::new(settings.rules, index, capture), received: 0 })
    }

    /// Appends the scores of positions in slabs, in canonical order.
    pub(crate) fn append(&mut self, scores: &[Score]) -> Result<()> {
        if let Some(opening) = &mut self.opening {
            opening.see(self.received, scores);
        }
        self.received += scores.len() as u64;
        self.writer.append(scores).map_err(|error| files::unwritable_scores(self.stones, error))
    }

    /// Publishes the database, and returns the digest of its scores.
    pub(crate) fn finish(mut self) -> Result<Digest> {
        if let Some(opening) = self.opening.take() {
            self.append(&[opening.score()])?;
        }
        let finished = self.writer.finish().map_err(|error| files::unwritable_scores(self.stones, error));
        Ok(finished?.digest)
    }
}
