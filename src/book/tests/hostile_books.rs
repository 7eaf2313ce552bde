//! Changed and forged books: whatever reads one gives an error or the same answer, and changes no file.

use super::awari::{DROP_OUT, EndsAt, engine, execute, grow};
use super::forged::{seal, seal_with};
use super::random::GameRandom;
use super::stored_values::store;
use crate::{BookError, BookFile, OpeningBook, check_book};
use disk::RealDisk;
use game::{Board, Rules};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What is read of a book: as by a player, as by an export, and as by a check.
#[derive(Clone, Debug, PartialEq)]
struct BookAnswers {
    played: Option<String>,
    exported: Option<String>,
    checked: Option<String>,
}

impl BookAnswers {
    /// Whether each answer is an error or that of another book.
    fn is_within(&self, other: &BookAnswers) -> bool {
        let is_same = |own: &Option<String>, other: &Option<String>| own.is_none() || own == other;
        is_same(&self.played, &other.played)
            && is_same(&self.exported, &other.exported)
            && is_same(&self.checked, &other.checked)
    }

    fn errors(&self) -> usize {
        [&self.played, &self.exported, &self.checked].into_iter().filter(|answer| answer.is_none()).count()
    }
}

/// Describes positions up to a depth.
fn tree(book: &OpeningBook, board: &Board, depth: u32) -> Result<String, BookError> {
    let found = book.position(board)?;
    let mut text = format!("{found:?}");
    for reply in found.into_iter().flat_map(|found| found.moves).filter(|_| depth > 0) {
        text += &tree(book, &reply.child, depth - 1)?;
    }
    Ok(text)
}

fn read(path: &Path) -> BookAnswers {
    let played = OpeningBook::open_any(path).and_then(|book| {
        let absent = book.position(&Board::OPENING)?;
        Ok(format!("{:?} {absent:?} {}", book.root(), tree(&book, &book.root(), 3)?))
    });
    let opened = BookFile::open_any(path);
    let exported = opened.as_ref().ok().and_then(|file| Some(file.load_values().ok()?.export()));
    let checked = opened.as_ref().ok().and_then(|file| {
        let book = file.load_values().ok()?;
        let wrong = check_book(&book, &EndsAt(0), true).wrong;
        let stored = file.check_values(&book).ok()?;
        // A check that finds something is an error.
        let is_right = wrong.is_empty() && stored.as_ref().is_none_or(|(_, wrong)| wrong.is_empty());
        is_right.then(|| format!("{} {:?} {:?}", book.graph().len(), file.engines().ok(), file.searched().ok()))
    });
    BookAnswers { played: played.ok(), exported, checked }
}

/// The names and bytes of all files of a folder.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    files.sort();
    files
}

/// A sound book with stored values, and what is read of it.
struct SoundBook {
    bytes: Vec<u8>,
    answers: BookAnswers,
}

impl SoundBook {
    fn new(folder: &Path, expansions: usize) -> SoundBook {
        let path = folder.join("sound.sqlite");
        grow(&path, DROP_OUT, expansions);
        store(&path);
        let answers = read(&path);
        assert_eq!(answers.errors(), 0);
        SoundBook { bytes: fs::read(path).unwrap(), answers }
    }
}

const PAGE: usize = 4096;

