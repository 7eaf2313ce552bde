//! Errors planted into the file of a book, all of which a complete check finds.

use super::awari::{DATABASES, DROP_OUT, LIMITS, grow};
use super::forged::seal;
use super::random::GameRandom;
use super::stored_values::store;
use crate::{AssessorPool, BookFile, BookSides, EngineResults, check_book, check_results};
use game::Rules;
use search::SearchStop;
use std::error::Error;
use std::fs;
use std::path::Path;

/// Checks a book by all means, and returns descriptions of what is wrong.
fn check(path: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let file = BookFile::open(path, &Rules::AWARI)?;
    let book = file.load(DROP_OUT, BookSides::Both)?;
    let mut wrong = check_book(&book, &DATABASES, true).wrong;
    wrong.extend(file.check_values(&book)?.into_iter().flat_map(|(_, wrong)| wrong));
    let pool = AssessorPool::new(*book.game(), &DATABASES, LIMITS, 1)?;
    for EngineResults { results, .. } in file.results()? {
        wrong.extend(check_results(book.game(), &results, &pool, &SearchStop::new())?);
    }
    Ok(wrong)
}

/// Changes of one row: N is its place, and BY a number other than 0.
const CHANGES: [&str; 16] = [
    "UPDATE position SET low = low + BY WHERE number = N",
    "UPDATE position SET high = high + BY WHERE number = N",
    "UPDATE position SET estimate = estimate + BY WHERE number = N",
    "UPDATE position SET depth = depth + BY WHERE number = N",
    "UPDATE position SET nodes = nodes + BY WHERE number = N",
    "UPDATE position SET engine = engine + BY WHERE number = N",
    "UPDATE position SET pits = x'000001020304050607000000' WHERE number = N",
    "UPDATE position SET pits = (SELECT pits FROM position WHERE number = N + 1) WHERE number = N",
    "DELETE FROM position WHERE number = N",
    "UPDATE value SET low = low + BY WHERE pits = (SELECT pits FROM position WHERE number = N)",
    "UPDATE value SET high = high + BY WHERE pits = (SELECT pits FROM position WHERE number = N)",
    "UPDATE value SET estimate = estimate + BY WHERE pits = (SELECT pits FROM position WHERE number = N)",
    "UPDATE value SET moves = moves + BY WHERE pits = (SELECT pits FROM position WHERE number = N)",
    "DELETE FROM value WHERE pits = (SELECT pits FROM position WHERE number = N)",
    "UPDATE expansion SET pits = (SELECT pits FROM position WHERE number = N + 1) \
        WHERE number = N AND pits <> (SELECT pits FROM position WHERE number = N + 1)",
    "DELETE FROM expansion WHERE number = N AND number < (SELECT max(number) FROM expansion)",
];

fn plant(count: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (whole, planted) = (folder.path().join("whole.sqlite"), folder.path().join("planted.sqlite"));
    let positions = grow(&whole, DROP_OUT, 40).graph().len() as u64;
    store(&whole);
    assert_eq!(check(&whole).unwrap(), [""; 0]);
    let mut random = GameRandom(25);
    let mut done = [0; CHANGES.len()];
    while done.iter().sum::<usize>() < count {
        let change = random.below(CHANGES.len() as u64) as usize;
        let by = (1 + random.below(300) as i64) * [1, -1][random.below(2) as usize];
        let statement = CHANGES[change].replace("BY", &by.to_string());
        let statement = statement.replace("= N", &format!("= {}", 1 + random.below(positions)));
        fs::copy(&whole, &planted).unwrap();
        let connection = rusqlite::Connection::open(&planted).unwrap();
        connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        // The log becomes part of the file when the connection is closed.
        let changed = connection.execute(&statement, []);
        connection.close().unwrap();
        if changed != Ok(1) {
            continue;
        }
        done[change] += 1;
        assert!(check(&planted).is_err(), "{statement} changes no checksum");
        seal(&planted);
        assert!(check(&planted).map_or(true, |wrong| !wrong.is_empty()), "{statement} is not found");
    }
    assert!(done.iter().all(|&done| done > 0), "{done:?}");
}

#[test]
fn planted_errors_are_found() {
    plant(150);
}

#[test]
#[ignore = "slow tier: a thousand errors"]
fn a_thousand_planted_errors_are_found() {
    plant(1_000);
}
