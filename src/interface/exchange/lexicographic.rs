//! The order in which the Vrije Universiteit published the scores of 2002, and the conversion into it.
//!
//! The files `scores.0` to `scores.46` and `scores.48` of the data set *Awari game score database* (J. W. Romein, Vrije
//! Universiteit Amsterdam 2024, doi:10.48338/vu01-11wjke) hold the scores of Romein & Bal (2002): file n those of n
//! stones, a signed byte a position and nothing else.
//!
//! * **Positions.** The pits are those of the player to move, A to F, and of the opponent, a to f, in the order of
//!   sowing, as everywhere in this program. Only *reachable* positions are included: at least one of a to f is empty,
//!   since the opponent has just emptied one. These are C(n+11,11) - C(n+5,11), 12,375 for n = 6.
//! * **Order.** Lexicographic, f first, then e, d, c, b, a, F, E, D, C, B, A, fewer stones before more. The
//!   first position has all stones in A, and the last all in f.
//! * **48 stones** have one more position, the opening. The programs published with the scores have no index for it, so
//!   its place in `scores.48` is not known, and that file is neither written nor compared.
//!
//! This is the index of the programs published with the data: a Gödel number that adds up, pit by pit from f to A, the
//! positions with fewer stones there, less those among them that fill all six of the opponent's pits.
//!
//! **Conversion.** A fixed half of the opponent is a row of the database, and a run of consecutive positions here,
//! because its pits weigh most. Within the row only the mover's halves are permuted, and the permutation depends on the
//! mover's stones alone: one table of C(m+5,5) numbers for m stones serves all rows of a slab. Consecutive runs lie in
//! different slabs, so a [`LexicographicPart`] of consecutive runs is gathered in memory: its rows are sorted by their
//! offset in the database, read in long ranges on all threads, and distributed to their runs. A database larger than
//! the limit takes several parts and is read once for each. At 18 stones 33 million positions take 0.12 s of CPU time,
//! reading and writing included, packed or compressed, in one part or in eight.

use crate::error::ExchangeError;
use game::{Board, HALF_PITS, Half, Halves, Index, PositionSet, STONES_MAX, Score, binomial};
use rayon::prelude::*;
use std::ops::Range;
use store::{BLOCK_POSITIONS, Scores};

/// The name of the file with the scores of `stones` stones.
pub fn file_of(stones: u32) -> String {
    format!("scores.{stones}")
}

/// Positions that a thread decodes at a time: 16 blocks, so that few are decoded twice.
const SPAN_POSITIONS: u64 = 16 * BLOCK_POSITIONS as u64;

/// The largest gap between rows that are read together, where single scores are read in place.
const GAP_POSITIONS: u64 = 256;

/// The most runs of a part: they take some 40 bytes each.
const RUNS_MAX: usize = 1 << 20;

/// The reachable positions of one number of stones in lexicographic order, and their places in a database.
#[derive(Debug)]
pub struct Lexicographic<'a> {
    index: &'a Index,
    /// By the mover's stones: the numbers of its halves in lexicographic order.
    mover_numbers: Vec<Vec<u32>>,
}

/// Consecutive runs of positions, each with one half of the opponent.
#[derive(Clone, Debug)]
pub struct LexicographicPart {
    positions: Range<u64>,
    runs: Vec<PositionRun>,
}

/// The row of a database that contains a run of positions.
#[derive(Clone, Copy, Debug)]
struct PositionRun {
    mover_stones: u8,
    /// Its first position in the database.
    first: u64,
}

/// Halves with up to some number of stones in lexicographic order, the last pit first.
struct Odometer {
    half: Option<Half>,
    stones: u8,
    stones_max: u8,
}

/// Checks that files in this order can hold a database: it has a score of each position.
///
/// # Errors
/// [`ExchangeError::Unsupported`] if it has two bounds of each.
pub fn require_scores(scores: &Scores) -> Result<(), ExchangeError> {
    let identity = scores.identity();
    if identity.kind.has_pairs() {
        Err(ExchangeError::Unsupported {
            what: format!(
                "files scores.N hold a score of each position, but by the rules {} a position has two bounds instead; \
                 `awari export --format` raw, csv or parquet writes both",
                identity.rules
            ),
        })
    } else {
        Ok(())
    }
}

