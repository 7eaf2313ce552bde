//! Certification: derives every score from captures and terminal positions.
//!
//! Scores that agree with those of their children can be wrong. The equations have several solutions: two positions
//! that lead to each other can claim +2 and -2, each justified by the other. The right solution is the least one, in
//! which only a bounded line of play makes a score differ from 0. So for each bound k, from the number of stones
//! downward, the claims of the database are derived again:
//!
//! ```text
//! W = positions with score >= k that have been derived, L = those with score <= -k
//! into W: score >= k, and the best capture is worth k or more, or a quiet move leads into L
//! into L: score <= -k, no capture is worth more than -k, and all quiet moves lead into W
//! ```
//!
//! What is derived for k + 1 is derived for k, so W and L only grow, and each bound adds only the claims of exactly k
//! and -k. A claim that cannot be derived refuses the certificate. If all can be derived, no claim exceeds the right
//! score in magnitude with its sign. No solution smaller than the right one is consistent. So a database that also
//! passes the full verifier ([`crate::verify()`]) is right, given that the smaller ones are.
//!
//! Both halves are necessary: derived claims alone allow zeros where something can be won, consistency alone allows
//! claims that justify each other. Both need right smaller databases, so a proof goes from 0 stones up.
//!
//! The score of a player who cannot move follows from the rules. Children are always in the position set,
//! since the pit sown from is empty.
//!
//! Memory: two bits a position, and at most half a bit for the list of open claims, which spares most passes
//! a look at the scores.

use crate::databases::{AnyScores, Database, Databases, ScoreSource};
use crate::error::{CheckError, Result};
use crate::histogram::Histogram;
use game::{Board, Score};
use rayon::prelude::*;
use std::collections::TryReserveError;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Positions in one parallel unit: whole words of bits, and one block of a file.
const UNIT_POSITIONS: u64 = 1 << 16;

/// Open claims of a unit that are listed: 4 bytes each, half a bit a position. Units with more are scanned again.
const LISTED_MAX: usize = 1 << 10;

const _: () = assert!(size_of::<OpenClaim>() == 4 && UNIT_POSITIONS == 1 << u16::BITS);

/// A certified database: all of its claims are derived. Only [`certify`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certified {
    claims: u64,
    passes: u32,
}

/// Derives every claim of the `stones`-stone database, given smaller ones that are right.
pub fn certify<L: ScoreSource>(databases: &Databases<L>, stones: u32) -> Result<Certified> {
    certify_watched(databases, stones, &|| ControlFlow::Continue(()))
}

/// As [`certify`]; polls `watch`, which ends it early with [`CheckError::Stopped`].
pub fn certify_watched<L: ScoreSource>(
    databases: &Databases<L>,
    stones: u32,
    watch: &(dyn Fn() -> ControlFlow<()> + Sync),
) -> Result<Certified> {
    let databases = &databases.of_any();
    certify_claims(ForcedBounds { low: databases, high: databases }, stones, 1, watch)
}

/// As [`certify`], of the bounds of all positions: what the mover can force, and to what the opponent can
/// hold the mover. The claims are that either player can force what the databases say.
pub fn certify_bounds<L: ScoreSource>(low: &Databases<L>, high: &Databases<L>, stones: u32) -> Result<Certified> {
    certify_bounds_watched(low, high, stones, &|| ControlFlow::Continue(()))
}

/// As [`certify_bounds`], with the `watch` of [`certify_watched`].
pub fn certify_bounds_watched<L: ScoreSource>(
    low: &Databases<L>,
    high: &Databases<L>,
    stones: u32,
    watch: &(dyn Fn() -> ControlFlow<()> + Sync),
) -> Result<Certified> {
    let (low, high) = (&low.of_any(), &high.of_any());
    certify_claims(ForcedBounds { low, high }, stones, 1 - stones as Score, watch)
}

