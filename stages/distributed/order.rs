//! Orders of the leader to the other ranks.

use super::bound_task::BoundTask;
use super::message;
use super::solve_task::SolveTask;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A stage that all ranks run, or the end of the job.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// `book:K`.
    Book(BookTask),
    /// End of the job.
    Leave,
}

/// The assessments of a book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BookTask {
    /// Threads of the leader.
    pub(crate) threads: usize,
    /// All databases, in ascending order of stones.
    pub(crate) files: Vec<PathBuf>,
}

/// A database of a stage, and the files that the stage reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadTask {
    pub(crate) stones: u32,
    /// Threads of the leader.
    pub(crate) threads: usize,
    /// Databases in ascending order of stones; for `stats`, captures or seeds, and scores.
    pub(crate) files: Vec<PathBuf>,
}

impl JobOrder {
    pub(super) fn decode(bytes: &[u8]) -> messaging::Result<JobOrder> {
        message::decode(bytes, 0, "an order", JobOrder::is_valid)
    }

    fn is_valid(&self) -> bool {
        match self {
            JobOrder::Capture(task) | JobOrder::Verify(task) | JobOrder::Count(task) => {
                task.stones <= game::STONES_MAX && task.threads > 0
            }
            JobOrder::Solve(task) => task.is_valid(),
            JobOrder::Bound(task) => task.is_valid(),
            JobOrder::Book(task) => task.threads > 0 && task.files.len() <= game::STONES_MAX as usize + 1,
            JobOrder::Leave => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = r#"{"Verify":{"stones":24,"threads":2,"files":["/runs/a b/24.awari"]}}"#;
    const BOUND: &str = r#"{"Bound":{"stones":1,"bound":1,"paths":["a b","c"]}}"#;
    const SWEEP: &str = r#"{"Solve":{"by":"Sweep","stones":24,"captures":"24.cap","database":"/runs/a b/24.awari",
        "snapshots":null,"counts":null,"scratch":null}}"#;
    const COUNTING: &str = r#"{"Solve":{"by":{"Counting":{"processors":4}},"stones":24,"captures":"24.cap",
        "database":"24.awari","snapshots":"snapshots/counting-24","counts":{"own":{"since":5,"process":6},
        "saved":{"source":{"since":7,"process":8},"number":9,"ranks":10,"processors":11}},
        "scratch":{"name":"awari-0123456789abcdef",
        "fingerprint":"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"}}}"#;

    #[test]
    fn orders_are_decoded() {
        for text in [READ, BOUND, SWEEP, COUNTING, "\"Leave\""] {
            let order = JobOrder::decode(text.as_bytes()).unwrap();
            assert_eq!(JobOrder::decode(&message::encode(&order)).unwrap(), order);
        }
    }

    #[test]
    fn invalid_orders_are_rejected() {
        for (text, from, to) in [
            (READ, "}}", "}"),
            (READ, "}}", "}}1"),
            (READ, "Verify", "Leave"),
            (READ, ":24", ":49"),
            (READ, ":2,", ":0,"),
            (READ, ":2,", ":-1,"),
            (BOUND, "\"bound\":1", "\"bound\":2"),
            (BOUND, "\"bound\":1", "\"bound\":0"),
            (BOUND, "\"stones\":1", "\"stones\":4000000000"),
            (BOUND, ",\"c\"", ""),
            (SWEEP, "24,", "49,"),
            (SWEEP, "\"24.cap\"", "null"),
            (SWEEP, "Sweep", "Counting"),
            (COUNTING, ":4}", ":0}"),
            (COUNTING, ":4}", ":65537}"),
            (COUNTING, ":6}", ":4294967296}"),
            (COUNTING, ":10,", ":0,"),
            (COUNTING, ":11}", ":65537}"),
            (COUNTING, "awari-0123456789abcdef", ".."),
            (COUNTING, "f3262", "f326x"),
        ] {
            let invalid = text.replacen(from, to, 1);
            assert_ne!(invalid, text);
            assert!(JobOrder::decode(invalid.as_bytes()).is_err(), "{invalid}");
        }
        for bytes in [&b""[..], b"leave", b"\xff\n"] {
            assert!(JobOrder::decode(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_path_that_is_not_text_is_an_error() {
        let path = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff"));
        let order = JobOrder::Capture(ReadTask { stones: 1, threads: 1, files: vec![path] });
        assert!(serde_json::to_vec(&order).is_err());
    }
}
