//! Collective calls, made of messages between two ranks.
//!
//! Broadcasts and sums use a binomial tree: counted from the root, the parent of a rank is its number without the
//! lowest set bit. A message reaches n ranks in log2 n steps, and no rank sends more than log2 n messages.

use crate::communicator::Communicator;
use crate::error::{CommunicationError, Result};

/// Node of a rank in the tree of a root.
#[derive(Debug, PartialEq, Eq)]
struct TreeNode {
    parent: Option<usize>,
    /// Descending by the size of the subtree.
    children: Vec<usize>,
}

impl TreeNode {
    fn new(rank: usize, root: usize, size: usize) -> TreeNode {
        assert!(root < size, "a job of {size} ranks has no rank {root}");
        let from_root = (rank + size - root) % size;
        let absolute = |from_root: usize| (from_root + root) % size;
        let lowest = if from_root == 0 { size.next_power_of_two() } else { from_root & from_root.wrapping_neg() };
        let bits = (0..lowest.trailing_zeros()).rev().map(|bit| 1 << bit);
        TreeNode {
            parent: (from_root != 0).then(|| absolute(from_root - lowest)),
            children: bits.map(|bit| from_root + bit).filter(|&child| child < size).map(absolute).collect(),
        }
    }
}

pub(crate) fn gather<C: Communicator + ?Sized>(
    communicator: &mut C,
    root: usize,
    message: Vec<u8>,
) -> Result<Option<Vec<Vec<u8>>>> {
    // A star: in a tree the root would receive as many bytes, and other ranks would forward messages.
    let (rank, size) = (communicator.rank(), communicator.size());
    if rank != root {
        communicator.send(root, message)?;
        return Ok(None);
    }
    let mut own = Some(message);
    let mut all = Vec::with_capacity(size);
    for from in 0..size {
        all.push(match own.take_if(|_| from == root) {
            Some(message) => message,
            None => communicator.receive(from)?,
        });
    }
    Ok(Some(all))
}

pub(crate) fn broadcast<C: Communicator + ?Sized>(
    communicator: &mut C,
    root: usize,
    message: Option<Vec<u8>>,
) -> Result<Vec<u8>> {
    assert!(
        message.is_some() == (communicator.rank() == root),
        "rank {root}, and no other, brings the message of its broadcast"
    );
    let node = TreeNode::new(communicator.rank(), root, communicator.size());
    let message = match (message, node.parent) {
        (None, Some(parent)) => communicator.receive(parent)?,
        (message, _) => message.expect("the root, which alone has no parent, brings one"),
    };
    for child in node.children {
        communicator.send(child, message.clone())?;
    }
    Ok(message)
}

pub(crate) fn sum<C: Communicator + ?Sized>(communicator: &mut C, values: &[u64]) -> Result<Vec<u64>> {
    const ROOT: usize = 0;
    let node = TreeNode::new(communicator.rank(), ROOT, communicator.size());
    let mut sums = values.to_vec();
    for &child in node.children.iter().rev() {
        let more = decode(child, &communicator.receive(child)?, values.len())?;
        for (sum, value) in sums.iter_mut().zip(more) {
            *sum = sum.checked_add(value).ok_or_else(|| CommunicationError::Unexpected {
                rank: child,
                expected: format!("at most {} to add to {sum}", u64::MAX - *sum),
                found: value.to_string(),
            })?;
        }
    }
    let bytes: Vec<u8> = sums.iter().flat_map(|value| value.to_le_bytes()).collect();
    let bytes = match node.parent {
        None => broadcast(communicator, ROOT, Some(bytes))?,
        Some(parent) => {
            communicator.send(parent, bytes)?;
            broadcast(communicator, ROOT, None)?
        }
    };
    decode(node.parent.unwrap_or(ROOT), &bytes, values.len())
}

/// Decodes the values of a sum, little-endian.
fn decode(from: usize, bytes: &[u8], values: usize) -> Result<Vec<u64>> {
    let (words, rest) = bytes.as_chunks();
    if words.len() != values || !rest.is_empty() {
        return Err(CommunicationError::Unexpected {
            rank: from,
            expected: format!("{values} values of 8 bytes to add up"),
            found: format!("{} bytes", bytes.len()),
        });
    }
    Ok(words.iter().map(|&word| u64::from_le_bytes(word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ranks_are_nodes_of_one_tree() {
        for size in 1..40 {
            for root in 0..size {
                let nodes: Vec<TreeNode> = (0..size).map(|rank| TreeNode::new(rank, root, size)).collect();
                let mut steps_max = 0;
                for rank in 0..size {
                    let mut at = rank;
                    let mut steps = 0;
                    while let Some(parent) = nodes[at].parent {
                        assert!(nodes[parent].children.contains(&at), "{at} below {parent} of {size}");
                        at = parent;
                        steps += 1;
                    }
                    assert_eq!(at, root);
                    steps_max = steps_max.max(steps);
                }
                assert!(1 << steps_max <= size, "{steps_max} steps among {size}");
                let children: usize = nodes.iter().map(|node| node.children.len()).sum();
                assert_eq!(children, size - 1);
            }
        }
    }
}
