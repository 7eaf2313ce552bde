//! Verifies a sample of tiles with look-ups in file order, for compressed databases.
//!
//! A look-up in a compressed file decodes some thousand scores, and a tile needs fifty look-ups, so a walk tile by tile
//! decodes everything several times. Here all look-ups of a round are collected and sorted. Look-ups in the database
//! itself are answered while its scores are streamed to compare their digest; look-ups in smaller databases decode each
//! block once. Memory is one round of look-ups. A larger sample takes more rounds, each of which reads the database
//! again.

use crate::databases::{Database, Databases, ScoreSource};
use crate::derive::Derived;
use crate::error::{CheckError, Result};
use crate::extent::Sample;
use crate::verify::{PortionFindings, RuleCheckTally};
use crate::walk::{DatabasePortion, VisitedPosition, Walk, WalkTally, WalkTile, merged, sample_tiles};
use game::Score;
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI8, AtomicI16, AtomicUsize};

/// Memory for each position of a round: its look-ups, those of one database twice while they are collected, and the
/// answers.
pub const POSITION_BYTES: u64 = 115;

/// The least number of positions of a round, if the sample has as many: 15 MB.
const ROUND_MIN: u64 = 1 << 17;

/// Positions, or look-ups, in one parallel unit.
const UNIT: usize = 1 << 14;

/// Units of look-ups in one database for each thread, and the least look-ups in a unit.
const UNITS_A_THREAD: usize = 8;
const UNIT_MIN: usize = 1 << 10;

/// Streamed look-ups in one parallel unit.
const STREAM_UNIT: usize = 1 << 11;

/// Positions of a whole tile.
const TILE_POSITIONS_MAX: usize = 64;

/// Bits for the number of a position in its round, and for a position in a database: C(59, 11) is less than 2^39.
const PARENT_BITS: u32 = 25;
const POSITION_BITS: u32 = 39;
const _: () = assert!(PARENT_BITS + POSITION_BITS == u64::BITS);

/// Receives all scores of a database in canonical order, in portions.
pub type ScoreReceiver<'a> = &'a mut (dyn FnMut(&[Score]) + Send);

