//! Statistics: how often every capture is a wrong move (Romein & Bal 2002: in 22 % of the positions with a choice).
//!
//! Whether a position offers both a capturing and a non-capturing move depends on halves and classes alone, 64 columns
//! at a time. Whether only non-capturing moves are best follows from the best capture and the score.

use crate::capture;
use crate::kernels::tables::{CHUNK, PackedMove, Tables};
use crate::layout::rows::ScoreRows;
use game::{Index, Score, Slab};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Counts over all positions of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChoiceCounts {
    /// Positions that offer both a capturing and a non-capturing move.
    pub offered: u64,
    /// Those of them in which every best move captures nothing.
    pub declined: u64,
}

/// One of several parts of a database, determined by the database and the number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabasePart {
    /// Number of the part, from 0.
    pub number: usize,
    /// Number of parts.
    pub of: usize,
}

impl DatabasePart {
    /// The whole database as one part.
    pub const WHOLE: DatabasePart = DatabasePart { number: 0, of: 1 };
}

/// Reader of consecutive positions of a database: gets the first position and the buffer. Several threads
/// call it, or one for a long buffer.
pub type ReadScores<'a, E> = &'a (dyn Fn(u64, &mut [Score]) -> Result<(), E> + Sync);

/// Most positions in memory; at least one row.
#[derive(Clone, Copy, Debug)]
struct ChoiceBuffers {
    /// Scores of a stripe.
    stripe: usize,
    /// Captures of a thread.
    unit: usize,
}

/// Least stripes a part, if there are several parts.
const STRIPES_A_PART: usize = 4;

/// Most units of at most 64 rows that a thread counts in a row, if all is in memory.
const UNITS_AT_ONCE: usize = 8;

/// Captures in memory, a thread.
const UNIT_POSITIONS: usize = 1 << 20;

/// Positions of whole rows of scores that are read at a time.
const WHOLE_POSITIONS: usize = 1 << 25;

/// Counts the choices of a part of a database from its best captures (`MoverMajor`) and its scores
/// (`OpponentMajor`), in bounded memory: slabs of more than `stripe` positions are cut into stripes of the
/// movers' halves. Each stripe reads its columns of all rows of scores; captures are read sequentially, and
/// no read crosses any of `cuts`: positions in ascending order, each the first of a row.
///
/// All parts together read each score once, and their counts add up.
pub fn choice<E: Send>(
    tables: &Tables,
    index: &Index,
    stripe: usize,
    part: DatabasePart,
    cuts: &[u64],
    captures: ReadScores<E>,
    scores: ReadScores<E>,
) -> Result<ChoiceCounts, E> {
    // Few stripes, since those of one slab read the same rows, but enough to balance the parts.
    let even = index.slab_positions() as usize / part.of / STRIPES_A_PART;
    let stripe = if part.of == 1 { stripe } else { stripe.min(even) };
    let buffers = ChoiceBuffers { stripe, unit: UNIT_POSITIONS };
    count_choices_within(buffers, part, tables, index, cuts, captures, scores)
}

fn count_choices_within<E: Send>(
    workspace: ChoiceBuffers,
    part: DatabasePart,
    tables: &Tables,
    index: &Index,
    cuts: &[u64],
    captures: ReadScores<E>,
    scores: ReadScores<E>,
) -> Result<ChoiceCounts, E> {
    tables.prepare_rows(index.stones());
    tables.prepare_columns(index.stones());
    let mut choice = ChoiceCounts::default();
    let mut striped = Vec::new();
    // Assigns each stripe to the part with the fewest positions.
    let mut taken = vec![0; part.of];
    for slab in index.slabs() {
        for stripe in stripes(slab, workspace.stripe) {
            let positions = stripe.len() * slab.opponent_halves as usize;
            let least = (0..part.of).min_by_key(|&number| taken[number]).expect("there is a part");
            taken[least] += positions;
            if least != part.number {
                continue;
            }
            striped.resize(positions, 0);
            read_stripe(slab, &stripe, workspace.unit, scores, &mut striped)?;
            let stripe = ScoreStripe { tables, index, slab, movers: stripe, scores: &striped };
            choice = choice.plus(stripe.count(workspace.unit, cuts, captures)?);
        }
    }
    Ok(choice)
}

/// Cuts the movers' halves of a slab into stripes of about `positions` positions.
fn stripes(slab: &Slab, positions: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let movers = slab.mover_halves as usize;
    let most = (positions / slab.opponent_halves as usize).max(1);
    // Whole chunks, but for the last.
    let most = if most > CHUNK { most / CHUNK * CHUNK } else { most };
    (0..movers).step_by(most).map(move |first| first..movers.min(first + most))
}

