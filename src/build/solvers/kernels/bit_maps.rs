//! Classes of moves compiled for bits.
//!
//! A class maps the columns of a row to columns of the child row by a monotone injection (see [`game::sow`]). Forwards
//! ([`Pull`]), a word of the row is a concatenation of compressed words of the child row. Backwards ([`Push`]), words
//! of a position's row are compressed and expanded into words of the parents' rows: for a fixed half of the mover, all
//! parents by moves of one class have the same opponent's half, and for each pit and number of stones sown the mover's
//! half before sowing grows with the position's column.

use crate::layout::plane::WORD;
use game::sow::{self, SowClass, SowMap};
use game::{Halves, Index};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// Map from the columns of a row to those of a child row, for all classes with the same number of crossing stones.
pub(crate) struct Pull {
    /// By word of the row, its first piece; plus the end.
    pub(crate) first: Vec<u32>,
    pub(crate) pieces: Vec<PulledBits>,
    /// Whether the map is the identity: moves that stay in the mover's half, with the position set `all`.
    pub(crate) is_straight: bool,
    /// By group of words of the child row, the groups of the row that take bits from it.
    pub(crate) dependents: [u64; WORD],
}

/// Bits taken from a word of the child row.
#[derive(Clone, Copy)]
pub(crate) struct PulledBits {
    pub(crate) mask: u64,
    /// The word of the child row.
    pub(crate) word: u32,
    /// Their position in the word of the row.
    pub(crate) shift: u32,
}

/// Map from the columns of a row to their parents by moves of one class.
///
/// A piece is a set of columns of one word with parents in one word of the parents' row.
#[derive(Default)]
pub(crate) struct Push {
    /// By word of the row, its first piece; plus the end.
    pub(crate) first: Vec<u32>,
    /// By piece, its columns. In an array of their own, since most pieces are skipped by them.
    pub(crate) from: Vec<u64>,
    pub(crate) to: Vec<PushedBits>,
}

/// Target of a piece: twelve bytes, of which tables have millions.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(crate) struct PushedBits {
    pub(crate) mask: u64,
    /// The word of the parents' row.
    pub(crate) word: u32,
}

impl Pull {
    /// Compiles the map of any class with this number of crossing stones. Groups have `1 << shift` words.
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

    /// Returns the groups of the row that take bits from any of the given groups of the child row.
    #[inline]
    pub(crate) fn dependents_of(&self, mut shares: u64) -> u64 {
        let mut dependents = 0;
        while shares != 0 {
            dependents |= self.dependents[shares.trailing_zeros() as usize];
            shares &= shares - 1;
        }
        dependents
    }

    /// Returns the range of words of the child row from which the given words of the row take bits.
    pub(crate) fn child_words(&self, words: &Range<usize>) -> Range<usize> {
        if self.is_straight {
            return words.clone();
        }
        let pieces = &self.pieces[self.first[words.start] as usize..self.first[words.end] as usize];
        let word = |piece: Option<&PulledBits>| piece.map_or(0, |piece| piece.word as usize);
        word(pieces.first())..word(pieces.last()) + 1
    }
}

/// Moves of one class, not yet compiled.
pub(crate) struct PushClass {
    columns: usize,
    moves: MovesByPit,
}

/// By pit and stones sown, the columns and the ranks of the parents: both ascend.
type MovesByPit = BTreeMap<(u8, u8), Vec<(u32, u32)>>;

/// Halves whose moves a thread finds at a time.
const RANKS_AT_ONCE: usize = 4 << 10;

impl PushClass {
    /// Finds the moves of all classes, by number, for parents whose mover has `mover` stones.
    pub(crate) fn all(index: &Index, mover: u32) -> Vec<PushClass> {
        let columns = |number| {
            let crossing = u32::from(SowClass::from_number(number).crossing);
            mover.checked_sub(crossing).map_or(0, |stones| index.set().opponent_halves(stones)) as usize
        };
        let classes = || vec![MovesByPit::new(); SowClass::COUNT];
        let find = |mut classes: Vec<MovesByPit>, rank| {
            let half = index.halves().unrank(mover, rank);
            for from in sow::row_moves(&half) {
                let column = index.rank_opponent(&from.half).expect("a half with an empty pit has a rank");
                let sown = half[usize::from(from.pit)];
                classes[from.class.number()].entry((from.pit, sown)).or_default().push((column, rank));
            }
            classes
        };
        let join = |mut all: Vec<MovesByPit>, more: Vec<MovesByPit>| {
            for (all, more) in all.iter_mut().zip(more) {
                more.into_iter().for_each(|(pit, moves)| all.entry(pit).or_default().extend(moves));
            }
            all
        };
        let ranks = (0..Halves::count(mover)).into_par_iter().with_min_len(RANKS_AT_ONCE);
        let found = ranks.fold(classes, find).reduce(classes, join);
        (0..).zip(found).map(|(number, moves)| PushClass { columns: columns(number), moves }).collect()
    }
}

impl Push {
    /// Compiles a class.
    pub(crate) fn new(class: PushClass) -> Push {
        let words = class.columns.div_ceil(WORD);
        let mut push = Push { first: vec![0; words + 1], from: Vec::new(), to: Vec::new() };
        let mut left: Vec<&[(u32, u32)]> = class.moves.values().map(Vec::as_slice).collect();
        for word in 0..words {
            for left in &mut left {
                let inside = left.iter().take_while(|(column, _)| *column as usize / WORD == word).count();
                let (moves, rest) = left.split_at(inside);
                *left = rest;
                for moves in moves.chunk_by(|(_, rank), (_, next)| rank / WORD as u32 == next / WORD as u32) {
                    let bits = |bits: u64, number: u32| bits | 1 << (number % WORD as u32);
                    push.from.push(moves.iter().fold(0, |from, &(column, _)| bits(from, column)));
                    let mask = moves.iter().fold(0, |to, &(_, rank)| bits(to, rank));
                    push.to.push(PushedBits { mask, word: moves[0].1 / WORD as u32 });
                }
            }
            push.first[word + 1] = push.from.len() as u32;
        }
        debug_assert!(left.iter().all(|left| left.is_empty()), "columns ascend");
        push.from.shrink_to_fit();
        push.to.shrink_to_fit();
        push
    }
}
