//! The sums of the network, with AVX2 where the processor has it.
//!
//! Both kernels compute the same integers.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;

use crate::board::PackedBoard;
use crate::evaluation::{DIRECT_STONE, EvaluationNetwork, ONE, ONE_BITS};
use crate::features::{FEATURES, columns};
use crate::table::STONE;

/// The largest value of a unit of the second layer: as many stones as the total of a board, of which each is 2^9.
pub(crate) const SECOND_MAX: i32 = ONE << 6;

impl EvaluationNetwork {
    /// Returns the estimate of a position, in units of 1/[`STONE`] stone.
    #[inline]
    pub(crate) fn estimate(&self, board: PackedBoard) -> i32 {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { avx2::estimate(self, board) };
        }
        let columns = columns(board);
        self.scaled(self.output(&columns), &columns)
    }

    /// Returns the output of the layers, without the direct part: 2^18 for a stone.
    pub(crate) fn output(&self, columns: &[u16; FEATURES]) -> i64 {
        let mut sums = self.first_bias.0;
        for &column in columns {
            let row = &self.rows[usize::from(column)].0;
            for (sum, weight) in sums.iter_mut().zip(row) {
                // Does not overflow: `ROW_MAX`.
                *sum = sum.wrapping_add(*weight);
            }
        }
        for sum in &mut sums {
            *sum = (*sum).clamp(0, ONE as i16);
        }
        let mut total = i64::from(self.last_bias);
        for ((row, bias), last) in self.second.iter().zip(&self.second_bias).zip(&self.last) {
            // At most 64 products of 2^9 and 2^15 and a bias of 2^28.
            let products = sums.iter().zip(&row.0).map(|(&sum, &weight)| i32::from(sum) * i32::from(weight));
            let second = (bias + products.sum::<i32>()) >> ONE_BITS;
            total += i64::from(second.clamp(0, SECOND_MAX) * i32::from(*last));
        }
        total
    }

    /// Adds the direct part to the output of the layers, in units of 1/[`STONE`] stone.
    #[inline]
    fn scaled(&self, output: i64, columns: &[u16; FEATURES]) -> i32 {
        let direct: i32 = columns.iter().map(|&column| i32::from(self.direct[usize::from(column)])).sum();
        let output = output.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        output / (ONE * ONE / STONE) + direct * STONE / DIRECT_STONE
    }
}
