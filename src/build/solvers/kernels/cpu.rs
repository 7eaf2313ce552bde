//! Processor feature detection and prefetching.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Whether the processor and the system support the functions for AVX2.
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

/// Whether the processor supports the functions for BMI2.
pub(crate) fn has_bmi2() -> bool {
    is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("bmi1")
}

/// Whether the processor and the system support the functions for AVX-512.
pub(crate) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Whether the processor and the system support AVX-512 with GFNI.
pub(crate) fn has_gfni() -> bool {
    has_avx512() && is_x86_feature_detected!("gfni")
}

/// Prefetches values to the first-level cache.
pub(crate) fn prefetch<T>(values: &[T]) {
    for line in values.chunks(64 / size_of::<T>()) {
        // SAFETY: every x86-64 processor has the instruction, and it reads nothing that the program can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
}
