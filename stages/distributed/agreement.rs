//! Agreement of all ranks on whether a step succeeded.

use super::message;
use messaging::{CommunicationError, Communicator};
use pipeline::{ArtifactName, StageError, StageResult as Result};
use serde::{Deserialize, Serialize};
use solvers::ranks::JobError;

/// Failure of a task on a rank.
#[derive(Debug)]
pub(crate) enum RankFailure {
    /// Known to all ranks, which continue with the next order.
    Agreed(StageError),
    /// Known to this rank only: communication with the others failed.
    Isolated(StageError),
}

/// The result of a task on a rank.
pub(crate) type RankResult<T> = Result<T, RankFailure>;

impl From<JobError> for RankFailure {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Stopped => RankFailure::Agreed(StageError::Stopped),
            JobError::Inconsistent => RankFailure::Agreed(StageError::failed(error)),
            JobError::Communication(error) => error.into(),
        }
    }
}

/// A message could not be sent or received.
impl From<CommunicationError> for RankFailure {
    fn from(error: CommunicationError) -> Self {
        RankFailure::Isolated(StageError::failed(error))
    }
}

/// The error of the stage on rank 0.
impl From<RankFailure> for StageError {
    fn from(failure: RankFailure) -> Self {
        let (RankFailure::Agreed(error) | RankFailure::Isolated(error)) = failure;
        error
    }
}

/// Returns this rank's value if all ranks succeeded, else an error on each rank: its own, or the most severe one.
/// Damage is more severe than any other error, and a request to stop less.
pub(crate) fn agree<T>(communicator: &mut dyn Communicator, mine: Result<T, impl Into<StageError>>) -> RankResult<T> {
    let mine = mine.map_err(Into::into);
    let message = mine.as_ref().err().map(|error| message::encode(&RemoteError::of(error, communicator.rank())));
    let all = communicator.gather(0, message.unwrap_or_default())?;
    let verdict = match all {
        Some(all) => {
            let errors = all.iter().enumerate().filter(|(_, message)| !message.is_empty());
            let all =
                errors.map(|(rank, message)| RemoteError::decode(message, rank)).collect::<Result<Vec<_>, _>>()?;
            Some(RemoteError::worst(all).map_or_else(Vec::new, |error| message::encode(&error)))
        }
        None => None,
    };
    let verdict = communicator.broadcast(0, verdict)?;
    match mine {
        Err(error) if !matches!(error, StageError::Stopped) => Err(RankFailure::Agreed(error)),
        Ok(mine) if verdict.is_empty() => Ok(mine),
        _ => Err(RankFailure::Agreed(RemoteError::decode(&verdict, 0)?.into_error())),
    }
}

/// Error of a stage in a message to other ranks.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum RemoteError {
    Damaged { artifact: ArtifactName, what: String, silent: bool },
    Failed(String),
    Stopped,
}

impl RemoteError {
    fn of(error: &StageError, rank: usize) -> RemoteError {
        match error {
            StageError::Stopped => RemoteError::Stopped,
            StageError::Damaged { artifact, what, silent } => {
                RemoteError::Damaged { artifact: artifact.clone(), what: what.clone(), silent: *silent }
            }
            error => RemoteError::Failed(format!("rank {rank}: {error}")),
        }
    }

    /// Returns the most severe error: the first damage, or all failures together.
    fn worst(all: Vec<RemoteError>) -> Option<RemoteError> {
        let failed: Vec<&str> = all
            .iter()
            .filter_map(|error| match error {
                RemoteError::Failed(what) => Some(&**what),
                _ => None,
            })
            .collect();
        let failed = (!failed.is_empty()).then(|| RemoteError::Failed(failed.join("; ")));
        let is_damage = |error: &RemoteError| matches!(error, RemoteError::Damaged { .. });
        let is_any = !all.is_empty();
        let damaged = all.into_iter().find(is_damage);
        damaged.or(failed).or(is_any.then_some(RemoteError::Stopped))
    }

    fn decode(bytes: &[u8], rank: usize) -> messaging::Result<RemoteError> {
        message::decode(bytes, rank, "an error of a stage", |_| true)
    }

    fn into_error(self) -> StageError {
        match self {
            RemoteError::Damaged { artifact, what, silent } => StageError::Damaged { artifact, what, silent },
            RemoteError::Failed(what) => StageError::failed(what),
            RemoteError::Stopped => StageError::Stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;
    use messaging::{NetworkFaults, ThreadCommunicator};

    /// Returns the error that each rank gets if each starts with an error or none.
    fn agreed(errors: Vec<Option<StageError>>) -> Vec<Option<String>> {
        let ends = ThreadCommunicator::job(errors.len(), NetworkFaults::none());
        std::thread::scope(|scope| {
            let running: Vec<_> = ends
                .into_iter()
                .zip(errors)
                .map(|(mut end, error)| scope.spawn(move || agree(&mut end, error.map_or(Ok(()), Err))))
                .collect();
            let agreed_errors =
                |found: RankResult<()>| found.err().map(|failure| StageError::from(failure).to_string());
            running.into_iter().map(|rank| agreed_errors(rank.join().unwrap())).collect()
        })
    }

    #[test]
    fn all_ranks_get_the_most_severe_error() {
        let text = |text: &str| Some(text.to_owned());
        let failed = |text: &str| Some(StageError::failed(text.to_owned()));
        let damaged = |what: &str| {
            let what = format!("{what},\nin two lines");
            Some(StageError::Damaged { artifact: files::database(7), what, silent: true })
        };
        assert_eq!(agreed(vec![None, None, None]), [None, None, None]);
        let all = text("rank 1: no room; rank 2: no disk");
        assert_eq!(agreed(vec![None, failed("no room"), failed("no disk")])[0], all);
        let stopped = agreed(vec![None, Some(StageError::Stopped), None]);
        assert_eq!(stopped, vec![text("stopped on request"); 3]);
        let agreed_errors =
            agreed(vec![Some(StageError::Stopped), failed("no room"), damaged("first"), damaged("second")]);
        let first = "databases/07.awari is damaged: first,\nin two lines";
        assert_eq!(agreed_errors[0], text(first));
        assert_eq!(agreed_errors[1], text("no room"), "each has its own");
    }

    #[test]
    fn invalid_messages_are_rejected() {
        for bytes in [&b""[..], b"stopped", br#"{"Damaged":{"artifact":"../x","what":"y","silent":true}}"#] {
            assert!(RemoteError::decode(bytes, 1).is_err(), "{bytes:?}");
        }
    }
}
