//! By rules without scores, `awari-db` and every export give the bounds that a probe gives, and no bound as a score.

use awari_db::{Bounds, Databases, Error, Position};
use disk::{Disk, RealDisk};
use game::{Board, Index, Orientation, Rules};
use oracle::{Library, Oracle};
use serde_json::Value;
use std::fs;
use store::Scores;
use tests::directory::TestDirectory;
use tests::stored_scores::StoredScores;

const POSITION_SETS: [&str; 2] = ["all", "reachable"];

/// The formats that hold bounds.
const FORMATS: &[&str] = if cfg!(feature = "parquet") { &["raw", "csv", "parquet"] } else { &["raw", "csv"] };

/// The rules by which a position has two bounds.
fn rules_with_bounds() -> Vec<Rules> {
    let rules: Vec<Rules> = Rules::KNOWN.into_iter().filter(|rules| !rules.has_scores()).collect();
    assert!(!rules.is_empty());
    rules
}

#[test]
fn every_reader_and_export_gives_the_bounds_of_a_probe() {
    for rules in rules_with_bounds() {
        for (set, codec) in POSITION_SETS.into_iter().zip(["raw", "packed"]) {
            let settings = format!("--set game.positions={set} --set store.codec={codec}");
            check_build(&TestDirectory::new(6), &rules, &settings, FORMATS, u64::MAX);
        }
    }
}

#[test]
#[ignore = "slow tier: exports databases of up to 9 stones"]
fn every_reader_and_export_gives_the_bounds_of_a_probe_with_more_stones() {
    let asked = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u32>().unwrap());
    let stones = asked("AWARI_TEST_STONES").unwrap_or(9);
    let positions_max = asked("AWARI_TEST_POSITIONS").unwrap_or(2_000).into();
    for rules in rules_with_bounds() {
        for (set, codec) in POSITION_SETS.into_iter().zip(["zstd", "rans"]) {
            let settings = format!("--set game.positions={set} --set store.codec={codec}");
            check_build(&TestDirectory::new(stones), &rules, &settings, FORMATS, positions_max);
        }
        // The opening position is a slab of its own in both sections.
        let game = "--set game.positions=reachable --set game.opening=1 --set 'build.stones=0..10, 12'";
        let settings = format!("{game} --set check.verify=none");
        check_build(&TestDirectory::new(0), &rules, &settings, &["raw"], positions_max);
    }
}

/// Builds databases, and compares what each reader and export gives with what a probe gives: for each number
/// of stones, that of all positions, or of a sample and of the last.
fn check_build(place: &TestDirectory, rules: &Rules, settings: &str, formats: &[&str], positions_max: u64) {
    place.awari(&format!("run m.toml --set game.rules={} {settings}", rules.name)).is(0);
    for format in formats {
        place.awari(&format!("export --dir run --format {format} --out out --force")).is(0);
    }
    let disk = RealDisk::default();
    let paths = disk.list(&place.path("run/databases")).unwrap();
    let files = paths.into_iter().map(|path| (path.clone(), Scores::open(&disk, &path)));
    let oracle = Oracle::new(Library::new(files).unwrap(), 64 << 20);
    let databases = Databases::open(place.path("run")).unwrap();
    assert_eq!((databases.rules(), databases.has_scores()), (rules.name, false));
    let mut open = 0;
    for stones in databases.stones() {
        let index = Index::new(stones, oracle.set());
        let database = databases.database(stones).unwrap();
        let positions = index.positions();
        assert_eq!(database.positions(), positions);
        let (mut low, mut high) = (vec![0; positions as usize], vec![0; positions as usize]);
        database.read_bounds(0..positions, &mut low, &mut high).unwrap();
        let mut scores = low.clone();
        assert!(matches!(database.read(0..positions, &mut scores), Err(Error::NoScores(name)) if name == rules.name));
        assert!(matches!(database.mapped(), Err(Error::NoScores(_))));
        check_raw(place, stones, [&low, &high]);
        if formats.contains(&"csv") {
            check_csv(place, &index, &low, &high);
        }
        #[cfg(feature = "parquet")]
        if formats.contains(&"parquet") {
            check_parquet(place, &index, &low, &high);
        }
        let step = (positions / positions_max).max(1);
        for number in (0..positions).step_by(step as usize).chain([positions - 1]) {
            let board = index.unrank(number, Orientation::OpponentMajor);
            let at = number as usize;
            check_position(&oracle, &databases, &board, (low[at], high[at]));
            open += u64::from(low[at] < high[at]);
        }
        let middle = (positions / 2) as usize;
        let (mut some_low, mut some_high) = (vec![0; middle], vec![0; middle]);
        database.read_bounds(0..middle as u64, &mut some_low, &mut some_high).unwrap();
        assert!(some_low == low[..middle] && some_high == high[..middle]);
    }
    assert!(open > 100, "{open} positions have two bounds");
}

