//! The choice between vector kernels and their portable twins.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static IS_PORTABLE: AtomicBool = AtomicBool::new(false);

/// Makes this process use portable kernels only, on any processor. They produce the same bytes.
pub fn use_portable_kernels() {
    IS_PORTABLE.store(true, Relaxed);
}

/// Whether vector kernels must not be used.
#[inline]
pub(crate) fn is_portable() -> bool {
    IS_PORTABLE.load(Relaxed)
}
