//! The communicator of a machine alone.

use crate::communicator::{Communicator, assert_other};
use crate::error::Result;
use crate::traffic::MessageTraffic;

/// The communicator of a job of one rank: collective calls return at once, and nothing is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Communicator for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn send(&mut self, to: usize, _: Vec<u8>) -> Result<()> {
        assert_other(to, 0, 1);
        Ok(())
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u8>> {
        assert_other(from, 0, 1);
        Ok(Vec::new())
    }

    fn try_receive(&mut self, from: usize) -> Result<Option<Vec<u8>>> {
        assert_other(from, 0, 1);
        Ok(None)
    }

    fn poll(&mut self) -> Result<()> {
        Ok(())
    }

    fn traffic(&self) -> MessageTraffic {
        MessageTraffic::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collective_calls_return_at_once() {
        let mut alone = Alone;
        assert_eq!(alone.gather(0, vec![3]).unwrap(), Some(vec![vec![3]]));
        assert_eq!(alone.broadcast(0, Some(vec![4])).unwrap(), [4]);
        assert_eq!(alone.sum(&[5, u64::MAX]).unwrap(), [5, u64::MAX]);
        alone.barrier().unwrap();
        assert_eq!(alone.traffic(), MessageTraffic::default());
    }

    #[test]
    #[should_panic(expected = "cannot exchange messages with itself")]
    fn a_message_to_itself_is_a_bug() {
        let _ = Alone.send(0, Vec::new());
    }
}
