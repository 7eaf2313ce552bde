//! Golden plans and databases: a change of structure changes neither.
//!
//! A change that is meant to alter predictions writes the tables again:
//! `AWARI_GOLDEN=write cargo test -p tests --test pipeline golden -- --include-ignored`.

use disk::RealDisk;
use planner::Method;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use store::Scores;
use tests::directory::TestDirectory;
use tests::root;
use tests::stored_scores::accepted;

/// Compares a table with the recorded one, or records it.
#[track_caller]
fn check(name: &str, found: &str) {
    let path = root().join("tests/data").join(name);
    if std::env::var_os("AWARI_GOLDEN").is_some_and(|value| value == "write") {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    let lines = expected.lines().zip(found.lines()).enumerate();
    let differing: Vec<String> = lines
        .filter(|(_, (expected, found))| expected != found)
        .map(|(line, (expected, found))| format!("{name}:{}:\n  expected {expected}\n  found    {found}\n", line + 1))
        .collect();
    assert!(
        differing.is_empty(),
        "{} lines differ\n{}",
        differing.len(),
        differing[..differing.len().min(20)].concat()
    );
    assert_eq!(found.lines().count(), expected.lines().count(), "{name}: lines");
}

/// Rounds floating-point numbers to seven significant digits: the last ones depend on the C library.
fn rounded(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => *value = format!("{:.6e}", number.as_f64().unwrap()).into(),
        Value::Array(values) => values.iter_mut().for_each(rounded),
        Value::Object(fields) => fields.values_mut().for_each(rounded),
        _ => {}
    }
}

fn plan(place: &TestDirectory, options: &str) -> Value {
    let mut plan = place.awari(&format!("plan --json {options}")).is(0).json();
    rounded(&mut plan);
    plan
}

fn hardware(machine: &str) -> String {
    match machine {
        "reference" => machine.to_owned(),
        _ => root().join("manifests/hardware").join(machine).to_string_lossy().into_owned(),
    }
}

#[test]
fn manifests_have_the_recorded_plans() {
    let place = TestDirectory::new(0);
    let mut found = "manifest,method,stages,blake3\n".to_owned();
    let mut manifests: Vec<PathBuf> = fs::read_dir(root().join("manifests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    manifests.sort();
    let machine = hardware("server.toml");
    for manifest in &manifests {
        for method in ["auto"].into_iter().chain(Method::ALL.map(Method::word)) {
            let path = manifest.display();
            let plan = plan(&place, &format!("{path} --hardware {machine} --set build.method={method}"));
            let stages = plan["steps"].as_array().unwrap().len();
            let digest = blake3::hash(plan.to_string().as_bytes());
            let name = Path::new(manifest).file_name().unwrap().to_str().unwrap();
            writeln!(found, "{name},{method},{stages},{digest}").unwrap();
        }
    }
    check("golden-plans.csv", &found);
}

#[test]
fn machines_have_the_recorded_predictions() {
    let place = TestDirectory::new(0);
    let mut found = "machine,method asked for,stones,method,seconds,memory,disk,limit\n".to_owned();
    for machine in ["reference", "server.toml"] {
        for asked in ["auto", "sweep"] {
            let hardware = hardware(machine);
            let options = format!("m.toml --stones 0..48 --hardware {hardware} --set build.method={asked}");
            let plan = plan(&place, &options);
            for database in plan["databases"].as_array().unwrap() {
                for prediction in database["predictions"].as_array().unwrap() {
                    let [stones, method, limit] = [&database["stones"], &prediction["method"], &prediction["limit"]];
                    let [seconds, memory, disk] =
                        [&prediction["seconds"], &prediction["memory_bytes"], &prediction["disk_bytes"]];
                    let line = format!("{machine},{asked},{stones},{method},{seconds},{memory},{disk},{limit}");
                    writeln!(found, "{}", line.replace('"', "")).unwrap();
                }
            }
        }
    }
    check("golden-predictions.csv", &found);
}

#[test]
fn jobs_have_the_recorded_predictions() {
    let place = TestDirectory::new(0);
    let machine = hardware("server.toml");
    let plan = plan(&place, &format!("--stones 0..36 --ranks 64 --hardware {machine}"));
    let found: String = plan["databases"].as_array().unwrap().iter().map(|database| format!("{database}\n")).collect();
    check("golden-job.jsonl", &found);
}

#[test]
fn every_method_builds_recorded_databases() {
    let recorded = include_str!("../data/golden-databases.csv");
    for line in databases_by_every_method(9).lines() {
        assert!(recorded.lines().any(|recorded| recorded == line), "not recorded: {line}");
    }
}

#[test]
#[ignore = "slow tier: 14 stones by every method"]
fn every_method_builds_the_recorded_databases() {
    check("golden-databases.csv", &databases_by_every_method(14));
}

fn databases_by_every_method(stones_max: u32) -> String {
    let place = TestDirectory::new(stones_max);
    let mut found = "method,stones,blake3 of the scores,blake3 of the file\n".to_owned();
    for method in Method::ALL.map(Method::word) {
        let run = format!("run m.toml --dir {method} --set build.method={method} --set check.verify=none");
        place.awari(&run).is(0);
        for stones in 0..=stones_max {
            let path = place.path(&format!("{method}/databases/{stones:02}.awari"));
            let file = Scores::open(&RealDisk::default(), &path).unwrap();
            let scores = accepted(file).digest();
            writeln!(found, "{method},{stones},{scores},{}", blake3::hash(&fs::read(path).unwrap())).unwrap();
        }
    }
    found
}
