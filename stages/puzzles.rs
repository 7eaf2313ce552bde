//! The stage `puzzles:n`: positions of a database for people to solve, each with its solution.
//!
//! In a *puzzle* one move alone keeps the best result, and another move captures more at once: a player who
//! looks one move ahead takes the wrong one. The positions of the database are divided into as many equal
//! ranges as puzzles are wanted. Each range gives the first puzzle among positions that are spread evenly
//! over it, or none.

use crate::build_context::BuildContext;
use crate::declaration;
use crate::files;
use crate::kind::{Declaration, FamilyContent, FileFamily, KindOptions, Phase, StageKind, is_numbered};
use crate::verify::{with_smaller, wrong};
use check::{CheckError, Databases, ScoreSource};
use game::notation::PositionText;
use game::{Board, Index, Pit, Score};
use pipeline::{
    ArtifactKind, ArtifactName, Cost, StageContext, StageError, StageName, StageReport, StageResult as Result,
    StageSpec,
};
use planner::{DatabasePlan, Settings, StageClass};
use rayon::prelude::*;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use store::{BlockCache, CachedScores, FileKind};

/// Version of puzzles, raised when the same databases give others.
const VERSION: u32 = 1;

/// The most positions of a range that are tried. At 12 stones 19 of 20 ranges have a puzzle among as many.
const TRIES: u64 = 200;

/// The most bytes of a line.
const LINE_BYTES: u64 = 80;

/// Microseconds to try a position: it and its children are read from files.
const TRY_MICROSECONDS: f64 = 5.0;

const KIND: &str = "puzzles";

/// Puzzles: `puzzles/NN.txt`.
static FILES: FileFamily =
    FileFamily { folder: KIND, has: |file| is_numbered(file, "txt"), content: FamilyContent::REPORT };

/// The kind `puzzles:n`.
pub(crate) static PUZZLES: StageKind = StageKind {
    word: KIND,
    phase: Phase::Statistics,
    files: Some(&FILES),
    declare: |kind, build| match build.settings().puzzles {
        0 => Vec::new(),
        _ => declaration::of_databases(kind, build, declare),
    },
    run: |build, parameters, context| run(build, parameters[0], context),
    options: KindOptions::OF_DATABASES,
};

/// Returns `puzzles/NN.txt`.
fn puzzles_of(stones: u32) -> ArtifactName {
    files::name(format!("{KIND}/{stones:02}.txt"))
}

/// Declares the stage of a database: it reads the database and the smaller ones.
fn declare(kind: &StageKind, settings: &Settings, plan: &DatabasePlan) -> Declaration {
    let (stones, puzzles) = (plan.stones(), puzzles_of(plan.stones()));
    let positions = settings.set.positions(stones).min(settings.puzzles * TRIES);
    let text_bytes = (settings.puzzles + 2) * LINE_BYTES;
    let seconds = positions as f64 * TRY_MICROSECONDS / 1e6;
    let stage = StageSpec {
        inputs: with_smaller(settings, stones).map(files::database).collect(),
        outputs: vec![puzzles.clone()],
        cost: Cost {
            positions,
            seconds,
            core_seconds: seconds,
            disk_seconds: 0.0,
            // The tables of the process, and blocks of the same databases.
            memory_bytes: plan.cost(StageClass::Verify).memory_bytes,
            disk_bytes: text_bytes,
            disk_kept_bytes: text_bytes,
        },
        ..StageSpec::new(StageName::new(kind.word, &[stones]))
    };
    let puzzles = declaration::artifact(settings, stones, puzzles, ArtifactKind::Report, KIND)
        .version(VERSION)
        .identity("count", settings.puzzles);
    Declaration { stage, artifacts: vec![puzzles] }
}

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let paths: Vec<_> = with_smaller(settings, stones).map(|stones| context.input(&files::database(stones))).collect();
    let databases = open(build, stones, &paths, context)?;
    let (count, positions) = (settings.puzzles, settings.set.positions(stones));
    let first = |range: u64| (u128::from(positions) * u128::from(range) / u128::from(count)) as u64;
    context.progress().begin(count, "ranges");
    let found: Result<Vec<Option<Puzzle>>> = (0..count)
        .into_par_iter()
        .map(|range| {
            if context.stop_requested() {
                return Err(StageError::Stopped);
            }
            let puzzle = Puzzle::first(&databases, stones, first(range)..first(range + 1));
            context.progress().advance(1);
            puzzle.map_err(|error| wrong(error, stones, &paths))
        })
        .collect();
    let found: Vec<Puzzle> = found?.into_iter().flatten().collect();
    let lines: String = found.iter().map(|puzzle| format!("{puzzle}\n")).collect();
    let text = format!(
        "# Puzzles of {stones} stones by the rules {}: one move alone keeps the best result, another captures more at once.\n\
         # position; best move; stones that it wins from here on; those of the second best; moves that capture most\n\
         {lines}",
        settings.rules.name
    );
    let name = puzzles_of(stones);
    let report = StageReport::new(positions.min(count * TRIES)).with("puzzles", found.len() as u64);
    files::publish(context, report, name, text.as_bytes())
}

