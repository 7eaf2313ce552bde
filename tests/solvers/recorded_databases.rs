//! The recorded counts and content digests of large databases.
//!
//! `data/all-digests.csv` is of all positions, as built by `manifests/frontier.toml`, and
//! `data/all-counts.csv` says how many of them have each score where no counts are published.
//! `data/reachable-*.csv` are of reachable positions.

use check::{Histogram, Published};
use disk::RealDisk;
use game::{PositionSet, Rules};
use std::collections::BTreeMap;
use store::Scores;
use tests::directory::TestDirectory;
use tests::stored_scores::accepted;

const REACHABLE_COUNTS: &str = include_str!("../data/reachable-counts.csv");
const REACHABLE_DIGESTS: &str = include_str!("../data/reachable-digests.csv");
const ALL_COUNTS: &str = include_str!("../data/all-counts.csv");
const ALL_DIGESTS: &str = include_str!("../data/all-digests.csv");

/// A database that a test builds in a moment.
const STONES: u32 = 12;

fn stones_of(line: &str) -> u32 {
    line.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn built_databases_have_the_recorded_digests() {
    for (positions, digests) in [("all", ALL_DIGESTS), ("reachable", REACHABLE_DIGESTS)] {
        let place = TestDirectory::new(STONES);
        place.awari(&format!("run m.toml --set game.positions={positions} --set check.verify=sample")).is(0);
        for line in digests.lines().skip(1).take_while(|line| stones_of(line) <= STONES) {
            let path = place.path(&format!("run/databases/{:02}.awari", stones_of(line)));
            let file = Scores::open(&RealDisk::default(), &path).unwrap();
            assert_eq!(line, format!("{},{}", stones_of(line), accepted(file).digest()));
        }
        if positions == "reachable" {
            let counts = place.awari("stats --dir run --format csv").is(0).out;
            let ours = REACHABLE_COUNTS.lines().skip(1).take_while(|line| stones_of(line) <= STONES);
            assert!(counts.lines().skip(1).eq(ours), "{counts}");
        }
    }
}

#[test]
fn counts_add_up_to_every_position() {
    let is_published =
        |stones| Published::compare(&Rules::AWARI, stones, PositionSet::All, &Histogram::EMPTY) != Published::Absent;
    let unpublished = (0..).find(|&stones| !is_published(stones)).unwrap();
    let tables = [
        (REACHABLE_COUNTS, REACHABLE_DIGESTS, PositionSet::REACHABLE, 0),
        (ALL_COUNTS, ALL_DIGESTS, PositionSet::All, unpublished),
    ];
    for (counts, digests, set, first) in tables {
        let mut totals: BTreeMap<u32, u64> = BTreeMap::new();
        for line in counts.lines().skip(1) {
            let fields: Vec<i64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            let [stones, score, positions] = fields[..] else { panic!("{line}") };
            assert!(score.abs() <= stones && positions > 0, "{line}");
            *totals.entry(stones as u32).or_default() += positions as u64;
        }
        let recorded: Vec<u32> = digests.lines().skip(1).map(stones_of).collect();
        assert!(recorded.iter().copied().eq(0..recorded.len() as u32) && recorded.len() > STONES as usize);
        assert!(totals.keys().copied().eq(first..recorded.len() as u32));
        for (stones, total) in totals {
            assert_eq!(total, set.positions(stones), "{stones} stones, {set}");
        }
    }
}
