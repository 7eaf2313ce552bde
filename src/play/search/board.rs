//! Boards as two words, with one byte for each pit.
//!
//! Sowing is one addition to each word, from a table by pit and stones; a capture is a mask.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;

use game::{Board, HALF_PITS, Played, RestOwner, Rules, STONES_MAX, Slam, binomial};

/// The low bit of each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The high bit of each byte.
const HIGHS: u64 = 0x8080_8080_8080_8080;

// `PackedBoard::play` compares pits with these numbers.
const _: () = assert!(Rules::AWARI.capture_low == 2 && Rules::AWARI.capture_high == 3);

/// A position, seen from the player to move. The first pit is the low byte of its half; the two high bytes are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedBoard {
    pub(crate) mover: u64,
    pub(crate) opponent: u64,
}

/// The number of bits of a [`PackedBoard::number`].
pub(crate) const NUMBER_BITS: u32 = 41;

const _: () = assert!(binomial(STONES_MAX + 12, 12) < 1 << NUMBER_BITS);

/// The length of tables by the stones of a pit or of several: 6 bits, so that no index has to be compared with it.
const STONES_LEN: usize = 64;

const _: () = assert!((STONES_MAX as usize) < STONES_LEN);

/// The effect of sowing the stones of a pit.
#[derive(Clone, Copy)]
struct Sowing {
    /// Stones added to each of the mover's pits.
    mover: u64,
    /// Stones added to each of the opponent's pits.
    opponent: u64,
    /// If the last stone falls into a pit of the opponent: a high bit below that of the opponent's first pit,
    /// after the shift.
    end: u64,
    /// The left shift that moves the pit of the last stone to the highest byte; 0 if it is a pit of the mover.
    shift: u32,
}

/// The effects by pit and stones.
static SOWING: [[Sowing; STONES_LEN]; HALF_PITS] = sowing();

const fn sowing() -> [[Sowing; STONES_LEN]; HALF_PITS] {
    let mut table = [[Sowing { mover: 0, opponent: 0, end: 0, shift: 0 }; STONES_LEN]; HALF_PITS];
    let mut pit = 0;
    while pit < HALF_PITS {
        let mut stones = 1;
        let (mut mover, mut opponent, mut last) = (0, 0, pit);
        while stones < STONES_LEN {
            last = (last + 1) % 12;
            if last == pit {
                last = (last + 1) % 12;
            }
            if last < HALF_PITS {
                mover += 1 << (8 * last)
            } else {
                opponent += 1 << (8 * (last - HALF_PITS))
            }
            let shift = if last < HALF_PITS { 0 } else { 8 * (7 - (last - HALF_PITS)) as u32 };
            let end = if last < HALF_PITS { 0 } else { 0x80 << (shift - 8) };
            table[pit][stones] = Sowing { mover, opponent, end, shift };
            stones += 1;
        }
        pit += 1;
    }
    table
}

/// `TERMS[j - 1][sum]` is the j-th term of a board's number: C(sum + j - 1, j).
static TERMS: [[u64; STONES_LEN]; 12] = terms();

const fn terms() -> [[u64; STONES_LEN]; 12] {
    let mut table = [[0; STONES_LEN]; 12];
    let mut j = 1;
    while j <= 12 {
        let mut sum = 0;
        while sum <= STONES_MAX {
            table[j as usize - 1][sum as usize] = binomial(sum + j - 1, j);
            sum += 1;
        }
        j += 1;
    }
    table
}

/// Legal moves with the positions after them.
pub(crate) struct SearchMoves {
    moves: [SearchMove; HALF_PITS],
    len: usize,
}

/// A legal move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchMove {
    /// The position after it, seen from the opponent.
    pub(crate) child: PackedBoard,
    pub(crate) pit: u8,
    pub(crate) captured: u8,
    /// Used for the order of the search.
    pub(crate) priority: i32,
}

impl SearchMoves {
    /// No moves of a position.
    #[inline]
    fn none(board: PackedBoard) -> SearchMoves {
        SearchMoves { moves: [SearchMove { child: board, pit: 0, captured: 0, priority: 0 }; HALF_PITS], len: 0 }
    }

    #[inline]
    fn push(&mut self, candidate: SearchMove) {
        self.moves[self.len] = candidate;
        self.len += 1;
    }

    /// Returns the moves for which `keeps` holds, in their order.
    #[inline]
    fn filtered(mut self, keeps: impl Fn(&SearchMove) -> bool) -> SearchMoves {
        let mut len = 0;
        for at in 0..self.len {
            if keeps(&self.moves[at]) {
                self.moves[len] = self.moves[at];
                len += 1;
            }
        }
        self.len = len;
        self
    }
}

