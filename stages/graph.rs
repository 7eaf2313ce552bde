//! The graph of a build: the stages that all kinds declare, in the order in which they run.
//!
//! A stage runs after those that make its inputs, and those that it names. Of the stages that may run next,
//! the one of the fewest stones comes first, and for one database the kind that stands first in the table.
//! What does not belong to a database comes after all of them.

use crate::kind::Declaration;
use crate::kinds::KINDS;
use pipeline::{ArtifactName, Graph, StageName};
use planner::BuildPlan;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Returns all stages and artifacts of a build.
pub(crate) fn graph(build: &BuildPlan) -> Graph {
    let mut declared = Vec::new();
    let mut ranks = Vec::new();
    for (number, kind) in KINDS.into_iter().enumerate() {
        for declaration in (kind.declare)(kind, build) {
            let stones = declaration.stage.name.parameters().first().filter(|_| kind.phase.is_of_databases());
            ranks.push((stones.copied().unwrap_or(u32::MAX), number));
            declared.push(declaration);
        }
    }
    let order = order(&declared, &ranks);
    let mut declared: Vec<Option<Declaration>> = declared.into_iter().map(Some).collect();
    let (mut stages, mut artifacts) = (Vec::new(), Vec::new());
    for declaration in order.into_iter().filter_map(|number| declared[number].take()) {
        stages.push(declaration.stage);
        artifacts.extend(declaration.artifacts);
    }
    Graph::new(stages, artifacts).expect("stages read what other stages make")
}

/// Returns the numbers of the declared stages, those that others wait for first; of those that may run next,
/// the one of the lowest rank, which is its stones and its kind.
fn order(declared: &[Declaration], ranks: &[(u32, usize)]) -> Vec<usize> {
    let stages = || declared.iter().map(|declaration| &declaration.stage).enumerate();
    let by_name: HashMap<&StageName, usize> = stages().map(|(number, stage)| (&stage.name, number)).collect();
    let makers: HashMap<&ArtifactName, usize> =
        stages().flat_map(|(number, stage)| stage.outputs.iter().map(move |output| (output, number))).collect();
    let mut waiting = vec![0; declared.len()];
    let mut followers = vec![Vec::new(); declared.len()];
    for (number, stage) in stages() {
        let made = stage.inputs.iter().filter_map(|input| makers.get(input));
        for &before in made.chain(stage.after.iter().filter_map(|name| by_name.get(name))) {
            waiting[number] += 1;
            followers[before].push(number);
        }
    }
    let ready = |number: usize| Reverse((ranks[number], number));
    let mut next: BinaryHeap<_> = (0..declared.len()).filter(|&number| waiting[number] == 0).map(ready).collect();
    let mut order = Vec::with_capacity(declared.len());
    while let Some(Reverse((_, number))) = next.pop() {
        order.push(number);
        for &follower in &followers[number] {
            waiting[follower] -= 1;
            if waiting[follower] == 0 {
                next.push(ready(follower));
            }
        }
    }
    assert_eq!(order.len(), declared.len(), "no stage waits for itself");
    order
}
