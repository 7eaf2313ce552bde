//! Checks of opening books against databases: books that pretend to have fewer databases than there are.
//!
//! * **Gap**: expansions that solve a position from databases with fewer stones, by strategy, and whether the proved value
//!   is that of the database.
//! * **Strategies**: books of equal size, by how early an opponent can leave them, and by the error of the root.
//! * **Convergence**: errors of estimates as a book grows, by omega. Everything is derived again by the slow twin.
//! * **Choice**: the moves of a book against those of the engine that assessed its positions.
//! * **Opponents**: how long the book lasts against random moves, and against an opponent that leaves it as early as a price
//!   allows.
//!
//! Without a directory, databases of up to seven stones are made by the rule text.

use book::{
    Assessment, AssessmentLimits, Assessor, AwariGame, Book, BookSides, DropOut, Strategy, book_ends, drop_out_depth,
    refresh,
};
use clap::{Parser, ValueEnum};
use comfy_table::Table;
use disk::clock::cpu_seconds;
use game::reference::{self, Scores as ReferenceScores};
use game::{Board, Index, Orientation, PositionSet, Rules, Score};
use oracle::SearchProbes;
use search::{Evaluation, ExactScores, SearchLimits, SearchRequest, SearchStop, Searcher};
use std::path::PathBuf;
use tests::Random;

/// Checks books.
#[derive(Parser)]
struct BookCheckArguments {
    /// Run directory with databases of up to --stones stones.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The checks.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Check::Gap, Check::Strategies, Check::Convergence, Check::Choice, Check::Opponents])]
    checks: Vec<Check>,
    /// Stones of the first position.
    #[arg(long, default_value_t = 24)]
    stones: u32,
    /// Stones of the largest database that the book has.
    #[arg(long, value_delimiter = ',', default_values_t = [22, 20])]
    databases: Vec<u32>,
    /// Positions that a search visits.
    #[arg(long, default_value_t = 300)]
    nodes: u64,
    /// Expansions after which a position counts as not solved.
    #[arg(long, default_value_t = 2_000)]
    expansions: u64,
    /// Random first positions, besides that with equal pits.
    #[arg(long, default_value_t = 20)]
    roots: u64,
    /// Positions of a book.
    #[arg(long, default_value_t = 10_000)]
    positions: usize,
    /// Positions whose moves are compared, and games against each opponent.
    #[arg(long, default_value_t = 1_000)]
    games: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Check {
    Gap,
    Strategies,
    Convergence,
    Choice,
    Opponents,
}

/// Scores by the rule text.
struct ReferenceDatabases(Vec<ReferenceScores>);

/// Databases that end at a number of stones.
struct DatabasesUpTo<'a>(&'a dyn ExactScores, u32);

impl ExactScores for ReferenceDatabases {
    fn knows(&self, stones: u32) -> bool {
        (stones as usize) < self.0.len()
    }

    fn score(&self, board: &Board) -> Option<Score> {
        self.0.get(board.stones() as usize).map(|scores| scores[&board.0])
    }
}

impl ExactScores for DatabasesUpTo<'_> {
    fn knows(&self, stones: u32) -> bool {
        stones <= self.1 && self.0.knows(stones)
    }

    fn score(&self, board: &Board) -> Option<Score> {
        self.0.score(board)
    }
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut BookCheckArguments| {
        (tiny.dir, tiny.stones, tiny.databases) = (None, 7, vec![5]);
        (tiny.nodes, tiny.expansions, tiny.roots) = (30, 300, 3);
        (tiny.positions, tiny.games) = (300, 20);
    });
    let oracle = arguments.dir.as_ref().map(|dir| bench::oracle(dir, 512 << 20));
    match &oracle {
        Some(oracle) => checks(&arguments, &SearchProbes::new(oracle, arguments.stones).repeatable()),
        None => {
            assert!(arguments.stones <= 7, "without --dir there are databases of 7 stones");
            checks(&arguments, &ReferenceDatabases(reference::solve_up_to(7)));
        }
    }
}

fn checks(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    for &check in &arguments.checks {
        match check {
            Check::Gap => gap(arguments, truth),
            Check::Strategies => strategies(arguments, truth),
            Check::Convergence => convergence(arguments, truth),
            Check::Choice => choice(arguments, truth),
            Check::Opponents => opponents(arguments, truth),
        }
    }
}

/// The position with its stones spread evenly, the later pits first.
fn even(stones: u32) -> Board {
    Board(std::array::from_fn(|pit| (stones as usize * (pit + 1) / 12 - stones as usize * pit / 12) as u8))
}

