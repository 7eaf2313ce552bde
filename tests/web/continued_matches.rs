//! Matches whose file is cut, full or of another match, that are killed and go on, and what their engines leave behind.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tests::directory::{CommandResult, TestDirectory, ended_child, signal};
use tests::{Random, awari};

/// Positions of few stones, so that games are short.
const OPENINGS: &str =
    "1-0-2-0-1-3-1-0-2-1-1-3-16-17-S\n0-1-0-2-2-3-1-1-2-0-1-2-16-17-N\n2-0-1-0-3-1-0-2-0-4-1-1-17-16-S\n";

/// A variable that all processes of a match inherit.
const MARK: &str = "AWARI_TEST_MATCH";

/// How long processes may take to end.
const END: Duration = Duration::from_secs(20);

/// The options of a match of the engine with itself.
fn options(games: u32) -> String {
    let engine = format!("--engine '\"{}\" engine --hash 4MiB'", awari());
    format!(
        "match {engine} {engine} --name one --name two --nodes 40 --nodes 80 --openings openings --games {games} --out games.ogn"
    )
}

fn place() -> TestDirectory {
    let place = TestDirectory::new(1);
    fs::write(place.path("openings"), OPENINGS).unwrap();
    place
}

/// The games of a file, each with its end.
fn games(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive("\n\n").collect::<Vec<_>>().chunks(2).map(|parts| parts.concat()).collect()
}

/// The number of games that a command has played.
fn played(result: &CommandResult) -> usize {
    result.err.lines().filter(|line| line.starts_with("game ")).count()
}

/// The processes that have inherited the mark of a directory.
fn marked(place: &TestDirectory) -> Vec<String> {
    let mark = format!("{MARK}={}", place.path("").display()).into_bytes();
    let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_marked = |path: &Path| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark)
    };
    let found = entries.filter(|path| path.join("environ").exists() && is_marked(path));
    found
        .map(|path| format!("{} {}", path.display(), fs::read_to_string(path.join("cmdline")).unwrap_or_default()))
        .collect()
}

