//! Opening books: expansions a second with a free evaluator, in memory and in a file.
//!
//! Times are processor times.
//!
//! * **Expansions**: the opening, with estimates that are hashes of positions and cost nothing. Ends with everything
//!   derived again, and compared.
//! * **File**: the same book in a file: bytes a position, the time to load it and to store its values, and that to open
//!   stored values for playing and to look up a position with its moves.

use book::{
    Assessed, Assessment, AwariGame, Book, BookEngine, BookFile, BookGame, BookSides, DropOut, Hundredths, NodeId,
    OpeningBook, Strategy, refresh,
};
use clap::Parser;
use disk::RealDisk;
use disk::clock::cpu_seconds;
use game::{Board, Opening, Rules};
use std::path::PathBuf;

/// Measures books.
#[derive(Parser)]
struct BookArguments {
    /// Positions of the book with a free evaluator.
    #[arg(long, default_value_t = 1_000_000)]
    positions: usize,
    /// Positions of the book in a file.
    #[arg(long, default_value_t = 1_000_000)]
    file_positions: usize,
    /// Folder for the file, which is kept there as book.sqlite; a temporary one if it is not given.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Plies a stone, in hundredths.
    #[arg(long, default_value_t = 100)]
    omega: u64,
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut BookArguments| (tiny.positions, tiny.file_positions) = (2_000, 500));
    expansions(&arguments);
    file(&arguments);
}

