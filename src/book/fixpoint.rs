//! Least solutions of equations between nodes, from nothing and after changes.
//!
//! Every derived number of a book solves equations of one kind: a number follows from those of the successors, a
//! *key* orders the numbers by urgency, and a number never has a smaller key than those that it rests on. Knuth's
//! generalization of Dijkstra's algorithm (1977) finds the least solution by taking numbers in the order of their keys.
//! After a change, the algorithm of Ramalingam and Reps (J. Algorithms 21, 1996) withdraws exactly the numbers that no
//! longer hold, also where they rest on each other in a cycle, and derives them again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Equations between numbered variables.
pub(crate) trait EquationSystem {
    /// The number of a variable.
    type Solution: Copy + PartialEq;
    /// Orders numbers: a number rests on numbers with smaller keys only.
    type Key: Copy + Ord;

    /// Returns the current number of a variable.
    fn solution(&self, variable: u32) -> Self::Solution;

    /// Sets the number of a variable.
    fn set(&mut self, variable: u32, solution: Self::Solution);

    /// Returns the number that follows from the current numbers of other variables.
    fn formula(&self, variable: u32) -> Self::Solution;

    /// Returns the number of a variable of which nothing is derived. Its key is the largest of the variable.
    fn nothing(&self) -> Self::Solution;

    /// Returns the key of a number.
    fn key(&self, variable: u32, solution: Self::Solution) -> Self::Key;

    /// Calls a function with every variable whose formula contains this one.
    fn dependents(&self, variable: u32, found: &mut Vec<u32>);
}

/// The variables that may differ from their formulas.
pub(crate) struct Inconsistent<K> {
    queue: BinaryHeap<Reverse<(K, u32)>>,
    dependents: Vec<u32>,
    /// The variables whose numbers changed, with repetitions.
    pub(crate) changed: Vec<u32>,
}

impl<K: Copy + Ord> Inconsistent<K> {
    /// Makes an empty set.
    pub(crate) fn new() -> Inconsistent<K> {
        Inconsistent { queue: BinaryHeap::new(), dependents: Vec::new(), changed: Vec::new() }
    }

    /// Adds a variable if it differs from its formula.
    pub(crate) fn check<E: EquationSystem<Key = K>>(&mut self, equations: &E, variable: u32) {
        let (now, then) = (equations.solution(variable), equations.formula(variable));
        if now != then {
            let key = equations.key(variable, now).min(equations.key(variable, then));
            self.queue.push(Reverse((key, variable)));
        }
    }

    /// Derives the least solution.
    pub(crate) fn solve<E: EquationSystem<Key = K>>(&mut self, equations: &mut E) {
        while let Some(Reverse((key, variable))) = self.queue.pop() {
            let (now, then) = (equations.solution(variable), equations.formula(variable));
            if now == then {
                continue;
            }
            let (now_key, then_key) = (equations.key(variable, now), equations.key(variable, then));
            if now_key.min(then_key) > key {
                // An outdated entry; the number has changed since.
                self.queue.push(Reverse((now_key.min(then_key), variable)));
                continue;
            }
            let is_derived = then_key < now_key;
            equations.set(variable, if is_derived { then } else { equations.nothing() });
            self.changed.push(variable);
            if !is_derived {
                // It may still follow from others, later.
                self.check(equations, variable);
            }
            let mut dependents = std::mem::take(&mut self.dependents);
            dependents.clear();
            equations.dependents(variable, &mut dependents);
            dependents.iter().for_each(|&dependent| self.check(equations, dependent));
            self.dependents = dependents;
        }
    }
}
