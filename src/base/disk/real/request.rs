//! Requests for whole blocks, and their state after a short or failed transfer.

use std::fs::File;
use std::io;
use std::sync::Arc;

/// The direction of a transfer.
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
    /// A multiple of `block`, at most a piece.
    pub(crate) bytes: usize,
    /// Bytes that are needed: a file may end within its last block.
    pub(crate) needed: usize,
    /// Bytes of a block of this file.
    pub(crate) block: usize,
    pub(crate) done: usize,
}

/// The state of a request after a result of the kernel.
pub(crate) enum Advance {
    /// The rest must be requested.
    Again,
    /// The request is complete, or has failed.
    Done(io::Result<()>),
}

impl BlockRequest {
    /// Bytes done in whole blocks, and bytes left: the rest must begin aligned too.
    pub(crate) fn rest(&self) -> (usize, usize) {
        let done = self.done / self.block * self.block;
        (done, self.bytes - done)
    }

    /// Applies the result of the request for the rest.
    pub(crate) fn advance(&mut self, result: io::Result<usize>) -> Advance {
        let (begun, _) = self.rest();
        let moved = match result {
            Ok(moved) => moved,
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                return Advance::Again;
            }
            // The requests of a thread that ends are cancelled; the waiting thread repeats them.
            Err(error) if error.raw_os_error() == Some(libc::ECANCELED) => return Advance::Again,
            Err(error) => return Advance::Done(Err(error)),
        };
        self.done = begun + moved;
        if self.done >= self.needed {
            Advance::Done(Ok(()))
        } else if self.rest().0 == begun {
            // Less than a block was transferred: a repetition would get no further.
            Advance::Done(Err(match self.direction {
                Direction::Read => io::ErrorKind::UnexpectedEof.into(),
                // Up to a limit that is no multiple of a block.
                Direction::Write if is_beyond_limit(self.offset + self.bytes as u64) => {
                    io::Error::from_raw_os_error(libc::EFBIG)
                }
                Direction::Write => io::ErrorKind::WriteZero.into(),
            }))
        } else {
            Advance::Again
        }
    }
}

/// Whether a file of this length would exceed the limit of this process on the size of files.
fn is_beyond_limit(bytes: u64) -> bool {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current.is_some_and(|limit| bytes > limit)
}
