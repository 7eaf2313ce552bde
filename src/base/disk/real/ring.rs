//! An `io_uring` with the buffers that it reads into and writes from.
//!
//! The memory is a range of a large page, divided into pieces and registered with the ring, so that the kernel pins it
//! once and not for each request. A piece belongs to the kernel from [`Ring::start`] until [`Ring::finish`] has
//! returned it: meanwhile no reference to its bytes exists, and the file of its request stays open. A dropped ring
//! first waits for requests in flight; if the kernel refuses to wait, the memory is leaked rather than freed.
//!
//! Short reads and writes are normal: the rest is requested again.

use super::queue_memory::{MEMORY_BYTES, PIECE_BYTES, PIECES, QueueMemory};
use super::request::{Advance, BlockRequest, Direction};
use io_uring::{IoUring, opcode, squeue, types};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

/// A ring and its pieces.
pub(crate) struct Ring {
    ring: ManuallyDrop<IoUring>,
    memory: ManuallyDrop<QueueMemory>,
    /// Whether the memory is registered: a limit on locked memory (`ulimit -l`) may forbid it.
    registered: bool,
    /// The request of each piece that is in flight.
    requests: [Option<BlockRequest>; PIECES],
    in_flight: usize,
    /// Whether the submission queue has entries that were not submitted.
    queued: bool,
    /// The most bytes of one request to the kernel; tests make it small, so that all requests come back short.
    pub(crate) ask_bytes_max: usize,
}

impl Ring {
    /// Sets up a ring.
    ///
    /// # Errors
    /// `ENOSYS` or `EPERM` where rings are not allowed, as in many containers; some allow a ring, and refuse
    /// its requests.
    pub(crate) fn new(memory: QueueMemory) -> io::Result<Ring> {
        let ring = IoUring::builder().dontfork().build(PIECES as u32)?;
        let all = libc::iovec { iov_base: memory.address().cast(), iov_len: MEMORY_BYTES };
        // SAFETY: the range is all of `memory`, which outlives the ring: `drop` closes the ring first. Saves the
        // kernel looking up and pinning the pages of each request.
        let registered = unsafe { ring.submitter().register_buffers(&[all]) }.is_ok();
        let mut ring = Ring {
            ring: ManuallyDrop::new(ring),
            memory: ManuallyDrop::new(memory),
            registered,
            requests: [const { None }; PIECES],
            in_flight: 0,
            queued: false,
            ask_bytes_max: PIECE_BYTES,
        };
        ring.check()?;
        Ok(ring)
    }

    /// Carries out a request that does nothing.
    fn check(&mut self) -> io::Result<()> {
        // SAFETY: the request has no memory and no file.
        unsafe { self.ring.submission().push(&opcode::Nop::new().build()) }.expect("the queue is empty");
        self.enter(1)?;
        match self.ring.completion().next().map(|done| done.result()) {
            Some(code) if code < 0 => Err(io::Error::from_raw_os_error(-code)),
            _ => Ok(()),
        }
    }

