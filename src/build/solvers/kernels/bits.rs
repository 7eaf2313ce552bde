//! Kernels on rows of bits: find the lost candidates of a row ([`BitKernel::pull`]) and the parents that win through
//! them ([`BitKernel::push`]).

mod bytes;
mod transpose;
pub(crate) mod words;
mod x86_64;

use super::bit_maps::{Pull, Push};
use super::cpu;
use super::scores::Kernel;
use crate::layout::plane::WORD;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// Read access to a row of bits.
pub trait RowBits: Copy {
    /// Returns a word; bits outside `mask` are unspecified.
    fn bits(self, word: usize, mask: u64) -> u64;
}

impl RowBits for &[AtomicU64] {
    #[inline(always)]
    fn bits(self, word: usize, _: u64) -> u64 {
        self[word].load(SeqCst)
    }
}

impl RowBits for &[u64] {
    #[inline(always)]
    fn bits(self, word: usize, _: u64) -> u64 {
        self[word]
    }
}

/// A move of a row, and the wins of its children.
#[derive(Clone, Copy)]
pub(crate) struct ChildWins<'a, R> {
    pub(crate) wins: R,
    pub(crate) pull: &'a Pull,
    /// By word, the columns on which the move is quiet: it captures nothing and does not starve the opponent.
    pub(crate) quiet: &'a [u64],
}

/// Implementation of the kernels on bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BitKernel {
    /// Plain Rust, on any processor.
    Portable,
    /// BMI2, with instructions that compress and expand the bits of a word, and AVX2, which compares 32 bytes
    /// at a time.
    Avx2,
    /// BMI2 and AVX-512, which tests eight pieces at a time for set bits.
    Avx512,
}

/// Accumulator of the wins of one row.
#[derive(Debug, Default)]
pub(crate) struct WonRow {
    /// All zeros between rows.
    words: Vec<u64>,
}

impl WonRow {
    /// Sets the number of words of the row.
    #[inline]
    pub(crate) fn resize(&mut self, words: usize) {
        self.words.resize(words, 0);
    }

    #[inline(always)]
    fn add(&mut self, word: u32, bits: u64) {
        self.words[word as usize] |= bits;
    }

    /// Lists the nonzero words and clears them.
    #[inline]
    pub(crate) fn take(&mut self, into: &mut Vec<(u32, u64)>) {
        into.clear();
        // Most words of long rows are zeros.
        for (eight, words) in (0..).step_by(8).zip(self.words.chunks_mut(8)) {
            if words.iter().fold(0, |any, word| any | word) == 0 {
                continue;
            }
            list(eight, words, into);
            words.fill(0);
        }
    }
}

/// Appends the nonzero words, numbered from `first` on. A processor cannot predict which words are zero, so
/// there is no branch for each.
#[inline(always)]
pub(crate) fn list(first: u32, words: &[u64], into: &mut Vec<(u32, u64)>) {
    let mut end = into.len();
    into.resize(end + words.len(), (0, 0));
    for (at, &word) in (first..).zip(words) {
        into[end] = (at, word);
        end += usize::from(word != 0);
    }
    into.truncate(end);
}

impl BitKernel {
    /// Returns the fastest kernel of this processor, of no later generation than [`Kernel::detect`].
    pub fn detect() -> BitKernel {
        let most = BitKernel::beside(Kernel::detect());
        BitKernel::available().rfind(|kernel| *kernel <= most).unwrap_or(BitKernel::Portable)
    }

    /// Returns the bit kernel for the same generation of processors as a score kernel.
    fn beside(kernel: Kernel) -> BitKernel {
        match kernel {
            Kernel::Portable => BitKernel::Portable,
            Kernel::Avx2 => BitKernel::Avx2,
            Kernel::Avx512 => BitKernel::Avx512,
        }
    }

