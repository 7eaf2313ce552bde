//! The only access to the operating system: files, maps, locks, clocks, and the end of other processes.
//!
//! Every other crate sees files through the trait [`Disk`]. It has two implementations: [`RealDisk`], and
//! [`MemoryDisk`], its twin for tests, which counts operations, fails any of them on request and loses unsynced writes
//! when it crashes. [`GuardedDisk`] puts a check before the operations of either.
//!
//! Invariants:
//!
//! * A final name always shows a complete file: [`Staged`] is the only way to publish an artifact, and [`Joint`] that
//!   of several processes together.
//! * After [`OutputFile::sync`] returns, the file *and its name* survive a loss of power; after
//!   [`Disk::rename`] returns, so does the new name.
//! * Only one process holds a [`Lock`], and the kernel releases it when that process dies.
//! * Nothing is written, renamed or removed through a symbolic link of another user (module `folder`).
//! * A mapped file is never changed by this crate: artifacts are immutable and replaced by a rename, which leaves
//!   existing maps on the old bytes. If another program changes one, readers notice.
//!
//! This crate knows no file format, no stage and no game. Its `unsafe` is confined to `heap`, `map`, `sigbus`,
//! `real/queue_memory` and `real/ring`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("awari runs on Linux on x86-64 only");

mod ahead;
pub mod clock;
mod digest;
mod disk;
mod error;
mod file_names;
mod folder;
mod guard;
pub mod heap;
mod io;
mod io_choice;
mod joint;
mod lock;
pub mod machine;
mod map;
mod memory;
mod meter;
mod open;
pub mod process;
mod process_identity;
mod real;
mod sigbus;
mod spool;
mod staged;
pub mod threads;
mod traffic;
mod usage;

pub use ahead::{PendingRead, ReadBytes};
pub use clock::{Clock, Stopwatch, SystemClock};
pub use digest::{Digest, DigestError};
pub use disk::{Disk, InputFile, OutputFile, ScratchFile};
pub use error::{DiskError, Operation, bytes, reason};
pub use file_names::{is_leftover, staged_path};
pub use guard::{DiskAccess, DiskGuard, GuardedDisk};
pub use io::{Io, IoError};
pub use io_choice::IoChoice;
pub use joint::{Edge, Joint, Region, edges_of};
pub use lock::{Lock, is_lock_note};
pub use map::{Mapping, bytes_of, bytes_of_mut, bytes_of_words, bytes_of_words_mut, signed_of, signed_of_words_mut};
pub use memory::{Fault, InjectedFault, MemoryDisk, OperationSet, PlannedFault};
pub use process_identity::{ProcessIdentity, ProcessState};
pub use real::RealDisk;
pub use real::file_system::FileSystem;
pub use real::pool::POOL_BYTES_MAX;
pub use real::records::RecordFile;
pub use sigbus::unblock;
pub use spool::Spool;
pub use staged::{Staged, remove_leftovers, set_aside};
pub use traffic::Traffic;
pub use usage::Usage;
