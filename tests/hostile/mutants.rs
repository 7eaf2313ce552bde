//! The properties of hostile bytes over the fuzzer's corpus, its seeds, and seeded mutants of both.
//!
//! `cargo test -p tests --test hostile mutants -- --ignored` writes the seeds to `tests/fuzz/seeds`, for the fuzzer.

use std::fs;
use std::path::PathBuf;
use tests::Random;
use tests::hostile::{PROPERTIES, Property, mutant, seeds};

/// Mutants of each property, so that all take some seconds.
const MUTANTS: [(&str, usize); 10] = [
    ("manifest", 2000),
    ("notation", 10_000),
    ("statistics", 5000),
    ("journal", 500),
    ("database", 1500),
    ("scores", 150),
    ("pages", 2500),
    ("oracle", 500),
    ("run", 60),
    ("snapshot", 45),
];

/// Prints the input when a property panics.
struct MutantCase<'a> {
    property: &'a str,
    bytes: &'a [u8],
}

impl Drop for MutantCase<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} does not hold of \"{}\"", self.property, self.bytes.escape_ascii());
        }
    }
}

fn folder(folder: &str, property: &str) -> PathBuf {
    tests::root().join("tests/fuzz").join(folder).join(property)
}

/// The corpus as it is checked in, and the seeds.
fn inputs(property: &str) -> Vec<Vec<u8>> {
    let listed = fs::read_dir(folder("corpus", property)).expect("there is a corpus for each property");
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("the corpus can be listed").path()).collect();
    paths.sort();
    let files = paths.iter().map(|path| fs::read(path).expect("the corpus can be read"));
    let seeds = seeds().into_iter().filter(|(target, ..)| *target == property).map(|(.., bytes)| bytes);
    files.chain(seeds).collect()
}

fn hold(name: &str) {
    let (_, property): (_, Property) =
        *PROPERTIES.iter().find(|(target, _)| *target == name).expect("a property of this name");
    let (_, mutants) = *MUTANTS.iter().find(|(target, _)| *target == name).expect("a number for each property");
    let mut random = Random::new(1);
    let inputs = inputs(name);
    assert!(!inputs.is_empty());
    let try_on = |bytes: &[u8]| {
        let _case = MutantCase { property: name, bytes };
        property(bytes);
    };
    try_on(&[]);
    inputs.iter().for_each(|bytes| try_on(bytes));
    let mut any = |inputs: &[Vec<u8>]| random.below(inputs.len() as u64) as usize;
    let pairs: Vec<_> = (0..mutants).map(|_| (any(&inputs), any(&inputs))).collect();
    for (base, other) in pairs {
        try_on(&mutant(&inputs[base], &inputs[other], &mut random));
    }
    println!("{name}: {} inputs, {mutants} mutants", inputs.len());
}

#[test]
fn texts() {
    ["manifest", "notation", "statistics"].into_iter().for_each(hold);
}

#[test]
fn journals() {
    hold("journal");
}

#[test]
fn files_of_scores() {
    ["database", "scores", "pages", "oracle"].into_iter().for_each(hold);
}

#[test]
fn run_directories() {
    hold("run");
}

#[test]
fn snapshots() {
    hold("snapshot");
}

/// Every property has a fuzz target, and the reverse.
#[test]
fn properties_are_fuzz_targets() {
    let targets = folder("targets", "");
    for (name, _) in PROPERTIES {
        let text = fs::read_to_string(targets.join(format!("{name}.rs"))).expect("a target for each property");
        assert!(text.contains(&format!("tests::hostile::{name}(bytes)")), "{text}");
    }
    assert_eq!(fs::read_dir(targets).expect("the targets can be listed").count(), PROPERTIES.len());
}

#[test]
#[ignore = "writes files"]
fn write_seeds() {
    for (property, name, bytes) in seeds() {
        let folder = folder("seeds", property);
        fs::create_dir_all(&folder).expect("the folder can be written");
        fs::write(folder.join(name), bytes).expect("the folder can be written");
    }
}
