//! Verifies a sample of tiles with look-ups in file order, for compressed databases.
//!
//! A look-up in a compressed file decodes some thousand scores, and a tile needs fifty look-ups, so a walk tile by tile
//! decodes everything several times. Here all look-ups of a round are collected and sorted. Look-ups in the database
//! itself are answered while its scores are streamed to compare their digest; look-ups in smaller databases decode each
//! block once. Memory is one round of look-ups. A larger sample takes more rounds, each of which reads the database
//! again.

use crate::databases::{Database, Databases, ScoreSource};
use crate::derive::Derived;
use crate::error::Result;
use crate::verify::{PortionFindings, RuleCheckTally, Verified};
use crate::walk::{DatabasePortion, VisitedPosition, Walk, WalkTally, WalkTile, merged, sample_tiles};
use crate::{CheckError, Histogram, Sample};
use game::Score;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Memory for each position of a round: its look-ups, those of one database twice while they are collected, and the
/// answers.
pub const POSITION_BYTES: u64 = 115;

/// The least number of positions of a round, if the sample has as many: 15 MB.
const ROUND_MIN: u64 = 1 << 17;

/// Positions, or look-ups, in one parallel unit.
const UNIT: usize = 1 << 14;

/// Positions of a whole tile.
const TILE_POSITIONS_MAX: usize = 64;

/// Bits for the number of a position in its round, and for a position in a database: C(59, 11) is less than 2^39.
const PARENT_BITS: u32 = 25;
const POSITION_BITS: u32 = 39;
const _: () = assert!(PARENT_BITS + POSITION_BITS == u64::BITS);

/// Streams all scores of a database in canonical order to a function, and returns their histogram.
pub type Stream<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&[Score])) -> Result<Histogram>;

