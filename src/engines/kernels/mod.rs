//! Row kernels: what is computed of one row or unit, in a portable form and in vectors, and the tables that they read.

pub(crate) mod apply;
pub(crate) mod bit_bytes;
mod bit_maps;
mod bit_transpose;
pub(crate) mod bits;
pub(crate) mod scores;
pub(crate) mod simd;
pub(crate) mod tables;

pub use bits::{BitKernel, RowBits};
pub use scores::Kernel;
pub use tables::Tables;
