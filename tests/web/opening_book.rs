//! Opening books in use: the engine, games in the terminal, analyses and the server.

use serde_json::{Value, json};
use tests::directory::TestDirectory;
use tests::serve_process::ServeProcess;

/// Expands a book of the opening.
fn expand(place: &TestDirectory) {
    place.awari("book expand --dir run --positions 150 --nodes 100 --sides both").is(0);
}

/// Databases of up to three stones, and a book of the opening.
fn directory_with_book() -> TestDirectory {
    let place = TestDirectory::built(3);
    expand(&place);
    place
}

/// The positions of a book, and the estimates in stones of those that are in it, as `awari book export` writes them.
fn exported(place: &TestDirectory) -> Vec<(String, f64, String)> {
    let text = place.awari("book export --dir run").is(0).out;
    let line = |line: &str| {
        let (pits, rest) = line.split_once("; ").unwrap();
        let mut words = rest.split(' ').skip(2);
        (pits.to_owned(), words.next().unwrap().parse().unwrap(), words.next().unwrap().to_owned())
    };
    text.lines().map(line).collect()
}

/// The pits after a move of the opening, by the rule text: sowing without captures, seen from the other player.
fn sown_from_opening(pit: usize) -> String {
    let mut pits = [4u8; 12];
    pits[pit] = 0;
    (1..=4).for_each(|step| pits[(pit + step) % 12] += 1);
    pits.rotate_left(6);
    pits.map(|stones| stones.to_string()).join(" ")
}

/// The best first move by the exported text alone, and whether the book goes on after it.
fn best_first_move(place: &TestDirectory) -> (usize, f64) {
    let positions = exported(place);
    let value = |pit| {
        let after = sown_from_opening(pit);
        // Not negated, which makes a negative zero.
        0.0 - positions
            .iter()
            .find(|(pits, ..)| *pits == after)
            .unwrap_or_else(|| panic!("{after} is not in the book"))
            .1
    };
    (0..6)
        .map(|pit| (pit, value(pit)))
        .max_by(|reply, other| reply.1.total_cmp(&other.1).then(other.0.cmp(&reply.0)))
        .unwrap()
}

fn name(pit: usize) -> char {
    (b'A' + pit as u8) as char
}

#[test]
fn the_engine_plays_the_best_moves_of_a_book_and_says_where_it_ends() {
    let place = directory_with_book();
    let (pit, value) = best_first_move(&place);
    let best = name(pit);
    let script =
        |lines: &str, options: &str| place.shell(&format!("printf '{lines}' | $AWARI engine {options}")).is(0).out;
    let out = script("position startpos\\ngo depth 1\\n", "--dir run");
    assert!(out.contains(&format!("bestmove {best}")), "{out}");
    let cents = (value * 100.0).round();
    assert!(out.contains(&format!("score cp {cents} pv {best}")) && out.contains("the book plays"), "{out}");
    // Without the book there is a search.
    for options in ["--dir run --book none", "", "--dir run --level strong"] {
        let out = script("position startpos\\ngo depth 1\\n", options);
        assert!(!out.contains("book") && out.contains(" nodes ") && out.contains("bestmove"), "{options}: {out}");
    }
    let off = "setoption name OwnBook value false\\nposition startpos\\ngo depth 1\\n";
    assert!(!script(off, "--dir run").contains("book"));
    let file = "setoption name BookFile value run/books/opening.sqlite\\nposition startpos\\ngo depth 1\\n";
    assert!(script(file, "").contains(&format!("bestmove {best}")));
    let missing = script("setoption name BookFile value no.sqlite\\nposition startpos\\ngo depth 1\\n", "");
    assert!(missing.contains("there is no book no.sqlite") && missing.contains("bestmove"), "{missing}");
    // An analysis searches, since it has no move to make.
    let infinite = script("position startpos\\ngo infinite\\nstop\\n", "--dir run");
    assert!(!infinite.contains("the book plays"), "{infinite}");
    // The end of the book is announced once.
    let ends =
        "position startpos\\ngo depth 1\\nposition fen 1-1-0-0-9-1-1-9-0-0-1-1-12-12-S\\ngo depth 1\\ngo depth 1\\n";
    let out = script(ends, "--dir run");
    assert_eq!(out.matches("info string the book ends here").count(), 1, "{out}");
}

#[test]
fn a_game_in_the_terminal_follows_the_book() {
    let place = directory_with_book();
    let (pit, value) = best_first_move(&place);
    let best = name(pit);
    let out = place.shell("printf 'book\\nquit\\n' | $AWARI play --dir run --side north --nodes 10").is(0).out;
    let said = format!("{best}4 is the book's move");
    assert!(out.contains(&said) || out.contains(&format!("{best} is the book's move, worth {value}")), "{out}");
    // The command shows the book after that move, whose moves are North's.
    assert!(out.contains("at least") && out.contains("goes on"), "{out}");
    let both = place.shell("$AWARI play --dir run --side none --nodes 10 < /dev/null").is(0).out;
    assert!(both.contains("is the book's move"), "{both}");
    assert_eq!(both.matches("the book ends here").count(), 1, "{both}");
    let none = place.shell("printf 'book\\nquit\\n' | $AWARI play --dir run --book none --nodes 10").is(0).out;
    assert!(none.contains("there is no book"), "{none}");
    place.awari("play --dir run --book no.sqlite").is(3).says(&["there is no book no.sqlite"]);
}

