//! Databases that are truncated or overwritten while a command has them open: the command names the file and ends, the
//! server continues, and no answer is wrong.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use store::Codec;
use tests::directory::{CommandResult, TestDirectory, ended_child, signal};
use tests::serve_process::ServeProcess;

/// Stones of a database of several pages.
const STONES: u32 = 10;
const DATABASE: &str = "run/databases/10.awari";
const POSITION: &str = "1 1 1 1 0 1 1 0 1 1 1 1";

/// A change that another process makes to an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileChange {
    /// Truncates it.
    Cut,
    /// Changes all bytes between header and index.
    Blocks,
    /// Overwrites the second half, which has the block index, with zeros.
    Zeros,
}

impl FileChange {
    const ALL: [FileChange; 3] = [FileChange::Cut, FileChange::Blocks, FileChange::Zeros];

    /// Makes the change in place.
    fn make(self, place: &TestDirectory, bytes: &[u8]) {
        let file = File::options().write(true).open(place.path(DATABASE)).unwrap();
        match self {
            FileChange::Cut => file.set_len(5000).unwrap(),
            FileChange::Blocks => {
                let index = u64::from_le_bytes(bytes[bytes.len() - 40..bytes.len() - 32].try_into().unwrap()) as usize;
                let other: Vec<u8> = bytes[512..index].iter().map(|byte| byte ^ 0x55).collect();
                file.write_all_at(&other, 512).unwrap();
            }
            FileChange::Zeros => file.write_all_at(&vec![0; bytes.len() / 2], bytes.len() as u64 / 2).unwrap(),
        }
    }

    fn undo(place: &TestDirectory, bytes: &[u8]) {
        File::options().write(true).open(place.path(DATABASE)).unwrap().write_all_at(bytes, 0).unwrap();
    }
}

fn built(codec: Codec) -> (TestDirectory, Vec<u8>) {
    let place = TestDirectory::new(STONES);
    place.awari(&format!("run m.toml --set store.codec={codec}")).is(0);
    let bytes = fs::read(place.path(DATABASE)).unwrap();
    (place, bytes)
}

/// Starts a command that reads stdin, and waits until it has opened its databases.
fn waiting(place: &TestDirectory, line: &str, greeting: &str, answer: &str) -> Child {
    let mut command = place.command(line);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(greeting.as_bytes()).unwrap();
    let (mut said, mut piece) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&said).contains(answer) {
        let read = child.stdout.as_mut().unwrap().read(&mut piece).unwrap();
        assert!(read > 0, "{line} ended: {}", String::from_utf8_lossy(&said));
        said.extend(&piece[..read]);
    }
    child
}

fn say(mut child: Child, words: &str) -> CommandResult {
    // A command that has ended reads no more.
    let _ = child.stdin.take().unwrap().write_all(words.as_bytes());
    ended_child(child)
}

/// The answers of an engine without their times.
fn timeless(said: &str) -> String {
    let without = |line: &str| match line.split_once(" time ") {
        Some((before, after)) => format!("{before} {}\n", after.split_once(' ').map_or("", |(_, rest)| rest)),
        None => format!("{line}\n"),
    };
    said.lines().map(without).collect()
}

/// Whether an answer is possible after a change: from the intact half of the file, or from decoded blocks in memory.
fn may_answer(change: FileChange, codec: Codec, is_warm: bool) -> bool {
    change == FileChange::Zeros || is_warm && codec.is_compressed()
}