/// Compares the bounds of a position and of its moves with those of a probe.
fn check_position(oracle: &Oracle, databases: &Databases, board: &Board, (low, high): (i8, i8)) {
    let answer = oracle.answer(board).unwrap();
    let position = Position::new(board.0).unwrap();
    assert_eq!((answer.score.low(), answer.score.high()), (low, high), "{position}");
    assert_eq!(databases.bounds(&position).unwrap(), Bounds::new(low, high), "{position}");
    match databases.score(&position) {
        Ok(score) => assert_eq!((score, score), (low, high), "{position}"),
        Err(Error::Bounds { low: found_low, high: found_high }) => {
            assert!((found_low, found_high) == (low, high) && low < high, "{position}");
        }
        Err(error) => panic!("{position}: {error}"),
    }
    let moves = databases.moves(&position).unwrap();
    let values: Vec<(u8, Bounds)> = moves.iter().map(|played| (played.captured, played.value)).collect();
    let expected: Vec<(u8, Bounds)> = answer.moves.iter().map(|played| (played.captured, played.value)).collect();
    assert_eq!(values, expected, "{position}");
    let best: Vec<Position> = databases.best_moves(&position).unwrap().iter().map(|played| played.child).collect();
    let expected =
        answer.moves.iter().filter(|played| played.is_best).map(|played| Position::new(played.child.0).unwrap());
    assert_eq!(best, expected.collect::<Vec<_>>(), "{position}");
}

fn check_raw(place: &TestDirectory, stones: u32, bounds: [&[i8]; 2]) {
    let text = fs::read(place.path(&format!("out/{stones:02}.json"))).unwrap();
    let text: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!((&text["layout"], &text["scores"]), (&"awari-raw-bounds".into(), &Value::Null));
    assert!(!place.path(&format!("out/{stones:02}.raw")).exists());
    let mut hasher = blake3::Hasher::new();
    for (key, expected) in ["low", "high"].into_iter().zip(bounds) {
        let bytes = fs::read(place.path(&format!("out/{}", text[key].as_str().unwrap()))).unwrap();
        assert!(bytes.iter().map(|&byte| byte as i8).eq(expected.iter().copied()), "{stones}: {key}");
        hasher.update(&bytes);
    }
    assert_eq!(text["blake3"], hasher.finalize().to_hex().as_str());
}

fn check_csv(place: &TestDirectory, index: &Index, low: &[i8], high: &[i8]) {
    let text = fs::read_to_string(place.path(&format!("out/{:02}.csv", index.stones()))).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("position,low,high,score"));
    for (number, (&low, &high)) in (0..).zip(low.iter().zip(high)) {
        let position = Position::new(index.unrank(number, Orientation::OpponentMajor).0).unwrap();
        let score = if low == high { low.to_string() } else { String::new() };
        assert_eq!(lines.next(), Some(&*format!("{position},{low},{high},{score}")));
    }
    assert_eq!(lines.next(), None);
}

#[cfg(feature = "parquet")]
fn check_parquet(place: &TestDirectory, index: &Index, low: &[i8], high: &[i8]) {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let path = place.path(&format!("out/{:02}.parquet", index.stones()));
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let entries = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let rules = entries.iter().find(|entry| entry.key == "awari.rules").and_then(|entry| entry.value.as_deref());
    assert!(rules.and_then(Rules::by_name).is_some_and(|rules| !rules.has_scores()), "{entries:?}");
    let mut rows = 0;
    for (row, (&low, &high)) in reader.get_row_iter(None).unwrap().zip(low.iter().zip(high)) {
        let columns: Vec<(String, Field)> = row.unwrap().into_columns();
        let board = index.unrank(rows, Orientation::OpponentMajor);
        assert!(columns.iter().zip(board.0).all(|((_, field), stones)| *field == Field::UByte(stones)));
        let score = if low == high { Field::Byte(low) } else { Field::Null };
        let expected = [("low", Field::Byte(low)), ("high", Field::Byte(high)), ("score", score)];
        assert!(
            columns[12..]
                .iter()
                .map(|(name, field)| (&**name, field))
                .eq(expected.iter().map(|(name, field)| (*name, field)))
        );
        rows += 1;
    }
    assert_eq!(rows, index.positions());
    assert_eq!(reader.metadata().file_metadata().num_rows() as u64, rows);
}

