//! Which of both ways to the disk is the faster in a directory.

use crate::error::DiskError;
use crate::io::Io;
use crate::machine::StreamSpeed;
use crate::real::RealDisk;
use std::path::Path;

/// Streams of both ways are measured in turn, as often as this, because other programs may use the drive.
const ROUNDS: u32 = 2;

/// Plain requests are taken if they need at most this share of the time of a ring: smaller differences are chance.
const PLAIN_SHARE: f64 = 0.95;

/// The faster way to the disk in a directory, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoChoice {
    /// The faster way.
    pub io: Io,
    /// The speed of `io_uring`.
    pub uring: StreamSpeed,
    /// The speed of positioned reads and writes.
    pub plain: StreamSpeed,
}

impl IoChoice {
    /// Decides by the speeds of both ways.
    pub fn new(uring: StreamSpeed, plain: StreamSpeed) -> IoChoice {
        let is_plain = plain.seconds_a_byte() <= PLAIN_SHARE * uring.seconds_a_byte();
        IoChoice { io: if is_plain { Io::Plain } else { Io::Uring }, uring, plain }
    }

    /// Measures both ways with nameless files of `bytes` bytes; `None` where the kernel refuses a ring.
    ///
    /// # Errors
    /// If the files cannot be written or read.
    pub fn measure(directory: &Path, bytes: u64) -> Result<Option<IoChoice>, DiskError> {
        // Disks of their own, whose traffic belongs to no stage.
        let Ok(ring) = RealDisk::new(Io::Uring) else { return Ok(None) };
        let single = RealDisk::new(Io::Plain)?;
        let mut best: Option<[StreamSpeed; 2]> = None;
        for _ in 0..ROUNDS {
            let [uring, plain] = [&ring, &single].map(|disk| StreamSpeed::measure(disk, directory, bytes));
            let round = [uring?, plain?];
            best = Some(best.map_or(round, |best| [best[0].best_of(round[0]), best[1].best_of(round[1])]));
        }
        Ok(best.map(|[uring, plain]| IoChoice::new(uring, plain)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_way_is_taken() {
        let speed = |write, read| StreamSpeed { write, read };
        let fast = speed(2e9, 2e9);
        for (uring, plain, io) in [
            (fast, fast, Io::Uring),
            (fast, speed(2.05e9, 2.05e9), Io::Uring),
            (fast, speed(2.4e9, 2.1e9), Io::Plain),
            (fast, speed(4e9, 1e9), Io::Uring),
            (speed(0.5e9, 2e9), fast, Io::Plain),
        ] {
            assert_eq!(IoChoice::new(uring, plain).io, io, "{uring:?}, {plain:?}");
        }
    }

    #[test]
    fn measurements_leave_no_files() {
        let directory = tempfile::tempdir().unwrap();
        let choice = IoChoice::measure(directory.path(), 1 << 20).unwrap();
        assert_eq!(choice.is_some(), RealDisk::new(Io::Uring).is_ok());
        assert!(choice.is_none_or(|choice| choice == IoChoice::new(choice.uring, choice.plain)));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
