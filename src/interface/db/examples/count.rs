//! Counts how often each score occurs in a database: `count STONES [DIRECTORY]`.

use awari_db::{Databases, Error};
use std::collections::BTreeMap;

/// Scores that are read at a time.
const SCORES_MAX: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let stones: u32 = arguments.next().as_deref().unwrap_or("4").parse()?;
    let directory = arguments.next().unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/example").to_owned());
    for (score, positions) in counts(&Databases::open(directory)?, stones)? {
        println!("{score:>3} {positions}");
    }
    Ok(())
}

fn counts(databases: &Databases, stones: u32) -> Result<BTreeMap<i8, u64>, Error> {
    let database = databases.database(stones)?;
    let mut counts = BTreeMap::new();
    let mut start = 0;
    while start < database.positions() {
        let end = database.positions().min(start + SCORES_MAX);
        let mut scores = vec![0; (end - start) as usize];
        database.read(start..end, &mut scores)?;
        for score in scores {
            *counts.entry(score).or_default() += 1;
        }
        start = end;
    }
    Ok(counts)
}
