//! The slow twin of [`crate::values`] and [`crate::priorities`]: everything from the leaves, in rounds.

use crate::components::components;
use crate::game::{Assessment, Hundredths};
use crate::graph::{BookGraph, NodeId};
use crate::priorities::{DropOut, Priorities, Priority};

/// Returns the bounds and estimates of all positions. Within a strongly connected component everything starts from 0,
/// and rounds repeat until nothing changes.
pub fn values(graph: &BookGraph) -> Vec<Assessment> {
    values_of(graph, &|id| graph.node(id).assessment)
}

/// Returns the values of all positions if other things are known of them without the book.
pub fn values_of(graph: &BookGraph, assessment: &dyn Fn(NodeId) -> Assessment) -> Vec<Assessment> {
    let ids: Vec<_> = graph.ids().collect();
    let zero = Assessment::exact(0);
    let mut values = vec![zero; ids.len()];
    let successors = |node: usize, found: &mut Vec<usize>| {
        found.extend(graph.moves(ids[node]).iter().map(|edge| edge.child.index()));
    };
    for component in components(ids.len(), successors) {
        rounds(&component, &mut values, |node, values| {
            let own = assessment(ids[node]);
            let moves = graph.moves(ids[node]);
            if moves.is_empty() {
                return own;
            }
            let best = |figure: &dyn Fn(Assessment) -> Hundredths| {
                let values = moves.iter().map(|edge| edge.gain - figure(values[edge.child.index()]));
                values.max().unwrap_or(0)
            };
            Assessment {
                low: best(&|child| child.high).max(own.low),
                high: best(&|child| child.low).min(own.high),
                estimate: values[node].estimate,
            }
        });
        rounds(&component, &mut values, |node, values| {
            let (now, moves) = (values[node], graph.moves(ids[node]));
            let of_moves = moves.iter().map(|edge| edge.gain - values[edge.child.index()].estimate).max();
            let estimate = of_moves.unwrap_or(assessment(ids[node]).estimate);
            Assessment { estimate: estimate.clamp(now.low, now.high), ..now }
        });
    }
    values
}

fn rounds(component: &[usize], values: &mut [Assessment], formula: impl Fn(usize, &[Assessment]) -> Assessment) {
    loop {
        let next: Vec<Assessment> = component.iter().map(|&node| formula(node, values)).collect();
        let mut is_same = true;
        for (&node, next) in component.iter().zip(next) {
            is_same &= values[node] == next;
            values[node] = next;
        }
        if is_same {
            return;
        }
    }
}

/// Returns the priorities of all positions: from infinity, in rounds, until nothing changes (Bellman and Ford).
pub fn priorities(graph: &BookGraph, rule: &DropOut, is_open: impl Fn(usize) -> bool) -> Vec<Priorities> {
    let infinite = Priorities { book: Priority::INFINITE, opponent: Priority::INFINITE };
    let mut found = vec![infinite; graph.len()];
    loop {
        let mut is_same = true;
        for id in graph.ids() {
            let at = id.index();
            let next = match graph.is_interior(id) {
                _ if graph.is_closed(id) => infinite,
                false if is_open(at) => Priorities { book: Priority::ZERO, opponent: Priority::ZERO },
                false => infinite,
                true => {
                    let best = graph.best(id).unwrap_or(0);
                    let step = rule.step(graph, id);
                    let mut next = infinite;
                    let mut has_move = false;
                    for edge in graph.moves(id) {
                        let price = best - graph.estimate(edge);
                        let child = found[edge.child.index()];
                        has_move |= price == 0 && graph.is_closed(edge.child);
                        if price == 0 || rule.solves && rule.is_settled(graph, id) {
                            let value = child.opponent.plus(step).plus(rule.cost(price));
                            next.book = next.book.min(value);
                        }
                        next.opponent = next.opponent.min(child.book.plus(step).plus(rule.cost(price)));
                    }
                    if has_move && !rule.solves {
                        next.book = Priority::INFINITE;
                    }
                    next
                }
            };
            is_same &= found[at] == next;
            found[at] = next;
        }
        if is_same {
            return found;
        }
    }
}