/// As [`verify_portion`](crate::verify_portion) of a whole database with a sample of tiles, in rounds of about
/// `round_bytes`. The look-ups of the first round in the database itself are answered by the scores that `stream`
/// passes on. It is called once, and its result is returned besides.
///
/// # Errors
/// As [`verify_portion`](crate::verify_portion), and those of `stream`.
pub fn verify_streamed<L: ScoreSource, T>(
    databases: &Databases<L>,
    stones: u32,
    sample: Sample,
    round_bytes: u64,
    stream: impl FnOnce(ScoreReceiver) -> Result<T>,
    watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<(T, PortionFindings)> {
    let walk = Walk::new(databases, stones, watch)?;
    let tiles = sample_tiles(walk.database, sample);
    let mut rounds = tiles.chunks(tiles_of_round(round_bytes));
    let mut comparison = RuleCheckTally::default();
    let mut round = LookUpRound::collect(&walk, rounds.next().unwrap_or_default())?;
    let mut at = 0;
    let streamed = stream(&mut |scores| {
        round.answer(at, scores);
        at += scores.len() as u64;
    })?;
    comparison.merge(round.finish(&walk)?);
    for tiles in rounds {
        comparison.merge(LookUpRound::collect(&walk, tiles)?.look_up_all(&walk)?);
    }
    walk.see_opening(&mut comparison)?;
    Ok((streamed, PortionFindings(comparison)))
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
    answers: RoundAnswers,
}

/// The answers to the look-ups of a round, by position, to which all threads add.
struct RoundAnswers {
    /// The best scores of capturing and of other moves, with [`NO_MOVE`] for none.
    best: Vec<[AtomicI16; 2]>,
    found: Vec<AtomicI8>,
}

/// Less than any score.
const NO_MOVE: i16 = i16::MIN;

impl RoundAnswers {
    fn new(positions: usize) -> RoundAnswers {
        let best = (0..positions).map(|_| [NO_MOVE; 2].map(AtomicI16::new)).collect();
        RoundAnswers { best, found: (0..positions).map(|_| AtomicI8::new(0)).collect() }
    }

    /// Adds a move to a position.
    fn offer(&self, parent: usize, captured: u8, child: Score) {
        let mut derived = Derived::NONE;
        derived.offer(captured, child);
        let [capture, quiet] = &self.best[parent];
        let (best, score) = if captured == 0 { (quiet, derived.quiet) } else { (capture, derived.capture) };
        best.fetch_max(score.map_or(NO_MOVE, i16::from), Relaxed);
    }

    /// Sets the score of a position.
    fn find(&self, parent: usize, score: Score) {
        self.found[parent].store(score, Relaxed);
    }

    /// Looks positions up, on all threads. Meanwhile `watch` receives `derived` further positions.
    fn look_up<L: ScoreSource>(&self, walk: &Walk<L>, units: Vec<LookUpUnit<L>>, derived: usize) -> Result<()> {
        let next = AtomicUsize::new(0);
        let share = |unit: usize| (derived * unit / units.len().max(1)) as u64;
        // Each thread takes the next unit, so that files are read in order and all threads finish together.
        (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).try_for_each(|_| {
            let (mut positions, mut scores) = (Vec::new(), Vec::new());
            loop {
                let unit = next.fetch_add(1, Relaxed);
                let Some(LookUpUnit { database, captured, look_ups }) = units.get(unit) else { return Ok(()) };
                if (walk.watch)(share(unit + 1) - share(unit)).is_break() {
                    return Err(CheckError::Stopped);
                }
                positions.clear();
                positions.extend(look_ups.iter().map(|look_up| look_up.position()));
                scores.resize(positions.len(), 0);
                database.scores().scores(&positions, &mut scores)?;
                for (look_up, &score) in look_ups.iter().zip(&scores) {
                    match *captured {
                        Some(captured) => self.offer(look_up.parent(), captured, score),
                        None => self.find(look_up.parent(), score),
                    }
                }
            }
        })
    }

    /// Returns the answers of a position: what its moves give, and its score.
    fn of(&self, parent: usize) -> (Derived, Score) {
        let best = |best: &AtomicI16| Score::try_from(best.load(Relaxed)).ok();
        let [capture, quiet] = &self.best[parent];
        (Derived { capture: best(capture), quiet: best(quiet) }, self.found[parent].load(Relaxed))
    }
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
        let answers = RoundAnswers::new(positions.len());
        Ok(LookUpRound { positions, look_ups, found_look_ups, answered: 0, answered_found: 0, answers })
    }

    /// Answers look-ups with streamed scores from position `first` on.
    fn answer(&mut self, first: u64, scores: &[Score]) {
        let LookUpRound { look_ups, found_look_ups, answered, answered_found, answers, .. } = self;
        let end = first + scores.len() as u64;
        let take = |look_ups: &[RoundLookUp], answered: &mut usize| {
            let start = *answered;
            *answered += look_ups[start..].partition_point(|look_up| look_up.position() < end);
            start..*answered
        };
        let own = &look_ups[0][take(&look_ups[0], answered)];
        let found = &found_look_ups[take(found_look_ups, answered_found)];
        let score = |look_up: &RoundLookUp| scores[(look_up.position() - first) as usize];
        own.par_iter().with_min_len(STREAM_UNIT).for_each(|look_up| answers.offer(look_up.parent(), 0, score(look_up)));
        found.par_iter().with_min_len(STREAM_UNIT).for_each(|look_up| answers.find(look_up.parent(), score(look_up)));
    }

    /// Performs all look-ups, and compares the scores.
    fn look_up_all<L: ScoreSource>(mut self, walk: &Walk<L>) -> Result<RuleCheckTally> {
        let own = std::mem::take(&mut self.look_ups[0]);
        let found = std::mem::take(&mut self.found_look_ups);
        let own =
            look_up_units(&own).map(|look_ups| LookUpUnit { database: walk.database, captured: Some(0), look_ups });
        let found =
            look_up_units(&found).map(|look_ups| LookUpUnit { database: walk.database, captured: None, look_ups });
        self.answers.look_up(walk, own.chain(found).collect(), 0)?;
        self.finish(walk)
    }

    /// Looks up the children in smaller databases, and compares the scores.
    fn finish<L: ScoreSource>(self, walk: &Walk<L>) -> Result<RuleCheckTally> {
        let Walk { databases, database, watch } = *walk;
        let stones = database.index().stones();
        let mut units = Vec::new();
        for (captured, look_ups) in (1..).zip(&self.look_ups[1..]).filter(|(_, look_ups)| !look_ups.is_empty()) {
            let database = databases.get(stones - captured)?;
            let captured = Some(captured as u8);
            units.extend(look_up_units(look_ups).map(|look_ups| LookUpUnit { database, captured, look_ups }));
        }
        // Without captures, all positions are derived by now.
        let derived = if units.is_empty() { 0 } else { self.positions.len() };
        self.answers.look_up(walk, units, derived)?;
        let LookUpRound { positions, answers, .. } = &self;
        let compare = |(unit, positions): (usize, &[u64])| {
            let mut comparison = RuleCheckTally::default();
            for (parent, &position) in (unit * UNIT..).zip(positions) {
                let (board, (derived, found)) = (database.board(position), answers.of(parent));
                comparison.see(&VisitedPosition::new(databases.rules(), position, board, derived, found));
            }
            let more = if derived == 0 { positions.len() } else { 0 };
            if watch(more as u64).is_break() { Err(CheckError::Stopped) } else { Ok(comparison) }
        };
        let units = positions.par_chunks(UNIT).enumerate();
        Ok(merged(units.map(compare).collect::<Result<_, _>>()?))
    }
}