/// Opens the databases at `paths`, which are those of [`with_smaller`].
fn open(
    build: &BuildContext,
    stones: u32,
    paths: &[PathBuf],
    context: &StageContext,
) -> Result<Databases<CachedScores>> {
    let settings = build.settings();
    let cache = BlockCache::new(build.stage_cache().cache_bytes(build.plan(stones)));
    let mut databases = Databases::new(settings.rules, settings.set);
    for (stones, path) in with_smaller(settings, stones).zip(paths) {
        let index = Index::new(stones, settings.set);
        let scores = files::open(context.disk(), path, settings, FileKind::Database, &index)?;
        databases.insert(stones, CachedScores::sharing(scores, Arc::clone(&cache))).map_err(StageError::failed)?;
    }
    Ok(databases)
}

/// A position in which the only best move captures less than another one.
#[derive(Debug, PartialEq, Eq)]
struct Puzzle {
    board: Board,
    best: Pit,
    /// The value of the best move: stones won minus stones lost under best play.
    value: Score,
    /// The value of the second best move.
    second: Score,
    /// The moves that capture most.
    greedy: Vec<Pit>,
}

impl Puzzle {
    /// Returns the first puzzle among at most [`TRIES`] positions that are spread evenly over a range.
    fn first<L: ScoreSource>(
        databases: &Databases<L>,
        stones: u32,
        range: Range<u64>,
    ) -> Result<Option<Puzzle>, CheckError> {
        let database = databases.get(stones)?;
        let positions = range.end - range.start;
        let tries = positions.min(TRIES);
        for number in 0..tries {
            let position = range.start + (u128::from(positions) * u128::from(number) / u128::from(tries)) as u64;
            if let Some(puzzle) = Puzzle::new(databases, database.board(position))? {
                return Ok(Some(puzzle));
            }
        }
        Ok(None)
    }

    /// Returns the puzzle of a position, if it is one.
    fn new<L: ScoreSource>(databases: &Databases<L>, board: Board) -> Result<Option<Puzzle>, CheckError> {
        let moves: Vec<_> = board.moves(databases.rules()).collect();
        let captured = moves.iter().map(|(_, played)| played.captured);
        let (Some(least), Some(most)) = (captured.clone().min(), captured.max()) else { return Ok(None) };
        if least == most {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(moves.len());
        for &(pit, played) in &moves {
            let child = databases.get(played.child.stones())?;
            let score = child.scores().score(child.position(&played.child)?)?;
            values.push((played.captured as Score - score, pit, played.captured));
        }
        values.sort_by_key(|&(value, ..)| std::cmp::Reverse(value));
        let [(value, best, captured), (second, ..), ..] = values[..] else { return Ok(None) };
        let greedy = moves.iter().filter(|(_, played)| played.captured == most).map(|&(pit, _)| pit).collect();
        Ok((value > second && captured < most).then_some(Puzzle { board, best, value, second, greedy }))
    }
}

impl fmt::Display for Puzzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Puzzle { board, best, value, second, greedy } = self;
        let greedy: Vec<_> = greedy.iter().map(Pit::to_string).collect();
        write!(f, "{}; {best}; {value}; {second}; {}", PositionText::of_board(*board), greedy.join(" "))
    }
}
