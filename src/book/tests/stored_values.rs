//! Values stored in a file against values derived from its facts.

use super::awari::{DROP_OUT, TO_VERSION_3, TO_VERSION_4, assess, engine, execute, grow};
use super::forged::seal;
use crate::{AwariGame, BookFile, BookSides, OpeningBook};
use disk::RealDisk;
use game::{Board, Rules};
use std::path::Path;

/// Opens a book for writing, and stores its values.
pub(super) fn store(path: &Path) {
    let mut file = BookFile::create(&RealDisk::default(), path, &Rules::AWARI, &engine()).unwrap();
    let book = file.load(DROP_OUT, BookSides::Both).unwrap();
    file.store_values(&book).unwrap();
}

/// Returns the number of stored values and the wrong ones.
fn check(path: &Path) -> Option<(u64, usize)> {
    let file = BookFile::open_any(path).unwrap();
    let book = file.load(DROP_OUT, BookSides::Both).unwrap();
    file.check_values(&book).unwrap().map(|(count, wrong)| (count, wrong.len()))
}

#[test]
fn stored_values_are_derived_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.sqlite");
    let book = grow(&path, DROP_OUT, 40);
    let derived = OpeningBook::open(&path, &Rules::AWARI).unwrap();
    assert!(!derived.is_stored());
    assert_eq!(check(&path), None);
    store(&path);
    let stored = OpeningBook::open_any(&path).unwrap();
    assert!(stored.is_stored());
    assert_eq!((stored.root(), stored.positions()), (derived.root(), derived.positions()));
    assert_eq!(check(&path), Some((book.graph().len() as u64, 0)));
    let mut replies = 0;
    for id in book.graph().ids() {
        let board = AwariGame::board(book.graph().node(id).key);
        let found = stored.position(&board).unwrap().unwrap();
        assert_eq!(Some(&found), derived.position(&board).unwrap().as_ref());
        assert_eq!(found.value, book.graph().value(id));
        assert_eq!(found.moves.len(), book.graph().moves(id).len());
        assert!(found.moves.is_sorted_by_key(|reply| -reply.value.estimate));
        for reply in &found.moves {
            let edge = book.graph().moves(id).iter().find(|edge| edge.number == reply.pit.number() as u8).unwrap();
            assert_eq!(reply.value.estimate, book.graph().estimate(edge));
            assert_eq!(reply.is_best, Some(reply.value.estimate) == book.graph().best(id));
            assert_eq!(reply.goes_on, book.graph().is_interior(edge.child));
            replies += 1;
        }
    }
    assert_eq!(replies, book.graph().edge_count());
    assert_eq!(stored.position(&Board::OPENING).unwrap(), None);
}

/// The first fact that is entered marks stored values as old. A reader goes on with them.
#[test]
fn values_of_fewer_facts_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.sqlite");
    grow(&path, DROP_OUT, 10);
    store(&path);
    let reader = OpeningBook::open_any(&path).unwrap();
    let before = reader.position(&reader.root()).unwrap();
    grow(&path, DROP_OUT, 1);
    assert!(!OpeningBook::open_any(&path).unwrap().is_stored());
    assert_eq!(reader.position(&reader.root()).unwrap(), before);
    store(&path);
    assert!(OpeningBook::open_any(&path).unwrap().is_stored());
    // Results that a database replaces are facts too.
    let mut file = BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &engine()).unwrap();
    let root = AwariGame::key(&reader.root());
    file.replace(&[(root, assess(root))]).unwrap();
    drop(file);
    assert!(!OpeningBook::open_any(&path).unwrap().is_stored());
    store(&path);
    // A row that another program entered.
    execute(&path, "INSERT INTO expansion (pits, checksum) SELECT pits, 0 FROM value WHERE moves = 0 LIMIT 1");
    assert!(BookFile::open_any(&path).unwrap().load_values().is_err());
    // Values are checked when they are looked up.
    let fewer = folder.path().join("fewer.sqlite");
    grow(&fewer, DROP_OUT, 10);
    store(&fewer);
    execute(&fewer, "UPDATE value SET checksum = checksum + 1");
    assert!(OpeningBook::open_any(&fewer).unwrap_err().is_damage());
}

