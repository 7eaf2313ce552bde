//! The output and exit codes of commands.

use disk::{Disk, RealDisk};
use game::Board;
use game::reference::{ReferenceMove, moves, solve_up_to};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use store::Scores;
use tests::Random;
use tests::directory::{self, TestDirectory, ended_child};
use tests::needs::Need;

const PUBLISHED: &str = include_str!("../../src/build/check/published/lincke-2002.csv");

#[test]
fn a_run_ends_with_a_table_and_a_second_one_does_nothing() {
    let place = TestDirectory::new(6);
    let first = place.awari("run m.toml").is(0).says(&["stones", "bits/position", "passes", "12,376", "full"]);
    let (_, ending) = first.err.split_once("stones 0..6: matches published counts\n\n").unwrap();
    let (picture, commands) = ending.split_once("\n\n").unwrap();
    let statistics = place.awari("stats --dir run --stones 6 --format bars").is(0).out;
    assert_eq!(picture, statistics.trim_end());
    assert_eq!(first.out, "");
    // The commands run as they are printed.
    let printed: Vec<&str> =
        commands.lines().filter_map(|line| line.split_once(' ')).map(|(_, it)| it.trim()).collect();
    let [probe, serve, play, chart] = printed[..] else { panic!("{commands}") };
    assert!(place.shell(probe).is(0).out.contains("score -3 of 3 stones"));
    place.shell(&format!("{play} --position random:6 --side none")).is(0);
    place.shell(chart).is(0);
    assert!(fs::read_to_string(place.path("scores.svg")).unwrap().starts_with("<svg"));
    assert!(serve.ends_with(" serve --dir run  # open http://127.0.0.1:8080/"), "{serve}");
    let files = place.files("run");
    let second = place.awari("run m.toml").is(0).says(&["nothing to do: 21 up to date, 7 not needed"]);
    assert_eq!(second.err.lines().count(), 1, "{}", second.err);
    // The lock names its last holder; nothing else has changed.
    let same = |files: BTreeMap<PathBuf, Vec<u8>>| -> Vec<_> {
        files.into_iter().filter(|(path, _)| !path.ends_with("lock")).collect()
    };
    assert_eq!(same(place.files("run")), same(files));
}

/// The instruction set changes no byte.
#[test]
#[ignore = "slow tier: a build for each kernel"]
fn kernels_are_chosen_and_make_the_same_bytes() {
    let place = TestDirectory::new(8);
    let doctor = |more: &str| place.awari(&format!("doctor --json --bytes 0 {more}")).json();
    let names: Vec<String> = serde_json::from_value(doctor("")["kernels"].clone()).unwrap();
    assert_eq!((names.first(), &doctor("")["kernel"]), (Some(&"portable".into()), &json!(names.last())));
    let files = |kernel: &str, method: &str| {
        assert_eq!(doctor(&format!("--kernel {kernel}"))["kernel"], kernel);
        let dir = format!("{kernel}-{method}");
        let run = format!("run m.toml --dir {dir} --set store.keep=all");
        place.awari(&format!("{run} --kernel {kernel} --set build.method={method} --set store.codec=rans")).is(0);
        // Another kernel makes nothing stale.
        place.awari(&run).is(0).says(&["nothing to do"]);
        ["databases", "captures", "stats"].map(|folder| place.files(&format!("{dir}/{folder}")).into_values().collect())
    };
    for method in ["sweep", "two-bit"] {
        let expected: [Vec<Vec<u8>>; 3] = files("portable", method);
        assert!(expected.iter().all(|files| files.len() >= 8));
        names[1..].iter().for_each(|kernel| assert!(files(kernel, method) == expected, "{kernel}, {method}"));
    }
    let all = format!("this processor has {}", names.join(", "));
    place.awari("run m.toml --kernel avx1024").is(2).says(&["'avx1024'", &all]);
    place.awari("--kernel portable plan m.toml").is(0);
}

