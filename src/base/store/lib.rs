//! File formats for databases, capture databases and planes: lists of matrices of signed bytes.
//!
//! [`Writer`] publishes a file. [`Scores::open`] maps one and checks its frame in O(1) per block of 65,536 positions;
//! [`Scores::open_windowed`] reads blocks on demand instead, where memory is bounded. [`Unverified::expect`] turns an
//! open file into [`Scores`] once its identity is the expected one. The module `format` describes the layout of the
//! bytes.
//!
//! Invariants:
//!
//! * The bytes of a file depend only on its content, never on threads, time or host.
//! * No byte is used before a checksum that covers it has been compared.
//! * A reader returns an error or the scores that were written, for any bytes. It does not panic, and it allocates no
//!   more than a constant times the size of the file.
//! * A score is addressed by its position in canonical order: slabs ascending, row by row.
//!
//! This crate knows matrices only: no rules, no boards, no index.

#![warn(clippy::missing_errors_doc)]
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
pub use division::{CombinedParts, Division, PartPlace, PartWriter};
pub use error::{Result, StoreError};
pub use identity::{FileKind, FileOrientation, Identity, Role};
pub use pages::{PageCache, PageCounts, Pages};
pub use scores::open::{Unverified, begins_as_ours};
pub use scores::{BlockRun, MappedScores, PendingRange, PendingRun, RangeDecoder, Scores};
pub use shape::{Shape, SlabShape};
pub use value_range::ValueRange;
pub use window::Window;
pub use write::{Writer, Written, write};
