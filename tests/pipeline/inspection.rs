//! Status, reports, explanations, logs, the doctor and garbage collection.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use tests::directory::{TestDirectory, ended_child, signal};

/// Runs a build with a second process that watches it to its end, and returns the output of both.
fn watched(place: &TestDirectory, options: &str) -> String {
    let (run, mut events) = place.start("");
    // Suspended, so that the watch cannot come too late.
    events.find(|event| event["event"] == "stage-started" && event["stage"] == "sweep:9").unwrap();
    signal(&run, "STOP");
    let mut watch = place.command(&format!("status --dir run --watch {options}"));
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(watch.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    signal(&run, "CONT");
    assert!(events.any(|event| event["event"] == "run-ended"));
    ended_child(run).is(0);
    out.read_to_string(&mut text).unwrap();
    ended_child(watch).is(0);
    text
}

#[test]
fn a_watch_follows_a_run_to_its_end() {
    let place = TestDirectory::new(10);
    let text = watched(&place, "--json");
    let seen: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (first, last) = (&seen[0]["run"], &seen.last().unwrap()["run"]);
    assert_eq!((&first["state"], &first["heartbeat"]["run"]), (&Value::from("running"), &Value::from(1)));
    assert!(first["heartbeat"]["stage"].is_string() && first["heartbeat"]["steps"].as_u64().unwrap() > 20, "{first}");
    assert_eq!((&last["state"], &last["heartbeat"]), (&Value::from("done"), &Value::Null));
    assert!(!place.path("run/heartbeat").exists());
}

/// The run may begin and end between two looks.
#[test]
fn a_watch_waits_for_the_directory_and_for_a_run() {
    let place = TestDirectory::new(2);
    let mut watch = place.command("status --dir run --watch");
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(watch.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "waiting for a run in run\n");
    place.awari("run m.toml").is(0);
    ended_child(watch).is(0).shows(&["run  run 1, done in "]);
    place.awari("status --dir nowhere").is(12);
}

#[test]
fn a_watch_shows_text_where_there_is_no_screen() {
    let text = watched(&TestDirectory::new(10), "");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.starts_with("run  run 1, running for ") && text.contains("stage "), "{text}");
    let last = &text[text.rfind("run  run 1, done in ").unwrap()..];
    assert!(last.lines().any(|line| line.contains("352,716  up to date")), "{text}");
}

#[test]
fn an_explanation_shows_the_two_values_that_differ() {
    let place = TestDirectory::built(5);
    let same = place.awari("explain m.toml sweep:5").is(0).out;
    assert!(
        same.starts_with("sweep:5 is up to date: its outputs match the journal\n") && !same.contains("differs"),
        "{same}"
    );
    let other = "explain m.toml sweep:5 --set game.positions=reachable";
    let text = place.awari(other).is(0).out;
    let line = text.lines().find(|line| line.starts_with(" positions")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["positions", "all", "all", "reachable", "<-", "differs"]);
    let json = place.awari(&format!("{other} --json")).is(0).json();
    assert_eq!((&json["stage"], &json["runs"]), (&Value::from("sweep:5"), &Value::from(true)));
    place.awari("explain m.toml swep:5").is(2).says(&["sweep:5"]);
}

