//! What the leader asks of the other ranks: one enum, and one text form.

use super::solve;
use crate::bounds;
use messaging::CommunicationError;
use std::path::PathBuf;

/// Something to do together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// `capture:n`.
    Capture(Reading),
    /// `sweep:n` or `counting:n`.
    Solve(solve::Task),
    /// `process:n:b`.
    Bound(bounds::Task),
    /// `verify:n`.
    Verify(Reading),
    /// `stats:n`.
    Count(Reading),
    /// To leave.
    Leave,
}

/// A database at work, and files to read for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) stones: u32,
    /// Threads of the leader.
    pub(crate) threads: usize,
    /// Databases, ascending by their stones; to count, captures and scores.
    pub(crate) files: Vec<PathBuf>,
}

impl Order {
    /// A word, and lines for the rest. No line ends within a path.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (word, lines) = match self {
            Order::Capture(reading) => ("capture", reading.lines()),
            Order::Solve(task) => ("solve", task.lines()),
            Order::Bound(task) => ("bound", task.lines()),
            Order::Verify(reading) => ("verify", reading.lines()),
            Order::Count(reading) => ("count", reading.lines()),
            Order::Leave => ("leave", Vec::new()),
        };
        let lines: Vec<String> = std::iter::once(word.to_owned()).chain(lines).collect();
        lines.join("\n").into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Order, CommunicationError> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.split('\n').collect();
        let order = match lines[..] {
            ["capture", ref lines @ ..] => Reading::of_lines(lines).map(Order::Capture),
            ["solve", ref lines @ ..] => solve::Task::of_lines(lines).map(Order::Solve),
            ["bound", ref lines @ ..] => bounds::Task::of_lines(lines).map(Order::Bound),
            ["verify", ref lines @ ..] => Reading::of_lines(lines).map(Order::Verify),
            ["count", ref lines @ ..] => Reading::of_lines(lines).map(Order::Count),
            ["leave"] => Some(Order::Leave),
            _ => None,
        };
        let (expected, found) = ("an order".to_owned(), format!("{text:?}"));
        order.ok_or(CommunicationError::Unexpected { rank: 0, expected, found })
    }
}

impl Reading {
    /// Stones, threads, a path each.
    fn lines(&self) -> Vec<String> {
        let paths = self.files.iter().map(|path| path.display().to_string());
        [self.stones.to_string(), self.threads.to_string()].into_iter().chain(paths).collect()
    }

    fn of_lines(lines: &[&str]) -> Option<Reading> {
        let [stones, threads, paths @ ..] = lines else { return None };
        let (stones, threads) = (stones.parse().ok()?, threads.parse().ok()?);
        let is_one = stones <= game::STONES_MAX && threads > 0;
        is_one.then(|| Reading { stones, threads, files: paths.iter().map(PathBuf::from).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_understood() {
        let reading =
            |files: &[&str]| Reading { stones: 24, threads: 2, files: files.iter().map(PathBuf::from).collect() };
        let digest = disk::Digest::of(b"a result").to_string();
        let solve = |lines: &[&str]| Order::Solve(solve::Task::of_lines(lines).unwrap());
        for order in [
            Order::Capture(reading(&["/runs/a b/databases/00.awari", "/runs/a b/databases/01.awari"])),
            Order::Capture(reading(&[])),
            Order::Verify(reading(&["/runs/a b/databases/24.awari"])),
            Order::Count(reading(&["/runs/a b/captures/24.cap", "/runs/a b/databases/24.awari"])),
            solve(&["sweep", "24", "/runs/a b/captures/24.cap", "24.awari", "", "", "", ""]),
            solve(&[
                "sweep",
                "24",
                "24.cap",
                "/runs/a b/databases/24.awari",
                "/runs/a b/snapshots/sweep-24",
                "",
                "",
                "",
            ]),
            solve(&["counting 3", "24", "/runs/a b/captures/24.cap", "24.awari", "", "", "", ""]),
            solve(&["counting 4", "24", "24.cap", "24.awari", "snapshots/counting-24", "5 6 7 8 9 10 11", "", ""]),
            solve(&[
                "sweep",
                "24",
                "24.cap",
                "24.awari",
                "awari-0123456789abcdef",
                "",
                "awari-0123456789abcdef",
                &digest,
            ]),
            Order::Bound(bounds::Task::of_lines(&["1", "1", "a b", "c"]).unwrap()),
            Order::Leave,
        ] {
            assert_eq!(Order::decode(&order.encode()).unwrap(), order);
        }
        for bytes in [
            &b""[..],
            b"leave\n1",
            b"capture",
            b"capture\n24",
            b"capture\n24\n0",
            b"verify\n49\n1",
            b"solve\nsweep\n1",
            b"solve\nsweep\nx\na\nb\nc\n\n\n",
            b"solve\nsweep\n1\na\nb\n\n\n",
            b"solve\ncounting\n1\na\nb\nc\n\n\n",
            b"solve\ncounting 0\n1\na\nb\nc\n\n\n",
            b"solve\ncounting 65537\n1\na\nb\nc\n\n\n",
            b"solve\nsweep\n1\na\nb\nc\n\nawari-0123456789abcdef\nx",
            b"solve\nsweep\n1\na\nb\nc\n\n..\n0000000000000000000000000000000000000000000000000000000000000000",
            b"solve\ncounting 1\n1\na\nb\nc\n1\n\n",
            b"sweep\n1\na\nb\n",
            b"\xff\n\n\n\n",
        ] {
            assert!(Order::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
