//! The features of a position by vectors of bytes.

use super::{Captures, FEATURES, PIT_COLUMNS, add_captures};
use crate::board::PackedBoard;
use crate::board::avx2::{VECTOR_BYTES, may_capture, pits};
use game::HALF_PITS;
use std::arch::x86_64::*;

/// The first column of each pit.
const FIRST_COLUMNS: [u16; VECTOR_BYTES] = {
    let mut columns = [0; VECTOR_BYTES];
    let mut pit = 0;
    while pit < 2 * HALF_PITS {
        columns[pit] = (pit * PIT_COLUMNS) as u16;
        pit += 1;
    }
    columns
};

/// See [`columns`](super::columns).
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn columns(board: PackedBoard) -> [u16; FEATURES] {
    let mut found = [0; FEATURES];
    let pits = pits(board);
    let stones = _mm_min_epu8(pits, _mm_set1_epi8(PIT_COLUMNS as i8 - 1));
    // SAFETY: the array has as many bytes as the vector, which needs no alignment.
    let first = unsafe { _mm256_loadu_si256(FIRST_COLUMNS.as_ptr().cast()) };
    let columns = _mm256_add_epi16(_mm256_cvtepu8_epi16(stones), first);
    // SAFETY: a vector holds 16 columns, and there are more. Those beyond the twelve of the pits are written again.
    unsafe { _mm256_storeu_si256(found.as_mut_ptr().cast(), columns) };
    let capturing = may_capture(pits);
    let turned = PackedBoard { mover: board.opponent, opponent: board.mover };
    add_captures(&mut found, [Captures::of(board, capturing), Captures::of(turned, capturing >> HALF_PITS)]);
    found
}
