//! The ranks of a job, as they introduce themselves to each other before anything else.

use super::message;
use disk::{Digest, ProcessIdentity};
use messaging::{CommunicationError, Communicator};
use serde::{Deserialize, Serialize};

/// A rank of a job: its process and its program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankIdentity {
    /// Its process.
    pub process: ProcessIdentity,
    /// Name and version of its program.
    pub release: String,
    /// Digest of its executable.
    pub executable: Digest,
}

/// The identities of all ranks of a job, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster(Vec<RankIdentity>);

impl Roster {
    /// Exchanges the identities of all ranks. The first message is one of rank 0 that a rank of any release
    /// refuses if it does not expect it, so that no release waits for another.
    ///
    /// # Errors
    /// Those of communication, or if a rank sends anything else.
    pub fn exchange(communicator: &mut dyn Communicator, own: &RankIdentity) -> messaging::Result<Roster> {
        let is_first = communicator.rank() == 0;
        let first = communicator.broadcast(0, is_first.then(|| message::encode(own)))?;
        decode(&first, 0)?;
        let all = communicator.gather(0, message::encode(own))?;
        let all = all.map(|all| {
            let decode = |(rank, bytes): (usize, &Vec<u8>)| decode(bytes, rank);
            all.iter().enumerate().map(decode).collect::<messaging::Result<Vec<RankIdentity>>>()
        });
        let all = all.transpose()?.map(|all| message::encode(&Roster(all)));
        let all = communicator.broadcast(0, all)?;
        let ranks = communicator.size();
        message::decode(&all, 0, "the ranks of the job", |roster: &Roster| roster.0.len() == ranks)
    }

    /// Checks that all ranks run one program: messages have no version.
    ///
    /// # Errors
    /// If one does not, the same on all ranks.
    pub fn check_programs(&self) -> messaging::Result<()> {
        let is_other = |rank: &RankIdentity| !rank.is_same_program(&self.0[0]);
        match self.0.iter().position(is_other) {
            Some(rank) => Err(self.mixed(rank)),
            None => Ok(()),
        }
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.0.len()
    }

    /// Returns the identity of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn of(&self, rank: usize) -> &RankIdentity {
        &self.0[rank]
    }

    fn mixed(&self, rank: usize) -> CommunicationError {
        CommunicationError::Unexpected {
            rank,
            expected: format!("the program of rank 0, {}", self.0[0].program()),
            found: self.0[rank].program(),
        }
    }
}

impl RankIdentity {
    fn is_same_program(&self, other: &RankIdentity) -> bool {
        (&self.release, self.executable) == (&other.release, other.executable)
    }

    fn program(&self) -> String {
        format!("{} ({}) on {}", self.release, &self.executable.to_string()[..8], self.process.host)
    }
}

fn decode(bytes: &[u8], rank: usize) -> messaging::Result<RankIdentity> {
    message::decode(bytes, rank, "an introduction", |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributed::JobOrder;
    use messaging::{NetworkFaults, ThreadCommunicator};
    use std::thread;

    fn identity(release: &str) -> RankIdentity {
        RankIdentity {
            process: ProcessIdentity::of_this_process(),
            release: release.to_owned(),
            executable: Digest::of(b"a program"),
        }
    }

    fn exchange(releases: &[&str]) -> Vec<messaging::Result<Roster>> {
        let ends = ThreadCommunicator::job(releases.len(), NetworkFaults::none());
        thread::scope(|scope| {
            let start = |(mut end, release): (ThreadCommunicator, &&str)| {
                let own = identity(release);
                scope.spawn(move || Roster::exchange(&mut end, &own))
            };
            let running: Vec<_> = ends.into_iter().zip(releases).map(start).collect();
            running.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn ranks_of_one_release_get_one_roster() {
        for roster in exchange(&["awari 2", "awari 2", "awari 2"]) {
            let roster = roster.unwrap();
            assert_eq!(roster, Roster(vec![identity("awari 2"); 3]));
            roster.check_programs().unwrap();
        }
    }

    #[test]
    fn mixed_releases_are_refused_on_all_ranks() {
        for roster in exchange(&["awari 2", "awari 2", "awari 1"]) {
            let error = roster.unwrap().check_programs().unwrap_err().to_string();
            assert!(error.starts_with("rank 2 sent awari 1 (") && error.contains("rank 0, awari 2 ("), "{error}");
        }
    }

    /// A release that knows no introductions waits for an order, or sends one.
    #[test]
    fn releases_without_introductions_do_not_wait() {
        assert!(JobOrder::decode(&message::encode(&identity("awari 2"))).is_err());
        assert!(decode(&message::encode(&JobOrder::Leave), 0).is_err());
    }
}
