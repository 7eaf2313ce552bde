//! Detection of a launcher that started this process as a rank.

use std::env;
use std::path::Path;

/// Variables with the address of the PMIx server, by version of the protocol.
const PMIX_SERVERS: [&str; 6] = [
    "PMIX_SERVER_URI",
    "PMIX_SERVER_URI2",
    "PMIX_SERVER_URI21",
    "PMIX_SERVER_URI3",
    "PMIX_SERVER_URI4",
    "PMIX_SERVER_URI41",
];

/// Whether a launcher (`mpirun`, `srun`) started this process as a rank of a job. Works without MPI, so that a program
/// built without it can refuse, instead of doing the same work once a rank.
pub fn launched() -> bool {
    launched_rank().is_some()
}

/// Returns the rank that a launcher gave this process. Works without MPI.
///
/// A rank number in the environment is not enough, since a shell may keep it after its job: it must be below the size
/// of the job, and there must be a connection to the launcher.
pub fn launched_rank() -> Option<u64> {
    rank_in(|name| env::var(name).ok(), |file| Path::new(&format!("/proc/self/fd/{file}")).exists())
}

/// Returns the number of ranks that a launcher started, if it says so. Works without MPI.
pub fn launched_size() -> Option<u64> {
    size_in(|name| env::var(name).ok())
}

/// The innermost launcher counts: a job of `mpirun` may be one of fewer ranks inside an allocation of Slurm.
fn size_in(variable: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let names = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"];
    names.iter().find_map(|name| variable(name)?.trim().parse().ok())
}

fn rank_in(variable: impl Fn(&str) -> Option<String>, is_open: impl Fn(u64) -> bool) -> Option<u64> {
    let number = |name| variable(name)?.trim().parse::<u64>().ok();
    let below = |rank, size| Some(number(rank)?).filter(|&rank| number(size).is_some_and(|size| rank < size));
    // MPICH and its derivatives, connected to their launcher by a file descriptor or a port.
    let mpich = || match number("PMI_FD") {
        Some(file) => is_open(file).then(|| below("PMI_RANK", "PMI_SIZE"))?,
        None => variable("PMI_PORT").or_else(|| variable("PMI_CONTROL_PORT")).and(below("PMI_RANK", "PMI_SIZE")),
    };
    let open_mpi = || below("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
    let pmix = || {
        let has_server = PMIX_SERVERS.iter().any(|name| variable(name).is_some());
        number("PMIX_RANK").filter(|_| has_server && variable("PMIX_NAMESPACE").is_some())
    };
    // Slurm: a batch script has a SLURM_PROCID too, but only a step started by `srun` has a number of tasks.
    let slurm = || below("SLURM_PROCID", "SLURM_STEP_NUM_TASKS").filter(|_| number("SLURM_STEP_NUM_TASKS") > Some(1));
    mpich().or_else(open_mpi).or_else(pmix).or_else(slurm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_launcher_says_the_number_of_ranks() {
        let check = |variables: &[(&str, &str)], expect: Option<u64>| {
            let variable =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(size_in(variable), expect, "{variables:?}");
        };
        check(&[], None);
        check(&[("SLURM_NTASKS", "16")], None);
        check(&[("SLURM_STEP_NUM_TASKS", "3")], Some(3));
        check(&[("SLURM_STEP_NUM_TASKS", "3"), ("PMI_SIZE", "2")], Some(2));
        check(&[("SLURM_STEP_NUM_TASKS", "3"), ("OMPI_COMM_WORLD_SIZE", "2")], Some(2));
        check(&[("PMI_SIZE", "x"), ("SLURM_STEP_NUM_TASKS", "3")], Some(3));
    }

    #[test]
    fn launchers_are_recognized_by_their_variables() {
        let check = |variables: &[(&str, &str)], expect: Option<u64>| {
            let variable =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(rank_in(variable, |file| file == 7), expect, "{variables:?}");
        };
        check(&[], None);
        check(&[("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("PMI_FD", "7")], Some(1));
        check(&[("PMI_RANK", "0"), ("PMI_SIZE", "1"), ("PMI_FD", "7")], Some(0));
        check(&[("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("PMI_PORT", "host:1234")], Some(1));
        check(&[("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")], Some(3));
        check(&[("PMIX_RANK", "2"), ("PMIX_NAMESPACE", "x"), ("PMIX_SERVER_URI4", "tcp4://host")], Some(2));
        check(&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")], Some(1));
        // A batch script, and a shell on a node.
        check(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "16")], None);
        check(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")], None);
        // Left by a job that is over.
        check(&[("PMI_RANK", "1")], None);
        check(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")], None);
        check(&[("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("PMI_FD", "8")], None);
        check(&[("PMI_RANK", "1"), ("PMI_SIZE", "1"), ("PMI_FD", "7")], None);
        check(&[("OMPI_COMM_WORLD_RANK", "3")], None);
        check(&[("OMPI_COMM_WORLD_RANK", "x"), ("OMPI_COMM_WORLD_SIZE", "4")], None);
        check(&[("PMIX_RANK", "1")], None);
        check(&[("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "x")], None);
    }
}
