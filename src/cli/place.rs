//! Which place this process has in a job: launchers of MPI start a program once a rank.

use crate::error::CliError;
use messaging::Communicator;

/// A place in a job.
#[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "there is no job without MPI"))]
pub(crate) enum Place {
    /// There is no job.
    Alone,
    /// Rank 0.
    First(Box<dyn Communicator>),
    /// Another rank.
    Other(Box<dyn Communicator>),
}

impl Place {
    /// Joins the job, if there is one.
    ///
    /// # Errors
    /// If MPI fails; if there is a job, and this program was built without MPI: each rank would do all of it.
    #[cfg(feature = "mpi")]
    pub(crate) fn of_this_process() -> Result<Place, CliError> {
        let Some(mpi) = messaging::MpiCommunicator::start()? else { return Ok(Place::Alone) };
        let communicator: Box<dyn Communicator> = Box::new(mpi);
        Ok(match (communicator.rank(), communicator.size()) {
            (_, 1) => Place::Alone,
            (0, _) => Place::First(communicator),
            _ => Place::Other(communicator),
        })
    }

    #[cfg(not(feature = "mpi"))]
    pub(crate) fn of_this_process() -> Result<Place, CliError> {
        if messaging::launched() { Err(CliError::NoMpi) } else { Ok(Place::Alone) }
    }
}
