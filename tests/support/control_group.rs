//! Control groups with a memory limit, of either version.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// A control group. Its memory, page cache included, is limited: the kernel kills a process in it that takes more.
pub struct ControlGroup {
    path: PathBuf,
    version: &'static Version,
}

/// The files of a version of control groups.
struct Version {
    /// Where groups are made.
    root: &'static str,
    limit: &'static str,
    most_used: &'static str,
    /// The file with a line `oom_kill N`.
    events: &'static str,
}

static VERSIONS: [Version; 2] = [
    Version { root: "/sys/fs/cgroup", limit: "memory.max", most_used: "memory.peak", events: "memory.events" },
    Version {
        root: "/sys/fs/cgroup/memory",
        limit: "memory.limit_in_bytes",
        most_used: "memory.max_usage_in_bytes",
        events: "memory.oom_control",
    },
];

impl ControlGroup {
    /// Makes a group.
    ///
    /// # Errors
    /// Without the rights of root, or where the memory of groups is not limited.
    pub fn with_memory(bytes: u64) -> io::Result<ControlGroup> {
        static GROUPS: AtomicU64 = AtomicU64::new(0);
        let name = format!("awari-test-{}-{}", process::id(), GROUPS.fetch_add(1, Ordering::Relaxed));
        let limit = bytes.to_string();
        let mut refused = io::ErrorKind::Unsupported.into();
        for version in &VERSIONS {
            let group = ControlGroup { path: Path::new(version.root).join(&name), version };
            // Where there are no groups, a directory can be made, but it has not this file.
            let open = || OpenOptions::new().write(true).open(group.file(version.limit));
            let limited = fs::create_dir(&group.path).and_then(|()| open()?.write_all(limit.as_bytes()));
            match limited {
                Ok(()) => return Ok(group),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// The file into which the number of a process is written that joins the group.
    pub fn processes(&self) -> PathBuf {
        self.file("cgroup.procs")
    }

    /// Processes that the kernel has killed.
    ///
    /// # Panics
    /// If the kernel does not say.
    pub fn killed(&self) -> u64 {
        let events = fs::read_to_string(self.file(self.version.events)).expect("the group has this file");
        let line = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.and_then(|count| count.parse().ok()).expect("the kernel counts kills")
    }

    /// The most bytes that were used at a time.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn most_used(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.file(self.version.most_used))?;
        text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Not made, or a process that is still in it keeps it.
        let _ = fs::remove_dir(&self.path);
    }
}