#[test]
fn plans_say_why_and_write_nothing() {
    let place = TestDirectory::new(3);
    place.awari("plan m.toml --check --all").is(10).shows(&["sweep:3", "databases/03.awari is absent"]);
    place.awari("plan m.toml").is(0).shows(&["capture:0 to stats:3", "16 stages of less than a second each; --all"]);
    assert!(!place.path("run").exists());
    let json = place.awari("plan m.toml --json --until sweep:1").is(0).json();
    let stages: Vec<&str> = json["steps"].as_array().unwrap().iter().map(|s| s["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, ["capture:0", "sweep:0", "verify:0", "stats:0", "capture:1", "sweep:1"]);
    place.awari("run m.toml").is(0);
    place.awari("plan m.toml --check").is(0);
    place.awari("plan m.toml --check --force stats:2").is(10);
    place.awari("plan m.toml --check --set store.codec=raw").is(0);
    let plan =
        place.awari("plan m.toml --set build.stones=0..6 --set build.methods.\"3..5\"=counting --dir new --all").is(0);
    plan.shows(&["sweep:2", "counting:3", "sweep:6"]);
    place.awari("plan m.toml --set build.stones=0..40").is(0).says(&["would refuse to start", "of memory"]);
}

#[test]
fn plans_predict_stages_side_by_side() {
    let place = TestDirectory::new(6);
    let plan = |options: &str| place.awari(&format!("plan m.toml --threads 2 {options}")).is(0);
    plan("--stages-at-a-time 3").shows(&[
        "\n3 stages at a time: about ",
        " cores busy; at most ",
        "the longest path of",
    ]);
    let json = |options: &str| plan(&format!("--json {options}")).json();
    assert!(json("--stages-at-a-time 1").get("schedule").is_none(), "one stage at a time");
    assert_eq!(json("")["schedule"], json("--stages-at-a-time 0")["schedule"]);
    let [three, best] = ["3", "0"].map(|stages| json(&format!("--stages-at-a-time {stages}")));
    let number = |plan: &Value, key: &str| plan["schedule"][key].as_f64().unwrap();
    let alone = three["prediction"]["seconds"].as_f64().unwrap();
    let (seconds, path) = (number(&three, "seconds"), number(&three, "path_seconds"));
    assert!(path < 1.001 * seconds && seconds < alone, "{path} {seconds} {alone}");
    assert!(number(&best, "seconds") <= 1.01 * seconds && number(&best, "stages_at_a_time") > 1.0, "{best}");
    assert!(number(&three, "memory_bytes") >= three["prediction"]["memory_bytes"].as_f64().unwrap());
    assert_eq!(number(&three, "stages_at_a_time"), 3.0);
    // The largest database alone takes most of the memory.
    let tight = json("--stages-at-a-time 4 --memory 48MiB");
    assert!(number(&tight, "memory_bytes") <= f64::from(48 << 20), "{tight}");
}

#[test]
fn a_run_can_be_cut_short_forced_and_overridden() {
    let place = TestDirectory::new(4);
    place.awari("run m.toml --until sweep:2 --dir 'other dir'").is(0);
    assert!(place.path("other dir/databases/02.awari").exists());
    assert!(!place.path("other dir/stats/02.json").exists() && !place.path("run").exists());
    place.awari("run m.toml --threads 1 --memory 128MiB --set store.codec=raw").is(0);
    let resolved = fs::read_to_string(place.path("run/manifest.toml")).unwrap();
    for line in ["threads = 1", "memory = \"128 MiB\"", "codec = \"raw\"", "dir = \"run\""] {
        assert!(resolved.contains(line), "{line} is not in {resolved}");
    }
    let forced = place.awari("run m.toml --force verify:1 --force verify:3").is(0);
    assert_eq!(forced.err.matches(": done in").count(), 2, "{}", forced.err);
    place.awari("run m.toml --until swep:2").is(2).says(&["no stage swep:2", "sweep:2"]);
    // Positions are part of the identity of every file.
    let frozen = place.awari("run m.toml --set game.positions=reachable --frozen").is(15);
    frozen.says(&["recorded: all; the manifest asks for reachable", "--replace instead of --frozen"]);
}

#[test]
fn finished_databases_are_replaced_only_when_asked() {
    let place = TestDirectory::built(3);
    let path = place.path("run/databases/03.awari");
    let all = fs::read(&path).unwrap();
    let manifest = fs::read(place.path("run/manifest.toml")).unwrap();
    let other = "m.toml --set game.positions=reachable";
    let why = "4 finished files, from databases/00.awari on, are for positions all, but the manifest asks for positions reachable";
    place.awari(&format!("run {other}")).is(15).says(&["in run: ", why, "--dir", "--replace", "nothing was changed"]);
    let planned = place.awari(&format!("plan --all {other}")).is(0).says(&["`run` would refuse to start", why]);
    assert!(planned.out.contains("recorded: all; the manifest asks for reachable"), "{planned:?}");
    assert!(!planned.err.contains("nothing was changed"), "{planned:?}");
    assert_eq!(fs::read(&path).unwrap(), all);
    assert_eq!(fs::read(place.path("run/manifest.toml")).unwrap(), manifest);
    // Without a journal their headers say the same.
    fs::remove_file(place.path("run/journal")).unwrap();
    place.awari(&format!("run {other}")).is(15).says(&[why]);
    place.awari(&format!("run {other} --replace")).is(0);
    assert_ne!(fs::read(&path).unwrap(), all);
    place.awari(&format!("run {other}")).is(0).says(&["nothing to do"]);
    let back = place.awari("run m.toml").is(15);
    back.says(&["are for positions reachable, but the manifest asks for positions all"]);
}

#[test]
fn run_directories_are_named_after_manifests() {
    let place = TestDirectory::new(3);
    for (name, positions) in [("one", "all"), ("two", "reachable")] {
        let text = format!("[game]\npositions = \"{positions}\"\n[build]\nstones = 1\n");
        fs::write(place.path(&format!("{name}.toml")), text).unwrap();
        place.awari(&format!("run {name}.toml")).is(0);
        let resolved = fs::read_to_string(place.path(&format!("runs/{name}/manifest.toml"))).unwrap();
        assert!(resolved.contains(&format!("dir = \"runs/{name}\"")), "{resolved}");
    }
    place.awari("run one.toml --dir here").is(0);
    assert!(place.path("here/databases/01.awari").exists());
    // The manifest that a run leaves says where that is.
    place.awari("run runs/two/manifest.toml").is(0).says(&["nothing to do"]);
    assert!(!place.path("runs/manifest").exists());
}

#[test]
fn databases_keep_their_codec_with_a_note() {
    let place = TestDirectory::built(3);
    let raw = "m.toml --set store.codec=raw";
    let kept = "databases 0..3 (codec packed) stay as they are, because the codec raw applies to new databases only";
    let convert = "awari restore --from ARCHIVES --dir NEW --codec raw && awari run MANIFEST --dir NEW";
    place.awari(&format!("run {raw}")).is(0).says(&["nothing to do", kept, convert]);
    place.awari(&format!("plan {raw}")).is(0).says(&[kept]);
    place.awari(&format!("run {raw} --force sweep:3")).is(0).says(&["databases 0..2 (codec packed)"]);
    assert!(!place.awari("run m.toml").is(0).err.contains("0..2"));
    place.awari("archive --dir run --out archives").is(0);
    place.awari("restore --from archives --dir new --codec raw").is(0);
    let note =
        "database 3 (codec raw) stays as it is, because the codec packed applies to new databases only; to convert it:";
    place.awari("run m.toml").is(0).says(&[note]);
    let again = place.awari(&format!("run {raw} --dir new")).is(0);
    assert!(!again.err.contains("stay as they are"), "{again:?}");
}

#[test]
fn probes_agree_with_the_rules() {
    let place = TestDirectory::built(6);
    let solved = solve_up_to(6);
    let mut random = Random::new(7);
    for _ in 0..25 {
        let board = random.board((random.clone().below(7)) as u32);
        let pits = board.0.map(|stones| stones.to_string()).join(" ");
        let answer = place.awari(&format!("probe --dir run --json {pits}")).is(0).json();
        let score = solved[board.stones() as usize][&board.0];
        assert_eq!(answer["score"], score, "{board:?}");
        let (legal, illegal) = (answer["moves"].as_array().unwrap(), answer["illegal"].as_array().unwrap());
        assert_eq!(legal.len() + illegal.len(), 6);
        for (pit, played) in ["A", "B", "C", "D", "E", "F"].into_iter().zip(moves(board.0)) {
            let find = |list: &[Value]| list.iter().find(|listed| listed["pit"] == pit).cloned();
            match played {
                ReferenceMove::Legal { captured, child } => {
                    let value = captured as i8 - solved[board.stones() as usize - usize::from(captured)][&child];
                    let expected =
                        serde_json::json!({"pit": pit, "captures": captured, "value": value, "best": value == score});
                    assert_eq!(find(legal), Some(expected));
                }
                ReferenceMove::Empty => assert_eq!(find(illegal).unwrap()["reason"], "the pit is empty"),
                ReferenceMove::Starves => {
                    assert!(find(illegal).unwrap()["reason"].as_str().unwrap().contains("without stones"));
                }
                ReferenceMove::Slam => unreachable!("awari has no move that is illegal where all others are"),
            }
        }
    }
}

#[test]
fn positions_are_read_in_every_notation() {
    let place = TestDirectory::built(4);
    let apart = place.awari("probe --dir run 0 0 0 0 0 2 1 1 0 0 0 0").is(0);
    let apart = apart.shows(&["score", "best", "the pit is empty"]);
    for position in ["'0 0 0 0 0 2 1 1 0 0 0 0'", "0-0-0-0-0-2-1-1-0-0-0-0-20-24-S"] {
        assert_eq!(place.awari(&format!("probe --dir run {position}")).is(0).out, apart.out);
    }
    // The same seen from the other side: pits have the names of North.
    let north = place.awari("probe --dir run --json 1-1-0-0-0-0-0-0-0-0-0-2-20-24-N").is(0).json();
    assert_eq!(north["moves"][0]["pit"], "f");
    place.awari("probe --dir run '0 0 0'").is(2).says(&["expected 12 numbers"]);
    place.awari("probe --dir run '0 0 0 0 0 x 0 0 0 0 0 0'").is(2).says(&["found `x`"]);
    // The JSON of a known position has these fields and no others.
    let known = place.awari("probe --dir run --json --nodes 100 '0 0 0 0 0 2 1 1 0 0 0 0'").is(0).json();
    let fields: Vec<&String> = known.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["illegal", "line", "moves", "position", "score", "source", "stones"]);
    let fields: Vec<&String> = known["moves"][0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["best", "captures", "pit", "value"]);
    // Beyond the databases, a search proves bounds and estimates the score.
    let opening = "'4 4 4 4 4 4 4 4 4 4 4 4'";
    for dir in ["--dir run", ""] {
        let far = place.awari(&format!("probe {dir} --nodes 5000 {opening}")).is(0);
        far.shows(&["of 48 stones", "positions to depth ", "best, estimated", "\nline   "]);
        let far = place.awari(&format!("probe {dir} --depth 5 --json {opening}")).is(0).json();
        assert_eq!((&far["search"]["depth"], far["source"].as_str()), (&Value::from(5), Some("search")));
        let estimates = far["moves"].as_array().unwrap().iter().map(|valued| valued["estimate"].as_f64().unwrap());
        assert_eq!(estimates.fold(f64::MIN, f64::max), far["estimate"].as_f64().unwrap(), "{far}");
    }
    place.awari("probe --dir run --time never '4 4 4 4 4 4 4 4 4 4 4 4'").is(2).says(&["expected a time such as"]);
    let hash = format!("probe --hash 999999GiB {opening}");
    place.awari(&hash).is(12).says(&["for the table of searched positions", "choose less with --hash"]);
    // Slightly beyond them, the search proves the score.
    let position = [1, 2, 0, 0, 2, 1, 0, 0, 0, 1, 0, 0];
    let proved = place.awari("probe --dir run --json --time 20s '1 2 0 0 2 1 0 0 0 1 0 0'").is(0).json();
    assert_eq!(proved["score"], solve_up_to(7)[7][&position]);
}

#[test]
fn reachable_databases_answer_for_all_positions() {
    let place = TestDirectory::new(7);
    place.awari("run m.toml --set game.positions=reachable").is(0).says(&["no published counts of the"]);
    let answer = place.awari("probe --dir run --json '0 0 0 0 0 1 1 1 1 1 1 1'").is(0).json();
    let board = Board([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(answer["score"], solve_up_to(7)[7][&board.0]);
    assert_eq!(answer["source"], "children");
    // Databases of two kinds in one directory.
    let other = TestDirectory::built(2);
    fs::copy(other.path("run/databases/02.awari"), place.path("run/databases/02.awari")).unwrap();
    for command in ["probe --dir run '0 0 0 0 0 1 1 0 0 0 0 0'", "stats --dir run"] {
        place.awari(command).is(16).says(&["02.awari has rules awari, positions all", "--replace` goes on"]);
    }
}

#[test]
fn statistics_are_the_published_ones() {
    let place = TestDirectory::built(6);
    let published = |stones: std::ops::RangeInclusive<u32>| {
        let has_stones = |line: &&str| stones.contains(&line.split(',').next().unwrap().parse().unwrap());
        let lines: Vec<&str> = PUBLISHED.lines().skip(1).filter(has_stones).collect();
        format!("stones,score,positions\n{}\n", lines.join("\n"))
    };
    let csv = |options: &str| place.awari(&format!("stats --dir run --format csv {options}")).is(0).out;
    assert_eq!(csv(""), published(0..=6));
    assert_eq!(csv("--stones 3..5"), published(3..=5));
    let json = place.awari("stats --dir run --format json").is(0);
    assert_eq!(json.json()[6]["positions"], 12_376);
    assert!(place.awari("stats --dir run --format svg").is(0).out.starts_with("<svg"));
    place.awari("stats --dir run").is(0).shows(&[
        "mean score",
        "\n\ncapture or not: share of",
        "\nbetter not: share of these in which every best move",
    ]);
    place.awari("stats --dir run --stones 9").is(3).says(&[
        "no databases of 9 stones in run/databases",
        "awari run run/manifest.toml --dir run --set build.stones=0..9",
    ]);
    let build = "in run/databases (the largest has 6); to build it: awari run run/manifest.toml --dir run --set";
    let export = place.awari("export --dir run --out out --format raw --stones 5..8").is(3);
    export.says(&["no database of 7 stones", build, "build.stones=0..7"]);
    place.awari("stats --dir run --stones 5..8").is(3).says(&["no database of 7 stones in run/databases"]);
    // Missing or foreign statistics are counted again.
    fs::write(place.path("run/stats/05.json"), fs::read(place.path("run/stats/04.json")).unwrap()).unwrap();
    fs::remove_file(place.path("run/stats/06.json")).unwrap();
    assert_eq!(csv(""), published(0..=6));
    fs::remove_file(place.path("run/journal")).unwrap();
    let again = place.awari("stats --dir run --format json").is(0);
    assert_eq!(again.out, json.out);
}

/// The manual lists the fields of objects, and those of objects in their lists.
#[test]
fn the_manual_lists_the_fields_of_json() {
    let manual = fs::read_to_string(tests::root().join("docs/manual.md")).unwrap();
    let section = manual.split("## JSON of commands").nth(1).unwrap().split("\n## ").next().unwrap();
    let place = TestDirectory::built(6);
    place.awari("run m.toml --dir other").is(0);
    fs::write(place.path("game.ogn"), "1. F f 2. E").unwrap();
    let commands = [
        ("probe", "probe --dir run --json 0 0 0 0 0 2 1 0 0 0 0 0".to_owned()),
        ("probe", "probe --dir run --json --nodes 1000 4 4 4 4 4 4 4 4 4 4 4 4".to_owned()),
        ("analyze", "analyze --dir run --json --nodes 1000 game.ogn".to_owned()),
        ("compare", "compare --dir run --dir other --json".to_owned()),
        ("plan", "plan m.toml --dir new --json".to_owned()),
        ("explain", "explain m.toml sweep:6 --dir new --json".to_owned()),
        ("status", "status --dir run --json".to_owned()),
        ("gc", "gc --dir run --json".to_owned()),
    ];
    for (name, command) in commands {
        let row = section.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap();
        let found = place.awari(&command).out;
        let found: Value = serde_json::from_str(&found).unwrap_or_else(|_| panic!("{command}: {found}"));
        let objects = match &found {
            Value::Array(all) => all.iter().take(1).collect::<Vec<_>>(),
            object => {
                let inside = object.as_object().unwrap().values().filter_map(|value| value.as_array()?.first());
                std::iter::once(object).chain(inside).collect()
            }
        };
        // Predictions and reasons are described where they are printed as text.
        let described = if ["plan", "explain"].contains(&name) { 1 } else { objects.len() };
        for field in objects[..described].iter().filter_map(|value| value.as_object()).flat_map(|object| object.keys())
        {
            assert!(row.contains(&format!("`{field}`")), "{command}: {field} is not in the manual");
        }
    }
}

/// Returns what a stage has read, by the journal.
fn read_bytes(directory: &Path, stage: &str) -> u64 {
    let journal = fs::read(directory.join("journal")).unwrap();
    let journal = String::from_utf8_lossy(&journal);
    let (_, record) = journal.rsplit_once(&format!("\"stage\":\"{stage}\",\"artifacts\"")).unwrap();
    let (_, number) = record.split_once("\"read_bytes\":").unwrap();
    number[..number.find(|it: char| !it.is_ascii_digit()).unwrap()].parse().unwrap()
}

/// Where databases do not fit the memory, verification by sample reads each of them about once, not a block
/// for each position.
#[test]
fn verification_reads_in_the_order_of_the_files() {
    let place = TestDirectory::new(16);
    for codec in ["packed", "zstd"] {
        let run = format!("run m.toml --dir {codec} --set store.codec={codec}");
        place.awari(&format!("{run} --set check.verify=none")).is(0);
        place.awari(&format!("{run} --memory 49MiB --set check.verify=sample")).is(0);
        let databases = fs::read_dir(place.path(codec).join("databases")).unwrap();
        let bytes: u64 = databases.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        let read = read_bytes(&place.path(codec), "verify:16");
        assert!(read < 2 * bytes, "{codec}: {read} of {bytes} bytes");
    }
}

/// The stages of a solver count choices on the way, a run without them reads the files.
#[test]
fn statistics_do_not_depend_on_who_counts() {
    let place = TestDirectory::new(9);
    let builds = [
        ("sweep", "all", "awari"),
        ("two-bit", "all", "awari"),
        ("two-bit", "reachable", "awari"),
        ("two-bit", "all", "slam-illegal-own-side"),
        ("one-bit", "all", "wari"),
        ("one-bit-dual", "all", "awari"),
    ];
    for (method, positions, rules) in builds {
        for verify in ["none", "full"] {
            let directory = format!("{method}-{positions}-{rules}-{verify}");
            let build =
                format!("--set build.method={method} --set game.positions={positions} --set game.rules={rules}");
            let run = format!("run m.toml --dir {directory} --set check.verify={verify} {build}");
            let statistics = || fs::read_to_string(place.path(&directory).join("stats/09.json")).unwrap();
            let read_bytes = || read_bytes(&place.path(&directory), "stats:9");
            place.awari(&run).is(0);
            let (on_the_way, read_on_the_way) = (statistics(), read_bytes());
            assert!(!on_the_way.contains("\"declined\":0}"), "{on_the_way}");
            fs::remove_file(place.path(&directory).join("stats/09.json")).unwrap();
            place.awari(&run).is(0);
            assert_eq!(statistics(), on_the_way, "{directory}");
            assert_eq!(read_on_the_way < read_bytes(), method != "one-bit-dual", "{directory}: {read_on_the_way}");
            if method == "two-bit" {
                fs::remove_dir_all(place.path(&directory)).unwrap();
                place.awari(&format!("{run} --until process:9:4")).is(0);
                place.awari(&run).is(0);
                assert_eq!(statistics(), on_the_way, "{directory}, resumed");
            }
        }
    }
}

#[test]
fn damage_is_found_named_and_repaired() {
    let place = TestDirectory::built(6);
    place.awari("verify --dir run").is(0).says(&["all checks passed", "matches published counts"]);
    let certified = place.awari("verify --dir run --certify --stones 0..2").is(0);
    assert_eq!(certified.out, "stones,status\n0,certified\n1,certified\n2,certified\n");
    let sound = place.files("run/databases");

    let bytes = sound[&place.path("run/databases/05.awari")].len();
    for byte in [bytes / 2, 20, bytes - 40] {
        place.flip("run/databases/05.awari", byte);
        let found = place.awari("verify --dir run").is(16).says(&["05.awari", "the next run rebuilds it"]);
        let found = found.shows(&["4,verified\n5,damaged\n6,verified\n"]);
        if byte == bytes / 2 {
            found.says(&["  5  run/databases/05.awari is damaged: block 3 of 6 (slab 3,"]);
            let plan = place.awari("plan m.toml").is(0).out;
            let status = place.awari("status --dir run").is(0).out;
            for out in [plan, status] {
                assert_eq!(out.matches("databases/05.awari is damaged: block 3 of 6").count(), 1, "{out}");
                assert_eq!(out.matches("expected checksum").count(), 1, "{out}");
                assert!(!out.contains("run/databases/") && !out.contains("MANIFEST"), "{out}");
            }
        }
        place.awari("plan m.toml --check").is(10);
        place.awari("run m.toml").is(0).says(&["5 stones: done in", "matches published counts"]);
        assert!(place.files("run/databases") == sound);
        place.awari("verify --dir run").is(0);
    }
}

#[test]
fn damage_stops_a_run_and_the_next_one_repairs_it() {
    let place = TestDirectory::built(5);
    let sound = place.files("run/databases");
    let bytes = sound[&place.path("run/databases/05.awari")].len();
    place.flip("run/databases/05.awari", bytes / 2);
    place.awari("probe --dir run '0 0 1 1 1 0 0 0 1 1 0 0'").is(16).says(&["05.awari is damaged in block"]);
    let more = "run m.toml --set build.stones=0..7";
    place.awari(more).is(16).says(&["capture:7", "05.awari", "block 3 of 6", "the next run rebuilds it"]);
    place.awari(more).is(0).says(&["stones 0..7: matches published counts"]);
    for (path, bytes) in sound {
        assert!(fs::read(&path).unwrap() == bytes, "{}", path.display());
    }
}

/// The inputs of a repeated stage are kept or rebuilt, by any method.
#[test]
fn repeated_bound_stages_are_identical() {
    let place = TestDirectory::new(5);
    let kept = "--set build.method=two-bit --set store.keep=all";
    place.awari(&format!("run m.toml {kept}")).is(0);
    let recorded = place.files("run");
    let again = |stage: &str, more: &str| {
        let again = place.awari(&format!("stage m.toml {stage} --scratch aside {more}")).is(0);
        again.out.lines().for_each(|line| assert!(line.contains(" identical "), "{line}"));
        for line in again.out.lines() {
            let name = line.split(' ').next().unwrap();
            assert!(fs::read(place.path("aside").join(name)).unwrap() == recorded[&place.path("run").join(name)]);
        }
        fs::remove_dir_all(place.path("aside")).unwrap();
        (again.out.lines().count(), again.err)
    };
    for (stage, files) in [("seeds:5", 2), ("preprocess:5:3", 1), ("postprocess:5:3", 1), ("merge:5", 1)] {
        assert_eq!(again(stage, kept).0, files, "{stage}");
    }
    for bound in 1..=5 {
        for method in ["two-bit", "one-bit", "one-bit-dual"] {
            let (files, told) = again(&format!("process:5:{bound}"), &format!("--set build.method={method}"));
            assert!(files == 2 && told.contains("identical to the recorded result"), "{told}");
        }
    }
    place.awari("run m.toml --set build.method=two-bit").is(0);
    assert!(!place.path("run/planes/05/03.won").exists(), "what is not kept is removed");
    let (files, told) = again("process:5:3", "--set build.method=two-bit");
    assert!(files == 2 && told.contains("(not kept)"), "{told}");
}

#[test]
fn a_repeated_stage_is_identical() {
    let place = TestDirectory::built(6);
    let files = place.files("run");
    let again = place.awari("stage m.toml sweep:6 --scratch aside").is(0);
    assert!(again.out.starts_with("databases/06.awari identical "), "{}", again.out);
    assert!(again.err.contains("after rebuilding capture:6 (not kept)"), "{}", again.err);
    let same = |name: &str| fs::read(place.path("aside").join(name)).unwrap() == files[&place.path("run").join(name)];
    assert!(same("databases/06.awari"));
    place.awari("stage m.toml verify:6").is(0).says(&["verify:6 ran in"]);
    assert!(place.files("run") == files);
    place.awari("stage m.toml sweep:9").is(2).says(&["no stage sweep:9", "sweep:6"]);
    place.awari("stage m.toml sweep:6 --scratch run").is(2).says(&["choose another"]);
    fs::remove_file(place.path("run/databases/02.awari")).unwrap();
    place.awari("stage m.toml capture:6").is(12).says(&["reads databases/02.awari, which is absent"]);
}

#[test]
fn a_run_obeys_a_stop_request_and_resumes() {
    let place = TestDirectory::new(20);
    place.awari("stop --dir run").is(12).says(&["run is not a run directory"]);
    let (child, mut events) = place.start("--stages-at-a-time 1 --threads 1 --set check.verify=none --force stats:1");
    assert!(events.any(|event| event["event"] == "stage-started" && event["stage"] == "sweep:9"));
    let stop = place.awari("stop --dir run").is(0);
    let process = format!("run 1 (process {} on ", child.id());
    stop.says(&[&process, " was asked to stop: ", "awari status --dir run --watch"]);
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["how"]), (&"run-ended".into(), &"stopped".into()));
    let ended = ended_child(child).is(75);
    let ended = ended.says(&["stop requested; finishing the current step", "stopped after", "to resume:"]);
    assert_eq!(ended.err.matches("to run,").count(), 1, "the counts are said once: {}", ended.err);
    assert!(!ended.err.lines().last().unwrap().contains("--force"), "stats:1 is done: {}", ended.err);
    assert!(place.awari("status --dir run").is(0).out.contains("stopped on request"));
    assert!(!place.path("run/stop").exists());
    place.awari("stop --dir run").is(12).says(&["no run is active in run"]);
    assert!(!place.path("run/stop").exists(), "no request is left");

    // The second run ignores a request for the first one.
    fs::write(place.path("run/stop"), "1\n").unwrap();
    place.awari("run m.toml --set build.stones=0..10").is(0).says(&["0..10: matches published counts"]);
    assert!(!place.path("run/stop").exists());
    let held = RealDisk::default().lock(&place.path("run/lock"), "awari verify --dir run").unwrap();
    place.awari("stop --dir run").is(13).says(&["awari verify --dir run holds run, but is not a run"]);
    drop(held);
}

/// A limit on the length of files stands for a disk that fills up: both fail a write half-way.
#[test]
fn a_full_disk_leaves_no_partial_file() {
    let place = TestDirectory::new(9);
    let limited = "trap '' XFSZ; ulimit -f 64; exec \"$AWARI\" run m.toml";
    let failed = place.shell(limited).is(14).says(&["failed", "finished work is kept"]);
    assert!(!failed.err.contains("panicked"));
    let mut databases = 0;
    for (path, bytes) in place.files("run") {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(!disk::is_leftover(Path::new(name)), "{name} was left behind");
        if path.extension().is_some_and(|extension| extension == "awari") {
            assert!(Scores::open(&RealDisk::default(), &path).is_ok(), "{} of {} bytes", path.display(), bytes.len());
            databases += 1;
        }
    }
    assert!((6..10).contains(&databases), "{databases} databases");
    place.awari("verify --dir run").is(0);
    place.awari("run m.toml").is(0).says(&["stones 0..9: matches published counts"]);
}

#[test]
fn events_are_json_lines() {
    let place = TestDirectory::new(3);
    let (child, events) = place.start("");
    let events: Vec<Value> = events.collect();
    ended_child(child).is(0);
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("run-started", "run-ended"));
    assert_eq!(kinds.iter().filter(|kind| **kind == "stage-done").count(), 16);
    let run = |how: &str| place.awari(&format!("run m.toml --progress {how} --force verify:3")).is(0);
    assert_eq!(run("plain").err.matches(": done in").count(), 1);
    let quiet = run("none");
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
}

