//! Planned faults: which operation fails, and how.

use crate::error::{DiskError, Operation};
use std::io;
use std::path::{Path, PathBuf};

/// The kind of an injected failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full (`ENOSPC`).
    NoSpace,
    /// The user's quota is used up (`EDQUOT`).
    Quota,
    /// The file system is read-only (`EROFS`).
    ReadOnly,
    /// The permissions forbid it (`EACCES`).
    PermissionDenied,
    /// The device reports an error.
    Io,
    /// Sectors cannot be read (`EIO`).
    Unreadable,
}

impl Fault {
    fn source(self) -> io::Error {
        match self {
            Fault::NoSpace => io::ErrorKind::StorageFull.into(),
            Fault::Quota => io::ErrorKind::QuotaExceeded.into(),
            Fault::ReadOnly => io::ErrorKind::ReadOnlyFilesystem.into(),
            Fault::PermissionDenied => io::ErrorKind::PermissionDenied.into(),
            Fault::Io => io::Error::other("the device fails"),
            Fault::Unreadable => io::Error::from_raw_os_error(libc::EIO),
        }
    }
}

/// The operations that a planned fault counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationSet {
    /// All.
    All,
    /// Those of one kind on files with a name, and on directories.
    Kind(Operation),
    /// Those of one kind on scratch files.
    Scratch(Operation),
    /// Those of one kind on files somewhere below a folder of this name.
    Below(Operation, &'static str),
    /// Operations that change the disk, which a full or read-only disk refuses.
    Changes,
    /// Operations that take space: create, reserve, write.
    Room,
}

impl OperationSet {
    fn holds(self, operation: Operation, path: &Path, is_scratch: bool) -> bool {
        use Operation::{Create, MakeDirectory, Remove, Rename, Reserve, Sync, Truncate, Write};
        match self {
            OperationSet::All => true,
            OperationSet::Kind(kind) => operation == kind && !is_scratch,
            OperationSet::Scratch(kind) => operation == kind && is_scratch,
            OperationSet::Below(kind, folder) => {
                operation == kind
                    && !is_scratch
                    && path.parent().is_some_and(|path| path.iter().any(|name| name == folder))
            }
            OperationSet::Changes => {
                matches!(operation, Create | MakeDirectory | Remove | Rename | Reserve | Sync | Truncate | Write)
            }
            OperationSet::Room => matches!(operation, Create | Reserve | Write),
        }
    }
}

/// A planned fault. Ordinals count from 0, from the moment of planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// The operations that are counted.
    pub among: OperationSet,
    /// The ordinal of the first failing operation.
    pub first: u64,
    /// The number of consecutive failing operations.
    pub count: u64,
    /// The kind of failure.
    pub fault: Fault,
}

/// An operation that was made to fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// The operation.
    pub operation: Operation,
    /// The file that it operated on.
    pub path: PathBuf,
    /// How it failed.
    pub fault: Fault,
}

/// The simulated outcome of an operation.
pub(super) enum OperationOutcome {
    /// It succeeds.
    Fine,
    /// It fails, possibly after a partial effect.
    Fails(DiskError),
    /// The process dies during it, possibly after a partial effect.
    Dies(DiskError),
    /// The process is already dead: the operation has no effect.
    Dead(DiskError),
}

/// All planned faults, and the operations that failed.
#[derive(Debug, Default)]
pub(super) struct FaultPlan {
    planned: Vec<(PlannedFault, u64)>,
    /// The number of operations until the process dies.
    operations_until_death: Option<u64>,
    pub(super) injected: Vec<InjectedFault>,
    counts: Vec<(Operation, bool, u64)>,
}

impl FaultPlan {
    pub(super) fn plan(&mut self, fault: PlannedFault) {
        self.planned.push((fault, 0));
    }

    pub(super) fn die_after(&mut self, operations: u64) {
        self.operations_until_death = Some(operations);
    }

    pub(super) fn clear(&mut self) {
        self.planned.clear();
        self.operations_until_death = None;
    }

    /// Counts an operation and returns its outcome.
    pub(super) fn next_outcome(&mut self, operation: Operation, path: &Path, is_scratch: bool) -> OperationOutcome {
        let same = |(kind, scratch, _): &&mut (Operation, bool, u64)| *kind == operation && *scratch == is_scratch;
        match self.counts.iter_mut().find(same) {
            Some((_, _, count)) => *count += 1,
            None => self.counts.push((operation, is_scratch, 1)),
        }
        if let Some(left) = &mut self.operations_until_death {
            let dead = || DiskError::from_io(operation, path, io::Error::other("the process is dead"));
            if *left == 0 {
                return OperationOutcome::Dead(dead());
            }
            *left -= 1;
            if *left == 0 {
                return OperationOutcome::Dies(dead());
            }
        }
        let mut met = None;
        for (plan, seen) in &mut self.planned {
            if !plan.among.holds(operation, path, is_scratch) {
                continue;
            }
            if *seen >= plan.first && *seen - plan.first < plan.count {
                met = met.or(Some(plan.fault));
            }
            *seen += 1;
        }
        let Some(fault) = met else { return OperationOutcome::Fine };
        self.injected.push(InjectedFault { operation, path: path.to_path_buf(), fault });
        OperationOutcome::Fails(DiskError::from_io(operation, path, fault.source()))
    }

    /// The number of operations so far; files below a folder are not counted.
    pub(super) fn count(&self, among: OperationSet) -> u64 {
        let nowhere = Path::new("");
        let held =
            self.counts.iter().filter(|(operation, is_scratch, _)| among.holds(*operation, nowhere, *is_scratch));
        held.map(|(_, _, count)| count).sum()
    }
}

/// A small seeded generator (SplitMix64, Steele, Lea & Flood 2014).
#[derive(Debug)]
pub(super) struct RandomBits {
    state: u64,
}

impl RandomBits {
    pub(super) fn new(seed: u64) -> RandomBits {
        RandomBits { state: seed }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `most`.
    pub(super) fn up_to(&mut self, most: usize) -> usize {
        (self.bits() % (most as u64 + 1)) as usize
    }

    pub(super) fn coin(&mut self) -> bool {
        self.bits() & 1 == 1
    }
}
