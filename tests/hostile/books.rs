//! Commands that read changed books: each gives an error or the same answer, and changes no file.

use std::fs;
use std::os::unix::fs::symlink;
use tests::Random;
use tests::directory::TestDirectory;

/// Commands that read a book.
const READERS: [&str; 5] = [
    "book show --dir run F f",
    "book export --dir run",
    "book verify --dir run",
    "book stats --dir run",
    "analyze --dir run --nodes 10 --json F4",
];

fn directory_with_book() -> TestDirectory {
    let place = TestDirectory::built(2);
    place.awari("book expand --dir run --positions 150 --nodes 50 --sides both").is(0);
    place
}

/// What an engine replies from the book; `None` if it says that the book is damaged.
fn reply(place: &TestDirectory) -> Option<String> {
    let engine = place.shell("printf 'position startpos\\ngo depth 1\\n' | $AWARI engine --dir run");
    let is_refused = engine.code != Some(0) || engine.out.contains("opening.sqlite");
    (!is_refused).then(|| engine.out.lines().filter(|line| line.contains("book") || line.contains(" pv ")).collect())
}

fn attack(seed: u64, mutants: usize) {
    let place = directory_with_book();
    let path = place.path("run/books/opening.sqlite");
    let sound = fs::read(&path).unwrap();
    let answers = READERS.map(|reader| place.awari(reader).is(0).out);
    let replied = reply(&place);
    assert!(replied.as_ref().is_some_and(|said| said.contains("the book plays")), "{replied:?}");
    let mut random = Random::new(seed);
    let mut refused = 0;
    for number in 0..mutants {
        let mut bytes = sound.clone();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
        fs::write(&path, &bytes).unwrap();
        let before = place.files("run/books");
        for (reader, answer) in READERS.iter().zip(&answers) {
            let found = place.awari(reader);
            match found.code {
                Some(0) => assert_eq!(found.out, *answer, "seed {seed}, mutant {number}, byte {at}: {reader}"),
                code => {
                    assert!(code == Some(16), "seed {seed}, mutant {number}, byte {at}: {reader}: {}", found.err);
                    refused += 1;
                }
            }
        }
        let found = reply(&place);
        assert!(found.is_none() || found == replied, "seed {seed}, mutant {number}, byte {at}: {found:?}");
        assert!(place.files("run/books") == before, "seed {seed}, mutant {number}, byte {at} changes a file");
    }
    assert!(refused > 0, "seed {seed}: no change was noticed");
}

#[test]
fn commands_give_errors_or_the_same_answers() {
    attack(1, 5);
}

#[test]
#[ignore = "slow tier: runs some hundred commands"]
fn commands_give_errors_or_the_same_answers_for_many_books() {
    attack(2, 15);
}

/// A link, an emptied file or a foreign database in the place of a book is neither followed nor filled nor changed.
#[test]
fn only_books_are_read_and_written() {
    let place = directory_with_book();
    let path = place.path("run/books/opening.sqlite");
    fs::rename(&path, place.path("elsewhere.sqlite")).unwrap();
    let all = |what: &[&str]| {
        for command in READERS.iter().chain(&["book expand --dir run --positions 200 --nodes 10", "engine --dir run"]) {
            let refused = place.awari(command);
            assert!([Some(12), Some(16)].contains(&refused.code), "{command}: {}", refused.err);
            refused.says(what);
        }
    };
    symlink(place.path("elsewhere.sqlite"), &path).unwrap();
    let whole = fs::read(place.path("elsewhere.sqlite")).unwrap();
    all(&["symbolic link"]);
    assert!(fs::read(place.path("elsewhere.sqlite")).unwrap() == whole);
    fs::remove_file(&path).unwrap();
    symlink(place.path("nowhere.sqlite"), &path).unwrap();
    all(&["symbolic link"]);
    assert!(!place.path("nowhere.sqlite").exists());
    fs::remove_file(&path).unwrap();
    for (content, what) in [(&b""[..], "it is empty"), (&[b'x'; 9_000], "no database of SQLite")] {
        fs::write(&path, content).unwrap();
        all(&["is not a book", what]);
        assert!(fs::read(&path).unwrap() == content);
    }
    let names: Vec<_> = place.files("run/books").into_keys().collect();
    assert_eq!(names.len(), 2, "the lock is beside it, and nothing else: {names:?}");
}