/// Derives the claims of all bounds from `bound_min` up.
fn certify_claims(
    databases: ForcedBounds<&Databases<AnyScores<'_>>>,
    stones: u32,
    bound_min: Score,
    watch: &(dyn Fn() -> ControlFlow<()> + Sync),
) -> Result<Certified> {
    let claims = ForcedBounds { low: databases.low.get(stones)?, high: databases.high.get(stones)? };
    let histograms = ForcedBounds { low: Histogram::of(claims.low)?, high: Histogram::of(claims.high)? };
    let positions = claims.low.positions();
    let bits = || PositionBits::new(positions).map_err(|source| CheckError::Memory { stones, positions, source });
    let proof = Proof { databases, claims, watch, wins: bits()?, losses: bits()? };
    let mut claims = 0;
    let mut passes = 0;
    for bound in (bound_min..=stones as Score).rev() {
        let claimed = histograms.low.positions(bound) + histograms.high.positions(-bound);
        if claimed == 0 {
            continue;
        }
        claims += claimed;
        passes += proof.derive(bound)?;
    }
    Ok(Certified { claims, passes })
}

impl Certified {
    /// Returns the number of scores other than 0.
    pub fn claims(&self) -> u64 {
        self.claims
    }

    /// Returns the number of passes over the claims of all bounds.
    pub fn passes(&self) -> u32 {
        self.passes
    }
}

/// What claims that the mover wins something, and what claims that the mover can win no more. Databases of scores claim
/// both.
#[derive(Clone, Copy)]
struct ForcedBounds<T> {
    low: T,
    high: T,
}

/// The claims derived so far.
struct Proof<'a> {
    databases: ForcedBounds<&'a Databases<AnyScores<'a>>>,
    claims: ForcedBounds<&'a Database<AnyScores<'a>>>,
    watch: &'a (dyn Fn() -> ControlFlow<()> + Sync),
    wins: PositionBits,
    losses: PositionBits,
}

/// One bit per position, set by several threads.
struct PositionBits {
    words: Vec<AtomicU64>,
}

/// A claim about a position.
#[derive(Clone, Copy)]
enum ForcedClaim {
    /// The mover can force this score or more.
    Win(Score),
    /// The opponent can hold the mover to this score or less.
    Loss(Score),
}

impl ForcedClaim {
    fn score(self) -> Score {
        match self {
            ForcedClaim::Win(score) | ForcedClaim::Loss(score) => score,
        }
    }
}

/// A unit with claims that are not derived yet.
struct OpenUnit {
    unit: u64,
    /// How many there are; at the start of a bound, the most there can be.
    claims: u64,
    /// The first of them: all, if they are few.
    listed: Vec<OpenClaim>,
}

/// A claim by the place of its position in the unit.
#[derive(Clone, Copy)]
struct OpenClaim {
    place: u16,
    claim: ForcedClaim,
}

impl OpenUnit {
    fn new(unit: u64, claims: u64) -> OpenUnit {
        OpenUnit { unit, claims, listed: Vec::new() }
    }

    fn position(&self, claim: OpenClaim) -> u64 {
        self.unit * UNIT_POSITIONS + u64::from(claim.place)
    }

    fn are_all_listed(&self) -> bool {
        self.claims == self.listed.len() as u64
    }

    fn add(&mut self, claim: OpenClaim) {
        self.claims += 1;
        if self.listed.len() < LISTED_MAX {
            self.listed.push(claim);
        }
    }
}

