//! `awari match` with a scripted foreign engine: well-behaved, crashing, silent, illegal, late and noisy.

use game::Rules;
use game::play::{Game, GameEnd};
use game::transcript::Transcript;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tests::directory::{CommandResult, TestDirectory, ended_child, signal};

/// The options of a match between the foreign engine and ours.
fn options(mode: &str) -> String {
    let foreign = tests::root().join("tests/support/foreign_engine.sh");
    format!(
        "match --engine 'sh \"{}\" {mode}' --engine '\"{}\" engine --hash 4MiB' --name foreign --name ours",
        foreign.display(),
        tests::awari()
    )
}

fn play(place: &TestDirectory, mode: &str, more: &str) -> CommandResult {
    place.awari(&format!("{} {more}", options(mode)))
}

/// The cells of the row of an engine: games, won, drawn, lost, points.
fn row(result: &CommandResult, name: &str) -> Vec<String> {
    let line = result.out.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).unwrap();
    line.split_whitespace().skip(1).take(5).map(str::to_owned).collect()
}

/// If both engines are the same program, the names of the engines are their commands.
#[test]
fn engines_that_call_themselves_the_same_are_named_by_their_commands() {
    let place = TestDirectory::new(1);
    let awari = tests::awari();
    let engines = format!("match --engine '\"{awari}\" engine --level beginner' --engine '\"{awari}\" engine'");
    let found = place.awari(&format!("{engines} --depth 1 --games 2")).is(0);
    assert!(found.out.contains("engine --level beginner") && !found.out.contains("(1)"), "{}", found.out);
    let named = place.awari(&format!("{engines} --depth 1 --games 2 --name weak")).is(0);
    assert_eq!(row(&named, "weak")[0], "2");
}

#[test]
fn a_foreign_engine_plays_by_the_rules() {
    let place = TestDirectory::new(1);
    let found = play(&place, "good", "--nodes 300 --games 6 --concurrency 2 --out games.ogn").is(0);
    assert_eq!(row(&found, "ours")[0], "6");
    assert!(!found.out.contains("lost by") && !found.out.contains("on time"), "{}", found.out);
    assert_eq!(found.err.lines().filter(|line| line.starts_with("game ")).count(), 6, "{}", found.err);
    // The games are those of the table, to their end by the rules.
    let text = fs::read_to_string(place.path("games.ogn")).unwrap();
    let mut games: Vec<&str> = text.split("[Event ").skip(1).collect();
    assert_eq!(games.len(), 6);
    // Two at a time end in any order.
    games.sort_by_key(|game| game.split_once("[Round ").unwrap().1);
    let mut won = 0;
    for (number, game) in games.iter().enumerate() {
        let transcript = Transcript::parse(Rules::AWARI, &format!("[Event {game}")).unwrap();
        let tag = |name: &str| transcript.tags.iter().find(|(found, _)| found == name).unwrap().1.clone();
        assert_eq!(tag("Round"), format!("{}.{}", number / 2 + 1, number % 2 + 1));
        let lead = lead(&transcript.game);
        let result = if lead > 0 {
            "1-0"
        } else if lead < 0 {
            "0-1"
        } else {
            "1/2-1/2"
        };
        assert_eq!((tag("Result").as_str(), game.trim_end().lines().last()), (result, Some(result)));
        let winner = if lead > 0 { tag("South") } else { tag("North") };
        won += usize::from(lead != 0 && winner == "ours");
        // Both games of a pair begin with the same two moves, with exchanged sides.
        if number % 2 == 1 {
            let before = Transcript::parse(Rules::AWARI, &format!("[Event {}", games[number - 1])).unwrap();
            let pits = |game: &Game| game.turns()[..2].iter().map(|turn| turn.pit).collect::<Vec<_>>();
            assert_eq!(pits(&before.game), pits(&transcript.game));
            assert_eq!(tag("South"), before.tags.iter().find(|(name, _)| name == "North").unwrap().1);
        }
    }
    assert_eq!(row(&found, "ours")[1], won.to_string());
    // It looks ahead; the foreign engine does not.
    assert!(won >= 5, "{}", found.out);
}

/// South's stones minus North's at the end of a game that is over or decided.
fn lead(game: &Game) -> i16 {
    let seats = game.now().seats;
    match game.outcome() {
        Some(outcome) => {
            assert!(matches!(outcome.end, GameEnd::CannotMove(_) | GameEnd::Repeats { .. }));
            outcome.lead.into()
        }
        None => {
            assert!(seats.south_store.max(seats.north_store) > 24, "{seats:?}");
            i16::from(seats.south_store) - i16::from(seats.north_store)
        }
    }
}

