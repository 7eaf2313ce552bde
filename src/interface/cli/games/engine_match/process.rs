//! An engine as a process: commands on its stdin, replies on its stdout, each within a time.
//!
//! The child is the [`guard`](super::guard) of the engine, which ends as the engine does.

use super::guard::{self, NO_ENGINE, QUIT_TIME};
use crate::signals;
use crate::text::lines::Lines;
use disk::process;
use game::Rules;
use game::transcript::variant;
use std::fmt;
use std::io::{self, BufReader};
use std::process::{Child, ChildStdin, ExitStatus};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The most lines that have not been looked at; an engine that writes faster waits.
const LINES_MAX: usize = 256;

/// The time between two looks at the request to stop.
const SLICE: Duration = Duration::from_millis(50);

/// The time in which a guard kills its engine and ends. A process that the kernel cannot end is left behind then.
const GUARD_TIME: Duration = Duration::from_secs(10);

/// The most remarks of an engine that are kept.
const REMARKS_MAX: usize = 5;

/// The longest part of a remark that is kept, in characters.
const REMARK_MAX: usize = 300;

/// The longest part of a reply that a message quotes, in characters.
const QUOTED_MAX: usize = 40;

/// An engine under way.
pub(super) struct EngineProcess {
    guard: Child,
    /// `None` when the engine is to end.
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The name that it gives itself.
    pub(super) name: Option<String>,
    /// The rules that it plays, as far as it names them.
    pub(super) rules: NamedRules,
    /// What it says before games, when it is asked whether it is ready: that its memory cannot be allocated, say.
    pub(super) remarks: Vec<String>,
}

/// The rules that an engine names by an option in its reply to `uci`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamedRules {
    /// It has no such option.
    Unknown,
    /// Those of the match, at once or by the option.
    OfMatch,
    /// Others, by this name.
    Others(String),
}

/// The names of options that name rules: ours, and those of programs that play variants of a game.
const RULES_OPTIONS: [&str; 3] = ["Rules", "Variant", "UCI_Variant"];

/// Reads a line `option` of an engine. Returns the rules that it names, and the command that chooses those of
/// the match, if they are not the default; `None` if the option does not name rules.
fn named_rules(line: &str, rules: Rules) -> Option<(NamedRules, Option<String>)> {
    let (name, described) = line.strip_prefix("option name ")?.split_once(" type ")?;
    RULES_OPTIONS.iter().find(|option| option.eq_ignore_ascii_case(name.trim()))?;
    let words: Vec<&str> = described.split_whitespace().collect();
    let values = |key: &'static str| words.windows(2).filter(move |pair| pair[0] == key).map(|pair| pair[1]);
    let is_ours = |value: &&str| variant(value) == Some(rules);
    let default = values("default").next();
    if default.as_ref().is_some_and(is_ours) {
        return Some((NamedRules::OfMatch, None));
    }
    match values("var").find(is_ours) {
        Some(value) => Some((NamedRules::OfMatch, Some(format!("setoption name {name} value {value}")))),
        None => Some((default.map_or(NamedRules::Unknown, |name| NamedRules::Others(name.to_owned())), None)),
    }
}

/// What an engine did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EngineFault {
    /// It ended, or does not start.
    Crash(String),
    /// It does not reply.
    Stall,
    /// It made a move that is illegal, or none.
    Illegal(String),
    /// It exceeded its time by this much.
    Time(Duration),
}

impl fmt::Display for EngineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineFault::Crash(how) => write!(f, "crashes ({how})"),
            EngineFault::Stall => f.write_str("stalls"),
            EngineFault::Illegal(played) => write!(f, "plays an illegal move ({played})"),
            EngineFault::Time(over) => write!(f, "exceeds its time by {} ms", over.as_millis()),
        }
    }
}

/// A text that is not that of a fault.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoFault;

impl FromStr for EngineFault {
    type Err = NoFault;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<EngineFault, NoFault> {
        let within = |before: &str, after: &str| Some(text.strip_prefix(before)?.strip_suffix(after)?.to_owned());
        if text == "stalls" {
            Ok(EngineFault::Stall)
        } else if let Some(how) = within("crashes (", ")") {
            Ok(EngineFault::Crash(how))
        } else if let Some(played) = within("plays an illegal move (", ")") {
            Ok(EngineFault::Illegal(played))
        } else {
            let over = within("exceeds its time by ", " ms").and_then(|over| over.parse().ok());
            over.map(|over| EngineFault::Time(Duration::from_millis(over))).ok_or(NoFault)
        }
    }
}

/// Why an engine did not reply.
#[derive(Debug)]
pub(super) enum NoReply {
    /// The match is to end.
    Stopped,
    Fault(EngineFault),
}

