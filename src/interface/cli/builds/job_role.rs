//! The role of this process in a job: an MPI launcher starts the program once per rank.

use crate::error::Result;
use messaging::Communicator;

/// The role of a process.
#[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "there is no job without MPI"))]
pub(crate) enum JobRole {
    /// No job, or a job of one rank.
    Alone,
    /// Rank 0.
    First(Box<dyn Communicator>),
    /// Another rank.
    Other(Box<dyn Communicator>),
}

impl JobRole {
    /// Joins the job, if there is one.
    ///
    /// # Errors
    /// If MPI fails, or if there is a job and this program was built without MPI: then each rank would execute the
    /// whole run.
    #[cfg(feature = "mpi")]
    pub(crate) fn of_this_process() -> Result<JobRole> {
        let Some(mpi) = mpi_messaging::MpiCommunicator::start()? else { return Ok(JobRole::Alone) };
        let communicator: Box<dyn Communicator> = Box::new(mpi);
        Ok(match (communicator.rank(), communicator.size()) {
            (_, 1) => JobRole::Alone,
            (0, _) => JobRole::First(communicator),
            _ => JobRole::Other(communicator),
        })
    }

    #[cfg(not(feature = "mpi"))]
    pub(crate) fn of_this_process() -> Result<JobRole> {
        if messaging::launched() { Err(crate::error::CliError::NoMpi) } else { Ok(JobRole::Alone) }
    }
}
