//! What the stages that solve a database in one step share: their declaration, the captures that they read, and the
//! writer of their output.

use crate::build_context::BuildContext;
use crate::declaration;
use crate::distributed::{RankResult, TeamFile, TeamWriter, agree};
use crate::kind::{Declaration, FamilyContent, FileFamily, StageKind, is_numbered};
use crate::opening::OpeningSolver;
use crate::{files, opening};
use disk::{Digest, Disk};
use game::{Index, Score};
use messaging::Communicator;
use pipeline::{ArtifactKind, ArtifactSpec, StageContext, StageProgress, StageResult as Result};
use planner::{BuildPlan, Settings};
use solvers::Bytes;
use std::ops::Range;
use std::path::Path;
use store::FileKind;

/// Version of databases, raised when the same captures give other scores.
const VERSION: u32 = 1;

/// Positions between reports of what is written: some batches of each thread, in less than a second.
const WRITE_POSITIONS: usize = 32 << 20;

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

/// Returns the captures of an index and their digest, from the stage cache or from the file, with every block
/// checked. The file is not mapped: pages of a map would count as memory.
pub(crate) fn read_captures(build: &BuildContext, index: &Index, context: &StageContext) -> Result<(Bytes, Digest)> {
    let (settings, stage_cache) = (build.settings(), build.stage_cache());
    let name = files::capture(index.stones());
    let damaged = |error| files::unreadable(&name, error);
    let file = files::open_windowed(context.disk(), &context.input(&name), settings, FileKind::Capture, index)?;
    if let Some(captures) = stage_cache.captures(file.digest()) {
        return Ok((captures, file.digest()));
    }
    let mut captures = stage_cache.array(build.plans(), index)?;
    file.read_into(&mut captures).map_err(damaged)?;
    Ok((captures, file.digest()))
}

/// A database that a team of ranks writes.
pub(crate) struct DatabaseOutput<'d, 'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) disk: &'d dyn Disk,
    pub(crate) index: &'a Index,
    pub(crate) path: &'a Path,
    /// Directory on the local disk of each rank; `None` is that of the file.
    pub(crate) scratch: Option<&'a Path>,
    /// Best capture of the opening, if the database has the opening and it has captures.
    pub(crate) opening_capture: Option<Score>,
    /// The progress of a stage that has computed all scores, on rank 0.
    pub(crate) progress: Option<&'d StageProgress>,
}

/// Writer of the positions of one rank of the database that a stage makes. It receives the scores in slabs,
/// and adds that of the opening.
pub(crate) struct DatabaseWriter<'d> {
    writer: TeamWriter<'d>,
    opening: Option<OpeningSolver>,
    progress: Option<&'d StageProgress>,
    /// The position after those received.
    position: u64,
    slab_positions: u64,
}

impl<'d> DatabaseWriter<'d> {
    /// Begins to write with the other ranks.
    pub(crate) fn begin(output: &DatabaseOutput<'d, '_>, communicator: &mut dyn Communicator) -> RankResult<Self> {
        let DatabaseOutput { settings, disk, index, path, scratch, opening_capture, progress } = *output;
        let format = (FileKind::Database, settings.codec);
        let file = TeamFile::of_values((disk, path), settings, index, format, communicator.size());
        let writer = TeamFile { scratch, ..file }.begin(communicator)?;
        let opening = OpeningSolver::new(settings.rules, index, opening_capture);
        let (Range { start, end }, slab_positions) = (writer.positions(), index.slab_positions());
        if let Some(progress) = progress {
            progress.begin_writing(end.min(slab_positions) - start, "positions", disk.clock().steady());
        }
        Ok(DatabaseWriter { opening, progress, position: start, slab_positions, writer })
    }

    /// The positions in slabs that this rank writes.
    pub(crate) fn positions(&self) -> Range<u64> {
        let Range { start, end } = self.writer.positions();
        start.min(self.slab_positions)..end.min(self.slab_positions)
    }

    /// The positions of each rank, with that of the opening.
    pub(crate) fn positions_of_all(&self) -> Vec<Range<u64>> {
        self.writer.positions_of_all().to_vec()
    }

    /// Appends the scores of the next positions of this rank, in canonical order.
    pub(crate) fn append(&mut self, scores: &[Score]) -> Result<()> {
        if let Some(opening) = &mut self.opening {
            opening.see(self.position, scores);
        }
        self.position += scores.len() as u64;
        scores.chunks(WRITE_POSITIONS).try_for_each(|scores| {
            self.writer.append(scores)?;
            if let Some(progress) = self.progress {
                progress.advance(scores.len() as u64);
            }
            Ok(())
        })
    }

    /// Publishes the database, and returns the digest of its scores on rank 0. `appended` tells whether this
    /// rank appended all its scores, or what prevented it.
    pub(crate) fn finish_with(
        mut self,
        mut appended: Result<()>,
        communicator: &mut dyn Communicator,
    ) -> RankResult<Option<Digest>> {
        if let Some(mut opening) = self.opening.take() {
            agree(communicator, appended)?;
            opening.combine(&communicator.sum(&opening.seen())?);
            let is_here = self.writer.positions().contains(&self.slab_positions);
            appended = if is_here { self.writer.append(&[opening.score()]) } else { Ok(()) };
        }
        self.writer.finish(appended, communicator)
    }
}