fn random_board(stones: u32, random: &mut Random) -> Board {
    let index = Index::new(stones, PositionSet::All);
    loop {
        let board = index.unrank(random.below(index.positions()), Orientation::OpponentMajor);
        if board.moves(&Rules::AWARI).next().is_some() {
            return board;
        }
    }
}

fn drop_out(omega: u64, solves: bool) -> Strategy {
    Strategy::DropOut(DropOut { omega, forced: None, solves })
}

/// Returns the score of a position in hundredths of a stone.
fn score(truth: &dyn ExactScores, key: u64) -> i32 {
    i32::from(truth.score(&AwariGame::board(key)).expect("a database has the position")) * 100
}

/// Expands a book until it has a number of positions or of expansions, or is solved. `seen` is called before each expansion.
fn expand(
    root: &Board,
    strategy: Strategy,
    assessor: &Assessor<'_>,
    (positions, expansions): (usize, u64),
    seen: &mut dyn FnMut(&Book<AwariGame>),
) -> Book<AwariGame> {
    let assess = |key| assessor.assess(key, &SearchStop::new()).map(|found| found.assessment);
    let mut book = Book::new(AwariGame::new(Rules::AWARI), strategy, BookSides::Both);
    let key = AwariGame::key(root);
    let id = book.add_root(key, assess(key).expect("the databases are right"));
    while book.graph().len() < positions && book.choices() < expansions && !book.graph().is_closed(id) {
        seen(&book);
        let Some(leaf) = book.choose() else { break };
        book.expand(leaf, assess).expect("the databases are right");
    }
    book
}

/// Asserts that the bounds of every position contain its score, and that values are what follows by the slow twin.
fn assert_true(book: &Book<AwariGame>, truth: &dyn ExactScores) {
    let graph = book.graph();
    for (id, expected) in graph.ids().zip(refresh::values(graph)) {
        let (value, score) = (graph.value(id), score(truth, graph.node(id).key));
        assert!(i32::from(value.low) <= score && score <= i32::from(value.high), "{score} is not within {value:?}");
        assert_eq!(value, expected, "repaired values are derived values");
    }
}

fn assessor<'a>(databases: &'a DatabasesUpTo<'a>, nodes: u64) -> Assessor<'a> {
    let game = AwariGame::new(Rules::AWARI);
    Assessor::new(game, databases, AssessmentLimits::Nodes(nodes)).expect("there is memory for a table")
}

fn gap(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    let strategies = [
        ("proof", Strategy::Proof),
        ("conspiracy", Strategy::Conspiracy),
        ("drop-out", drop_out(100, true)),
        ("best-first", Strategy::BestFirst),
    ];
    let mut table =
        bench::table("databases|strategy|even pits: expansions|value|random: solved|median expansions|CPU s", 2);
    for &most in &arguments.databases {
        let databases = DatabasesUpTo(truth, most);
        let assessor = assessor(&databases, arguments.nodes);
        for (name, strategy) in strategies {
            let begun = cpu_seconds();
            let solve = |board: &Board| {
                let book = expand(board, strategy, &assessor, (usize::MAX, arguments.expansions), &mut |_| {});
                assert_true(&book, truth);
                let value = book.graph().value(book.roots()[0]);
                (book.choices(), value.is_exact().then_some(value.low / 100))
            };
            let (count, value) = solve(&even(arguments.stones));
            let mut random = Random::new(25);
            let roots: Vec<_> =
                (0..arguments.roots).map(|_| solve(&random_board(arguments.stones, &mut random))).collect();
            let mut counts: Vec<u64> = roots.iter().map(|(count, value)| value.map_or(u64::MAX, |_| *count)).collect();
            counts.sort_unstable();
            let median = counts.get(counts.len() / 2).filter(|&&count| count < u64::MAX);
            table.add_row([
                format!("0..{most}"),
                name.to_owned(),
                value.map_or_else(|| format!("not in {count}"), |_| count.to_string()),
                value.map_or_else(String::new, |value| value.to_string()),
                format!("{} of {}", counts.iter().filter(|&&count| count < u64::MAX).count(), counts.len()),
                median.map_or_else(|| "-".to_owned(), u64::to_string),
                format!("{:.1}", cpu_seconds() - begun),
            ]);
        }
    }
    show(&format!("gap: {} stones, searches of {} positions", arguments.stones, arguments.nodes), &table);
}

fn show(title: &str, table: &Table) {
    println!("{title}\n{}\n", table.trim_fmt());
}