    /// Iterates over the kernels that this processor supports, fastest last.
    pub fn available() -> impl DoubleEndedIterator<Item = BitKernel> {
        let has = |kernel: &BitKernel| match kernel {
            BitKernel::Portable => true,
            BitKernel::Avx2 => cpu::has_bmi2() && cpu::has_avx2(),
            BitKernel::Avx512 => cpu::has_bmi2() && cpu::has_avx512(),
        };
        [BitKernel::Portable, BitKernel::Avx2, BitKernel::Avx512].into_iter().filter(has)
    }

    /// Counts the set bits.
    pub fn count(self, words: &[u64]) -> u64 {
        match self {
            BitKernel::Portable => words.iter().map(|word| u64::from(word.count_ones())).sum(),
            BitKernel::Avx2 | BitKernel::Avx512 => x86_64::count_bmi2(words),
        }
    }

    /// Clears in `left`, the words of a row from `first` on, each column whose move is quiet and does not lead to a
    /// win. Returns the mask of groups of `1 << shift` words in which a bit was cleared.
    #[inline]
    pub(crate) fn pull<R: RowBits>(self, left: &mut [u64], first: usize, child: &ChildWins<R>, shift: u32) -> u64 {
        match self {
            _ if child.pull.is_straight => pull_straight(left, first, child, shift),
            BitKernel::Portable => pull_row(left, first, child, shift, compress),
            BitKernel::Avx2 | BitKernel::Avx512 => x86_64::pull_row_bmi2(left, first, child, shift),
        }
    }

    /// Adds to `won` the parents that win by a move of the class to a lost position. `lost` lists them by word.
    #[inline]
    pub(crate) fn push(self, lost: &[(u32, u64)], push: &Push, won: &mut WonRow) {
        match self {
            BitKernel::Portable => push_row(lost, push, won, compress, expand),
            BitKernel::Avx2 => x86_64::push_row_avx2(lost, push, won),
            BitKernel::Avx512 => x86_64::push_row_avx512(lost, push, won),
        }
    }

    /// Appends words, ascending by their numbers. `count` is [`words::encoded_count`] of them.
    pub(crate) fn encode_words(self, list: &[(u32, u64)], count: usize, bytes: &mut Vec<u8>) {
        match self {
            BitKernel::Portable => words::encode(list, count, bytes, words::squeeze),
            BitKernel::Avx2 | BitKernel::Avx512 => x86_64::encode_words_bmi2(list, count, bytes),
        }
    }

    /// Decodes `count` words into `list`, fillers left out; their numbers do not descend. Returns the length
    /// of the encoding, or `None` if there are fewer bytes.
    pub(crate) fn decode_words(self, bytes: &[u8], count: usize, list: &mut Vec<(u32, u64)>) -> Option<usize> {
        match self {
            BitKernel::Portable => words::decode(bytes, count, list, words::spread),
            BitKernel::Avx2 | BitKernel::Avx512 => x86_64::decode_words_bmi2(bytes, count, list),
        }
    }
}

/// See [`BitKernel::by_value`]; `equal` returns the mask of the bytes with a value.
#[inline(always)]
fn by_value(bytes: &[i8], equal: impl Fn(i8) -> u64, mut each: impl FnMut(i8, u64)) {
    let mut left = u64::MAX.checked_shr((WORD - bytes.len()) as u32).unwrap_or(0);
    while left != 0 {
        let value = bytes[left.trailing_zeros() as usize];
        let these = equal(value) & left;
        each(value, these);
        left &= !these;
    }
}

