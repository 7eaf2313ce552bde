//! Pits that may capture, by vectors of bytes.

use super::PackedBoard;
use game::HALF_PITS;
use std::arch::x86_64::*;

/// The number of bytes of a vector.
pub(crate) const VECTOR_BYTES: usize = size_of::<__m128i>();

/// Each pit by its place in a vector.
const PITS: [u8; VECTOR_BYTES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The distance from a pit to that of its last stone, by its stones. Sowing skips the pit itself; whole laps
/// are left out.
const DISTANCES: [u8; VECTOR_BYTES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2, 3, 4];

/// The number of stones that fall into the pit of the last stone, by the stones of the first pit.
const FALLEN: [u8; VECTOR_BYTES] = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2];

/// Returns the stones of the twelve pits, the mover's first, and four zeros.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn pits(board: PackedBoard) -> __m128i {
    let low = board.mover | board.opponent << (8 * HALF_PITS);
    _mm_set_epi64x((board.opponent >> 16) as i64, low as i64)
}

/// See [`PackedBoard::may_capture`].
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn may_capture(pits: __m128i) -> u32 {
    // SAFETY: the arrays have as many bytes as a vector, which needs no alignment.
    let vector = |bytes: &[u8; VECTOR_BYTES]| unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    // The tables end here.
    let is_large = _mm_cmpgt_epi8(pits, _mm_set1_epi8(VECTOR_BYTES as i8 - 1));
    let last = _mm_add_epi8(vector(&PITS), _mm_shuffle_epi8(vector(&DISTANCES), pits));
    // Below 12 the difference wraps around to a large number.
    let last = _mm_min_epu8(last, _mm_sub_epi8(last, _mm_set1_epi8(12)));
    let stones = _mm_add_epi8(_mm_shuffle_epi8(pits, last), _mm_shuffle_epi8(vector(&FALLEN), pits));
    let is_two_or_three = _mm_cmpeq_epi8(_mm_and_si128(stones, _mm_set1_epi8(!1)), _mm_set1_epi8(2));
    let is_opponents = |pits: __m128i| _mm_cmpgt_epi8(pits, _mm_set1_epi8(HALF_PITS as i8 - 1));
    let crosses = _mm_xor_si128(is_opponents(last), is_opponents(vector(&PITS)));
    let may_capture = _mm_or_si128(is_large, _mm_and_si128(is_two_or_three, crosses));
    _mm_movemask_epi8(may_capture) as u32 & ((1 << (2 * HALF_PITS)) - 1)
}
