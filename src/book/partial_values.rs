//! The values of Lincke's thesis (2002, chapter 4): a draw and an estimate cannot be compared, so values are partially
//! ordered. A view of a book: the program itself uses bounds and estimates.
//!
//! Two printed rules are corrected. Of two at-most-draws, the mover takes the one with the larger attribute
//! (tables 4.3 and 4.5 print the smaller). A cycle that the mover can leave at a loss only stays a cycle, and
//! the loss becomes one of its exits (table 4.5 has an estimate of 0, by which no cycle of figures 4.16 and
//! 4.17 would keep its attributes).

use crate::game::{Assessment, Hundredths};
use crate::graph::BookGraph;

/// A value, seen from the player to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialValue {
    /// A proved win.
    Win,
    /// A proved loss.
    Loss,
    /// A proved draw.
    Draw,
    /// Nothing is proved.
    Estimate(Hundredths),
    /// The mover has a draw in hand, but may leave for the estimate, if there is one.
    AtLeastDraw(Option<Hundredths>),
    /// The opponent has a draw in hand, but may leave for the estimate.
    AtMostDraw(Option<Hundredths>),
    /// Both players lose by leaving a cycle.
    CycleDraw {
        /// What the opponent's ways out give the mover at least; [`Hundredths::MAX`] if there is none.
        stay: Hundredths,
        /// The best of the mover's ways out; [`Hundredths::MIN`] if there is none.
        leave: Hundredths,
    },
}

use PartialValue::{AtLeastDraw, AtMostDraw, CycleDraw, Draw, Estimate, Loss, Win};

/// A stand-in for a draw by repetition while exits are looked for.
const NO_EXIT: PartialValue = CycleDraw { stay: Hundredths::MAX, leave: Hundredths::MIN };

impl PartialValue {
    /// Returns the value seen by the opponent.
    pub fn turned(self) -> PartialValue {
        let negated = |value: Hundredths| match value {
            Hundredths::MAX => Hundredths::MIN,
            Hundredths::MIN => Hundredths::MAX,
            value => -value,
        };
        match self {
            Win => Loss,
            Loss => Win,
            Draw => Draw,
            Estimate(h) => Estimate(negated(h)),
            AtLeastDraw(a) => AtMostDraw(a.map(negated)),
            AtMostDraw(a) => AtLeastDraw(a.map(negated)),
            CycleDraw { stay, leave } => CycleDraw { stay: negated(leave), leave: negated(stay) },
        }
    }

    /// Returns the value of a position with moves of these values: dominated ones are dropped first, so that the result
    /// does not depend on the order.
    pub fn best(moves: impl Iterator<Item = PartialValue> + Clone) -> PartialValue {
        let (mut is_win, mut has_draw, mut all_lost) = (false, false, true);
        let (mut estimate, mut beside_draw, mut at_most) = (None, None, None);
        let mut cycle: Option<(Hundredths, Hundredths)> = None;
        for value in moves {
            all_lost &= value == Loss;
            match value {
                Win => is_win = true,
                Loss => {}
                Draw => has_draw = true,
                Estimate(h) => estimate = estimate.max(Some(h)),
                AtLeastDraw(a) => {
                    has_draw = true;
                    beside_draw = beside_draw.max(a);
                }
                AtMostDraw(a) => at_most = at_most.max(Some(a)),
                CycleDraw { stay, leave } => {
                    cycle = Some(cycle.map_or((stay, leave), |(p, m)| (p.min(stay), m.max(leave))));
                }
            }
        }
        if is_win {
            return Win;
        }
        if all_lost {
            return Loss;
        }
        if has_draw {
            // A draw in hand is better than every at-most-draw.
            let best = beside_draw.max(estimate).max(cycle.map(|_| 0));
            return best.map_or(Draw, |best| AtLeastDraw(Some(best)));
        }
        let exit = estimate.max(at_most.flatten().map(|a| a.min(0)));
        match (cycle, exit) {
            (Some((stay, leave)), None) => CycleDraw { stay, leave },
            (Some((stay, leave)), Some(exit)) if exit < 0 => CycleDraw { stay, leave: leave.max(exit) },
            (_, _) if estimate.is_none() && cycle.is_none() => AtMostDraw(at_most.flatten()),
            (_, exit) => exit.map_or(AtMostDraw(None), Estimate),
        }
    }

    /// Returns the value of a position with two moves.
    pub fn better_of(self, other: PartialValue) -> PartialValue {
        PartialValue::best([self, other].into_iter())
    }