#[test]
fn stages_are_listed_with_their_state() {
    let place = TestDirectory::built(3);
    let list = place.awari("explain m.toml --set build.stones=0..4").is(0).out;
    let words = |name: &str| {
        let line = list.lines().find(|line| line.starts_with(&format!(" {name} "))).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(words("sweep:3"), "sweep:3 up to date its outputs match the journal");
    assert_eq!(words("sweep:4"), "sweep:4 to run databases/04.awari is absent");
    assert!(words("capture:3").starts_with("capture:3 not needed"), "{list}");
    assert!(list.ends_with("\n20 stages: 4 to run, 12 up to date, 4 not needed\n"), "{list}");
    let json = place.awari("explain m.toml --json").is(0).json();
    let names: Vec<&str> = json.as_array().unwrap().iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    assert_eq!(names[..5], ["capture:0", "sweep:0", "verify:0", "stats:0", "capture:1"]);
    assert_eq!(json[1]["standing"], "up-to-date");
}

#[test]
fn the_graph_of_stages_is_exported() {
    let place = TestDirectory::built(2);
    let dot = place.awari("plan m.toml --format dot --set build.stones=0..3").is(0).out;
    let lines = ["\"capture:3\" -> \"sweep:3\";", "\"sweep:1\" -> \"capture:3\";", "\"sweep:3\" -> \"stats:3\";"];
    for line in lines {
        assert_eq!(dot.matches(line).count(), 1, "{line} is not in {dot}");
    }
    let node = |name: &str| dot.lines().find(|line| line.trim_start().starts_with(&format!("\"{name}\" ["))).unwrap();
    assert!(node("sweep:2").contains("up to date") && node("sweep:3").contains("to run"), "{dot}");
    assert!(dot.starts_with("digraph stages {\n") && dot.ends_with("}\n"), "{dot}");
    let stages = |plan: &str| place.awari(plan).is(0).json()["fresh"].clone();
    assert_eq!(stages("plan m.toml --format json"), stages("plan m.toml --json"));
    place.awari("plan --stones 3 --format dot").is(2);
}

#[test]
fn run_directories_are_found_without_a_name() {
    let place = TestDirectory::new(2);
    place.awari("status").is(12).says(&["no run directory in runs; name one with --dir"]);
    place.awari("run m.toml --dir runs/first").is(0);
    place.awari("run m.toml --dir runs/second --until sweep:1").is(0);
    fs::create_dir(place.path("runs/other")).unwrap();
    let list = place.awari("status").is(0).out;
    let line = |name: &str| list.lines().find(|line| line.starts_with(&format!(" {name} "))).unwrap().to_owned();
    assert!(
        line("runs/first").contains("done at ") && line("runs/first").ends_with("9 up to date, 3 not needed"),
        "{list}"
    );
    assert!(line("runs/second").contains("to run") && !list.contains("other"), "{list}");
    assert!(list.ends_with("awari status --dir runs/first\n"), "{list}");
    assert_eq!(place.awari("status --json").is(0).json().as_array().unwrap().len(), 2);
    place.awari("status --watch").is(2);
}

/// All methods, and all limits of memory, make the same bytes.
#[test]
fn a_change_without_effect_is_named() {
    let place = TestDirectory::built(4);
    let methods =
        ["the method counting changes no byte of databases 0..4", "awari verify --dir run --against counting"];
    for command in ["plan", "run"] {
        place.awari(&format!("{command} m.toml --set build.method=counting")).is(0).says(&methods);
    }
    place.awari("run m.toml --memory 128MiB").is(0).says(&["the memory limit of 128 MiB (before: 256 MiB) changes no"]);
    assert!(!place.awari("run m.toml --memory 128MiB --set build.method=sweep").is(0).err.contains("changes no"));
}

#[test]
fn a_terminal_shows_the_outcome_of_a_check_once() {
    let place = TestDirectory::built(3);
    let rows = shown(&place, 200, "verify --dir run --certify");
    let rows: Vec<&String> = rows.iter().filter(|row| row.contains("certified")).collect();
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert!(rows.iter().all(|row| row.contains("certified: ") && row.contains(" position")), "{rows:?}");
    place.awari("verify --dir run --certify").is(0).shows(&["stones,status\n0,certified\n"]);
}

#[test]
fn a_path_that_is_no_directory_is_named() {
    let place = TestDirectory::built(2);
    std::os::unix::fs::symlink("nowhere", place.path("link")).unwrap();
    for command in ["run m.toml --dir link", "status --dir link", "doctor --dir link --bytes 0"] {
        let ended = place.awari(command).is(12);
        assert!((ended.out + &ended.err).contains("link is a link to n"), "{command}");
    }
    // Commands to paste do not take a name for an option.
    fs::rename(place.path("run"), place.path("-dash")).unwrap();
    place.awari("stats --dir=-dash --stones 7").is(3).says(&["awari run ./-dash/manifest.toml --dir ./-dash --set"]);
    place.awari("plan m.toml --dir=-dash --set store.codec=zstd").is(0).says(&["awari archive --dir ./-dash --out"]);
}

#[test]
fn a_status_counts_each_stage_once() {
    let place = TestDirectory::built(6);
    place.awari("run m.toml --replace --set game.positions=reachable --until sweep:3").is(0);
    let out = place.awari("status --dir run").is(0).out;
    let counts = out.lines().find(|line| line.starts_with("28 stages: ")).unwrap();
    let number = |words: &str| -> u64 {
        let before = counts.split(words).next().unwrap().trim_end();
        before.rsplit([' ', '(']).next().unwrap().parse().unwrap()
    };
    assert_eq!(number("to run") + number("up to date") + number("not needed"), 28, "{counts}");
    assert!(counts.contains(&format!("to run ({} stale), ", number("stale"))), "{counts}");
    let row = out.lines().find(|line| line.starts_with("  sweep:4 ")).unwrap();
    assert_eq!(row.matches("out of date").count(), 1, "{row}");
    assert!(row.contains(" to run: databases/04.awari is out of date: "), "{row}");
}

/// The first rank that is left after a loss writes into its sign of life which rank that was.
#[test]
fn a_status_names_the_rank_that_a_job_lost() {
    let place = TestDirectory::built(3);
    let run = place.awari("status --dir run --json").is(0).json()["run"].clone();
    let process = |pid: &Value| json!({ "host": run["host"], "pid": pid, "namespace": "", "started": 1 });
    let lost = json!({
        "rank": 2, "process": process(&json!(77)), "how": "Dead", "activity": "process:3:1", "seconds": 5
    });
    let mut sign = json!({
        "job": process(&run["pid"]), "process": process(&run["pid"]), "number": 9, "at": 0, "activity": "process:3:1",
        "seconds": 5, "end": { "Lost": lost }
    });
    fs::create_dir(place.path("run/ranks")).unwrap();
    let names_it = |sign: &Value| {
        fs::write(place.path("run/ranks/0000"), sign.to_string()).unwrap();
        let text = place.awari("status --dir run").is(0).out;
        assert_eq!(
            place.awari("status --dir run --json").is(0).json().get("lost_rank"),
            text.contains("rank 2").then_some(&lost)
        );
        text.contains("\n  rank 2 (process 77 on ")
            && text.contains("; the last that it did was process:3:1, for 5 s\n")
    };
    assert!(names_it(&sign));
    sign["job"] = process(&json!(1));
    assert!(!names_it(&sign), "the sign is of an earlier job");
    assert!(!names_it(&json!("no sign")));
}

#[test]
fn a_database_that_was_deleted_is_not_listed() {
    let place = TestDirectory::built(6);
    fs::remove_file(place.path("run/databases/03.awari")).unwrap();
    let out = place.awari("status --dir run").is(0).out;
    assert!(!out.lines().any(|line| line.trim_start().starts_with("3 ")), "{out}");
    assert!(out.contains("stones 0..2, 4..6: matches published counts"), "{out}");
    assert!(out.contains("to run: databases/03.awari is absent"), "{out}");
}

/// Compares the counts of plan, explain and run, in text and as JSON, and of status after the run.
#[test]
fn commands_agree_on_numbers_of_stages() {
    let place = TestDirectory::new(4);
    let check = |set: &str, selection: &str, expected: &str| {
        let with = |command: &str, more: &str| place.awari(&format!("{command} {set} {more}")).is(0);
        let plan = with("plan m.toml", selection).out;
        let ends = [format!("{expected}; "), format!("nothing to do: {expected}\n")];
        assert!(ends.iter().any(|end| plan.contains(end)), "{plan}");
        let counts = with("plan m.toml --json", selection).json()["counts"].clone();
        let explain = with("explain m.toml stats:1", selection).out;
        assert!(explain.ends_with(&format!("\n20 stages: {expected}\n")), "{explain}");
        assert_eq!(with("explain m.toml stats:1 --json", selection).json()["counts"], counts);
        let run = with("run m.toml --progress plain", selection);
        run.says(&[&format!(": {expected};")]);
        // Status forces nothing, and asks for all stages.
        let counts = with("plan m.toml --json", "").json()["counts"].clone();
        assert_eq!(place.awari("status --dir run --json").is(0).json()["counts"], counts);
        let words = [("to_run", "to run"), ("up_to_date", "up to date"), ("not_needed", "not needed")];
        let words = words.map(|(key, words)| (counts[key].as_u64().unwrap(), words));
        let words: Vec<String> =
            words.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect();
        let status = place.awari("status --dir run").is(0).out;
        assert!(status.contains(&format!("\n20 stages: {}", words.join(", "))), "{status} {words:?}");
    };
    check("", "--until capture:2", "9 to run, 11 not requested");
    check("", "--until capture:2", "7 up to date, 2 not needed, 11 not requested");
    check("", "", "11 to run, 7 up to date, 2 not needed");
    check("", "", "15 up to date, 5 not needed");
    check("--set build.method=counting", "", "15 up to date, 5 not needed");
    check("--set store.keep=all", "", "5 to run, 15 up to date");
    // Kept captures are not needed, before the run removes them or after; the stage reads one of them.
    check("", "--force stats:1", "1 to run, 15 up to date, 4 not needed");
    fs::write(place.path("run/databases/03.awari"), "no database").unwrap();
    check("", "", "3 to run, 13 up to date, 4 not needed");
    fs::remove_file(place.path("run/journal")).unwrap();
    check("", "", "15 to run, 5 up to date (5 adopted)");
}

/// The lines that a command prints on a terminal of this width, with those that a progress bar overwrites.
fn shown(place: &TestDirectory, columns: usize, args: &str) -> Vec<String> {
    let command = format!("stty cols {columns} rows 24; exec \"$AWARI\" {args}");
    let ended = place.shell(&format!("script -qec '{command}' /dev/null")).is(0);
    ended.out.split(['\r', '\n']).flat_map(|line| rows(&console::strip_ansi_codes(line), columns)).collect()
}

/// Splits what a display of progress draws, which fills each row with blanks and writes the next behind it.
fn rows(line: &str, columns: usize) -> Vec<String> {
    let (mut rows, mut rest) = (Vec::new(), line);
    while let Some((end, ' ')) = rest.char_indices().nth(columns - 1).filter(|(end, _)| end + 1 < rest.len()) {
        rows.push(rest[..end].trim_end().to_owned());
        rest = &rest[end + 1..];
    }
    rows.push(rest.trim_end().to_owned());
    rows
}

#[test]
fn a_run_shows_a_line_for_the_stage_and_one_for_all() {
    for columns in [80, 120] {
        let rows = shown(&TestDirectory::new(12), columns, "run m.toml --progress bar");
        let is_whole = |row: &&String| {
            let counts =
                row.matches(" left").count() == 1 && row.ends_with(" s left") && row.matches(" %").count() == 1;
            counts && row.chars().count() < columns
        };
        let lines = |name: &str| rows.iter().filter(|row| row.starts_with(name)).collect::<Vec<_>>();
        let of_run = lines("whole run ");
        assert!(of_run.iter().any(|row| row.contains("stage 51 of 52")), "{columns}: {rows:#?}");
        assert!(of_run.iter().any(|row| row.contains('━')) && of_run.iter().any(is_whole), "{columns}: {of_run:#?}");
        let checks = lines("verify:12 ");
        let known: Vec<&&String> = checks.iter().filter(|row| row.contains("/s ")).collect();
        assert!(
            !known.is_empty() && known.iter().all(|row| is_whole(row) && row.contains(" verifying ")),
            "{checks:#?}"
        );
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let program = tests::awari();
    for columns in [60, 80, 120, 200] {
        let place = TestDirectory::new(8);
        for args in [
            "plan m.toml",
            "plan m.toml --set build.method=two-bit --all",
            "plan --up-to 22",
            "plan --up-to 17 --ranks 4 --hardware reference",
            "run m.toml --until sweep:8",
            "status --dir run",
            "run m.toml --progress plain",
            "run m.toml",
            "status --dir run",
            "explain m.toml sweep:8",
            "explain m.toml sweep:8 --set game.positions=reachable",
            "explain m.toml capture:8",
            "verify --dir run",
            "stats --dir run",
            "gc --dir run",
            "probe --dir run 0 0 1 2 0 3  0 1 0 0 0 0",
            "doctor --dir run --bytes 0",
            "report --dir run -o report.html",
        ] {
            let lines = shown(&place, columns, args);
            for line in &lines {
                // Commands to copy are not wrapped.
                let width = if line.contains(program) { 0 } else { console::measure_text_width(line) };
                assert!(width <= columns, "{args}: {width} columns of {columns}: {line}");
            }
            assert!(lines.iter().any(|line| !line.is_empty()), "{args}");
        }
    }
}

#[test]
fn a_short_run_prints_little() {
    let place = TestDirectory::new(8);
    let piped = place.awari("run m.toml").is(0).err.replace(tests::awari(), "awari");
    assert_eq!(piped.matches("stones: done in").count() + piped.matches("1 stone: done in").count(), 9, "{piped}");
    assert!(piped.lines().all(|line| line.chars().count() <= 100), "{piped}");
    // Rates of small databases are not printed.
    assert!(piped.lines().filter(|line| line.contains(": done in")).all(|line| !line.contains("/s")), "{piped}");
    let is_row = |line: &&str| line.split_whitespace().take(3).eq(["0", "1", "sweep"]);
    let row = piped.lines().find(is_row).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells.iter().filter(|cell| **cell == "-").count(), 2, "{row}");
    let idle = place.awari("run m.toml").is(0).err;
    assert!(idle.starts_with("nothing to do: ") && idle.lines().count() == 1, "{idle}");
    let text: String = shown(&place, 80, "run m.toml --progress none --force verify:8").concat();
    assert_eq!(text, "");
    let bar: String = shown(&place, 80, "run m.toml --progress bar --force verify:8").concat();
    assert!(bar.contains("matches published counts"), "{bar}");
}

#[test]
fn garbage_collection_removes_only_what_was_asked() {
    let place = TestDirectory::new(6);
    place.awari("run m.toml --set store.keep=all").is(0);
    fs::write(place.path("run/databases/notes.txt"), "mine").unwrap();
    fs::write(place.path("run/stats/.05.json.tmp-9"), "half").unwrap();
    let before = place.files("run");
    let plan = place.awari("gc --dir run --plan").is(0).out;
    for part in [".05.json.tmp-9", "captures/06.cap", "notes.txt", "nothing was removed"] {
        assert!(plan.contains(part), "{part} is not in {plan}");
    }
    assert!(place.files("run") == before);
    place.awari("gc --dir run --plan --delete").is(2);
    place.awari("gc --dir run --delete").is(0).says(&["1 file removed"]);
    assert!(!place.path("run/stats/.05.json.tmp-9").exists() && place.path("run/captures/06.cap").exists());
    place.awari("gc --dir run --kept --delete").is(0).says(&["7 files removed"]);
    assert!(place.path("run/databases/notes.txt").exists() && !place.path("run/captures/06.cap").exists());
    place.awari("run m.toml").is(0).says(&["nothing to do"]);
    // Databases beyond the manifest are removed only by `--unasked`.
    place.manifest("[build]\nstones = \"0..4\"\n[run]\ndir = \"run\"\n");
    place.awari("run m.toml").is(0);
    place.awari("gc --dir run --delete").is(0).says(&["nothing to remove"]);
    assert!(place.path("run/databases/06.awari").exists());
    place.awari("gc --dir run --unasked --delete").is(0).says(&["4 files removed"]);
    assert!(!place.path("run/databases/06.awari").exists() && place.path("run/databases/04.awari").exists());
    place.awari("gc --dir elsewhere").is(12).says(&["the files that are needed are not known"]);
}

/// Files of a method that is not in use, unknown to the journal.
#[test]
fn planes_and_snapshots_of_another_method_are_found() {
    let place = TestDirectory::built(5);
    place.awari("run m.toml --dir other --set build.method=two-bit --set store.keep=all").is(0);
    fs::create_dir_all(place.path("run/planes/05")).unwrap();
    fs::create_dir_all(place.path("run/snapshots/process-5-3")).unwrap();
    for name in ["planes/05/03.won", "planes/05/win.seeds", "captures/05.cap"] {
        fs::copy(place.path("other").join(name), place.path("run").join(name)).unwrap();
    }
    fs::write(place.path("run/snapshots/process-5-3/fingerprint"), "of a plane").unwrap();
    fs::write(place.path("run/snapshots/process-5-3/won"), "saved").unwrap();
    fs::write(place.path("run/planes/05/.03.lost.tmp-7"), "half").unwrap();
    fs::write(place.path("run/planes/05/mine.txt"), "mine").unwrap();
    place.awari("gc --dir run --plan").is(0).shows(&[
        "snapshots/process-5-3",
        ".03.lost.tmp-7",
        "05/03.won",
        "05/win.seeds",
        "05.cap",
        "05/mine.txt",
    ]);
    // The snapshot, the temporary, and the capture, which nothing will read.
    place.awari("gc --dir run --delete").is(0).says(&["3 files removed"]);
    place.awari("gc --dir run --unasked --delete").is(0).says(&["2 files removed"]);
    let left: Vec<_> =
        fs::read_dir(place.path("run/planes/05")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["mine.txt"]);
    assert!(!place.path("run/snapshots/process-5-3").exists());
    place.awari("run m.toml").is(0).says(&["nothing to do"]);
}

/// A file is removed as soon as all that is made from it is there, and a run resumes from the others.
#[test]
fn planes_are_removed_while_bounds_are_solved() {
    let place = TestDirectory::built(8);
    let run = "run m.toml --dir bits --set build.method=two-bit";
    place.awari(&format!("{run} --until process:8:6")).is(0);
    let folder = fs::read_dir(place.path("bits/planes/08")).unwrap();
    let mut left: Vec<_> = folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    let decided = ["07.plane", "07.won", "08.plane", "08.won"];
    assert_eq!(left, [&["06.lost", "06.won"][..], &decided, &["candidate.seeds", "win.seeds"]].concat());
    place.awari(run).is(0);
    assert!(!place.path("bits/planes/08").exists());
    let database = |run: &str| fs::read(place.path(run).join("databases/08.awari")).unwrap();
    assert_eq!(database("bits"), database("run"));
}

#[test]
fn a_report_is_one_page_of_every_run() {
    let place = TestDirectory::new(9);
    let (run, mut events) = place.start("");
    assert!(events.any(|event| event["event"] == "stage-started" && event["stage"] == "sweep:7"));
    signal(&run, "KILL");
    events.for_each(drop);
    assert_eq!(ended_child(run).code, None);
    place.awari("run m.toml --set build.snapshot=<b>").is(11);
    place.awari("run m.toml").is(0);
    place.awari("report --dir run -o report.html").is(0).says(&["report.html written"]);
    let page = fs::read_to_string(place.path("report.html")).unwrap();
    for part in [
        "<!DOCTYPE html>",
        "run 1",
        "run 2",
        "<td>killed</td>",
        "<td>done</td>",
        "matches published counts",
        "<td class=\"right\">167,960</td>",
        "</html>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // The page loads nothing.
    for outside in ["<pre", "http", "src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let piped = place.awari("report --dir run -o -").is(0).out;
    assert_eq!(piped.matches("<svg").count(), page.matches("<svg").count());
    assert!(page.matches("<svg").count() >= 6);
    place.awari("report --dir nowhere -o -").is(12).says(&["is not a run directory"]);
}

#[test]
fn every_stage_has_a_log_across_restarts() {
    let place = TestDirectory::built(4);
    place.awari("run m.toml --force sweep:4 --log debug").is(0);
    let log = fs::read_to_string(place.path("run/logs/sweep-04.log")).unwrap();
    let begins: Vec<&str> = log.lines().filter(|line| line.contains("INFO begins; reason: ")).collect();
    assert!(begins.len() == 2 && begins[0].contains("is absent") && begins[1].contains("forced"), "{log}");
    assert!(log.contains(" s of processor time, ") && log.contains("solved after") && log.contains("passes "), "{log}");
    let whole = fs::read_to_string(place.path("run/logs/run.log")).unwrap();
    assert!(whole.contains("run 2: 2 to run") && whole.contains("the run ends"), "{whole}");
    place.awari("run m.toml --force sweep:4 --log off").is(0);
    assert_eq!(fs::read_to_string(place.path("run/logs/sweep-04.log")).unwrap(), log);
}

#[test]
fn a_failure_names_the_log_and_the_next_command() {
    let place = TestDirectory::new(4);
    place.awari("run m.toml --set store.keep=all --until capture:4").is(0);
    // The frame is sound, so that only the reader of the block finds it.
    let capture = "run/captures/04.cap";
    let middle = fs::metadata(place.path(capture)).unwrap().len() as usize / 2;
    place.flip(capture, middle);
    let ended = place.awari("run m.toml --set store.keep=all").is(16);
    let ended =
        ended.says(&["captures/04.cap", "the next run rebuilds it", "its log:", "run/logs/sweep-04.log", "resume:"]);
    let next = ended.err.lines().find_map(|line| line.trim().strip_prefix("resume:")).unwrap().trim().to_owned();
    let next = next.split_once(' ').unwrap().1.to_owned();
    let log = fs::read_to_string(place.path("run/logs/sweep-04.log")).unwrap();
    assert!(log.contains("ERROR failed: "), "{log}");
    place.shell(&format!("$AWARI {next}")).is(0);
}

#[test]
fn a_doctor_reports_the_machine_and_leaves_no_trace() {
    let place = TestDirectory::new(3);
    let files = |place: &TestDirectory| place.files(".").into_keys().collect::<Vec<_>>();
    let before = files(&place);
    place.awari("doctor --dir run --bytes '4 MiB'").is(0).shows(&[
        "cores",
        "kernels",
        "io_uring",
        "open files",
        "to be created in",
        "/s written",
        "random reads/s",
        "\nready for a run\n",
    ]);
    assert_eq!(files(&place), before);
    let json = place.awari("doctor --json --bytes 0").is(0).json();
    assert!(json["cores"].as_u64().unwrap() >= 1 && json["free_bytes"].as_u64().unwrap() > 0);
    assert_eq!(json["speeds"], Value::Array(Vec::new()));
    place.awari("doctor --dir /proc/self --bytes 0").is(12);
    place.awari("run m.toml").is(0);
    let before = files(&place);
    let text = place.awari("doctor --dir run --bytes '1 MiB'").is(0).out;
    assert_eq!(files(&place), before);
    // Each line begins with a verdict, and what follows from it is below.
    let verdicts = ["ok ", "note ", "PROBLEM ", "          ", "ready for a run"];
    assert!(text.lines().all(|line| verdicts.iter().any(|verdict| line.starts_with(verdict))), "{text}");
    assert!(text.lines().any(|line| line.starts_with("ok      cores ")), "{text}");
}

#[test]
fn a_measured_machine_can_be_planned_for() {
    let place = TestDirectory::new(3);
    let report = place.awari("doctor --bytes '4 MiB' --write-hardware this.toml").is(0);
    report.says(&["this.toml written"]).shows(&["core speed"]);
    place.awari("plan m.toml --hardware this.toml").is(0).shows(&["predicted for this.toml: "]);
    place.awari("doctor --bytes 0 --write-hardware other.toml").is(12).says(&["no hardware file was written"]);
    assert!(!place.path("other.toml").exists());
}
