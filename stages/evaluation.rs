//! The stage `evaluation:n`: fits the evaluation of the engine to the databases of up to n stones.
//!
//! Positions come from games of the engine. All of them but one in [`LEFT_OUT`] are fitted to; the others
//! give the error by number of stones. The files depend on the databases and on the settings alone, not on
//! threads.

use crate::build_context::BuildContext;
use crate::declaration;
use crate::files;
use crate::kind::{Declaration, FamilyContent, FileFamily, KindOptions, Phase, StageKind};
use game::{Board, Index, Orientation, Score};
use pipeline::{ArtifactKind, ArtifactName, StageContext, StageError, StageReport, StageResult as Result};
use planner::{EvaluationFit, Settings, StageClass};
use rayon::prelude::*;
use search::{Evaluation, GameSampler, Training};
use serde::Serialize;
use std::collections::BTreeMap;
use store::{CachedScores, FileKind};

/// Version of evaluations, raised when the same databases give another one.
const VERSION: u32 = 2;

/// The seed of the games.
const SEED: u64 = 1;

/// One game in this many is left out of the fit.
const LEFT_OUT: u64 = 20;

/// Games between two looks at a request to stop: seconds.
const GAMES_A_ROUND: u64 = 512;

/// Positions whose scores a thread reads at a time. They are sorted, so that each block is decoded by one thread.
const POSITIONS_A_READ: usize = 4096;

const ERRORS: &str = "errors.json";

/// The evaluation and its errors.
static EVALUATIONS: FileFamily = FileFamily {
    folder: Evaluation::FOLDER,
    has: |file| [Evaluation::FILE, ERRORS].contains(&file),
    content: FamilyContent::REPORT,
};

fn network() -> ArtifactName {
    files::name(format!("{}/{}", Evaluation::FOLDER, Evaluation::FILE))
}

fn network_errors() -> ArtifactName {
    files::name(format!("{}/{ERRORS}", Evaluation::FOLDER))
}

/// The kind `evaluation:n`.
pub(crate) static EVALUATION: StageKind = StageKind {
    word: "evaluation",
    phase: Phase::Evaluation,
    files: Some(&EVALUATIONS),
    declare: |kind, build| {
        let (settings, largest) = (build.settings(), build.databases().last());
        let (Some(fit), Some(plan)) = (settings.evaluation, largest) else { return Vec::new() };
        let outputs = [(network(), "evaluation"), (network_errors(), "evaluation-errors")];
        let databases = settings.stones().map(files::database).collect();
        let names = outputs.iter().map(|(name, _)| name.clone()).collect();
        let artifact = |(name, content)| {
            declaration::artifact(settings, plan.stones(), name, ArtifactKind::Report, content)
                .version(VERSION)
                .identity("games", fit.games)
                .identity("rounds", fit.rounds)
        };
        let stage = declaration::stage(kind, plan, None, databases, names);
        vec![Declaration { stage, artifacts: outputs.map(artifact).into() }]
    },
    run: |build, parameters, context| run(build, parameters[0], context),
    options: KindOptions { classes: &[StageClass::Evaluation], ..KindOptions::OF_DATABASES },
};

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let fit = settings.evaluation.expect("a build without this setting has no such stage");
    let played = play(settings, stones, fit.games, context)?;
    let cache_bytes = build.plan(stones).memory().cache_bytes;
    let samples = scored(settings, played, cache_bytes, context)?;
    let (left_out, fitted): (Vec<_>, Vec<_>) = samples.into_iter().partition(|sample| sample.is_left_out);
    if fitted.len() < Training::SAMPLES_MIN {
        return Err(StageError::failed(format!(
            "{} games have {} positions of 3 to {stones} stones, expected at least {}; set evaluation.games higher",
            fit.games,
            fitted.len(),
            Training::SAMPLES_MIN
        )));
    }
    let positions = fitted.len() as u64;
    let training = Training::new(fitted.into_iter().map(|sample| (sample.board, f32::from(sample.score))));
    let progress = context.progress();
    progress.begin(0, "batches");
    let evaluation = training.fit(fit.rounds, context.threads(), |done, total| {
        progress.reach(done, total);
        !context.stop_requested()
    });
    let evaluation = evaluation.ok_or(StageError::Stopped)?;
    let errors = EvaluationErrors::of(&evaluation, stones, fit, positions, &left_out);
    let error = errors.network();
    let text = serde_json::to_string(&errors).expect("numbers and lists of them are JSON") + "\n";
    let report = StageReport::new(positions).with("error", error).with("left out", left_out.len() as u64);
    let report = files::publish(context, report, network(), &evaluation.to_bytes())?;
    files::publish(context, report, network_errors(), text.as_bytes())
}

/// A position of a game.
struct PlayedPosition {
    board: Board,
    is_left_out: bool,
}

/// A position with its score.
struct EvaluationSample {
    board: Board,
    score: Score,
    is_left_out: bool,
}

