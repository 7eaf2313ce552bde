//! Sessions of `awari engine` with a program that reads its answers.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tests::directory::TestDirectory;

/// Time after which an engine counts as hung.
const HUNG: Duration = Duration::from_secs(60);

struct Session {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Session {
    fn start(place: &TestDirectory, options: &str) -> Session {
        let mut command = place.command(&format!("engine {options}"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().for_each(|line| drop(sender.send(line.unwrap()))));
        Session { stdin: child.stdin.take().unwrap(), child, lines }
    }

    fn say(&mut self, text: &str) {
        self.stdin.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Reads up to a line that begins with a word, and returns all lines. None of them is empty.
    #[track_caller]
    fn until(&mut self, word: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.lines.recv_timeout(HUNG).unwrap_or_else(|error| panic!("{word}: {error}, {lines:?}"));
            assert!(!line.trim().is_empty(), "an empty line after {lines:?}");
            lines.push(line);
            if lines.last().unwrap().starts_with(word) {
                return lines;
            }
        }
    }

    #[track_caller]
    fn request(&mut self, text: &str, word: &str) -> Vec<String> {
        self.say(text);
        self.until(word)
    }

    /// Asserts that nothing is said for some time, other than `info`.
    #[track_caller]
    fn is_quiet(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            assert!(line.starts_with("info "), "{line}");
        }
    }

    /// The memory of the engine that the system has committed.
    fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    #[track_caller]
    fn quit(mut self) {
        self.say("quit");
        self.has_ended();
    }

