//! The row kernels on bits: what of a row is lost now, and whom that makes win.

use super::homes::RowBits;
use super::plane::WORD;
use super::routes::{Pull, Push};
use crate::simd;

/// A move of a row: where its children's wins are.
#[derive(Clone, Copy)]
pub(crate) struct Child<'a, R> {
    pub(crate) wins: R,
    pub(crate) pull: &'a Pull,
    /// By word, the columns on which the move captures nothing and starves nobody.
    pub(crate) quiet: &'a [u64],
}

/// Whether the processor compresses and expands bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitKernel {
    /// Plain Rust, on any processor.
    Portable,
    /// With the instructions of BMI2.
    Bmi2,
}

impl BitKernel {
    /// The faster kernel that this processor has.
    pub fn detect() -> BitKernel {
        if simd::has_bmi2() { BitKernel::Bmi2 } else { BitKernel::Portable }
    }

    /// Keeps of some columns of a row, listed by word, those whose move leads to a win, or is none of the quiet ones.
    /// Tells in which groups of words some went, a bit for each `1 << shift` words.
    pub(crate) fn pull<R: RowBits>(self, left: &mut Vec<(u32, u64)>, child: &Child<R>, shift: u32) -> u64 {
        match self {
            BitKernel::Portable => pull_row(left, child, shift, compress),
            BitKernel::Bmi2 => simd::pull_row_bmi2(left, child, shift),
        }
    }

    /// Lists, by word of the parents' row, who wins by a move of the class to one of the lost.
    pub(crate) fn push(self, lost: &[(u32, u64)], push: &Push, won: &mut Vec<(u32, u64)>) {
        match self {
            BitKernel::Portable => push_row(lost, push, won, compress, expand),
            BitKernel::Bmi2 => simd::push_row_bmi2(lost, push, won),
        }
    }
}

#[inline(always)]
pub(crate) fn pull_row<R: RowBits>(
    left: &mut Vec<(u32, u64)>,
    child: &Child<R>,
    shift: u32,
    compress: impl Fn(u64, u64) -> u64,
) -> u64 {
    let (mut kept, mut groups) = (0, 0);
    for at in 0..left.len() {
        let (word, bits) = left[at];
        let (first, end) = (child.pull.first[word as usize] as usize, child.pull.first[word as usize + 1] as usize);
        let (mut won, mut filled) = (0, 0);
        for &(word, mask) in &child.pull.pieces[first..end] {
            won |= compress(child.wins.bits(word as usize, mask), mask) << filled;
            // A piece that fills the word is the last.
            filled = (filled + mask.count_ones()) % WORD as u32;
        }
        let now = bits & (won | !child.quiet[word as usize]);
        groups |= u64::from(now != bits) << (word >> shift);
        left[kept] = (word, now);
        kept += usize::from(now != 0);
    }
    left.truncate(kept);
    groups
}

#[inline(always)]
pub(crate) fn push_row(
    lost: &[(u32, u64)],
    push: &Push,
    won: &mut Vec<(u32, u64)>,
    compress: impl Fn(u64, u64) -> u64,
    expand: impl Fn(u64, u64) -> u64,
) {
    for &(at, bits) in lost {
        let (first, end) = (push.first[at as usize] as usize, push.first[at as usize + 1] as usize);
        for piece in &push.pieces[first..end] {
            if bits & piece.from != 0 {
                won.push((piece.to_word, expand(compress(bits, piece.from), piece.to)));
            }
        }
    }
}

/// The bits of `word` that `mask` has, moved together at the low end.
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

/// The low bits of `word`, moved to the places that `mask` has.
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
    use crate::bound::plane::PlaneLayout;
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

    /// Both kernels on every row of a small index, on bits that no game has.
    #[test]
    fn kernels_agree() {
        if BitKernel::detect() == BitKernel::Portable {
            return; // Then there is one kernel.
        }
        let index = Index::new(9, PositionSet::Reachable);
        let tables = Tables::new(Rules::AWARI, PositionSet::Reachable, 9);
        let layout = PlaneLayout::new(&index, Orientation::MoverMajor);
        let noise = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32 % 64);
        for (number, slab) in layout.slabs().iter().enumerate() {
            let opponent = 9 - number as u32;
            for moves in tables.rows(number as u32) {
                let bits: Vec<u64> = (0..2000).map(|at| noise(at) | noise(at + 7)).collect();
                let children: Vec<_> = moves
                    .iter()
                    .take_while(|&&to| to != crate::tables::RowMove::NONE)
                    .map(|to| Child {
                        wins: &bits[to.rank() as usize % 97..],
                        pull: tables.pull(opponent, to.crossing()),
                        quiet: &tables.columns(opponent, to.class()).quiet,
                    })
                    .collect();
                let run = |kernel: BitKernel| {
                    let row: Vec<u64> = (0..slab.row_words).map(|at| noise(at + 13)).collect();
                    let mut won = Vec::new();
                    let mut left: Vec<_> = row.iter().enumerate().map(|(at, &word)| (at as u32, word)).collect();
                    let mut parts = Vec::new();
                    for child in &children {
                        parts.push(kernel.pull(&mut left, child, slab.part_shift()));
                    }
                    for push in tables.pushes(number as u32).iter().filter(|push| push.first.len() > slab.row_words) {
                        kernel.push(&left, push, &mut won);
                    }
                    (left, parts, won)
                };
                assert!(run(BitKernel::Portable) == run(BitKernel::Bmi2));
            }
        }
    }
}