/// Reads the columns of a stripe, row by row (a row for each half of the opponent).
fn read_stripe<E: Send>(
    slab: &Slab,
    stripe: &Range<usize>,
    unit: usize,
    scores: ReadScores<E>,
    out: &mut [Score],
) -> Result<(), E> {
    let (stride, width) = (slab.mover_halves as usize, stripe.len());
    if width == stride {
        // The reader uses all threads.
        return (slab.offset..)
            .step_by(WHOLE_POSITIONS)
            .zip(out.chunks_mut(WHOLE_POSITIONS))
            .try_for_each(|(first, out)| scores(first, out));
    }
    let unit_rows = (unit / stride).max(1);
    out.par_chunks_mut(unit_rows * width).enumerate().try_for_each(|(unit, out)| {
        let first = slab.offset + (unit * unit_rows * stride + stripe.start) as u64;
        (out.chunks_exact_mut(width).enumerate()).try_for_each(|(row, out)| scores(first + (row * stride) as u64, out))
    })
}

/// Some of the movers' halves of a slab, with all halves of the opponent.
struct ScoreStripe<'a> {
    tables: &'a Tables,
    index: &'a Index,
    slab: &'a Slab,
    movers: Range<usize>,
    /// A row for each half of the opponent.
    scores: &'a [Score],
}

impl ScoreStripe<'_> {
    fn count<E: Send>(&self, unit: usize, cuts: &[u64], captures: ReadScores<E>) -> Result<ChoiceCounts, E> {
        let columns = self.slab.opponent_halves as usize;
        let position = |row: usize| self.slab.offset + (row * columns) as u64;
        let units: Vec<_> = self.units((unit / columns).max(1), cuts).collect();
        let next = AtomicUsize::new(0);
        // Each thread takes the next unit, so that captures are read in order and all threads finish together.
        let counted = (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).map(|_| {
            let (mut counts, mut best) = (ChoiceCounts::default(), Vec::new());
            while let Some(rows) = units.get(next.fetch_add(1, Relaxed)) {
                best.resize(rows.len() * columns, 0);
                captures(position(rows.start), &mut best)?;
                for (first, best) in rows.clone().step_by(CHUNK).zip(best.chunks(CHUNK * columns)) {
                    counts = counts.plus(self.count_rows(first..first + best.len() / columns, best));
                }
            }
            Ok(counts)
        });
        counted.try_reduce(ChoiceCounts::default, |a, b| Ok(a.plus(b)))
    }

    /// Cuts the movers' halves into units of at most `rows_max` rows, and at `cuts`.
    fn units(&self, rows_max: usize, cuts: &[u64]) -> impl Iterator<Item = Range<usize>> {
        let columns = u64::from(self.slab.opponent_halves);
        let mut first = self.movers.start;
        std::iter::from_fn(move || {
            let position = self.slab.offset + first as u64 * columns;
            let cut = cuts.get(cuts.partition_point(|&cut| cut <= position));
            let cut = cut.map_or(usize::MAX, |cut| ((cut - self.slab.offset) / columns) as usize);
            let rows = first..self.movers.end.min(first + rows_max).min(cut);
            first = rows.end;
            (!rows.is_empty()).then_some(rows)
        })
    }

    fn count_rows(&self, rows: Range<usize>, captures: &[Score]) -> ChoiceCounts {
        let (width, first) = (self.movers.len(), rows.start - self.movers.start);
        let height = rows.len();
        let scores = |column: usize| &self.scores[column * width + first..][..height];
        count_rows(self.tables, self.index, self.slab, rows, captures, scores)
    }
}

/// As [`choice()`], of captures and scores in memory.
///
/// # Panics
/// If an array has another length than the index.
pub fn choice_of(tables: &Tables, index: &Index, captures: &[Score], scores: &ScoreRows) -> ChoiceCounts {
    let units = index.slabs().iter().flat_map(|slab| {
        let movers = slab.mover_halves as usize;
        (0..movers).step_by(CHUNK).map(move |first| (slab, first..movers.min(first + CHUNK)))
    });
    let units: Vec<_> = units.collect();
    let count = |(slab, rows): (&Slab, Range<usize>)| {
        let columns = slab.opponent_halves as usize;
        let captures = &captures[slab.offset as usize + rows.start * columns..][..rows.len() * columns];
        let (first, height) = (rows.start, rows.len());
        let scores = |column: usize| &scores.row(slab, column)[first..][..height];
        count_rows(tables, index, slab, rows, captures, scores)
    };
    // The first slabs have few units, which are large.
    units.into_par_iter().with_max_len(UNITS_AT_ONCE).map(count).reduce(ChoiceCounts::default, ChoiceCounts::plus)
}