/// A changed value is an error of whatever reads it, or a check finds it, also under right checksums.
#[test]
fn wrong_stored_values_are_found() {
    let statements = [
        "UPDATE value SET low = -32768, high = 32767",
        "UPDATE value SET low = high + 100",
        "UPDATE value SET estimate = 100000",
        "UPDATE value SET estimate = low WHERE pits = (SELECT pits FROM root)",
        "UPDATE value SET moves = 3 WHERE moves = 0",
        "UPDATE value SET moves = -1",
        "UPDATE value SET pits = x'00' WHERE pits = (SELECT pits FROM root)",
        "DELETE FROM value WHERE pits NOT IN (SELECT pits FROM root)",
        "DELETE FROM value WHERE pits NOT IN (SELECT pits FROM root) AND pits > (SELECT pits FROM root)",
        "DELETE FROM value",
        "UPDATE book SET valued = -5",
        "DELETE FROM root",
    ];
    for statement in statements {
        for is_sealed in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("book.sqlite");
            grow(&path, DROP_OUT, 5);
            store(&path);
            execute(&path, statement);
            if is_sealed {
                seal(&path);
            }
            let read = OpeningBook::open_any(&path).and_then(|book| book.position(&book.root()));
            assert!(!read.is_ok_and(|found| found.is_none()), "{statement}");
            let found = BookFile::open_any(&path).and_then(|file| {
                let book = file.load(DROP_OUT, BookSides::Both)?;
                file.check_values(&book)
            });
            assert!(!found.is_ok_and(|found| found.unwrap().1.is_empty()), "{statement}");
        }
    }
}

/// A book of version 2 is read, and a writer adds the tables of values.
#[test]
fn books_of_version_2_are_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.sqlite");
    grow(&path, DROP_OUT, 10);
    execute(&path, TO_VERSION_4);
    execute(&path, TO_VERSION_3);
    execute(&path, "DROP TABLE value; DROP TABLE derivation; UPDATE book SET version = 2");
    assert!(!OpeningBook::open_any(&path).unwrap().is_stored());
    assert_eq!(check(&path), None);
    store(&path);
    assert!(OpeningBook::open_any(&path).unwrap().is_stored());
}

/// A book is read where nothing can be written. A privileged user can write anywhere.
#[test]
fn books_in_read_only_directories_are_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let within = folder.path().join("a % b?c#d");
    std::fs::create_dir(&within).unwrap();
    let path = within.join("book.sqlite");
    let book = grow(&path, DROP_OUT, 10);
    store(&path);
    let set = |mode| std::fs::set_permissions(&within, std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    set(0o555);
    let opened = OpeningBook::open_any(&path);
    set(0o755);
    let opened = opened.unwrap();
    assert!(opened.is_stored());
    let root = opened.position(&opened.root()).unwrap().unwrap();
    assert_eq!(root.value, book.graph().value(book.roots()[0]));
}

/// A reader sees a book as of one moment while a writer goes on.
#[test]
fn readers_see_whole_books() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.sqlite");
    grow(&path, DROP_OUT, 1);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..15 {
                grow(&path, DROP_OUT, 20);
                store(&path);
            }
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
            let book = OpeningBook::open_any(&path).unwrap();
            assert!(book.position(&book.root()).unwrap().is_some());
            assert_eq!(check(&path).map_or(0, |(_, wrong)| wrong), 0);
        }
    });
}

/// Books may be by any rules that give scores.
#[test]
fn books_have_rules() {
    let folder = tempfile::tempdir().unwrap();
    for rules in Rules::KNOWN {
        let path = folder.path().join(format!("{}.sqlite", rules.name));
        let made = BookFile::create(&RealDisk::default(), &path, &rules, &engine());
        assert_eq!(made.is_ok(), rules.has_scores(), "{}", rules.name);
        match made {
            Ok(_) => assert_eq!(*BookFile::open_any(&path).unwrap().rules(), rules),
            Err(error) => assert!(error.to_string().contains("two values"), "{error}"),
        }
    }
    let wari = folder.path().join("wari.sqlite");
    let error = BookFile::open(&wari, &Rules::AWARI).unwrap_err().to_string();
    assert!(error.contains("the rules awari") && error.contains("the rules wari"), "{error}");
}
