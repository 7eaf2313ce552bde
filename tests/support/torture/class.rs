//! The classes of faults, and the runs that each disturbs.

use super::conditions::Conditions;
use super::subject::Subject;
use crate::Random;
use disk::{Fault, MemoryDisk, Operation, OperationSet, PlannedFault};

/// A class of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultClass {
    /// The process dies in an operation.
    Killed,
    /// The process dies, and the disk keeps what it promised and nothing else.
    PowerLost,
    /// The process dies, and the disk keeps any part of what it did not promise: torn, out of order.
    PowerLostTorn,
    /// The process dies, and so does the next, by a loss of power.
    KilledThenPowerLost,
    /// A read fails.
    Read,
    /// The process dies, and the next cannot read its snapshot.
    ReadSnapshot,
    /// A write fails, and some of it arrives.
    Write,
    /// A sync fails, and some of what it should have written is lost though a later one succeeds; then, by chance, a
    /// loss of power.
    Sync,
    /// A rename fails.
    Rename,
    /// Any other operation fails: creating, reserving, cutting, measuring, listing, removing, locking.
    Other,
    /// The disk is full, once or until the run ends.
    NoSpace,
    /// The quota is used up, once or until the run ends.
    Quota,
    /// Another process fills the disk, which stays full or gets fuller for a few runs.
    Filled,
    /// The file system becomes read-only.
    ReadOnly,
    /// Reading a scratch file fails.
    ScratchRead,
    /// Creating or writing a scratch file fails.
    ScratchWrite,
    /// Two or three runs in a row with faults of any class, one or two in each.
    Combined,
}

/// What is done to a run.
#[derive(Clone, Debug)]
pub(crate) enum Injection {
    Fail(PlannedFault),
    /// In the operation of this number of this run.
    Die(u64),
    /// At this operation of the run, except for this number of bytes.
    Fill(u64, u64),
    /// This number of bytes in all.
    Limit(u64),
}

/// What happens once a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundEnd {
    /// Nothing: it returned.
    Exit,
    Killed,
    PowerLost,
    /// By this seed.
    PowerLostTorn(u64),
}

/// A run, and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct FaultRound {
    pub(crate) conditions: Conditions,
    pub(crate) injections: Vec<Injection>,
    pub(crate) end: RoundEnd,
}

/// The operations without a class of their own.
const OTHERS: [Operation; 10] = [
    Operation::Create,
    Operation::Reserve,
    Operation::Truncate,
    Operation::Map,
    Operation::Measure,
    Operation::List,
    Operation::Remove,
    Operation::MakeDirectory,
    Operation::FreeSpace,
    Operation::Lock,
];

impl FaultClass {
    /// All classes.
    pub const ALL: [FaultClass; 17] = [
        FaultClass::Killed,
        FaultClass::PowerLost,
        FaultClass::PowerLostTorn,
        FaultClass::KilledThenPowerLost,
        FaultClass::Read,
        FaultClass::ReadSnapshot,
        FaultClass::Write,
        FaultClass::Sync,
        FaultClass::Rename,
        FaultClass::Other,
        FaultClass::NoSpace,
        FaultClass::Quota,
        FaultClass::Filled,
        FaultClass::ReadOnly,
        FaultClass::ScratchRead,
        FaultClass::ScratchWrite,
        FaultClass::Combined,
    ];

