//! The classes of faults, and the runs that each disturbs.

use super::conditions::Conditions;
use super::subject::Subject;
use crate::Random;
use disk::{Among, Fault, MemoryDisk, Operation, PlannedFault};

/// A class of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
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
    /// Somebody else fills the disk, and it stays full or gets fuller for a few runs.
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
    /// At the operation of this number of this run, but for so many bytes.
    Fill(u64, u64),
    /// So many bytes in all.
    Limit(u64),
}

/// What happens once a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing: it returned.
    Exit,
    Killed,
    PowerLost,
    /// By this seed.
    PowerLostTorn(u64),
}

/// A run, and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) conditions: Conditions,
    pub(crate) injections: Vec<Injection>,
    pub(crate) end: End,
}

/// What is left of the operations once those with a class of their own are taken out.
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

impl Class {
    /// All classes.
    pub const ALL: [Class; 17] = [
        Class::Killed,
        Class::PowerLost,
        Class::PowerLostTorn,
        Class::KilledThenPowerLost,
        Class::Read,
        Class::ReadSnapshot,
        Class::Write,
        Class::Sync,
        Class::Rename,
        Class::Other,
        Class::NoSpace,
        Class::Quota,
        Class::Filled,
        Class::ReadOnly,
        Class::ScratchRead,
        Class::ScratchWrite,
        Class::Combined,
    ];

    /// Its name on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Class::Killed => "killed",
            Class::PowerLost => "power-lost",
            Class::PowerLostTorn => "power-lost-torn",
            Class::KilledThenPowerLost => "killed-then-power-lost",
            Class::Read => "read",
            Class::ReadSnapshot => "read-snapshot",
            Class::Write => "write",
            Class::Sync => "sync",
            Class::Rename => "rename",
            Class::Other => "other",
            Class::NoSpace => "no-space",
            Class::Quota => "quota",
            Class::Filled => "filled",
            Class::ReadOnly => "read-only",
            Class::ScratchRead => "scratch-read",
            Class::ScratchWrite => "scratch-write",
            Class::Combined => "combined",
        }
    }

    /// What it is, in words.
    pub const fn title(self) -> &'static str {
        match self {
            Class::Killed => "killed in an operation",
            Class::PowerLost => "power lost, unsynced bytes and names gone",
            Class::PowerLostTorn => "power lost, any part of them kept, in any order",
            Class::KilledThenPowerLost => "killed, then power lost in the next run",
            Class::Read => "read fails (EIO)",
            Class::ReadSnapshot => "killed, then a snapshot cannot be read (EIO)",
            Class::Write => "write fails part-way (EIO)",
            Class::Sync => "sync fails (EIO), its pages given up, power lost or not",
            Class::Rename => "rename fails (EIO)",
            Class::Other => "create, reserve, cut, list, remove, lock ... fails (EIO)",
            Class::NoSpace => "disk full (ENOSPC), once or from then on",
            Class::Quota => "quota used up (EDQUOT), once or from then on",
            Class::Filled => "disk filled by others, over several runs",
            Class::ReadOnly => "file system turns read-only (EROFS)",
            Class::ScratchRead => "scratch file cannot be read (EIO)",
            Class::ScratchWrite => "scratch file cannot be written (EIO, ENOSPC)",
            Class::Combined => "two or three runs in a row with any of these",
        }
    }

    fn number(self) -> u64 {
        Class::ALL.iter().position(|&class| class == self).unwrap_or(0) as u64
    }

    /// The generator of one case of this class.
    pub(crate) fn random(self, seed: u64, subject: &Subject, number: u64) -> Random {
        let method = planner::Method::ALL.iter().position(|&method| method == subject.method()).unwrap_or(0);
        Random::of(&[seed, self.number(), method as u64, number])
    }

    /// The operations of a build that this class can strike.
    fn among(self) -> Vec<Among> {
        match self {
            Class::Killed | Class::PowerLost | Class::PowerLostTorn | Class::Filled => vec![Among::All],
            Class::Read => vec![Among::Kind(Operation::Read)],
            Class::Write => vec![Among::Kind(Operation::Write)],
            Class::Sync => vec![Among::Kind(Operation::Sync)],
            Class::Rename => vec![Among::Kind(Operation::Rename)],
            Class::Other => OTHERS.map(Among::Kind).to_vec(),
            Class::NoSpace | Class::Quota => vec![Among::Room],
            Class::ReadOnly => vec![Among::Changes],
            Class::ScratchRead => vec![Among::Scratch(Operation::Read)],
            Class::ScratchWrite => vec![Among::Scratch(Operation::Create), Among::Scratch(Operation::Write)],
            Class::KilledThenPowerLost | Class::ReadSnapshot | Class::Combined => vec![Among::All],
        }
    }

    /// How many operations of a build it can strike.
    pub(crate) fn extent(self, subject: &Subject) -> u64 {
        self.among().into_iter().map(|among| subject.operations(among)).sum()
    }

    /// The runs of a case. `at` is the operation to strike, less than the extent.
    pub(crate) fn rounds(self, subject: &Subject, at: u64, is_first: bool, random: &mut Random) -> Vec<Round> {
        if self == Class::Combined {
            return combined(subject, random);
        }
        if matches!(self, Class::KilledThenPowerLost | Class::ReadSnapshot) {
            let killed = Round::alone(vec![Injection::Die(at)], End::Killed);
            let (injection, end) = self.injection(subject, random.below(operations(subject)), random);
            return vec![killed, Round::alone(vec![injection], end)];
        }
        let mut rounds = Vec::new();
        // What reads and goes on from something needs something to be there.
        if !is_first && random.below(2) == 0 {
            rounds.push(Round::alone(vec![Injection::Die(random.below(operations(subject)))], End::Killed));
        }
        let (injection, end) = self.injection(subject, at, random);
        rounds.push(Round::alone(vec![injection], end));
        if self == Class::Filled {
            for _ in 0..random.below(3) {
                let limit = Injection::Limit(random.below(2 * subject.bytes()));
                rounds.push(Round::alone(vec![limit], *random.pick(&[End::Exit, End::Killed])));
            }
        }
        rounds
    }

    /// What strikes operation `at` of a build, less than the extent, and what happens to the process.
    pub(crate) fn injection(self, subject: &Subject, at: u64, random: &mut Random) -> (Injection, End) {
        let torn = End::PowerLostTorn(random.bits());
        let once = |fault| {
            let (among, first) = self.place(subject, at);
            Injection::Fail(PlannedFault { among, first, count: 1, fault })
        };
        let count = *random.pick(&[1, u64::MAX]);
        let from = |fault| {
            let (among, first) = self.place(subject, at);
            Injection::Fail(PlannedFault { among, first, count, fault })
        };
        match self {
            Class::Killed => (Injection::Die(at), End::Killed),
            Class::PowerLost => (Injection::Die(at), End::PowerLost),
            Class::KilledThenPowerLost => (Injection::Die(at), *random.pick(&[End::PowerLost, torn])),
            Class::PowerLostTorn | Class::Combined => (Injection::Die(at), torn),
            Class::ReadSnapshot => {
                let among = Among::Below(Operation::Read, "snapshots");
                let fault = PlannedFault { among, first: random.below(8), count: 1, fault: Fault::Io };
                (Injection::Fail(fault), *random.pick(&[End::Exit, End::Killed]))
            }
            Class::Read | Class::Write | Class::Rename | Class::Other | Class::ScratchRead => {
                (once(Fault::Io), End::Exit)
            }
            Class::Sync => (once(Fault::Io), *random.pick(&[End::Exit, End::Killed, End::PowerLost, torn])),
            Class::NoSpace => (from(Fault::NoSpace), *random.pick(&[End::Exit, End::Killed, torn])),
            Class::Quota => (from(Fault::Quota), End::Exit),
            Class::Filled => (Injection::Fill(at, random.below(2000)), End::Exit),
            Class::ReadOnly => {
                let (among, first) = self.place(subject, at);
                let fault = PlannedFault { among, first, count: u64::MAX, fault: Fault::ReadOnly };
                (Injection::Fail(fault), *random.pick(&[End::Exit, torn]))
            }
            Class::ScratchWrite => (once(*random.pick(&[Fault::Io, Fault::NoSpace])), End::Exit),
        }
    }

    /// The kind of an operation of this class, and its ordinal in its kind.
    fn place(self, subject: &Subject, at: u64) -> (Among, u64) {
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
    subject.operations(Among::All)
}

