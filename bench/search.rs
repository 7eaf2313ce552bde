//! The search: positions a second, and the time to a depth with one and several threads.
//!
//! Positions come from games of random moves from the opening. Each is searched with an empty table and without
//! databases: first for a time, then to a depth with each number of threads.

use clap::Parser;
use game::{Board, Rules};
use search::{Evaluation, NoScores, SearchLimits, SearchReport, SearchRequest, SearchStop, Searcher};
use std::time::Duration;
use tests::Random;

/// Measures the search.
#[derive(Parser)]
struct SearchArguments {
    /// Milliseconds for each position.
    #[arg(long, default_value_t = 1000)]
    time: u64,
    /// Size of the table in MiB.
    #[arg(long, default_value_t = 256)]
    table: u64,
    /// Depth of the comparison of threads.
    #[arg(long, default_value_t = 17)]
    depth: u32,
    /// The most threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Games.
    #[arg(long, default_value_t = 2)]
    games: u64,
}

/// Moves from the opening to the positions of a game.
const PLIES: [u32; 6] = [0, 6, 12, 20, 30, 40];

fn main() {
    let arguments =
        bench::arguments(|tiny: &mut SearchArguments| (tiny.time, tiny.table, tiny.depth, tiny.games) = (5, 4, 5, 1));
    let searcher = Searcher::new(arguments.table << 20, Evaluation::default()).expect("there is memory for the table");
    let boards: Vec<Board> = (0..arguments.games).flat_map(|game| positions(&mut Random::of(&[game]))).collect();
    let search = |board: &Board, limits, threads| -> SearchReport {
        searcher.table().clear();
        let request = SearchRequest { threads, ..SearchRequest::new(*board, limits) };
        let report = searcher.search(&request, &NoScores, &SearchStop::new(), &mut |_| {});
        assert!(report.low <= report.high && report.depth > 0, "{board:?}");
        report
    };

    let mut table = bench::table("stones|depth|nodes|million a second|estimate|table in use", 0);
    let (mut nodes, mut seconds, mut depths) = (0, 0.0, 0);
    for board in &boards {
        let time = Duration::from_millis(arguments.time);
        let report = search(board, SearchLimits { time: Some(time), ..SearchLimits::default() }, 1);
        let took = report.time.as_secs_f64();
        table.add_row([
            board.stones().to_string(),
            report.depth.to_string(),
            report.nodes.to_string(),
            bench::ratio(report.nodes as f64 / 1e6, took, 2),
            format!("{:.2}", f64::from(report.estimate) / 100.0),
            format!("{:.0} %", f64::from(report.table_permille) / 10.0),
        ]);
        (nodes, seconds, depths) = (nodes + report.nodes, seconds + took, depths + report.depth);
    }
    let mean = bench::ratio(nodes as f64 / 1e6, seconds, 2);
    println!("one thread, {} ms a position, table of {} MiB\n{}", arguments.time, arguments.table, table.trim_fmt());
    println!("{mean} million nodes a second, mean depth {:.1}\n", f64::from(depths) / boards.len() as f64);

    let mut table = bench::table("threads|seconds|nodes|million a second|time against one thread", 0);
    let mut alone = 0.0;
    for threads in 1..=arguments.threads {
        let limits = SearchLimits { depth: Some(arguments.depth), ..SearchLimits::default() };
        let reports: Vec<SearchReport> = boards.iter().map(|board| search(board, limits, threads)).collect();
        let seconds: f64 = reports.iter().map(|report| report.time.as_secs_f64()).sum();
        let nodes: u64 = reports.iter().map(|report| report.nodes).sum();
        alone = if threads == 1 { seconds } else { alone };
        table.add_row([
            threads.to_string(),
            format!("{seconds:.2}"),
            nodes.to_string(),
            bench::ratio(nodes as f64 / 1e6, seconds, 2),
            bench::ratio(seconds, alone, 2),
        ]);
    }
    println!("to depth {}, {} positions\n{}", arguments.depth, boards.len(), table.trim_fmt());
}

/// Positions of a game of random moves.
fn positions(random: &mut Random) -> Vec<Board> {
    let mut found = Vec::new();
    let mut board = Board::OPENING;
    for ply in 0..=PLIES[PLIES.len() - 1] {
        if PLIES.contains(&ply) {
            found.push(board);
        }
        let moves: Vec<_> = board.moves(&Rules::AWARI).collect();
        if moves.is_empty() {
            break;
        }
        board = random.pick(&moves).1.child;
    }
    found
}