    /// Its name on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            FaultClass::Killed => "killed",
            FaultClass::PowerLost => "power-lost",
            FaultClass::PowerLostTorn => "power-lost-torn",
            FaultClass::KilledThenPowerLost => "killed-then-power-lost",
            FaultClass::Read => "read",
            FaultClass::ReadSnapshot => "read-snapshot",
            FaultClass::Write => "write",
            FaultClass::Sync => "sync",
            FaultClass::Rename => "rename",
            FaultClass::Other => "other",
            FaultClass::NoSpace => "no-space",
            FaultClass::Quota => "quota",
            FaultClass::Filled => "filled",
            FaultClass::ReadOnly => "read-only",
            FaultClass::ScratchRead => "scratch-read",
            FaultClass::ScratchWrite => "scratch-write",
            FaultClass::Combined => "combined",
        }
    }

    /// What it is, in words.
    pub const fn title(self) -> &'static str {
        match self {
            FaultClass::Killed => "killed in an operation",
            FaultClass::PowerLost => "power lost, unsynced bytes and names gone",
            FaultClass::PowerLostTorn => "power lost, any part of them kept, in any order",
            FaultClass::KilledThenPowerLost => "killed, then power lost in the next run",
            FaultClass::Read => "read fails (EIO)",
            FaultClass::ReadSnapshot => "killed, then a snapshot cannot be read (EIO)",
            FaultClass::Write => "write fails part-way (EIO)",
            FaultClass::Sync => "sync fails (EIO), its pages given up, power lost or not",
            FaultClass::Rename => "rename fails (EIO)",
            FaultClass::Other => "create, reserve, cut, list, remove, lock ... fails (EIO)",
            FaultClass::NoSpace => "disk full (ENOSPC), once or from then on",
            FaultClass::Quota => "quota used up (EDQUOT), once or from then on",
            FaultClass::Filled => "disk filled by others, over several runs",
            FaultClass::ReadOnly => "file system turns read-only (EROFS)",
            FaultClass::ScratchRead => "scratch file cannot be read (EIO)",
            FaultClass::ScratchWrite => "scratch file cannot be written (EIO, ENOSPC)",
            FaultClass::Combined => "two or three runs in a row with any of these",
        }
    }

    fn number(self) -> u64 {
        FaultClass::ALL.iter().position(|&class| class == self).unwrap_or(0) as u64
    }

    /// The generator of one case of this class.
    pub(crate) fn random(self, seed: u64, subject: &Subject, number: u64) -> Random {
        let method = planner::Method::ALL.iter().position(|&method| method == subject.method()).unwrap_or(0);
        Random::of(&[seed, self.number(), method as u64, number])
    }

    /// The operations of a build that this class can strike.
    fn among(self) -> Vec<OperationSet> {
        match self {
            FaultClass::Killed | FaultClass::PowerLost | FaultClass::PowerLostTorn | FaultClass::Filled => {
                vec![OperationSet::All]
            }
            FaultClass::Read => vec![OperationSet::Kind(Operation::Read)],
            FaultClass::Write => vec![OperationSet::Kind(Operation::Write)],
            FaultClass::Sync => vec![OperationSet::Kind(Operation::Sync)],
            FaultClass::Rename => vec![OperationSet::Kind(Operation::Rename)],
            FaultClass::Other => OTHERS.map(OperationSet::Kind).to_vec(),
            FaultClass::NoSpace | FaultClass::Quota => vec![OperationSet::Room],
            FaultClass::ReadOnly => vec![OperationSet::Changes],
            FaultClass::ScratchRead => vec![OperationSet::Scratch(Operation::Read)],
            FaultClass::ScratchWrite => {
                vec![OperationSet::Scratch(Operation::Create), OperationSet::Scratch(Operation::Write)]
            }
            FaultClass::KilledThenPowerLost | FaultClass::ReadSnapshot | FaultClass::Combined => {
                vec![OperationSet::All]
            }
        }
    }

    /// How many operations of a build it can strike.
    pub(crate) fn extent(self, subject: &Subject) -> u64 {
        self.among().into_iter().map(|among| subject.operations(among)).sum()
    }

    /// The runs of a case. `at` is the operation to strike, less than the extent.
    pub(crate) fn rounds(self, subject: &Subject, at: u64, is_first: bool, random: &mut Random) -> Vec<FaultRound> {
        if self == FaultClass::Combined {
            return combined(subject, random);
        }
        if matches!(self, FaultClass::KilledThenPowerLost | FaultClass::ReadSnapshot) {
            let killed = FaultRound::alone(vec![Injection::Die(at)], RoundEnd::Killed);
            let (injection, end) = self.injection(subject, random.below(operations(subject)), random);
            return vec![killed, FaultRound::alone(vec![injection], end)];
        }
        let mut rounds = Vec::new();
        // Faults of reading and resuming need files to read.
        if !is_first && random.below(2) == 0 {
            rounds.push(FaultRound::alone(vec![Injection::Die(random.below(operations(subject)))], RoundEnd::Killed));
        }
        let (injection, end) = self.injection(subject, at, random);
        rounds.push(FaultRound::alone(vec![injection], end));
        if self == FaultClass::Filled {
            for _ in 0..random.below(3) {
                let limit = Injection::Limit(random.below(2 * subject.bytes()));
                rounds.push(FaultRound::alone(vec![limit], *random.pick(&[RoundEnd::Exit, RoundEnd::Killed])));
            }
        }
        rounds
    }

    /// What strikes operation `at` of a build, less than the extent, and what happens to the process.
    pub(crate) fn injection(self, subject: &Subject, at: u64, random: &mut Random) -> (Injection, RoundEnd) {
        let torn = RoundEnd::PowerLostTorn(random.bits());
        let once = |fault| {
            let (among, first) = self.operation(subject, at);
            Injection::Fail(PlannedFault { among, first, count: 1, fault })
        };
        let count = *random.pick(&[1, u64::MAX]);
        let from = |fault| {
            let (among, first) = self.operation(subject, at);
            Injection::Fail(PlannedFault { among, first, count, fault })
        };
        match self {
            FaultClass::Killed => (Injection::Die(at), RoundEnd::Killed),
            FaultClass::PowerLost => (Injection::Die(at), RoundEnd::PowerLost),
            FaultClass::KilledThenPowerLost => (Injection::Die(at), *random.pick(&[RoundEnd::PowerLost, torn])),
            FaultClass::PowerLostTorn | FaultClass::Combined => (Injection::Die(at), torn),
            FaultClass::ReadSnapshot => {
                let among = OperationSet::Below(Operation::Read, "snapshots");
                let fault = PlannedFault { among, first: random.below(8), count: 1, fault: Fault::Io };
                (Injection::Fail(fault), *random.pick(&[RoundEnd::Exit, RoundEnd::Killed]))
            }
            FaultClass::Read | FaultClass::Write | FaultClass::Rename | FaultClass::Other | FaultClass::ScratchRead => {
                (once(Fault::Io), RoundEnd::Exit)
            }
            FaultClass::Sync => {
                (once(Fault::Io), *random.pick(&[RoundEnd::Exit, RoundEnd::Killed, RoundEnd::PowerLost, torn]))
            }
            FaultClass::NoSpace => (from(Fault::NoSpace), *random.pick(&[RoundEnd::Exit, RoundEnd::Killed, torn])),
            FaultClass::Quota => (from(Fault::Quota), RoundEnd::Exit),
            FaultClass::Filled => (Injection::Fill(at, random.below(2000)), RoundEnd::Exit),
            FaultClass::ReadOnly => {
                let (among, first) = self.operation(subject, at);
                let fault = PlannedFault { among, first, count: u64::MAX, fault: Fault::ReadOnly };
                (Injection::Fail(fault), *random.pick(&[RoundEnd::Exit, torn]))
            }
            FaultClass::ScratchWrite => (once(*random.pick(&[Fault::Io, Fault::NoSpace])), RoundEnd::Exit),
        }
    }

    /// The kind of an operation of this class, and its ordinal in its kind.
    fn operation(self, subject: &Subject, at: u64) -> (OperationSet, u64) {
        let mut left = at;
        let kinds = self.among();
        for &among in &kinds {
            let count = subject.operations(among);
            if left < count {
                return (among, left);
            }
            left -= count;
        }
        (kinds[0], at)
    }
}

