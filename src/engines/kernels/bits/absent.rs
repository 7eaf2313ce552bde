//! Vector kernels of bits for processors other than x86-64: none, and none is chosen there.

use super::{ChildWins, RowBits, WonRow};
use crate::kernels::bit_maps::Push;
use crate::kernels::tables::CHUNK;

pub(crate) fn pull_row_bmi2<R: RowBits>(_: &mut [u64], _: usize, _: &ChildWins<R>, _: u32) -> u64 {
    unreachable!("this kernel is only chosen where it is available")
}

pub(crate) fn push_row_bmi2(_: &[(u32, u64)], _: &Push, _: &mut WonRow) {
    unreachable!("this kernel is only chosen where it is available")
}

pub(crate) use push_row_bmi2 as push_row_avx512;

pub(crate) fn count_bmi2(_: &[u64]) -> u64 {
    unreachable!("there is no such kernel here")
}

pub(crate) fn transpose_gfni(_: &mut [u64; CHUNK]) {
    unreachable!("there is no such kernel here")
}

pub(crate) fn by_value_avx512(_: &[i8], _: impl FnMut(i8, u64)) {
    unreachable!("this kernel is only chosen where it is available")
}

pub(crate) fn mark_avx512(_: &mut [i8], _: usize, _: &[(i8, &[u64])]) {
    unreachable!("this kernel is only chosen where it is available")
}
