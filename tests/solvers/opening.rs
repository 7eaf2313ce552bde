//! The opening position: the last one of the database of all stones of a game. Games with fewer stones in each pit are
//! solved here as a whole: of 12 stones with one in each pit, of 24 with two.

use game::reference::{self, Pits, ReferenceMove};
use game::{Index, Opening, Orientation, PositionSet};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;
use tests::directory::{TestDirectory, ended_child, signal};

/// A directory with the manifest of a whole game.
fn game(pit_stones: u32, more: &str) -> TestDirectory {
    let place = TestDirectory::new(0);
    let stones = 12 * pit_stones;
    place.manifest(&format!(
        "[game]\npositions = \"reachable\"\nopening = {pit_stones}\n[build]\nstones = \"0..{}, {stones}\"\n\
         memory = \"256 MiB\"\nthreads = 2\n{more}\n[run]\ndir = \"run\"\n",
        stones - 2
    ));
    place
}

fn set(pit_stones: u8) -> PositionSet {
    PositionSet::Reachable { opening: Opening::new(pit_stones).unwrap() }
}

fn spaced(pits: &[u8]) -> String {
    pits.iter().map(u8::to_string).collect::<Vec<_>>().join(" ")
}

/// What `probe` says of a position, with the values of its moves.
fn probed(place: &TestDirectory, pits: &[u8]) -> Value {
    place.awari(&format!("probe --dir run {} --json", spaced(pits))).is(0).json()
}

fn score_of(place: &TestDirectory, pits: &[u8]) -> i64 {
    probed(place, pits)["score"].as_i64().unwrap()
}

/// Scores of a database, as they are exported.
fn exported(place: &TestDirectory, stones: u32) -> Vec<i8> {
    place.awari(&format!("export --dir run --format raw --stones {stones} --out out --force")).is(0);
    let bytes = fs::read(place.path(&format!("out/{stones}.raw"))).unwrap();
    bytes.into_iter().map(u8::cast_signed).collect()
}

/// Files below a run directory that depend on the manifest alone.
fn files(place: &TestDirectory, run: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = place.path(run);
    let all = stages::kinds::folders().into_iter().flat_map(|folder| place.files(&format!("{run}/{folder}")));
    all.map(|(path, bytes)| (path.strip_prefix(&root).unwrap().to_owned(), bytes)).collect()
}

