//! The classes of faults, and the runs that each disturbs.

use super::conditions::Conditions;
use super::subject::Subject;
use crate::Random;
use clap::ValueEnum;
use disk::{Fault, MemoryDisk, Operation, OperationSet, PlannedFault};

/// A class of faults; its documentation is the title of its row in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum FaultClass {
    /// Killed in an operation.
    Killed,
    /// Power lost, unsynced bytes and names gone.
    PowerLost,
    /// Power lost, any part of them kept, in any order.
    PowerLostTorn,
    /// Killed, then power lost in the next run.
    KilledThenPowerLost,
    /// Read fails (EIO).
    Read,
    /// Killed, then a snapshot cannot be read (EIO).
    ReadSnapshot,
    /// Write fails part-way (EIO).
    Write,
    /// Sync fails (EIO), its pages given up, power lost or not.
    Sync,
    /// Rename fails (EIO).
    Rename,
    /// Create, reserve, cut, list, remove or lock fails (EIO).
    Other,
    /// Disk full (ENOSPC), once or from then on.
    NoSpace,
    /// Quota used up (EDQUOT), once or from then on.
    Quota,
    /// Disk filled by others, over several runs.
    Filled,
    /// File system turns read-only (EROFS).
    ReadOnly,
    /// Scratch file cannot be read (EIO).
    ScratchRead,
    /// Scratch file cannot be written (EIO, ENOSPC).
    ScratchWrite,
    /// Two or three runs in a row with any of these.
    Combined,
}

/// A fault injected into a run.
#[derive(Clone, Debug)]
pub(crate) enum Injection {
    Fail(PlannedFault),
    /// Dies in this operation of the run.
    Die(u64),
    /// Fills the disk at this operation of the run, except for a number of bytes.
    Fill(u64, u64),
    /// Limits the disk to this number of bytes.
    Limit(u64),
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundEnd {
    /// The run returns.
    Exit,
    Killed,
    PowerLost,
    /// With this seed.
    PowerLostTorn(u64),
}

/// A run with its faults.
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
    pub fn all() -> &'static [FaultClass] {
        FaultClass::value_variants()
    }

    /// The name on the command line and the title in reports.
    pub fn names(self) -> (String, String) {
        let value = self.to_possible_value().expect("no class is hidden");
        (value.get_name().to_owned(), value.get_help().map(ToString::to_string).unwrap_or_default())
    }

    /// The classes that a case can combine: all others that strike an operation of a build.
    pub(crate) fn combinable(subject: &Subject) -> Vec<FaultClass> {
        let all = FaultClass::all().iter().copied();
        all.filter(|&class| class != FaultClass::Combined && class.extent(subject) > 0).collect()
    }

    /// The generator of one case of this class.
    pub(crate) fn random(self, seed: u64, subject: &Subject, number: u64) -> Random {
        let method = planner::Method::ALL.iter().position(|&method| method == subject.method()).unwrap_or(0);
        Random::of(&[seed, self as u64, method as u64, number])
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

    /// Number of operations of a build that it can strike.
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

    /// The fault at operation `at` of a build, which is below the extent, and the end of the run.
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
    let classes = FaultClass::combinable(subject);
    let rounds = 2 + random.below(2);
    let mut round = || {
        let mut injections = Vec::new();
        let mut end = RoundEnd::Exit;
        for _ in 0..1 + random.below(2) {
            let class = *random.pick(&classes);
            // A resumed run reads the files of the one before early.
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
