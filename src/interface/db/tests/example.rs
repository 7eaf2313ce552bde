//! The library on the databases of 0 to 4 stones that come with it.

use awari_db::{Databases, Error, Position, Storage, StoredFile};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

fn databases() -> Databases {
    Databases::open(concat!(env!("CARGO_MANIFEST_DIR"), "/example")).expect("the example is there")
}

/// Every position: its number, its score read alone and in a row, and the values of its moves.
#[test]
fn all_ways_to_a_score_agree() {
    let databases = databases();
    assert_eq!(databases.stones().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    for stones in databases.stones() {
        let database = databases.database(stones).expect("the database is there");
        let last = database.slabs().last().expect("there are slabs");
        assert_eq!(last.first + u64::from(last.rows) * u64::from(last.columns), database.positions());
        let mut scores = vec![0; database.positions() as usize];
        database.read(0..database.positions(), &mut scores).expect("the database is sound");
        for (number, &score) in (0..).zip(&scores) {
            let position = database.position(number);
            assert_eq!(database.number(&position).expect("it is one of this database"), number);
            assert_eq!(databases.score(&position).expect("the databases are sound"), score, "{position}");
            let moves = databases.moves(&position).expect("the databases are sound");
            for played in &moves {
                let child = databases.score(&played.child).expect("the databases are sound");
                assert_eq!(played.value.score(), Some(played.captured as i8 - child), "{position}: {played:?}");
            }
            let best = databases.best_moves(&position).expect("the databases are sound");
            assert_eq!(best.is_empty(), moves.is_empty());
            assert!(
                best.iter().all(|played| played.value.score() == Some(score)),
                "{position}: {best:?}, score {score}"
            );
        }
    }
}

#[test]
fn the_folder_of_the_databases_is_enough() {
    let folder = Databases::open(concat!(env!("CARGO_MANIFEST_DIR"), "/example/databases"));
    let stones: Vec<u32> = folder.expect("the example is there").stones().collect();
    assert_eq!(stones, [0, 1, 2, 3, 4]);
}

/// A database of the codec zstd has the same scores, or is refused by a program that cannot read it.
#[test]
fn a_codec_is_read_or_named() {
    let read = |folder: &str| {
        let databases = Databases::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))?;
        let database = databases.database(3)?;
        let mut scores = vec![0; database.positions() as usize];
        database.read(0..database.positions(), &mut scores).map(|()| scores)
    };
    let expected = read("example").expect("the example is sound");
    match read("tests/zstd") {
        Ok(scores) => assert_eq!(scores, expected),
        Err(error) => {
            assert!(!cfg!(feature = "zstd") && matches!(error, Error::Unknown(_)), "{error}");
            assert!(error.to_string().contains("feature `zstd`"), "{error}");
            assert!(error.path().is_some_and(|path| path.ends_with("03.awari")));
        }
    }
}

#[test]
fn errors_name_the_cause() {
    let databases = databases();
    let position: Position = "0 0 0 0 0 5 0 0 0 0 0 0".parse().expect("it is a position");
    let opening: Position = "4 4 4 4 4 4 4 4 4 4 4 4".parse().expect("it is a position");
    assert!(matches!(databases.score(&opening), Err(Error::Missing(48))));
    assert!(matches!(databases.database(9), Err(Error::Missing(9))));
    let database = databases.database(4).expect("the database is there");
    assert!(matches!(database.number(&position), Err(Error::Position(_))));
    assert!(matches!(Position::new([9; 12]), Err(Error::Position(_))));
    assert!(matches!("1 2 x".parse::<Position>(), Err(Error::Position(_))));
    assert!(matches!(Databases::open(env!("CARGO_MANIFEST_DIR")), Err(Error::NoDatabases(_))));
}

/// The files of the example, or others, in memory. A file without bytes cannot be opened.
struct Memory(BTreeMap<PathBuf, Option<Vec<u8>>>);

/// A file that is read from its other end, so that it is not the one that comes with the library.
struct Reversed(Vec<u8>);

impl StoredFile for Reversed {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let first = offset as usize;
        let bytes = self.0.iter().rev().skip(first).take(into.len());
        into.iter_mut().zip(bytes).for_each(|(into, byte)| *into = *byte);
        if first + into.len() > self.0.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

impl Memory {
    fn example() -> Memory {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("example/databases");
        let read =
            |stones: u32| std::fs::read(folder.join(format!("{stones:02}.awari"))).expect("the example is there");
        Memory((0..=4).map(|stones| (format!("any/{stones:02}.awari").into(), Some(read(stones)))).collect())
    }

    fn file(&mut self, stones: u32) -> &mut Option<Vec<u8>> {
        self.0.get_mut(Path::new(&format!("any/{stones:02}.awari"))).expect("the example is there")
    }
}

impl Storage for Memory {
    type File = Reversed;

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self.0.keys().cloned().chain(["README".into()]).collect())
    }

    fn open(&self, name: &Path) -> io::Result<Reversed> {
        let bytes = self.0[name].as_ref().ok_or(io::ErrorKind::ConnectionReset)?;
        Ok(Reversed(bytes.iter().rev().copied().collect()))
    }
}

#[test]
fn a_storage_answers_as_the_directory() {
    let (stored, databases) = (Databases::open_in(&Memory::example()).expect("the example is sound"), databases());
    assert!(stored.stones().eq(databases.stones()));
    for stones in databases.stones() {
        let [read, expected] = [&stored, &databases].map(|databases| {
            let database = databases.database(stones).expect("the database is there");
            let mut scores = vec![0; database.positions() as usize];
            database.read(0..database.positions(), &mut scores).expect("the database is sound");
            scores
        });
        assert_eq!(read, expected);
        let database = stored.database(stones).expect("the database is there");
        for (number, &score) in (0..).zip(&read) {
            assert_eq!(stored.score(&database.position(number)).expect("the databases are sound"), score);
        }
    }
    assert!(matches!(Databases::open_in(&Memory(BTreeMap::new())), Err(Error::NoDatabases(_))));
}

#[test]
fn errors_tell_damage_from_other_files() {
    let check = |change: &dyn Fn(&mut Memory), is_expected: &dyn Fn(&Error) -> bool, message: &str| {
        let mut memory = Memory::example();
        change(&mut memory);
        let error = Databases::open_in(&memory).and_then(|databases| databases.database(3).map(drop));
        let error = error.expect_err("the file of 3 stones cannot be used");
        assert!(is_expected(&error) && error.to_string().contains(message), "{error:?}");
        assert_eq!(error.path(), Some(Path::new("any/03.awari")), "{error:?}");
        error
    };
    let is_damaged = |error: &Error| matches!(error, Error::Damaged(_));
    let first = |memory: &mut Memory| memory.file(3).as_mut().expect("it has bytes")[20] ^= 1;
    assert!(check(&first, &is_damaged, "damaged in the header").source().is_none());
    check(&|memory| memory.file(3).as_mut().expect("it has bytes").truncate(90), &is_damaged, "complete");
    let other = |memory: &mut Memory| *memory.file(3) = memory.file(2).clone();
    check(&other, &|error| matches!(error, Error::Mixed(_)), "is the database of 2 stones");
    let version = |memory: &mut Memory| memory.file(3).as_mut().expect("it has bytes")[8] = 99;
    check(&version, &|error| matches!(error, Error::Unknown(_)), "format version 99");
    let lost =
        check(&|memory| *memory.file(3) = None, &|error| matches!(error, Error::Io(_)), "cannot read any/03.awari");
    let source = lost.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::ConnectionReset));
}
