//! Books of awari with few stones: bounds against scores that the rule text gives, and files against books in memory.

use super::forged::seal;
use crate::{
    Assessed, AssessmentLimits, Assessor, AwariGame, Book, BookBuilder, BookEngine, BookError, BookFile, BookSettings,
    BookSides, DropOut, Strategy, check_book, refresh,
};
use disk::RealDisk;
use game::reference::{self, ReferenceScores};
use game::{Board, Rules, Score};
use search::{ExactScores, SearchStop};
use std::path::Path;
use std::sync::LazyLock;

const STONES_MAX: u8 = 7;

static SOLVED: LazyLock<Vec<ReferenceScores>> = LazyLock::new(|| reference::solve_up_to(STONES_MAX));

/// Databases that end at a number of stones.
pub(super) struct EndsAt(pub(super) u32);

impl ExactScores for EndsAt {
    fn knows(&self, stones: u32) -> bool {
        stones <= self.0
    }

    fn score(&self, board: &Board) -> Option<Score> {
        assert!(board.stones() <= self.0, "only known positions are looked up");
        Some(SOLVED[board.stones() as usize][&board.0])
    }
}

const STRATEGIES: [Strategy; 5] = [
    Strategy::DropOut(DropOut { omega: 100, forced: Some(200), solves: true }),
    Strategy::BestFirst,
    Strategy::BreadthFirst,
    Strategy::Conspiracy,
    Strategy::Proof,
];

pub(super) fn engine() -> BookEngine {
    BookEngine { version: "test".to_owned(), limits: "nodes=1".to_owned(), databases: "none".to_owned() }
}

/// Asserts that the bounds of every position contain its score, and that repairs gave what deriving again gives.
fn assert_true(book: &Book<AwariGame>) {
    let graph = book.graph();
    let derived = refresh::values(graph);
    for id in graph.ids() {
        let board = AwariGame::board(graph.node(id).key);
        let score = AwariGame::hundredths(SOLVED[board.stones() as usize][&board.0].into());
        let found = graph.value(id);
        assert!(found.low <= score && score <= found.high, "{board:?}: {score} is not in {found:?}");
        assert_eq!(found, derived[id.index()], "{board:?}");
    }
}

/// Bounds contain the score at every position, after every expansion, with pretended databases of fewer stones.
#[test]
fn bounds_of_awari_contain_the_score() {
    let (mut solved, mut all) = (0, 0);
    let boards = reference::boards(STONES_MAX);
    for (at, pits) in boards.iter().step_by(boards.len() / 30).enumerate() {
        let game = AwariGame::new(Rules::AWARI);
        let databases = EndsAt([5, 4, 2][at % 3]);
        let assessor = Assessor::new(game, &databases, AssessmentLimits::Nodes(1 + at as u64 % 2 * 30)).unwrap();
        let assess = |key| assessor.assess(key, &SearchStop::new()).map(|found| found.assessment);
        let mut book = Book::new(game, STRATEGIES[at % 5], BookSides::Both);
        let root = AwariGame::key(&Board(*pits));
        book.add_root(root, assess(root).unwrap());
        for round in 0..150 {
            let Some(leaf) = book.choose() else { break };
            book.expand(leaf, assess).unwrap();
            if round % 8 == 0 {
                assert_true(&book);
                book.assert_derived();
            }
        }
        assert_true(&book);
        all += 1;
        solved += usize::from(book.graph().is_closed(book.roots()[0]));
    }
    assert!(solved > all / 5, "{solved} of {all}");
}

/// The databases of books that grow.
pub(super) const DATABASES: EndsAt = EndsAt(4);

/// The limits of searches of books that grow.
pub(super) const LIMITS: AssessmentLimits = AssessmentLimits::Nodes(20);

pub(super) fn assess(key: u64) -> Assessed {
    let assessor = Assessor::new(AwariGame::new(Rules::AWARI), &DATABASES, LIMITS).unwrap();
    assessor.assess(key, &SearchStop::new()).unwrap()
}