fn strategies(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    let mut table = bench::table("databases|strategy|positions|D(0)|D(0.5)|D(1)|error of the root|closed|CPU s", 2);
    for &most in &arguments.databases {
        let databases = DatabasesUpTo(truth, most);
        let assessor = assessor(&databases, arguments.nodes);
        for (name, strategy) in [
            ("drop-out", drop_out(100, false)),
            ("best-first", Strategy::BestFirst),
            ("breadth-first", Strategy::BreadthFirst),
        ] {
            let begun = cpu_seconds();
            let limits = (arguments.positions, u64::MAX);
            let book = expand(&even(arguments.stones), strategy, &assessor, limits, &mut |_| {});
            assert_true(&book, truth);
            let (graph, root) = (book.graph(), book.roots()[0]);
            let ends = book_ends(graph, root, true);
            let depth = |price| drop_out_depth(&ends, price).map_or_else(|| "-".to_owned(), |depth| depth.to_string());
            let error = i32::from(graph.value(root).estimate) - score(truth, graph.node(root).key);
            table.add_row([
                format!("0..{most}"),
                name.to_owned(),
                graph.len().to_string(),
                depth(0),
                depth(50),
                depth(100),
                format!("{:+.2}", f64::from(error) / 100.0),
                format!("{:.1} %", book.totals().closed as f64 * 100.0 / graph.len() as f64),
                format!("{:.1}", cpu_seconds() - begun),
            ]);
        }
    }
    show(&format!("strategies: {} stones, searches of {} positions", arguments.stones, arguments.nodes), &table);
}

/// Mean errors in stones: of the book's estimates, and of those of the searches, at interior positions.
fn mean_errors(book: &Book<AwariGame>, truth: &dyn ExactScores) -> (f64, f64) {
    let graph = book.graph();
    let errors = graph.ids().filter(|&id| graph.is_interior(id)).map(|id| {
        let score = score(truth, graph.node(id).key);
        let error = |value: Assessment| f64::from((i32::from(value.estimate) - score).abs()) / 100.0;
        (error(graph.value(id)), error(graph.node(id).assessment))
    });
    let (count, by_book, by_search) =
        errors.fold((0u32, 0.0, 0.0), |(count, book, search), one| (count + 1, book + one.0, search + one.1));
    (by_book / f64::from(count.max(1)), by_search / f64::from(count.max(1)))
}

fn convergence(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    const SIZES: [usize; 6] = [100, 300, 1_000, 3_000, 10_000, 30_000];
    let mut table = bench::table("omega|positions|error of the root|mean error of the book|of the searches", 0);
    let databases = DatabasesUpTo(truth, arguments.databases[0]);
    let assessor = assessor(&databases, arguments.nodes);
    let mut refreshed = 0;
    for omega in [0, 50, 100, 200, 400, DropOut::OMEGA_MAX] {
        let mut sizes = SIZES.into_iter().filter(|&size| size <= arguments.positions).peekable();
        let mut row = |book: &Book<AwariGame>| {
            let graph = book.graph();
            // The bounds and estimates after repairs, against those derived from nothing.
            if book.choices() % 1_000 == 999 {
                assert_true(book, truth);
                refreshed += 1;
            }
            if sizes.next_if(|&size| graph.len() >= size).is_some() {
                assert_true(book, truth);
                refreshed += 1;
                let root = book.roots()[0];
                let error = i32::from(graph.value(root).estimate) - score(truth, graph.node(root).key);
                let (by_book, by_search) = mean_errors(book, truth);
                table.add_row([
                    if omega == DropOut::OMEGA_MAX { "all".to_owned() } else { format!("{}", omega as f64 / 100.0) },
                    graph.len().to_string(),
                    format!("{:+.2}", f64::from(error) / 100.0),
                    format!("{by_book:.3}"),
                    format!("{by_search:.3}"),
                ]);
            }
        };
        let limits = (arguments.positions + 10, u64::MAX);
        expand(&even(arguments.stones), drop_out(omega, false), &assessor, limits, &mut row);
    }
    let title = format!(
        "convergence: {} stones, databases 0..{}, searches of {} positions; {refreshed} times derived again",
        arguments.stones, arguments.databases[0], arguments.nodes
    );
    show(&title, &table);
}

/// Returns what a move of a position loses, in stones.
fn loss(truth: &dyn ExactScores, board: &Board, pit: game::Pit) -> i32 {
    let values = board
        .moves(&Rules::AWARI)
        .map(|(one, played)| (one, i32::from(played.captured) - score(truth, AwariGame::key(&played.child)) / 100));
    let values: Vec<_> = values.collect();
    let best = values.iter().map(|one| one.1).max().unwrap_or(0);
    best - values.iter().find(|one| one.0 == pit).map_or(best, |one| one.1)
}

