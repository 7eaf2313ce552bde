//! Row kernels: the work on one row or unit, in portable Rust and in vectors, and the tables that they read.
//!
//! Each vector kernel has a portable twin. [`Kernel`] and [`BitKernel`] choose between them at run time.

pub(crate) mod apply;
mod bit_maps;
pub(crate) mod bits;
pub(crate) mod cpu;
pub(crate) mod scores;
pub(crate) mod tables;

pub use bits::{BitKernel, RowBits};
pub use scores::Kernel;
pub use tables::Tables;