#[test]
fn status_shows_progress() {
    let place = TestDirectory::new(3);
    place.awari("run m.toml --until sweep:2").is(0);
    place.awari("status --dir run").is(0).shows(&[
        "run 1:",
        "done at",
        "16 stages:",
        "to run",
        "verify:2",
        "databases/02.awari is not verified yet",
    ]);
    let json = place.awari("status --dir run --json").is(0).json();
    assert_eq!(json["run"]["state"], "done");
    assert_eq!(json["stages"].as_array().unwrap().len(), 16);
    fs::remove_file(place.path("run/manifest.toml")).unwrap();
    place.awari("status --dir run").is(0).shows(&["no manifest.toml"]);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let place = TestDirectory::built(6);
    for command in ["stats --dir run --format svg", "status --dir run --json", "run m.toml --force stats:2"] {
        let script =
            format!("{{ \"$AWARI\" {command} --help >/dev/null; \"$AWARI\" {command}; echo $? >code; }} | true");
        let ended = place.shell(&script).is(0);
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
        assert_eq!(fs::read_to_string(place.path("code")).unwrap().trim(), "0", "{command}");
    }
    let closed = place.shell("\"$AWARI\" run m.toml --force stats:2 >&- 2>&-");
    assert_eq!(closed.code, Some(0));
}

