//! Properties of readers on any bytes: one function a format.
//!
//! Each function reads bytes in every way the program does, and panics unless they are refused or read
//! consistently. The fuzzer (`tests/fuzz`) searches for bytes on which one does; `tests/hostile/mutants.rs`
//! runs all of them over the fuzzer's corpus and seeded mutants of it.

mod database;
mod example_files;
mod journal;
mod mutant;
mod oracle;
mod pages;
mod run;
mod scores;
mod seal;
mod snapshot;
mod text;

pub use database::database;
pub use journal::journal;
pub use mutant::mutant;
pub use oracle::oracle;
pub use pages::pages;
pub use run::{SmallBuild, damage, run};
pub use scores::scores;
pub use seal::{content_digest, seal_journal, seal_scores};
pub use snapshot::snapshot;
pub use text::{manifest, notation, statistics};

/// Property of any bytes.
pub type Property = fn(&[u8]);

/// All properties, by the names of their fuzz targets.
pub const PROPERTIES: [(&str, Property); 10] = [
    ("manifest", manifest),
    ("notation", notation),
    ("statistics", statistics),
    ("journal", journal),
    ("database", database),
    ("scores", scores),
    ("pages", pages),
    ("oracle", oracle),
    ("run", run),
    ("snapshot", snapshot),
];

/// Initial inputs: property, name and bytes. The corpus in `tests/fuzz/corpus` started from these.
pub fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    [
        text::seeds(),
        journal::seeds(),
        database::seeds(),
        scores::seeds(),
        pages::seeds(),
        oracle::seeds(),
        run::seeds(),
        snapshot::seeds(),
    ]
    .concat()
}

/// The first byte, which chooses among cases, and the rest.
fn split(bytes: &[u8]) -> Option<(u8, &[u8])> {
    bytes.split_first().map(|(first, rest)| (*first, rest))
}
