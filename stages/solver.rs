//! What the stages that solve a database in one step share: their declaration, the captures that they read, and the
//! writer of their output.

use crate::build_context::BuildContext;
use crate::declaration;
use crate::kind::{Declaration, FamilyContent, FileFamily, StageKind, is_numbered};
use crate::opening::OpeningSolver;
use crate::{files, opening};
use disk::Digest;
use game::{Index, Score};
use pipeline::{ArtifactKind, ArtifactSpec, StageContext, StageResult as Result};
use planner::{BuildPlan, Settings};
use solvers::Bytes;
use store::{FileKind, Writer};

/// Version of databases, raised when the same captures give other scores.
const VERSION: u32 = 1;

/// Databases: `databases/NN.awari`.
pub(crate) static DATABASES: FileFamily = FileFamily {
    folder: "databases",
    has: |file| is_numbered(file, "awari"),
    content: FamilyContent::Values(|_, rules| files::database_kind(rules)),
};

/// Declares the stages that solve databases from their captures.
pub(crate) fn declare(kind: &StageKind, build: &BuildPlan) -> Vec<Declaration> {
    declaration::of_databases(kind, build, |kind, settings, plan| {
        let stones = plan.stones();
        let inputs = [files::capture(stones)].into_iter().chain(opening::inputs(settings, stones)).collect();
        let stage = declaration::stage(kind, plan, None, inputs, vec![files::database(stones)]);
        Declaration { stage, artifacts: vec![declare_database(settings, stones)] }
    })
}

/// Declares the database of some stones.
pub(crate) fn declare_database(settings: &Settings, stones: u32) -> ArtifactSpec {
    let name = files::database(stones);
    let database = declaration::artifact(settings, stones, name, ArtifactKind::Target, "database").version(VERSION);
    match settings.set.opening(stones) {
        Some(opening) => database.identity("opening", opening.pit_stones()),
        None => database,
    }
}

/// Returns the captures of an index and their digest, from the stage cache or from the file, with every block checked. The
/// file is not mapped: pages of a map would count as memory.
pub(crate) fn read_captures(build: &BuildContext, index: &Index, context: &StageContext) -> Result<(Bytes, Digest)> {
    let (settings, stage_cache) = (build.settings(), build.stage_cache());
    let name = files::capture(index.stones());
    let damaged = |error| files::unreadable(&name, error);
    let path = context.input(&name);
    let file = files::open_windowed(context.disk(), &path, settings, FileKind::Capture, index).map_err(damaged)?;
    if let Some(captures) = stage_cache.captures(file.digest()) {
        return Ok((captures, file.digest()));
    }
    let mut captures = stage_cache.array(build.plans(), index)?;
    file.read_into(&mut captures).map_err(damaged)?;
    Ok((captures, file.digest()))
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