impl<'a> Lexicographic<'a> {
    /// The order for the databases of an index, of either position set.
    pub fn new(index: &'a Index) -> Result<Lexicographic<'a>, ExchangeError> {
        let stones = index.stones();
        if stones == STONES_MAX || index.opening().is_some() {
            let what = format!(
                "{stones} stones include the opening position, whose place in scores.{stones} is not known; choose \
                 fewer with --stones"
            );
            return Err(ExchangeError::Unsupported { what });
        }
        let mover_numbers = (0..=index.stones()).into_par_iter().map(mover_numbers).collect();
        Ok(Lexicographic { index, mover_numbers })
    }

    /// The number of positions.
    pub fn positions(&self) -> u64 {
        PositionSet::REACHABLE.slab_positions(self.index.stones())
    }

    /// The number of a position, or `None` if it is not reachable.
    ///
    /// # Panics
    /// When the board does not hold the index's number of stones.
    pub fn rank(&self, board: &Board) -> Option<u64> {
        assert_eq!(
            board.stones(),
            self.index.stones(),
            "the order is of positions with {} stones",
            self.index.stones()
        );
        if board.opponent_full() {
            return None;
        }
        let mut number = 0;
        let mut free = Free { pits: board.0.len() as u32, stones: board.stones(), is_open: false };
        for &stones in board.0.iter().rev() {
            number += (0..stones).map(|fewer| free.with(fewer).positions()).sum::<u64>();
            free = free.with(stones);
        }
        Some(number)
    }

    /// The position of a number.
    ///
    /// # Panics
    /// When `number` is not below [`positions`](Self::positions).
    pub fn unrank(&self, number: u64) -> Board {
        assert!(number < self.positions(), "position {number} of {}", self.positions());
        let mut board = Board([0; 12]);
        let mut rest = number;
        let mut free = Free { pits: board.0.len() as u32, stones: self.index.stones(), is_open: false };
        for pit in board.0.iter_mut().rev() {
            loop {
                let positions = free.with(*pit).positions();
                if rest < positions {
                    break;
                }
                rest -= positions;
                *pit += 1;
            }
            free = free.with(*pit);
        }
        board
    }

    /// All positions, divided into parts of at most `positions_max` each, and at least one run.
    pub fn parts(&self, positions_max: u64) -> impl Iterator<Item = LexicographicPart> + use<'_, 'a> {
        let stones = self.index.stones() as u8;
        let mut halves = Odometer::new(stones).filter(|half| half.contains(&0)).peekable();
        let mut first = 0;
        std::iter::from_fn(move || {
            halves.peek()?;
            let mut runs = Vec::new();
            let mut end = first;
            while let Some(half) = halves.peek() {
                let opponent_stones: u8 = half.iter().sum();
                let slab = self.index.slab(u32::from(stones - opponent_stones));
                let columns = u64::from(slab.mover_halves);
                let is_full = runs.len() == RUNS_MAX || end + columns - first > positions_max;
                if is_full && !runs.is_empty() {
                    break;
                }
                let row = self.index.rank_opponent(half).expect("a half with an empty pit is in every position set");
                runs.push(PositionRun {
                    mover_stones: stones - opponent_stones,
                    first: slab.offset + u64::from(row) * columns,
                });
                end += columns;
                halves.next();
            }
            let positions = first..end;
            first = end;
            Some(LexicographicPart { positions, runs })
        })
    }

    /// Reads the scores of a part, in order, on all threads of the current rayon pool.
    ///
    /// # Errors
    /// [`ExchangeError::Store`] if the database is damaged or cannot be read; `out` then holds anything.
    ///
    /// # Panics
    /// When `out` is not as long as the part, or the database not of this index.
    pub fn fill(&self, scores: &Scores, part: &LexicographicPart, out: &mut [Score]) -> Result<(), ExchangeError> {
        assert_eq!(out.len() as u64, part.positions.end - part.positions.start, "as many scores as positions");
        assert_eq!(scores.shape().positions(), self.index.positions(), "the database is of this index");
        let mut rest = out;
        let mut rows: Vec<(PositionRun, &mut [Score])> = Vec::with_capacity(part.runs.len());
        for &run in &part.runs {
            let (here, after) = rest.split_at_mut(self.mover_numbers[usize::from(run.mover_stones)].len());
            rows.push((run, here));
            rest = after;
        }
        // By their offset in the database.
        rows.par_sort_unstable_by_key(|(run, _)| run.first);
        let gap = if scores.is_in_place() { GAP_POSITIONS } else { BLOCK_POSITIONS as u64 };
        let end_of = |row: &(PositionRun, &mut [Score])| row.0.first + row.1.len() as u64;
        let mut spans: Vec<&mut [(PositionRun, &mut [Score])]> = Vec::new();
        let mut rest = &mut rows[..];
        while let Some((first, _)) = rest.first() {
            let (first, mut end) = (first.first, end_of(&rest[0]));
            let next = rest[1..].iter().take_while(|row| {
                let is_in_span = row.0.first <= end + gap && end_of(row) - first <= SPAN_POSITIONS;
                end = end_of(row);
                is_in_span
            });
            let count = 1 + next.count();
            let (span, after) = rest.split_at_mut(count);
            spans.push(span);
            rest = after;
        }
        spans.into_par_iter().try_for_each_init(Vec::new, |buffer, span| {
            let (first, end) = (span[0].0.first, end_of(&span[span.len() - 1]));
            buffer.resize((end - first) as usize, 0);
            scores.read_range(first..end, buffer)?;
            for (run, out) in span {
                let row = &buffer[(run.first - first) as usize..][..out.len()];
                let numbers = &self.mover_numbers[usize::from(run.mover_stones)];
                for (score, &number) in out.iter_mut().zip(numbers) {
                    *score = row[number as usize];
                }
            }
            Ok(())
        })
    }
}

impl LexicographicPart {
    /// The numbers of its positions.
    pub fn positions(&self) -> Range<u64> {
        self.positions.clone()
    }
}

/// The numbers of the halves with `stones` stones, in lexicographic order: the first pit contains the rest.
fn mover_numbers(stones: u32) -> Vec<u32> {
    let mut numbers = Vec::with_capacity(Halves::count(stones) as usize);
    for mut half in Odometer::new(stones as u8).filter(|half| half[0] == 0) {
        half[0] = stones as u8 - half.iter().sum::<u8>();
        numbers.push(Halves::rank(&half));
    }
    numbers
}

impl Odometer {
    fn new(stones_max: u8) -> Odometer {
        Odometer { half: Some([0; HALF_PITS]), stones: 0, stones_max }
    }
}

impl Iterator for Odometer {
    type Item = Half;

