//! The role of this process in a job: an MPI launcher starts the program once per rank.

#[cfg(feature = "mpi")]
use crate::builds::request::PROGRAM;
#[cfg(feature = "mpi")]
use crate::error::CliError;
use crate::error::Result;
#[cfg(feature = "mpi")]
use disk::{Digest, Disk, ProcessIdentity, RealDisk};
use messaging::Communicator;
#[cfg(feature = "mpi")]
use stages::distributed::RankIdentity;
use stages::distributed::Roster;
#[cfg(feature = "mpi")]
use std::path::Path;

/// The role of a process.
#[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "there is no job without MPI"))]
pub(crate) enum JobRole {
    /// No job, or a job of one rank.
    Alone,
    /// Rank 0.
    First(JobMember),
    /// Another rank.
    Other(JobMember),
}

/// A rank of a job.
pub(crate) struct JobMember {
    pub(crate) communicator: Box<dyn Communicator>,
    /// All ranks, which run one program.
    pub(crate) roster: Roster,
}

/// The largest executable.
#[cfg(feature = "mpi")]
const EXECUTABLE_BYTES_MAX: u64 = 1 << 30;

#[cfg(feature = "mpi")]
impl JobMember {
    /// Introduces this rank to all others.
    fn new(mut communicator: Box<dyn Communicator>) -> Result<JobMember> {
        let executable = RealDisk::default().read(Path::new("/proc/self/exe"), EXECUTABLE_BYTES_MAX)?;
        let own = RankIdentity {
            process: ProcessIdentity::of_this_process(),
            release: PROGRAM.to_owned(),
            executable: Digest::of(&executable),
        };
        let roster = Roster::exchange(&mut *communicator, &own)?;
        roster.check_programs().map_err(CliError::MixedReleases)?;
        Ok(JobMember { communicator, roster })
    }
}

impl JobRole {
    /// Joins the job, if there is one.
    ///
    /// # Errors
    /// If MPI fails; if the ranks run different programs; if the launcher started more processes than MPI has
    /// ranks, or if there is a job and this program was built without MPI: then each rank would execute the
    /// whole run.
    #[cfg(feature = "mpi")]
    pub(crate) fn of_this_process() -> Result<JobRole> {
        let Some(mpi) = mpi_messaging::MpiCommunicator::start()? else { return Ok(JobRole::Alone) };
        let ranks = mpi.size() as u64;
        if let Some(started) = messaging::launched_size().filter(|&started| started > ranks) {
            return Err(CliError::StrangerRanks { started, ranks, library: mpi_messaging::MpiCommunicator::library() });
        }
        Ok(match (mpi.rank(), mpi.size()) {
            (_, 1) => JobRole::Alone,
            (0, _) => JobRole::First(JobMember::new(Box::new(mpi))?),
            _ => JobRole::Other(JobMember::new(Box::new(mpi))?),
        })
    }

    #[cfg(not(feature = "mpi"))]
    pub(crate) fn of_this_process() -> Result<JobRole> {
        if messaging::launched() { Err(crate::error::CliError::NoMpi) } else { Ok(JobRole::Alone) }
    }
}