/// The I/O back end changes no byte, and the run reports its traffic.
#[test]
fn every_io_back_end_builds_the_same() {
    let plain = TestDirectory::new(5);
    plain.awari("run m.toml --io plain").is(0).says(&["peak ", " MiB of 256 MiB budget"]);
    plain.awari("status --dir run").is(0).shows(&["mapped files not counted"]);
    let json = plain.awari("status --dir run --json").is(0).json();
    let stages = json["stages"].as_array().unwrap();
    let measured = |name: &str| &stages.iter().find(|stage| stage["stage"] == name).unwrap()["measured"];
    let database = fs::metadata(plain.path("run/databases/05.awari")).unwrap().len();
    let makers = stages.iter().filter(|stage| stage["stage"].as_str().unwrap().ends_with(":5"));
    let written: u64 = makers.filter_map(|stage| stage["measured"]["written_bytes"].as_u64()).sum();
    assert!(written >= database, "{written} bytes written, {database} in the database alone");
    assert!(measured("stats:5")["read_bytes"].is_u64());

    for io in ["auto", "uring"] {
        let other = TestDirectory::new(5);
        let ended = other.awari(&format!("run m.toml --io {io}"));
        if io == "uring" && ended.code == Some(12) {
            assert!(ended.err.contains("--io plain"), "{ended:?}");
            assert!(!Need::Ring.is_met(), "{ended:?}");
            continue;
        }
        ended.is(0);
        let bytes = |place: &TestDirectory| place.files("run/databases").into_values().collect::<Vec<_>>();
        assert!(bytes(&other) == bytes(&plain), "{io}");
        other.awari(&format!("stage m.toml verify:5 --io {io}")).is(0);
    }
    plain.awari("run m.toml --io fast").is(2).says(&["[possible values: auto, uring, plain]"]);
}