    fn next(&mut self) -> Option<Half> {
        let half = self.half?;
        let mut next = half;
        self.half = None;
        for pit in &mut next {
            if self.stones < self.stones_max {
                *pit += 1;
                self.stones += 1;
                self.half = Some(next);
                break;
            }
            self.stones -= *pit;
            *pit = 0;
        }
        Some(half)
    }
}

/// A position of which only the last pits are known.
#[derive(Clone, Copy)]
struct Free {
    /// The number of unknown pits, from A on.
    pits: u32,
    /// The stones in them.
    stones: u32,
    /// One of the opponent's pits is known to be empty.
    is_open: bool,
}

impl Free {
    /// Fixes the last unknown pit.
    fn with(self, stones: u8) -> Free {
        Free {
            pits: self.pits - 1,
            stones: self.stones - u32::from(stones),
            is_open: self.is_open || (stones == 0 && self.pits > HALF_PITS as u32),
        }
    }

    /// The number of ways to fill it so that the position is reachable.
    fn positions(self) -> u64 {
        let ways = |stones: u32| match self.pits {
            0 => u64::from(stones == 0),
            pits => binomial(stones + pits - 1, pits - 1),
        };
        let opponent_pits = self.pits.saturating_sub(HALF_PITS as u32);
        match self.stones.checked_sub(opponent_pits) {
            Some(rest) if !self.is_open => ways(self.stones) - ways(rest),
            _ => ways(self.stones),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{score, solved};
    use store::Codec;

    /// The slow twin: all boards of `stones` stones by a plain recursion from f down to A, as the order is described.
    fn boards(stones: u8) -> Vec<Board> {
        fn fill(pits: &mut [u8; 12], pit: usize, rest: u8, found: &mut Vec<Board>) {
            if pit == 0 {
                pits[0] = rest;
                if pits[6..].contains(&0) {
                    found.push(Board(*pits));
                }
                return;
            }
            for here in 0..=rest {
                pits[pit] = here;
                fill(pits, pit - 1, rest - here, found);
            }
        }
        let mut found = Vec::new();
        fill(&mut [0; 12], 11, stones, &mut found);
        found
    }

    #[test]
    fn numbers_follow_the_order() {
        for stones in 0..=8 {
            let index = Index::new(stones, PositionSet::REACHABLE);
            let order = Lexicographic::new(&index).unwrap();
            let boards = boards(stones as u8);
            assert_eq!(boards.len() as u64, order.positions());
            for (number, board) in (0..).zip(&boards) {
                assert_eq!(order.rank(board), Some(number));
                assert_eq!(order.unrank(number), *board);
            }
        }
        let index = Index::new(6, PositionSet::All);
        let order = Lexicographic::new(&index).unwrap();
        assert_eq!(order.positions(), 12_375);
        assert_eq!(order.unrank(0), Board([6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(order.unrank(1), Board([5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(order.unrank(12_374), Board([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6]));
        assert_eq!(order.rank(&Board([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])), None);
    }

    #[test]
    fn numbers_of_many_stones() {
        let index = Index::new(46, PositionSet::REACHABLE);
        let order = Lexicographic::new(&index).unwrap();
        assert_eq!(order.positions(), 136_883_249_790);
        for number in (0..order.positions()).step_by(9_876_543_211).chain([order.positions() - 1]) {
            assert_eq!(order.rank(&order.unrank(number)), Some(number));
        }
    }

    #[test]
    fn every_part_of_every_database_is_in_order() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            for codec in Codec::ALL {
                for stones in 0..=6 {
                    let (scores, index) = solved(stones, set, codec);
                    let order = Lexicographic::new(&index).unwrap();
                    let expected: Vec<Score> = boards(stones as u8).iter().map(score).collect();
                    for positions_max in [1, 100, u64::MAX / 2] {
                        let mut found = Vec::new();
                        for part in order.parts(positions_max) {
                            assert_eq!(part.positions().start, found.len() as u64);
                            let mut here = vec![99; (part.positions().end - part.positions().start) as usize];
                            order.fill(&scores, &part, &mut here).unwrap();
                            found.extend(here);
                        }
                        assert!(found == expected, "{stones} stones, {set}, {codec}, parts of {positions_max}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_opening_is_not_supported() {
        let index = Index::new(48, PositionSet::All);
        assert!(matches!(Lexicographic::new(&index), Err(ExchangeError::Unsupported { .. })));
    }
}