impl std::ops::Deref for SearchMoves {
    type Target = [SearchMove];

    #[inline]
    fn deref(&self) -> &[SearchMove] {
        &self.moves[..self.len]
    }
}

impl std::ops::DerefMut for SearchMoves {
    #[inline]
    fn deref_mut(&mut self) -> &mut [SearchMove] {
        &mut self.moves[..self.len]
    }
}

impl PackedBoard {
    /// Packs a board.
    ///
    /// # Panics
    /// If it has more than [`STONES_MAX`] stones.
    pub(crate) fn new(board: &Board) -> PackedBoard {
        assert!(board.stones() <= STONES_MAX, "a board holds at most {STONES_MAX} stones");
        let packed = |half: [u8; 6]| u64::from_le_bytes([half[0], half[1], half[2], half[3], half[4], half[5], 0, 0]);
        PackedBoard { mover: packed(board.mover()), opponent: packed(board.opponent()) }
    }

    /// Unpacks the board.
    pub(crate) fn board(self) -> Board {
        let (mover, opponent) = (self.mover.to_le_bytes(), self.opponent.to_le_bytes());
        Board(std::array::from_fn(|pit| if pit < 6 { mover[pit] } else { opponent[pit - 6] }))
    }

    /// Returns the number of stones.
    #[inline]
    pub(crate) fn stones(self) -> u32 {
        // No byte overflows: a board has at most 48 stones.
        ((self.mover + self.opponent).wrapping_mul(ONES) >> 56) as u32
    }

    /// Returns a number below 2^41 that no other board has, with as many stones or not.
    ///
    /// It is the colexicographic number of the partial sums, as in [`game::Halves`].
    #[inline]
    pub(crate) fn number(self) -> u64 {
        let mover = self.mover.wrapping_mul(ONES);
        let opponent = self.opponent.wrapping_mul(ONES).wrapping_add((mover >> 56).wrapping_mul(ONES));
        let mut number = 0;
        for pit in 0..HALF_PITS {
            number += TERMS[pit][((mover >> (8 * pit)) & 63) as usize];
            number += TERMS[pit + HALF_PITS][((opponent >> (8 * pit)) & 63) as usize];
        }
        number
    }

    /// Plays a move from a pit, legal or not. Returns the position seen from the opponent, and the number of
    /// captured stones.
    ///
    /// It has no branches: whether a move captures can hardly be predicted.
    #[inline]
    pub(crate) fn play(self, pit: usize) -> (PackedBoard, u8) {
        let stones = (self.mover >> (8 * pit)) & 63;
        let sowing = &SOWING[pit][stones as usize];
        let mover = (self.mover & !(0xff << (8 * pit))) + sowing.mover;
        let opponent = self.opponent + sowing.opponent;
        // A high bit for each byte that is neither 2 nor 3; bytes are below 128. The highest byte of a half
        // is 0, so that nothing is captured without a shift.
        let kept = (((opponent ^ (2 * ONES)) & (0xfe * ONES)) + (0x7f * ONES)) & HIGHS;
        let run = ((kept << sowing.shift) | sowing.end).leading_zeros() & !7;
        let captured = (opponent << sowing.shift) & !(u64::MAX >> run);
        let child = PackedBoard { mover: opponent - (captured >> sowing.shift), opponent: mover };
        (child, (captured.wrapping_mul(ONES) >> 56) as u8)
    }

    /// Returns the legal moves: none if the mover has no stones, or by some rules if no move leaves the opponent any.
    #[inline]
    pub(crate) fn moves(self, rules: &Rules) -> SearchMoves {
        if !captures_like_awari(rules) {
            return self.moves_by(rules);
        }
        let mut moves = SearchMoves::none(self);
        let mut starving = 0;
        for pit in 0..HALF_PITS {
            let has_stones = usize::from((self.mover >> (8 * pit)) & 63 != 0);
            let (child, captured) = self.play(pit);
            starving += has_stones & usize::from(child.mover == 0);
            moves.moves[moves.len] = SearchMove { child, pit: pit as u8, captured, priority: 0 };
            moves.len += has_stones;
        }
        // Rules differ in moves that leave the opponent no stones, and in nothing else.
        if starving == 0 {
            moves
        } else if starves_like_awari(rules) {
            let is_only_choice = starving == moves.len;
            moves.filtered(|candidate| is_only_choice || candidate.child.mover != 0)
        } else {
            self.moves_by(rules)
        }
    }