    /// Returns what is proved: a lower and an upper bound of the value, where there are any beyond those of the game.
    pub fn bounds(self) -> (Option<Hundredths>, Option<Hundredths>) {
        match self {
            Win => (Some(1), None),
            Loss => (None, Some(-1)),
            Draw => (Some(0), Some(0)),
            AtLeastDraw(_) => (Some(0), None),
            AtMostDraw(_) => (None, Some(0)),
            Estimate(_) | CycleDraw { .. } => (None, None),
        }
    }

    /// Replaces exits that do not exist.
    fn normalized(self) -> PartialValue {
        match self {
            CycleDraw { stay: Hundredths::MAX, leave: Hundredths::MIN } => Draw,
            CycleDraw { stay: Hundredths::MAX, leave } => AtLeastDraw(Some(leave)),
            CycleDraw { stay, leave: Hundredths::MIN } => AtMostDraw(Some(stay)),
            other => other,
        }
    }
}

/// Returns the values of all positions, with the draws of cycles (Lincke 2002, figure 5.2). Gains are ignored.
///
/// Two rounds of propagation: the first with a stand-in for repetitions, the second after those that have exits on one
/// side only were replaced.
pub fn partial_values(graph: &BookGraph) -> Vec<PartialValue> {
    let of_leaf = |value: Assessment| match (value.low, value.high) {
        (1.., _) => Win,
        (_, ..=-1) => Loss,
        (0, 0) => Draw,
        _ => Estimate(value.estimate),
    };
    let mut values: Vec<PartialValue> = graph
        .ids()
        .map(|id| if graph.is_interior(id) { NO_EXIT } else { of_leaf(graph.node(id).assessment) })
        .collect();
    for _ in 0..2 {
        // Labels settle within a few rounds; odd cycles may keep changing them.
        for _ in 0..4 * graph.len() + 8 {
            let mut is_same = true;
            for id in graph.ids().filter(|&id| graph.is_interior(id)) {
                let moves = graph.moves(id).iter().map(|edge| values[edge.child.index()].turned());
                let next = PartialValue::best(moves);
                is_same &= values[id.index()] == next;
                values[id.index()] = next;
            }
            if is_same {
                break;
            }
        }
        values.iter_mut().for_each(|value| *value = value.normalized());
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 4.3 with the corrected row, and table 4.5.
    #[test]
    fn tables_of_pairs() {
        let (least, most) = (|a| AtLeastDraw(Some(a)), |a| AtMostDraw(Some(a)));
        let cycle = |stay, leave| CycleDraw { stay, leave };
        let rows = [
            (Win, Estimate(-3), Win),
            (Loss, most(4), most(4)),
            (Estimate(1), Estimate(2), Estimate(2)),
            (Draw, least(3), least(3)),
            (Draw, most(3), Draw),
            (least(1), least(2), least(2)),
            (least(1), most(5), least(1)),
            (most(1), most(2), most(2)),
            (Draw, Estimate(-2), least(-2)),
            (Estimate(3), least(1), least(3)),
            (Estimate(-3), most(5), Estimate(0)),
            (Estimate(-3), most(-2), Estimate(-2)),
            (Estimate(2), most(5), Estimate(2)),
            (cycle(3, -4), cycle(2, -5), cycle(2, -4)),
            (Estimate(2), cycle(3, -4), Estimate(2)),
            (Estimate(-2), cycle(3, -4), cycle(3, -2)),
            (Draw, cycle(3, -4), least(0)),
            (least(-2), cycle(3, -4), least(0)),
            (most(2), cycle(3, -4), Estimate(0)),
        ];
        for (value, other, expected) in rows {
            assert_eq!(value.better_of(other), expected, "{value:?} {other:?}");
            assert_eq!(other.better_of(value), expected, "{other:?} {value:?}");
            assert_eq!(value.turned().turned(), value);
        }
    }

    /// Moves in any order give one value: with the printed rules, {h, <=|a, <=|b} and {=, h, <=|b} do not.
    #[test]
    fn the_order_of_moves_does_not_matter() {
        let values: Vec<PartialValue> = (-2..=2)
            .flat_map(|a| [Estimate(a), AtLeastDraw(Some(a)), AtMostDraw(Some(a))])
            .chain([Win, Loss, Draw])
            .collect();
        assert_eq!(values.len(), 18);
        for &a in &values {
            for &b in &values {
                for &c in &values {
                    let all = [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]];
                    let all = all.map(|moves| PartialValue::best(moves.into_iter()));
                    assert!(all.iter().all(|value| *value == all[0]), "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
