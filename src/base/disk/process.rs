//! The end of another program with all processes that it has started.
//!
//! A guard is a process that starts one program, shares its stdin with it, and calls [`guard_descendants`]
//! first. Processes whose parent has ended then become children of the guard, whatever group or session they
//! have chosen.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

/// How often remaining processes are killed and looked for again. Each round ends a generation.
const ROUNDS_MAX: u32 = 2000;

/// The time between two rounds.
const ROUND: Duration = Duration::from_millis(1);

/// Makes this process the parent of all descendants whose own parent ends.
///
/// # Errors
/// If the kernel refuses it.
pub fn guard_descendants() -> io::Result<()> {
    // Any process identifier turns it on; it is set for the caller.
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Replaces stdout by `/dev/null`, so that its other end is closed when the last other holder ends.
///
/// # Errors
/// If `/dev/null` cannot be opened.
pub fn release_stdout() -> io::Result<()> {
    let null = OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(null)?)
}

/// Writes to a pipe, and blocks for at most some time while it is full. Returns the number of bytes written.
///
/// # Errors
/// If the pipe has no reader, or what the kernel reports.
pub fn write_within(pipe: &mut (impl AsFd + Write), bytes: &[u8], time: Duration) -> io::Result<usize> {
    // The other end has flags of its own.
    rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
    match pipe.write(bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(0),
        written => return written,
    }
    let mut watched = [PollFd::new(&pipe, PollFlags::OUT)];
    let time = Timespec::try_from(time).map_err(io::Error::other)?;
    match rustix::event::poll(&mut watched, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(0),
        Err(errno) => Err(errno.into()),
    }
}

/// Blocks until stdin, a pipe, has no writer. Reads nothing.
///
/// # Errors
/// If the kernel refuses to wait.
pub fn wait_for_hang_up() -> io::Result<()> {
    let stdin = io::stdin();
    loop {
        let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
        match rustix::event::poll(&mut watched, None) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Blocks until a child ends. Its status stays to be read, so that no other process gets its identifier.
///
/// # Errors
/// If the kernel refuses to wait.
pub fn wait_for_end(child: &Child) -> io::Result<()> {
    let Some(identifier) = identifier(child) else { return Ok(()) };
    loop {
        match rustix::process::waitid(WaitId::Pid(identifier), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The process group that a child leads.
#[derive(Clone, Copy, Debug)]
pub struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Returns the group of a child that leads one.
    pub fn of(child: &Child) -> ProcessGroup {
        ProcessGroup(identifier(child))
    }

    /// Kills its processes. It may have ended, if the status of the child was not read yet.
    pub fn kill(self) {
        if let Some(leader) = self.0 {
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Kills the children of this process, and theirs, which become its own when their parents end.
pub fn kill_descendants() {
    for _ in 0..ROUNDS_MAX {
        let children = children();
        if children.is_empty() {
            return;
        }
        for child in children {
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        thread::sleep(ROUND);
    }
}

/// Ends this process as another one has ended: with its exit code, or by its signal.
pub fn end_as(status: ExitStatus) -> ! {
    let signal = status.signal().unwrap_or(0);
    if let Some(named) = Signal::from_named_raw(signal) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), named);
    }
    // As shells write a signal, where it did not end this process.
    std::process::exit(status.code().unwrap_or(128 + signal))
}

fn identifier(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// The children of this process; none where the kernel does not list them.
fn children() -> Vec<Pid> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let listed = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let numbers =
        listed.flat_map(|list| list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>());
    numbers.filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_full_pipe_takes_nothing_more() {
        let (mut reader, mut writer) = io::pipe().unwrap();
        let bytes = [7; 1 << 16];
        let mut written = 0;
        loop {
            match write_within(&mut writer, &bytes, Duration::ZERO).unwrap() {
                0 => break,
                more => written += more,
            }
        }
        assert!(written > 0);
        let mut read = vec![0; written];
        reader.read_exact(&mut read).unwrap();
        assert!(read.iter().all(|&byte| byte == 7));
        assert_eq!(write_within(&mut writer, b"more", Duration::ZERO).unwrap(), 4);
        drop(reader);
        assert!(write_within(&mut writer, &bytes, Duration::ZERO).is_err());
    }
}
