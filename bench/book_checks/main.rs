//! Checks of opening books against databases: books that pretend to have fewer databases than there are.
//!
//! * **Truth**: the bounds of every position of a large book, against its score. Values are derived again by the slow
//!   twin at every 1,000 expansions.
//! * **Gap**: expansions that solve a position from databases with fewer stones, by strategy, and whether the
//!   proved value is that of the database.
//! * **Strategies**: books of equal size, by how early an opponent can leave them, and by the error of the root.
//! * **Convergence**: errors of estimates as a book grows, by omega, and at its end by the length of the best
//!   line. Everything is derived again by the slow twin.
//! * **Depths**: a book of the real opening by depth, against the table of Lincke's thesis.
//! * **Choice**: the moves of a book against those of the engine that assessed its positions.
//! * **Contest**: games of the engine with the book against the engine without it.
//! * **Opponents**: how long the book lasts against players of several levels, and against an opponent that
//!   leaves it as early as a price allows.
//!
//! Without a directory, databases of up to seven stones are made by the rule text.

mod games;

use book::{
    Assessment, AssessmentLimits, Assessor, AwariGame, Book, BookSides, DropOut, Strategy, book_ends, drop_out_depth,
    refresh,
};
use clap::{Parser, ValueEnum};
use comfy_table::Table;
use disk::clock::cpu_seconds;
use game::{Board, Index, Orientation, PositionSet, Rules, Score};
use oracle::SearchProbes;
use search::{ExactScores, SearchStop};
use std::path::PathBuf;
use tests::Random;

/// Checks books.
#[derive(Parser)]
struct BookCheckArguments {
    /// Run directory with databases of up to --stones stones.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The checks.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Check::Truth, Check::Gap, Check::Strategies, Check::Convergence, Check::Depths, Check::Choice, Check::Contest, Check::Opponents])]
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
    /// Positions that a search of the engine visits where its moves are compared, and in games.
    #[arg(long, default_value_t = 2_000)]
    engine_nodes: u64,
    /// Let the book of the contest begin with all openings of two plies, instead of the first position.
    #[arg(long)]
    openings: bool,
    /// Book of choices, contests and opponents, made by `awari book expand`, instead of one with the limits above.
    #[arg(long)]
    book: Option<PathBuf>,
    /// Let the database choose all moves of the book player in contests, which is the most that a book can win.
    #[arg(long)]
    perfect: bool,
    /// File for the games of contests, in the Oware Game Notation, as far as the databases.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Values of omega at which the growth of a book is followed, in hundredths of a ply a stone.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 50, 100, 200, 400, DropOut::OMEGA_MAX])]
    omega: Vec<u64>,
    /// Games from each opening of two plies, for each player.
    #[arg(long, default_value_t = 10)]
    seeds: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Check {
    Truth,
    Gap,
    Strategies,
    Convergence,
    Depths,
    Choice,
    Contest,
    Opponents,
}

/// Databases that end at a number of stones.
struct DatabasesUpTo<'a>(&'a dyn ExactScores, u32);

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
        (tiny.dir, tiny.stones, tiny.databases) = (None, 7, vec![3]);
        (tiny.nodes, tiny.expansions, tiny.roots) = (5, 300, 3);
        (tiny.positions, tiny.games, tiny.engine_nodes, tiny.seeds) = (300, 20, 30, 1);
    });
    let oracle = arguments.dir.as_ref().map(|dir| bench::oracle(dir, 512 << 20));
    match &oracle {
        Some(oracle) => checks(&arguments, &SearchProbes::new(oracle, arguments.stones).repeatable()),
        None => {
            assert!(arguments.stones <= 7, "without --dir there are databases of 7 stones");
            checks(&arguments, &bench::ReferenceDatabases::up_to(7));
        }
    }
}