/// Returns an estimate that depends on the position alone.
fn free(game: &AwariGame, key: u64) -> Assessment {
    let most = game.value_max(key);
    let mixed = (key ^ (key >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let estimate = ((mixed >> 40) % 401) as Hundredths - 200;
    Assessment { low: -most, high: most, estimate: estimate.clamp(-most, most) }
}

/// Expands the opening in memory.
fn expansions(arguments: &BookArguments) {
    let game = AwariGame::new(Rules::AWARI);
    let strategies = [
        ("drop-out", Strategy::DropOut(DropOut { omega: arguments.omega, forced: None, solves: false })),
        ("best-first", Strategy::BestFirst),
        ("breadth-first", Strategy::BreadthFirst),
        ("conspiracy", Strategy::Conspiracy),
        ("proof", Strategy::Proof),
    ];
    for (name, strategy) in strategies {
        let mut book = Book::new(game, strategy, BookSides::Both);
        let root = AwariGame::key(&Opening::AWARI.board());
        book.add_root(root, free(&game, root));
        let begun = cpu_seconds();
        let mut expanded = 0;
        while book.graph().len() < arguments.positions {
            let Some(leaf) = book.choose() else { break };
            book.expand(leaf, |key| Ok::<_, ()>(free(&game, key))).expect("the evaluator does not fail");
            expanded += 1;
        }
        let seconds = cpu_seconds() - begun;
        let begun = cpu_seconds();
        let before: Vec<Assessment> = book.graph().ids().map(|id| book.graph().value(id)).collect();
        book.derive();
        let derived = cpu_seconds() - begun;
        let after: Vec<Assessment> = book.graph().ids().map(|id| book.graph().value(id)).collect();
        assert!(before == after, "repaired values are derived values");
        let begun = cpu_seconds();
        assert!(refresh::values(book.graph()) == after, "derived values are those of the slow twin");
        let slow = cpu_seconds() - begun;
        println!(
            "{name}: {} positions, {expanded} expansions, {:.0} expansions a second; derived again in {derived:.2} s, by the slow \
             twin in {slow:.2} s; probe {:.2} us",
            book.graph().len(),
            f64::from(expanded) / seconds,
            probe_seconds(&book) * 1e6
        );
    }
}

/// Returns the time to find the value of a position by its board.
fn probe_seconds(book: &Book<AwariGame>) -> f64 {
    let boards: Vec<Board> =
        book.graph().ids().step_by(97).map(|id| AwariGame::board(book.graph().node(id).key)).collect();
    let begun = cpu_seconds();
    let found: Vec<NodeId> = boards.iter().filter_map(|board| book.graph().find(AwariGame::key(board))).collect();
    assert_eq!(found.len(), boards.len());
    (cpu_seconds() - begun) / boards.len().max(1) as f64
}

/// Expands the opening in a file.
fn file(arguments: &BookArguments) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = arguments.folder.as_deref().unwrap_or(folder.path()).join("book.sqlite");
    let engine = BookEngine { version: "free".to_owned(), limits: "none".to_owned(), databases: "none".to_owned() };
    let (disk, game) = (RealDisk::default(), AwariGame::new(Rules::AWARI));
    let strategy = Strategy::DropOut(DropOut { omega: arguments.omega, forced: None, solves: false });
    let mut file = BookFile::create(&disk, &path, &Rules::AWARI, &engine).expect("a new book");
    let root = AwariGame::key(&Opening::AWARI.board());
    let assessed = |key| Assessed { assessment: free(&game, key), depth: 0, nodes: 0 };
    file.enter_root(root, &assessed(root)).expect("the root");
    let mut book = file.load(strategy, BookSides::Both).expect("the book");
    let begun = cpu_seconds();
    while book.graph().len() < arguments.file_positions {
        let Some(leaf) = book.choose() else { break };
        let mut entered = Vec::new();
        let key = book.graph().node(leaf).key;
        let found = book.expand(leaf, |key| {
            entered.push((key, assessed(key)));
            Ok::<_, ()>(free(&game, key))
        });
        found.expect("the evaluator does not fail");
        file.enter_expansion(key, Some(0), &entered).expect("the expansion");
    }
    let seconds = cpu_seconds() - begun;
    let expanded = book.graph().interior_count();
    drop(file);
    let bytes = |path| std::fs::metadata(path).expect("the book").len() as f64 / book.graph().len() as f64;
    let facts = bytes(&path);
    let begun = cpu_seconds();
    let file = BookFile::open(&path, &Rules::AWARI).expect("the book");
    let opened = cpu_seconds() - begun;
    let again = file.load(strategy, BookSides::Both).expect("the book");
    let loaded = cpu_seconds() - begun;
    assert_eq!(again.export(), book.export());
    println!(
        "file: {} positions, {:.0} expansions a second, {facts:.1} bytes a position; opened in {:.1} ms, loaded in {loaded:.2} s",
        book.graph().len(),
        expanded as f64 / seconds,
        opened * 1e3
    );
    drop((file, again));
    let mut file = BookFile::create(&disk, &path, &Rules::AWARI, &engine).expect("the book");
    let begun = cpu_seconds();
    file.store_values(&book).expect("the values");
    let stored = cpu_seconds() - begun;
    drop(file);
    let begun = cpu_seconds();
    let reader = OpeningBook::open(&path, &Rules::AWARI).expect("the book");
    let root = reader.position(&reader.root()).expect("the book").expect("the root");
    let opened = cpu_seconds() - begun;
    assert!(reader.is_stored() && root.value == book.graph().value(book.roots()[0]));
    let ids: Vec<NodeId> = book.graph().ids().step_by(97).collect();
    let boards: Vec<Board> = ids.iter().map(|&id| AwariGame::board(book.graph().node(id).key)).collect();
    let begun = cpu_seconds();
    let found: Vec<_> = boards.iter().map(|board| reader.position(board).expect("the book")).collect();
    let probe = (cpu_seconds() - begun) / boards.len() as f64;
    for (&id, found) in ids.iter().zip(found) {
        assert_eq!(found.expect("a position of the book").value, book.graph().value(id));
    }
    println!(
        "values: stored in {stored:.2} s, {:.1} bytes a position with them; opened with the root read in {:.1} ms; probe with all moves \
         {:.1} us",
        bytes(&path),
        opened * 1e3,
        probe * 1e6
    );
}
