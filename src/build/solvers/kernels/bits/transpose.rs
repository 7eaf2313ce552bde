//! Transposition of 64 by 64 bits.

use super::{BitKernel, x86_64};
use crate::kernels::cpu;
use crate::layout::plane::WORD;

impl BitKernel {
    /// Exchanges bit j of word i with bit i of word j.
    pub fn transpose(self, block: &mut [u64; WORD]) {
        match self {
            BitKernel::Avx512 if cpu::has_gfni() => x86_64::transpose_gfni(block),
            _ => transpose(block),
        }
    }
}

/// By halves of halves (Warren, Hacker's Delight, section 7-3).
fn transpose(block: &mut [u64; WORD]) {
    let (mut width, mut mask) = (32, 0x0000_0000_ffff_ffffu64);
    while width > 0 {
        let mut at = 0;
        while at < WORD {
            let swap = (block[at] >> width ^ block[at + width]) & mask;
            block[at] ^= swap << width;
            block[at + width] ^= swap;
            at = (at + width + 1) & !width;
        }
        width /= 2;
        mask ^= mask << width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_transposes_bits() {
        for round in 1..20u64 {
            let block: [u64; WORD] = std::array::from_fn(|at| (at as u64 + round).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for kernel in BitKernel::available() {
                let mut turned = block;
                kernel.transpose(&mut turned);
                for (row, word) in block.iter().enumerate() {
                    for (column, other) in turned.iter().enumerate() {
                        assert_eq!(word >> column & 1, other >> row & 1, "{kernel:?}");
                    }
                }
            }
        }
    }
}