#[test]
fn an_engine_that_fails_loses_and_is_named() {
    let place = TestDirectory::new(1);
    for (mode, limits, said, named) in [
        ("crash", "--nodes 100", "crashes (exit status: 3)", "foreign: 2 games lost by a crash"),
        ("silent", "--nodes 100 --stall 400ms", "stalls", "foreign: 2 games lost by a stall"),
        ("silent", "--movetime 20ms --margin 1s --stall 1s", "stalls", "foreign: 2 games lost by a stall"),
        ("illegal", "--depth 2", "plays an illegal move (", "foreign: 2 games lost by an illegal move"),
        ("late", "--movetime 300ms --margin 300ms", "exceeds its time by ", "foreign: 2 games lost on time"),
        ("late", "--time 0.6+0 --margin 300ms", "exceeds its time by ", "foreign: 2 games lost on time"),
    ] {
        let found = play(&place, mode, &format!("{limits} --games 2")).is(0).says(&["foreign, South, ", said]);
        assert!(found.out.contains(named), "{mode}: {found:?}");
        assert_eq!(row(&found, "ours"), ["2", "2", "0", "0", "2.0"], "{mode}");
        assert!(found.out.contains("foreign: no Elo, since it lost all games"), "{}", found.out);
    }
}

#[test]
fn an_engine_may_say_much() {
    let place = TestDirectory::new(1);
    let found = play(&place, "noisy", "--depth 1 --games 2").is(0);
    assert!(!found.out.contains("lost by"), "{found:?}");
}

/// What an engine remarks before the match, such as an option that it refuses, is shown.
#[test]
fn remarks_before_a_match_are_shown() {
    let place = TestDirectory::new(1);
    fs::write(place.path("openings"), "\u{feff}FfBd\n").unwrap();
    let found = play(&place, "remarks", "--depth 1 --games 2 --openings openings").is(0);
    let said: Vec<&str> = found.err.lines().filter(|line| line.contains("` says: ")).collect();
    assert_eq!(said.len(), 1, "{}", found.err);
    assert!(said[0].ends_with("remarks` says: cannot allocate the table"), "{}", said[0]);
}

#[test]
fn a_match_that_cannot_begin_is_refused() {
    let place = TestDirectory::new(1);
    play(&place, "mute", "--nodes 10 --stall 300ms").is(12).says(&["stalls before the match", "uciok"]);
    place.awari("match --engine true --engine true --nodes 10").is(12).says(&["`true` crashes (exit status: 0)"]);
    place.awari("match --engine nosuch --engine true --nodes 10").is(12).says(&["`nosuch` crashes (No such file"]);
    place.awari("match --engine true --nodes 10").is(2).says(&["a match needs two engines", "found 1;"]);
    place.awari("match --engine '\"' --engine true --nodes 10").is(2).says(&["the command of an engine is not valid"]);
    place.awari("match --engine true --engine true").is(2).says(&["--movetime <TIME>"]);
    fs::write(place.path("openings"), "FfBd\n\nFF\n").unwrap();
    let refused = play(&place, "good", "--nodes 10 --openings openings").is(2);
    refused.says(&["openings, line 3: move 2, `F`: North is to move"]);
    fs::write(place.path("openings"), "# nothing\n").unwrap();
    play(&place, "good", "--nodes 10 --openings openings").is(2).says(&["there is no opening"]);
    play(&place, "good", "--nodes 10 --openings nosuch").is(12).says(&["nosuch"]);
}

/// A match of two scripted engines by some rules from one opening. Returns what it printed, and its first game.
fn played_by(rules: &str, modes: [&str; 2], opening: &str) -> (CommandResult, Transcript) {
    let place = TestDirectory::new(1);
    fs::write(place.path("openings"), opening).unwrap();
    let engine = |mode: &str| {
        let script = tests::root().join("tests/support/foreign_engine.sh");
        format!("--engine 'sh \"{}\" {mode} {rules}'", script.display())
    };
    let engines = modes.map(engine).join(" ");
    let options = "--name first --name second --nodes 1 --games 2 --openings openings --out games.ogn";
    let found = place.awari(&format!("match {engines} {options} --rules {rules}")).is(0);
    let text = fs::read_to_string(place.path("games.ogn")).unwrap();
    // Games end with an empty line, and a line of their result.
    let game = text.split("\n\n[").next().unwrap();
    let transcript = Transcript::parse(Rules::by_name(rules).unwrap(), game).unwrap();
    (found, transcript)
}

