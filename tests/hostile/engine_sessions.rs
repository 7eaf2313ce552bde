//! Hostile sessions of `awari engine`: mutated and random lines, huge numbers and lines, bytes that are no
//! text, the end of stdin anywhere, and databases that are damaged meanwhile. Every `go` gets one `bestmove`,
//! which is legal, and the engine ends by itself with exit code 0.

use game::Rules;
use game::notation::MoveText;
use game::play::Game;
use game::transcript::Transcript;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tests::Random;
use tests::directory::{TestDirectory, copy};

/// The variable that replaces the number of sessions of the slow tier.
const SESSIONS_VARIABLE: &str = "AWARI_TEST_SESSIONS";

/// Time after which an engine counts as hung.
const HUNG: Duration = Duration::from_secs(60);

/// Stones of the largest database.
const STONES: u32 = 6;

/// The longest line that the engine reads.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A number that no search reaches.
const HUGE: &str = "99999999999999999999";

const POSITIONS: [&str; 10] = [
    "position startpos",
    "position startpos moves FfBd",
    "position startpos moves 1. F! f?! {good} 2. B5 $1 d",
    // In the databases, and next to them.
    "position fen 0-1-0-2-0-1-1-0-0-1-0-0-20-22-S",
    "position fen 1-0-2-0-0-1-1-0-1-0-0-0-21-21-N",
    "position fen 0-0-1-1-0-1-1-0-1-0-1-0-21-21-S",
    "position fen 1-2-0-1-0-1-1-0-2-0-1-0-19-20-S",
    // The game is over, or there is one move.
    "position fen 0-0-0-0-0-0-0-0-0-0-0-0-24-24-S",
    "position fen 0-0-0-0-0-1-1-0-0-0-0-0-23-23-S moves FaAbBcCdDeEf",
    "position fen 0-0-0-0-0-1-9-0-0-0-0-0-19-19-S",
];

const LINES: [&str; 25] = [
    "go nodes 300",
    "go depth 4",
    "go movetime 5",
    "go wtime 50 btime 50 winc 1 binc 1",
    "go infinite",
    "go ponder wtime 50 btime 50",
    "go depth HUGE",
    "go nodes HUGE movetime HUGE",
    "go nodes -1",
    "go depth wtime 9",
    "go searchmoves A",
    "stop",
    "ponderhit",
    "isready",
    "uci",
    "ucinewgame",
    "setoption name Hash value 1048576",
    "setoption name Hash value 5",
    "setoption name Threads value 2",
    "setoption name MultiPV value 6",
    "setoption name Level value good",
    "setoption name Ponder value true",
    "setoption name BookFile value /dev/null",
    "setoption name Hash value HUGE",
    "quit",
];

/// Makes a line. A search that would take long is followed by `stop`.
fn lines(random: &mut Random) -> Vec<Vec<u8>> {
    let known = match random.below(3) {
        0 => *random.pick(&POSITIONS),
        // Searches are as many as all other commands.
        1 => random.pick(&LINES[..11]),
        _ => random.pick(&LINES[11..]),
    };
    let mut line = known.replace("HUGE", HUGE).into_bytes();
    match random.below(12) {
        0 => {
            let at = random.below(line.len() as u64 + 1) as usize;
            line.insert(at, random.bits() as u8);
        }
        1 => {
            let at = random.below(line.len() as u64) as usize;
            line[at] = b' ' + random.below(95) as u8;
        }
        2 => line.truncate(random.below(line.len() as u64 + 1) as usize),
        3 => line = (0..random.below(200)).map(|_| random.bits() as u8).collect(),
        4 if random.below(4) == 0 => line.extend(b" x".repeat(LINE_BYTES_MAX * random.below(3) as usize)),
        5 => line.extend(format!(" {} {}", random.pick(&["depth", "nodes", "moves", "value", "fen"]), HUGE).bytes()),
        _ => {}
    }
    line.retain(|&byte| byte != b'\n');
    if is_large_table(&line) {
        return Vec::new();
    }
    let is_search = text_of(&line).is_some_and(|text| text.split_whitespace().next() == Some("go"));
    let is_short = LINES[..7].iter().any(|short| short.replace("HUGE", HUGE).as_bytes() == line);
    if is_search && !is_short { vec![line, b"stop".to_vec()] } else { vec![line] }
}

/// Whether a line asks for a table that takes long to commit, and that the machine may have the memory for.
fn is_large_table(line: &[u8]) -> bool {
    let text = text_of(line).filter(|text| text.starts_with("setoption")).unwrap_or("");
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    numbers.into_iter().any(|number: u64| (17..1 << 20).contains(&number))
}

