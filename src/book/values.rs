//! Proved bounds and estimates of all positions, after a change of some.
//!
//! The lower bound of a position is its value if every unknown leaf is at its worst for the player to move
//! there, the upper bound if it is at its best; an estimate is its value if every leaf has its own. A
//! repetition is worth 0. So the bounds are the best that follow from the leaves, also where positions of a
//! cycle lead to each other.
//!
//! Each of the three is a solution of one kind of equations. A value above 0 rests on one move, a value below 0 on all
//! moves, and both on values that are no nearer to 0, or as near and forced in fewer moves. What rests on nothing is 0:
//! neither player can force more than to go on for ever. This is the order of retrograde analysis, which
//! [`crate::fixpoint`] needs. Levels are solved from the lowest up, since gains lead to lower ones only.

use crate::components::components;
use crate::fixpoint::{EquationSystem, Inconsistent};
use crate::game::Hundredths;
use crate::graph::{BookGraph, DerivedValue, NodeId};

/// The kinds of values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Low,
    High,
    Estimate,
}

/// The order of values: by level, then those further from 0, then those forced in fewer moves.
type ValueKey = (u16, u16, u32);

const KINDS: u32 = 3;

fn variable(id: NodeId, kind: Kind) -> u32 {
    id.0 * KINDS + kind as u32
}

fn parts(variable: u32) -> (NodeId, Kind) {
    let kind = match variable % KINDS {
        0 => Kind::Low,
        1 => Kind::High,
        _ => Kind::Estimate,
    };
    (NodeId(variable / KINDS), kind)
}

/// Whether bounds or estimates are solved: estimates are limited by bounds, which come first.
struct ValueEquations<'a> {
    graph: &'a mut BookGraph,
}

impl ValueEquations<'_> {
    fn derived(&self, id: NodeId, kind: Kind) -> DerivedValue {
        let node = self.graph.node(id);
        match kind {
            Kind::Low => node.low,
            Kind::High => node.high,
            Kind::Estimate => node.estimate,
        }
    }

    /// Returns what the moves of a position make of the values of its successors.
    fn of_moves(&self, id: NodeId, kind: Kind) -> DerivedValue {
        let level = self.graph.node(id).level;
        let of_child = match kind {
            Kind::Low => Kind::High,
            Kind::High => Kind::Low,
            Kind::Estimate => Kind::Estimate,
        };
        let (mut best, mut least, mut most) = (Hundredths::MIN, u32::MAX, 0);
        for edge in self.graph.moves(id) {
            let child = self.derived(edge.child, of_child);
            let value = edge.gain - child.value;
            let rank = if self.graph.node(edge.child).level == level { child.rank } else { 0 };
            if value > best {
                (best, least, most) = (value, rank, rank);
            } else if value == best {
                (least, most) = (least.min(rank), most.max(rank));
            }
        }
        let rank = match best.signum() {
            1 => least.saturating_add(1),
            -1 => most.saturating_add(1),
            _ => 0,
        };
        DerivedValue { value: best, rank }
    }
}

impl EquationSystem for ValueEquations<'_> {
    type Solution = DerivedValue;
    type Key = ValueKey;

    fn solution(&self, variable: u32) -> DerivedValue {
        let (id, kind) = parts(variable);
        self.derived(id, kind)
    }

    fn set(&mut self, variable: u32, solution: DerivedValue) {
        let (id, kind) = parts(variable);
        let node = self.graph.node_mut(id);
        match kind {
            Kind::Low => node.low = solution,
            Kind::High => node.high = solution,
            Kind::Estimate => node.estimate = solution,
        }
    }

    fn formula(&self, variable: u32) -> DerivedValue {
        let (id, kind) = parts(variable);
        let node = self.graph.node(id);
        // The claims that both players can fall back on.
        let (low, high) = match kind {
            Kind::Low => (node.assessment.low, Hundredths::MAX),
            Kind::High => (Hundredths::MIN, node.assessment.high),
            Kind::Estimate => (node.low.value, node.high.value),
        };
        let given = |value| DerivedValue { value, rank: 0 };
        if !self.graph.is_interior(id) {
            return given(match kind {
                Kind::Low => low,
                Kind::High => high,
                Kind::Estimate => node.assessment.estimate.clamp(low, high),
            });
        }
        let derived = self.of_moves(id, kind);
        match derived.value {
            value if value < low || value == low && value > 0 => given(low),
            // The moves of the player are needed for more than 0, but rest on values further from 0.
            value if value > high => DerivedValue { value: high, rank: u32::from(high > 0) },
            value if value == high && value < 0 => given(high),
            _ => derived,
        }
    }

    fn nothing(&self) -> DerivedValue {
        DerivedValue::default()
    }

    fn key(&self, variable: u32, solution: DerivedValue) -> ValueKey {
        let level = self.graph.node(parts(variable).0).level;
        match solution.value {
            0 => (level, u16::MAX, u32::MAX),
            value => (level, u16::MAX - value.unsigned_abs(), solution.rank),
        }
    }

    fn dependents(&self, changed: u32, found: &mut Vec<u32>) {
        let (id, kind) = parts(changed);
        let of_parent = match kind {
            Kind::Low => Kind::High,
            Kind::High => Kind::Low,
            Kind::Estimate => Kind::Estimate,
        };
        found.extend(self.graph.moves_to(id).map(|edge| variable(edge.parent, of_parent)));
    }
}

/// Derives the values that follow from changed assessments or new moves of some positions. Returns the positions whose
/// values changed, with repetitions.
pub(crate) fn update(graph: &mut BookGraph, positions: impl Iterator<Item = NodeId> + Clone) -> Vec<NodeId> {
    let mut values = ValueEquations { graph };
    let mut bounds = Inconsistent::<ValueKey>::new();
    for id in positions.clone() {
        bounds.check(&values, variable(id, Kind::Low));
        bounds.check(&values, variable(id, Kind::High));
    }
    bounds.solve(&mut values);
    let mut changed: Vec<NodeId> = bounds.changed.iter().map(|&variable| parts(variable).0).collect();
    let mut estimates = Inconsistent::<ValueKey>::new();
    for id in positions.chain(changed.iter().copied()) {
        estimates.check(&values, variable(id, Kind::Estimate));
    }
    estimates.solve(&mut values);
    changed.extend(estimates.changed.iter().map(|&variable| parts(variable).0));
    changed
}

/// Derives all values from nothing, successors before predecessors. Only positions of cycles need the order of values.
pub(crate) fn derive(graph: &mut BookGraph) {
    for id in graph.ids() {
        let node = graph.node_mut(id);
        (node.low, node.high, node.estimate) = Default::default();
    }
    let found = components(graph.len(), |node, found| {
        found.extend(graph.moves(NodeId(node as u32)).iter().map(|edge| edge.child.index()));
    });
    let mut values = ValueEquations { graph };
    for component in found {
        let ids = component.iter().map(|&node| NodeId(node as u32));
        match component[..] {
            [_] => ids.for_each(|id| {
                for kind in [Kind::Low, Kind::High, Kind::Estimate] {
                    let solution = values.formula(variable(id, kind));
                    values.set(variable(id, kind), solution);
                }
            }),
            _ => _ = update(values.graph, ids),
        }
    }
}
