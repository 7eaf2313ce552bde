//! The stage `sweep:n`: the scores of all n-stone positions from their best captures, see [`solving`].
//!
//! A snapshot is a file for each rank, written at any time, since any mixture of passes converges to the same
//! scores. The bounds of rules whose positions have no score have a module of their own.

mod guarantees;
mod snapshots;

use crate::distributed::{RankResult, agree};
use crate::files;
use crate::kind::{KindOptions, Phase, StageKind};
use crate::solver::{self, DATABASES, read_captures};
use crate::solver_progress::{PassLimit, SolverProgress};
use crate::solving::{self, OneStageSolver, SnapshotPlace, SolveObserver, SolveRank};
use crate::stage_cache::CacheUse;
use disk::Digest;
use messaging::Communicator;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use planner::{OneStage, StageClass};
use serde::{Deserialize, Serialize};
use solvers::ranks::JobError;
use solvers::sweep::ranks::ScorePartition;
use solvers::sweep::{self, RankScores};
use solvers::{Bytes, Kernel};
use std::io;
use std::path::Path;
use std::sync::Arc;
use store::StoreError;

/// The kind `sweep:n`.
pub(crate) static SWEEP: StageKind = StageKind {
    word: Sweep::KIND,
    phase: Phase::Solving,
    files: Some(&DATABASES),
    declare: |kind, build| {
        let mut declared = solver::declare(kind, build);
        // Bounds of rules without scores are narrowed by one pool from beginning to end.
        declared.iter_mut().for_each(|declared| declared.stage.grows = build.settings().rules.has_scores());
        declared
    },
    run: |build, parameters, context| {
        let stones = parameters[0];
        match build.job() {
            None if !build.settings().rules.has_scores() => guarantees::run(build, stones, context),
            _ => solving::run::<Sweep>(build, stones, context),
        }
    },
    options: KindOptions {
        classes: &[StageClass::OneStage(OneStage::Sweep)],
        cache_use: CacheUse::ALL,
        follow: solving::follow::<Sweep>,
        ..KindOptions::OF_DATABASES
    },
};

/// Solver by sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sweep;

/// The best captures of a rank, and their digest in the file.
struct RankCaptures {
    values: Bytes,
    digest: Digest,
}

impl OneStageSolver for Sweep {
    const KIND: &str = "sweep";

    fn new(_: &StageContext, _: Option<SnapshotPlace>) -> Result<Sweep> {
        Ok(Sweep)
    }

    fn is_valid(&self) -> bool {
        true
    }

    fn solve(&self, rank: &SolveRank<Sweep>, communicator: &mut dyn Communicator) -> RankResult<StageReport> {
        let (tables, index) = (&rank.tables, &rank.member.index);
        let prepared = scores(rank, communicator);
        let (mut scores, captures) = agree(communicator, prepared)?;
        let mut resumed = communicator.sum(&[u64::from(!scores.is_fresh())])? != [0];
        let progress = |context| SolverProgress::passes(context, index.slab_positions(), index.slab_positions());
        let save = |directory: &Path, scores: &RankScores| snapshots::save(rank, directory, scores);
        let observer = SolveObserver::new(rank, progress, PassLimit::new(resumed), save);
        let solve = |scores: &mut RankScores, communicator: &mut dyn Communicator| {
            sweep::sweep(tables, index, &captures.values, scores, Kernel::detect(), communicator, &observer)
        };
        let mut solved = solve(&mut scores, communicator);
        if observer.limit.is_over() && matches!(solved, Err(JobError::Stopped)) {
            tracing::warn!("ignoring the snapshot of sweep:{}, which does not converge", index.stones());
            resumed = false;
            scores.clear();
            observer.limit.lift();
            solved = solve(&mut scores, communicator);
        }
        let grown = observer.grown();
        let report = observer.end(solved, communicator)?;
        let write = || -> RankResult<()> {
            let Some((build, _)) = rank.alone() else {
                drop(captures);
                return rank.write(&scores, communicator);
            };
            let choice = solvers::choice_of(tables, index, &captures.values, scores.rows());
            build.stage_cache().give_back(captures.values);
            let rows = scores.into_rows();
            let digest = rank.write_rows(&rows, communicator)?;
            build.stage_cache().keep_choice(captures.digest, digest, choice);
            build.stage_cache().keep_database(build.plans(), index.stones(), digest, &rows);
            build.stage_cache().give_back(rows.into_bytes());
            Ok(())
        };
        let report = StageReport::new(index.positions())
            .with("passes", report.passes)
            .with("recomputed", report.recomputed)
            .with("changed", report.changed)
            .with("resumed", u64::from(resumed));
        match grown {
            Some(pool) => {
                pool.install(write)?;
                Ok(report.with("threads at the end", pool.current_num_threads() as u64))
            }
            None => {
                write()?;
                Ok(report)
            }
        }
    }
}

/// Returns the scores of a rank, from a snapshot or all zeros, and its captures.
fn scores(rank: &SolveRank<Sweep>, communicator: &dyn Communicator) -> Result<(RankScores, RankCaptures)> {
    let index = &rank.member.index;
    let snapshots = rank.snapshot_directory();
    let restore = |scores: &mut _| snapshots.map_or(Ok(()), |directory| snapshots::restore(rank, directory, scores));
    if let Some((build, context)) = rank.alone() {
        let (captures, digest) = read_captures(build, index, context)?;
        let rows = build.stage_cache().rows(build.plans(), index)?;
        let mut scores = RankScores::alone(&rank.tables, index, rows);
        if context.snapshots().saved().is_some() {
            restore(&mut scores)?;
        }
        return Ok((scores, RankCaptures { values: captures, digest }));
    }
    let partition = Arc::new(ScorePartition::new(&rank.tables, index.slabs(), communicator.size()));
    let scores = RankScores::zeroed(&rank.tables, partition, communicator.rank());
    let mut scores = scores.map_err(StageError::failed)?;
    restore(&mut scores)?;
    let file = rank.captures()?;
    let read = |positions, to: &mut [i8]| file.read_range(positions, to).map_err(Unprepared::Captures);
    match scores.captures(read) {
        Ok(values) => Ok((scores, RankCaptures { values, digest: file.digest() })),
        Err(Unprepared::Memory(error)) => Err(StageError::failed(error)),
        Err(Unprepared::Captures(error)) => Err(files::unreadable(&files::capture(index.stones()), error)),
    }
}

/// Error while preparing the part of a rank.
enum Unprepared {
    Memory(io::Error),
    Captures(StoreError),
}

impl From<io::Error> for Unprepared {
    fn from(error: io::Error) -> Unprepared {
        Unprepared::Memory(error)
    }
}
