//! Reads that threads of their own carry out ahead of their use, so that a thread that computes does not wait for the
//! drive.
//!
//! A caller starts a read and waits for it when it needs the bytes. If no reader has begun it by then, the waiting
//! thread carries it out itself: a read never waits for others, and none is lost where no thread can be started.
//! Callers bound how many reads they start.

use crate::error::DiskError;
use crate::threads;
use crate::usage::Usage;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// Stack of a reader, which calls nothing deep.
const STACK_BYTES: usize = 256 << 10;

/// Bytes of buffers, for each reader, that are kept for further reads, which then need not be cleared.
const SPARE_BYTES_A_READER: usize = 512 << 10;

/// The bytes of a read.
#[derive(Debug)]
pub struct ReadBytes {
    bytes: Vec<u8>,
    spare: Option<Arc<SpareBuffers>>,
}

impl Deref for ReadBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Vec<u8>> for ReadBytes {
    fn from(bytes: Vec<u8>) -> ReadBytes {
        ReadBytes { bytes, spare: None }
    }
}

impl Drop for ReadBytes {
    fn drop(&mut self) {
        if let Some(spare) = &self.spare {
            spare.put(std::mem::take(&mut self.bytes));
        }
    }
}

/// Buffers of earlier reads.
#[derive(Debug, Default)]
struct SpareBuffers {
    buffers: Mutex<Vec<Vec<u8>>>,
    /// The most bytes that are kept.
    bytes_max: AtomicUsize,
}

impl SpareBuffers {
    /// Returns a buffer with any content.
    fn take(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.buffers().pop().unwrap_or_default();
        buffer.resize(bytes, 0);
        buffer
    }

    fn put(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers();
        let kept = buffers.iter().map(Vec::capacity).sum::<usize>();
        if kept + buffer.capacity() <= self.bytes_max.load(Ordering::Relaxed) {
            buffers.push(buffer);
        }
    }

    fn buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A read that was started and not yet waited for.
#[must_use = "a read that nothing waits for is cancelled"]
pub struct PendingRead(ReadState);

enum ReadState {
    Complete(Result<ReadBytes, DiskError>),
    Started(Arc<ReadJob>),
}

/// What fills a buffer from a file.
type ReadFile = dyn Fn(&mut [u8]) -> Result<(), DiskError> + Send + Sync;

/// A read, by a reader or by the thread that waits for it.
struct ReadJob {
    bytes: usize,
    read: Box<ReadFile>,
    /// The account of the thread that started it, which a reader charges.
    usage: Option<Arc<Usage>>,
    progress: Mutex<JobProgress>,
    finished: Condvar,
}

enum JobProgress {
    /// No thread has begun the read into this buffer, which may be too short.
    Queued(ReadBytes),
    Running,
    Finished(Result<ReadBytes, DiskError>),
    /// The result was taken, or nothing waits for it.
    Closed,
}

impl PendingRead {
    /// A read that was carried out at once.
    pub fn complete(result: Result<Vec<u8>, DiskError>) -> PendingRead {
        PendingRead(ReadState::Complete(result.map(ReadBytes::from)))
    }

    /// A read of `bytes` bytes that the thread that waits for it carries out.
    pub(crate) fn deferred(bytes: usize, read: Box<ReadFile>) -> PendingRead {
        PendingRead(ReadState::Started(Arc::new(ReadJob::new(bytes, Vec::new().into(), read))))
    }

    /// Returns the bytes, after blocking until they are read.
    ///
    /// # Errors
    /// Those of [`InputFile::read_at`](crate::InputFile::read_at).
    pub fn wait(mut self) -> Result<ReadBytes, DiskError> {
        match std::mem::replace(&mut self.0, ReadState::Complete(Ok(Vec::new().into()))) {
            ReadState::Complete(result) => result,
            ReadState::Started(job) => job.wait(),
        }
    }
}

impl Drop for PendingRead {
    fn drop(&mut self) {
        if let ReadState::Started(job) = &self.0 {
            let mut progress = job.progress();
            if matches!(*progress, JobProgress::Queued(_)) {
                *progress = JobProgress::Closed;
            }
        }
    }
}

impl fmt::Debug for PendingRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingRead")
    }
}

impl ReadJob {
    fn new(bytes: usize, buffer: ReadBytes, read: Box<ReadFile>) -> ReadJob {
        let progress = Mutex::new(JobProgress::Queued(buffer));
        ReadJob { bytes, read, usage: Usage::charged(), progress, finished: Condvar::new() }
    }

    /// Carries out the read unless another thread has begun it or nothing waits for it.
    fn run(&self) {
        let mut progress = self.progress();
        let JobProgress::Queued(buffer) = &mut *progress else { return };
        let mut buffer = std::mem::replace(buffer, Vec::new().into());
        *progress = JobProgress::Running;
        drop(progress);
        let mut running = RunningJob { job: self, result: None };
        buffer.bytes.resize(self.bytes, 0);
        let read = (self.read)(&mut buffer.bytes).map(|()| buffer);
        running.result = Some(read);
    }

