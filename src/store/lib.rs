//! File formats: databases and capture databases, as lists of matrices of signed bytes.
//!
//! [`Writer`] publishes a file; [`Scores::open`] maps one and checks its frame in O(1) per block of
//! 65,536 positions, and [`Scores::open_windowed`] does so where a map takes too much memory; [`Unverified::expect`] makes it a [`Scores`] once it is the file the caller
//! means. The layout of the bytes is described in the module `format`.
//!
//! Invariants:
//!
//! * The bytes of a file depend only on what is written, never on threads, time or host.
//! * No byte is used before a checksum that covers it was compared.
//! * Whatever the bytes of a file, a reader returns an error or the scores that were written. It
//!   does not panic, and it allocates no more than a constant times the size of the file.
//! * A score is addressed by its position in canonical order: slabs ascending, row by row.
//!
//! This crate knows matrices, not what they mean: no rules, no ranks, no boards.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod archive;
mod blocks;
mod cache;
mod checksum;
mod codec;
mod division;
mod error;
mod format;
mod hasher;
mod identity;
mod layout;
mod little_endian;
mod pages;
mod scores;
mod shape;
mod value_range;
mod window;
mod write;

pub use archive::Archive;
pub use cache::{BlockCache, CachedScores};
pub use codec::kernels::use_portable_kernels;
pub use codec::{BLOCK_POSITIONS, Codec, CodecError};
pub use division::{CombinedParts, Division, PartWriter};
pub use error::StoreError;
pub use identity::{FileKind, FileOrientation, Identity, Role};
pub use pages::{PageCache, PageCounts, Pages};
pub use scores::open::{Unverified, begins_as_ours};
pub use scores::{BlockRun, Scores};
pub use shape::{Shape, SlabShape};
pub use value_range::ValueRange;
pub use window::Window;
pub use write::{Writer, Written, write};

// Positions and offsets within files are used as slice indices without further ado.
const _: () = assert!(usize::BITS == 64);