/// Counts the positions in slabs that offer both a capturing and a non-capturing move.
pub fn offered_choices(tables: &Tables, index: &Index) -> u64 {
    tables.prepare_rows(index.stones());
    tables.prepare_columns(index.stones());
    let of_slab = |slab: &Slab| {
        let rows = tables.rows(slab.mover_stones)[..slab.mover_halves as usize].par_iter();
        rows.map_init(Vec::new, |words, moves| offered(tables, slab, moves, words)).sum::<u64>()
    };
    index.slabs().iter().map(of_slab).sum()
}

/// Counts at most 64 rows of a slab: their captures, and for each column its scores there.
fn count_rows<'a>(
    tables: &Tables,
    index: &Index,
    slab: &Slab,
    rows: Range<usize>,
    captures: &[Score],
    scores: impl Fn(usize) -> &'a [Score],
) -> ChoiceCounts {
    let none = capture::none(index.stones());
    let columns = slab.opponent_halves as usize;
    let mut declined = 0;
    let mut tile = [[0; CHUNK]; CHUNK];
    for chunk in (0..columns).step_by(CHUNK) {
        let lanes = CHUNK.min(columns - chunk);
        for (lane, tile) in tile[..lanes].iter_mut().enumerate() {
            match scores(chunk + lane).try_into() {
                Ok(whole) => *tile = whole,
                Err(_) => tile[..rows.len()].copy_from_slice(scores(chunk + lane)),
            }
        }
        let turned = transposed(&tile);
        for (captures, turned) in captures.chunks_exact(columns).zip(&turned) {
            let count = |captures: &[Score]| -> u8 {
                captures.iter().zip(turned).map(|(&best, &score)| u8::from(best != none && best < score)).sum()
            };
            let captures = &captures[chunk..][..lanes];
            // Of known length the loop is unrolled into vectors.
            let here = captures.first_chunk::<CHUNK>().map_or_else(|| count(captures), |whole| count(whole));
            declined += u64::from(here);
        }
    }
    let moves = &tables.rows(slab.mover_stones)[rows];
    let mut words = Vec::new();
    ChoiceCounts { offered: moves.iter().map(|moves| offered(tables, slab, moves, &mut words)).sum(), declined }
}

/// Transposes a tile in blocks of 8 by 8 bytes, each row of which is a word (Warren, *Hacker's Delight*, section 7-3);
/// eight blocks side by side, which a vector instruction takes together.
fn transposed(tile: &[[Score; CHUNK]; CHUNK]) -> [[Score; CHUNK]; CHUNK] {
    type Words = [u64; CHUNK / 8];
    let mut turned = [[0; CHUNK]; CHUNK];
    for (block, rows) in tile.as_chunks::<8>().0.iter().enumerate() {
        let mut rows: [Words; 8] = rows.each_ref().map(|row| {
            let words = row.as_chunks::<8>().0;
            std::array::from_fn(|at| u64::from_le_bytes(words[at].map(|score| score as u8)))
        });
        for (distance, bits, mask) in
            [(4, 32, 0x0000_0000_ffff_ffffu64), (2, 16, 0x0000_ffff_0000_ffff), (1, 8, 0x00ff_00ff_00ff_00ff)]
        {
            for low in (0..8).filter(|row| row & distance == 0) {
                let (a, b) = (rows[low], rows[low + distance]);
                rows[low] = std::array::from_fn(|at| a[at] & mask | (b[at] & mask) << bits);
                rows[low + distance] = std::array::from_fn(|at| a[at] >> bits & mask | b[at] & !mask);
            }
        }
        for (column, turned) in turned.iter_mut().enumerate() {
            let bytes = rows[column % 8][column / 8].to_le_bytes().map(|byte| byte as Score);
            turned[block * 8..][..8].copy_from_slice(&bytes);
        }
    }
    turned
}