#[test]
fn an_analysis_says_who_left_the_book() {
    let place = directory_with_book();
    let (best, _) = best_first_move(&place);
    let worse = (0..6).find(|&pit| pit != best).unwrap();
    let positions = exported(&place);
    let value = |pit| -positions.iter().find(|(pits, ..)| *pits == sown_from_opening(pit)).unwrap().1;
    let answer = |pit: usize| {
        let third = (0..6).find(|&other| other != pit).unwrap();
        let game = format!("{} f {}", name(pit), name(third));
        place.awari(&format!("analyze --dir run --nodes 10 --json '{game}'")).is(0).json()
    };
    let left = answer(worse);
    assert_eq!(left["book"]["left_by"], "south", "{left}");
    assert_eq!(left["book"]["left_with"], 1);
    let loss = left["moves"][0]["book"]["loss"].as_f64().unwrap();
    assert!((loss - (value(best) - value(worse))).abs() < 1e-9, "{left}");
    let followed = answer(best);
    assert_eq!(followed["moves"][0]["book"]["best"], true, "{followed}");
    assert_ne!(followed["book"]["left_with"], 1);
    // Moves beyond the end of the book have nothing to be compared with.
    let held = followed["moves"].as_array().unwrap().iter().filter(|judged| !judged["book"].is_null()).count();
    assert_eq!(followed["book"]["moves"], held);
    let text = place.awari(&format!("analyze --dir run --nodes 10 '{}4 f4'", name(worse))).is(0).out;
    assert!(text.contains(&format!("South left the book with move 1, {}4", name(worse))), "{text}");
    let none =
        place.awari(&format!("analyze --dir run --book none --nodes 10 --json '{}4 f4'", name(worse))).is(0).json();
    assert_eq!((&none["book"], &none["moves"][0]["book"]), (&Value::Null, &Value::Null));
}

#[test]
fn the_server_answers_from_the_book() {
    let place = directory_with_book();
    let (best, value) = best_first_move(&place);
    let positions = exported(&place);
    let served = ServeProcess::start(&place);
    let opening = "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S";
    let found = served.json(&format!("/v1/book?pos={opening}&depth=4"));
    assert_eq!(found["positions"], positions.len());
    assert_eq!(found["moves"][0]["pit"], name(best).to_string());
    assert_eq!(found["moves"][0]["value"]["estimate"], (value * 100.0).round() as i64);
    assert_eq!(found["line"][0], name(best).to_string());
    // Every move of the tree has the estimate of the position after it.
    let mut seen = 0;
    let mut stack: Vec<Value> = found["moves"].as_array().unwrap().clone();
    while let Some(reply) = stack.pop() {
        let parts: Vec<&str> = reply["next"].as_str().unwrap().split('-').collect();
        let pits: Vec<&str> = match parts[14] {
            "S" => parts[..12].to_vec(),
            _ => [&parts[6..12], &parts[..6]].concat(),
        };
        let (_, estimate, state) = positions.iter().find(|(text, ..)| *text == pits.join(" ")).unwrap();
        let expected = reply["captures"].as_f64().unwrap() * 100.0 - estimate * 100.0;
        assert!((reply["value"]["estimate"].as_f64().unwrap() - expected).abs() < 1e-6, "{reply}");
        assert_eq!(reply["goes_on"] == true, state == "interior", "{reply}");
        stack.extend(reply["moves"].as_array().unwrap().iter().cloned());
        seen += 1;
    }
    assert!(seen > 40, "{seen} moves");
    let chosen = served.json(&format!("/v1/choose?pos={opening}&level=perfect"));
    assert_eq!((&chosen["source"], &chosen["move"]["pit"]), (&json!("book"), &json!(name(best).to_string())));
    assert_eq!(served.json(&format!("/v1/choose?pos={opening}&level=beginner"))["source"], "search");
    let other = served.json("/v1/book?pos=1+1+0+0+9+1+1+9+0+0+1+1");
    assert_eq!((&other["found"], &other["value"], &other["line"]), (&json!(false), &Value::Null, &json!([])));
    let without = ServeProcess::of(place.command("serve --dir run --book none --listen 127.0.0.1:0"));
    assert_eq!(without.json(&format!("/v1/book?pos={opening}"))["positions"], 0);
    assert_eq!(without.json(&format!("/v1/choose?pos={opening}&level=perfect&seed=1"))["source"], "search");
}