/// The trimmed text of a line, if the engine reads it.
fn text_of(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?;
    (line.len() <= LINE_BYTES_MAX).then(|| text.trim())
}

/// What the engine has to reply, as far as the lines so far say.
struct ExpectedReplies {
    now: Game,
    /// The positions of all searches.
    searched: Vec<Game>,
    /// Whether searches that have not begun are given up.
    has_quit: bool,
}

impl ExpectedReplies {
    fn new() -> ExpectedReplies {
        ExpectedReplies { now: Game::new(Rules::AWARI), searched: Vec::new(), has_quit: false }
    }

    fn add(&mut self, line: &[u8]) {
        let Some(text) = text_of(line) else { return };
        let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match command {
            _ if self.has_quit => {}
            "quit" => self.has_quit = true,
            "go" => self.searched.push(self.now.clone()),
            "ucinewgame" | "uginewgame" => self.now = Game::new(Rules::AWARI),
            "position" => {
                let (start, moves) = rest.split_once("moves").unwrap_or((rest, ""));
                let head = match (start.trim().strip_prefix("fen"), start.trim()) {
                    (Some(fen), _) => format!("[FEN \"{}\"]\n", fen.trim().replace('"', "")),
                    (None, "startpos") => String::new(),
                    _ => return,
                };
                if let Ok(transcript) = Transcript::parse(Rules::AWARI, &(head + moves)) {
                    self.now = transcript.game;
                }
            }
            _ => {}
        }
    }

    /// Compares the replies with the positions in which they were asked for.
    fn check(&self, printed: &[String], what: &str) {
        let replies: Vec<&str> = printed.iter().filter_map(|line| line.strip_prefix("bestmove ")).collect();
        assert!(printed.iter().all(|line| !line.trim().is_empty()), "{what}: an empty line");
        let is_right =
            if self.has_quit { replies.len() <= self.searched.len() } else { replies.len() == self.searched.len() };
        assert!(is_right, "{what}: {} searches, {replies:?}", self.searched.len());
        for (game, reply) in self.searched.iter().zip(replies) {
            let word = reply.split(' ').next().unwrap();
            if game.outcome().is_some() {
                assert_eq!(word, "0000", "{what}: {}", game.now().text());
                continue;
            }
            let named: MoveText = word.parse().unwrap_or_else(|_| panic!("{what}: {reply}"));
            let is_legal = named.side == game.now().seats.side && game.moves().iter().any(|(pit, _)| *pit == named.pit);
            assert!(is_legal, "{what}: {reply} in {}", game.now().text());
        }
    }
}

/// An engine under attack.
struct AttackedEngine {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What it was sent.
    said: Vec<u8>,
    printed: Vec<String>,
}

impl AttackedEngine {
    fn start(place: &TestDirectory, options: &str) -> AttackedEngine {
        let mut command = place.command(&format!("engine --hash 4MiB {options}"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().for_each(|line| drop(sender.send(line.unwrap()))));
        AttackedEngine { stdin: child.stdin.take(), child, lines, said: Vec::new(), printed: Vec::new() }
    }

    fn say(&mut self, line: &[u8]) {
        self.say_unended(&[line, b"\n"].concat());
    }

    fn say_unended(&mut self, bytes: &[u8]) {
        self.said.extend(bytes);
        // The engine may have quit.
        let _ = self.stdin.as_mut().unwrap().write_all(bytes);
    }

    /// Reads until the lines so far are enough; returns whether they are before the end.
    fn until(&mut self, is_enough: impl Fn(&[String]) -> bool, what: &str) -> bool {
        let until = Instant::now() + HUNG;
        while !is_enough(&self.printed) {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.printed.push(line),
                Err(_) if Instant::now() < until => return false,
                Err(_) => panic!("{what}: hangs after {}", String::from_utf8_lossy(&self.said)),
            }
        }
        true
    }

    /// Stops all searches, and reads their replies.
    fn stop(&mut self, expected: &ExpectedReplies, what: &str) {
        self.say(b"stop");
        let count = |lines: &[String]| lines.iter().filter(|line| line.starts_with("bestmove ")).count();
        self.until(|lines| count(lines) >= expected.searched.len(), what);
    }