fn operations(subject: &Subject) -> u64 {
    subject.operations(OperationSet::All)
}

fn combined(subject: &Subject, random: &mut Random) -> Vec<FaultRound> {
    let classes: Vec<FaultClass> = FaultClass::ALL
        .into_iter()
        .filter(|class| *class != FaultClass::Combined && class.extent(subject) > 0)
        .collect();
    let rounds = 2 + random.below(2);
    let mut round = || {
        let mut injections = Vec::new();
        let mut end = RoundEnd::Exit;
        for _ in 0..1 + random.below(2) {
            let class = *random.pick(&classes);
            // A later run takes up the files of the one before it early.
            let extent = class.extent(subject);
            let extent = if random.below(2) == 0 { extent } else { extent.div_ceil(4) };
            let (injection, ends) = class.injection(subject, random.below(extent), random);
            injections.push(injection);
            if end == RoundEnd::Exit {
                end = ends;
            }
        }
        FaultRound::alone(injections, end)
    };
    (0..rounds).map(|_| round()).collect()
}

impl FaultRound {
    /// A run by one rank.
    fn alone(injections: Vec<Injection>, end: RoundEnd) -> FaultRound {
        FaultRound { conditions: Conditions::default(), injections, end }
    }
}

impl Injection {
    pub(crate) fn plan(&self, disk: &MemoryDisk) {
        let now = disk.operations();
        match *self {
            Injection::Fail(fault) => disk.fail(fault),
            Injection::Die(at) => disk.die_at(now + at),
            Injection::Fill(at, free_bytes) => disk.fill_at(now + at, free_bytes),
            Injection::Limit(bytes_max) => disk.set_bytes_max(bytes_max),
        }
    }

    pub(crate) fn is_death(&self) -> bool {
        matches!(self, Injection::Die(_))
    }

    pub(crate) fn takes_room(&self) -> bool {
        matches!(self, Injection::Fill(..) | Injection::Limit(_))
    }
}

impl RoundEnd {
    pub(crate) fn apply(self, disk: &MemoryDisk) {
        match self {
            RoundEnd::Exit => disk.fail_never(),
            RoundEnd::Killed => disk.kill(),
            RoundEnd::PowerLost => disk.crash(),
            RoundEnd::PowerLostTorn(seed) => disk.crash_anyhow(seed),
        }
    }

    pub(crate) fn loses_power(self) -> bool {
        matches!(self, RoundEnd::PowerLost | RoundEnd::PowerLostTorn(_))
    }
}
