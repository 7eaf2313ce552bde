//! Games in the terminal: analysis, play, and the protocol of oware programs.

use game::reference::{self, ReferenceMove, solve_up_to};
use std::fs;
use std::process::Stdio;
use tests::directory::{TestDirectory, ended};

/// Seven stones: South to move from A to F.
const START: &str = "0-1-0-1-0-2-1-0-1-0-0-1-20-21-S";

/// Runs a command with lines on stdin, and returns its output.
fn play(place: &TestDirectory, line: &str, lines: &str) -> String {
    fs::write(place.path("lines"), lines).unwrap();
    let mut command = place.command(line);
    command.stdin(Stdio::from(fs::File::open(place.path("lines")).unwrap()));
    ended(command).is(0).out
}

#[test]
fn every_move_of_a_game_is_judged_by_the_rules() {
    let place = TestDirectory::built(7);
    let solved = solve_up_to(7);
    // Always the first legal move, good or not.
    let mut at = [0, 1, 0, 1, 0, 2, 1, 0, 1, 0, 0, 1];
    let (mut text, mut losses) = (format!("[Event \"a game\"]\n[FEN \"{START}\"]\n\n"), Vec::new());
    for number in 0..12 {
        let moves = reference::moves(at);
        let value = |played: &ReferenceMove| match played {
            ReferenceMove::Legal { captured, child } => {
                let left = child.iter().sum::<u8>();
                Some((*captured as i8 - solved[usize::from(left)][child], *child))
            }
            _ => None,
        };
        let Some((pit, (value_played, child))) =
            moves.iter().enumerate().find_map(|(pit, played)| Some((pit, value(played)?)))
        else {
            break;
        };
        let best = moves.iter().filter_map(value).map(|(value, _)| value).max().unwrap();
        losses.push(i64::from(best - value_played));
        let name = if number % 2 == 0 { b'A' } else { b'a' } + pit as u8;
        text += &format!("{}{} ", name as char, at[pit]);
        at = child;
    }
    assert!(losses.len() > 6 && losses.iter().any(|&loss| loss > 0), "{losses:?}");
    fs::write(place.path("game.ogn"), &text).unwrap();
    let json = place.awari("analyze --dir run game.ogn --json").is(0).json();
    let found: Vec<i64> =
        json["moves"].as_array().unwrap().iter().map(|judged| judged["loss"].as_i64().unwrap()).collect();
    assert_eq!(found, losses);
    let lost: i64 = losses.iter().step_by(2).sum();
    assert_eq!(json["south"]["lost"].as_i64().unwrap(), lost);
    let shown = place.awari("analyze --dir run game.ogn").is(0).out;
    assert!(shown.starts_with("Event: a game\n") && shown.contains(&format!("{lost} stones lost")), "{shown}");
    // Databases of seven stones prove nothing of an opening.
    let opening = "analyze --dir run --nodes 1000 'F4 f4 B5'";
    let estimated =
        place.awari(opening).is(0).shows(&["3 of 3 moves estimated by a search", "South: 2 moves, 0 judged"]).out;
    assert_eq!(estimated.matches("  estimated\n").count(), 3, "{estimated}");
    let json = place.awari(&format!("{opening} --json")).is(0).json();
    let (moves, south) = (json["moves"].as_array().unwrap(), &json["south"]["estimated"]);
    let stones = |value: &serde_json::Value| value.as_f64().unwrap();
    let mut lost = 0.0;
    for (number, judged) in moves.iter().enumerate() {
        let estimate = &judged["estimate"];
        assert_eq!((&judged["loss"], judged["best"]["lo"].as_i64()), (&serde_json::Value::Null, Some(-48)));
        let loss = stones(&estimate["best"]) - stones(&estimate["value"]);
        assert!((stones(&estimate["loss"]) - loss.max(0.0)).abs() < 1e-9, "{judged}");
        assert_eq!(loss > 0.0, judged["better"].as_array().unwrap().len() == 1, "{judged}");
        lost += if number % 2 == 0 { loss.max(0.0) } else { 0.0 };
    }
    assert!((stones(&south["lost"]) - lost).abs() < 1e-9 && south["judged"] == 2, "{json}");
    // The same without databases.
    assert_eq!(place.awari(&opening.replace(" --dir run", "")).is(0).out, estimated);
    place.awari("analyze --dir run '[FEN \"0-1-0-2-0-1-1-0-2-0-1-0-20-20-S\"] F'").is(0).shows(&[
        "South: 1 move, 1 judged, 0 wrong, ",
        " a move, 100 % right\n",
        "North: 0 moves, ",
    ]);
    let empty = place.awari("analyze --dir run '[Event \"none\"]'").is(3).out;
    assert_eq!(empty, "Event: none\nthe game has no moves to analyze\n");
    // The same game from a pipe.
    let piped = place.shell("cat game.ogn | \"$AWARI\" analyze --dir run /dev/stdin").is(0);
    assert_eq!(piped.out, shown);
    let worst = losses.iter().max().unwrap();
    assert!(shown.contains(&format!("  {worst}  ")), "{shown}");
    place.awari("analyze --dir run 'F4 F4'").is(2).says(&["move 2, `F4`: North is to move"]);
    // The name of a missing file is not a game.
    for name in ["nosuch.ogn", "games/nosuch", "nosuch", "face.ogn"] {
        place.awari(&format!("analyze --dir run {name}")).is(2).says(&[name, "is neither a file nor a game"]);
    }
    fs::create_dir(place.path("folder")).unwrap();
    place.awari("analyze --dir run folder").is(12).says(&["folder"]);
}

