//! Queues of requests for whole blocks: through a ring, or one at a time.
//!
//! Both kinds have the same interface. A caller takes an idle piece, fills it (for a write), starts a request on it,
//! and later receives the finished piece. A queue without a ring finishes each request as it starts it.

use super::queue_memory::{MEMORY_BYTES, PIECE_BYTES, QueueMemory};
use super::request::{Advance, BlockRequest, Direction};
use super::ring::Ring;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of memory of a queue of either kind.
pub(crate) const QUEUE_BYTES: usize = MEMORY_BYTES;

/// A queue of requests, with its own memory of [`QUEUE_BYTES`].
pub(crate) enum Queue {
    Ring(Box<Ring>),
    Single(SingleQueue),
}

/// A queue without a ring, of one piece.
pub(crate) struct SingleQueue {
    memory: QueueMemory,
    over: Option<(BlockRequest, io::Result<()>)>,
    /// See `Ring::ask_bytes_max`.
    ask_bytes_max: usize,
}

impl Queue {
    /// Creates a queue with a ring.
    pub(crate) fn ring(memory: QueueMemory) -> io::Result<Queue> {
        Ok(Queue::Ring(Box::new(Ring::new(memory)?)))
    }

    /// Creates a queue without a ring.
    pub(crate) fn single(memory: QueueMemory) -> Queue {
        Queue::Single(SingleQueue { memory, over: None, ask_bytes_max: QUEUE_BYTES })
    }

    pub(crate) fn piece_bytes(&self) -> usize {
        match self {
            Queue::Ring(_) => PIECE_BYTES,
            Queue::Single(_) => QUEUE_BYTES,
        }
    }

    /// Whether several requests can be in flight.
    pub(crate) fn is_deep(&self) -> bool {
        matches!(self, Queue::Ring(_))
    }

    /// Limits the bytes of one request to the kernel, so that all transfers are short.
    #[cfg(test)]
    pub(crate) fn set_ask_bytes_max(&mut self, bytes: usize) {
        match self {
            Queue::Ring(ring) => ring.ask_bytes_max = bytes,
            Queue::Single(single) => single.ask_bytes_max = bytes,
        }
    }

    /// A piece without a request.
    pub(crate) fn idle(&self) -> Option<usize> {
        match self {
            Queue::Ring(ring) => ring.idle(),
            Queue::Single(single) => single.over.is_none().then_some(0),
        }
    }

    /// Requests started and not yet finished.
    pub(crate) fn in_flight(&self) -> usize {
        match self {
            Queue::Ring(ring) => ring.in_flight(),
            Queue::Single(single) => usize::from(single.over.is_some()),
        }
    }

    /// The bytes of an idle piece.
    pub(crate) fn bytes_mut(&mut self, piece: usize) -> &mut [u8] {
        match self {
            Queue::Ring(ring) => ring.bytes_mut(piece),
            Queue::Single(single) => single.memory.bytes_mut(),
        }
    }

    /// Starts a request on an idle piece.
    pub(crate) fn start(&mut self, piece: usize, request: BlockRequest) {
        match self {
            Queue::Ring(ring) => ring.start(piece, request),
            Queue::Single(single) => single.carry_out(request),
        }
    }

    /// Submits started requests to the kernel.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        match self {
            Queue::Ring(ring) => ring.submit(),
            Queue::Single(_) => Ok(()),
        }
    }

    /// Waits until some request is finished; `None` if there is none. The outer error is that of the queue itself.
    pub(crate) fn finish(&mut self) -> io::Result<Option<(usize, BlockRequest, io::Result<()>)>> {
        match self {
            Queue::Ring(ring) => ring.finish(),
            Queue::Single(single) => Ok(single.over.take().map(|(request, result)| (0, request, result))),
        }
    }

    /// Waits for all requests in flight, ignoring their errors. Returns whether none is left.
    pub(crate) fn drain(&mut self) -> bool {
        while let Ok(Some(_)) = self.finish() {}
        self.in_flight() == 0
    }
}

impl SingleQueue {
    fn carry_out(&mut self, mut request: BlockRequest) {
        assert!(self.over.is_none(), "the piece was idle");
        let result = loop {
            let (done, bytes) = request.rest();
            let offset = request.offset + done as u64;
            let asked = &mut self.memory.bytes_mut()[done..done + bytes.min(self.ask_bytes_max)];
            let moved = match request.direction {
                Direction::Read => request.file.read_at(asked, offset),
                Direction::Write => request.file.write_at(asked, offset),
            };
            if let Advance::Done(result) = request.advance(moved) {
                break result;
            }
        };
        self.over = Some((request, result));
    }
}
