//! In place of `ring` without the feature `build`: there is no ring, so that every queue is one of single requests.

use super::queue_memory::QueueMemory;
use super::request::BlockRequest;
use std::io;

pub(crate) use NoRing as Ring;

/// A ring, of which there is none.
pub(crate) enum NoRing {}

impl NoRing {
    pub(crate) fn new(_: QueueMemory) -> io::Result<NoRing> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this program was built without io_uring"))
    }

    pub(crate) fn idle(&self) -> Option<usize> {
        match *self {}
    }

    pub(crate) fn in_flight(&self) -> usize {
        match *self {}
    }

    pub(crate) fn bytes_mut(&mut self, _: usize) -> &mut [u8] {
        match *self {}
    }

    pub(crate) fn start(&mut self, _: usize, _: BlockRequest) {
        match *self {}
    }

    pub(crate) fn submit(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn finish(&mut self) -> io::Result<Option<(usize, BlockRequest, io::Result<()>)>> {
        match *self {}
    }
}
