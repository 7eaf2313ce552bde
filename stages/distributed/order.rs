//! Orders of the leader to the other ranks.

use super::message;
use messaging::CommunicationError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;

/// A stage that all ranks run, or the end of the job.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum JobOrder {
    Stage(StageOrder),
    /// End of the job.
    Leave,
}

/// A stage that all ranks run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StageOrder {
    /// The kind of the stage.
    pub(crate) kind: String,
    /// What the kind needs to know, as JSON.
    task: Value,
}

/// What a kind of stage sends to the other ranks.
pub(crate) trait StageTask: Serialize + DeserializeOwned {
    /// Whether all numbers are possible.
    fn is_valid(&self) -> bool;
}

/// The task of a stage of one database.
pub(crate) trait DatabaseTask: StageTask {
    /// The stones of the database.
    fn stones(&self) -> u32;
}

impl StageOrder {
    /// Orders a task of a kind.
    ///
    /// # Errors
    /// If a path is not UTF-8.
    pub(super) fn new(kind: &str, task: &impl StageTask) -> serde_json::Result<StageOrder> {
        Ok(StageOrder { kind: kind.to_owned(), task: serde_json::to_value(task)? })
    }

    /// Returns the task of a kind.
    ///
    /// # Errors
    /// If the order holds no valid task.
    pub(crate) fn task<T: StageTask>(&self) -> messaging::Result<T> {
        T::deserialize(&self.task).ok().filter(T::is_valid).ok_or_else(|| self.unexpected())
    }

    /// Returns the error of an order that this rank cannot carry out.
    pub(crate) fn unexpected(&self) -> CommunicationError {
        let found = format!("{} {}", self.kind, self.task);
        CommunicationError::Unexpected { rank: 0, expected: "an order".to_owned(), found }
    }
}

/// The name of the stage, as far as the task says it.
impl fmt::Display for StageOrder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let number = |name: &&str| self.task.get(name)?.as_u64();
        // Bound 0 stands for all.
        let bound = Some("bound").filter(|name| number(name) > Some(0));
        let numbers = Some("stones").iter().chain(&bound).filter_map(number);
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        f.write_str(&self.kind)?;
        if numbers.is_empty() { Ok(()) } else { write!(f, ":{}", numbers.join(":")) }
    }
}

/// A database of a stage, and the files that the stage reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadTask {
    pub(crate) stones: u32,
    /// Threads of the leader.
    pub(crate) threads: usize,
    /// Databases in ascending order of stones; for `stats`, captures or seeds where they are needed, and scores.
    pub(crate) files: Vec<PathBuf>,
}

impl DatabaseTask for ReadTask {
    fn stones(&self) -> u32 {
        self.stones
    }
}

impl StageTask for ReadTask {
    fn is_valid(&self) -> bool {
        self.stones <= game::STONES_MAX && self.threads > 0
    }
}

impl JobOrder {
    pub(crate) fn decode(bytes: &[u8]) -> messaging::Result<JobOrder> {
        message::decode(bytes, 0, "an order", |_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = r#"{"Stage":{"kind":"any","task":{"stones":24,"threads":2,"files":["/runs/a b/24.awari"]}}}"#;

    fn read(text: &str) -> messaging::Result<ReadTask> {
        match JobOrder::decode(text.as_bytes())? {
            JobOrder::Stage(order) => order.task(),
            JobOrder::Leave => panic!("{text} is not the end of the job"),
        }
    }

    #[test]
    fn orders_are_decoded() {
        let task = read(READ).unwrap();
        assert_eq!((task.stones, task.threads, task.files.len()), (24, 2, 1));
        let order = JobOrder::Stage(StageOrder::new("any", &task).unwrap());
        assert_eq!(JobOrder::decode(&message::encode(&order)).unwrap(), order);
        assert_eq!(JobOrder::decode(b"\"Leave\"").unwrap(), JobOrder::Leave);
    }

    #[test]
    fn orders_have_the_names_of_their_stages() {
        let name =
            |task: &str| StageOrder { kind: "any".to_owned(), task: serde_json::from_str(task).unwrap() }.to_string();
        assert_eq!(name(r#"{"bound":3,"stones":24}"#), "any:24:3");
        assert_eq!(name(r#"{"bound":0,"stones":24}"#), "any:24");
        assert_eq!(name(r#"{"stones":24}"#), "any:24");
        assert_eq!(name("[]"), "any");
    }

    #[test]
    fn invalid_orders_are_rejected() {
        for (from, to) in [
            ("}}}", "}}"),
            ("}}}", "}}}1"),
            ("Stage", "Leave"),
            ("kind", "sort"),
            (":24", ":49"),
            (":2,", ":0,"),
            (":2,", ":-1,"),
        ] {
            let invalid = READ.replacen(from, to, 1);
            assert_ne!(invalid, READ);
            assert!(read(&invalid).is_err(), "{invalid}");
        }
        for bytes in [&b""[..], b"leave", b"\xff\n"] {
            assert!(JobOrder::decode(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_path_that_is_not_text_is_an_error() {
        let path = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff"));
        assert!(StageOrder::new("any", &ReadTask { stones: 1, threads: 1, files: vec![path] }).is_err());
    }
}