/// A build of a second is not worth a measurement, one of minutes is.
#[test]
fn long_builds_measure_the_ways_to_the_disk() {
    let place = TestDirectory::new(3);
    let log = || fs::read_to_string(place.path("run/logs/run.log")).unwrap();
    place.awari("run m.toml").is(0);
    assert!(!log().contains("--io"), "{}", log());
    for (io, is_measured) in [("auto", true), ("plain", false)] {
        let options = format!("--set build.stones=0..28 --io {io}");
        let (mut run, mut events) = place.start(&options);
        events.find(|event| event["event"] == "stage-started").unwrap();
        run.kill().unwrap();
        run.wait().unwrap();
        let log = log();
        let (_, latest) = log.rsplit_once("INFO run ").unwrap();
        let choices = ["--io auto takes uring here (uring: ", "--io auto takes plain here (uring: "];
        let is_told = choices.iter().any(|choice| latest.contains(choice));
        assert!(is_told == (is_measured && Need::Ring.is_met()), "{latest}");
    }
    let doctor = place.awari("doctor --dir run --bytes 1MiB --json").is(0).json();
    assert_eq!(doctor["io"].is_string(), Need::Ring.is_met(), "{doctor}");
}

/// Returns the completions of the last word.
fn completed(place: &TestDirectory, line: &str) -> Vec<String> {
    let mut command = place.command(&format!("-- awari {line}"));
    let index = line.split(' ').count().to_string();
    command.env("AWARI_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", index).env("_CLAP_IFS", "\n");
    let offered = directory::ended(command).is(0).out;
    offered.lines().map(str::to_owned).collect()
}