impl Proof<'_> {
    /// Derives all claims of `bound` and `-bound`; returns the number of passes.
    fn derive(&self, bound: Score) -> Result<u32> {
        let units = self.claims.low.positions().div_ceil(UNIT_POSITIONS);
        let mut open: Vec<OpenUnit> = (0..units).map(|unit| OpenUnit::new(unit, 2 * UNIT_POSITIONS)).collect();
        let mut left_before = u64::MAX;
        for pass in 1.. {
            // A unit may or may not see claims that other units add in the same pass: both are sound, and the final
            // result does not depend on it.
            open = open
                .into_par_iter()
                .map_init(Default::default, |scores, unit| self.pass(&unit, bound, scores))
                .collect::<Result<_, _>>()?;
            open.retain(|unit| unit.claims > 0);
            let Some((unit, first)) = open.first().and_then(|unit| Some((unit, *unit.listed.first()?))) else {
                return Ok(pass);
            };
            let left: u64 = open.iter().map(|unit| unit.claims).sum();
            if left == left_before {
                return Err(CheckError::Uncertified {
                    stones: self.claims.low.index().stones(),
                    bound,
                    unproved: left,
                    board: self.claims.low.board(unit.position(first)),
                    claimed: first.claim.score(),
                });
            }
            left_before = left;
        }
        unreachable!("every pass leaves fewer claims than the one before")
    }

    /// Tries to derive every open claim of a unit once; returns the unit with those that are left.
    fn pass(&self, unit: &OpenUnit, bound: Score, buffers: &mut [Vec<Score>; 2]) -> Result<OpenUnit> {
        if (self.watch)().is_break() {
            return Err(CheckError::Stopped);
        }
        let mut left = OpenUnit::new(unit.unit, 0);
        if unit.are_all_listed() {
            for &open in &unit.listed {
                self.try_claim(open, &mut left)?;
            }
            return Ok(left);
        }
        let first = unit.unit * UNIT_POSITIONS;
        let ForcedBounds { low, high } = self.claims;
        let positions = UNIT_POSITIONS.min(low.positions() - first);
        let [lows, highs] = buffers;
        lows.resize(positions as usize, 0);
        low.scores().read(first, lows)?;
        let highs = if std::ptr::eq(low, high) {
            &*lows
        } else {
            highs.resize(positions as usize, 0);
            high.scores().read(first, highs)?;
            &*highs
        };
        for (place, (&low, &high)) in (0..=u16::MAX).zip(lows.iter().zip(highs)) {
            let position = first + u64::from(place);
            if low == bound && !self.wins.has(position) {
                self.try_claim(OpenClaim { place, claim: ForcedClaim::Win(bound) }, &mut left)?;
            }
            if high == -bound && !self.losses.has(position) {
                self.try_claim(OpenClaim { place, claim: ForcedClaim::Loss(-bound) }, &mut left)?;
            }
        }
        Ok(left)
    }

    /// Derives a claim of a unit, or leaves it.
    fn try_claim(&self, open: OpenClaim, left: &mut OpenUnit) -> Result<()> {
        let position = left.position(open);
        if self.follows(&self.claims.low.board(position), open.claim)? {
            match open.claim {
                ForcedClaim::Win(_) => self.wins.insert(position),
                ForcedClaim::Loss(_) => self.losses.insert(position),
            }
        } else {
            left.add(open);
        }
        Ok(())
    }

    /// Whether a claim follows from the derived ones.
    fn follows(&self, board: &Board, claim: ForcedClaim) -> Result<bool> {
        let stones = board.stones();
        let score = claim.score();
        // What the mover wins, the opponent does not hold; what the mover is held to, no capture wins more than.
        let (is_win, children) = match claim {
            ForcedClaim::Win(_) => (true, self.databases.high),
            ForcedClaim::Loss(_) => (false, self.databases.low),
        };
        let rules = children.rules();
        // Quiet moves first: they need no look-up in another database.
        let mut captures = [None; 6];
        let mut is_stuck = true;
        for (slot, (_, played)) in captures.iter_mut().zip(board.moves(rules)) {
            is_stuck = false;
            if played.captured > 0 {
                *slot = Some(played);
                continue;
            }
            let child = self.claims.low.position(&played.child)?;
            if is_win && self.losses.has(child) {
                return Ok(true);
            }
            if !is_win && !self.wins.has(child) {
                return Ok(false);
            }
        }
        for played in captures.into_iter().flatten() {
            let database = children.get(stones - u32::from(played.captured))?;
            let child = database.scores().score(database.position(&played.child)?)?;
            let worth = i16::from(played.captured) - i16::from(child);
            if is_win && worth >= i16::from(score) {
                return Ok(true);
            }
            if !is_win && worth > i16::from(score) {
                return Ok(false);
            }
        }
        if is_stuck {
            let terminal = rules.terminal_score(board);
            return Ok(if is_win { terminal >= score } else { terminal <= score });
        }
        // No move justifies the win; no move avoids the loss.
        Ok(!is_win)
    }
}