/// Changes bytes.
fn mutate(random: &mut GameRandom, bytes: &mut Vec<u8>) {
    let below = |random: &mut GameRandom, end: usize| random.below(end as u64) as usize;
    let pages = bytes.len() / PAGE;
    match random.below(16) {
        0 => bytes.truncate(below(random, bytes.len())),
        1 => bytes.truncate(PAGE * below(random, pages)),
        2 => bytes.extend((0..1 + random.below(9_000)).map(|at| at as u8)),
        3 => {
            let from = below(random, pages) * PAGE..;
            let page = bytes[from][..PAGE].to_vec();
            let at = below(random, pages) * PAGE;
            bytes[at..at + PAGE].copy_from_slice(&page);
        }
        4 => {
            let at = below(random, pages) * PAGE;
            bytes[at..at + PAGE].fill(0);
        }
        5 => {
            let (at, length) = (below(random, bytes.len()), 1 + below(random, 64));
            bytes.iter_mut().skip(at).take(length).for_each(|byte| *byte = random.below(256) as u8);
        }
        // An inner page whose children are one and the same, or itself.
        6 | 7 => {
            let inner: Vec<usize> = (1..pages).filter(|page| matches!(bytes[page * PAGE], 2 | 5)).collect();
            let Some(&page) = inner.get(below(random, inner.len().max(1))) else { return mutate(random, bytes) };
            let at = page * PAGE;
            let cells = usize::from(u16::from_be_bytes([bytes[at + 3], bytes[at + 4]]));
            let child = [page as u32 + 1, 1 + random.below(pages as u64) as u32][below(random, 2)].to_be_bytes();
            bytes[at + 8..at + 12].copy_from_slice(&child);
            for cell in 0..cells.min(PAGE / 2 - 8) {
                let place = at + 12 + 2 * cell;
                let start = at + usize::from(u16::from_be_bytes([bytes[place], bytes[place + 1]])) % (PAGE - 4);
                bytes[start..start + 4].copy_from_slice(&child);
            }
        }
        _ => {
            let at = below(random, bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
    }
}

/// Statements that forge a schema.
const FORGED: [&str; 27] = [
    "CREATE VIEW extra AS SELECT 1",
    "CREATE TABLE extra (x)",
    "CREATE INDEX extra ON position (pits)",
    "CREATE UNIQUE INDEX extra ON position (pits) WHERE number > 0",
    "CREATE TRIGGER extra AFTER INSERT ON position BEGIN DELETE FROM root; END",
    "CREATE VIRTUAL TABLE extra USING fts5 (x)",
    "ALTER TABLE position RENAME TO hidden; CREATE VIEW position AS SELECT * FROM hidden",
    "ALTER TABLE position RENAME TO hidden; CREATE VIEW position AS WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 \
        FROM r) SELECT n AS number, pits, low, high, estimate, depth, nodes, engine, checksum FROM r, hidden",
    "ALTER TABLE book RENAME TO hidden; CREATE VIEW book AS WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) \
        SELECT hidden.* FROM r, hidden WHERE n < 0",
    "ALTER TABLE value RENAME TO hidden; CREATE VIEW value AS SELECT * FROM hidden",
    "ALTER TABLE value RENAME TO hidden; CREATE TABLE value (pits, low, high, estimate, moves, checksum); \
        INSERT INTO value SELECT pits, high, high, high, moves, checksum FROM hidden; DROP TABLE hidden",
    "ALTER TABLE position ADD COLUMN extra INTEGER",
    "ALTER TABLE position ADD COLUMN extra INTEGER AS (low + 1)",
    "ALTER TABLE book ADD COLUMN extra TEXT DEFAULT 'x'",
    "ALTER TABLE position DROP COLUMN depth",
    "ALTER TABLE root RENAME COLUMN pits TO stones",
    "CREATE TABLE other AS SELECT * FROM position; DROP TABLE position; ALTER TABLE other RENAME TO position",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ' STRICT', '')",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'low INTEGER NOT NULL', 'low INTEGER')",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'estimate INTEGER NOT NULL', \
        'estimate INTEGER NOT NULL CHECK (randomblob(1000000000) IS NULL)')",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'root') \
        WHERE name = 'expansion'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'root'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 999999 WHERE name = 'value'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = 'view' WHERE name = 'position'",
    "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES ('table', 'extra', 'extra', 0, 'CREATE TABLE extra (x)')",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql || hex(zeroblob(3000000)) WHERE name = 'root'",
    "PRAGMA application_id = 7; DROP TABLE book",
];

/// Statements that forge impossible rows, which then get right checksums. N is a number of a row.
const IMPOSSIBLE: [&str; 23] = [
    "UPDATE position SET low = high + 100 WHERE number = N",
    "UPDATE position SET low = -32768 WHERE number = N",
    "UPDATE position SET high = 32767 WHERE number = N",
    "UPDATE position SET estimate = high + 1 WHERE number = N",
    "UPDATE position SET estimate = 9223372036854775807 WHERE number = N",
    "UPDATE position SET depth = -1 WHERE number = N",
    "UPDATE position SET nodes = -1 WHERE number = N",
    "UPDATE position SET engine = 0 WHERE number = N",
    "UPDATE position SET pits = x'' WHERE number = N",
    "UPDATE position SET pits = zeroblob(20000000) WHERE number = N",
    "UPDATE position SET pits = x'ffffffffffffffffffffffff' WHERE number = N",
    "UPDATE position SET pits = (SELECT pits FROM position WHERE number = N + 1) WHERE number = N",
    "UPDATE position SET number = 9223372036854775807 WHERE number = N",
    "UPDATE position SET number = -N WHERE number = N",
    "DELETE FROM position WHERE number = N",
    "UPDATE expansion SET chosen = 1000000 WHERE number = 2",
    "UPDATE expansion SET chosen = -1 WHERE number = 2",
    "UPDATE expansion SET pits = (SELECT pits FROM expansion WHERE number = 1) WHERE number = 2",
    "UPDATE root SET pits = x'000102' WHERE number = 1",
    "UPDATE engine SET version = hex(zeroblob(20000000))",
    "UPDATE book SET rules = 'nonsense'",
    "UPDATE book SET version = -1",
    "UPDATE book SET settings = hex(zeroblob(20000000))",
];