/// As [`verify_counted`](crate::verify_counted) with a sample of tiles, in rounds of about `round_bytes`. The
/// look-ups of the first round are answered by `stream`, which is called once.
///
/// # Errors
/// As [`verify_counted`](crate::verify_counted), and those of `stream`.
pub fn verify_streamed<L: ScoreSource>(
    databases: &Databases<L>,
    stones: u32,
    sample: Sample,
    round_bytes: u64,
    stream: Stream,
    watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<Verified> {
    let walk = Walk::new(databases, stones, watch)?;
    let tiles = sample_tiles(walk.database, sample);
    let mut rounds = tiles.chunks(tiles_of_round(round_bytes));
    let mut comparison = RuleCheckTally::default();
    let mut round = LookUpRound::collect(&walk, rounds.next().unwrap_or_default())?;
    let mut at = 0;
    let histogram = stream(&mut |scores| {
        round.answer(at, scores);
        at += scores.len() as u64;
    })?;
    comparison.merge(round.finish(&walk)?);
    for tiles in rounds {
        comparison.merge(LookUpRound::collect(&walk, tiles)?.look_up_all(&walk)?);
    }
    walk.see_opening(&mut comparison)?;
    comparison.verified(stones, histogram)
}

/// As [`verify_portion`](crate::verify_portion) with a sample of tiles, in rounds of about `round_bytes`.
///
/// # Errors
/// As [`verify_portion`](crate::verify_portion).
pub fn verify_portion_in_rounds<L: ScoreSource>(
    databases: &Databases<L>,
    stones: u32,
    sample: Sample,
    round_bytes: u64,
    portion: DatabasePortion,
    watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<PortionFindings> {
    let walk = Walk::new(databases, stones, watch)?;
    let tiles = sample_tiles(walk.database, sample);
    let mut comparison = RuleCheckTally::default();
    for tiles in portion.tiles(&tiles).chunks(tiles_of_round(round_bytes)) {
        comparison.merge(LookUpRound::collect(&walk, tiles)?.look_up_all(&walk)?);
    }
    if portion.is_last() {
        walk.see_opening(&mut comparison)?;
    }
    Ok(PortionFindings(comparison))
}

/// Returns the largest number of tiles of a round of about `bytes`.
fn tiles_of_round(bytes: u64) -> usize {
    (bytes / POSITION_BYTES).clamp(ROUND_MIN, 1 << PARENT_BITS) as usize / TILE_POSITIONS_MAX
}

/// The positions of a round, with their look-ups.
struct LookUpRound {
    positions: Vec<u64>,
    /// The look-ups of children, by captured stones, ascending by position.
    look_ups: Vec<Vec<RoundLookUp>>,
    /// The look-ups of the positions themselves, ascending.
    found_look_ups: Vec<RoundLookUp>,
    /// The number of look-ups that the stream has answered.
    answered: usize,
    answered_found: usize,
    derived: Vec<Derived>,
    found: Vec<Score>,
}

/// A look-up: a position, and the number of the parent. Sorts by position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RoundLookUp(u64);

impl RoundLookUp {
    fn new(position: u64, parent: usize) -> RoundLookUp {
        RoundLookUp(position << PARENT_BITS | parent as u64)
    }

    fn position(self) -> u64 {
        self.0 >> PARENT_BITS
    }

    fn parent(self) -> usize {
        (self.0 & ((1 << PARENT_BITS) - 1)) as usize
    }
}

impl LookUpRound {
    fn collect<L: ScoreSource>(walk: &Walk<L>, tiles: &[WalkTile]) -> Result<LookUpRound> {
        let Walk { databases, database, watch } = *walk;
        let positions: Vec<u64> = tiles.iter().flat_map(WalkTile::each).collect();
        let stones = database.index().stones();
        let units = positions.par_chunks(UNIT).enumerate().map(|(unit, positions)| {
            let mut look_ups: Vec<Vec<RoundLookUp>> = vec![Vec::new(); stones as usize + 1];
            for (parent, &position) in (unit * UNIT..).zip(positions) {
                for (_, played) in database.board(position).moves(databases.rules()) {
                    let child = databases.get(stones - u32::from(played.captured))?.position(&played.child)?;
                    look_ups[usize::from(played.captured)].push(RoundLookUp::new(child, parent));
                }
            }
            if watch(0).is_break() { Err(CheckError::Stopped) } else { Ok(look_ups) }
        });
        let mut units: Vec<_> = units.collect::<Result<_>>()?;
        let look_ups = (0..=stones as usize).map(|captured| {
            let parts: Vec<_> = units.iter_mut().map(|look_ups| std::mem::take(&mut look_ups[captured])).collect();
            let mut look_ups = parts.concat();
            look_ups.par_sort_unstable();
            look_ups
        });
        let look_ups = look_ups.collect();
        let mut found_look_ups: Vec<_> =
            positions.iter().enumerate().map(|(parent, &position)| RoundLookUp::new(position, parent)).collect();
        found_look_ups.par_sort_unstable();
        let (derived, found) = (vec![Derived::NONE; positions.len()], vec![0; positions.len()]);
        Ok(LookUpRound { positions, look_ups, found_look_ups, answered: 0, answered_found: 0, derived, found })
    }

    /// Answers look-ups with streamed scores from position `first` on.
    fn answer(&mut self, first: u64, scores: &[Score]) {
        let LookUpRound { look_ups, found_look_ups, answered, answered_found, derived, found, .. } = self;
        let score = |look_up: &RoundLookUp| scores.get((look_up.position() - first) as usize).copied();
        while let Some((look_up, score)) =
            look_ups[0].get(*answered).and_then(|look_up| Some((look_up, score(look_up)?)))
        {
            derived[look_up.parent()].offer(0, score);
            *answered += 1;
        }
        while let Some((look_up, score)) = found_look_ups.get(*answered_found).and_then(|it| Some((it, score(it)?))) {
            found[look_up.parent()] = score;
            *answered_found += 1;
        }
    }

    /// Looks up the children of moves that capture `captured` stones.
    fn look_up<L: ScoreSource>(&mut self, child: &Database<L>, look_ups: &[RoundLookUp], captured: u8) -> Result<()> {
        for (look_up, score) in look_ups.iter().zip(answers(child, look_ups)?) {
            self.derived[look_up.parent()].offer(captured, score);
        }
        Ok(())
    }

    /// Performs all look-ups, and compares the scores.
    fn look_up_all<L: ScoreSource>(mut self, walk: &Walk<L>) -> Result<RuleCheckTally> {
        let own = std::mem::take(&mut self.look_ups[0]);
        self.look_up(walk.database, &own, 0)?;
        for (look_up, score) in self.found_look_ups.iter().zip(answers(walk.database, &self.found_look_ups)?) {
            self.found[look_up.parent()] = score;
        }
        self.finish(walk)
    }

    /// Looks up the children in smaller databases, and compares the scores.
    fn finish<L: ScoreSource>(mut self, walk: &Walk<L>) -> Result<RuleCheckTally> {
        let Walk { databases, database, watch } = *walk;
        let stones = database.index().stones();
        for captured in 1..=stones {
            let look_ups = std::mem::take(&mut self.look_ups[captured as usize]);
            if !look_ups.is_empty() {
                self.look_up(databases.get(stones - captured)?, &look_ups, captured as u8)?;
            }
            if watch(0).is_break() {
                return Err(CheckError::Stopped);
            }
        }
        let LookUpRound { positions, derived, found, .. } = &self;
        let units = positions.par_chunks(UNIT).zip(derived.par_chunks(UNIT)).zip(found.par_chunks(UNIT));
        let compare = |((positions, derived), found): ((&[u64], &[Derived]), &[Score])| {
            let mut comparison = RuleCheckTally::default();
            for ((&position, &derived), &found) in positions.iter().zip(derived).zip(found) {
                let board = database.board(position);
                comparison.see(&VisitedPosition::new(databases.rules(), position, board, derived, found));
            }
            if watch(positions.len() as u64).is_break() { Err(CheckError::Stopped) } else { Ok(comparison) }
        };
        Ok(merged(units.map(compare).collect::<Result<_, _>>()?))
    }
}

/// Returns the scores of ascending positions.
fn answers<L: ScoreSource>(database: &Database<L>, look_ups: &[RoundLookUp]) -> Result<Vec<Score>> {
    let mut answers = vec![0; look_ups.len()];
    look_ups.par_chunks(UNIT).zip(answers.par_chunks_mut(UNIT)).try_for_each_init(
        Vec::new,
        |places, (look_ups, answers)| {
            places.clear();
            places.extend(look_ups.iter().map(|look_up| look_up.position()));
            database.scores().scores(places, answers)
        },
    )?;
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solved::solved;
    use crate::walk::Watch;
    use crate::{Extent, verify};
    use game::PositionSet;

    const SAMPLE: Sample = Sample { one_in: 10, at_least: 100, seed: 1 };

    fn streamed(databases: &Databases<Vec<Score>>, stones: u32, round: u64) -> Result<Verified> {
        let database = databases.get(stones)?;
        let stream = &mut |see: &mut dyn FnMut(&[Score])| {
            database.scores().chunks(1000).for_each(see);
            Histogram::of(database)
        };
        verify_streamed(databases, stones, SAMPLE, round, stream, &|_| ControlFlow::Continue(()))
    }

    #[test]
    fn a_streamed_sample_finds_the_same_as_a_walk() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            let mut databases = solved(7, set);
            for stones in 0..=7 {
                let expected = verify(&databases, stones, Extent::Tiles(SAMPLE)).unwrap();
                // A sample of all is a full walk there.
                let found = streamed(&databases, stones, 0).unwrap();
                assert!(found == expected || found.checked() >= set.positions(stones));
            }
            let mut scores = databases.get(7).unwrap().scores().clone();
            scores.iter_mut().step_by(100).for_each(|score| *score = -*score);
            databases.insert(7, scores).unwrap();
            let expected = verify(&databases, 7, Extent::Tiles(SAMPLE)).unwrap_err().to_string();
            assert_eq!(streamed(&databases, 7, 0).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn rounds_have_the_positions_that_fit() {
        let positions = |bytes| (tiles_of_round(bytes) * TILE_POSITIONS_MAX) as u64;
        assert_eq!(positions(0), ROUND_MIN);
        assert_eq!(positions(POSITION_BYTES << 20), 1 << 20);
        assert_eq!(positions(u64::MAX), 1 << PARENT_BITS);
    }

    #[test]
    fn rounds_add_up() {
        let databases = solved(7, PositionSet::All);
        let watch: Watch = &|_| ControlFlow::Continue(());
        let walk = Walk::new(&databases, 7, watch).unwrap();
        let tiles = sample_tiles(walk.database, SAMPLE);
        let checked = |tiles: &[WalkTile]| {
            let found = LookUpRound::collect(&walk, tiles).unwrap().look_up_all(&walk).unwrap();
            found.verified(7, Histogram::EMPTY).unwrap().checked()
        };
        let whole = checked(&tiles);
        assert_eq!(whole, tiles.chunks(10).map(checked).sum::<u64>());
        let portion = |number| {
            let portion = DatabasePortion { number, of: 3 };
            verify_portion_in_rounds(&databases, 7, SAMPLE, 0, portion, watch).unwrap()
        };
        let mut all = portion(0);
        [1, 2].into_iter().for_each(|number| all.merge(portion(number)));
        assert_eq!(all.verified(7, Histogram::EMPTY).unwrap().checked(), whole);
    }

    #[test]
    fn can_be_stopped_and_fails_with_its_stream() {
        let databases = solved(6, PositionSet::All);
        let stop: Watch = &|_| ControlFlow::Break(());
        let never = &mut |_: &mut dyn FnMut(&[Score])| Ok(Histogram::EMPTY);
        assert!(matches!(verify_streamed(&databases, 6, SAMPLE, 0, never, stop), Err(CheckError::Stopped)));
        let fails = &mut |_: &mut dyn FnMut(&[Score])| Err(CheckError::Missing { stones: 3 });
        let go: Watch = &|_| ControlFlow::Continue(());
        let failed = verify_streamed(&databases, 6, SAMPLE, 0, fails, go);
        assert!(matches!(failed, Err(CheckError::Missing { stones: 3 })));
    }
}
