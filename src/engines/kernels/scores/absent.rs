//! Vector kernels of scores for processors other than x86-64: none, and none is chosen there.

use super::{Destination, Floor, Moves, RowChunk, RowUnit, SlabWork};
use crate::kernels::tables::{CHUNK, Gather, PackedMove};
use game::HALF_PITS;

pub(crate) fn recompute_avx2(_: &SlabWork, _: &RowUnit, _: &[i8], _: &Moves, _: Floor, _: &mut [i8]) {
    unreachable!("this kernel is only chosen where it is available")
}

pub(crate) use recompute_avx2 as recompute_avx512;

pub(crate) fn recompute_row_chunk_avx512(
    _: &SlabWork,
    _: &[PackedMove; HALF_PITS],
    _: usize,
    _: &[i8],
    _: &[i8; CHUNK],
) -> [i8; CHUNK] {
    unreachable!("this kernel is only chosen where it is available")
}

pub(crate) fn prefetch_avx512(_: &SlabWork, _: RowChunk, _: &[i8]) {
    unreachable!("this kernel is only chosen where it is available")
}

pub(crate) fn reached_avx512(_: &Gather, _: usize, _: usize, _: u64) -> u64 {
    unreachable!("this kernel is only chosen where it is available")
}

pub(crate) fn pick_avx512(_: &[i8; CHUNK], _: u64) -> [u8; CHUNK] {
    unreachable!("this kernel is only chosen where it is available")
}

pub(crate) fn merge_avx512(_: &mut [i8], _: u64, _: &[u8]) -> u64 {
    unreachable!("this kernel is only chosen where it is available")
}

pub(crate) unsafe fn apply_avx2(_: &[i8], _: usize, _: u64, _: *mut i8, _: Destination, _: &mut [u64; 64]) -> u64 {
    unreachable!("this kernel is only chosen where it is available")
}

pub(crate) use apply_avx2 as apply_avx512;
