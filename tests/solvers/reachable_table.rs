//! The published table of all reachable positions, as built by `manifests/frontier.toml`. `data/reachable-counts.csv` says how
//! many positions score what, `data/reachable-digests.csv` gives the content digest of each database.

use disk::RealDisk;
use game::PositionSet;
use std::collections::BTreeMap;
use store::Scores;
use tests::directory::TestDirectory;
use tests::stored_scores::accepted;

const COUNTS: &str = include_str!("../data/reachable-counts.csv");
const DIGESTS: &str = include_str!("../data/reachable-digests.csv");

/// A database that a test builds in a moment.
const STONES: u32 = 12;

fn stones_of(line: &str) -> u32 {
    line.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn built_databases_match_the_table() {
    let place = TestDirectory::new(STONES);
    place.awari("run m.toml --set game.positions=reachable --set check.verify=sample").is(0);
    let counts = place.awari("stats --dir run --format csv").is(0).out;
    let ours = COUNTS.lines().skip(1).take_while(|line| stones_of(line) <= STONES);
    assert!(counts.lines().skip(1).eq(ours), "{counts}");
    for line in DIGESTS.lines().skip(1).take_while(|line| stones_of(line) <= STONES) {
        let path = place.path(&format!("run/databases/{:02}.awari", stones_of(line)));
        let file = Scores::open(&RealDisk::default(), &path).unwrap();
        assert_eq!(line, format!("{},{}", stones_of(line), accepted(file).digest()));
    }
}

#[test]
fn the_table_counts_every_position() {
    let mut totals: BTreeMap<u32, u64> = BTreeMap::new();
    for line in COUNTS.lines().skip(1) {
        let fields: Vec<i64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [stones, score, positions] = fields[..] else { panic!("{line}") };
        assert!(score.abs() <= stones && positions > 0, "{line}");
        *totals.entry(stones as u32).or_default() += positions as u64;
    }
    let all = 0..totals.len() as u32;
    assert!(totals.keys().copied().eq(all.clone()) && all.len() > STONES as usize);
    assert!(all.clone().eq(DIGESTS.lines().skip(1).map(stones_of)));
    for (stones, total) in totals {
        assert_eq!(total, PositionSet::REACHABLE.positions(stones), "{stones} stones");
    }
}
