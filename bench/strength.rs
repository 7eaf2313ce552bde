//! The engine against the truth: stones lost a move, right moves, and the error of the estimate.
//!
//! Positions come from games from the opening (a search of 2,000 nodes, every eighth move at random). The
//! engine sees only the databases of up to `--known` stones; those of a run directory are the truth. Proved
//! bounds that exclude the truth end the bench with an error.
//!
//! Another search plays other games. `--list` writes the positions to a file, with the losses, and `--boards`
//! reads one, so that two versions of the engine are compared on the same positions.

use clap::Parser;
use disk::RealDisk;
use game::{Board, Index, Orientation, PositionSet, Rules, Score};
use oracle::SearchProbes;
use search::{Evaluation, NoScores, SearchLimits, SearchRequest, SearchStop, Searcher};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tests::Random;

/// Measures the strength of the engine.
#[derive(Parser)]
struct StrengthArguments {
    /// A run directory with the databases of up to `--to` stones; without it, small ones are built.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The stones of the largest database that the engine sees.
    #[arg(long, default_value_t = 12)]
    known: u32,
    /// The fewest stones of a position.
    #[arg(long, default_value_t = 17)]
    from: u32,
    /// The most stones of a position.
    #[arg(long, default_value_t = 24)]
    to: u32,
    /// Positions.
    #[arg(long, default_value_t = 300)]
    positions: usize,
    /// Milliseconds for each position, several times.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1000])]
    time: Vec<u64>,
    /// Nodes for each position instead of a time.
    #[arg(long, value_delimiter = ',')]
    nodes: Vec<u64>,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Size of the table in MiB.
    #[arg(long, default_value_t = 256)]
    table: u64,
    /// Size of the cache of decoded blocks in MiB.
    #[arg(long, default_value_t = 1024)]
    cache: u64,
    /// Positions to take instead of those of games: the first twelve numbers of each line of a file, as
    /// `--list` writes it.
    #[arg(long, conflicts_with = "uniform")]
    boards: Option<PathBuf>,
    /// A file to write: pits of each position, its score, and for each evaluation and limit the stones lost
    /// and the estimate in hundredths of a stone. Two versions of the engine differ by less than their losses
    /// do, so compare position by position.
    #[arg(long)]
    list: Option<PathBuf>,
    /// The file of an evaluation to take instead of the one of the program.
    #[arg(long)]
    evaluation: Option<PathBuf>,
    /// Draws positions at random from all of the databases instead of from games.
    #[arg(long)]
    uniform: bool,
    /// Keeps the table from position to position.
    #[arg(long)]
    keep_table: bool,
    /// Leaves the evaluation without a network out.
    #[arg(long)]
    network_only: bool,
    /// Seed of the positions.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut StrengthArguments| {
        (tiny.known, tiny.from, tiny.to) = (4, 5, 6);
        (tiny.positions, tiny.table, tiny.nodes) = (10, 4, vec![500, 2000]);
    });
    let temporary = tempfile::tempdir().expect("there is a temporary directory");
    let directory = arguments.dir.clone().unwrap_or_else(|| {
        let directory = temporary.path().join("databases-of-the-bench");
        let overrides = [("build.stones", format!("\"0..{}\"", arguments.to)), ("check.verify", "none".to_owned())];
        bench::build(&RealDisk::default(), &directory, disk::clock::cores(), &overrides);
        directory
    });
    let oracle = bench::oracle(&directory, arguments.cache << 20);
    let truth = |board: &Board| -> Score { oracle.score(board).expect("the databases answer").low() };
    let boards = match &arguments.boards {
        Some(path) => listed(path, arguments.positions),
        None if arguments.uniform => uniform(&arguments),
        None => boards(&arguments),
    };
    let mut found: Vec<Vec<i32>> = vec![Vec::new(); boards.len()];
    let time = |millis: &u64| SearchLimits { time: Some(Duration::from_millis(*millis)), ..SearchLimits::default() };
    let nodes = |nodes: &u64| SearchLimits { nodes: Some(*nodes), ..SearchLimits::default() };
    let limits: Vec<SearchLimits> = if arguments.nodes.is_empty() {
        arguments.time.iter().map(time).collect()
    } else {
        arguments.nodes.iter().map(nodes).collect()
    };

    let zero = boards.iter().map(|board| f64::from(truth(board)).abs()).sum::<f64>() / boards.len() as f64;
    println!(
        "{} positions of {} to {} stones, databases to {}, {} threads; mean error of always saying 0: {zero:.3}",
        boards.len(),
        arguments.from,
        arguments.to,
        arguments.known,
        arguments.threads,
    );
    let mut table = bench::table(
        "evaluation|milliseconds|nodes|stones lost a move|right moves|error of the estimate|exact|depth|million nodes a second",
        1,
    );
    let network = arguments.evaluation.as_ref().map_or_else(Evaluation::default, |path| {
        let bytes = std::fs::read(path).expect("the file of the evaluation can be read");
        Evaluation::from_bytes(&bytes).expect("the file holds an evaluation")
    });
    let evaluations = [("material", Evaluation::MATERIAL), ("network", network)];
    for (name, evaluation) in evaluations.into_iter().skip(usize::from(arguments.network_only)) {
        let searcher = Searcher::new(arguments.table << 20, evaluation).expect("there is memory for the table");
        for limits in &limits {
            let probes = SearchProbes::new(&oracle, arguments.known);
            let (mut lost, mut error) = (Mean::default(), Mean::default());
            let (mut right, mut exact, mut depth) = (0, 0, 0);
            let (mut nodes, mut seconds) = (0, 0.0);
            for (board, found) in boards.iter().zip(&mut found) {
                if !arguments.keep_table {
                    searcher.table().clear();
                }
                let request = SearchRequest { threads: arguments.threads, ..SearchRequest::new(*board, *limits) };
                let report = searcher.search(&request, &probes, &SearchStop::new(), &mut |_| {});
                let score = truth(board);
                assert!(report.low <= score && score <= report.high, "{board:?}: {score} is not in {report:?}");
                let pit = report.moves[0].pit;
                let played = board.play(&Rules::AWARI, pit).expect("the engine plays legal moves");
                let loss = i32::from(score) - (i32::from(played.captured) - i32::from(truth(&played.child)));
                lost.add(f64::from(loss));
                found.extend([loss, report.estimate]);
                right += usize::from(loss == 0);
                error.add((f64::from(report.estimate) / 100.0 - f64::from(score)).abs());
                exact += usize::from(report.is_exact());
                depth += report.depth;
                (nodes, seconds) = (nodes + report.nodes, seconds + report.time.as_secs_f64());
            }
            let mean = |sum: f64, decimals| bench::ratio(sum, boards.len() as f64, decimals);
            table.add_row([
                name.to_owned(),
                mean(seconds * 1000.0, 1),
                mean(nodes as f64, 0),
                lost.to_string(),
                format!("{} %", mean(100.0 * right as f64, 1)),
                error.to_string(),
                format!("{} %", mean(100.0 * exact as f64, 1)),
                mean(f64::from(depth), 1),
                bench::ratio(nodes as f64 / 1e6, seconds, 2),
            ]);
        }
    }
    println!("{}", table.trim_fmt());
    if let Some(path) = &arguments.list {
        let line = |(board, found): (&Board, &Vec<i32>)| {
            let numbers = board.0.iter().map(|stones| i32::from(*stones)).chain([i32::from(truth(board))]);
            let words: Vec<String> = numbers.chain(found.iter().copied()).map(|number| number.to_string()).collect();
            words.join(" ") + "\n"
        };
        let text: String = boards.iter().zip(&found).map(line).collect();
        std::fs::write(path, text).expect("the file can be written");
    }
}