/// The move of an engine.
pub(super) struct EngineReply {
    pub(super) best_move: String,
    pub(super) elapsed: Duration,
}

/// How long the runner waits for replies.
#[derive(Clone, Copy)]
pub(super) struct Patience<'a> {
    /// Time by which an engine may exceed its time.
    pub(super) margin: Duration,
    /// Time after which an engine that does not reply counts as stalled.
    pub(super) stall: Duration,
    /// Whether the user asked the match to end.
    pub(super) stop: &'a AtomicBool,
    /// Whether the match is decided, or cannot go on.
    pub(super) is_over: &'a AtomicBool,
}

impl Patience<'_> {
    /// Whether the match is to end.
    pub(super) fn is_at_end(&self) -> bool {
        self.stop.load(Ordering::SeqCst) || self.is_over.load(Ordering::SeqCst)
    }
}

impl EngineProcess {
    /// Starts an engine, blocks until it has answered `uci`, and chooses the rules of the match if it plays by several.
    pub(super) fn start(words: &[String], rules: Rules, patience: Patience<'_>) -> Result<EngineProcess, NoReply> {
        let crash = |error: io::Error| NoReply::Fault(EngineFault::Crash(disk::reason(&error)));
        let mut guard = guard::command(words).spawn().map_err(crash)?;
        let (stdin, stdout) = (guard.stdin.take(), guard.stdout.take());
        let (sender, lines) = sync_channel(LINES_MAX);
        let mut engine =
            EngineProcess { guard, stdin, lines, name: None, rules: NamedRules::Unknown, remarks: Vec::new() };
        let stdout = stdout.ok_or_else(|| crash(io::ErrorKind::BrokenPipe.into()))?;
        let reader = signals::thread("engine", move || {
            let mut lines = Lines::new(BufReader::new(stdout));
            // A line that is too long or not text is no reply.
            while let Ok(Some(line)) = lines.next() {
                if line.is_ok_and(|line| sender.send(line).is_err()) {
                    break;
                }
            }
        });
        reader.map_err(|error| NoReply::Fault(EngineFault::Crash(error.to_string())))?;
        let mut chosen = None;
        engine.ask("uci", "uciok", patience, |engine, line| {
            if let Some((named, choice)) = named_rules(line, rules) {
                (engine.rules, chosen) = (named, choice);
            }
        })?;
        engine.remarks.clear();
        if let Some(choice) = chosen {
            engine.send(&choice, patience)?;
        }
        Ok(engine)
    }

    /// Tells the engine that a game begins, and blocks until it is ready.
    pub(super) fn begin_game(&mut self, patience: Patience<'_>) -> Result<(), NoReply> {
        self.ask("ucinewgame\nisready", "readyok", patience, |_, _| {})
    }

    /// Sends a command, and blocks until it is answered. Keeps remarks, and the name that the engine gives
    /// itself; `others` receives the other lines.
    fn ask(
        &mut self,
        command: &str,
        answer: &str,
        patience: Patience<'_>,
        mut others: impl FnMut(&mut EngineProcess, &str),
    ) -> Result<(), NoReply> {
        match self.send(command, patience) {
            // What the guard printed before it ended says why.
            Err(NoReply::Fault(EngineFault::Crash(_))) | Ok(()) => {}
            Err(other) => return Err(other),
        }
        let until = Instant::now() + patience.stall;
        loop {
            let line = self.line(until, patience)?;
            let quoted = |text: &str, most| text.trim().chars().take(most).collect::<String>();
            if line == answer {
                return Ok(());
            } else if let Some(name) = line.strip_prefix("id name ") {
                self.name = Some(quoted(name, QUOTED_MAX));
            } else if let Some(why) = line.strip_prefix(NO_ENGINE) {
                return Err(NoReply::Fault(EngineFault::Crash(quoted(why, REMARK_MAX))));
            } else if let Some(remark) = line.strip_prefix("info string ")
                && self.remarks.len() < REMARKS_MAX
            {
                self.remarks.push(quoted(remark, REMARK_MAX));
            } else {
                others(self, &line);
            }
        }
    }

