//! The run directory: file names, ownership and content.
//!
//! [`Directory`] holds the lock and the journal. The other submodules own one kind of file each, or a
//! question about the whole directory: whether a run may use it (`claim`), which artifacts exist (`survey`),
//! how much space they take (`space`).

mod claim;
mod heartbeat;
mod layout;
mod locked;
mod space;
mod stop;
mod survey;

pub(crate) use claim::{Claim, MANIFEST_MARK, claim, holds_artifacts, is_leftover_of, keep_manifest};
pub use heartbeat::{Heartbeat, StageHeartbeat};
pub use layout::{RUN_LOG, journal_path, log_path, manifest_path, ranks_path};
pub(crate) use layout::{heartbeat_path, lock_path, snapshots_path, stop_path};
pub use locked::Directory;
pub use space::Space;
pub use stop::StopRequest;
pub use survey::Inspections;
pub(crate) use survey::{inspect_artifact, survey};