/// Statements that forge impossible values, which then get right checksums. ROOT is the position of the root.
const IMPOSSIBLE_VALUES: [&str; 7] = [
    "UPDATE value SET low = high + 1 WHERE pits = ROOT",
    "UPDATE value SET high = 30000 WHERE pits = ROOT",
    "UPDATE value SET estimate = high + 1 WHERE pits = ROOT",
    "UPDATE value SET moves = 7 WHERE pits = ROOT",
    "UPDATE value SET moves = -1 WHERE pits = ROOT",
    "UPDATE value SET moves = 9223372036854775807 WHERE pits = ROOT",
    "UPDATE value SET estimate = CASE estimate WHEN low THEN high ELSE low END WHERE pits = ROOT AND low < high",
];

/// Reads changed and forged books.
fn attack(seed: u64, mutants: usize) {
    let folder = tempfile::tempdir().unwrap();
    let sound = SoundBook::new(folder.path(), 60);
    let within = folder.path().join("books");
    fs::create_dir(&within).unwrap();
    let path = within.join("book.sqlite");
    let expect = |what: &str, is_refused: [bool; 3]| {
        let before = files(&within);
        let found = read(&path);
        assert!(found.is_within(&sound.answers), "seed {seed}, {what}: {found:?}");
        let answers = [&found.played, &found.exported, &found.checked];
        for (answer, is_refused) in answers.into_iter().zip(is_refused) {
            assert!(!(is_refused && answer.is_some()), "seed {seed}, {what}: {answer:?}");
        }
        assert!(files(&within) == before, "seed {seed}, {what} changes a file");
        found.errors()
    };
    let mut random = GameRandom(seed);
    let mut errors = 0;
    for number in 0..mutants {
        let mut bytes = sound.bytes.clone();
        mutate(&mut random, &mut bytes);
        fs::write(&path, &bytes).unwrap();
        errors += usize::from(expect(&format!("mutant {number}"), [false; 3]) > 0);
    }
    assert!(errors > mutants / 4, "{errors} of {mutants}");
    let forge = |statement: &str| {
        fs::write(&path, &sound.bytes).unwrap();
        let connection = Connection::open(&path).unwrap();
        let made = connection
            .execute_batch(&format!("PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON; {statement}"));
        drop(connection);
        made.is_ok()
    };
    let mut forged = 0;
    for statement in FORGED.into_iter().filter(|statement| forge(statement)) {
        // A player reads neither expansions nor what is beside the schema.
        expect(statement, [!statement.contains("rootpage"), true, true]);
        forged += 1;
    }
    // Some builds of SQLite have no virtual tables.
    assert!(forged >= FORGED.len() - 1, "{forged}");
    for statement in IMPOSSIBLE {
        let number = (2 + random.below(30)).to_string();
        assert!(
            forge(&statement.replace("= N", &format!("= {number}")).replace("= -N", &format!("= -{number}"))),
            "{statement}"
        );
        seal(&path);
        expect(statement, [false, true, true]);
    }
    for statement in IMPOSSIBLE_VALUES {
        assert!(forge(&statement.replace("ROOT", "(SELECT pits FROM root)")), "{statement}");
        seal(&path);
        expect(statement, [true, false, true]);
    }
    for (at, count) in (0..4).flat_map(|at| [-1, 0, 1, i64::MAX].map(|count| (at, count))) {
        fs::write(&path, &sound.bytes).unwrap();
        let connection = Connection::open(&path).unwrap();
        let mut counts = ["engine", "position", "root", "expansion"]
            .map(|table| connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap());
        if counts[at] == count {
            continue;
        }
        counts[at] = count;
        seal_with(&connection, counts);
        drop(connection);
        expect(&format!("count {at} is {count}"), [false, true, true]);
    }
}

#[test]
fn changed_books_give_errors_or_the_same_answers() {
    attack(1, 60);
}