/// Starts a match whose processes are marked.
fn start(place: &TestDirectory, options: &str) -> Child {
    let mut command = place.command(options);
    command.env(MARK, place.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until no marked process is left.
#[track_caller]
fn assert_none_left(place: &TestDirectory) {
    let until = Instant::now() + END;
    while !marked(place).is_empty() {
        assert!(Instant::now() < until, "{:?}", marked(place));
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_file_for_games_is_opened_before_the_first_game() {
    let place = place();
    let to = |file: &str| options(2).replace("games.ogn", file);
    fs::write(place.path("notes"), "mine\n").unwrap();
    fs::write(place.path("other.ogn"), "[Event \"mine\"]\n\n1. F f\n1-0\n\n").unwrap();
    fs::write(place.path("cut.ogn"), "[Event \"mine\"]\n\n1. F f").unwrap();
    fs::create_dir(place.path("folder")).unwrap();
    for (file, said) in [
        ("no/games.ogn", "there is no directory no; create it with: mkdir -p no"),
        ("folder", "it is a directory"),
        ("/dev/full", "no space left to write /dev/full"),
        ("notes", "notes holds something else than games of a match; to go on with a match, repeat its command"),
        ("other.ogn", "other.ogn holds games that are not of a match with a record"),
        ("cut.ogn", "cut.ogn holds games that are not of a match with a record"),
    ] {
        // A device has no end.
        let read = || (!file.starts_with('/')).then(|| fs::read(place.path(file)).ok());
        let before = read();
        let refused = place.awari(&to(file)).is(12).says(&[said]);
        assert_eq!((played(&refused), refused.out.as_str()), (0, ""), "{file}");
        assert_eq!(read(), before, "{file}");
    }
    // A command that ends before its first game leaves no file.
    place.awari("match --engine nosuch --engine nosuch --nodes 1 --out games.ogn").is(12).says(&["No such file"]);
    assert!(!place.path("games.ogn").exists());
    let printed = place.awari(&to("/dev/stdout")).is(0);
    assert_eq!(printed.out.matches("[Round ").count(), 2);
}

/// Wherever the file ends, the same games are there at last, and only those that are missing are played.
#[test]
fn a_match_goes_on_where_its_file_ends() {
    let place = place();
    let whole = place.awari(&options(4)).is(0);
    assert_eq!(played(&whole), 4);
    let bytes = fs::read(place.path("games.ogn")).unwrap();
    let ends: Vec<usize> = games(&place.path("games.ogn")).iter().map(String::len).collect();
    let first = ends[0];
    // The first game lacks the end of its result, then only the empty line behind it.
    for (end, zeros, missing) in [
        (first - 3, 0, 4),
        (first - 1, 0, 3),
        (first, 0, 3),
        (first + 40, 9, 3),
        (bytes.len() - 9, 0, 1),
        (bytes.len(), 0, 0),
    ] {
        fs::write(place.path("games.ogn"), [&bytes[..end], &vec![0; zeros]].concat()).unwrap();
        let again = place.awari(&options(4)).is(0);
        assert_eq!((played(&again), &again.out), (missing, &whole.out), "{end}: {}", again.err);
        assert_eq!(fs::read(place.path("games.ogn")).unwrap(), bytes, "{end}");
        assert_eq!(
            again.err.contains("an unfinished game"),
            ![0, first - 1, first, bytes.len()].contains(&end),
            "{}",
            again.err
        );
    }
    // What stands behind a finished game is no unfinished one.
    let noted = [&bytes[..bytes.len() - 1], b"My notes on this game"].concat();
    fs::write(place.path("games.ogn"), &noted).unwrap();
    place.awari(&options(4)).is(12).says(&["something behind game 4 that the match did not write"]);
    assert_eq!(fs::read(place.path("games.ogn")).unwrap(), noted);
}

#[test]
fn another_match_is_refused_by_the_name_of_what_differs() {
    let place = place();
    place.awari(&options(2)).is(0);
    let bytes = fs::read(place.path("games.ogn")).unwrap();
    fs::write(place.path("fewer"), OPENINGS.lines().next().unwrap()).unwrap();
    for (from, to, tag) in [
        ("--games 2", "--games 4", "Games is `2`, and that of this match `4`"),
        ("--nodes 80", "--nodes 81", "Limits2 is `nodes 80`, and that of this match `nodes 81`"),
        ("--name one", "--name three", "Name1 is `one`, and that of this match `three`"),
        ("4MiB", "5MiB", "Engine1 is `"),
        ("openings openings", "openings fewer", "Openings is `3, "),
        ("--games", "--seed 1 --games", "Seed is `0`, and that of this match `1`"),
        ("--games", "--sprt 0,10 --games", "Test is `none`, and that of this match `0,10`"),
        (
            "--games",
            "--margin 1s --games",
            "Patience is `margin 50ms, stall 30s`, and that of this match `margin 1s, stall",
        ),
        ("--games", "--rules oware --games", "Variant is `awari`, and that of this match `oware`"),
    ] {
        let refused = place.awari(&options(2).replacen(from, to, 1)).is(12);
        let refused = refused.says(&["games.ogn is of another match: its tag", tag, "repeat its command"]);
        assert_eq!((played(&refused), fs::read(place.path("games.ogn")).unwrap()), (0, bytes.clone()), "{to}");
    }
    // Games at a time do not matter.
    place.awari(&format!("{} --concurrency 2", options(2))).is(0);
    // A result that the moves do not have, a game that is there twice, and text behind the last game.
    let text = String::from_utf8(bytes.clone()).unwrap();
    let second = games(&place.path("games.ogn"))[1].clone();
    let other = if second.contains("\"1-0\"") { second.replace("1-0", "0-1") } else { second.replace("0-1", "1-0") };
    let lost = second.replace("[Termination \"", "[Termination \"South stalls");
    for changed in [text.replace(&second, &other), text.replace(&second, &lost), text.clone() + &second, text + "mine"]
    {
        fs::write(place.path("games.ogn"), &changed).unwrap();
        place.awari(&options(2)).is(12);
        assert_eq!(fs::read_to_string(place.path("games.ogn")).unwrap(), changed);
    }
}

#[test]
fn one_match_at_a_time_writes_a_file() {
    let place = place();
    let child = start(&place, &options(200_000));
    let until = Instant::now() + END;
    while games(&place.path("games.ogn")).len() < 2 && Instant::now() < until {
        sleep(Duration::from_millis(5));
    }
    place.awari(&options(200_000)).is(13).says(&["games.ogn is locked by another process"]);
    signal(&child, "TERM");
    let stopped = ended_child(child).is(75).says(&["of 200000 games; to go on, repeat the command"]);
    assert_eq!(played(&stopped), games(&place.path("games.ogn")).len());
    assert!(stopped.out.contains("one: "), "{}", stopped.out);
    assert_none_left(&place);
}

/// The table is printed, the games that were recorded stay, and the match goes on when there is space.
#[test]
fn a_full_disk_ends_a_match_with_its_table() {
    let place = place();
    let path = place.path("games.ogn");
    let whole = place.awari(&options(16)).is(0);
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    // The space that is checked first, and a little more.
    let full = place.shell(&format!("ulimit -f 9; exec \"$AWARI\" {}", options(16)));
    let full = full.is(12).says(&["cannot write games.ogn: the file size limit", "repeat the command"]);
    let kept = games(&path).len();
    assert!((4..16).contains(&kept) && full.out.contains("one: Elo "), "{full:?}");
    assert_eq!(played(&full), kept);
    assert_eq!(fs::read(&path).unwrap(), bytes[..fs::metadata(&path).unwrap().len() as usize]);
    // There is no space for another game.
    place.shell(&format!("ulimit -f 9; exec \"$AWARI\" {}", options(16))).is(12).says(&["the file size limit"]);
    let again = place.awari(&options(16)).is(0);
    assert_eq!((played(&again), &again.out), (16 - kept, &whole.out));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// Scripts that start an engine and leave processes behind: one that goes on in its group, and one in a
/// session of its own.
const WRAPPERS: [&str; 2] = [
    "#!/bin/sh\nsleep 1000 &\n\"$@\" && sleep 1000\n",
    "#!/bin/sh\nsetsid sh -c 'sleep 1000 & sleep 1000' >/dev/null </dev/null &\n\"$@\"\nexit $?\n",
];

#[test]
fn engines_leave_no_processes() {
    let place = place();
    let foreign = tests::root().join("tests/support/foreign_engine.sh");
    for (number, wrapper) in WRAPPERS.into_iter().enumerate() {
        fs::write(place.path("wrapper"), wrapper).unwrap();
        for mode in ["good", "crash"] {
            let engine = format!("--engine 'sh wrapper sh \"{}\" {mode}'", foreign.display());
            let ours = format!("--engine '\"{}\" engine --hash 4MiB'", awari());
            let options = format!("match {engine} {ours} --nodes 40 --openings openings --games 2");
            let ended = ended_child(start(&place, &options)).is(0);
            assert_eq!(ended.out.contains("lost by a crash"), mode == "crash", "{ended:?}");
            // The match has waited for them.
            assert_eq!(marked(&place), Vec::<String>::new(), "{mode}, wrapper {number}");
        }
        let engine = format!("--engine 'sh wrapper \"{}\" engine --hash 4MiB'", awari());
        let options = format!("match {engine} {engine} --movetime 10s --openings openings --games 2");
        let mut child = start(&place, &options);
        let until = Instant::now() + END;
        // The match, and two guards with the script, the engine, and what stays.
        while marked(&place).len() < 9 && Instant::now() < until {
            sleep(Duration::from_millis(5));
        }
        assert!(marked(&place).len() >= 9, "{:?}", marked(&place));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_none_left(&place);
    }
    // An engine that kills its guard, and goes on.
    fs::write(place.path("killer"), "kill -9 $PPID; while :; do sleep 1; done").unwrap();
    let ours = format!("--engine '\"{}\" engine --hash 4MiB'", awari());
    let options = format!("match --engine 'sh killer' {ours} --nodes 40 --openings openings --games 2 --stall 1s");
    ended_child(start(&place, &options)).is(12).says(&["stalls before the match"]);
    assert_eq!(marked(&place), Vec::<String>::new());
}

/// How matches are played that are killed.
const VARIANTS: [&str; 4] = ["", "--concurrency 2", "--sprt 0,200", "--sprt 0,200 --concurrency 2"];

/// The table, the games and the time of a match that is not disturbed.
fn undisturbed(options: &str) -> (String, Vec<String>, Duration) {
    let place = place();
    let begun = Instant::now();
    let table = place.awari(options).is(0).out;
    (table, sorted(&place), begun.elapsed())
}

/// Plays matches that are killed at random moments and go on.
fn kill_and_continue(seed: u64, matches: u64, games_each: u32) {
    let random = Random::new(seed);
    let options = VARIANTS.map(|variant| format!("{} {variant}", options(games_each)));
    let mut known = BTreeMap::new();
    let (mut kills, mut kept) = (0, 0);
    for number in 0..matches {
        let mut random = random.branch(number);
        let variant = random.below(VARIANTS.len() as u64) as usize;
        let options = &options[variant];
        let (table, expected, time) = known.entry(variant).or_insert_with(|| undisturbed(options));
        let place = place();
        let what = format!("match {number}, {}", VARIANTS[variant]);
        // The first attempt never ends; later ones get longer.
        for attempt in 0.. {
            let before = games(&place.path("games.ogn"));
            let mut child = start(&place, options);
            let share = random.below(1000) as f64 / 1000.0;
            sleep(time.mul_f64(share * (0.8 + 0.4 * f64::from(attempt))));
            if child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
                let after = games(&place.path("games.ogn"));
                assert_eq!(after.get(..before.len()), Some(&before[..]), "{what}: a game is lost");
                kept += after.len() - before.len();
                continue;
            }
            let ended = ended_child(child).is(0);
            assert_eq!(ended.out, *table, "{what}: {}", ended.err);
            // Of several games at a time, some may end before the decision of a test that does not count them.
            let is_free = options.contains("--sprt") && options.contains("--concurrency");
            assert!(is_free || sorted(&place) == *expected, "{what}");
            break;
        }
        assert_none_left(&place);
    }
    println!("{matches} matches, {kills} kills, {kept} games kept");
    assert!(kills > 0);
}

/// The games of a match by their rounds, without the tags that the first one of the file has besides.
fn sorted(place: &TestDirectory) -> Vec<String> {
    let mut games = games(&place.path("games.ogn"));
    for game in &mut games {
        *game = game[game.find("[Round ").unwrap()..].to_owned();
    }
    games.sort();
    games
}

#[test]
fn a_killed_match_goes_on() {
    kill_and_continue(1, 2, 4);
}

/// `AWARI_TEST_MATCHES` plays more of them.
#[test]
#[ignore = "slow tier: dozens of killed matches"]
fn killed_matches_go_on() {
    let matches = std::env::var("AWARI_TEST_MATCHES").ok().and_then(|text| text.parse().ok());
    kill_and_continue(2, matches.unwrap_or(6), 12);
}