/// [`BitKernel::mark`] of 64 bytes at a time, for vector kernels. `blend` sets the bytes of a mask to a
/// value, and `store` writes as many as there is room for.
#[inline(always)]
fn mark_by_eights<V: Copy>(
    rows: &mut [i8],
    columns: usize,
    marks: &[(i8, &[u64])],
    zeros: V,
    blend: impl Fn(V, u64, i8) -> V,
    store: impl Fn(&mut [i8], V),
) {
    /// Words at a time: one cache line of each mark.
    const WORDS: usize = 8;
    let words = rows.len() / columns * columns.div_ceil(WORD);
    let mut bytes = rows.chunks_mut(columns).flat_map(|row| row.chunks_mut(WORD));
    for first in (0..words).step_by(WORDS) {
        let mut values = [zeros; WORDS];
        for &(value, mark) in marks {
            let mut some = [0; WORDS];
            let mark = &mark[first..];
            let mark = mark.first_chunk().unwrap_or_else(|| {
                some[..mark.len()].copy_from_slice(mark);
                &some
            });
            // Most words of high bounds are zeros.
            if mark.iter().fold(0, |any, word| any | word) == 0 {
                continue;
            }
            for (values, &mask) in values.iter_mut().zip(mark) {
                *values = blend(*values, mask, value);
            }
        }
        for (bytes, &values) in bytes.by_ref().take((words - first).min(WORDS)).zip(&values) {
            store(bytes, values);
        }
    }
}

/// [`BitKernel::pull`] of moves that map each column to itself.
fn pull_straight<R: RowBits>(left: &mut [u64], first: usize, child: &ChildWins<R>, shift: u32) -> u64 {
    let mut groups = 0;
    for (at, (left, quiet)) in left.iter_mut().zip(&child.quiet[first..]).enumerate() {
        let now = *left & (child.wins.bits(first + at, *left) | !quiet);
        groups |= u64::from(now != *left) << ((first + at) >> shift);
        *left = now;
    }
    groups
}

#[inline(always)]
fn pull_row<R: RowBits>(
    left: &mut [u64],
    first: usize,
    child: &ChildWins<R>,
    shift: u32,
    compress: impl Fn(u64, u64) -> u64,
) -> u64 {
    let mut groups = 0;
    let firsts = child.pull.first[first..].windows(2);
    for (at, ((left, quiet), firsts)) in left.iter_mut().zip(&child.quiet[first..]).zip(firsts).enumerate() {
        if *left == 0 {
            continue;
        }
        let mut won = 0;
        for piece in &child.pull.pieces[firsts[0] as usize..firsts[1] as usize] {
            won |= compress(child.wins.bits(piece.word as usize, piece.mask), piece.mask) << piece.shift;
        }
        let now = *left & (won | !quiet);
        groups |= u64::from(now != *left) << ((first + at) >> shift);
        *left = now;
    }
    groups
}

#[inline(always)]
fn push_row(
    lost: &[(u32, u64)],
    push: &Push,
    won: &mut WonRow,
    compress: impl Fn(u64, u64) -> u64,
    expand: impl Fn(u64, u64) -> u64,
) {
    for &(at, bits) in lost {
        let pieces = push.first[at as usize] as usize..push.first[at as usize + 1] as usize;
        for (&from, to) in push.from[pieces.clone()].iter().zip(&push.to[pieces]) {
            if bits & from != 0 {
                won.add(to.word, expand(compress(bits, from), to.mask));
            }
        }
    }
}

/// As [`push_row`]; `hits` returns the mask of the pieces, up to eight, that have one of the bits.
#[inline(always)]
fn push_row_by_eights(
    lost: &[(u32, u64)],
    push: &Push,
    won: &mut WonRow,
    hits: impl Fn(&[u64], u64) -> u8,
    compress: impl Fn(u64, u64) -> u64,
    expand: impl Fn(u64, u64) -> u64,
) {
    for &(at, bits) in lost {
        let pieces = push.first[at as usize] as usize..push.first[at as usize + 1] as usize;
        let (from, to) = (&push.from[pieces.clone()], &push.to[pieces]);
        // 64 pieces at a time: the end of one loop is mispredicted, not that of each eight.
        for (from, to) in from.chunks(64).zip(to.chunks(64)) {
            let mut all = 0;
            for (shift, from) in (0..).step_by(8).zip(from.chunks(8)) {
                all |= u64::from(hits(from, bits)) << shift;
            }
            while all != 0 {
                let piece = all.trailing_zeros() as usize;
                all &= all - 1;
                won.add(to[piece].word, expand(compress(bits, from[piece]), to[piece].mask));
            }
        }
    }
}