/// Expands a book in a file a number of times, as the program does.
pub(super) fn grow(path: &Path, strategy: Strategy, expansions: usize) -> Book<AwariGame> {
    let root = AwariGame::key(&Board([1, 0, 1, 0, 1, 0, 0, 1, 0, 2, 0, 1]));
    let mut file = BookFile::create(&RealDisk::default(), path, &Rules::AWARI, &engine()).unwrap();
    file.enter_root(root, &assess(root)).unwrap();
    let mut book = file.load(strategy, BookSides::Both).unwrap();
    for _ in 0..expansions {
        if !expand(&mut file, &mut book) {
            break;
        }
    }
    book
}

/// Expands a leaf of a book, and enters it into its file. Returns whether there was one.
pub(super) fn expand(file: &mut BookFile, book: &mut Book<AwariGame>) -> bool {
    let Some(leaf) = book.choose() else { return false };
    let mut entered = Vec::new();
    let key = book.graph().node(leaf).key;
    book.expand(leaf, |successor| {
        let assessed = assess(successor);
        entered.push((successor, assessed));
        Ok::<_, ()>(assessed.assessment)
    })
    .unwrap();
    file.enter_expansion(key, Some(0), &entered).unwrap();
    true
}

/// A book that was closed and opened again goes on as one that was not, and a file gives the book it was written from.
#[test]
fn files_hold_books() {
    for strategy in STRATEGIES {
        let folder = tempfile::tempdir().unwrap();
        let (whole, parts) = (folder.path().join("whole.sqlite"), folder.path().join("parts.sqlite"));
        let expected = grow(&whole, strategy, 60);
        for _ in 0..6 {
            grow(&parts, strategy, 10);
        }
        let read = |path: &Path| {
            let file = BookFile::open(path, &Rules::AWARI).unwrap();
            file.load(strategy, BookSides::Both).unwrap()
        };
        let (from_whole, from_parts) = (read(&whole), read(&parts));
        for (id, other) in expected.graph().ids().zip(from_parts.graph().ids()) {
            assert_eq!(expected.graph().node(id).key, from_parts.graph().node(other).key);
            assert_eq!(expected.graph().value(id), from_parts.graph().value(other));
            assert_eq!(expected.graph().value(id), from_whole.graph().value(id));
            assert_eq!(expected.priorities(id), from_parts.priorities(other));
        }
        assert_eq!(expected.graph().len(), from_parts.graph().len());
        assert_eq!(expected.choices(), from_parts.choices());
    }
}

#[test]
fn a_second_writer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.sqlite");
    let missing = BookFile::open(&path, &Rules::AWARI).unwrap_err();
    assert!(matches!(missing, BookError::Missing(_)), "{missing}");
    let writer = BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap();
    let refused = BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap_err();
    assert!(matches!(refused, BookError::Disk(disk::DiskError::Locked { .. })), "{refused}");
    // Readers read meanwhile.
    BookFile::open(&path, &Rules::AWARI).unwrap();
    drop(writer);
    BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap();
}

/// Changes a file by SQL, without its constraints between tables.
pub(super) fn execute(path: &Path, statement: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {statement}")).unwrap();
}