/// Returns the positions of all games, in their order.
fn play(settings: &Settings, stones: u32, games: u64, context: &StageContext) -> Result<Vec<PlayedPosition>> {
    let progress = context.progress();
    progress.begin(games, "games");
    let mut found = Vec::new();
    for first in (0..games).step_by(GAMES_A_ROUND as usize) {
        if context.stop_requested() {
            return Err(StageError::Stopped);
        }
        let round = first..games.min(first + GAMES_A_ROUND);
        let sampler = || GameSampler::new(settings.rules, SEED);
        let play = |sampler: &mut std::io::Result<GameSampler>, game| {
            let sampler = sampler.as_ref().map_err(|error| StageError::failed(error.to_string()))?;
            let boards = sampler.game(game, stones);
            progress.advance(1);
            Ok(boards.into_iter().map(|board| PlayedPosition { board, is_left_out: game % LEFT_OUT == 0 }).collect())
        };
        let of_round: Result<Vec<Vec<PlayedPosition>>> = round.into_par_iter().map_init(sampler, play).collect();
        found.extend(of_round?.into_iter().flatten());
    }
    Ok(found)
}

/// Looks up the scores of positions, and leaves out those that no database of the build holds. The order stays.
fn scored(
    settings: &Settings,
    played: Vec<PlayedPosition>,
    cache_bytes: u64,
    context: &StageContext,
) -> Result<Vec<EvaluationSample>> {
    let progress = context.progress();
    progress.begin(played.len() as u64, "positions");
    let mut of_stones: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, position) in played.iter().enumerate() {
        of_stones.entry(position.board.stones()).or_default().push(at);
    }
    let mut scores: Vec<Option<Score>> = vec![None; played.len()];
    for (stones, places) in of_stones {
        if context.stop_requested() {
            return Err(StageError::Stopped);
        }
        let count = places.len() as u64;
        if settings.stones().any(|built| built == stones) {
            let index = Index::new(stones, settings.set);
            let rank = |at: usize| Some((index.rank(&played[at].board, Orientation::OpponentMajor)?, at));
            let mut places: Vec<(u64, usize)> = places.into_par_iter().filter_map(rank).collect();
            places.par_sort_unstable();
            for ((_, at), score) in places.iter().zip(read(settings, &index, &places, cache_bytes, context)?) {
                scores[*at] = Some(score);
            }
        }
        progress.advance(count);
    }
    let sample = |(position, score): (PlayedPosition, Option<Score>)| {
        score.map(|score| EvaluationSample { board: position.board, score, is_left_out: position.is_left_out })
    };
    Ok(played.into_iter().zip(scores).filter_map(sample).collect())
}

/// Reads the scores of ascending positions of a database.
fn read(
    settings: &Settings,
    index: &Index,
    places: &[(u64, usize)],
    cache_bytes: u64,
    context: &StageContext,
) -> Result<Vec<Score>> {
    let name = files::database(index.stones());
    let unreadable = |error| files::unreadable(&name, error);
    let file = files::open_windowed(context.disk(), &context.input(&name), settings, FileKind::Database, index)?;
    let scores = CachedScores::new(file, cache_bytes);
    let read = |places: &[(u64, usize)]| -> Result<Vec<Score>> {
        if context.stop_requested() {
            return Err(StageError::Stopped);
        }
        places.iter().map(|&(position, _)| scores.get(position).map_err(unreadable)).collect()
    };
    let parts: Result<Vec<Vec<Score>>> = places.par_chunks(POSITIONS_A_READ).map(read).collect();
    Ok(parts?.into_iter().flatten().collect())
}

/// The errors of an evaluation on positions that were left out of its fit, as JSON.
#[derive(Serialize)]
struct EvaluationErrors {
    /// The stones of the largest database.
    stones: u32,
    /// Games from which positions were taken.
    games: u64,
    /// How many times the fit went over all positions.
    rounds: u32,
    /// Positions that it was fitted to.
    positions: u64,
    errors: Vec<ErrorsOfStones>,
}

/// Mean errors on positions with some number of stones, in stones.
#[derive(Serialize)]
struct ErrorsOfStones {
    stones: u32,
    positions: u64,
    /// Of always saying 0.
    zero: f64,
    /// Of the difference of stones.
    material: f64,
    /// Of the evaluation.
    network: f64,
}

impl EvaluationErrors {
    fn of(
        evaluation: &Evaluation,
        stones: u32,
        EvaluationFit { games, rounds }: EvaluationFit,
        positions: u64,
        left_out: &[EvaluationSample],
    ) -> EvaluationErrors {
        let of_stones = |stones| {
            let group: Vec<_> = left_out.iter().filter(|sample| sample.board.stones() == stones).collect();
            let mean = |estimate: &dyn Fn(&Board) -> i32| {
                let error =
                    |sample: &&EvaluationSample| (estimate(&sample.board) - 100 * i32::from(sample.score)).abs();
                let hundredths: i64 = group.iter().map(|sample| i64::from(error(sample))).sum();
                // Thousandths of a stone.
                (hundredths as f64 * 10.0 / group.len() as f64).round() / 1000.0
            };
            (!group.is_empty()).then(|| ErrorsOfStones {
                stones,
                positions: group.len() as u64,
                zero: mean(&|_| 0),
                material: mean(&|board| Evaluation::MATERIAL.hundredths(board)),
                network: mean(&|board| evaluation.hundredths(board)),
            })
        };
        EvaluationErrors { stones, games, rounds, positions, errors: (0..=stones).filter_map(of_stones).collect() }
    }

    /// Returns the mean error of the evaluation on all positions.
    fn network(&self) -> f64 {
        let positions: u64 = self.errors.iter().map(|errors| errors.positions).sum();
        let sum: f64 = self.errors.iter().map(|errors| errors.network * errors.positions as f64).sum();
        sum / positions.max(1) as f64
    }
}