#[test]
fn shell_completion_offers_values() {
    let place = TestDirectory::new(2);
    let check = |line: &str, expect: &[&str]| assert_eq!(completed(&place, line), expect, "{line}");
    check("run m.toml --until sw", &["sweep:0", "sweep:1", "sweep:2"]);
    check("stage m.toml verify:", &["verify:0", "verify:1", "verify:2"]);
    check("play --level p", &["perfect"]);
    check("--kernel port", &["portable"]);
    check("restore --codec ra", &["raw", "rans"]);
    check("verify --against count", &["counting"]);
    check("run m.toml --set store.", &["store.codec=", "store.intermediates=", "store.keep="]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        place.awari(&format!("completions {shell}")).is(0).shows(&["AWARI_COMPLETE"]);
    }
}

#[test]
fn a_variable_sets_the_directory() {
    let place = TestDirectory::new(2);
    let with_variable = |value: &str, line: &str| {
        let mut command = place.command(line);
        command.env("AWARI_DIR", value);
        directory::ended(command)
    };
    let awari = |line| with_variable("elsewhere", line);
    with_variable("", "stats").is(2).says(&["--dir <DIR>"]);
    with_variable("", "status").is(12).says(&["no run directory in runs"]);
    awari("run m.toml").is(0);
    assert!(place.path("elsewhere/databases/02.awari").exists() && !place.path("run").exists());
    for command in ["status", "stats", "gc"] {
        awari(command).is(0);
    }
    awari("run m.toml --dir run").is(0);
    assert!(place.path("run/databases/02.awari").exists(), "the option comes before the variable");
    let help = awari("status --help").is(0).out;
    assert!(help.contains("[env: AWARI_DIR]"), "{help}");
    let (options, global) = help.split_once("\nGlobal options:\n").unwrap();
    assert!(!options.contains("--kernel") && global.contains("--kernel"), "{help}");
}