    /// Asks for a move. `allowed` is the time that the engine has, if it is limited.
    pub(super) fn best_move(
        &mut self,
        position: &str,
        go: &str,
        allowed: Option<Duration>,
        patience: Patience<'_>,
    ) -> Result<EngineReply, NoReply> {
        self.send(position, patience)?;
        let start = Instant::now();
        self.send(go, patience)?;
        let wait = allowed.map_or(patience.stall, |allowed| allowed.saturating_add(patience.margin));
        let later = |time: Duration| start.checked_add(time).unwrap_or_else(|| start + patience.stall);
        let (reply, is_late) = match self.reply(later(wait), patience) {
            Err(NoReply::Fault(EngineFault::Stall)) if allowed.is_some() => {
                self.send("stop", patience)?;
                (self.reply(Instant::now() + patience.stall, patience)?, true)
            }
            reply => (reply?, false),
        };
        let elapsed = start.elapsed();
        let over = allowed.map_or(Duration::ZERO, |allowed| elapsed.saturating_sub(allowed));
        if is_late || over > patience.margin {
            return Err(NoReply::Fault(EngineFault::Time(over)));
        }
        Ok(EngineReply { best_move: reply, elapsed })
    }

    /// Reads up to `bestmove` and returns the move.
    fn reply(&mut self, until: Instant, patience: Patience<'_>) -> Result<String, NoReply> {
        loop {
            let line = self.line(until, patience)?;
            if let Some(rest) = line.strip_prefix("bestmove") {
                let word = rest.split_whitespace().next().unwrap_or("");
                return Ok(word.chars().take(QUOTED_MAX).collect());
            }
        }
    }

    /// Reads a line, until a time.
    fn line(&mut self, until: Instant, patience: Patience<'_>) -> Result<String, NoReply> {
        loop {
            if patience.is_at_end() {
                return Err(NoReply::Stopped);
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(SLICE)) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(NoReply::Fault(EngineFault::Stall)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.crashed()),
            }
        }
    }

    /// Sends a command. An engine that reads nothing for so long that the pipe stays full stalls.
    fn send(&mut self, text: &str, patience: Patience<'_>) -> Result<(), NoReply> {
        let (text, until) = (format!("{text}\n"), Instant::now() + patience.stall);
        let mut left = text.as_bytes();
        while !left.is_empty() {
            let Some(stdin) = &mut self.stdin else { return Err(self.crashed()) };
            match process::write_within(stdin, left, SLICE) {
                Ok(written) => left = &left[written..],
                Err(_) => return Err(self.crashed()),
            }
            if left.is_empty() {
                break;
            } else if patience.is_at_end() {
                return Err(NoReply::Stopped);
            } else if Instant::now() >= until {
                return Err(NoReply::Fault(EngineFault::Stall));
            }
        }
        Ok(())
    }

    fn crashed(&mut self) -> NoReply {
        let how = match self.wait(QUIT_TIME) {
            Some(status) => status.to_string(),
            None => "closes its output".to_owned(),
        };
        NoReply::Fault(EngineFault::Crash(how))
    }

    /// Waits for the end of the engine, for some time.
    fn wait(&mut self, time: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + time;
        loop {
            match self.guard.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(2)),
                _ => return None,
            }
        }
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        // The guard ends with its engine, which it kills if it does not end after that.
        if let Some(mut stdin) = self.stdin.take() {
            let _ = process::write_within(&mut stdin, b"quit\n", Duration::ZERO);
        }
        if self.wait(GUARD_TIME).is_none() {
            let _ = self.guard.kill();
            let _ = self.guard.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named_by_options() {
        let of_match = |choice: Option<&str>| Some((NamedRules::OfMatch, choice.map(str::to_owned)));
        let others = |name: &str| Some((NamedRules::Others(name.to_owned()), None));
        for (line, expected) in [
            ("option name Rules type combo default oware var awari var oware", of_match(None)),
            ("option name UCI_Variant type combo default Abapa var Abapa", of_match(None)),
            (
                "option name Rules type combo default awari var awari var oware",
                of_match(Some("setoption name Rules value oware")),
            ),
            (
                "option name variant type combo default kalah var abapa var kalah",
                of_match(Some("setoption name variant value abapa")),
            ),
            ("option name Rules type combo default awari var awari", others("awari")),
            ("option name Variant type string default kalah", others("kalah")),
            ("option name Variant type string", Some((NamedRules::Unknown, None))),
            ("option name Hash type spin default 64 min 4 max 1048576", None),
            ("option name RulesFile type string default oware", None),
            ("id name Rules type combo default oware", None),
        ] {
            assert_eq!(named_rules(line, Rules::OWARE), expected, "{line}");
        }
    }

    #[test]
    fn faults_are_read_as_they_are_written() {
        let crash = EngineFault::Crash("signal: 11 (SIGSEGV) (core dumped)".to_owned());
        let faults = [crash, EngineFault::Stall, EngineFault::Illegal("a)(".to_owned())];
        for fault in faults.into_iter().chain([EngineFault::Time(Duration::from_millis(51))]) {
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        for text in ["", "cannot move", "crashes", "stalls ", "exceeds its time by x ms"] {
            assert_eq!(text.parse::<EngineFault>(), Err(NoFault), "{text}");
        }
    }
}
