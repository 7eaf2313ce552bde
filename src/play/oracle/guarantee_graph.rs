//! The positions of proofs of guarantees: what searches have found, and where the least is missing to a proof.

use crate::bounds::Bounds;
use game::{Board, Score};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The most positions that are kept for the next search: a hundred megabytes.
const KEPT_MAX: usize = 1_000_000;

/// The proof number of a proved position.
pub(crate) const PROVED: u32 = 0;

/// The proof number of a position on the way to the present one: more than that of any other.
pub(crate) const ON_PATH: u32 = 1 << 24;

/// The proof number of a position without the guarantee.
pub(crate) const REFUTED: u32 = u32::MAX;

/// A position of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GuaranteePosition {
    pub(crate) board: Board,
    /// Whether the guaranteed player is to move.
    pub(crate) is_own: bool,
    pub(crate) guarantee: Score,
}

/// What searches have found about a position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuaranteeNode {
    pub(crate) position: GuaranteePosition,
    pub(crate) is_visited: bool,
    pub(crate) is_on_path: bool,
    pub(crate) proof_number: u32,
    /// The distance of a proved position.
    pub(crate) distance: u32,
    /// The positions after quiet moves, once they are needed; of the guaranteed player only those that keep
    /// the guarantee.
    pub(crate) children: Option<QuietChildren>,
}

/// The numbers of positions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QuietChildren {
    pub(crate) numbers: [u32; 6],
    pub(crate) count: u32,
}

/// The positions of searches.
#[derive(Debug, Default)]
pub(crate) struct GuaranteeGraph {
    numbers: HashMap<GuaranteePosition, u32>,
    nodes: Vec<GuaranteeNode>,
}

/// What searches have found that holds whatever was played before. A search takes it, and puts it back.
#[derive(Debug, Default)]
pub(crate) struct KeptGuarantees(Mutex<GuaranteeGraph>);

impl KeptGuarantees {
    pub(crate) fn take(&self) -> GuaranteeGraph {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the larger graph, if another search has put one back.
    pub(crate) fn put(&self, graph: GuaranteeGraph) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if (kept.nodes.len()..=KEPT_MAX).contains(&graph.nodes.len()) {
            *kept = graph;
        }
    }
}

/// What the children of a position say about its proof.
pub(crate) struct ProofOutlook {
    pub(crate) proof_number: u32,
    /// The distance, if the position is proved.
    pub(crate) distance: u32,
    /// The child to search next, and up to which proof number. `None` if it is on the path.
    pub(crate) next: Option<(u32, u32)>,
}

impl GuaranteeGraph {
    /// Returns how many positions it has.
    pub(crate) fn positions(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node(&self, number: u32) -> &GuaranteeNode {
        &self.nodes[number as usize]
    }

    pub(crate) fn node_mut(&mut self, number: u32) -> &mut GuaranteeNode {
        &mut self.nodes[number as usize]
    }

    /// Returns the number of a position, which is a new one at its first occurrence.
    pub(crate) fn number(&mut self, position: GuaranteePosition) -> u32 {
        *self.numbers.entry(position).or_insert_with(|| {
            self.nodes.push(GuaranteeNode {
                position,
                is_visited: false,
                is_on_path: false,
                proof_number: 1,
                distance: 0,
                children: None,
            });
            self.nodes.len() as u32 - 1
        })
    }

    /// Returns the distance of a position that is proved.
    pub(crate) fn distance(&self, position: &GuaranteePosition) -> Option<u32> {
        let node = self.node(*self.numbers.get(position)?);
        (node.proof_number == PROVED).then_some(node.distance)
    }

    /// Sets a proof number. Returns whether it is another one.
    pub(crate) fn set_proof_number(&mut self, number: u32, proof_number: u32) -> bool {
        std::mem::replace(&mut self.node_mut(number).proof_number, proof_number) != proof_number
    }

    pub(crate) fn proof_outlook(&self, number: u32, children: &QuietChildren, limit: u32) -> ProofOutlook {
        let children = || children.numbers[..children.count as usize].iter().map(|&child| (child, self.node(child)));
        let proved = children().filter(|(_, child)| child.proof_number == PROVED).map(|(_, child)| child.distance);
        let open = || children().filter(|(_, child)| child.proof_number != PROVED);
        if self.node(number).position.is_own {
            // One proved child proves it: the one that seems nearest to that.
            if let Some(nearest) = proved.min() {
                return ProofOutlook { proof_number: PROVED, distance: 1 + nearest, next: None };
            }
            let mut numbers: Vec<_> =
                open().map(|(at, child)| (child.is_on_path, child.open_proof_number(), at)).collect();
            numbers.sort_unstable();
            let rival = numbers.get(1).map_or(REFUTED, |(_, rival, _)| rival.saturating_add(1));
            ProofOutlook {
                proof_number: numbers.iter().map(|(_, number, _)| *number).min().unwrap_or(REFUTED),
                distance: 0,
                next: numbers.first().filter(|(is_on_path, ..)| !is_on_path).map(|&(.., at)| (at, limit.min(rival))),
            }
        } else {
            // All children have to be proved: first the one that seems farthest from that.
            let Some((at, hardest)) = open().max_by_key(|(_, child)| child.open_proof_number()) else {
                return ProofOutlook { proof_number: PROVED, distance: 1 + proved.max().unwrap_or(0), next: None };
            };
            let others = open().count() as u32 - 1;
            ProofOutlook {
                proof_number: hardest.open_proof_number().saturating_add(others),
                distance: 0,
                next: (!hardest.is_on_path).then_some((at, limit.saturating_sub(others))),
            }
        }
    }
}

impl GuaranteeNode {
    /// Whether the position is neither proved nor refuted.
    pub(crate) fn is_open(&self) -> bool {
        ![PROVED, REFUTED].contains(&self.proof_number)
    }

    /// The proof number as it counts for a parent.
    fn open_proof_number(&self) -> u32 {
        if self.is_on_path { ON_PATH } else { self.proof_number }
    }
}

impl GuaranteePosition {
    /// Whether the guarantee is kept where the player to move gets this.
    pub(crate) fn is_kept(&self, value: Bounds) -> bool {
        if self.is_own { value.low() >= self.guarantee } else { -value.high() >= self.guarantee }
    }
}
