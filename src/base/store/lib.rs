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
//!
//! # Overview of types
//!
//! * **What a file is.** An [`Identity`] has its [`FileKind`], rules, positions and stones; a [`Shape`] its
//!   matrices, one [`SlabShape`] each; a [`ValueRange`] the bytes that may occur; a [`Codec`] how blocks are
//!   compressed.
//! * **Writing.** A [`Writer`] takes all values in order and returns what it has [`Written`]. A [`Division`]
//!   cuts the values among ranks: each has a [`PartWriter`], and [`CombinedParts`] are the frame of the
//!   whole.
//! * **Reading.** [`Unverified`] is an open file, [`Scores`] one with the expected identity. Ranges are
//!   decoded at once, by a [`RangeDecoder`], or block by block as a [`PendingRange`]. [`CachedScores`] keep
//!   decoded blocks in a [`BlockCache`], which several files share; [`MappedScores`] copy nothing; a
//!   [`Window`] is the part of a file that is mapped.
//! * **Bits.** [`Pages`] are words on disk behind a [`PageCache`], for planes that are changed in place.
//! * **Errors.** A [`StoreError`] tells a failing disk from damage, and damage from a file of something else.

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
mod threads;
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
