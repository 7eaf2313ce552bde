//! Facts and measurements of the machine and its disks, for diagnosing slow or refused runs.

use crate::clock::{self, kibibytes};
use crate::disk::{InputFile, OutputFile};
use crate::error::{DiskError, Operation};
use crate::folder::nameless;
use crate::io::Io;
use crate::lock::LockedFile;
use crate::real::file::RealFile;
use crate::real::output::RealOutput;
use crate::real::{RealDisk, direct};
use rustix::process::{Resource, getrlimit, setpriority_process};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of one request of a stream.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes of a random read, and how long random reads are measured.
const RANDOM_BYTES: usize = 16 << 10;
const RANDOM_TIME: Duration = Duration::from_millis(300);

/// The number of synced small writes that are measured.
const SYNCS: u32 = 16;

/// Properties of the machine; `None` where unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineFacts {
    /// The model name of the processor.
    pub processor: Option<String>,
    /// Total bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Total bytes of swap.
    pub swap_bytes: Option<u64>,
    /// Files that a process may have open.
    pub open_files_max: Option<u64>,
    /// Bytes that a process may lock in memory, where there is a limit; old kernels count the buffers of rings.
    pub locked_bytes_max: Option<u64>,
    /// The policy of the kernel on large pages: `always`, `madvise`, `never`.
    pub large_pages: Option<String>,
    /// The reason why `io_uring` cannot be used; `None` if it can.
    pub ring_refused: Option<String>,
}

impl MachineFacts {
    /// Inspects this machine.
    pub fn inspect() -> MachineFacts {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processors = text("/proc/cpuinfo");
        let memory = text("/proc/meminfo");
        let processor = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let pages = text("/sys/kernel/mm/transparent_hugepage/enabled");
        let chosen = pages.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        MachineFacts {
            processor: processor.map(|(_, name)| name.trim().to_owned()),
            memory_bytes: kibibytes(&memory, "MemTotal:"),
            swap_bytes: kibibytes(&memory, "SwapTotal:"),
            open_files_max: getrlimit(Resource::Nofile).current,
            locked_bytes_max: getrlimit(Resource::Memlock).current,
            large_pages: chosen.map(|(word, _)| word.to_owned()),
            ring_refused: RealDisk::new(Io::Uring).err().map(|error| error.to_string()),
        }
    }
}

