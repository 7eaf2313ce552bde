//! The queues of a disk: some that threads share for reads and scratch files, and some that outputs hold while open.
//!
//! Queues are created on demand, and their number is bounded, because runs must fit in 64 MiB of memory: see
//! [`POOL_BYTES_MAX`].

use super::queue::{QUEUE_BYTES, Queue};
use super::queue_memory::QueueMemory;
use crate::ahead::{PendingRead, ReaderThreads};
use crate::disk::InputFile;
use crate::io::Io;
use crate::meter::TrafficMeter;
use std::collections::BTreeMap;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// Queues for reads and scratch files, unless there are more threads: four keep a drive busy.
const SHARED_MIN: usize = 4;

/// The most queues for reads and scratch files. With fewer queues than threads, threads wait for each other:
/// 16 threads with four queues took 1.3 times as long to verify a database.
const SHARED_MAX: usize = 32;

/// Queues that outputs hold. Further outputs use the page cache.
const OWNED_MAX: usize = 4;

/// The most memory of the queues of a disk for up to four threads. Each further thread may add a queue of 1 MiB.
pub const POOL_BYTES_MAX: usize = (SHARED_MIN + OWNED_MAX) * QUEUE_BYTES;

const _: () = assert!(POOL_BYTES_MAX <= 8 << 20, "users run inside memory limits of 64 MiB");

/// All queues of a disk, and its traffic.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) io: Io,
    pub(crate) meter: TrafficMeter,
    pub(crate) readers: ReaderThreads,
    /// The error with which the kernel has refused a ring.
    refused: OnceLock<io::Error>,
    /// Whether [`Io::Auto`] takes no rings.
    is_single: AtomicBool,
    shared: [Mutex<Option<Queue>>; SHARED_MAX],
    /// The number of threads that read.
    threads: AtomicUsize,
    idle: Mutex<Vec<Queue>>,
    lent: AtomicUsize,
    /// The bytes of scratch files by the device of their file system.
    scratch: Mutex<BTreeMap<u64, u64>>,
    /// Shares of a large page that are not in use.
    memory: Mutex<Vec<QueueMemory>>,
}

impl Pool {
    /// Creates a pool without queues.
    pub(crate) fn new(io: Io) -> Pool {
        Pool { io, ..Pool::default() }
    }

    /// Sets the number of threads that read.
    pub(crate) fn set_threads(&self, threads: usize) {
        self.threads.store(threads, Ordering::Relaxed);
    }

    /// The most queues that threads share.
    fn shared_max(&self) -> usize {
        self.threads.load(Ordering::Relaxed).clamp(SHARED_MIN, SHARED_MAX)
    }

    /// Starts to read `bytes` bytes of a file beside the caller.
    pub(crate) fn start_read(&self, file: Arc<dyn InputFile>, offset: u64, bytes: usize) -> PendingRead {
        self.readers.start(self.shared_max(), bytes, Box::new(move |into| file.read_at(offset, into)))
    }

    /// The bytes of scratch files on a device.
    pub(crate) fn scratch_bytes(&self, device: u64) -> u64 {
        let scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.get(&device).copied().unwrap_or(0)
    }

    /// Changes the bytes of scratch files on a device.
    pub(crate) fn count_scratch(&self, device: u64, change: impl FnOnce(u64) -> u64) {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = scratch.entry(device).or_default();
        *bytes = change(*bytes);
    }

    /// Sets the way that [`Io::Auto`] takes from now on. Queues in use keep their kind.
    pub(crate) fn choose(&self, io: Io) {
        self.is_single.store(io == Io::Plain, Ordering::Relaxed);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for queue in &self.shared {
            if let Ok(mut queue) = queue.try_lock() {
                *queue = None;
            }
        }
    }

    /// Creates a queue of the selected kind.
    pub(crate) fn make(&self) -> io::Result<Queue> {
        match self.io {
            Io::Plain => self.single(),
            Io::Uring => self.ring(),
            Io::Auto if self.refused.get().is_some() || self.is_single.load(Ordering::Relaxed) => self.single(),
            Io::Auto => self.ring().or_else(|error| {
                let _ = self.refused.set(error);
                self.single()
            }),
        }
    }

    /// The error with which the kernel has refused a ring, if it has.
    pub(crate) fn refused(&self) -> Option<&io::Error> {
        self.refused.get()
    }

    fn ring(&self) -> io::Result<Queue> {
        Queue::ring(self.memory()?)
    }

    fn single(&self) -> io::Result<Queue> {
        Ok(Queue::single(self.memory()?))
    }

    fn memory(&self) -> io::Result<QueueMemory> {
        let mut spare = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.is_empty() {
            spare.extend(QueueMemory::page()?);
        }
        Ok(spare.pop().expect("a page has shares"))
    }

    /// Lends a queue for one operation: the queue of this thread, else any idle one; blocks if all are in use.
    pub(crate) fn share(&self) -> io::Result<SharedQueue<'_>> {
        let shared = &self.shared[..self.shared_max()];
        let home = thread_number() % shared.len();
        let free = (0..shared.len()).find_map(|step| match shared[(home + step) % shared.len()].try_lock() {
            Ok(guard) => Some(guard),
            // `SharedQueue` drained it when the panic unwound.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        let mut guard = free.unwrap_or_else(|| shared[home].lock().unwrap_or_else(PoisonError::into_inner));
        if guard.is_none() {
            *guard = Some(self.make()?);
        }
        Ok(SharedQueue { guard })
    }

    /// Lends a queue until it is dropped, if one is free.
    pub(crate) fn lend(self: &Arc<Self>) -> io::Result<Option<OwnedQueue>> {
        let more = |lent| (lent < OWNED_MAX).then_some(lent + 1);
        if self.lent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return Ok(None);
        }
        // From here on a drop decreases the count again.
        let mut owned = OwnedQueue { pool: self.clone(), queue: None };
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        owned.queue = Some(match idle {
            Some(queue) => queue,
            None => self.make()?,
        });
        Ok(Some(owned))
    }
}

/// The number of this thread, in the order in which threads first read: it decides which queue a thread tries first.
fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// A queue lent for one operation. Nothing is in flight on it before and after, also after a panic.
pub(crate) struct SharedQueue<'p> {
    guard: MutexGuard<'p, Option<Queue>>,
}

impl Deref for SharedQueue<'_> {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        self.guard.as_ref().expect("it holds a queue until it is dropped")
    }
}

impl DerefMut for SharedQueue<'_> {
    fn deref_mut(&mut self) -> &mut Queue {
        self.guard.as_mut().expect("it holds a queue until it is dropped")
    }
}

impl Drop for SharedQueue<'_> {
    fn drop(&mut self) {
        if !self.drain() {
            // Broken; the next operation creates another.
            *self.guard = None;
        }
    }
}

/// A queue lent until it is dropped.
pub(crate) struct OwnedQueue {
    pool: Arc<Pool>,
    queue: Option<Queue>,
}

impl Deref for OwnedQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        self.queue.as_ref().expect("it holds a queue until it is dropped")
    }
}

impl DerefMut for OwnedQueue {
    fn deref_mut(&mut self) -> &mut Queue {
        self.queue.as_mut().expect("it holds a queue until it is dropped")
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        if let Some(mut queue) = self.queue.take()
            && queue.drain()
        {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(queue);
        }
        self.pool.lent.fetch_sub(1, Ordering::Relaxed);
    }
}
