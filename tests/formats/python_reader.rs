//! The Python reader in `src/interface/python` reads the scores that were written.
//!
//! Needs NumPy, and for all of it the packages zstandard and blake3. The interpreter is `python3`, or that of
//! the variable `AWARI_PYTHON`.

use std::fs;
use std::process::Command;
use tests::directory::TestDirectory;
use tests::needs::{Need, python};
use tests::root;

#[test]
fn every_score_of_a_codec() {
    every_score_of(&[("rans", "reachable")]);
}

#[test]
#[ignore = "slow tier: exports every database of five builds"]
fn every_score_of_every_codec_and_position_set() {
    every_score_of(&[
        ("raw", "all"),
        ("packed", "reachable"),
        ("packed", "all"),
        ("zstd", "reachable"),
        ("rans", "all"),
    ]);
}

#[test]
fn the_opening_is_the_last_position() {
    if !Need::Numpy.is_met() {
        return;
    }
    let place = TestDirectory::new(0);
    place.manifest(
        "[game]\npositions = \"reachable\"\nopening = 1\n[build]\nstones = \"0..10, 12\"\n[check]\nverify = \"none\"\n\
         [run]\ndir = \"run\"\n",
    );
    place.awari("run m.toml").is(0);
    for stones in 0..=10 {
        fs::remove_file(place.path(&format!("run/databases/{stones:02}.awari"))).unwrap();
    }
    compare(&place, "reachable, packed", 1);
}

#[test]
fn both_bounds_of_pairs() {
    if !Need::Numpy.is_met() {
        return;
    }
    for (positions, codec) in [("reachable", "packed"), ("all", "raw")] {
        let place = TestDirectory::new(5);
        let settings = format!("--set game.positions={positions} --set store.codec={codec}");
        place.awari(&format!("run m.toml --set game.rules=oware {settings}")).is(0);
        compare(&place, &format!("oware, {positions}, {codec}"), 6);
    }
}

fn every_score_of(builds: &[(&str, &str)]) {
    if !Need::Numpy.is_met() {
        return;
    }
    let has_zstandard = Need::Zstandard.is_met();
    // Without blake3 the script compares all but checksums.
    Need::Blake3.is_met();
    for (codec, positions) in builds.iter().filter(|(codec, _)| has_zstandard || *codec != "zstd") {
        // Eight stones are the fewest with a block of several frames or strips.
        let stones = if ["zstd", "rans"].contains(codec) { 8 } else { 6 };
        let place = TestDirectory::new(stones);
        place.awari(&format!("run m.toml --set game.positions={positions} --set store.codec={codec}")).is(0);
        compare(&place, &format!("{positions}, {codec}"), stones + 1);
    }
}

/// Exports all databases of a directory, and reads them with the script.
fn compare(place: &TestDirectory, what: &str, databases: u32) {
    for format in ["raw", "csv"] {
        place.awari(&format!("export --dir run --format {format} --out out --force")).is(0);
    }
    let output = Command::new(python())
        .arg("-B")
        .arg(root().join("tests/formats/awari_db.py"))
        .args([root().join("src/interface/python"), place.path("run"), place.path("out")])
        .output()
        .unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {out}{error}");
    assert!(out.starts_with(&format!("compared: {databases} databases")), "{out}");
}