fn combined(subject: &Subject, random: &mut Random) -> Vec<Round> {
    let classes: Vec<Class> =
        Class::ALL.into_iter().filter(|class| *class != Class::Combined && class.extent(subject) > 0).collect();
    let rounds = 2 + random.below(2);
    let mut round = || {
        let mut injections = Vec::new();
        let mut end = End::Exit;
        for _ in 0..1 + random.below(2) {
            let class = *random.pick(&classes);
            // Early in a later run is where it takes up what an earlier one left.
            let extent = class.extent(subject);
            let extent = if random.below(2) == 0 { extent } else { extent.div_ceil(4) };
            let (injection, ends) = class.injection(subject, random.below(extent), random);
            injections.push(injection);
            if end == End::Exit {
                end = ends;
            }
        }
        Round::alone(injections, end)
    };
    (0..rounds).map(|_| round()).collect()
}

impl Round {
    /// A run by one rank.
    fn alone(injections: Vec<Injection>, end: End) -> Round {
        Round { conditions: Conditions::default(), injections, end }
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

impl End {
    pub(crate) fn apply(self, disk: &MemoryDisk) {
        match self {
            End::Exit => disk.fail_never(),
            End::Killed => disk.kill(),
            End::PowerLost => disk.crash(),
            End::PowerLostTorn(seed) => disk.crash_anyhow(seed),
        }
    }

    pub(crate) fn loses_power(self) -> bool {
        matches!(self, End::PowerLost | End::PowerLostTorn(_))
    }
}