    /// A piece that is not in flight.
    pub(crate) fn idle(&self) -> Option<usize> {
        self.requests.iter().position(Option::is_none)
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The bytes of a piece that is not in flight.
    pub(crate) fn bytes_mut(&mut self, piece: usize) -> &mut [u8] {
        assert!(self.requests[piece].is_none(), "a piece in flight is the kernel's");
        // SAFETY: the piece lies within `memory`, which no other ring has, the kernel does not have
        // it (asserted), and the result borrows `self` mutably, so no second reference exists and `start` must wait.
        unsafe { std::slice::from_raw_parts_mut(self.address(piece), PIECE_BYTES) }
    }

    /// Passes a piece to the kernel. The request is submitted at the latest by the next [`finish`](Self::finish).
    pub(crate) fn start(&mut self, piece: usize, request: BlockRequest) {
        assert!(self.requests[piece].is_none(), "a piece in flight is the kernel's");
        assert!(request.bytes <= PIECE_BYTES, "a request fits its piece");
        self.push(piece, &request);
        self.requests[piece] = Some(request);
        self.in_flight += 1;
    }

    /// Submits all started requests.
    ///
    /// # Errors
    /// The error of the kernel. The requests stay in flight.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        if self.queued {
            self.enter(0)?;
        }
        Ok(())
    }

    /// Waits for a request to complete or fail, and takes its piece back. `None` if nothing is in flight.
    ///
    /// # Errors
    /// If the kernel refuses to wait; the requests stay in flight.
    pub(crate) fn finish(&mut self) -> io::Result<Option<(usize, BlockRequest, io::Result<()>)>> {
        while self.in_flight > 0 {
            let Some(done) = self.ring.completion().next() else {
                self.enter(1)?;
                continue;
            };
            let piece = done.user_data() as usize;
            let mut request = self.requests[piece].take().expect("only pieces in flight are completed");
            let result = match done.result() {
                code if code < 0 => Err(io::Error::from_raw_os_error(-code)),
                bytes => Ok(bytes as usize),
            };
            match request.advance(result) {
                Advance::Again => {
                    self.push(piece, &request);
                    self.requests[piece] = Some(request);
                }
                Advance::Done(result) => {
                    self.in_flight -= 1;
                    return Ok(Some((piece, request, result)));
                }
            }
        }
        Ok(None)
    }

    fn address(&self, piece: usize) -> *mut u8 {
        assert!(piece < PIECES, "there is such a piece");
        // SAFETY: `memory` has PIECES * PIECE_BYTES bytes, so the start of a piece lies within it.
        unsafe { self.memory.address().add(piece * PIECE_BYTES) }
    }

    /// Queues the rest of a request. Each piece has at most one entry, so the queue has room.
    fn push(&mut self, piece: usize, request: &BlockRequest) {
        let (done, bytes) = request.rest();
        let bytes = bytes.min(self.ask_bytes_max) as u32;
        let offset = request.offset + done as u64;
        let fd = types::Fd(request.file.as_raw_fd());
        // SAFETY: `done` is less than the bytes of the request, which fit the piece (asserted in `start`).
        let address = unsafe { self.address(piece).add(done) };
        let entry: squeue::Entry = match (request.direction, self.registered) {
            (Direction::Read, true) => opcode::ReadFixed::new(fd, address, bytes, 0).offset(offset).build(),
            (Direction::Read, false) => opcode::Read::new(fd, address, bytes).offset(offset).build(),
            (Direction::Write, true) => opcode::WriteFixed::new(fd, address, bytes, 0).offset(offset).build(),
            (Direction::Write, false) => opcode::Write::new(fd, address, bytes).offset(offset).build(),
        };
        let entry = entry.user_data(piece as u64);
        // SAFETY: the memory is the piece's own, which is not accessed until the request has returned (`requests` is
        // `Some` from here on, and `bytes_mut` asserts that it is not) and which is not freed before (`drop` waits).
        // The file stays open, because the request in `requests` shares it. This lets the kernel work on many pieces
        // concurrently.
        unsafe { self.ring.submission().push(&entry) }.expect("the queue has an entry for each piece");
        self.queued = true;
    }

    /// Submits queued entries, and waits for `wait` completions.
    fn enter(&mut self, wait: usize) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(wait) {
                Ok(_) => {
                    self.queued = !self.ring.submission().is_empty();
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A temporary shortage of memory: completed requests free some.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => {
                    std::thread::yield_now();
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while let Ok(Some(_)) = self.finish() {}
        let waited = self.in_flight == 0;
        // SAFETY: dropped here once, and never used again. The ring first: with it goes the registration of `memory`.
        unsafe { ManuallyDrop::drop(&mut self.ring) };
        if waited {
            // SAFETY: dropped here once; nothing is in flight, so the kernel writes to it no more. Otherwise the pages
            // are leaked, which is safe.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
