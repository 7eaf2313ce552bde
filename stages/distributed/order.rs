//! Orders of the leader to the other ranks, and their text form.

use super::bound_task::BoundTask;
use super::solve_task::SolveTask;
use messaging::CommunicationError;
use std::path::PathBuf;

/// A stage that all ranks run, or the end of the job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JobOrder {
    /// `capture:n`.
    Capture(ReadTask),
    /// `sweep:n` or `counting:n`.
    Solve(SolveTask),
    /// `process:n:b`.
    Bound(BoundTask),
    /// `verify:n`.
    Verify(ReadTask),
    /// `stats:n`.
    Count(ReadTask),
    /// End of the job.
    Leave,
}

/// A database of a stage, and the files that the stage reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadTask {
    pub(crate) stones: u32,
    /// Threads of the leader.
    pub(crate) threads: usize,
    /// Databases in ascending order of stones; for `stats`, captures and scores.
    pub(crate) files: Vec<PathBuf>,
}

impl JobOrder {
    /// Encodes the order as a word and lines of text. Paths contain no line breaks.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (word, lines) = match self {
            JobOrder::Capture(task) => ("capture", task.lines()),
            JobOrder::Solve(task) => ("solve", task.lines()),
            JobOrder::Bound(task) => ("bound", task.lines()),
            JobOrder::Verify(task) => ("verify", task.lines()),
            JobOrder::Count(task) => ("count", task.lines()),
            JobOrder::Leave => ("leave", Vec::new()),
        };
        let lines: Vec<String> = std::iter::once(word.to_owned()).chain(lines).collect();
        lines.join("\n").into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<JobOrder, CommunicationError> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.split('\n').collect();
        let order = match lines[..] {
            ["capture", ref lines @ ..] => ReadTask::of_lines(lines).map(JobOrder::Capture),
            ["solve", ref lines @ ..] => SolveTask::of_lines(lines).map(JobOrder::Solve),
            ["bound", ref lines @ ..] => BoundTask::of_lines(lines).map(JobOrder::Bound),
            ["verify", ref lines @ ..] => ReadTask::of_lines(lines).map(JobOrder::Verify),
            ["count", ref lines @ ..] => ReadTask::of_lines(lines).map(JobOrder::Count),
            ["leave"] => Some(JobOrder::Leave),
            _ => None,
        };
        let (expected, found) = ("an order".to_owned(), format!("{text:?}"));
        order.ok_or(CommunicationError::Unexpected { rank: 0, expected, found })
    }
}

impl ReadTask {
    /// Encodes the task as lines: stones, threads, paths.
    fn lines(&self) -> Vec<String> {
        let paths = self.files.iter().map(|path| path.display().to_string());
        [self.stones.to_string(), self.threads.to_string()].into_iter().chain(paths).collect()
    }

    fn of_lines(lines: &[&str]) -> Option<ReadTask> {
        let [stones, threads, paths @ ..] = lines else { return None };
        let (stones, threads) = (stones.parse().ok()?, threads.parse().ok()?);
        let is_one = stones <= game::STONES_MAX && threads > 0;
        is_one.then(|| ReadTask { stones, threads, files: paths.iter().map(PathBuf::from).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_decoded() {
        let task =
            |files: &[&str]| ReadTask { stones: 24, threads: 2, files: files.iter().map(PathBuf::from).collect() };
        let digest = disk::Digest::of(b"a result").to_string();
        let solve = |lines: &[&str]| JobOrder::Solve(SolveTask::of_lines(lines).unwrap());
        for order in [
            JobOrder::Capture(task(&["/runs/a b/databases/00.awari", "/runs/a b/databases/01.awari"])),
            JobOrder::Capture(task(&[])),
            JobOrder::Verify(task(&["/runs/a b/databases/24.awari"])),
            JobOrder::Count(task(&["/runs/a b/captures/24.cap", "/runs/a b/databases/24.awari"])),
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
            JobOrder::Bound(BoundTask::of_lines(&["1", "1", "a b", "c"]).unwrap()),
            JobOrder::Leave,
        ] {
            assert_eq!(JobOrder::decode(&order.encode()).unwrap(), order);
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
            assert!(JobOrder::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