/// A game comes back with values and marks of errors, from the point of view of the player who moves or of South.
#[test]
fn games_are_annotated() {
    let place = TestDirectory::built(9);
    let start = "2-0-1-1-2-0-1-0-0-0-1-1-19-20-S";
    fs::write(place.path("game.ogn"), format!("[Event \"e\"]\n[FEN \"{start}\"]\n\n1. A a 2. E a *\n")).unwrap();
    let analyze = |options: &str| place.awari(&format!("analyze --dir run {options} game.ogn")).is(0);
    let written = analyze("--ogn").out;
    let json = analyze("--json").json();
    let moves = json["moves"].as_array().unwrap();
    for mark in ["??", "?", ""] {
        let expected = moves.iter().filter(|judged| match judged["loss"].as_u64().unwrap() {
            5.. => mark == "??",
            2.. => mark == "?",
            _ => mark.is_empty(),
        });
        let marked =
            |word: &&str| word.starts_with(['A', 'a', 'E']) && word.trim_start_matches(char::is_alphabetic) == mark;
        let body = written.split_once("\n\n").unwrap().1;
        assert_eq!(body.split_whitespace().filter(marked).count(), expected.count(), "{mark}: {written}");
    }
    assert!(
        written.starts_with("[Annotator \"awari ") && written.contains(start) && written.ends_with("*\n"),
        "{written}"
    );
    // It is a game again.
    fs::write(place.path("again.ogn"), &written).unwrap();
    assert_eq!(place.awari("analyze --dir run --json again.ogn").is(0).json()["moves"], json["moves"]);
    // From South's point of view, values change their sign where North moves, and only there.
    let south = analyze("--json --view south").json();
    for (number, judged) in south["moves"].as_array().unwrap().iter().enumerate() {
        let sign = if number % 2 == 0 { 1 } else { -1 };
        assert_eq!(judged["value"].as_i64().unwrap(), sign * moves[number]["value"].as_i64().unwrap(), "{judged}");
        assert_eq!(judged["loss"], moves[number]["loss"]);
    }
    assert!(analyze("--view south").out.contains("values for South\n"));
    assert!(analyze("--ogn --view south").out.contains("values for South"));
    place.awari("analyze --dir run --ogn --json game.ogn").is(2);
}