/// Facts that contradict each other are refused, also under right checksums, and bytes that are no database.
#[test]
fn damaged_files_are_refused() {
    let statements = [
        "DELETE FROM position WHERE pits IN (SELECT pits FROM root)",
        "DELETE FROM expansion WHERE number = 1",
        "DELETE FROM root",
        "UPDATE position SET low = high + 100",
        "UPDATE position SET high = 30000",
        "UPDATE position SET estimate = 100000",
        "UPDATE position SET nodes = -1",
        "UPDATE position SET engine = 7 WHERE number = 2",
        "UPDATE position SET pits = x'00' WHERE pits = (SELECT pits FROM root)",
        "UPDATE expansion SET pits = x'303030303030303030303030' WHERE number = 2",
        "UPDATE expansion SET chosen = 9 WHERE number = 2",
        "INSERT INTO expansion SELECT number + 1000, pits, chosen, checksum FROM expansion WHERE number = 1",
        "INSERT INTO position SELECT number + (SELECT count(*) FROM position), pits, low, high, estimate, depth, nodes, engine, \
            checksum FROM position WHERE number = 1",
        "UPDATE engine SET version = char(27)",
        "UPDATE book SET version = 6",
        "UPDATE book SET rules = 'oware'",
        "DELETE FROM book",
        "INSERT INTO book SELECT * FROM book",
        "DROP TABLE position",
    ];
    for (at, statement) in statements.iter().enumerate() {
        for is_sealed in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("book.sqlite");
            grow(&path, Strategy::BreadthFirst, 5);
            execute(&path, statement);
            if is_sealed && at + 3 < statements.len() {
                seal(&path);
            }
            let read = BookFile::open(&path, &Rules::AWARI);
            let read = read.and_then(|file| file.load(Strategy::BreadthFirst, BookSides::Both));
            let error = read.map(|_| ()).unwrap_err();
            assert!(error.is_damage() && error.to_string().contains("book.sqlite"), "{statement}: {error}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.sqlite");
    std::fs::write(&path, [7; 5000]).unwrap();
    let error = BookFile::open(&path, &Rules::AWARI).unwrap_err();
    assert!(error.is_damage(), "{error}");
}

/// How a book is built in a test.
struct BuildTest<'a> {
    databases: &'a EndsAt,
    strategy: Strategy,
    look_ahead: usize,
    threads: usize,
    positions: usize,
    /// Expansions after which the book is closed and opened again.
    part: usize,
}

pub(super) const DROP_OUT: Strategy = Strategy::DropOut(DropOut { omega: 100, forced: None, solves: false });

/// Builds a book in a folder, in parts. Returns its text.
fn build(folder: &Path, test: &BuildTest) -> String {
    let stop = SearchStop::new();
    let limits = AssessmentLimits::Nodes(40);
    let &BuildTest { databases, strategy, look_ahead, threads, positions, part } = test;
    let settings = BookSettings { strategy, sides: BookSides::Both, limits, look_ahead, threads };
    let root = Board([1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1]);
    loop {
        let mut file =
            BookFile::create(&RealDisk::default(), &folder.join("book.sqlite"), &Rules::AWARI, &engine()).unwrap();
        assert!(file.has_settings(&settings.text()).unwrap());
        let mut builder = BookBuilder::new(file, &root, &settings, databases, &stop).unwrap();
        builder.look_up().unwrap();
        for _ in 0..part {
            if builder.book().graph().len() >= positions || !builder.expand().unwrap() {
                assert_true(builder.book());
                return builder.book().export();
            }
        }
    }
}

/// Threads and interruptions change nothing, whatever the strategy and the number of leaves chosen ahead.
#[test]
fn books_are_the_same_by_any_number_of_threads() {
    for strategy in STRATEGIES {
        let mut orders = Vec::new();
        for look_ahead in [1, 4] {
            let texts = [(1, 1_000), (2, 1_000), (4, 7), (1, 1)].map(|(threads, part)| {
                let folder = tempfile::tempdir().unwrap();
                let databases = &EndsAt(3);
                let text =
                    build(folder.path(), &BuildTest { databases, strategy, look_ahead, threads, positions: 70, part });
                let query = "SELECT group_concat(hex(pits), ' ' ORDER BY number) FROM expansion";
                let file = rusqlite::Connection::open(folder.path().join("book.sqlite")).unwrap();
                (text, file.query_row(query, [], |row| row.get::<_, String>(0)).unwrap())
            });
            assert!(texts[0].0.lines().count() >= 70);
            assert!(texts.iter().all(|text| *text == texts[0]), "{strategy:?}, {look_ahead} ahead");
            orders.push(texts[0].1.clone());
        }
        assert!(orders[0] != orders[1] || strategy == Strategy::BreadthFirst, "{strategy:?}");
    }
}

