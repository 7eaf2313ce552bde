//! Identity of a process, which other processes of the same machine can look up.
//!
//! A process identifier is used again after its process has ended, and means another process in another namespace or on
//! another machine. With the time of the start and the machine, it names one process.

use crate::clock;
use std::fs;

/// A process on any machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "build", derive(serde::Serialize, serde::Deserialize))]
pub struct ProcessIdentity {
    /// The name of the machine.
    pub host: String,
    /// The process identifier.
    pub pid: u32,
    /// The boot of the kernel and the namespace in which `pid` is valid; empty where the kernel does not say.
    namespace: String,
    /// The time of the start, in clock ticks since the boot.
    started: u64,
}

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It exists.
    Alive,
    /// It exists, and a signal has stopped it.
    Stopped,
    /// It has ended.
    Ended,
    /// It runs on another machine, or the kernel does not say.
    Unknown,
}

impl ProcessIdentity {
    /// Returns the identity of this process.
    pub fn of_this_process() -> ProcessIdentity {
        let pid = std::process::id();
        let started = stat(pid).map_or(0, |stat| stat.started);
        ProcessIdentity { host: clock::host(), pid, namespace: namespace(), started }
    }

    /// Looks up the process.
    pub fn state(&self) -> ProcessState {
        if self.namespace.is_empty() || self.namespace != namespace() {
            return ProcessState::Unknown;
        }
        match stat(self.pid) {
            Some(stat) if stat.started != self.started => ProcessState::Ended,
            Some(Stat { state: 'Z' | 'X', .. }) | None => ProcessState::Ended,
            Some(Stat { state: 'T', .. }) => ProcessState::Stopped,
            Some(_) => ProcessState::Alive,
        }
    }
}

/// Returns the boot of the kernel and the namespace of process identifiers.
fn namespace() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = fs::read_link("/proc/self/ns/pid");
    match (boot, namespace) {
        (Ok(boot), Ok(namespace)) => format!("{} {}", boot.trim(), namespace.display()),
        _ => String::new(),
    }
}

/// What `/proc/PID/stat` says of a process.
struct Stat {
    state: char,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads the state and, 19 fields later, the start. The name before them, in parentheses, may hold any characters.
fn parse(text: &str) -> Option<Stat> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some(Stat { state: fields.next()?.chars().next()?, started: fields.nth(18)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn processes_are_looked_up() {
        let mut own = ProcessIdentity::of_this_process();
        assert_eq!(own.state(), ProcessState::Alive);
        own.started += 1;
        assert_eq!(own.state(), ProcessState::Ended, "another process got the number");
        own.namespace.push('x');
        assert_eq!(own.state(), ProcessState::Unknown);

        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let started = stat(child.id()).unwrap().started;
        let identity = ProcessIdentity { pid: child.id(), started, ..ProcessIdentity::of_this_process() };
        assert_eq!(identity.state(), ProcessState::Alive);
        child.kill().unwrap();
        // Not reaped yet: its entry is still there.
        while identity.state() == ProcessState::Alive {
            std::thread::yield_now();
        }
        assert_eq!(identity.state(), ProcessState::Ended);
        child.wait().unwrap();
        assert_eq!(identity.state(), ProcessState::Ended);
    }

    #[test]
    fn names_of_programs_do_not_disturb() {
        let stat = parse("12 (a) T 3 (b)) S 1 12 12 0 -1 4 9 0 0 0 1 2 3 4 20 0 1 0 4711 5 6\n").unwrap();
        assert_eq!((stat.state, stat.started), ('S', 4711));
        assert!(parse("12 (a) S 1 2").is_none());
        assert!(parse("").is_none());
    }
}