/// Look-ups in one database, by one thread.
struct LookUpUnit<'a, L> {
    database: &'a Database<L>,
    /// The stones that the move to the position captured; `None` if the score of the position itself is wanted.
    captured: Option<u8>,
    look_ups: &'a [RoundLookUp],
}

/// Cuts look-ups into units: long ones, since two units decode the block in which they meet, but several for
/// each thread.
fn look_up_units(look_ups: &[RoundLookUp]) -> impl Iterator<Item = &[RoundLookUp]> {
    let even = look_ups.len() / (UNITS_A_THREAD * rayon::current_num_threads());
    look_ups.chunks(even.clamp(UNIT_MIN, UNIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solved::solved;
    use crate::walk::Watch;
    use crate::{Extent, Histogram, Verified, verify};
    use game::PositionSet;

    const SAMPLE: Sample = Sample { one_in: 10, at_least: 100, seed: 1 };

    fn streamed(databases: &Databases<Vec<Score>>, stones: u32, round: u64) -> Result<Verified> {
        let database = databases.get(stones)?;
        let stream = |see: ScoreReceiver| {
            database.scores().chunks(1000).for_each(see);
            Histogram::of(database)
        };
        let watch: Watch = &|_| ControlFlow::Continue(());
        let (histogram, findings) = verify_streamed(databases, stones, SAMPLE, round, stream, watch)?;
        findings.verified(stones, histogram)
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
        let never = |_: ScoreReceiver| Ok(());
        assert!(matches!(verify_streamed(&databases, 6, SAMPLE, 0, never, stop), Err(CheckError::Stopped)));
        let fails = |_: ScoreReceiver| Err::<(), _>(CheckError::Missing { stones: 3 });
        let go: Watch = &|_| ControlFlow::Continue(());
        let failed = verify_streamed(&databases, 6, SAMPLE, 0, fails, go);
        assert!(matches!(failed, Err(CheckError::Missing { stones: 3 })));
    }
}