impl PositionBits {
    fn new(positions: u64) -> Result<PositionBits, TryReserveError> {
        let count = positions.div_ceil(64) as usize;
        let mut words = Vec::new();
        words.try_reserve_exact(count)?;
        words.resize_with(count, || AtomicU64::new(0));
        Ok(PositionBits { words })
    }

    fn has(&self, position: u64) -> bool {
        let word = self.words[(position / 64) as usize].load(Ordering::Relaxed);
        word >> (position % 64) & 1 == 1
    }

    fn insert(&self, position: u64) {
        self.words[(position / 64) as usize].fetch_or(1 << (position % 64), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Derived;
    use crate::solved::solved;
    use crate::{Extent, verify};
    use game::{PositionSet, Rules};

    #[test]
    fn too_little_memory_is_an_error() {
        assert!(PositionBits::new(1 << 62).is_err());
        assert_eq!(PositionBits::new(129).unwrap().words.len(), 3);
    }

    #[test]
    fn right_databases_are_certified() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            let databases = solved(7, set);
            for stones in 0..=7 {
                let certified = certify(&databases, stones).unwrap();
                let histogram = Histogram::of(databases.get(stones).unwrap()).unwrap();
                let claims = histogram.total() - histogram.positions(0);
                assert_eq!(certified.claims(), claims);
            }
        }
    }

    #[test]
    fn a_claim_in_the_last_of_several_units_is_refused() {
        let mut databases = Databases::new(Rules::AWARI, PositionSet::All);
        for stones in 0..=8 {
            databases.insert(stones, vec![0; PositionSet::All.positions(stones) as usize]).unwrap();
        }
        let last = PositionSet::All.positions(8) - 1;
        assert!(last > UNIT_POSITIONS);
        let mut scores = vec![0; last as usize];
        scores.push(8);
        databases.insert(8, scores).unwrap();
        let place = databases.get(8).unwrap().board(last);
        let refused = certify(&databases, 8).unwrap_err();
        assert!(matches!(refused, CheckError::Uncertified { unproved: 1, claimed: 8, board, .. } if board == place));
    }

    #[test]
    fn a_certificate_can_be_stopped() {
        let databases = solved(5, PositionSet::All);
        let stopped = certify_watched(&databases, 5, &|| ControlFlow::Break(()));
        assert!(matches!(stopped, Err(CheckError::Stopped)));
    }

    /// Inserts another solution of the same equations, if there is one: fixes `score` in a position and iterates the
    /// equations until they reproduce it.
    fn insert_other_solution(databases: &mut Databases<Vec<Score>>, stones: u32, position: u64, score: Score) -> bool {
        let right = databases.get(stones).unwrap().scores().clone();
        let mut scores = right.clone();
        for _ in 0..60 {
            scores[position as usize] = score;
            databases.insert(stones, scores.clone()).unwrap();
            let database = databases.get(stones).unwrap();
            let next: Vec<Score> = (0..database.positions())
                .map(|position| {
                    let board = database.board(position);
                    let derived = Derived::of(databases, &board).unwrap();
                    derived.score(&board, databases.rules())
                })
                .collect();
            if next == scores {
                return scores != right;
            }
            scores = next;
        }
        false
    }

    /// There are such databases for 2 to 4, 6 to 9 and 11 stones; `tests/solvers/fault_planting.rs` plants more of
    /// them.
    #[test]
    fn consistent_but_wrong_databases_are_refused() {
        for stones in [2, 4] {
            let mut found = 0;
            let right = solved(stones, PositionSet::All);
            let right = right.get(stones).unwrap();
            let drawn = (0..right.positions()).filter(|&at| right.scores()[at as usize] == 0);
            for (position, score) in drawn.step_by(3).flat_map(|at| [(at, 2), (at, -2)]) {
                let mut databases = solved(stones, PositionSet::All);
                if !insert_other_solution(&mut databases, stones, position, score) {
                    continue;
                }
                found += 1;
                verify(&databases, stones, Extent::Full).expect("the database is consistent");
                let refused = certify(&databases, stones).expect_err("and it is wrong");
                assert!(matches!(refused, CheckError::Uncertified { .. }));
            }
            println!("{stones} stones: {found} other solutions");
            assert!(found > 0);
        }
    }
}