fn choice(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    let databases = DatabasesUpTo(truth, arguments.databases[arguments.databases.len() - 1]);
    let assessor = assessor(&databases, arguments.nodes);
    let limits = (arguments.positions, u64::MAX);
    let book = expand(&even(arguments.stones), drop_out(100, false), &assessor, limits, &mut |_| {});
    let graph = book.graph();
    let searcher = Searcher::new(1 << 20, Evaluation::default()).expect("there is memory for the table");
    let mut table = bench::table("moves of|positions|wrong|stones lost a move", 1);
    // The turns of the book player, in games against random moves that stay in the book.
    let mut random = Random::new(6);
    let (mut book_losses, mut engine_losses) = (Vec::new(), Vec::new());
    let mut games = 0;
    while (book_losses.len() as u64) < arguments.games && games < 50 * arguments.games {
        games += 1;
        let (mut id, mut is_book) = (book.roots()[0], games % 2 == 0);
        while let Some(best) = graph.best(id) {
            let board = AwariGame::board(graph.node(id).key);
            let moves = graph.moves(id);
            let edge = match is_book {
                true => moves.iter().find(|edge| graph.estimate(edge) == best).expect("one move is the best"),
                false => random.pick(moves),
            };
            if is_book {
                let pit = game::Pit::new(edge.number).expect("a pit");
                book_losses.push(loss(truth, &board, pit));
                searcher.table().clear();
                let limits = SearchLimits { nodes: Some(arguments.nodes), ..SearchLimits::default() };
                let report =
                    searcher.search(&SearchRequest::new(board, limits), &databases, &SearchStop::new(), &mut |_| {});
                engine_losses.push(loss(truth, &board, report.moves[0].pit));
            }
            (id, is_book) = (edge.child, !is_book);
        }
    }
    for (name, losses) in [("the book", &book_losses), ("the engine that made it", &engine_losses)] {
        let wrong = losses.iter().filter(|&&loss| loss > 0).count();
        table.add_row([
            name.to_owned(),
            losses.len().to_string(),
            bench::ratio(wrong as f64 * 100.0, losses.len() as f64, 1) + " %",
            bench::ratio(f64::from(losses.iter().sum::<i32>()), losses.len() as f64, 3),
        ]);
    }
    show(
        &format!(
            "choice: {} positions of {} stones, searches of {} positions",
            graph.len(),
            arguments.stones,
            arguments.nodes
        ),
        &table,
    );
}

fn opponents(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    let databases = DatabasesUpTo(truth, arguments.databases[arguments.databases.len() - 1]);
    let assessor = assessor(&databases, arguments.nodes);
    let limits = (arguments.positions, u64::MAX);
    let book = expand(&even(arguments.stones), drop_out(100, false), &assessor, limits, &mut |_| {});
    let (graph, root) = (book.graph(), book.roots()[0]);
    let mut table = bench::table("opponent|mean plies in the book|least", 1);
    let mut random = Random::new(8);
    let mut plies: Vec<u32> = Vec::new();
    for game in 0..arguments.games {
        let (mut id, mut is_book, mut count) = (root, game % 2 == 0, 0);
        while let Some(best) = graph.best(id).filter(|_| count < 1_000) {
            let moves = graph.moves(id);
            let best_moves: Vec<_> = moves.iter().filter(|edge| graph.estimate(edge) == best).collect();
            id = if is_book { random.pick(&best_moves).child } else { random.pick(moves).child };
            (is_book, count) = (!is_book, count + 1);
        }
        plies.push(count);
    }
    let mean = bench::ratio(f64::from(plies.iter().sum::<u32>()), plies.len() as f64, 1);
    table.add_row(["random moves".to_owned(), mean, plies.iter().min().map_or_else(String::new, u32::to_string)]);
    for price in [0, 50, 100, 200] {
        let depths = [true, false].map(|is_first| drop_out_depth(&book_ends(graph, root, is_first), price));
        let shown = depths.map(|depth| depth.map_or_else(|| "-".to_owned(), |depth| depth.to_string()));
        table.add_row([
            format!("leaves it for {:.1} stones", f64::from(price) / 100.0),
            shown.join(" / "),
            shown.join(" / "),
        ]);
    }
    show(
        &format!(
            "opponents: {} positions of {} stones, for the first and the second player",
            graph.len(),
            arguments.stones
        ),
        &table,
    );
}
