//! The oracle: random probes and answers a second by codec, and stones lost by level in games against itself.
//!
//! Probes choose positions uniformly from all databases, so nearly all from the largest, on one thread.
//! *Cold* has a cache of one block, so that nearly every probe decodes one; *warm* measures after every block
//! was read. A probe is one score; an answer, as of `awari probe` and the server, is the score of a position
//! and the value of each move. Games start at random positions of the largest database, both sides at the
//! same level; the databases give the loss of each move.

use bench::build;
use clap::Parser;
use disk::RealDisk;
use game::play::Game;
use game::{Board, Index, Orientation, PositionSet, Rules};
use oracle::{Level, Oracle};
use std::path::Path;
use std::time::Instant;
use store::Codec;
use tests::Random;

/// Measures probes, answers and levels of play.
#[derive(Parser)]
struct OracleArguments {
    /// The stones of the largest database.
    #[arg(long, default_value_t = 16)]
    stones: u32,
    /// Probes for each figure.
    #[arg(long, default_value_t = 2_000_000)]
    probes: usize,
    /// Games for each level.
    #[arg(long, default_value_t = 10_000)]
    games: u64,
    /// Stones of the positions that games start from.
    #[arg(long, default_value_t = 10)]
    game_stones: u32,
}

/// Bound on the moves of a game: a longer one does not end.
const GAME_MOVES_MAX: usize = 2_000;

/// Probes for each answer, which takes as long as several of them.
const ANSWERS_SHARE: usize = 10;

fn main() {
    let arguments = bench::arguments(|tiny: &mut OracleArguments| {
        (tiny.stones, tiny.probes, tiny.games, tiny.game_stones) = (6, 1000, 20, 6)
    });
    let temporary = tempfile::tempdir().expect("there is a temporary directory");
    let mut table = bench::table("codec|cache|probes|a second|answers a second", 2);
    for codec in Codec::ALL {
        let directory = temporary.path().join(codec.name());
        built(&arguments, codec, &directory);
        let boards = boards(&arguments);
        for (cache, bytes_max, turns) in [("one block", 0, 1), ("warm", 1 << 30, 2)] {
            if !codec.is_compressed() && cache == "one block" {
                continue;
            }
            let oracle = bench::oracle(&directory, bytes_max);
            // A cold probe decodes a block of 64 Ki positions: fewer of them tell as much.
            let boards = if cache == "one block" { &boards[..boards.len() / 20] } else { &boards[..] };
            let (mut seconds, mut sum) = (0.0, 0);
            for _ in 0..turns {
                let begun = Instant::now();
                sum = boards.iter().map(|board| probe(&oracle, board)).sum();
                seconds = begun.elapsed().as_secs_f64();
            }
            assert_ne!(sum, i64::MIN);
            let rate = boards.len() as f64 / seconds;
            let asked = &boards[..boards.len() / ANSWERS_SHARE];
            let begun = Instant::now();
            let answered: i64 = asked.iter().map(|board| answer(&oracle, board)).sum();
            assert_ne!(answered, i64::MIN);
            let answers = asked.len() as f64 / begun.elapsed().as_secs_f64();
            let number = |number: f64| format!("{number:.0}");
            table.add_row([codec.name(), cache, &boards.len().to_string(), &number(rate), &number(answers)]);
        }
    }
    println!("databases 0..{}, one thread\n{}", arguments.stones, table.trim_fmt());
    levels(&arguments, &bench::oracle(&temporary.path().join("packed"), 1 << 28));
}

fn built(arguments: &OracleArguments, codec: Codec, directory: &Path) {
    let overrides = [
        ("build.stones", format!("\"0..{}\"", arguments.stones)),
        ("store.codec", codec.to_string()),
        ("check.verify", "none".to_owned()),
    ];
    build(&RealDisk::default(), directory, disk::clock::cores(), &overrides);
}

/// Random positions, uniform over all databases.
fn boards(arguments: &OracleArguments) -> Vec<Board> {
    let mut random = Random::of(&[3]);
    let set = PositionSet::All;
    let indices: Vec<Index> = (0..=arguments.stones).map(|stones| Index::new(stones, set)).collect();
    let all: u64 = indices.iter().map(Index::positions).sum();
    let board = |_| {
        let mut number = random.below(all);
        for index in &indices {
            if number < index.positions() {
                return index.unrank(number, Orientation::OpponentMajor);
            }
            number -= index.positions();
        }
        unreachable!("the number is below the sum")
    };
    (0..arguments.probes).map(board).collect()
}

fn probe(oracle: &Oracle, board: &Board) -> i64 {
    i64::from(oracle.score(board).expect("the databases are there").low())
}

fn answer(oracle: &Oracle, board: &Board) -> i64 {
    let answer = oracle.answer(board).expect("the databases are sound");
    answer.moves.iter().map(|valued| i64::from(valued.value.low())).sum::<i64>() + i64::from(answer.score.low())
}

/// Plays games at every level, and prints the stones lost.
fn levels(arguments: &OracleArguments, oracle: &Oracle) {
    let index = Index::new(arguments.game_stones, PositionSet::All);
    let mut table = bench::table("level|games|moves|wrong|lost a move|longest", 1);
    let mut before = f64::INFINITY;
    for level in Level::ALL {
        let mut random = Random::of(&[7]);
        let (mut moves, mut wrong, mut lost, mut longest) = (0u64, 0u64, 0u64, 0);
        for _ in 0..arguments.games {
            let board = index.unrank(random.below(index.positions()), Orientation::OpponentMajor);
            let mut game = Game::from(Rules::AWARI, &game::notation::PositionText::of_board(board));
            while game.outcome().is_none() {
                assert!(game.turns().len() < GAME_MOVES_MAX, "{level}: a game that does not end from {board:?}");
                let answer = oracle.answer(&game.now().board).expect("the databases are there");
                let chance = random.below(1 << 32) as f64 / (1u64 << 32) as f64;
                let pit = oracle.choose(&answer, level, chance).expect("the databases are sound");
                let pit = pit.expect("a game without a legal move is over");
                let value = answer.moves.iter().find(|valued| valued.pit == pit).expect("the move is legal").value;
                let loss = u64::from(answer.score.low().abs_diff(value.low()));
                (moves, wrong, lost) = (moves + 1, wrong + u64::from(loss > 0), lost + loss);
                game.play(pit).expect("the move is legal");
            }
            longest = longest.max(game.turns().len());
        }
        let average = lost as f64 / moves.max(1) as f64;
        assert!(level != Level::Perfect || lost == 0, "perfect play lost {lost} stones");
        assert!(average <= before, "{level} lost more than the level below it");
        before = average;
        let cells = [arguments.games, moves, wrong].map(|number| number.to_string());
        let [games, moves, wrong] = cells;
        table.add_row([level.to_string(), games, moves, wrong, format!("{average:.4}"), longest.to_string()]);
    }
    println!("games from positions of {} stones\n{}", arguments.game_stones, table.trim_fmt());
}