#[test]
#[ignore = "slow tier: many builds"]
fn play_names_the_damaged_database() {
    let asked = format!("position fen {}-19-19-S\ngo\n", POSITION.replace(' ', "-"));
    let engine = "engine --dir run";
    for codec in Codec::ALL {
        let (place, bytes) = built(codec);
        let right = timeless(&say(waiting(&place, engine, "uci\n", "uciok"), &asked).is(0).out);
        let named = ["10.awari", "awari run"];
        for change in FileChange::ALL {
            for is_warm in [false, true] {
                let (greeting, answer) = if is_warm { (&*asked, "bestmove") } else { ("uci\n", "uciok") };
                let child = waiting(&place, engine, greeting, answer);
                change.make(&place, &bytes);
                let ended = say(child, &asked);
                // It goes on by a search, and names the database once.
                let ended = ended.is(0);
                assert_eq!(ended.out.matches("bestmove ").count(), 1, "{codec} {change:?}: {ended:?}");
                let dropped: Vec<&str> = ended.out.lines().filter(|line| line.contains("goes on without it")).collect();
                match dropped[..] {
                    [] if may_answer(change, codec, is_warm) => {
                        assert!(right.ends_with(&timeless(&ended.out)), "{codec} {change:?}: {ended:?}");
                    }
                    [line] => {
                        assert!(
                            line.starts_with("info string ") && named.iter().all(|part| line.contains(part)),
                            "{line}"
                        )
                    }
                    _ => panic!("{codec} {change:?}: {ended:?}"),
                }
                FileChange::undo(&place, &bytes);
                let child = waiting(&place, engine, greeting, answer);
                change.make(&place, &bytes);
                FileChange::undo(&place, &bytes);
                let ended = say(child, &asked).is(0);
                assert!(right.ends_with(&timeless(&ended.out)), "{codec} {change:?}: {ended:?}");
            }
            let play = |side: &str| format!("play --dir run --position '{POSITION}' --side {side}");
            let table = waiting(&place, &play("both"), "", "> ");
            change.make(&place, &bytes);
            let ended = say(table, "values\nquit\n").is(0);
            assert!(ended.out.contains("10.awari") || may_answer(change, codec, false), "{codec} {change:?} {ended:?}");
            // These commands open the file after the change.
            let ended = place.awari(&play("none")).is(0).says(&["10.awari", "do without it"]);
            assert!([" wins ", "a draw"].iter().any(|end| ended.out.contains(end)), "{ended:?}");
            let game = format!("analyze --dir run --nodes 100 '[FEN \"{}-19-19-S\"] A1'", POSITION.replace(' ', "-"));
            place.awari(&game).is(16).says(&named).shows(&["estimated", "South: 1 move"]);
            place.awari(&format!("probe --dir run {POSITION}")).is(16).says(&named);
            FileChange::undo(&place, &bytes);
        }
    }
}

/// A game goes on without a database that is damaged while it is open, and the server counts what it serves now.
#[test]
fn games_go_on_without_a_damaged_database() {
    let (place, bytes) = built(Codec::Packed);
    let engine = waiting(&place, "engine --dir run --level good", "uci\n", "uciok");
    let server = ServeProcess::start(&place);
    let known = |path: &str| server.json(path)["state"].as_str().unwrap().to_owned();
    let damaged = || server.json("/healthz")["damaged"].as_u64().unwrap();
    let choose = format!("/v1/choose?pos={}&level=casual&seed=1", POSITION.replace(' ', "+"));
    let right = server.json(&choose);
    assert_eq!((damaged(), known("/v1/databases/10"), &right["source"]), (0, "sound".to_owned(), &"database".into()));
    // Damage that is neither at the start nor at the end is known once a request has met it.
    let index = u64::from_le_bytes(bytes[bytes.len() - 40..bytes.len() - 32].try_into().unwrap());
    let file = File::options().write(true).open(place.path(DATABASE)).unwrap();
    file.write_all_at(&vec![0x55; index as usize / 2], index / 4).unwrap();
    // Not the time of the repair, which may be less than a tick of the clock ago.
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(server.json(&choose)["source"], "search");
    assert_eq!(damaged(), 1);
    FileChange::undo(&place, &bytes);
    assert_eq!(damaged(), 0);
    for change in [FileChange::Blocks, FileChange::Cut] {
        change.make(&place, &bytes);
        // Both see it before any position is looked up.
        assert_eq!(
            (damaged(), known("/v1/databases/10"), known("/v1/databases/9")),
            (1, "damaged".into(), "sound".into())
        );
        let chosen = server.json(&choose);
        assert_eq!((&chosen["source"], chosen["move"]["pit"].is_string()), (&"search".into(), true), "{chosen}");
        FileChange::undo(&place, &bytes);
        assert_eq!((damaged(), server.json(&choose)), (0, right.clone()));
    }
    FileChange::Cut.make(&place, &bytes);
    // Seen also where the first cut has made the map useless.
    assert_eq!(damaged(), 1);
    let go = format!("position fen {}-19-19-S\ngo nodes 2000\n", POSITION.replace(' ', "-"));
    let beyond = "position fen 1-1-1-1-0-1-2-0-1-1-1-1-19-18-S\ngo nodes 2000\n";
    let ended = say(engine, &format!("{go}{beyond}{go}")).is(0);
    assert_eq!(ended.out.matches("bestmove ").count(), 3, "{ended:?}");
    let dropped: Vec<&str> = ended.out.lines().filter(|line| line.contains("goes on without it")).collect();
    assert!(
        matches!(dropped[..], [line] if line.starts_with("info string ") && line.contains("10.awari")),
        "{ended:?}"
    );
}