/// Builds a book of which some positions are expanded on request, the rest by a strategy. It is opened again
/// after every `part` expansions. Returns its text, and the expanded positions in order.
fn build_on_request(folder: &Path, strategy: Strategy, look_ahead: usize, part: usize) -> (String, Vec<Board>) {
    let (databases, stop) = (EndsAt(3), SearchStop::new());
    let limits = AssessmentLimits::Nodes(40);
    let settings = BookSettings { strategy, sides: BookSides::Both, limits, look_ahead, threads: 1 };
    let root = Board([1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1]);
    // The first moves of a game, and another one after it.
    let play = |board: &Board, at: usize| board.moves(&Rules::AWARI).nth(at).unwrap().1.child;
    let first: Vec<Board> = std::iter::successors(Some(root), |board| Some(play(board, 0))).take(6).collect();
    let second = play(&root, 1);
    let path = folder.join("book.sqlite");
    let mut builder = None;
    for step in 0..40 {
        if step % part == 0 {
            drop(builder.take());
        }
        let builder = builder.get_or_insert_with(|| {
            let mut file = BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap();
            file.has_settings(&settings.text()).unwrap();
            BookBuilder::new(file, &root, &settings, &databases, &stop).unwrap()
        });
        match step {
            6..12 => drop(builder.expand_position(&first[step - 6]).unwrap()),
            20 => drop(builder.expand_position(&second).unwrap()),
            _ => assert!(builder.expand().unwrap()),
        }
        assert_true(builder.book());
        if let Some(at) = step.checked_sub(6).filter(|&at| at < 6) {
            let is_open = builder.expand_position(&first[at]).unwrap();
            assert!(!is_open, "it is expanded, closed, or not in the book");
        }
    }
    drop(builder);
    let mut file = BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap();
    assert!(!file.has_settings(&settings.text()).unwrap(), "no manifest makes it");
    let book = file.load(strategy, BookSides::Both).unwrap();
    assert!(book.expansions() > 30);
    let file = rusqlite::Connection::open(path).unwrap();
    let mut order = file.prepare("SELECT pits FROM expansion ORDER BY number").unwrap();
    let order = order.query_map([], |row| row.get(0).map(Board)).unwrap().map(Result::unwrap).collect();
    (book.export(), order)
}

/// Positions are expanded on request, and the strategy goes on from there. Interruptions change nothing.
#[test]
fn positions_are_expanded_on_request() {
    for strategy in STRATEGIES {
        for look_ahead in [1, 4] {
            let built = [40, 7, 1].map(|part| {
                let folder = tempfile::tempdir().unwrap();
                build_on_request(folder.path(), strategy, look_ahead, part)
            });
            assert!(built.iter().all(|build| *build == built[0]), "{strategy:?}, {look_ahead} ahead");
        }
    }
}