#[test]
#[ignore = "slow tier: reads more changed books"]
fn many_changed_books_give_errors_or_the_same_answers() {
    let seed = std::env::var("AWARI_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    attack(seed.unwrap_or(2), 100);
}

/// A process that was killed leaves a log. Whatever of it is damaged, the book is sound and that of some expansion.
fn attack_log(seed: u64, mutants: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.sqlite");
    let mut states = Vec::new();
    let mut random = GameRandom(seed);
    grow(&path, DROP_OUT, 3);
    states.push(read(&path));
    let within = folder.path().join("killed");
    fs::create_dir(&within).unwrap();
    let killed = within.join("book.sqlite");
    let log = |path: &Path| path.with_extension("sqlite-wal");
    let (mut main, mut frames) = (Vec::new(), Vec::new());
    // The log is copied now and then into the file.
    let mut file = BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap();
    file.checkpoint_every(30);
    let mut book = file.load(DROP_OUT, crate::BookSides::Both).unwrap();
    for _ in 0..60 {
        super::awari::expand(&mut file, &mut book);
        (main, frames) = (fs::read(&path).unwrap(), fs::read(log(&path)).unwrap());
        fs::write(&killed, &main).unwrap();
        fs::write(log(&killed), &frames).unwrap();
        let before = files(&within);
        let found = read(&killed);
        assert_eq!(found.exported, Some(book.export()), "a killed writer loses nothing that was entered");
        assert!(files(&within) == before, "a reader changes a file");
        states.push(found);
    }
    assert!(frames.len() > 8 * PAGE && main.len() > 8 * PAGE, "{} {}", frames.len(), main.len());
    let mut earlier = 0;
    for number in 0..mutants {
        let (mut main, mut frames) = (main.clone(), frames.clone());
        match random.below(3) {
            0 => mutate(&mut random, &mut main),
            1 => frames.truncate(random.below(frames.len() as u64) as usize),
            _ => {
                let at = random.below(frames.len() as u64) as usize;
                frames[at] ^= 1 << random.below(8);
            }
        }
        fs::write(&killed, &main).unwrap();
        fs::write(log(&killed), &frames).unwrap();
        let found = read(&killed);
        let is_known = states.iter().any(|state| found.is_within(state));
        assert!(is_known, "seed {seed}, mutant {number}: {found:?}");
        earlier += usize::from(found.errors() == 0 && Some(&found) != states.last());
    }
    assert!(earlier > 0, "no log ends earlier");
}

#[test]
fn books_of_killed_writers_are_read() {
    attack_log(1, 30);
}

#[test]
#[ignore = "slow tier: reads more changed logs"]
fn many_books_of_killed_writers_are_read() {
    attack_log(2, 100);
}

/// Readers and writers follow no link, and nothing is made, filled or replaced where there is no book.
#[test]
fn only_books_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    grow(&path("book.sqlite"), DROP_OUT, 3);
    execute(&path("foreign.sqlite"), "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    fs::write(path("emptied.sqlite"), b"").unwrap();
    fs::write(path("text.sqlite"), vec![b'a'; 10_000]).unwrap();
    fs::copy(path("book.sqlite"), path("journal.sqlite")).unwrap();
    fs::write(path("journal.sqlite-journal"), b"x").unwrap();
    fs::copy(path("book.sqlite"), path("log.sqlite")).unwrap();
    symlink(path("elsewhere"), path("log.sqlite-wal")).unwrap();
    symlink(path("book.sqlite"), path("link.sqlite")).unwrap();
    symlink(path("nowhere.sqlite"), path("dangling.sqlite")).unwrap();
    fs::create_dir(path("folder.sqlite")).unwrap();
    let whole = |name: &str| (fs::symlink_metadata(path(name)).unwrap().len(), fs::read(path(name)).ok());
    for (name, what) in [
        ("foreign.sqlite", "not a book"),
        ("emptied.sqlite", "it is empty"),
        ("text.sqlite", "no database of SQLite"),
        ("journal.sqlite", "journal"),
        ("log.sqlite", "symbolic link"),
        ("link.sqlite", "symbolic link"),
        ("dangling.sqlite", "symbolic link"),
        ("folder.sqlite", "Is a directory"),
    ] {
        let before = whole(name);
        let refused = [
            BookFile::open_any(&path(name)).map(drop),
            BookFile::create(&RealDisk::default(), &path(name), &Rules::AWARI, &engine()).map(drop),
        ];
        for refused in refused {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(name), "{name}: {error}");
        }
        assert!(whole(name) == before, "{name} was changed");
    }
    assert!(!path("nowhere.sqlite").exists() && !path("elsewhere").exists());
    // A link to the directory is the user's own.
    symlink(folder.path(), path("own")).unwrap();
    BookFile::create(&RealDisk::default(), &path("own/book.sqlite"), &Rules::AWARI, &engine()).unwrap();
    // What a removed book left belongs to no new one.
    let log = fs::read(path("book.sqlite")).unwrap();
    fs::write(path("new.sqlite-wal"), log).unwrap();
    BookFile::create(&RealDisk::default(), &path("new.sqlite"), &Rules::AWARI, &engine()).unwrap();
    BookFile::open_any(&path("new.sqlite")).unwrap();
}
