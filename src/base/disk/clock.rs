//! Time and memory as the operating system reports them.
//!
//! Nothing here may influence the bytes of an artifact.

use rustix::process::{Resource, getrlimit};
use rustix::time::ClockId;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The clock of a host, from [`crate::Disk::clock`]. Tests use clocks that jump and stop.
pub trait Clock: Debug + Send + Sync {
    /// Time since 1970-01-01 00:00 UTC; zero if the clock is set to an earlier time. May be set forward and back at any
    /// moment.
    fn utc(&self) -> Duration;

    /// Time since some moment before the process began. Never decreases, but may stand still.
    fn steady(&self) -> Duration;
}

/// The clock of this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn utc(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn steady(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// A stopwatch on the steady time of a clock.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch<'a> {
    clock: &'a dyn Clock,
    start: Duration,
}

impl<'a> Stopwatch<'a> {
    /// Begins to measure.
    pub fn start(clock: &'a dyn Clock) -> Stopwatch<'a> {
        Stopwatch { clock, start: clock.steady() }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.clock.steady().saturating_sub(self.start)
    }

    /// Begins again.
    pub fn restart(&mut self) {
        self.start = self.clock.steady();
    }
}

/// Seconds since 1970-01-01 00:00 UTC on the clock of this host; 0 if it is set to an earlier time.
pub fn now_seconds() -> u64 {
    SystemClock.utc().as_secs()
}

/// Processor seconds that all threads of this process have used so far, user and system.
pub fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Seconds since 1970 as `2026-01-31T12:00:00Z`.
pub fn utc(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let second = seconds % 86_400;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// The name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The peak resident memory of this process in bytes (`VmHWM`), where known.
pub fn peak_resident_bytes() -> Option<u64> {
    kibibytes(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The resident memory of this process in bytes (`VmRSS`), where known.
pub fn resident_bytes() -> Option<u64> {
    kibibytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Bytes of memory that this process may still allocate without swapping, if known: those available on the machine, or
/// fewer if a control group or a process limit (`ulimit -v`, `ulimit -d`) is lower.
pub fn available_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| kibibytes(&text, "MemAvailable:"));
    let group = fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|text| group_available_bytes(Path::new("/sys/fs/cgroup"), &text));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let process = [(Resource::As, "VmSize:"), (Resource::Data, "VmData:")].map(|(resource, used)| {
        getrlimit(resource).current.map(|limit| limit.saturating_sub(kibibytes(&status, used).unwrap_or(0)))
    });
    [machine, group].into_iter().chain(process).flatten().min()
}

/// Bytes of memory that this process may use in total without swapping, where known.
pub fn attainable_bytes() -> Option<u64> {
    Some(available_bytes()? + resident_bytes().unwrap_or(0))
}

/// Cores that this process may use (affinity and control group respected); at least 1.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Year, month and day of a number of days since 1970-01-01. From Howard Hinnant, "chrono-compatible
/// low-level date algorithms", `civil_from_days`, for days that are not negative.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468; // since 0000-03-01
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// The value of a line such as `MemAvailable:   1234 kB`, in bytes.
pub(crate) fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

/// The lowest memory limit of this process's control group and its ancestors, minus their use.
/// Memory that only caches files does not count as used: the kernel gives it up first.
fn group_available_bytes(root: &Path, membership: &str) -> Option<u64> {
    let mut tightest = None;
    let mut take = |available: Option<u64>| {
        if let Some(available) = available {
            tightest = Some(tightest.map_or(available, |least: u64| least.min(available)));
        }
    };
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let version_2 = controllers.is_empty();
        if !version_2 && !controllers.split(',').any(|name| name == "memory") {
            continue;
        }
        let mount = if version_2 { root.to_path_buf() } else { root.join("memory") };
        // Inside a container the group's own path may not exist below the mount; its root does.
        for directory in ancestors(&mount, group) {
            take(if version_2 {
                room(&directory, "memory.max", "memory.current", "")
            } else {
                room(&directory, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
            });
        }
    }
    tightest
}

/// `mount/a/b`, `mount/a` and `mount` for the group `/a/b`.
fn ancestors(mount: &Path, group: &str) -> Vec<PathBuf> {
    let inside = Path::new(group.trim_start_matches('/'));
    inside.ancestors().map(|part| mount.join(part)).collect()
}

fn room(directory: &Path, limit: &str, usage: &str, total: &str) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(directory.join(name)).ok()?;
        text.trim().parse().ok() // "max" is no limit
    };
    let limit = number(limit)?;
    let usage = number(usage)?;
    let statistics = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
    let pages = |kind: &str| -> Option<u64> {
        let value = |line: &str| line.strip_prefix(total)?.strip_prefix(kind)?.trim().parse().ok();
        statistics.lines().find_map(value)
    };
    let cached = pages("inactive_file ").unwrap_or(0) + pages("active_file ").unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let check = |seconds, expect: &str| assert_eq!(utc(seconds), expect);
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_709_251_199, "2024-02-29T23:59:59Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
    }

    #[test]
    fn stopwatches_never_run_backward() {
        let mut watch = Stopwatch::start(&SystemClock);
        let first = watch.elapsed();
        assert!(watch.elapsed() >= first);
        watch.restart();
        #[derive(Debug)]
        struct Backward(std::sync::atomic::AtomicU64);
        impl Clock for Backward {
            fn utc(&self) -> Duration {
                Duration::ZERO
            }

            fn steady(&self) -> Duration {
                Duration::from_secs(self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed))
            }
        }
        let backward = Backward(9.into());
        assert_eq!(Stopwatch::start(&backward).elapsed(), Duration::ZERO);
    }

    #[test]
    fn this_process_is_measured() {
        assert!(now_seconds() > 1_700_000_000);
        assert!(cores() >= 1);
        assert!(!host().is_empty());
        assert!(resident_bytes().is_none_or(|bytes| bytes > 100 << 10));
        // First what it is now: other tests take memory between the two.
        let resident = resident_bytes();
        assert!(peak_resident_bytes() >= resident);
        assert!(available_bytes().is_none_or(|bytes| bytes > 0));
        assert!(attainable_bytes().is_none_or(|bytes| bytes > resident_bytes().unwrap_or(0)));
        let before = cpu_seconds();
        let mut digest = crate::Digest::of(&[0; 1 << 16]);
        for _ in 0..200 {
            digest = crate::Digest::of(&[digest.0; 1 << 10].concat());
        }
        assert!(cpu_seconds() > before);
    }

    #[test]
    fn control_groups_limit() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/memory.max", "1000\n");
        write("a/memory.current", "700\n");
        write("a/memory.stat", "anon 1\ninactive_file 150\nactive_file 50\n");
        write("a/b/memory.max", "max\n");
        write("a/b/memory.current", "600\n");
        let available = |text| group_available_bytes(root.path(), text);
        assert_eq!(available("0::/a/b\n"), Some(500));
        assert_eq!(available("0::/a\n"), Some(500));
        assert_eq!(available("0::/elsewhere\n"), None);
        assert_eq!(available("nonsense\n"), None);
        write("memory/memory.limit_in_bytes", "90\n");
        write("memory/memory.usage_in_bytes", "100\n");
        assert_eq!(available("4:cpu,memory:/x\n0::/a/b\n"), Some(0));
    }
}