/// Gathers the bits of `word` selected by `mask` at the low end (PEXT).
fn compress(word: u64, mut mask: u64) -> u64 {
    let (mut result, mut to) = (0, 0);
    while mask != 0 {
        let from = mask.trailing_zeros();
        result |= (word >> from & 1) << to;
        to += 1;
        mask &= mask - 1;
    }
    result
}

/// Scatters the low bits of `word` to the positions selected by `mask` (PDEP).
fn expand(mut word: u64, mut mask: u64) -> u64 {
    let mut result = 0;
    while mask != 0 && word != 0 {
        let to = mask & mask.wrapping_neg();
        if word & 1 == 1 {
            result |= to;
        }
        word >>= 1;
        mask &= mask - 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tables;
    use crate::kernels::tables::PackedMove;
    use crate::layout::plane::{PlaneLayout, PlaneSlab, WORD};
    use game::{Index, Orientation, PositionSet, Rules};

    #[test]
    fn expanding_undoes_compressing() {
        let mut word = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..1000 {
            word = word.wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(17);
            let mask = word.rotate_left(31) & word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            assert_eq!(expand(compress(word, mask), mask), word & mask);
        }
        assert_eq!(compress(u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn bits_are_counted() {
        let words: Vec<u64> = (0..1000).map(noise).collect();
        let expected: usize = words.iter().map(|word| (0..64).filter(|bit| word >> bit & 1 == 1).count()).sum();
        assert!(BitKernel::available().all(|kernel| kernel.count(&words) == expected as u64));
    }

    /// All kernels on every row of small indices, on bits that no game has.
    #[test]
    fn kernels_agree() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
            let (index, tables) = (Index::new(9, set), Tables::new(Rules::AWARI, set, 9));
            let layout = PlaneLayout::new(&index, Orientation::MoverMajor);
            for (number, slab) in layout.slabs().iter().enumerate() {
                let rows: Vec<_> =
                    BitKernel::available().map(|kernel| slab_by(kernel, &tables, number, slab)).collect();
                assert!(rows.windows(2).all(|two| two[0] == two[1]), "slab {number}, {set}");
            }
        }
    }

    type Pulled = (Vec<u64>, Vec<u64>, Vec<Vec<(u32, u64)>>);

    fn noise(at: usize) -> u64 {
        (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32 % 64)
    }

    /// By row: the remaining words, the groups that changed, and the winning parents.
    fn slab_by(kernel: BitKernel, tables: &Tables, number: usize, slab: &PlaneSlab) -> Vec<Pulled> {
        let opponent = 9 - number as u32;
        let bits: Vec<u64> = (0..2000).map(|at| noise(at) | noise(at + 7)).collect();
        let moves = tables.rows(number as u32).iter().enumerate();
        let row = |(row, moves): (usize, &[PackedMove; game::HALF_PITS])| {
            let first = row % slab.row_words;
            let mut left: Vec<u64> = (first..slab.row_words).map(|at| noise(at + 13)).collect();
            let child = |to: &PackedMove| ChildWins {
                wins: &bits[to.rank() as usize % 97..],
                pull: tables.pull(opponent, to.crossing()),
                quiet: &tables.columns(opponent, to.class()).quiet,
            };
            let children = moves.iter().take_while(|&&to| to != PackedMove::NONE).map(child);
            let groups = children.map(|child| kernel.pull(&mut left, first, &child, slab.part_shift())).collect();
            let lost: Vec<_> = (first as u32..).zip(left.iter().copied()).collect();
            let pushes = tables.pushes(number as u32).iter().filter(|push| push.first.len() > slab.row_words);
            let won = pushes.map(|push| {
                let (mut row, mut won) = (WonRow::default(), Vec::new());
                row.resize(slab.rows.div_ceil(WORD));
                kernel.push(&lost, push, &mut row);
                row.take(&mut won);
                won
            });
            let won = won.collect();
            (left, groups, won)
        };
        moves.map(row).collect()
    }
}