/// Writes fail at each page that a book grows to. What was entered stays, and the book becomes that of an undisturbed
/// build.
#[test]
fn failed_writes_lose_nothing() {
    let (whole, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let databases = &EndsAt(3);
    let test = BuildTest { databases, strategy: DROP_OUT, look_ahead: 3, threads: 1, positions: 300, part: 1_000 };
    let expected = build(whole.path(), &test);
    let stop = SearchStop::new();
    let limits = AssessmentLimits::Nodes(40);
    let settings = BookSettings { strategy: DROP_OUT, sides: BookSides::Both, limits, look_ahead: 3, threads: 1 };
    let root = Board([1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1]);
    let path = folder.path().join("book.sqlite");
    let (mut failures, mut had) = (0, 0);
    loop {
        let file = BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap();
        // An expansion may need a page in each table.
        file.fail_beyond(file.pages() + failures % 5);
        assert!(failures < 500, "the book does not grow");
        let made = BookBuilder::new(file, &root, &settings, databases, &stop);
        let Ok(mut builder) = made else {
            failures += 1;
            continue;
        };
        assert!(builder.book().graph().len() >= had, "an expansion was lost");
        let failed = loop {
            had = builder.book().graph().len();
            if had >= 300 {
                assert!(failures >= 3, "{failures}");
                assert_eq!(builder.book().export(), expected);
                return;
            }
            match builder.expand() {
                Ok(is_expanded) => assert!(is_expanded),
                Err(error) => break error,
            }
        };
        assert!(failed.to_string().contains("full"), "{failed}");
        assert_eq!(builder.book().graph().len(), had, "what the file has not is not in the book");
        failures += 1;
    }
}

/// The first positions of a book are those of a smaller book.
#[test]
fn books_have_milestones() {
    let (folder, first) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let test = |positions| BuildTest {
        databases: &EndsAt(3),
        strategy: DROP_OUT,
        look_ahead: 3,
        threads: 1,
        positions,
        part: 1_000,
    };
    build(folder.path(), &test(200));
    let expected = build(first.path(), &test(80));
    let file = BookFile::open(&folder.path().join("book.sqlite"), &Rules::AWARI).unwrap();
    let book = file.load_first(DROP_OUT, BookSides::Both, 80).unwrap();
    assert_eq!(book.export(), expected);
}

/// Makes a file one of version 4, whose rows had no checksums.
pub(super) const TO_VERSION_4: &str = "
    ALTER TABLE book RENAME TO new_book;
    ALTER TABLE engine RENAME TO new_engine;
    ALTER TABLE position RENAME TO new_position;
    ALTER TABLE root RENAME TO new_root;
    ALTER TABLE expansion RENAME TO new_expansion;
    ALTER TABLE value RENAME TO new_value;
    CREATE TABLE book (version INTEGER NOT NULL, rules TEXT NOT NULL, settings TEXT) STRICT;
    CREATE TABLE engine (id INTEGER PRIMARY KEY, version TEXT NOT NULL, limits TEXT NOT NULL, databases TEXT NOT NULL) STRICT;
    CREATE TABLE position (number INTEGER PRIMARY KEY, pits BLOB NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL,
        estimate INTEGER NOT NULL, depth INTEGER NOT NULL, nodes INTEGER NOT NULL,
        engine INTEGER NOT NULL REFERENCES engine (id)) STRICT;
    CREATE TABLE root (number INTEGER PRIMARY KEY, pits BLOB NOT NULL) STRICT;
    CREATE TABLE expansion (number INTEGER PRIMARY KEY, pits BLOB NOT NULL, chosen INTEGER) STRICT;
    CREATE TABLE value (pits BLOB PRIMARY KEY, low INTEGER NOT NULL, high INTEGER NOT NULL, estimate INTEGER NOT NULL,
        moves INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE derivation (positions INTEGER NOT NULL, expansions INTEGER NOT NULL) STRICT;
    INSERT INTO book SELECT 4, rules, settings FROM new_book;
    INSERT INTO engine SELECT id, version, limits, databases FROM new_engine;
    INSERT INTO position SELECT number, pits, low, high, estimate, depth, nodes, engine FROM new_position;
    INSERT INTO root SELECT number, pits FROM new_root;
    INSERT INTO expansion SELECT number, pits, chosen FROM new_expansion;
    INSERT INTO value SELECT pits, low, high, estimate, moves FROM new_value;
    INSERT INTO derivation SELECT positions, expansions FROM new_book WHERE valued IS NOT NULL;
    DROP TABLE new_book; DROP TABLE new_engine; DROP TABLE new_position; DROP TABLE new_root; DROP TABLE new_expansion;
    DROP TABLE new_value;";

/// Makes a file of version 4 one of version 3, whose facts had indexes by position.
pub(super) const TO_VERSION_3: &str = "
    ALTER TABLE position RENAME TO new_position;
    ALTER TABLE root RENAME TO new_root;
    ALTER TABLE expansion RENAME TO new_expansion;
    CREATE TABLE position (pits BLOB PRIMARY KEY, low INTEGER NOT NULL, high INTEGER NOT NULL, estimate INTEGER NOT NULL,
        depth INTEGER NOT NULL, nodes INTEGER NOT NULL, engine INTEGER NOT NULL REFERENCES engine (id))
        STRICT, WITHOUT ROWID;
    CREATE TABLE root (number INTEGER PRIMARY KEY, pits BLOB NOT NULL UNIQUE REFERENCES position (pits)) STRICT;
    CREATE TABLE expansion (number INTEGER PRIMARY KEY, pits BLOB NOT NULL UNIQUE REFERENCES position (pits),
        chosen INTEGER) STRICT;
    INSERT INTO position SELECT pits, low, high, estimate, depth, nodes, engine FROM new_position;
    INSERT INTO root SELECT * FROM new_root;
    INSERT INTO expansion SELECT * FROM new_expansion;
    DROP TABLE new_expansion; DROP TABLE new_root; DROP TABLE new_position;
    UPDATE book SET version = 3;";

/// Returns the facts of a file, as text.
fn facts(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    let queries = [
        "SELECT group_concat(hex(pits) || low || ' ' || high || ' ' || estimate || ' ' || depth || ' ' || nodes, ',' \
            ORDER BY pits) FROM position",
        "SELECT group_concat(number || hex(pits), ',' ORDER BY number) FROM root",
        "SELECT group_concat(number || hex(pits), ',' ORDER BY number) FROM expansion",
    ];
    queries.map(|query| connection.query_row(query, [], |row| row.get::<_, String>(0)).unwrap()).join(";")
}

/// Books of earlier versions are read, and a writer goes on with them.
#[test]
fn books_of_earlier_versions_are_upgraded() {
    let to_version_2 = "DROP TABLE value; DROP TABLE derivation; UPDATE book SET version = 2;";
    let to_version_1 = "ALTER TABLE book DROP COLUMN settings; ALTER TABLE expansion DROP COLUMN chosen; \
        UPDATE book SET version = 1;";
    let whole = tempfile::tempdir().unwrap();
    let whole = whole.path().join("book.sqlite");
    grow(&whole, DROP_OUT, 20);
    let expected = grow(&whole, DROP_OUT, 5).export();
    let downgrades = [TO_VERSION_4, TO_VERSION_3, to_version_2, to_version_1];
    for steps in 1..=downgrades.len() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("book.sqlite");
        let begun = grow(&path, DROP_OUT, 20).export();
        let begun_facts = facts(&path);
        execute(&path, &downgrades[..steps].concat());
        assert_eq!(facts(&path), begun_facts);
        let bytes = std::fs::read(&path).unwrap();
        let file = BookFile::open(&path, &Rules::AWARI).unwrap();
        assert_eq!(file.load(DROP_OUT, BookSides::Both).unwrap().export(), begun);
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "a reader upgrades nothing");
        drop(file);
        let mut file = BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap();
        assert!(!file.has_settings("other").unwrap());
        drop(file);
        assert_eq!(facts(&path), begun_facts, "an upgrade changes no fact");
        assert_eq!(grow(&path, DROP_OUT, 5).export(), expected);
        assert_eq!(facts(&path), facts(&whole));
    }
}

