//! Requests for whole blocks, and what a short or failed transfer makes of them.

use std::fs::File;
use std::io;
use std::sync::Arc;

/// Whether bytes come or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// A run of whole blocks to be read or written.
#[derive(Debug)]
pub(crate) struct BlockRequest {
    pub(crate) file: Arc<File>,
    pub(crate) direction: Direction,
    pub(crate) offset: u64,
    /// Whole blocks, and at most a piece.
    pub(crate) bytes: usize,
    /// How many of them matter: a file may end within its last block.
    pub(crate) needed: usize,
    /// Bytes of a block of this file.
    pub(crate) block: usize,
    /// Bytes moved so far.
    pub(crate) done: usize,
}

/// What a result makes of a request.
pub(crate) enum Advance {
    /// The rest must be asked for.
    Again,
    /// It is over.
    Done(io::Result<()>),
}

impl BlockRequest {
    /// Bytes done in whole blocks, and bytes to go: where the rest begins must be aligned too.
    pub(crate) fn rest(&self) -> (usize, usize) {
        let done = self.done / self.block * self.block;
        (done, self.bytes - done)
    }

    /// Takes note of what the kernel answered to the rest.
    pub(crate) fn advance(&mut self, result: io::Result<usize>) -> Advance {
        let (begun, _) = self.rest();
        let moved = match result {
            Ok(moved) => moved,
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                return Advance::Again;
            }
            // A thread that ends takes back what it has asked of a ring; whoever waits asks again.
            Err(error) if error.raw_os_error() == Some(libc::ECANCELED) => return Advance::Again,
            Err(error) => return Advance::Done(Err(error)),
        };
        self.done = begun + moved;
        if self.done >= self.needed {
            Advance::Done(Ok(()))
        } else if self.rest().0 == begun {
            // Not even a block came through: asking again would get no further.
            let kind = match self.direction {
                Direction::Read => io::ErrorKind::UnexpectedEof,
                Direction::Write => io::ErrorKind::WriteZero,
            };
            Advance::Done(Err(kind.into()))
        } else {
            Advance::Again
        }
    }
}