/// A request that reads the damage gets an error, others an answer; after the repair this one does too.
#[test]
#[ignore = "slow tier: many builds"]
fn a_server_refuses_only_what_needs_the_damaged_database() {
    let ten = format!("/v1/probe?pos={}", POSITION.replace(' ', "+"));
    let nine = "/v1/probe?pos=1+1+1+1+0+1+1+0+1+1+1+0";
    for codec in Codec::ALL {
        let (place, bytes) = built(codec);
        for change in FileChange::ALL {
            for is_warm in [false, true] {
                let right = ServeProcess::start(&place).json(&ten);
                let server = ServeProcess::start(&place);
                let expected = server.json(nine);
                if is_warm {
                    assert_eq!(server.json(&ten), right);
                }
                change.make(&place, &bytes);
                let (status, body) = server.request(&ten);
                if status == 200 && may_answer(change, codec, is_warm) {
                    assert_eq!(serde_json::from_str::<serde_json::Value>(&body).unwrap(), right);
                } else {
                    assert!(status == 503 && body.contains("\"damaged\""), "{codec} {change:?}: {status} {body}");
                }
                assert_eq!(server.json(nine), expected);
                assert_eq!(server.request("/healthz").0, 200);
                FileChange::undo(&place, &bytes);
                assert_eq!(server.json(&ten), right, "{codec} {change:?}");
                signal(server.child(), "TERM");
                ended_child(server.into_child()).is(0);
            }
        }
    }
}

/// Commands that read whole databases, while one of these is repeatedly damaged and repaired.
#[test]
fn no_command_is_killed_by_a_changing_file() {
    let (place, bytes) = built(Codec::Packed);
    let right = place.awari(&format!("probe --dir run --json {POSITION}")).is(0).out;
    let counted = place.awari("stats --dir run --format csv").is(0).out;
    place.awari("export --dir run --format raw --out right").is(0);
    fs::remove_dir_all(place.path("run/stats")).unwrap();
    let is_over = AtomicBool::new(false);
    let mut refused = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for change in FileChange::ALL {
                    change.make(&place, &bytes);
                    std::thread::yield_now();
                    FileChange::undo(&place, &bytes);
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
            }
        });
        let commands = [
            &format!("probe --dir run --json {POSITION}"),
            "verify --dir run --stones 9..10",
            "stats --dir run --format csv",
            "export --dir run --format raw --out out --force",
            "archive --dir run --out kept --force",
            &format!("analyze --dir run '[FEN \"{}-0-0-S\"] A1'", POSITION.replace(' ', "-")),
        ];
        for round in 0..4 {
            for command in commands {
                let ended = place.awari(command);
                let code = ended.code;
                assert!(matches!(code, Some(0 | 12 | 16)), "{round} {command}: {ended:?}");
                if code != Some(0) {
                    refused += 1;
                    assert!(ended.err.contains("10.awari"), "{command:?}: {ended:?}");
                    continue;
                }
                match command.split(' ').next().unwrap() {
                    "probe" => assert_eq!(ended.out, right),
                    "stats" => assert_eq!(ended.out, counted),
                    "export" => {
                        let exported = |directory: &str| fs::read(place.path(&format!("{directory}/10.raw"))).unwrap();
                        assert!(exported("out") == exported("right"));
                    }
                    _ => {}
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(refused > 0, "no command has read a change");
}

/// A supervisor may start a program with blocked signals.
#[test]
fn a_server_started_with_blocked_signals_survives() {
    let (place, bytes) = built(Codec::Raw);
    let mut command = Command::new("env");
    command.args(["--block-signal=BUS", tests::awari(), "serve", "--dir", "run", "--listen", "127.0.0.1:0"]);
    let served = ServeProcess::of({
        command.current_dir(place.path(""));
        command
    });
    let question = format!("/v1/probe?pos={}", POSITION.replace(' ', "+"));
    let right = served.get(&question);
    FileChange::Cut.make(&place, &bytes);
    assert_eq!(served.request(&question).0, 503);
    FileChange::undo(&place, &bytes);
    assert_eq!(served.get(&question), right);
}
