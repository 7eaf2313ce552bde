//! Fits the evaluation of the engine to databases, and reports its error on positions left out.
//!
//! The file that the program contains was made by
//!
//! ```text
//! cargo bench -p bench --bench evaluation -- --dir DIR --stones 33 --out src/search/evaluation.bin
//! ```
//!
//! from the databases of all positions of 0 to 33 stones. The same databases give the same bytes.

use clap::Parser;
use disk::RealDisk;
use game::{Board, Orientation, Rules, Score};
use oracle::Oracle;
use search::{Evaluation, GameSampler, Training};
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
    let arguments =
        bench::arguments(|tiny: &mut EvaluationArguments| (tiny.stones, tiny.games, tiny.rounds) = (6, 400, 2));
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

    let training = Training::new(fitted_to);
    let evaluation = training.fit(arguments.rounds, cores, |_, _| true).expect("nothing stops it");
    let mut table = bench::table("stones|positions|always 0|material|network", 1);
    for first in (1..=arguments.stones).step_by(GROUP as usize) {
        let last = (first + GROUP - 1).min(arguments.stones);
        let group: Vec<_> = left_out.iter().filter(|(board, _)| (first..=last).contains(&board.stones())).collect();
        let mean = |estimate: &dyn Fn(&Board) -> i32| {
            let error = |(board, score): &&(Board, Score)| (estimate(board) - 100 * i32::from(*score)).unsigned_abs();
            let sum: u64 = group.iter().map(|sample| u64::from(error(sample))).sum();
            bench::ratio(sum as f64 / 100.0, group.len() as f64, 3)
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
