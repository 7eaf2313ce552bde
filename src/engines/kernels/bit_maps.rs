//! Classes of moves compiled for bits.
//!
//! A class takes the columns of a row to columns of the child row by a monotone injection (see [`game::sow`]). On bits
//! that is a compression of words of the child row, concatenated ([`Pull`]). Backwards it is a compression of the words
//! where a position's columns were won or lost, expanded into words of the parents' rows ([`Push`]): fix the mover's
//! half of a position, then all its parents by moves of one class have the same opponent's half, and the mover's half
//! they had before sowing grows with the position's column, for each pit and number of stones sown.

use crate::layout::plane::WORD;
use game::sow::{self, SowClass, SowMap};
use game::{Halves, Index};
use std::ops::Range;

/// Where the columns of a row are found in a child row: for all classes that let as many stones cross.
pub(crate) struct Pull {
    /// By word of the row, its first piece; one entry more.
    pub(crate) first: Vec<u32>,
    pub(crate) pieces: Vec<PulledBits>,
    /// Every word is that of the child row: what a move does that stays in the mover's half, if all positions count.
    pub(crate) is_straight: bool,
    /// By share of the child row, the shares of the row that take bits from it.
    pub(crate) dependents: [u64; WORD],
}

/// Bits taken from a word of the child row.
#[derive(Clone, Copy)]
pub(crate) struct PulledBits {
    pub(crate) mask: u64,
    /// The word of the child row.
    pub(crate) word: u32,
    /// Their place in the word of the row.
    pub(crate) shift: u32,
}

/// Where the columns of a row have their parents by moves of one class.
///
/// In pieces: columns of a word whose parents are in one word of the parents' row.
#[derive(Default)]
pub(crate) struct Push {
    /// By word of the row, its first piece; one entry more.
    pub(crate) first: Vec<u32>,
    /// By piece, its columns; apart from the rest, since most pieces are only asked for these.
    pub(crate) from: Vec<u64>,
    pub(crate) to: Vec<PushedBits>,
}

/// Where a piece goes.
#[derive(Clone, Copy)]
pub(crate) struct PushedBits {
    pub(crate) mask: u64,
    /// The word of the parents' row.
    pub(crate) word: u32,
}

impl Pull {
    /// From the map of any class with as many crossing stones. Shares are of `1 << shift` words.
    pub(crate) fn new(map: &SowMap, shift: u32, child_shift: u32) -> Pull {
        let is_straight = map.targets.iter().enumerate().all(|(column, &target)| column == target as usize);
        let mut pull = Pull { first: vec![0], pieces: Vec::new(), is_straight, dependents: [0; WORD] };
        for (word, targets) in map.targets.chunks(WORD).enumerate() {
            let own = pull.pieces.len();
            for (place, &target) in (0..).zip(targets) {
                let (child_word, bit) = (target / WORD as u32, 1 << (target % WORD as u32));
                match pull.pieces[own..].last_mut() {
                    Some(last) if last.word == child_word => last.mask |= bit,
                    _ => pull.pieces.push(PulledBits { mask: bit, word: child_word, shift: place }),
                }
                pull.dependents[child_word as usize >> child_shift] |= 1 << (word >> shift);
            }
            pull.first.push(pull.pieces.len() as u32);
        }
        pull
    }

    /// The shares of the row that take bits from some shares of the child row.
    pub(crate) fn dependents_of(&self, mut shares: u64) -> u64 {
        let mut dependents = 0;
        while shares != 0 {
            dependents |= self.dependents[shares.trailing_zeros() as usize];
            shares &= shares - 1;
        }
        dependents
    }

    /// The words of the child row from which some words of the row take bits.
    pub(crate) fn child_words(&self, words: &Range<usize>) -> Range<usize> {
        if self.is_straight {
            return words.clone();
        }
        let pieces = &self.pieces[self.first[words.start] as usize..self.first[words.end] as usize];
        let word = |piece: Option<&PulledBits>| piece.map_or(0, |piece| piece.word as usize);
        word(pieces.first())..word(pieces.last()) + 1
    }
}

impl Push {
    /// By class number, for the parents' rows whose mover has `mover` stones.
    pub(crate) fn all(index: &Index, mover: u32) -> Vec<Push> {
        // Word of columns, pit and stones sown (each is monotone), rank of the parent, column in its word.
        let mut by_class: Vec<Vec<(u32, u16, u32, u8)>> = vec![Vec::new(); SowClass::COUNT];
        for rank in 0..Halves::count(mover) {
            let half = index.halves().unrank(mover, rank);
            for from in sow::row_moves(&half) {
                let column = index.opponent_rank(&from.half).expect("a half with an empty pit has a rank");
                let sown = u16::from(from.pit) << 8 | u16::from(half[usize::from(from.pit)]);
                let (word, bit) = (column / WORD as u32, (column % WORD as u32) as u8);
                by_class[from.class.number()].push((word, sown, rank, bit));
            }
        }
        let push = |(number, mut moves): (usize, Vec<_>)| {
            let crossing = u32::from(SowClass::from_number(number).crossing);
            let columns = mover.checked_sub(crossing).map_or(0, |stones| index.set().opponent_halves(stones));
            moves.sort_unstable();
            Push::new(columns as usize, &moves)
        };
        by_class.into_iter().enumerate().map(push).collect()
    }

    fn new(columns: usize, moves: &[(u32, u16, u32, u8)]) -> Push {
        let mut push = Push { first: vec![0; columns.div_ceil(WORD) + 1], from: Vec::new(), to: Vec::new() };
        let mut last = None;
        for &(word, sown, rank, bit) in moves {
            let (from, to_word, to) = (1 << bit, rank / WORD as u32, 1 << (rank % WORD as u32));
            let this = Some((word, sown, to_word));
            match (push.from.last_mut(), push.to.last_mut()) {
                (Some(columns), Some(given)) if last == this => {
                    *columns |= from;
                    given.mask |= to;
                }
                _ => {
                    push.from.push(from);
                    push.to.push(PushedBits { mask: to, word: to_word });
                    push.first[word as usize + 1] += 1;
                }
            }
            last = this;
        }
        for word in 1..push.first.len() {
            push.first[word] += push.first[word - 1];
        }
        push.from.shrink_to_fit();
        push.to.shrink_to_fit();
        push
    }
}