#[test]
fn every_command_sees_the_opening() {
    let place = game(1, "method = \"sweep\"\n[store]\nkeep = \"all\"");
    place.awari("run m.toml").is(0);
    place.awari("plan m.toml --check").is(0).shows(&["nothing to do"]);
    place.awari("status --dir run").is(0).shows(&["\n     10  ", "\n     12  ", "1,339,703"]);
    place.awari("explain m.toml sweep:12").is(0);
    place.awari("report --dir run -o report.html").is(0);
    let absent = place.awari("explain m.toml sweep:11");
    assert_ne!(absent.code, Some(0));

    // By the rules of the reference, from the scores of the children.
    let opening = [1; 12];
    let mut expected = None;
    for played in reference::moves(opening) {
        if let ReferenceMove::Legal { captured, child } = played {
            expected = expected.max(Some(i64::from(captured) - score_of(&place, &child)));
        }
    }
    let answer = probed(&place, &opening);
    assert_eq!((answer["score"].as_i64(), answer["source"].as_str()), (expected, Some("database")), "{answer}");

    // It is the last position, and only once in the database.
    let scores = exported(&place, 12);
    assert_eq!(scores.len() as u64, set(1).positions(12));
    assert_eq!(scores.last().map(|&score| i64::from(score)), expected);
    let text: Value = serde_json::from_slice(&fs::read(place.path("out/12.json")).unwrap()).unwrap();
    let last = text["slabs"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((last["rows"].as_u64(), last["opening"][11].as_u64()), (Some(1), Some(1)));
    place.awari("export --dir run --format vu --stones 12 --out out").is(2).says(&["opening position", "scores.12"]);
    place.awari("export --dir run --format vu --stones 10 --out out").is(0);
    place.awari("export --dir run --format csv --stones 12 --out out --force").is(0);
    let csv = fs::read_to_string(place.path("out/12.csv")).unwrap();
    assert_eq!(csv.lines().last().unwrap(), format!("{},{}", spaced(&opening), expected.unwrap()));

    // The statistics of the stage and those derived from the files.
    let stats: Value = serde_json::from_slice(&fs::read(place.path("run/stats/12.json")).unwrap()).unwrap();
    let positions = Some(scores.len() as u64);
    assert_eq!((stats["positions"].as_u64(), stats["captures"]["positions"].as_u64()), (positions, positions));
    let counted: u64 =
        stats["scores"].as_array().unwrap().iter().map(|count| count["positions"].as_u64().unwrap()).sum();
    assert_eq!(Some(counted), positions);
    let recounted = place.awari("stage m.toml stats:12").is(0);
    assert!(recounted.out.contains("identical") || recounted.err.contains("identical"), "{recounted:?}");

    // Number 11 is not missing: no capture leads there.
    let statuses: Vec<(u32, &str)> = (0..=10).chain([12]).map(|stones| (stones, "sampled")).collect();
    let small = |&(stones, status): &(u32, &'static str)| (stones, if stones < 9 { "verified" } else { status });
    let statuses: Vec<(u32, &str)> = statuses.iter().map(small).collect();
    place.awari("verify --dir run --stones 0..12 --sample 1000").is(0).prints(&statuses);
    place.awari("play --dir run --side none --level perfect").is(0).shows(&["  1  1  1  1  1  1"]);

    // Archives.
    place.awari("archive --dir run --stones 0..12 --out kept").is(0);
    place.awari("restore --from kept --dir again --codec packed").is(0);
    assert!(place.files("run/databases").into_values().eq(place.files("again/databases").into_values()));
    let plan = place.awari("plan m.toml --dir again --set store.keep=databases --all").is(0).out;
    assert!(plan.contains("verify:12") && !plan.contains("sweep:"), "{plan}");

    // A game of other stones takes all other databases as they are.
    let files = files(&place, "run");
    place.awari("run m.toml --set game.opening=4 --set build.stones=0..10").is(0).says(&["nothing to do"]);
    place.awari("run m.toml --set build.stones=0..13").is(11).says(&["build.stones must end at 12"]);
    assert!(files == self::files(&place, "run"));

    damage_to_the_opening_is_found(&place);
}

/// The bytes of its block, and a score that does not follow from the children.
fn damage_to_the_opening_is_found(place: &TestDirectory) {
    let path = place.path("run/databases/12.awari");
    let right = fs::read(&path).unwrap();
    let footer = right.len() - 72;
    let word = |at: usize| u64::from_le_bytes(right[at..at + 8].try_into().unwrap()) as usize;
    let index = word(footer + 32);
    // The block before the index is that of the opening.
    assert_eq!(word(footer - 24), index - 1);
    let mut damaged = right.clone();
    damaged[index - 1] ^= 1;
    fs::write(&path, &damaged).unwrap();
    place.awari("verify --dir run --stones 12").is(16).prints(&[(12, "damaged")]);
    place.awari(&format!("probe --dir run {}", spaced(&[1; 12]))).is(16);
    place.awari("run m.toml").is(0);
    assert!(fs::read(&path).unwrap() == right, "a run restores the bytes");
}

#[test]
fn databases_of_two_games_are_refused() {
    let library = |files: &[(u32, u8)]| {
        let disk = disk::MemoryDisk::new();
        let opened = files.iter().map(|&(stones, pit_stones)| {
            let (set, kind) = (set(pit_stones), store::FileKind::Database);
            let path = PathBuf::from(format!("databases/{stones:02}.awari"));
            let identity = stages::files::identity("awari", set, kind, stones);
            let shape = stages::files::shape_of(set, kind, stones);
            let range = stages::files::range(kind, stones);
            let scores = vec![0; shape.positions() as usize];
            store::write(&disk, &path, &identity, &shape, range, store::Codec::Zstd, &scores).unwrap();
            let file = store::Scores::open(&disk, &path);
            (path, file)
        });
        oracle::Library::new(opened.collect::<Vec<_>>()).map(|library| library.set()).map_err(|error| error.to_string())
    };
    assert_eq!(library(&[(3, 4)]), Ok(PositionSet::REACHABLE));
    assert_eq!(library(&[(3, 4), (12, 1)]), Ok(set(1)));
    assert_eq!(library(&[(12, 4)]), Ok(PositionSet::REACHABLE));
    let error = library(&[(12, 1), (13, 4)]).unwrap_err();
    assert!(error.contains("databases/13.awari has more stones than the game of 12"), "{error}");
    assert!(error.contains("databases/12.awari holds"), "{error}");
}

#[test]
#[ignore = "slow tier: builds a game by every method"]
fn all_methods_solve_the_opening_alike() {
    let place = game(1, "[store]\nkeep = \"all\"\n[check]\nverify = \"none\"");
    let mut databases = Vec::new();
    for method in ["sweep", "counting", "two-bit", "one-bit", "one-bit-dual"] {
        place.awari(&format!("run m.toml --dir {method} --set build.method={method}")).is(0);
        databases.push(place.files(&format!("{method}/databases")).into_values().collect::<Vec<_>>());
        assert!(databases[0] == databases[databases.len() - 1], "{method}");
        let stats = |run: &str| place.files(&format!("{run}/stats")).into_values().collect::<Vec<_>>();
        assert!(stats("sweep") == stats(method), "{method}");
    }
    place.awari("verify --dir sweep --certify").is(0).says(&["all checks passed"]);
    place.awari("verify --dir sweep --against counting --stones 12").is(0).says(&["counting makes the same scores"]);
    for codec in ["raw", "zstd", "rans"] {
        place.awari(&format!("run m.toml --dir {codec} --set store.codec={codec} --set build.method=sweep")).is(0);
        let [digest, other] = ["sweep", codec].map(|run| {
            let path = place.path(&format!("{run}/databases/12.awari"));
            tests::stored_scores::accepted(store::Scores::open(&disk::RealDisk::default(), &path).unwrap()).digest()
        });
        assert_eq!(digest, other, "{codec}");
    }
}

#[test]
#[ignore = "slow tier: kills a build at many moments"]
fn a_killed_game_resumes() {
    for method in ["sweep", "counting", "two-bit"] {
        let place = game(1, &format!("method = \"{method}\"\nsnapshot = \"0 s\"\n[store]\nkeep = \"all\""));
        place.awari("run m.toml --dir whole").is(0);
        let last = if method == "two-bit" { "merge:12".to_owned() } else { format!("{method}:12") };
        for stage in ["capture:12", &last, "verify:12", "stats:12"] {
            let (child, mut events) = place.start("");
            let begins = |event: Value| event["event"] == "stage-started" && event["stage"] == *stage;
            assert!(events.any(begins), "{method}: {stage} did not run");
            signal(&child, "KILL");
            events.for_each(drop);
            assert_eq!(ended_child(child).code, None);
        }
        place.awari("run m.toml").is(0);
        assert!(files(&place, "run") == files(&place, "whole"), "{method}");
    }
}

#[test]
#[ignore = "slow tier: solves 12 stones by the rules of the reference"]
fn the_reference_solves_a_game_alike() {
    let mut solved = Vec::new();
    (0..=12).for_each(|stones| solved.push(solved_by_reference(stones, &solved)));
    let same = &solved[12];
    let place = game(1, "");
    place.awari("run m.toml").is(0);
    let index = Index::new(12, set(1));
    for (position, score) in exported(&place, 12).into_iter().enumerate() {
        let board = index.unrank(position as u64, Orientation::OpponentMajor);
        assert_eq!(score, same[&board.0], "{board:?}");
    }
    assert_eq!(score_of(&place, &[1; 12]), i64::from(same[&[1; 12]]));
}

/// As `reference::solve`, with moves looked up once: rounds in which a position takes the best value of its
/// moves in the previous round, until nothing changes.
fn solved_by_reference(stones: u8, smaller: &[HashMap<Pits, i8>]) -> HashMap<Pits, i8> {
    let boards = reference::boards(stones);
    let numbers: HashMap<Pits, u32> = boards.iter().copied().zip(0..).collect();
    let (mut least, mut quiet) = (Vec::new(), Vec::new());
    for &pits in &boards {
        let (mut best, mut children) = (None, Vec::new());
        for played in reference::moves(pits) {
            match played {
                ReferenceMove::Legal { captured: 0, child } => children.push(numbers[&child]),
                ReferenceMove::Legal { captured, child } => {
                    best = best.max(Some(captured as i8 - smaller[usize::from(stones - captured)][&child]));
                }
                ReferenceMove::Empty | ReferenceMove::Starves | ReferenceMove::Slam => {}
            }
        }
        least.push(best.or(children.is_empty().then_some(-(stones as i8))));
        quiet.push(children);
    }
    let mut scores = vec![0; boards.len()];
    loop {
        let best_value = |(least, children): (&Option<i8>, &Vec<u32>)| {
            let children = children.iter().map(|&child: &u32| -scores[child as usize]);
            children.chain(*least).max().unwrap()
        };
        let next: Vec<i8> = least.iter().zip(&quiet).map(best_value).collect();
        if next == scores {
            return boards.into_iter().zip(scores).collect();
        }
        scores = next;
    }
}

#[test]
#[ignore = "slow tier: builds a game of 24 stones"]
fn a_game_of_24_stones_is_solved() {
    let place = game(2, "method = \"sweep\"\nmemory = \"2 GiB\"");
    let text = fs::read_to_string(place.path("m.toml")).unwrap().replace("memory = \"256 MiB\"\n", "");
    place.manifest(&text);
    place.awari("run m.toml").is(0);
    let opening = [2; 12];
    let values = reference::moves(opening).into_iter().filter_map(|played| match played {
        ReferenceMove::Legal { captured, child } => Some(i64::from(captured) - score_of(&place, &child)),
        _ => None,
    });
    let answer = probed(&place, &opening);
    assert_eq!((answer["score"].as_i64(), answer["source"].as_str()), (values.max(), Some("database")), "{answer}");
    place.awari("verify --dir run --stones 24 --sample 100000").is(0).prints(&[(24, "sampled")]);
}
