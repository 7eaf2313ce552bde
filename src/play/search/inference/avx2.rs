//! The sums of the network by vectors of 32 bytes.

use super::SECOND_MAX;
use crate::board::PackedBoard;
use crate::evaluation::{EvaluationNetwork, NARROW, ONE, ONE_BITS, Row, WIDE};
use crate::features::{self, FEATURES};
use std::arch::x86_64::*;

/// The vectors of a row.
const VECTORS: usize = WIDE * size_of::<i16>() / size_of::<__m256i>();

/// Rows of the second layer whose sums become the numbers of half a vector.
const ROWS: usize = 4;

const _: () = assert!(VECTORS == 4 && NARROW == 4 * ROWS);

/// See [`EvaluationNetwork::estimate`].
#[target_feature(enable = "avx2")]
pub(crate) fn estimate(network: &EvaluationNetwork, board: PackedBoard) -> i32 {
    let columns = features::avx2::columns(board);
    network.scaled(output(network, &columns), &columns)
}

/// See [`EvaluationNetwork::output`].
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn output(network: &EvaluationNetwork, columns: &[u16; FEATURES]) -> i64 {
    let mut sums = vectors(&network.first_bias);
    for &column in columns {
        let row = vectors(&network.rows[usize::from(column)]);
        for at in 0..VECTORS {
            sums[at] = _mm256_add_epi16(sums[at], row[at]);
        }
    }
    for sum in &mut sums {
        *sum = _mm256_min_epi16(_mm256_max_epi16(*sum, _mm256_setzero_si256()), _mm256_set1_epi16(ONE as i16));
    }
    let mut totals = _mm256_setzero_si256();
    for first in (0..NARROW).step_by(ROWS) {
        let products = |row: usize| {
            let row = vectors(&network.second[first + row]);
            let product = |at: usize| _mm256_madd_epi16(sums[at], row[at]);
            _mm256_add_epi32(_mm256_add_epi32(product(0), product(1)), _mm256_add_epi32(product(2), product(3)))
        };
        let pairs = [_mm256_hadd_epi32(products(0), products(1)), _mm256_hadd_epi32(products(2), products(3))];
        let halves = _mm256_hadd_epi32(pairs[0], pairs[1]);
        let sums = _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
        // SAFETY: both arrays have `NARROW` numbers, of which these are four; neither load needs an alignment.
        let (bias, last) = unsafe {
            (
                _mm_loadu_si128(network.second_bias.as_ptr().add(first).cast()),
                _mm_loadl_epi64(network.last.as_ptr().add(first).cast()),
            )
        };
        let second = _mm_srai_epi32::<{ ONE_BITS as i32 }>(_mm_add_epi32(bias, sums));
        let second = _mm_min_epi32(_mm_max_epi32(second, _mm_setzero_si128()), _mm_set1_epi32(SECOND_MAX));
        let shares = _mm_mullo_epi32(second, _mm_cvtepi16_epi32(last));
        totals = _mm256_add_epi64(totals, _mm256_cvtepi32_epi64(shares));
    }
    let pair = _mm_add_epi64(_mm256_castsi256_si128(totals), _mm256_extracti128_si256::<1>(totals));
    i64::from(network.last_bias) + _mm_cvtsi128_si64(pair) + _mm_extract_epi64::<1>(pair)
}

/// Returns the vectors of a row.
#[inline]
#[target_feature(enable = "avx2")]
fn vectors(row: &Row) -> [__m256i; VECTORS] {
    // SAFETY: a row has as many numbers as the vectors, and is aligned to 64 bytes.
    std::array::from_fn(|at| unsafe { _mm256_load_si256(row.0.as_ptr().cast::<__m256i>().add(at)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Evaluation;
    use crate::evaluation::ROW_MAX;
    use crate::features::COLUMNS;
    use crate::sampling::SplitMix;

    /// The vectors give the same integers as the portable kernel: with the weights of the program, and with
    /// the largest.
    #[test]
    fn vectors_are_those_of_the_portable_kernel() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        let mut random = SplitMix::new(5, 0);
        let shipped = Evaluation::default();
        let mut networks = vec![shipped.network().unwrap().clone(); 3];
        for (network, bound) in networks.iter_mut().skip(1).zip([0, i64::from(i16::MAX)]) {
            let mut extreme = |limit: i64| match bound {
                0 => random.below(2 * limit as u64 + 1) as i64 - limit,
                _ => [-limit, limit][random.below(2) as usize],
            };
            let rows = network.rows.iter_mut().chain([&mut network.first_bias]);
            rows.flat_map(|row| &mut row.0).for_each(|weight| *weight = extreme(ROW_MAX.into()) as i16);
            network.second.iter_mut().flat_map(|row| &mut row.0).for_each(|weight| *weight = extreme(32_767) as i16);
            network.second_bias.iter_mut().for_each(|bias| *bias = extreme(1 << 28) as i32);
            network.last.iter_mut().for_each(|weight| *weight = extreme(32_767) as i16);
            network.last_bias = extreme(1 << 28) as i32;
        }
        for network in &networks {
            let mut found = std::collections::BTreeSet::new();
            for _ in 0..2000 {
                let columns: [u16; FEATURES] = std::array::from_fn(|_| random.below(COLUMNS as u64) as u16);
                let expected = network.output(&columns);
                // SAFETY: the processor has AVX2.
                assert_eq!(unsafe { output(network, &columns) }, expected, "{columns:?}");
                found.insert(expected);
            }
            assert!(found.len() > 5, "{} outputs", found.len());
        }
    }
}