    fn wait(&self) -> Result<ReadBytes, DiskError> {
        loop {
            self.run();
            let running = |progress: &mut JobProgress| matches!(progress, JobProgress::Running);
            let progress = self.finished.wait_while(self.progress(), running);
            let mut progress = progress.unwrap_or_else(PoisonError::into_inner);
            match std::mem::replace(&mut *progress, JobProgress::Closed) {
                JobProgress::Finished(result) => return result,
                other => *progress = other,
            }
        }
    }

    fn progress(&self) -> MutexGuard<'_, JobProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A read that a thread has begun. If the read panics, it is queued again, so that the thread that waits repeats it.
struct RunningJob<'j> {
    job: &'j ReadJob,
    result: Option<Result<ReadBytes, DiskError>>,
}

impl Drop for RunningJob<'_> {
    fn drop(&mut self) {
        *self.job.progress() = match self.result.take() {
            Some(result) => JobProgress::Finished(result),
            None => JobProgress::Queued(Vec::new().into()),
        };
        self.job.finished.notify_one();
    }
}

/// The readers of a disk, as many as there are queues for reads, started with the first read. They end with
/// the disk and its files.
#[derive(Default)]
pub(crate) struct ReaderThreads {
    jobs: OnceLock<Sender<Arc<ReadJob>>>,
    spare: Arc<SpareBuffers>,
}

impl ReaderThreads {
    /// Starts to read `bytes` bytes. The first call decides the number of readers.
    pub(crate) fn start(&self, readers: usize, bytes: usize, read: Box<ReadFile>) -> PendingRead {
        let jobs = self.jobs.get_or_init(|| {
            self.spare.bytes_max.store(readers * SPARE_BYTES_A_READER, Ordering::Relaxed);
            start_readers(readers)
        });
        let buffer = ReadBytes { bytes: self.spare.take(bytes), spare: Some(Arc::clone(&self.spare)) };
        let job = Arc::new(ReadJob::new(bytes, buffer, read));
        // Without readers the job stays queued until it is waited for.
        let _ = jobs.send(Arc::clone(&job));
        PendingRead(ReadState::Started(job))
    }
}

fn start_readers(readers: usize) -> Sender<Arc<ReadJob>> {
    let (jobs, queue) = mpsc::channel();
    let queue = Arc::new(Mutex::new(queue));
    for number in 0..readers {
        let queue = Arc::clone(&queue);
        let reader = thread::Builder::new().name(format!("reader {number}")).stack_size(STACK_BYTES);
        let read = move || {
            while let Some(job) = next_job(&queue) {
                Usage::charge(job.usage.clone(), || job.run())
            }
        };
        if threads::spawn(reader, read).is_err() {
            break;
        }
    }
    jobs
}

/// Waits for a job; `None` once there can be no more.
fn next_job(queue: &Mutex<Receiver<Arc<ReadJob>>>) -> Option<Arc<ReadJob>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    const READERS: usize = 4;

    /// A read at `offset` of a file whose bytes are the low bytes of their offsets. It first passes the barrier.
    fn slow(barrier: &Arc<Barrier>, offset: u64) -> Box<ReadFile> {
        let barrier = Arc::clone(barrier);
        Box::new(move |into| {
            barrier.wait();
            into.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = at as u8);
            Ok(())
        })
    }

    #[test]
    fn reads_run_beside_their_caller() {
        // All readers and this thread meet at the barrier.
        let barrier = Arc::new(Barrier::new(READERS + 1));
        let readers = ReaderThreads::default();
        let reads: Vec<_> =
            (0..READERS as u64).map(|at| readers.start(READERS, 50, slow(&barrier, at * 100))).collect();
        let mut here = [0; 10];
        slow(&barrier, 7)(&mut here).unwrap();
        assert_eq!(here[..3], [7, 8, 9]);
        for (at, read) in reads.into_iter().enumerate() {
            let expected: Vec<u8> = (at * 100..at * 100 + 50).map(|at| at as u8).collect();
            assert_eq!(*read.wait().unwrap(), expected);
        }
    }

    #[test]
    fn without_readers_the_caller_reads() {
        let readers = ReaderThreads::default();
        readers.jobs.set(mpsc::channel().0).unwrap();
        let read = readers.start(READERS, 3, slow(&Arc::new(Barrier::new(1)), 5));
        assert_eq!(*read.wait().unwrap(), [5, 6, 7]);
    }

    #[test]
    fn a_cancelled_read_is_not_carried_out() {
        let (jobs, queue) = mpsc::channel();
        let readers = ReaderThreads::default();
        readers.jobs.set(jobs).unwrap();
        // A read would block forever.
        drop(readers.start(READERS, 1, slow(&Arc::new(Barrier::new(2)), 0)));
        drop(readers);
        let queue = Mutex::new(queue);
        next_job(&queue).unwrap().run();
        assert!(next_job(&queue).is_none());
    }
}