    /// Returns a bit for each pit from which its owner may capture, the mover's first, as if it were their turn.
    ///
    /// Those that capture always have a bit. Of those that do not, few have one where the processor has AVX2,
    /// and else all.
    #[inline]
    pub(crate) fn may_capture(self) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { avx2::may_capture(avx2::pits(self)) };
        }
        (1 << (2 * HALF_PITS)) - 1
    }

    /// Returns the legal moves that capture.
    #[inline]
    pub(crate) fn captures(self, rules: &Rules) -> SearchMoves {
        let is_capture = |candidate: &SearchMove| candidate.captured > 0;
        if !captures_like_awari(rules) {
            return self.moves_by(rules).filtered(is_capture);
        }
        let mut captures = SearchMoves::none(self);
        let mut pits = self.may_capture() & ((1 << HALF_PITS) - 1);
        while pits != 0 {
            let pit = pits.trailing_zeros();
            pits &= pits - 1;
            let (child, captured) = self.play(pit as usize);
            if captured > 0 {
                captures.push(SearchMove { child, pit: pit as u8, captured, priority: 0 });
                // Whether a slam is legal, and what it captures, depends on the rules and on the other moves.
                if child.mover == 0 {
                    return self.moves(rules).filtered(is_capture);
                }
            }
        }
        captures
    }

    /// Returns the legal moves by any rules, slowly.
    #[cold]
    fn moves_by(self, rules: &Rules) -> SearchMoves {
        let mut moves = SearchMoves::none(self);
        for (pit, Played { child, captured }) in self.board().moves(rules) {
            let child = PackedBoard::new(&child);
            moves.push(SearchMove { child, pit: pit.number() as u8, captured, priority: 0 });
        }
        moves
    }
}

/// Whether [`PackedBoard::play`] captures as the rules say, unless it leaves the opponent no stones.
#[inline]
fn captures_like_awari(rules: &Rules) -> bool {
    (rules.capture_low, rules.capture_high) == (Rules::AWARI.capture_low, Rules::AWARI.capture_high)
}

/// Whether moves that leave the opponent no stones are legal where there are no others, and capture what they take.
#[inline]
fn starves_like_awari(rules: &Rules) -> bool {
    (rules.slam, rules.rest) == (Slam::IllegalUnlessAll, RestOwner::Opponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::reference::{self, ReferenceMove};

    /// All small boards, and some with a pit from which a move laps.
    fn boards() -> impl Iterator<Item = [u8; 12]> {
        let with_heap = |mut pits: [u8; 12], pit: usize, more: u8| {
            pits[pit] += more;
            pits
        };
        let laps = (0..=3).flat_map(reference::boards).flat_map(move |pits| {
            (0..12).flat_map(move |pit| [10, 11, 12, 22, 30, 45].map(|more| with_heap(pits, pit, more)))
        });
        (0..=6).flat_map(reference::boards).chain(laps).chain([[4; 12], [0, 0, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0]])
    }

    #[test]
    fn moves_are_those_of_the_slow_twin() {
        // Awari, but for one parameter.
        let others = [
            Rules { capture_low: 1, ..Rules::AWARI },
            Rules { capture_high: 4, ..Rules::AWARI },
            Rules { rest: RestOwner::OwnSide, ..Rules::AWARI },
        ];
        for pits in boards() {
            let packed = PackedBoard::new(&Board(pits));
            assert_eq!(packed.board(), Board(pits));
            assert_eq!(packed.stones(), Board(pits).stones());
            for rules in Rules::KNOWN.iter().chain(&others) {
                let expected: Vec<_> = (0u8..)
                    .zip(reference::moves_by(rules, pits))
                    .filter_map(|(pit, played)| match played {
                        ReferenceMove::Legal { captured, child } => Some((pit, captured, Board(child))),
                        _ => None,
                    })
                    .collect();
                let found: Vec<_> = packed
                    .moves(rules)
                    .iter()
                    .map(|candidate| (candidate.pit, candidate.captured, candidate.child.board()))
                    .collect();
                assert_eq!(found, expected, "{pits:?} {}", rules.name);
                let captures: Vec<_> =
                    packed.captures(rules).iter().map(|candidate| (candidate.pit, candidate.captured)).collect();
                let expected = expected.iter().map(|&(pit, captured, _)| (pit, captured));
                let expected = expected.filter(|&(_, captured)| captured > 0);
                assert_eq!(captures, expected.collect::<Vec<_>>(), "{pits:?} {}", rules.name);
            }
        }
    }

    /// Numbers of boards with up to 6 stones are the first numbers, each once.
    #[test]
    fn numbers_are_dense() {
        let mut numbers: Vec<u64> =
            (0..=6).flat_map(reference::boards).map(|pits| PackedBoard::new(&Board(pits)).number()).collect();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
        let last = PackedBoard::new(&Board([48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])).number();
        assert_eq!(last, binomial(60, 12) - 1);
    }
}