/// A book that was begun with fewer databases goes on with more: positions that these hold are closed.
#[test]
fn databases_can_be_added() {
    let folder = tempfile::tempdir().unwrap();
    let test = |databases, positions| BuildTest {
        databases,
        strategy: DROP_OUT,
        look_ahead: 2,
        threads: 1,
        positions,
        part: 1_000,
    };
    build(folder.path(), &test(&EndsAt(2), 150));
    let text = build(folder.path(), &test(&EndsAt(5), 200));
    for line in text.lines() {
        let (position, value) = line.split_once("; ").unwrap();
        let stones: u32 = position.split(' ').map(|stones| stones.parse::<u32>().unwrap()).sum();
        assert!(stones > 5 || value.ends_with("closed"), "{line}");
    }
    // A database that contradicts what was proved is noticed.
    let file = BookFile::open(&folder.path().join("book.sqlite"), &Rules::AWARI).unwrap();
    let book = file.load(Strategy::BestFirst, BookSides::Both).unwrap();
    assert!(check_book(&book, &EndsAt(7), false).wrong.is_empty());
    assert!(!check_book(&book, &Shifted, false).wrong.is_empty());
}

/// Databases with wrong scores.
struct Shifted;

impl ExactScores for Shifted {
    fn knows(&self, stones: u32) -> bool {
        stones <= u32::from(STONES_MAX)
    }

    fn score(&self, board: &Board) -> Option<Score> {
        let most = board.stones() as i8;
        Some((SOLVED[board.stones() as usize][&board.0] + 2).min(most))
    }
}
