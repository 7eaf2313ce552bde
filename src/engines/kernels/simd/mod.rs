//! The vector kernels. Every function here has a portable twin: those of scores (`rows.rs`) in [`crate::kernels::scores`] or
//! [`crate::kernels::apply`], those of bits (`bits.rs`) in [`crate::bounds`].
//!
//! Measured in `bench`; what they rest on: a byte permutation of two vectors (VBMI) does in one instruction what a
//! class of moves does to 64 columns, and a 64 by 64 byte transpose is 64 loads of quarter rows and 256 shuffles.

#[cfg(not(target_arch = "x86_64"))]
mod absent;
#[cfg(target_arch = "x86_64")]
mod bits;
#[cfg(target_arch = "x86_64")]
mod rows;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use absent::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use bits::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use rows::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Whether the processor and the system have what the functions for AVX2 enable.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

/// Whether the processor has what the functions for BMI2 enable.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_bmi2() -> bool {
    is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("bmi1")
}

/// Has values brought to the first cache.
#[cfg(target_arch = "x86_64")]
pub(crate) fn prefetch<T>(values: &[T]) {
    for line in values.chunks(64 / size_of::<T>()) {
        // SAFETY: every processor of this kind has the instruction, which reads nothing that shows.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
}

/// Whether the processor and the system have what [`transpose_gfni`] enables.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_gfni() -> bool {
    has_avx512() && is_x86_feature_detected!("gfni")
}

/// Whether the processor and the system have what the functions for AVX-512 enable.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}