/// A mean with its standard error.
#[derive(Default)]
struct Mean {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        (self.count, self.sum, self.squares) = (self.count + 1.0, self.sum + value, self.squares + value * value);
    }
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mean = self.sum / self.count;
        let variance = (self.squares / self.count - mean * mean).max(0.0);
        write!(f, "{mean:.3} ± {:.3}", (variance / (self.count - 1.0).max(1.0)).sqrt())
    }
}

/// The first positions of a file.
fn listed(path: &Path, positions: usize) -> Vec<Board> {
    let text = std::fs::read_to_string(path).expect("the file of positions can be read");
    let board = |line: &str| {
        let pits: Vec<u8> = line.split_whitespace().take(12).map_while(|word| word.parse().ok()).collect();
        Board(pits.try_into().expect("each line begins with the stones of twelve pits"))
    };
    text.lines().take(positions).map(board).collect()
}

/// Random positions with a move, as many of each number of stones.
fn uniform(arguments: &StrengthArguments) -> Vec<Board> {
    let stones: Vec<u32> = (arguments.from..=arguments.to).collect();
    let of_stones = arguments.positions.div_ceil(stones.len());
    let mut random = Random::of(&[arguments.seed]);
    let drawn = stones.into_iter().flat_map(|stones| {
        let index = Index::new(stones, PositionSet::All);
        let mut draw = || index.unrank(random.below(index.positions()), Orientation::OpponentMajor);
        let boards = std::iter::repeat_with(&mut draw).filter(|board| !board.mover_starves());
        boards.take(of_stones).collect::<Vec<Board>>()
    });
    drawn.collect()
}

/// Positions with a choice, two from each game.
fn boards(arguments: &StrengthArguments) -> Vec<Board> {
    let searcher = Searcher::new(0, Evaluation::MATERIAL).expect("there is memory for a small table");
    let limits = SearchLimits { nodes: Some(2000), ..SearchLimits::default() };
    let mut found = Vec::new();
    for game in 0.. {
        if found.len() >= arguments.positions {
            break;
        }
        let mut random = Random::of(&[arguments.seed, game]);
        searcher.table().clear();
        let (mut board, mut candidates) = (Board::OPENING, Vec::new());
        for _ in 0..200 {
            let moves: Vec<_> = board.moves(&Rules::AWARI).collect();
            if moves.is_empty() || board.stones() < arguments.from {
                break;
            }
            if board.stones() <= arguments.to && moves.len() > 1 {
                candidates.push(board);
            }
            board = match random.below(8) {
                0 => random.pick(&moves).1.child,
                _ => {
                    let request = SearchRequest::new(board, limits);
                    let report = searcher.search(&request, &NoScores, &SearchStop::new(), &mut |_| {});
                    board.play(&Rules::AWARI, report.moves[0].pit).expect("the engine plays legal moves").child
                }
            };
        }
        if !candidates.is_empty() {
            found.extend([*random.pick(&candidates), *random.pick(&candidates)]);
        }
    }
    found.truncate(arguments.positions);
    found
}
