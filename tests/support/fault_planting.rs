//! Faults to plant into databases: the possible effects of a broken solver, kernel, merge or file.

use crate::Random;
use crate::equations::Equations;
use game::{Board, Index, Orientation, Played, PositionSet, Score, Slab};
use std::ops::RangeInclusive;

/// A kind of fault, with scores that have it.
pub type Plant = (&'static str, Vec<Score>);

/// Databases with displaced or changed scores. Those equal to the right database are left out.
pub fn displaced(index: &Index, right: &[Score], random: &mut Random) -> Vec<Plant> {
    let mut plants: Vec<Plant> = Vec::new();
    let mut plant = |what, change: &mut dyn FnMut(&mut [Score])| {
        let mut scores = right.to_vec();
        change(&mut scores);
        plants.push((what, scores));
    };
    let stones = index.stones() as Score;
    for slab in index.slabs() {
        let at = slab.offset as usize;
        let (rows, columns) = (slab.opponent_halves as usize, slab.mover_halves as usize);
        let size = rows * columns;
        plant("slab transposed", &mut |scores| {
            let slab = &right[at..at + size];
            scores[at..at + size].iter_mut().enumerate().for_each(|(to, score)| {
                *score = slab[to % rows * columns + to / rows];
            });
        });
        plant("sign of a slab", &mut |scores| scores[at..at + size].iter_mut().for_each(|score| *score = -*score));
        for _ in 0..2 {
            let mut two = |end: usize| (random.below(end as u64) as usize, random.below(end as u64) as usize);
            let ((row, other_row), (column, other_column)) = (two(rows), two(columns));
            plant("two rows exchanged", &mut |scores| {
                for column in 0..columns {
                    scores.swap(at + row * columns + column, at + other_row * columns + column);
                }
            });
            plant("two columns exchanged", &mut |scores| {
                for row in 0..rows {
                    scores.swap(at + row * columns + column, at + row * columns + other_column);
                }
            });
            let row = at + row * columns..at + (row + 1) * columns;
            plant("row shifted by one", &mut |scores| scores[row.clone()].rotate_right(1));
            plant("sign of a row", &mut |scores| scores[row.clone()].iter_mut().for_each(|score| *score = -*score));
            plant("row of zeros", &mut |scores| scores[row.clone()].fill(0));
        }
    }
    let mirrored = |slab: &Slab| index.slab(slab.opponent_stones);
    for slab in index.slabs().iter().filter(|slab| slab.mover_stones < slab.opponent_stones) {
        let (start, other) = (slab.offset as usize, mirrored(slab).offset as usize);
        let size = slab.positions().min(mirrored(slab).positions()) as usize;
        plant("two slabs exchanged", &mut |scores| {
            scores[start..start + size].copy_from_slice(&right[other..other + size]);
            scores[other..other + size].copy_from_slice(&right[start..start + size]);
        });
    }
    plant("all shifted by one", &mut |scores| scores.rotate_right(1));
    plant("sign of all", &mut |scores| scores.iter_mut().for_each(|score| *score = -*score));
    for bound in 1..=stones {
        plant("bound lost", &mut |scores| {
            scores.iter_mut().filter(|score| score.abs() == bound).for_each(|score| *score = 0);
        });
        plant("bound merged as the one below", &mut |scores| {
            scores.iter_mut().filter(|score| score.abs() == bound).for_each(|score| *score -= score.signum());
        });
        plant("losses of a bound taken for wins", &mut |scores| {
            scores.iter_mut().filter(|score| **score == -bound).for_each(|score| *score = bound);
        });
    }
    for _ in 0..5 {
        let blocks = (right.len() / 64).max(1) as u64;
        let (start, other) = (random.below(blocks) as usize * 64, random.below(blocks) as usize * 64);
        let size = 64.min(right.len());
        plant("64 positions zero", &mut |scores| scores[start..start + size].fill(0));
        plant("64 positions from elsewhere", &mut |scores| {
            scores[start..start + size].copy_from_slice(&right[other..other + size]);
        });
    }
    plants.retain(|(_, scores)| scores != right);
    plants
}

/// One wrong score.
pub fn single(right: &[Score], stones: u32, random: &mut Random) -> Vec<Score> {
    let position = random.below(right.len() as u64) as usize;
    let mut scores = right.to_vec();
    scores[position] = other(right[position], stones, random);
    scores
}

/// A score that `stones` stones allow, other than this.
fn other(score: Score, stones: u32, random: &mut Random) -> Score {
    let stones = stones as Score;
    let other = random.below(2 * stones as u64) as Score - stones;
    if other >= score { other + 1 } else { other }
}

/// One wrong score, and a parent whose score follows from it.
pub fn child_and_parent(equations: &Equations, right: &[Score], stones: u32, random: &mut Random) -> Vec<Score> {
    loop {
        let mut scores = single(right, stones, random);
        let wrong = (0..scores.len()).find(|&at| scores[at] != right[at]).expect("one is wrong");
        let parents = (0..scores.len()).filter(|&at| equations.children(at).contains(&(wrong as u32)));
        let parents: Vec<usize> = parents.filter(|&at| at != wrong).collect();
        let follows = parents.into_iter().find(|&at| equations.best(at, &scores) != right[at]);
        if let Some(parent) = follows {
            scores[parent] = equations.best(parent, &scores);
            return scores;
        }
    }
}

/// One wrong score and its consequences; `None` if these do not settle.
pub fn with_all_that_follows(
    equations: &Equations,
    right: &[Score],
    stones: u32,
    random: &mut Random,
) -> Option<Vec<Score>> {
    const PASSES_MAX: usize = 300;
    let mut scores = single(right, stones, random);
    let wrong = (0..scores.len()).find(|&at| scores[at] != right[at])?;
    (0..PASSES_MAX).find(|_| equations.pass(&mut scores, Some(wrong)) == 0)?;
    Some(scores)
}

/// Scores of other positions, cut to a length or extended by the last one.
pub fn of_other_positions(other: &[Score], positions: u64) -> Vec<Score> {
    let last = other[other.len() - 1];
    other.iter().copied().chain(std::iter::repeat(last)).take(positions as usize).collect()
}

/// A plausible misreading of the rules.
#[derive(Clone, Debug)]
pub struct Misread {
    /// Title.
    pub what: &'static str,
    captures: RangeInclusive<u8>,
    /// Captures continue backwards.
    goes_on: bool,
    /// The opponent must be left stones.
    feeds: bool,
    /// A lap passes over its origin.
    skips_origin: bool,
    /// Captures may take all that the opponent has.
    may_take_all: bool,
    /// The share of the remaining stones that a player without a move loses.
    stuck_loses: Score,
    /// What a repetition is worth to the player to move.
    repetition: Repetition,
}

/// What a repetition is worth to the player to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repetition {
    Nothing,
    All,
    MinusAll,
    /// The stones on the own side, less those on the other.
    OwnSide,
}