/// A file that has room for one value of each position is neither written nor compared.
#[test]
fn formats_that_hold_scores_alone_are_refused() {
    for rules in rules_with_bounds() {
        let place = TestDirectory::new(3);
        place.awari("run m.toml --dir with-scores").is(0);
        place.awari("export --dir with-scores --format vu --out scores").is(0);
        place.awari(&format!("run m.toml --set game.rules={}", rules.name)).is(0);
        let reason = format!("by the rules {} a position has two bounds", rules.name);
        place.awari("export --dir run --format vu --out out").is(2).says(&[&reason, "raw, csv or parquet"]);
        place.awari("verify --dir run --against-files scores").is(2).says(&[&reason]);
        assert!(place.files("out").is_empty());
        place.awari("stats --dir run").is(0).shows(&["mean low", "the figures above are those of the lower bounds"]);
        place.awari("stats --dir run --format csv").is(0).shows(&["stones,low,positions\n"]);
    }
}

/// A position without a database has no bounds of the rules, only what a search proves: that is never given as final.
#[test]
fn without_a_database_there_is_no_score_and_no_value() {
    for rules in rules_with_bounds() {
        let place = TestDirectory::new(4);
        place.awari(&format!("run m.toml --set game.rules={} --set game.positions=reachable", rules.name)).is(0);
        let open: Position = "4 4 4 4 4 4 4 4 4 4 4 4".parse().unwrap();
        let databases = Databases::open(place.path("run")).unwrap();
        assert!(matches!(databases.score(&open), Err(Error::Missing(48))));
        assert!(matches!(databases.moves(&open), Err(Error::Missing(48))));
        assert!(matches!(databases.best_moves(&open), Err(Error::Missing(48))));
        let bounds = databases.bounds(&open).unwrap();
        assert!(bounds.low() < bounds.high());
    }
}

/// Databases of several rules are not damaged.
#[test]
fn mixed_rules_are_an_error_of_their_own() {
    for rules in rules_with_bounds() {
        let place = TestDirectory::built(2);
        place.awari(&format!("run m.toml --dir other --set game.rules={}", rules.name)).is(0);
        fs::copy(place.path("other/databases/02.awari"), place.path("run/databases/02.awari")).unwrap();
        let error = Databases::open(place.path("run")).unwrap_err();
        assert!(matches!(error, Error::Mixed(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(&format!("has rules {}", rules.name)) && text.contains("has rules awari"), "{text}");
        assert!(!text.contains("damage"), "{text}");
    }
}

/// Changes the bounds of three stones under right checksums, and returns the number of positions.
fn change_bounds(place: &TestDirectory, change: impl FnOnce(&mut [i8], &mut [i8])) -> usize {
    let (disk, path) = (RealDisk::default(), place.path("run/databases/03.awari"));
    let mut stored = StoredScores::read(&disk, &path).unwrap();
    let positions = stored.scores.len() / 2;
    let (low, high) = stored.scores.split_at_mut(positions);
    change(low, high);
    fs::remove_file(&path).unwrap();
    stored.write(&disk, &path);
    positions
}

/// Lower bounds above the upper ones, under right checksums.
#[test]
fn crossed_bounds_are_damage() {
    for rules in rules_with_bounds() {
        let place = TestDirectory::new(3);
        place.awari(&format!("run m.toml --set game.rules={}", rules.name)).is(0);
        let positions = change_bounds(&place, |low, high| (low[7], high[7]) = (3, 2));
        let databases = Databases::open(place.path("run")).unwrap();
        let (mut low, mut high) = (vec![0; positions], vec![0; positions]);
        let read = databases.database(3).unwrap().read_bounds(0..positions as u64, &mut low, &mut high);
        let error = read.unwrap_err();
        assert!(matches!(error, Error::Damaged(_)), "{error:?}");
        assert!(error.to_string().contains("the bounds of position 7: expected a lower bound of at most 2"), "{error}");
        place.awari("export --dir run --format csv --out out --stones 3").is(16).says(&["the bounds of position 7"]);
        assert!(place.files("out").is_empty());
    }
}

/// A search goes on without a database whose bounds are crossed, and says so.
#[test]
fn a_search_does_without_crossed_bounds() {
    for rules in rules_with_bounds() {
        let place = TestDirectory::new(3);
        place.awari(&format!("run m.toml --set game.rules={}", rules.name)).is(0);
        change_bounds(&place, |low, high| {
            low.fill(3);
            high.fill(-3);
        });
        for position in ["0 1 0 0 1 1  0 0 1 1 0 0", "1 0 0 0 0 1  1 0 1 0 1 0"] {
            let probe = format!("probe --dir run --nodes 2000 {position}");
            place.awari(&probe).is(16).says(&["the answers do without it"]);
        }
    }
}