/// Starts `count` threads at once and ends them, to check that they can be started before work that needs them.
pub fn probe_threads(count: usize) -> io::Result<()> {
    let before = threads();
    let (hold, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let probed = thread::scope(|scope| {
        let held = &held;
        let wait = || _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let started: io::Result<Vec<_>> =
            (0..count).map(|_| thread::Builder::new().spawn_scoped(scope, wait)).collect();
        drop(hold);
        started.map(drop)
    });
    // A joined thread counts until the kernel has removed it.
    for _ in 0..100 {
        if threads() <= before {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    probed
}

/// Gives the calling thread the lowest priority: it runs where no other thread needs the processor. Ignored where the
/// system refuses it.
pub fn lower_thread_priority() {
    // On Linux, unlike in POSIX, the priority is one of the thread.
    let _ = setpriority_process(None, 19);
}

/// The threads of this process, where known.
fn threads() -> Option<usize> {
    Some(fs::read_dir("/proc/self/task").ok()?.count())
}

/// Bytes that the stack of the first thread may take, where there is a limit.
pub fn stack_bytes_max() -> Option<u64> {
    getrlimit(Resource::Stack).current
}

/// Whether a signal is ignored, as `SIGHUP` is in commands of `nohup`.
pub fn is_signal_ignored(number: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(number - 1).is_ok_and(|bit| mask.checked_shr(bit).is_some_and(|mask| mask & 1 == 1))
}

/// Takes a lock in a directory for a moment, on a nameless file.
pub fn probe_lock(directory: &Path) -> Result<(), DiskError> {
    let path = directory.join("lock");
    LockedFile::of(nameless(&path)?, &path).map(drop)
}

/// The speed of sequential streams to and from a disk, as a run has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamSpeed {
    /// Bytes written per second, including the final sync.
    pub write: f64,
    /// Bytes read per second.
    pub read: f64,
}

impl StreamSpeed {
    /// Writes and reads a nameless file of `bytes` bytes in a directory.
    pub fn measure(disk: &RealDisk, directory: &Path, bytes: u64) -> Result<StreamSpeed, DiskError> {
        let path = directory.join("speed");
        streams(disk, &nameless(&path)?, &path, bytes).map(|(speed, _)| speed)
    }

    /// Seconds in which a byte is written and read.
    pub(crate) fn seconds_a_byte(self) -> f64 {
        self.write.recip() + self.read.recip()
    }

    /// Returns the faster of two in each direction.
    pub(crate) fn best_of(self, other: StreamSpeed) -> StreamSpeed {
        StreamSpeed { write: self.write.max(other.write), read: self.read.max(other.read) }
    }
}

/// The speed of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Sequential streams.
    pub streams: StreamSpeed,
    /// Random reads of 16 KiB per second, with requests from all cores.
    pub operations: f64,
    /// Seconds until a small record is durable.
    pub sync_seconds: f64,
}

impl Speed {
    /// Writes and reads a nameless file of `bytes` bytes in a directory.
    pub fn measure(disk: &RealDisk, directory: &Path, bytes: u64) -> Result<Speed, DiskError> {
        let path = directory.join("speed");
        let file = nameless(&path)?;
        measure(disk, &file, &path, bytes)
    }
}

/// Measures with an empty file; `path` names it in errors.
fn measure(disk: &RealDisk, file: &File, path: &Path, bytes: u64) -> Result<Speed, DiskError> {
    let failed = |source| DiskError::from_io(Operation::Create, path, source);
    let (streams, input) = streams(disk, file, path, bytes)?;
    let bytes = input.bytes();
    let operations = random_reads(&input, bytes)?;
    drop(input);

    // Small records go through the page cache, like those of the journal.
    direct::turn_off(file).map_err(failed)?;
    let again = file.try_clone().map_err(failed)?;
    let mut output = RealOutput::append(again, path, bytes, false, Arc::clone(&disk.pool));
    let record = [1; 512];
    let begun = Instant::now();
    for _ in 0..SYNCS {
        output.write(&record)?;
        output.sync()?;
    }
    let sync_seconds = begun.elapsed().as_secs_f64() / f64::from(SYNCS);
    Ok(Speed { streams, operations, sync_seconds })
}

/// Writes and reads an empty file of at least a piece, and returns it for further reads.
fn streams(disk: &RealDisk, file: &File, path: &Path, bytes: u64) -> Result<(StreamSpeed, RealFile), DiskError> {
    let failed = |source| DiskError::from_io(Operation::Create, path, source);
    let again = || file.try_clone().map_err(failed);
    let pool = || Arc::clone(&disk.pool);
    // Random, so that a drive that compresses does not look faster.
    let mut piece = vec![0u8; PIECE_BYTES];
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for word in piece.chunks_exact_mut(8) {
        word.copy_from_slice(&next_random(&mut state).to_le_bytes());
    }
    let pieces = bytes.div_ceil(PIECE_BYTES as u64).max(1);
    let rate = |since: Instant| pieces as f64 * PIECE_BYTES as f64 / since.elapsed().as_secs_f64().max(1e-9);

    let begun = Instant::now();
    let mut output = RealOutput::create(again()?, path, false, pool());
    for _ in 0..pieces {
        output.write(&piece)?;
    }
    output.sync()?;
    let write = rate(begun);
    drop(output);
    let bytes = file.metadata().map_err(failed)?.len();

    // Four pieces at a time, as stages read.
    let input = RealFile::input(again()?, path, bytes, pool());
    let mut buffer = vec![0u8; 4 * PIECE_BYTES];
    let begun = Instant::now();
    let mut offset = 0;
    while offset < bytes {
        let length = (buffer.len() as u64).min(bytes - offset) as usize;
        input.read_at(offset, &mut buffer[..length])?;
        offset += length as u64;
    }
    let read = rate(begun);
    Ok((StreamSpeed { write, read }, input))
}

/// Returns how many pieces a second can be read from anywhere in a file, by as many threads as there are cores.
fn random_reads(input: &RealFile, bytes: u64) -> Result<f64, DiskError> {
    let (begun, pieces) = (Instant::now(), bytes / RANDOM_BYTES as u64);
    let read = |thread: u64| {
        let (mut state, mut buffer, mut done) = (0x2545_F491_4F6C_DD1D ^ thread, vec![0u8; RANDOM_BYTES], 0u64);
        while begun.elapsed() < RANDOM_TIME {
            input.read_at(next_random(&mut state) % pieces * RANDOM_BYTES as u64, &mut buffer)?;
            done += 1;
        }
        Ok(done)
    };
    let done: Result<u64, DiskError> = thread::scope(|scope| {
        let threads: Vec<_> = (0..clock::cores() as u64).map(|thread| scope.spawn(move || read(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("reading does not panic")).sum()
    });
    Ok(done? as f64 / begun.elapsed().as_secs_f64())
}

/// Returns the next pseudo-random number (xorshift).
fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_inspected() {
        let machine = MachineFacts::inspect();
        assert!(machine.open_files_max.is_none_or(|files| files > 3));
        assert!(machine.memory_bytes.is_none_or(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn probed_threads_are_ended() {
        probe_threads(20).unwrap();
    }

    #[test]
    fn inspection_leaves_the_directory_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let place = crate::FileSystem::inspect(directory.path()).unwrap();
        assert!(place.free_bytes > 0 && !place.file_system.is_empty());
        let disk = RealDisk::default();
        let speed = Speed::measure(&disk, directory.path(), 3 << 20).unwrap();
        assert!(
            speed.streams.write > 0.0 && speed.streams.read > 0.0 && speed.operations > 0.0 && speed.sync_seconds > 0.0
        );
        probe_lock(directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(crate::FileSystem::inspect(&directory.path().join("absent")).is_err());
    }
}