impl Misread {
    /// All misreadings.
    pub fn all() -> Vec<Misread> {
        let right = Misread {
            what: "",
            captures: 2..=3,
            goes_on: true,
            feeds: true,
            skips_origin: true,
            may_take_all: true,
            stuck_loses: 1,
            repetition: Repetition::Nothing,
        };
        vec![
            Misread { what: "rule: starving allowed", feeds: false, ..right.clone() },
            Misread { what: "rule: captures 2 to 4", captures: 2..=4, ..right.clone() },
            Misread { what: "rule: captures 3 only", captures: 3..=3, ..right.clone() },
            Misread { what: "rule: captures one pit", goes_on: false, ..right.clone() },
            Misread { what: "rule: taking all takes nothing", may_take_all: false, ..right.clone() },
            Misread { what: "rule: stuck shares the rest", stuck_loses: 0, ..right.clone() },
            Misread { what: "rule: stuck takes the rest", stuck_loses: -1, ..right.clone() },
            Misread { what: "rule: repetition wins", repetition: Repetition::All, ..right.clone() },
            Misread { what: "rule: repetition loses", repetition: Repetition::MinusAll, ..right.clone() },
            Misread { what: "rule: repetition by sides", repetition: Repetition::OwnSide, ..right.clone() },
            Misread { what: "rule: lap sows its origin", skips_origin: false, ..right },
        ]
    }

    /// The fewest stones with which it makes a difference.
    pub fn stones_min(&self) -> u32 {
        if self.skips_origin { 0 } else { 12 }
    }

    /// Whether its moves stay within a position set: sowing the origin may leave no empty pit.
    pub fn stays_in(&self, set: PositionSet) -> bool {
        set == PositionSet::All || self.skips_origin
    }

    /// The scores with `stones` stones by these rules. `smaller[k]` are those with k.
    pub fn solve(&self, set: PositionSet, stones: u32, smaller: &[Vec<Score>]) -> Vec<Score> {
        let stuck = -self.stuck_loses * stones as Score;
        let equations = Equations::of(&|board| self.moves(board), stuck, set, stones, smaller);
        match self.repetition {
            Repetition::Nothing => equations.least(),
            Repetition::All => equations.extremes().high,
            Repetition::MinusAll => equations.extremes().low,
            Repetition::OwnSide => {
                let (mut scores, extremes) = (equations.least(), equations.extremes());
                let index = Index::new(stones, set);
                for (position, score) in scores.iter_mut().enumerate() {
                    if *score == 0 && extremes.high[position] != extremes.low[position] {
                        let board = index.unrank(position as u64, Orientation::OpponentMajor);
                        let mine: u8 = board.mover().iter().sum();
                        *score = 2 * mine as Score - stones as Score;
                    }
                }
                scores
            }
        }
    }

    fn moves(&self, board: &Board) -> Vec<Played> {
        let all: Vec<Played> = (0..6).filter(|&pit| board.0[pit] > 0).map(|pit| self.play(board, pit)).collect();
        let feeds = |played: &&Played| !played.child.mover_starves();
        if self.feeds && all.iter().any(|played| feeds(&played)) {
            return all.iter().filter(feeds).copied().collect();
        }
        all
    }

    fn play(&self, board: &Board, origin: usize) -> Played {
        let mut pits = board.0;
        let mut hand = std::mem::take(&mut pits[origin]);
        let mut at = origin;
        while hand > 0 {
            at = (at + 1) % 12;
            if at == origin && self.skips_origin {
                continue;
            }
            pits[at] += 1;
            hand -= 1;
        }
        let sown = pits;
        let mut captured = 0;
        while at >= 6 && self.captures.contains(&pits[at]) {
            captured += std::mem::take(&mut pits[at]);
            if !self.goes_on {
                break;
            }
            at -= 1;
        }
        if !self.may_take_all && captured > 0 && pits[6..].iter().all(|&stones| stones == 0) {
            (pits, captured) = (sown, 0);
        }
        Played { child: Board(pits).turned(), captured }
    }
}
