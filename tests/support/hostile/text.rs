//! Texts: manifests, positions, names and statistics.

use check::Statistics;
use disk::Digest;
use game::notation::{MoveText, PositionText};
use game::{PositionSet, STONES_MAX};
use pipeline::manifest::{Manifest, Schema};
use pipeline::{ArtifactName, Budget, StageName};
use planner::{Settings, schema};
use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::sync::OnceLock;
use store::Codec;

/// Parses a manifest and, after NUL bytes, arguments of `--set`. Mistakes have a position in the text; a valid manifest
/// round-trips.
pub fn manifest(bytes: &[u8]) {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    let schema = SCHEMA.get_or_init(schema);
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split('\0');
    let text = parts.next().unwrap_or("");
    let overrides: Vec<_> = parts
        .filter_map(|argument| argument.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let manifest = match Manifest::parse(text, "hostile.toml", schema, &overrides) {
        Ok(manifest) => manifest,
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "a manifest that is refused has a mistake");
            for diagnostic in diagnostics {
                assert!(diagnostic.line >= 1 && diagnostic.column >= 1, "{diagnostic}");
                let source = match &diagnostic.origin {
                    pipeline::manifest::Origin::File(_) => text,
                    pipeline::manifest::Origin::Set(argument) => argument,
                    pipeline::manifest::Origin::Option(_) => unreachable!("only the command line has options"),
                };
                let span = diagnostic.span.clone();
                assert!(source.get(span.clone()).is_some(), "{span:?} is a place in {source:?}: {diagnostic}");
            }
            return;
        }
    };
    let settings = Settings::new(&manifest);
    assert!(settings.threads >= 1);
    let printed = manifest.to_toml();
    let again = Manifest::parse(&printed, "hostile.toml", schema, &[]).expect("what is printed reads");
    assert_eq!(again.digest(), manifest.digest(), "{printed}");
    assert_eq!(again.to_toml(), printed);
}

/// Parses positions, moves and names; those that parse round-trip.
pub fn notation(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(position) = reads_again::<PositionText>(&text) {
        let board = position.board();
        assert!(board.stones() <= STONES_MAX);
        let bare = PositionText::of_board(board).to_string();
        assert_eq!(bare.parse::<PositionText>().map(|text| text.board()), Ok(board));
    }
    reads_again::<MoveText>(&text);
    reads_again::<StageName>(&text);
    reads_again::<ArtifactName>(&text);
    reads_again::<Budget>(&text);
    reads_again::<Codec>(&text);
    reads_again::<PositionSet>(&text);
    reads_again::<Digest>(&text);
}

fn reads_again<T: FromStr<Err: Debug> + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let read: T = text.parse().ok()?;
    let printed = read.to_string();
    let again: T = printed.parse().expect("what is printed reads");
    assert_eq!(again, read, "{text:?} prints as {printed:?}");
    assert_eq!(again.to_string(), printed);
    Some(read)
}

/// Parses statistics; those that parse round-trip.
pub fn statistics(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(read) = Statistics::of_json(&text) else { return };
    assert!(read.stones() <= STONES_MAX);
    let printed = read.json();
    assert_eq!(Statistics::of_json(&printed).expect("what is printed reads"), read);
    let shares = read.shares();
    assert!([shares.won, shares.drawn, shares.lost].iter().all(|share| (0.0..=1.0).contains(share)), "{printed}");
    assert!(read.mean().abs() <= f64::from(read.stones()), "{printed}");
    let shown = std::slice::from_ref(&read);
    let _ = (check::csv(shown), check::table(shown, 80), check::svg(shown));
    let _ = shown.iter().map(|statistics| check::bars(statistics, 80).len()).sum::<usize>();
}

pub(super) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut seed = |property, name: &str, text: &str| seeds.push((property, name.to_owned(), text.as_bytes().to_vec()));
    let whole = [("build.stones", "0..46"), ("build.memory", "1.5 GiB"), ("build.snapshot", "0 s")];
    let whole = whole.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let whole = Manifest::parse("", "seed", &schema(), &whole).expect("the values are right").to_toml();
    // Without its comments, which say nothing to a mutator.
    let whole: Vec<&str> = whole.lines().filter(|line| !line.starts_with('#')).collect();
    seed("manifest", "whole", &whole.join("\n"));
    seed(
        "manifest",
        "overrides",
        "[build]\nstones = 3\0build.methods.\"1..2\"=two-bit\0dual.block=4 KiB\0store.keep=all",
    );
    seed("manifest", "mistakes", "[bild]\nstones = \"9..3\"\n[check]\nverify = 1\nx = { a = [1, \u{e9}\n[game");
    seed("manifest", "methods", "[build]\nstones = 9\nmethods = { \"0..3\" = \"counting\", \"8..9\" = \"sweep\" }\n");
    seed("notation", "twelve", "0, 1 2 3 4 5 6 7 8 9 2 1");
    seed("notation", "long", "1-2-3-4-5-6-0-0-0-7-0-0-12-8-N");
    seed("notation", "move", "c");
    seed("notation", "stage", "process:36:12");
    seed("notation", "artifact", "planes/36/12.plane");
    seed("notation", "size", "1_0.5 GiB");
    seed("notation", "codec", "packed");
    seed("notation", "digest", &Digest::of(b"").to_string());
    let counts = "{\"stones\":2,\"positions\":78,\"mean\":-0.384615,\"won\":0.320513,\"drawn\":0.166667,\
                  \"lost\":0.512821,\"captures\":{\"positions\":78,\"offered\":0,\"declined\":0},\"scores\":\
                  [{\"score\":-2,\"positions\":40},{\"score\":0,\"positions\":13},{\"score\":2,\"positions\":25}]}";
    seed("statistics", "two", counts);
    let none = "{\"stones\":0,\"positions\":0,\"mean\":0,\"won\":0,\"drawn\":0,\"lost\":0,\
                \"captures\":{\"positions\":0,\"offered\":0,\"declined\":0},\"scores\":[]}";
    seed("statistics", "none", none);
    seeds
}