/// All games of a file are analyzed, or a chosen one; what is no game is an error before the first one is analyzed.
#[test]
fn files_of_several_games_are_analyzed() {
    let place = TestDirectory::new(1);
    let analyze = |options: &str| place.awari(&format!("analyze --nodes 20 {options} games.ogn"));
    let three =
        "[Round \"1\"]\n\n1. F! f?! {good} (1... a) *\n\n[Round \"2\"]\n\n1. E $1 e 1-0\n\n[Round \"3\"]\n\n*\n";
    fs::write(place.path("games.ogn"), three).unwrap();
    let all = analyze("").is(0).out;
    let (second, third) =
        (all.find("\n\ngame 2 of 3\nRound: 2\n"), all.find("\n\ngame 3 of 3\nRound: 3\nthe game has no moves"));
    assert!(all.starts_with("game 1 of 3\nRound: 1\n") && second < third && second.is_some(), "{all}");
    let lines = analyze("--json").is(0).out;
    let games: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let moves: Vec<usize> = games.iter().map(|game| game["moves"].as_array().unwrap().len()).collect();
    assert_eq!((moves, &games[1]["game"], &games[1]["games"]), (vec![2, 2, 0], &2.into(), &3.into()));
    assert_eq!(analyze("--json --game 2").is(0).json()["moves"], games[1]["moves"]);
    assert!(analyze("--game 2").is(0).out.starts_with("game 2 of 3\nRound: 2\n"));
    analyze("--game 3").is(3).shows(&["no moves to analyze"]);
    analyze("--game 4").is(3).says(&["there is no game 4: the text has 3 games"]);
    analyze("--game 0").is(2);
    for (text, part) in [
        ("F f *\n\nE e 1-0\ngarbage\n", "invalid game 3, line 4: move 1: expected a move"),
        ("F f *\n\n{E e *\n", "line 3: the comment that begins here does not end"),
        (
            "F f *\n[Variant \"Kalah\"]\nE e *\n",
            "game 2, line 2: the tag Variant: there are no rules \"Kalah\"; known are awari",
        ),
    ] {
        fs::write(place.path("games.ogn"), text).unwrap();
        for choice in ["", "--game 1"] {
            assert_eq!(analyze(choice).is(2).says(&[part]).out, "");
        }
    }
    let long = "(cat games.ogn; yes '*' | head -c 17000000) | \"$AWARI\" analyze -";
    place.shell(long).is(2).says(&["more than 16 MiB"]);
}