    /// Ends stdin, perhaps in the middle of a line, and checks that the engine ends by itself.
    fn end(mut self, what: &str) -> Vec<String> {
        drop(self.stdin.take());
        self.until(|_| false, what);
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success() && !said.contains("panicked"), "{what}: {status}, {said}");
        std::mem::take(&mut self.printed)
    }

    /// The memory of the engine that the system has committed.
    fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for AttackedEngine {
    /// An engine that hangs does not outlast its test.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Damages a database, or brings it back.
fn damage(random: &mut Random, databases: &Path, sound: &Path) {
    let name = format!("{:02}.awari", random.below(u64::from(STONES) + 1));
    let (path, bytes) = (databases.join(&name), fs::read(sound.join(&name)).unwrap());
    match random.below(5) {
        0 => {
            // It may have been removed before.
            if let Ok(file) = fs::File::options().write(true).open(&path) {
                file.set_len(random.below(bytes.len() as u64)).unwrap();
            }
        }
        1 => {
            let mut changed = bytes;
            let count = changed.len() as u64;
            (0..1 + random.below(9)).for_each(|_| changed[random.below(count) as usize] ^= 1 << random.below(8));
            fs::write(path, changed).unwrap();
        }
        2 => drop(fs::remove_file(path)),
        3 => fs::write(path, vec![0; bytes.len()]).unwrap(),
        _ => fs::write(path, bytes).unwrap(),
    }
}

fn attack(sessions: u64) {
    let random = Random::new(2026);
    let place = TestDirectory::new(STONES);
    for codec in ["packed", "zstd"] {
        place.awari(&format!("run m.toml --dir {codec} --set store.codec={codec}")).is(0);
    }
    let (mut searches, mut dropped) = (0, 0);
    for number in 0..sessions {
        let mut random = random.branch(number);
        let what = format!("session {number}");
        let (codec, is_damaged) = (*random.pick(&["packed", "zstd"]), random.below(3) == 0);
        let sound = place.path(codec).join("databases");
        let directory = if is_damaged { "damaged" } else { codec };
        if is_damaged {
            let _ = fs::remove_dir_all(place.path("damaged"));
            copy(&sound, &place.path("damaged/databases"));
        }
        let mut engine = AttackedEngine::start(&place, &format!("--dir {directory}"));
        let mut expected = ExpectedReplies::new();
        let mut count = 1 + random.below(30);
        if is_damaged {
            engine.say(b"uci");
            assert!(engine.until(|lines| lines.last().is_some_and(|line| line == "uciok"), &what), "{what}");
        }
        while count > 0 {
            count -= 1;
            if is_damaged && random.below(3) == 0 {
                // After the commands so far, and before the others.
                engine.stop(&expected, &what);
                damage(&mut random, &place.path("damaged/databases"), &sound);
            }
            for line in lines(&mut random) {
                engine.say(&line);
                expected.add(&line);
            }
        }
        // The last line may have no end, unless it needs `stop`.
        if random.below(4) == 0
            && let [last] = &lines(&mut random)[..]
        {
            engine.say_unended(last);
            expected.add(last);
        }
        let printed = engine.end(&what);
        expected.check(&printed, &what);
        searches += expected.searched.len();
        dropped += printed.iter().filter(|line| line.contains("goes on without it")).count();
    }
    println!("{sessions} sessions with {searches} searches, in which {dropped} databases were given up");
    assert!(searches as u64 > sessions && dropped > 0);
}

#[test]
fn hostile_sessions_get_all_replies() {
    attack(25);
}

#[test]
#[ignore = "slow tier: many sessions"]
fn many_hostile_sessions_get_all_replies() {
    let sessions = std::env::var(SESSIONS_VARIABLE).map_or(200, |count| count.parse().expect("a number of sessions"));
    attack(sessions);
}

/// The lines of many sessions in one, whose memory does not grow.
#[test]
#[ignore = "slow tier: a long session"]
fn a_long_session_does_not_grow() {
    let mut random = Random::new(2026);
    let place = TestDirectory::built(STONES);
    let mut engine = AttackedEngine::start(&place, "--dir run");
    let mut expected = ExpectedReplies::new();
    let mut resident = Vec::new();
    for _ in 0..4 {
        for _ in 0..60 {
            for _ in 0..20 {
                for line in lines(&mut random) {
                    if text_of(&line).is_none_or(|text| !text.starts_with("quit")) {
                        engine.say(&line);
                        expected.add(&line);
                    }
                }
            }
            // Fewer commands follow a search than the engine keeps.
            engine.stop(&expected, "a long session");
        }
        engine.say(b"setoption name Hash value 6\nsetoption name Hash value 4\nisready");
        assert!(engine.until(|lines| lines.last().is_some_and(|line| line == "readyok"), "a long session"));
        resident.push(engine.resident_bytes());
    }
    let printed = engine.end("a long session");
    expected.check(&printed, "a long session");
    println!("{} searches, resident bytes {resident:?}", expected.searched.len());
    assert!(resident[3] < resident[1] + (4 << 20), "{resident:?}");
}
