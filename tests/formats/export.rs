//! Exports in foreign layouts, and foreign files compared with databases.

use serde_json::Value;
use std::fs;
use tests::directory::TestDirectory;

/// What `probe` says of a position written as twelve numbers.
fn probed(place: &TestDirectory, position: &str) -> i64 {
    place.awari(&format!("probe --dir run {position} --json")).is(0).json()["score"].as_i64().unwrap()
}

#[test]
fn raw_bytes_are_those_of_the_digest() {
    let place = TestDirectory::built(6);
    let out = place.awari("export --dir run --format raw --out out").is(0).out;
    assert_eq!(out.lines().count(), 14);
    assert!(out.lines().any(|line| line.ends_with("06.raw written 12376")), "{out}");
    let text: Value = serde_json::from_slice(&fs::read(place.path("out/06.json")).unwrap()).unwrap();
    let digest = blake3::hash(&fs::read(place.path("out/06.raw")).unwrap()).to_hex();
    assert_eq!((text["blake3"].as_str(), text["count"].as_u64()), (Some(digest.as_str()), Some(12_376)));
    let positions: u64 = text["slabs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|slab| slab["rows"].as_u64().unwrap() * slab["columns"].as_u64().unwrap())
        .sum();
    assert_eq!(positions, 12_376);
    let status = place.awari("export --dir run --format raw --out out --stones 6").is(0).out;
    assert!(status.lines().all(|line| line.contains(" identical ")), "{status}");
}

#[test]
fn csv_has_the_scores_that_a_probe_gives() {
    let place = TestDirectory::built(4);
    place.awari("export --dir run --format csv --stones 2..4 --out out").is(0);
    assert!(!place.path("out/01.csv").exists());
    let text = fs::read_to_string(place.path("out/04.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("position,score"));
    assert_eq!(lines.clone().count(), 1_365);
    for line in lines.step_by(97) {
        let (position, score) = line.split_once(',').unwrap();
        assert_eq!(probed(&place, position), score.parse::<i64>().unwrap(), "{line}");
    }
}

#[test]
fn exports_do_not_depend_on_threads_or_memory() {
    let place = TestDirectory::built(9);
    let formats: &[&str] =
        if cfg!(feature = "parquet") { &["raw", "csv", "vu", "parquet"] } else { &["raw", "csv", "vu"] };
    for format in formats {
        let export = format!("export --dir run --format {format} --out out --stones 8..9");
        let made = place.awari(&format!("{export} --threads 1")).is(0).out;
        let again = place.awari(&format!("{export} --threads 3 --memory '10 KiB'")).is(0).out;
        assert_eq!(again, made.replace(" written ", " identical "));
    }
    if cfg!(feature = "parquet") {
        let table = fs::read(place.path("out/09.parquet")).unwrap();
        assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1") && table.len() < 167_960);
    } else {
        place.awari("export --dir run --format parquet --out out").is(2).says(&["built without Parquet"]);
    }
}

#[cfg(feature = "parquet")]
#[test]
fn every_row_of_parquet_is_a_position_and_its_score() {
    use game::{Board, Index, Orientation, PositionSet};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let stones = |field: &Field| match field {
        Field::UByte(stones) => *stones,
        other => panic!("{other:?} is not an unsigned byte"),
    };
    for (set, positions) in [("all", PositionSet::All), ("reachable", PositionSet::REACHABLE)] {
        let place = TestDirectory::new(10);
        place.awari(&format!("run m.toml --set game.positions={set}")).is(0);
        for format in ["raw", "parquet"] {
            place.awari(&format!("export --dir run --format {format} --out out --stones 10")).is(0);
        }
        let scores = fs::read(place.path("out/10.raw")).unwrap();
        let reader = SerializedFileReader::new(fs::File::open(place.path("out/10.parquet")).unwrap()).unwrap();
        // Of at most 2^18 rows each.
        assert_eq!(reader.num_row_groups(), 2);
        let entries = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let digest = blake3::hash(&scores).to_hex().to_string();
        assert!(entries.iter().any(|entry| entry.value.as_deref() == Some(&digest)), "{entries:?}");
        let index = Index::new(10, positions);
        let mut rows = 0;
        for (position, row) in (0..).zip(reader.get_row_iter(None).unwrap()) {
            let fields: Vec<Field> = row.unwrap().into_columns().into_iter().map(|(_, field)| field).collect();
            let board = Board(std::array::from_fn(|pit| stones(&fields[pit])));
            assert_eq!(index.rank(&board, Orientation::OpponentMajor), Some(position));
            assert_eq!(fields[12], Field::Byte(scores[position as usize] as i8));
            rows += 1;
        }
        assert_eq!((rows, rows as usize), (index.positions(), scores.len()));
    }
}

#[test]
fn published_files_have_reachable_positions_in_lexicographic_order() {
    let place = TestDirectory::built(5);
    place.awari("export --dir run --format vu --out out").is(0);
    // Two stones, written down by hand from the description of the order: f weighs most, A least.
    let pits = "ABCDEFabcdef";
    let mut expected = Vec::new();
    for last in 0..12 {
        for first in 0..=last {
            expected.push((last, first));
        }
    }
    // With two stones the order is by the greater pit, then the lesser; both stones in one pit come last of it.
    let bytes = fs::read(place.path("out/scores.2")).unwrap();
    assert_eq!(bytes.len(), 78);
    for ((last, first), &byte) in expected.into_iter().zip(&bytes).step_by(5) {
        let mut stones = [0; 12];
        stones[last] += 1;
        stones[first] += 1;
        let position = stones.map(|stones| stones.to_string()).join(" ");
        assert_eq!(probed(&place, &position), i64::from(byte as i8), "{}{}", &pits[last..=last], &pits[first..=first]);
    }
}

#[test]
fn both_position_sets_export_the_same_published_files() {
    let all = TestDirectory::built(7);
    let reachable = TestDirectory::new(7);
    reachable.awari("run m.toml --set game.positions=reachable --set store.codec=zstd").is(0);
    for place in [&all, &reachable] {
        place.awari("export --dir run --format vu --out out --memory '4 KiB'").is(0);
    }
    let files = |place: &TestDirectory| place.files("out").into_values().collect::<Vec<_>>();
    assert!(files(&all) == files(&reachable));
    assert_eq!(fs::metadata(all.path("out/scores.6")).unwrap().len(), 12_375);
    let other = all.path("out");
    let ended = reachable.awari(&format!("verify --dir run --against-files {}", other.display())).is(0);
    let ended = ended.says(&["scores.7 has the same 31,812 scores", "all checks passed"]);
    assert!(ended.out.ends_with("7,verified\n"), "{}", ended.out);
}

#[test]
fn differing_scores_are_named_without_blame() {
    let place = TestDirectory::built(6);
    place.awari("export --dir run --format vu --out out").is(0);
    let path = place.path("out/scores.6");
    let right = fs::read(&path).unwrap();
    let verify = "verify --dir run --against-files out";
    let mut bytes = right.clone();
    // The last position has all stones in f; its mover has none and loses them.
    assert_eq!(bytes[12_374] as i8, -6);
    bytes[12_374] = 6;
    bytes[0] = 100;
    fs::write(&path, &bytes).unwrap();
    let ended = place.awari(verify).is(16).says(&[
        "has other scores of 2 of 12,375 positions",
        "impossible with 6 stones: 1",
        "position 6 0 0 0 0 0 0 0 0 0 0 0: 100 in the file",
        "position 0 0 0 0 0 0 0 0 0 0 0 6: 6 in the file, -6 in the database",
        "stones 6: the files have other scores",
    ]);
    assert!(ended.out.ends_with("5,verified\n6,differs\n"), "{}", ended.out);
    place.awari("run m.toml").is(0).says(&["nothing to do"]);

    fs::write(&path, &right[..12_000]).unwrap();
    place.awari(verify).is(16).says(&["has 12000 bytes, expected 12375"]);
    fs::remove_file(&path).unwrap();
    place.awari(verify).is(3).says(&["scores.6 does not exist: expected a file of 12375 bytes"]);
    place.awari(&format!("{verify} --stones 0..5")).is(0);
}

#[test]
fn existing_exports_are_replaced_only_by_force() {
    let place = TestDirectory::built(3);
    let export = "export --dir run --format csv --out out --stones 3";
    place.awari(export).is(0);
    let right = fs::read(place.path("out/03.csv")).unwrap();
    place.flip("out/03.csv", 20);
    place.awari(export).is(12).says(&["differs from the new file from byte 20 on", "--force"]);
    assert!(fs::read(place.path("out/03.csv")).unwrap() != right);
    place.awari(&format!("{export} --force")).is(0);
    assert!(fs::read(place.path("out/03.csv")).unwrap() == right);
    // What is on its way has another name, and does not stay.
    assert_eq!(place.files("out").len(), 1);
    place.awari("export --dir run --format csv --out out --stones 9").is(3);
    place.awari("export --dir run --format xml --out out").is(2);
    if cfg!(feature = "parquet") {
        fs::write(place.path("out/02.parquet"), b"PAR0").unwrap();
        let export = "export --dir run --format parquet --out out --stones 2";
        place.awari(export).is(12).says(&["differs from the new file from byte 3 on"]);
    }
    // A damaged database makes no file.
    let middle = fs::metadata(place.path("run/databases/03.awari")).unwrap().len() as usize / 2;
    place.flip("run/databases/03.awari", middle);
    place.awari("export --dir run --format vu --out vu --stones 3").is(16);
    assert!(!place.path("vu/scores.3").exists());
}