#[test]
fn a_game_is_played_taken_back_and_saved() {
    let place = TestDirectory::built(7);
    let command = format!("play --dir run --position {START} --level perfect --seed 1");
    let said =
        play(&place, &command, "help\nvalues\nbest\nline\na\nA\n6\nundo\nF\nsave kept.ogn\nsave\nnonsense\n7\nquit\n");
    let again = play(&place, &command, "undo\nquit\n");
    assert!(again.contains("there is no move to undo\n"), "{again}");
    for part in [
        "\"nonsense\" is not a move or a command\nmoves: 1 to 6, ",
        "\"7\" is not a move",
        "commands: values, ",
        "needs the name of a file",
        "North 21   South 20",
        "score ",
        "North plays ",
        "saved in kept.ogn",
        "South is to move",
        "pit A is empty",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert_eq!(said.matches("South plays F2").count(), 2);
    // Moves are parsed as they are printed, and checked against the board.
    let said = play(&place, &command, "F3\nF2\nundo\nF2x0\nquit\n");
    assert!(said.contains("move 1: F3 says 3 stones, pit F holds 2"), "{said}");
    let played = said.matches("South plays F2").count();
    assert_eq!((played, said.matches("says").count()), (2, 1), "{said}");
    let kept = fs::read_to_string(place.path("kept.ogn")).unwrap();
    assert!(kept.starts_with(&format!("[FEN \"{START}\"]\n\n1. F ")), "{kept}");
    place.awari("analyze --dir run kept.ogn").is(0);
    place.awari("play --dir run --level best").is(2);
    let said = play(&place, &command, &format!("{}\nsave other.ogn\n{}\nF\n", "F".repeat(70_000), "x".repeat(100)));
    assert!(said.contains("more than 65536 bytes and was ignored\nSouth> saved"), "{said}");
    assert!(said.contains("South plays F2"), "{said}");
}

/// The program against itself, at every level: each game ends by the rules.
#[test]
fn every_level_plays_to_the_end() {
    let place = TestDirectory::built(7);
    for level in ["beginner", "casual", "strong", "expert", "perfect"] {
        for seed in 1..=3 {
            let command = format!("play --dir run --side none --level {level} --seed {seed} --position random:7");
            let said = play(&place, &command, "");
            let last = said.trim_end().lines().last().unwrap();
            assert!(last.contains(" wins ") || last.contains("a draw, "), "{last}");
        }
    }
}

/// Without databases: every level plays a whole game from the opening, and says that its moves rest on estimates.
#[test]
fn every_level_plays_from_the_opening() {
    let place = TestDirectory::new(1);
    for level in ["beginner", "casual", "strong", "expert", "perfect"] {
        let said = play(&place, &format!("play --side none --level {level} --seed 5 --nodes 300"), "");
        let last = said.trim_end().lines().last().unwrap();
        assert!(last.contains(" wins ") || last.contains("a draw, "), "{last}");
        assert!(said.contains(" rests on an estimate, ") && !said.contains("-48 to +48"), "{said}");
    }
    let said = play(&place, "play --nodes 1000 --seed 1", "values\nbest\nline\nF\nquit\n");
    for part in ["estimate ", "of 48 stones\n", "best, estimated", ", by estimate: ", " ...\n", "South plays F4"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    // To a person who does not ask, no value is given away.
    let said = play(&place, "play --nodes 1000 --seed 1", "F\n1\n2\nquit\n");
    assert!(said.contains("North plays ") && !said.contains("estimate") && !said.contains("proved"), "{said}");
    // A position whose score a search proves.
    let said = play(&place, "play --side none --position 0-0-0-0-1-1-1-0-0-0-0-0-23-22-S", "");
    assert!(said.contains(", as a search proved\n"), "{said}");
    // A directory that is named must hold databases.
    place.awari("play --dir nowhere").is(3).says(&["no databases"]);
}

#[test]
fn the_oware_protocol_is_answered() {
    let place = TestDirectory::built(7);
    let commands = format!(
        "uci\nisready\nposition fen {START} moves F\nposition fen {START}\ngo movetime 100\nsetoption name Level value beginner\n\
         setoption name Level value weak\nposition startpos moves FfBd\nposition here\nposition fen bad\nwhat\ngo\nucinewgame\nquit\nuci\n"
    );
    let said = play(&place, "engine --dir run", &commands);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("id name awari ") && lines.contains(&"uciok") && lines.contains(&"readyok"), "{said}");
    let score: i32 = {
        let probe = place.awari(&format!("probe --dir run {START} --json")).is(0).json();
        100 * probe["score"].as_i64().unwrap() as i32
    };
    assert!(said.contains(&format!(" score cp {score} nodes 0 ")), "{said}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("bestmove ")).count(), 2, "{said}");
    assert!(said.contains(&format!("info string proved {0} {0}\n", score / 100)), "{said}");
    assert_eq!(lines.iter().filter(|line| **line == "uciok").count(), 1, "nothing is answered after quit");
    for part in [
        "there is no level",
        "info string fen: expected 12 numbers",
        "expected startpos or fen",
        "unknown command what",
        "info string proved -48 48",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}