    /// Asserts that the engine ends by itself.
    #[track_caller]
    fn has_ended(mut self) {
        let until = Instant::now() + HUNG;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the engine does not end");
    }
}

impl Drop for Session {
    /// An engine that hangs does not outlast its test.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number after a word of a line.
fn number(line: &str, word: &str) -> i64 {
    let mut words = line.split_whitespace().skip_while(|found| *found != word);
    words.nth(1).unwrap_or_else(|| panic!("{word} is not in {line}")).parse().unwrap()
}

/// The last line that reports a search.
fn report(lines: &[String]) -> &String {
    lines.iter().rfind(|line| line.starts_with("info depth ")).unwrap()
}

/// The first move does not pay for the memory of the table.
#[test]
fn an_engine_that_is_ready_has_committed_its_table() {
    let place = TestDirectory::new(1);
    let mut engine = Session::start(&place, "");
    engine.request("uci", "uciok");
    let before = engine.resident_bytes();
    // After a game with one table, one of another size.
    for (mebibytes, text) in [(64, ""), (96, "ucinewgame\nposition startpos\n")] {
        engine.request(&format!("{text}setoption name Hash value {mebibytes}\nisready"), "readyok");
        let committed = engine.resident_bytes() - before;
        assert!(committed >= (mebibytes - 2) << 20, "{committed} bytes of {mebibytes} MiB");
    }
    engine.quit();
}

#[test]
fn a_search_is_stopped_at_once() {
    let place = TestDirectory::new(1);
    let mut engine = Session::start(&place, "");
    engine.request("uci", "uciok");
    let mut shortest = HUNG;
    for _ in 0..20 {
        engine.say("position startpos moves Ff\ngo infinite");
        engine.is_quiet(Duration::from_millis(30));
        // Other questions are answered meanwhile.
        engine.request("isready", "readyok");
        let asked = Instant::now();
        engine.request("stop", "bestmove ");
        shortest = shortest.min(asked.elapsed());
    }
    // A machine under load delays some answers.
    assert!(shortest < Duration::from_millis(20), "{shortest:?}");
    // The reply to an infinite search waits for `stop` even if everything is proved.
    engine.say("position fen 0-0-0-0-0-1-1-0-0-0-0-0-23-23-S\ngo infinite");
    engine.is_quiet(Duration::from_millis(200));
    engine.request("stop", "bestmove F");
    engine.request("stop\nisready", "readyok");
    engine.quit();
}

#[test]
fn limits_are_kept() {
    let place = TestDirectory::new(1);
    let mut engine = Session::start(&place, "");
    engine.say("position startpos");
    let lines = engine.request("go depth 6", "bestmove ");
    assert_eq!(number(report(&lines), "depth"), 6);
    let line = report(&lines);
    for word in ["score", "nodes", "nps", "hashfull", "tbhits", "time", "pv"] {
        assert!(line.contains(&format!(" {word} ")), "{word} is not in {line}");
    }
    // Sides alternate in the line.
    let moves = line.split_whitespace().last().unwrap();
    assert!(moves.bytes().enumerate().all(|(at, pit)| pit.is_ascii_lowercase() == (at % 2 == 1)), "{line}");
    assert_eq!(lines.last().unwrap()[9..], moves[..1]);
    let lines = engine.request("ucinewgame\nposition startpos\ngo nodes 20000", "bestmove ");
    assert!(number(report(&lines), "nodes") <= 21_000, "{lines:?}");
    // The same search gives the same answer.
    let again = engine.request("ucinewgame\nposition startpos\ngo nodes 20000", "bestmove ");
    let timeless = |lines: &[String]| {
        let without = |line: &String| line.split(" nps ").next().unwrap().to_owned();
        lines.iter().map(without).collect::<Vec<String>>()
    };
    assert_eq!(timeless(&lines), timeless(&again));
    for (go, most) in [("movetime 200", 200), ("wtime 1000 btime 100000", 300), ("wtime 0 btime 0 winc 0 binc 0", 5)] {
        // A machine under load delays some searches.
        let times = (0..10).map(|_| number(report(&engine.request(&format!("go {go}"), "bestmove ")), "time"));
        let times: Vec<i64> = times.collect();
        assert!(times.iter().any(|time| *time <= most + 5), "{go}: {times:?}");
    }
    engine.quit();
}

#[test]
fn the_engine_ponders() {
    let place = TestDirectory::new(1);
    let mut engine = Session::start(&place, "");
    engine.say("setoption name Ponder value true\nposition startpos moves Ff\ngo ponder wtime 3000 btime 3000");
    engine.is_quiet(Duration::from_millis(300));
    let lines = engine.request("ponderhit", "bestmove ");
    let last = lines.last().unwrap();
    assert!(last.contains(" ponder ") && last.len() == "bestmove A ponder a".len(), "{last}");
    // Another move than the expected one was played.
    engine.say("go ponder wtime 3000 btime 3000");
    engine.is_quiet(Duration::from_millis(50));
    engine.request("stop", "bestmove ");
    // The expected move does not help a search that has not begun.
    engine.request("ponderhit\nisready", "readyok");
    engine.quit();
}

#[test]
fn options_change_the_search() {
    let place = TestDirectory::new(1);
    let mut engine = Session::start(&place, "--hash 8MiB --level casual");
    let lines = engine.request("uci", "uciok");
    assert!(lines.iter().any(|line| line.starts_with("option name Hash type spin default 8 ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("option name Level type combo default casual var beginner ")));
    engine.say("setoption name MultiPV value 3\nsetoption name Level value perfect\nsetoption name Threads value 2");
    engine.say("setoption name Hash value 4\nposition startpos");
    let lines = engine.request("go depth 5", "bestmove ");
    let depth: Vec<&String> = lines.iter().filter(|line| line.starts_with("info depth 5 ")).collect();
    let places: Vec<i64> = depth.iter().map(|line| number(line, "multipv")).collect();
    assert_eq!(places, [1, 2, 3], "{lines:?}");
    let refused = engine.request("setoption name Hash value 1\nisready", "readyok");
    assert!(refused[0].contains("Hash: expected a whole number"), "{refused:?}");
    // Every level makes a legal move.
    for level in ["beginner", "casual", "strong", "expert"] {
        engine.say(&format!("setoption name Level value {level}"));
        let lines = engine.request("go nodes 500", "bestmove ");
        assert!(matches!(lines.last().unwrap().as_bytes()[9], b'A'..=b'F'), "{lines:?}");
    }
    engine.quit();
}

/// Memory that the system does not have is refused where it is asked for, and the engine keeps what it has.
#[test]
fn options_beyond_the_memory_are_refused() {
    let place = TestDirectory::new(1);
    place.awari("engine --hash 1TiB").is(12).says(&["cannot allocate 1 TiB", "--hash"]);
    for small in ["engine --hash 0", "probe --hash 3MiB '0 0 0 0 0 1 1 0 0 0 0 0'", "serve --hash 4194303"] {
        place.awari(small).is(2).says(&["--hash", "expected at least 4 MiB"]);
    }
    place.awari("play --hash 1TiB --side none --depth 1").is(12).says(&["cannot allocate 1 TiB"]);
    let search = "position startpos\ngo depth 6\n";
    for (limit, option, kept) in [
        ("", "Hash value 1048576", "info string Hash: cannot allocate 1 TiB: "),
        ("ulimit -v 400000;", "Hash value 1000", "info string Hash: cannot allocate 1000 MiB: "),
        ("ulimit -v 400000;", "Threads value 256", "info string Threads: "),
    ] {
        let asked =
            format!("{search}setoption name {option}\n{}setoption name Hash value 5\n{search}", search.repeat(2));
        let found = place.shell(&format!("{limit} printf '{asked}' | \"$AWARI\" engine --hash 8MiB")).is(0);
        let refused: Vec<&str> = found.out.lines().filter(|line| line.contains("allocate")).collect();
        assert!(refused.len() == 1 && refused[0].starts_with(kept), "{found:?}");
        assert!(option.starts_with("Threads") || refused[0].ends_with("; the table keeps 8 MiB"), "{found:?}");
        // The searches after the refusal find in the table what the first one did, and a smaller table is empty.
        let nodes =
            found.out.lines().filter(|line| line.starts_with("info depth 6 ")).map(|line| number(line, "nodes"));
        let nodes: Vec<i64> = nodes.collect();
        assert!(
            nodes.len() == 4 && nodes[1..3].iter().all(|again| *again < nodes[0]) && nodes[3] == nodes[0],
            "{found:?}"
        );
        assert_eq!(found.out.matches("bestmove ").count(), 4, "{found:?}");
    }
}

/// Whatever is known at once: the reply waits for the command that it is due to.
#[test]
fn known_replies_wait_until_they_are_due() {
    let place = TestDirectory::built(4);
    let mut engine = Session::start(&place, "--dir run");
    for (position, best) in [
        // The game is over, by the rules and by a repetition; there is one move; a database knows the score.
        ("fen 0-0-0-0-0-0-0-0-0-0-0-0-24-24-S", "0000"),
        ("fen 0-0-0-0-0-1-1-0-0-0-0-0-23-23-S moves FaAbBcCdDeEfFaAbBcCdDeEf", "0000"),
        ("fen 0-0-0-0-0-1-9-0-0-0-0-0-19-19-S", "F"),
        ("fen 0-0-0-1-0-1-1-0-0-0-1-0-22-22-S", ""),
    ] {
        engine.say(&format!("position {position}\ngo infinite"));
        engine.is_quiet(Duration::from_millis(60));
        engine.request("isready", "readyok");
        engine.request("stop", &format!("bestmove {best}"));
        engine.say("go ponder wtime 1000 btime 1000");
        engine.is_quiet(Duration::from_millis(60));
        engine.request("ponderhit", &format!("bestmove {best}"));
        engine.say("go ponder infinite");
        engine.is_quiet(Duration::from_millis(60));
        engine.request("stop", &format!("bestmove {best}"));
        engine.request("go movetime 1000", &format!("bestmove {best}"));
    }
    engine.quit();
}

/// Without databases the rules are those that are chosen; with databases they are theirs.
#[test]
fn rules_are_chosen_without_databases() {
    let place = TestDirectory::built(4);
    let over = "position fen 1-2-0-0-1-0-0-0-0-0-0-0-22-22-S\ngo nodes 50";
    // The slam of A captures nothing by oware, and is illegal by awari.
    let slam = "position fen 6-0-0-0-1-0-1-0-0-0-0-0-20-20-S moves A\nisready";
    let mut engine = Session::start(&place, "--rules oware");
    engine.request(over, "bestmove 0000");
    assert!(
        engine
            .request("uci", "uciok")
            .iter()
            .any(|line| line.starts_with("option name Rules type combo default oware "))
    );
    assert!(!engine.request(slam, "readyok").iter().any(|line| line.contains("info string")));
    engine.request(&format!("setoption name Rules value awari\n{over}"), "bestmove ");
    assert!(engine.request(slam, "readyok").iter().any(|line| line.contains("info string")));
    engine.request("setoption name Rules value abc", "info string Rules: there are no rules");
    engine.request(&format!("setoption name Rules value oware\n{over}"), "bestmove 0000");
    engine.quit();
    let mut engine = Session::start(&place, "--dir run");
    engine.request(
        "setoption name Rules value oware",
        "info string Rules: the databases, or the book, are by the rules awari",
    );
    engine.quit();
    let refused = place.awari("engine --dir run --rules oware").is(2);
    refused.says(&["are by the rules awari, not oware"]);
    let game = "--rules oware --position 1-2-0-0-1-0-0-0-0-0-0-0-22-22-S";
    let played = place.awari(&format!("play {game}")).is(0);
    assert!(played.out.contains("South cannot move: South wins 26 to 22"), "{}", played.out);
    let probed = place.awari("probe --rules oware --json 1 2 0 0 1 0 0 0 0 0 0 0").is(0).json();
    assert_eq!((probed["score"].as_i64(), probed["moves"].as_array().map(Vec::len)), (Some(4), Some(0)));
    let game = "'[FEN \"0-0-0-0-0-1-1-0-0-1-0-0-20-23-S\"] F'";
    let analyzed = place.awari(&format!("analyze --rules oware --nodes 50 {game}")).is(0);
    assert!(analyzed.out.contains("North cannot move: North wins 24 to 22"), "{}", analyzed.out);
}

/// What is proved is true: scores of positions with more stones than the databases, against larger databases.
#[test]
fn proved_bounds_hold() {
    let place = TestDirectory::built(9);
    std::fs::create_dir_all(place.path("small/databases")).unwrap();
    for stones in 0..=6 {
        let name = format!("databases/0{stones}.awari");
        std::fs::copy(place.path("run").join(&name), place.path("small").join(&name)).unwrap();
    }
    let mut engine = Session::start(&place, "--dir small");
    for position in
        ["1 0 2 0 1 1 0 1 0 2 0 1", "0 0 3 1 0 1 1 1 1 0 1 0", "2 1 0 0 1 0 0 1 2 0 0 2", "1 1 1 1 1 1 0 0 0 0 0 2"]
    {
        let truth =
            place.awari(&format!("probe --dir run --json '{position}'")).is(0).json()["score"].as_i64().unwrap();
        engine.say(&format!("position fen {}-0-0-S", position.replace(' ', "-")));
        let lines = engine.request("go nodes 3000", "bestmove ");
        let mut proved = 0;
        for line in lines.iter().filter(|line| line.starts_with("info string proved ")) {
            let bounds: Vec<i64> = line.split_whitespace().skip(3).map(|word| word.parse().unwrap()).collect();
            assert!(bounds[0] <= truth && truth <= bounds[1], "{position}: {line}, but {truth}");
            proved += 1;
        }
        assert!(proved > 0 && number(report(&lines), "tbhits") > 0, "{lines:?}");
        // The same from `probe`.
        let found = place.awari(&format!("probe --dir small --json --nodes 3000 '{position}'")).is(0).json();
        let (low, high) = match found["score"].as_i64() {
            Some(score) => (score, score),
            None => (found["score"]["lo"].as_i64().unwrap(), found["score"]["hi"].as_i64().unwrap()),
        };
        assert!(low <= truth && truth <= high, "{position}: {found}");
    }
    engine.quit();
}

/// A person at the keyboard gets the position, what it is worth, the commands, and a measure of the speed.
#[test]
fn people_are_answered_too() {
    let place = TestDirectory::built(6);
    let mut engine = Session::start(&place, "--dir run");
    engine.say("position startpos moves Ff");
    let drawn = engine.request("d\nisready", "readyok");
    assert!(drawn.iter().any(|line| line == "  5  5  5  5  4  0") && drawn.len() == 8, "{drawn:?}");
    assert!(drawn.iter().any(|line| line == "fen      5-5-5-5-4-0-5-5-5-5-4-0-0-0-S"), "{drawn:?}");
    let unproved = engine.request("eval", "evaluation ");
    assert!(unproved.len() == 1 && unproved[0].ends_with(" stones for South, without a search"), "{unproved:?}");
    engine.say("position fen 0-0-0-0-0-2-1-1-0-0-0-1-20-23-N");
    let proved = engine.request("eval", "evaluation ");
    assert!(proved.len() == 2 && proved[0].starts_with("proved ") && proved[0].ends_with(" for North"), "{proved:?}");
    let help = engine.request("help", "help, quit");
    for command in ["uci", "position", "go", "eval", "bench"] {
        assert!(help.iter().any(|line| line.starts_with(command)), "{command}: {help:?}");
    }
    // One thread with a new table counts the same nodes each time.
    let nodes = |lines: &[String]| -> Vec<String> {
        let words = |line: &String| line.split(" nps ").next().unwrap().to_owned();
        lines.iter().map(words).collect()
    };
    let first = nodes(&engine.request("bench 4", "bench nodes "));
    assert_eq!(first.len(), 5);
    assert_eq!(nodes(&engine.request("bench 4", "bench nodes ")), first);
    let refused = engine.request("bench deep\nisready", "readyok");
    assert!(refused[0].contains("expected a depth from 1 to 30"), "{refused:?}");
    engine.quit();
}

/// A script is executed in order, without another program that reads the answers.
#[test]
fn scripts_are_executed_in_order() {
    let place = TestDirectory::new(1);
    let mut engine = Session::start(&place, "");
    engine.say("position startpos\ngo depth 5\nposition startpos moves F\ngo depth 5\nwhat\nquit\nuci");
    let mut lines = Vec::new();
    while let Ok(line) = engine.lines.recv_timeout(HUNG) {
        lines.push(line);
    }
    let replies: Vec<char> = lines.iter().filter_map(|line| line.strip_prefix("bestmove ")?.chars().next()).collect();
    assert!(replies.len() == 2 && replies[0].is_uppercase() && replies[1].is_lowercase(), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "info string unknown command what; help lists the commands");
    engine.has_ended();
    // The end of stdin lets a search with limits end, and stops one without.
    let huge = "99999999999999999999";
    let endless = ["depth", "nodes", "movetime", "wtime"].map(|limit| format!("go {limit} {huge}"));
    for go in ["go movetime 100", "go infinite", "go ponder wtime 5000", "go", "go depth 63"]
        .into_iter()
        .chain(endless.iter().map(String::as_str))
    {
        let found = place.shell(&format!("printf 'position startpos\\n{go}\\n' | \"$AWARI\" engine")).is(0);
        assert_eq!(found.out.matches("bestmove ").count(), 1, "{go}: {found:?}");
    }
}

/// A script is read no faster than it is executed: each of many positions gets the reply to its own search.
#[test]
fn long_scripts_lose_no_command() {
    let place = TestDirectory::new(1);
    // The only moves are A in the one, and F in the other.
    let [first, other] = ["1-0-0-0-0-0-5-0-1-0-0-0-20-21-S", "0-0-0-0-0-1-5-0-1-0-0-0-20-21-S"];
    let script = format!(
        "echo go movetime 50; for pair in $(seq 400); do printf 'position fen {first}\\ngo nodes 1\\nposition fen \
         {other}\\ngo nodes 1\\n'; done; echo go infinite"
    );
    let found = place.shell(&format!("{{ {script}; }} | \"$AWARI\" engine")).is(0);
    let replies: Vec<&str> = found.out.lines().filter_map(|line| line.strip_prefix("bestmove ")).collect();
    let moves: String = replies[1..].iter().filter_map(|reply| reply.chars().next()).collect();
    assert_eq!(moves, "AF".repeat(400) + "F");
}

/// What is said of a search while the search before it is still under way counts when it begins.
#[test]
fn commands_about_a_deferred_search_are_kept() {
    let place = TestDirectory::new(1);
    for (script, replies) in [
        ("go movetime 300\ngo infinite\nposition startpos\nstop\nstop", 2),
        ("go movetime 300\ngo infinite\ngo infinite\nstop", 3),
        ("go movetime 300\ngo ponder wtime 500 btime 500\nponderhit", 2),
        ("go movetime 300\ngo ponder wtime 500 btime 500\nponderhit\nstop\ngo nodes 10", 3),
        ("go ponder movetime 60000\nponderhit\nstop", 1),
    ] {
        let mut engine = Session::start(&place, "--hash 4MiB");
        engine.say(script);
        for _ in 0..replies {
            engine.until("bestmove ");
        }
        engine.quit();
    }
    // A search without an end does not outlast `quit`.
    let mut engine = Session::start(&place, "--hash 4MiB");
    engine.say("go movetime 300\ngo infinite");
    engine.quit();
}

#[test]
fn hostile_lines_are_answered() {
    let place = TestDirectory::new(1);
    let mut engine = Session::start(&place, "--hash 4MiB");
    let long = "x".repeat(60_000);
    let moves = "FfAa".repeat(10_000);
    for line in [
        "go depth",
        "go depth -1 nodes x movetime 99999999999999999999",
        "go infinite ponder\nstop",
        "go searchmoves A nodes 10",
        "position",
        "position startpos moves",
        "position startpos moves Fz",
        "position startpos moves FF",
        "position fen",
        "position fen 99-0-0-0-0-0-0-0-0-0-0-0-0-0-S",
        "position fen 255-255-255-0-0-0-0-0-0-0-0-0-0-0-S",
        "position fen 0-0-0-0-0-0-0-0-0-0-0-0-0-0-S",
        "go",
        "setoption",
        "setoption name",
        "setoption name Hash value -1",
        "setoption name Level value",
        "ponderhit",
        "stop",
        "debug on",
        "\u{1b}[31m\u{7f}",
        &long,
        &format!("position startpos moves {moves}"),
        &format!("go {long}"),
        "stop",
    ] {
        engine.say(line);
    }
    engine.request("isready", "readyok");
    // It still plays.
    engine.say("stop\nucinewgame\nposition startpos");
    engine.request("stop\nisready", "readyok");
    engine.request("go nodes 100", "bestmove ");
    engine.stdin.write_all(b"\xff\xfe\n").unwrap();
    engine.until("info string the line is not UTF-8");
    engine.quit();
}