/// The same moves and ends are judged by the rules of the match.
#[test]
fn the_rules_of_a_match_are_those_asked_for() {
    let tag = |transcript: &Transcript, name: &str| {
        transcript.tags.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
    };
    // A would capture all that North has, and E is legal.
    let slam = "6-0-0-0-1-0-1-0-0-0-0-0-20-20-S";
    let (refused, game) = played_by("awari", ["blunt", "good"], slam);
    assert!(refused.err.contains("first, South, plays an illegal move (A)"), "{}", refused.err);
    assert_eq!((game.game.turns().len(), game.variant()), (0, None));
    let (_, game) = played_by("oware", ["blunt", "good"], slam);
    let first = game.game.turns()[0];
    assert_eq!((first.text().to_string().as_str(), first.captured), ("A", 0));
    assert_eq!(game.variant(), Some(Rules::OWARE));

    // D gives North nothing, though F would.
    let (refused, _) = played_by("oware", ["blunt", "good"], "0-0-0-1-0-2-0-0-0-0-0-0-22-23-S");
    assert!(refused.err.contains("first, South, plays an illegal move (D)"), "{}", refused.err);

    // After F North can give South nothing: the game of oware ends there, and that of awari one move later.
    for (rules, moves, side) in [("oware", 1, "North"), ("awari", 2, "South")] {
        let (_, game) = played_by(rules, ["good", "good"], "0-0-0-0-0-1-1-0-0-1-0-0-20-23-S");
        assert_eq!(tag(&game, "Termination"), Some(format!("{side} cannot move")), "{rules}");
        assert_eq!((game.game.turns().len(), lead(&game.game)), (moves, 22 - 24), "{rules}");
    }

    // A stone of each side goes round. By oware each side gets the stones of its row.
    let round = "1-0-0-0-0-0-1-0-1-0-0-0-22-23-S";
    let leads = ["awari", "oware"].map(|rules| {
        let (_, game) = played_by(rules, ["good", "good"], round);
        assert_eq!(tag(&game, "Termination").as_deref(), Some("the position is repeated"), "{rules}");
        let lead = lead(&game.game);
        let result = ["0-1", "1/2-1/2", "1-0"][(lead.signum() + 1) as usize];
        assert_eq!(tag(&game, "Result").as_deref(), Some(result), "{rules}");
        let seats = game.game.now().seats;
        lead - (i16::from(seats.south_store) - i16::from(seats.north_store))
    });
    assert!(leads[0] == 0 && leads[1] != 0, "{leads:?}");
}

/// Engines without databases are set to the rules of the match; one with databases of other rules is refused,
/// and of one that names no rules the match says so.
#[test]
fn engines_play_by_the_rules_of_the_match() {
    let place = TestDirectory::built(1);
    let ours = |options: &str| format!("--engine '\"{}\" engine --hash 4MiB {options}'", tests::awari());
    let limits = "--nodes 60 --plies 1 --games 8 --rules oware";
    let found = place.awari(&format!("match {} {} {limits}", ours(""), ours("--rules oware"))).is(0);
    assert!(!found.out.contains("lost by") && !found.err.contains("does not say"), "{found:?}");
    let refused = place.awari(&format!("match {} {} {limits}", ours(""), ours("--dir run"))).is(2);
    refused.says(&["engine --hash 4MiB --dir run` plays by the rules awari, and the match is by oware"]);
    play(&place, "good", "--depth 1 --games 2")
        .is(0)
        .says(&["good` does not say by which rules it plays", "is by awari"]);
}

#[test]
fn unknown_rules_of_a_match_are_refused() {
    let place = TestDirectory::new(1);
    place.awari("match --engine true --engine true --nodes 1 --rules kalah").is(2).says(&["kalah", "oware"]);
}

/// A sequential test ends the match long before its last game.
#[test]
fn a_decided_test_ends_the_match() {
    let place = TestDirectory::new(1);
    // Few stones, so that games are short.
    fs::write(place.path("openings"), "1-0-2-0-1-3-1-0-2-1-1-3-16-17-S\n0-1-0-2-2-3-1-1-2-0-1-2-16-17-N\n").unwrap();
    let options = "--nodes 300 --games 1000 --openings openings --sprt 0,300 --concurrency 2";
    let crashing = play(&place, "crash", options).is(0);
    assert!(crashing.out.contains("test of Elo 0 against 300: decided for Elo 0, "), "{}", crashing.out);
    let games: u32 = row(&crashing, "ours")[0].parse().unwrap();
    assert!((4..100).contains(&games), "{}", crashing.out);
}

#[test]
fn ctrl_c_ends_with_the_table() {
    let place = TestDirectory::new(1);
    let mut command =
        place.command(&format!("{} --nodes 50 --games 1000000 --plies 2 --out games.ogn", options("crash")));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The first line says that the rules of the other engine are not known.
    let reported: Vec<String> = lines.by_ref().skip(1).take(4).map(Result::unwrap).collect();
    let asked = Instant::now();
    signal(&child, "INT");
    std::thread::spawn(move || lines.for_each(drop));
    let found = ended_child(child).is(75);
    assert!(reported.iter().all(|line| line.starts_with("game ")), "{reported:?}");
    assert!(asked.elapsed() < Duration::from_secs(20));
    let games: usize = row(&found, "foreign")[0].parse().unwrap();
    assert!(games >= 4 && found.out.contains("lost by a crash"), "{}", found.out);
    let text = fs::read_to_string(place.path("games.ogn")).unwrap();
    // The table counts pairs.
    assert_eq!(text.matches("[Result ").count() / 2 * 2, games);
}