/// Counts the columns of a row that offer both a capturing and a non-capturing move. `words` is a buffer.
fn offered(tables: &Tables, slab: &Slab, moves: &[PackedMove], words: &mut Vec<[u64; 2]>) -> u64 {
    words.clear();
    words.resize((slab.opponent_halves as usize).div_ceil(CHUNK), [0; 2]);
    for to in moves.iter().take_while(|&&to| to != PackedMove::NONE) {
        let class = tables.columns(slab.opponent_stones, to.class());
        for ([quiet, capturing], (&q, &c)) in words.iter_mut().zip(class.quiet.iter().zip(&class.capturing)) {
            *quiet |= q;
            *capturing |= c;
        }
    }
    words.iter().map(|[quiet, capturing]| u64::from((quiet & capturing).count_ones())).sum()
}

impl ChoiceCounts {
    /// Adds two counts.
    #[must_use]
    pub fn plus(self, other: ChoiceCounts) -> ChoiceCounts {
        ChoiceCounts { offered: self.offered + other.offered, declined: self.declined + other.declined }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::{PositionSet, Rules};

    #[test]
    fn tiles_are_transposed() {
        let tile = std::array::from_fn(|row| std::array::from_fn(|column| (row * 5 + column * 3) as Score));
        let turned = transposed(&tile);
        for (row, column) in (0..CHUNK).flat_map(|row| (0..CHUNK).map(move |column| (row, column))) {
            assert_eq!(turned[column][row], tile[row][column]);
        }
    }

    /// The bytes may be anything: the rules alone decide which moves are offered, the bytes which is best.
    #[test]
    fn stripes_change_nothing() {
        stripes_of_noise_change_nothing(10);
    }

    #[test]
    #[ignore = "slow tier: 11 stones by five stripes and eight parts"]
    fn stripes_of_11_stones_change_nothing() {
        stripes_of_noise_change_nothing(11);
    }

    fn stripes_of_noise_change_nothing(stones: u32) {
        let noise = |seed: u64| {
            move |at: u64| {
                let hash = (at + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
                (hash % 25) as Score - 12
            }
        };
        let (capture_at, score_at) = (noise(1), noise(2));
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            let tables = Tables::new(Rules::AWARI, set, stones);
            let index = Index::new(stones, set);
            let fill = |at: &dyn Fn(u64) -> Score, first: u64, out: &mut [Score]| {
                out.iter_mut().zip(first..).for_each(|(out, position)| *out = at(position));
                Ok::<_, ()>(())
            };
            let captures = |first: u64, out: &mut [Score]| fill(&capture_at, first, out);
            let scores = |first: u64, out: &mut [Score]| fill(&score_at, first, out);
            let expected = choice(&tables, &index, 1 << 23, DatabasePart::WHOLE, &[], &captures, &scores).unwrap();
            let mut declined = 0;
            for slab in index.slabs() {
                let (movers, opponents) = (u64::from(slab.mover_halves), u64::from(slab.opponent_halves));
                for (mover, opponent) in (0..movers).flat_map(|mover| (0..opponents).map(move |to| (mover, to))) {
                    let best = capture_at(slab.offset + mover * opponents + opponent);
                    let is_offered = best != crate::capture::none(stones);
                    declined += u64::from(is_offered && best < score_at(slab.offset + opponent * movers + mover));
                }
            }
            assert_eq!(expected.declined, declined);
            assert_eq!(expected.offered, offered_choices(&tables, &index));
            let cuts_of = |slab: &Slab| {
                let (offset, columns) = (slab.offset, u64::from(slab.opponent_halves));
                (0..u64::from(slab.mover_halves)).filter(|row| row % 71 < 2).map(move |row| offset + row * columns)
            };
            let cuts: Vec<u64> = index.slabs().iter().flat_map(cuts_of).collect();
            for (stripe, unit) in [(1, 1), (100, 1), (10_000, 300), (40_000, 2_000), (40_000, 1 << 20)] {
                for parts in [1, 2, 5] {
                    let part = |number| {
                        let (workspace, part) = (ChoiceBuffers { stripe, unit }, DatabasePart { number, of: parts });
                        let cuts = if number % 2 == 0 { &cuts[..] } else { &[] };
                        count_choices_within(workspace, part, &tables, &index, cuts, &captures, &scores).unwrap()
                    };
                    let found = (0..parts).map(part).reduce(ChoiceCounts::plus).unwrap();
                    assert_eq!(found, expected, "{stripe}, {unit}, {parts} parts");
                }
            }
            let mut best = vec![0; index.slab_positions() as usize];
            fill(&capture_at, 0, &mut best).unwrap();
            let mut rows = ScoreRows::zeroed(&index).unwrap();
            rows.fill(|positions, out| scores(positions.start, out)).unwrap();
            assert_eq!(choice_of(&tables, &index, &best, &rows), expected);
        }
    }
}
