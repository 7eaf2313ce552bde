//! Fits the evaluation of the engine to databases, and reports its error on positions left out.
//!
//! The file that the program contains was made by
//!
//! ```text
//! cargo bench -p bench --bench evaluation -- --dir DIR --stones 33 --beyond 12000 --out src/play/search/evaluation.bin
//! ```
//!
//! from the databases of all positions of 0 to 33 stones. An evaluation that is fitted to scores alone plays
//! the games whose positions beyond the databases are fitted as well. The same databases give the same bytes.

use clap::Parser;
use disk::RealDisk;
use game::{Board, Orientation, Rules, STONES_MAX, Score};
use oracle::Oracle;
use search::{EstimateSampler, Evaluation, GameSampler, Training};
use std::path::PathBuf;

/// Fits an evaluation.
#[derive(Parser)]
struct EvaluationArguments {
    /// A run directory with databases; without it, small ones are built.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The most stones of a position.
    #[arg(long, default_value_t = 16)]
    stones: u32,
    /// Games to take positions from; a twentieth of them besides, and 200 more, are left out of the fit.
    #[arg(long, default_value_t = 40_000)]
    games: u64,
    /// Games of the engine down to the databases, whose positions are fitted by estimates; a twentieth of
    /// them besides is left out.
    #[arg(long, default_value_t = 0)]
    beyond: u64,
    /// How many times the fit goes over all positions.
    #[arg(long, default_value_t = 12)]
    rounds: u32,
    /// The seed of the games.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// The cache of decoded blocks.
const CACHE_BYTES: u64 = 1 << 30;

/// Numbers of stones whose errors are reported together.
const GROUP: u32 = 4;

fn main() {
    let arguments = bench::arguments(|tiny: &mut EvaluationArguments| {
        (tiny.stones, tiny.games, tiny.beyond, tiny.rounds) = (6, 400, 4, 2);
    });
    let temporary = tempfile::tempdir().expect("there is a temporary directory");
    let cores = disk::clock::cores();
    let directory = arguments.dir.clone().unwrap_or_else(|| {
        let directory = temporary.path().join("databases-of-the-bench");
        let overrides = [("build.stones", format!("\"0..{}\"", arguments.stones)), ("check.verify", "none".to_owned())];
        bench::build(&RealDisk::default(), &directory, cores, &overrides);
        directory
    });
    let oracle = bench::oracle(&directory, CACHE_BYTES);
    let sampler = GameSampler::new(Rules::AWARI, arguments.seed).expect("there is memory for a small table");
    let positions = |games: std::ops::Range<u64>| -> Vec<(Board, Score)> {
        scored(&oracle, games.flat_map(|game| sampler.game(game, arguments.stones)).collect())
    };
    let fitted_to = positions(0..arguments.games);
    let left_out = positions(arguments.games..arguments.games + arguments.games / 20 + 200);
    println!("{} positions of {} games; {} left out", fitted_to.len(), arguments.games, left_out.len());

    let labelled = |sample: &(Board, Score)| (sample.0, f32::from(sample.1));
    let fit = |samples: Vec<(Board, f32)>| -> Evaluation {
        Training::new(samples).fit(arguments.rounds, cores, |_, _| true).expect("nothing stops it")
    };
    let mut samples: Vec<(Board, f32)> = fitted_to.iter().map(labelled).collect();
    let mut evaluation = fit(samples.clone());
    let mut left_out: Vec<(Board, f32)> = left_out.iter().map(labelled).collect();
    if arguments.beyond > 0 {
        let sampler = EstimateSampler::new(evaluation).expect("there is memory for a small table");
        let score = |board: &Board| oracle.score(board).expect("the databases answer").low();
        let estimated = |games: std::ops::Range<u64>, to: &mut Vec<(Board, f32)>| {
            let count = to.len();
            to.extend(games.flat_map(|game| sampler.game(game, arguments.stones, score)));
            to.len() - count
        };
        let fitted = estimated(0..arguments.beyond, &mut samples);
        let others = estimated(arguments.beyond..arguments.beyond + arguments.beyond.div_ceil(20), &mut left_out);
        println!("{fitted} estimated positions of {} games; {others} left out", arguments.beyond);
        evaluation = fit(samples);
    }
    let mut table = bench::table("stones|positions|always 0|material|network", 1);
    let stones_max = if arguments.beyond > 0 { STONES_MAX } else { arguments.stones };
    let groups =
        (1..=arguments.stones).step_by(GROUP as usize).map(|first| (first, (first + GROUP - 1).min(arguments.stones)));
    let beyond = (arguments.stones + 1..=stones_max).step_by(GROUP as usize);
    for (first, last) in groups.chain(beyond.map(|first| (first, (first + GROUP - 1).min(stones_max)))) {
        let group: Vec<_> = left_out.iter().filter(|(board, _)| (first..=last).contains(&board.stones())).collect();
        let mean = |estimate: &dyn Fn(&Board) -> i32| {
            let error = |(board, label): &&(Board, f32)| (f64::from(estimate(board)) / 100.0 - f64::from(*label)).abs();
            bench::ratio(group.iter().map(error).sum(), group.len() as f64, 3)
        };
        table.add_row([
            format!("{first}..{last}"),
            group.len().to_string(),
            mean(&|_| 0),
            mean(&|board| Evaluation::MATERIAL.hundredths(board)),
            mean(&|board| evaluation.hundredths(board)),
        ]);
    }
    println!("mean error in stones\n{}", table.trim_fmt());
    if let Some(out) = arguments.out {
        RealDisk::default().deliver(&out, &evaluation.to_bytes()).expect("the file can be written");
    }
}

/// Looks scores up in the order of the databases, which reads each block once.
fn scored(oracle: &Oracle, boards: Vec<Board>) -> Vec<(Board, Score)> {
    let indexed = |stones| oracle.indexed(stones).expect("the database is there");
    let place = |board: &Board| {
        let stones = board.stones();
        let position = indexed(stones).0.rank(board, Orientation::OpponentMajor);
        (stones, position.expect("databases of all positions hold it"))
    };
    let mut places: Vec<_> = boards.iter().map(place).zip(0..).collect();
    places.sort_unstable();
    let mut scores = vec![0; boards.len()];
    for ((stones, position), at) in places {
        scores[at as usize] = indexed(stones).1.get(position).expect("the database can be read");
    }
    boards.into_iter().zip(scores).collect()
}
