//! An engine as a process: commands on its stdin, replies on its stdout, each within a time.

use crate::lines::Lines;
use crate::signals;
use std::fmt;
use std::io::{self, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The most lines that have not been looked at; an engine that writes faster waits.
const LINES_MAX: usize = 256;

/// The time between two looks at the request to stop.
const SLICE: Duration = Duration::from_millis(50);

/// The time in which an engine ends after `quit` or the end of its stdin; then it is killed.
const QUIT_TIME: Duration = Duration::from_millis(500);

/// The longest part of a reply that a message quotes, in characters.
const QUOTED_MAX: usize = 40;

/// An engine under way.
pub(super) struct EngineProcess {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
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
    /// Whether the match is to end.
    pub(super) stop: &'a AtomicBool,
}

impl EngineProcess {
    /// Starts an engine. Returns it with the name that it gives itself.
    pub(super) fn start(words: &[String], patience: Patience<'_>) -> Result<(EngineProcess, Option<String>), NoReply> {
        let crash = |error: io::Error| NoReply::Fault(EngineFault::Crash(disk::reason(&error).to_string()));
        let (program, arguments) = words.split_first().ok_or_else(|| crash(io::ErrorKind::NotFound.into()))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C is for the runner.
        command.process_group(0);
        let mut child = command.spawn().map_err(crash)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(crash(io::ErrorKind::BrokenPipe.into()));
        };
        let (sender, lines) = sync_channel(LINES_MAX);
        let reader = signals::thread("engine", move || {
            let mut lines = Lines::new(BufReader::new(stdout));
            // A line that is too long or not text is no reply.
            while let Ok(Some(line)) = lines.next() {
                if line.is_ok_and(|line| sender.send(line).is_err()) {
                    break;
                }
            }
        });
        let mut engine = EngineProcess { child, stdin, lines };
        reader.map_err(|error| NoReply::Fault(EngineFault::Crash(error.to_string())))?;
        engine.send("uci")?;
        let mut name = None;
        let until = Instant::now() + patience.stall;
        loop {
            let line = engine.line(until, patience)?;
            if line == "uciok" {
                return Ok((engine, name));
            }
            if let Some(given) = line.strip_prefix("id name ") {
                name = Some(given.trim().chars().take(QUOTED_MAX).collect());
            }
        }
    }

    /// Tells the engine that a game begins, and blocks until it is ready.
    pub(super) fn begin_game(&mut self, patience: Patience<'_>) -> Result<(), NoReply> {
        self.send("ucinewgame\nisready")?;
        let until = Instant::now() + patience.stall;
        while self.line(until, patience)? != "readyok" {}
        Ok(())
    }

    /// Asks for a move. `allowed` is the time that the engine has, if it is limited.
    pub(super) fn best_move(
        &mut self,
        position: &str,
        go: &str,
        allowed: Option<Duration>,
        patience: Patience<'_>,
    ) -> Result<EngineReply, NoReply> {
        self.send(position)?;
        let start = Instant::now();
        self.send(go)?;
        let wait = allowed.map_or(patience.stall, |allowed| allowed.saturating_add(patience.margin));
        let later = |time: Duration| start.checked_add(time).unwrap_or_else(|| start + patience.stall);
        let (reply, is_late) = match self.reply(later(wait), patience) {
            Err(NoReply::Fault(EngineFault::Stall)) if allowed.is_some() => {
                self.send("stop")?;
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
            if patience.stop.load(Ordering::SeqCst) {
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

    fn send(&mut self, text: &str) -> Result<(), NoReply> {
        let sent = self.stdin.write_all(format!("{text}\n").as_bytes()).and_then(|()| self.stdin.flush());
        sent.map_err(|_| self.crashed())
    }

    fn crashed(&mut self) -> NoReply {
        let how = match self.wait(QUIT_TIME) {
            Some(status) => status.to_string(),
            None => "closes its output".to_owned(),
        };
        NoReply::Fault(EngineFault::Crash(how))
    }

    /// Waits for the end of the process, for some time.
    fn wait(&mut self, time: Duration) -> Option<std::process::ExitStatus> {
        let until = Instant::now() + time;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(2)),
                _ => return None,
            }
        }
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        let _ = self.stdin.write_all(b"quit\n");
        if self.wait(QUIT_TIME).is_none() {
            // It may just have ended.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