fn checks(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    for &check in &arguments.checks {
        match check {
            Check::Truth => every_position(arguments, truth),
            Check::Gap => gap(arguments, truth),
            Check::Strategies => strategies(arguments, truth),
            Check::Convergence => convergence(arguments, truth),
            Check::Depths => depths(arguments, truth),
            Check::Choice => games::choice(arguments, truth),
            Check::Contest => games::contest(arguments, truth),
            Check::Opponents => games::opponents(arguments, truth),
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

/// Expands a book until it has a number of positions or of expansions, or is solved. `seen` is called before
/// each expansion.
fn expand(
    roots: &[Board],
    strategy: Strategy,
    assessor: &Assessor<'_>,
    (positions, expansions): (usize, u64),
    seen: &mut dyn FnMut(&Book<AwariGame>),
) -> Book<AwariGame> {
    let assess = |key| assessor.assess(key, &SearchStop::new()).map(|found| found.assessment);
    let mut book = Book::new(AwariGame::new(Rules::AWARI), strategy, BookSides::Both);
    for key in roots.iter().map(AwariGame::key) {
        book.add_root(key, assess(key).expect("the databases are right"));
    }
    let is_solved = |book: &Book<AwariGame>| book.roots().iter().all(|&root| book.graph().is_closed(root));
    while book.graph().len() < positions && book.choices() < expansions && !is_solved(&book) {
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

fn every_position(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    let mut table =
        bench::table("databases|strategy|positions|expanded|closed|derived again|outside the bounds|CPU s", 2);
    for &most in &arguments.databases {
        let databases = DatabasesUpTo(truth, most);
        let assessor = assessor(&databases, arguments.nodes);
        for (name, strategy) in [("drop-out", drop_out(100, true)), ("conspiracy", Strategy::Conspiracy)] {
            let (begun, mut derived) = (cpu_seconds(), 0);
            let limits = (arguments.positions, u64::MAX);
            let book = expand(&[even(arguments.stones)], strategy, &assessor, limits, &mut |book| {
                if book.choices() % 1_000 == 999 {
                    let graph = book.graph();
                    let expected = refresh::values(graph);
                    assert!(graph.ids().zip(expected).all(|(id, expected)| graph.value(id) == expected));
                    derived += 1;
                }
            });
            assert_true(&book, truth);
            let totals = book.totals();
            table.add_row([
                format!("0..{most}"),
                name.to_owned(),
                totals.positions.to_string(),
                totals.interior.to_string(),
                format!("{:.1} %", totals.closed as f64 * 100.0 / totals.positions as f64),
                (derived + 1).to_string(),
                "0".to_owned(),
                format!("{:.1}", cpu_seconds() - begun),
            ]);
        }
    }
    show(&format!("truth: {} stones, searches of {} positions", arguments.stones, arguments.nodes), &table);
}

fn depths(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    let assess = |most, nodes, board: &Board, positions| {
        let databases = DatabasesUpTo(truth, most);
        let assessor = assessor(&databases, nodes);
        expand(&[*board], drop_out(100, false), &assessor, (positions, u64::MAX), &mut |_| {})
    };
    let most = (0..=48).rev().find(|&stones| truth.knows(stones)).unwrap_or(0);
    let book = assess(most, arguments.nodes, &Board::OPENING, arguments.positions);
    let mut table = bench::table("depth|positions|solved|predecessors|a position|degree|expanded", 0);
    for row in book.depth_table() {
        table.add_row([
            row.depth.to_string(),
            row.nodes.to_string(),
            row.solved.to_string(),
            row.predecessors.to_string(),
            bench::ratio(row.predecessors as f64, row.nodes as f64, 2),
            format!("{:.2}", row.degree()),
            row.expanded.to_string(),
        ]);
    }
    show(&format!("depths: the opening, databases 0..{most}, searches of {} positions", arguments.nodes), &table);
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
                let book = expand(&[*board], strategy, &assessor, (usize::MAX, arguments.expansions), &mut |_| {});
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
            let book = expand(&[even(arguments.stones)], strategy, &assessor, limits, &mut |_| {});
            assert_true(&book, truth);
            let (graph, root) = (book.graph(), book.roots()[0]);
            // The opponent leaves a book of the first player, and of the second.
            let ends = [true, false].map(|is_first| book_ends(graph, root, is_first));
            let depth = |price| {
                let depths = ends.each_ref().map(|ends| drop_out_depth(ends, price));
                depths.map(|depth| depth.map_or_else(|| "-".to_owned(), |depth| depth.to_string())).join(" / ")
            };
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

/// Errors at interior positions, in stones, of the estimates of a book, and of those of the searches that it
/// was made of.
#[derive(Clone, Copy, Default)]
struct MeanErrors {
    positions: u32,
    by_book: f64,
    by_search: f64,
}

impl MeanErrors {
    fn add(&mut self, by_book: f64, by_search: f64) {
        self.positions += 1;
        self.by_book += by_book;
        self.by_search += by_search;
    }

    /// Returns the means, and the quotient of the two, as text.
    fn cells(&self) -> [String; 3] {
        let mean = |sum: f64| bench::ratio(sum, f64::from(self.positions), 3);
        [mean(self.by_book), mean(self.by_search), bench::ratio(self.by_book, self.by_search, 2)]
    }
}

/// Errors by the number of moves of the best line in the book; the last element has longer ones too. The
/// first is empty: a line from an interior position has a move.
fn errors_by_line(book: &Book<AwariGame>, truth: &dyn ExactScores) -> [MeanErrors; LINE_MAX + 1] {
    let graph = book.graph();
    let mut errors = [MeanErrors::default(); LINE_MAX + 1];
    for id in graph.ids().filter(|&id| graph.is_interior(id)) {
        let score = score(truth, graph.node(id).key);
        let error = |value: Assessment| f64::from((i32::from(value.estimate) - score).abs()) / 100.0;
        let (mut at, mut moves) = (id, 0);
        while moves < LINE_MAX
            && let Some(best) = graph.best(at)
            && let Some(edge) = graph.moves(at).iter().find(|edge| graph.estimate(edge) == best)
        {
            (at, moves) = (edge.child, moves + 1);
        }
        errors[moves].add(error(graph.value(id)), error(graph.node(id).assessment));
    }
    errors
}

/// The length of a best line from which on errors are summed up.
const LINE_MAX: usize = 8;

fn convergence(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    const SIZES: [usize; 6] = [100, 300, 1_000, 3_000, 10_000, 30_000];
    let mut table = bench::table("omega|positions|error of the root|mean error of the book|of the searches|ratio", 0);
    let mut lines =
        bench::table("omega|moves of the best line|positions|mean error of the book|of the searches|ratio", 0);
    let databases = DatabasesUpTo(truth, arguments.databases[0]);
    let assessor = assessor(&databases, arguments.nodes);
    let mut refreshed = 0;
    for &omega in &arguments.omega {
        let mut sizes = SIZES.into_iter().filter(|&size| size <= arguments.positions).peekable();
        let shown = if omega == DropOut::OMEGA_MAX { "all".to_owned() } else { format!("{}", omega as f64 / 100.0) };
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
                let by_line = errors_by_line(book, truth);
                let sum = |sum: fn(&MeanErrors) -> f64| by_line.iter().map(sum).sum::<f64>();
                let all = MeanErrors {
                    positions: by_line.iter().map(|errors| errors.positions).sum(),
                    by_book: sum(|errors| errors.by_book),
                    by_search: sum(|errors| errors.by_search),
                };
                let place = [shown.clone(), graph.len().to_string(), format!("{:+.2}", f64::from(error) / 100.0)];
                table.add_row(place.into_iter().chain(all.cells()));
            }
        };
        let limits = (arguments.positions + 10, u64::MAX);
        let book = expand(&[even(arguments.stones)], drop_out(omega, false), &assessor, limits, &mut row);
        for (moves, errors) in
            errors_by_line(&book, truth).into_iter().enumerate().filter(|(_, errors)| errors.positions > 0)
        {
            let more = if moves == LINE_MAX { " or more" } else { "" };
            let place = [shown.clone(), format!("{moves}{more}"), errors.positions.to_string()];
            lines.add_row(place.into_iter().chain(errors.cells()));
        }
    }
    let title = format!(
        "convergence: {} stones, databases 0..{}, searches of {} positions; {refreshed} times derived again",
        arguments.stones, arguments.databases[0], arguments.nodes
    );
    show(&title, &table);
    show("the same at the end, by the length of the best line in the book", &lines);
}
