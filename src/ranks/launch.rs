//! Whether this process is one of several.

use std::env;

/// What launchers set in each process they start: MPICH and its relatives, Open MPI, whatever uses PMIx.
const LAUNCHERS: [&str; 3] = ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"];

/// Whether a launcher (`mpirun`, `srun`) started this process, as one of the ranks of a job. Needs no MPI: a program
/// without it can say so, instead of doing the same work once a rank.
pub fn launched() -> bool {
    launched_rank().is_some()
}

/// The rank that a launcher gave this process. Needs no MPI either: what is not for ranks can be left to the first.
pub fn launched_rank() -> Option<u64> {
    rank_in(|name| env::var(name).ok())
}

fn rank_in(variable: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let number = |name| variable(name).map(|text| text.trim().parse::<u64>());
    // A batch script of Slurm has a SLURM_PROCID too; only a step, which `srun` starts, has a number of tasks.
    let is_step = number("SLURM_STEP_NUM_TASKS").is_some_and(|tasks| tasks.is_ok_and(|tasks| tasks > 1));
    let slurm = number("SLURM_PROCID").filter(|_| is_step);
    let rank = LAUNCHERS.iter().find_map(|name| number(name)).or(slurm)?;
    // One that cannot be read: somebody has to do the work.
    Some(rank.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_told_by_what_they_set() {
        let check = |variables: &[(&str, &str)], expect: Option<u64>| {
            let found =
                rank_in(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()));
            assert_eq!(found, expect, "{variables:?}");
        };
        check(&[], None);
        check(&[("PMI_RANK", "0")], Some(0));
        check(&[("OMPI_COMM_WORLD_RANK", "3")], Some(3));
        check(&[("PMIX_RANK", "x")], Some(0));
        check(&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")], Some(1));
        // A batch script, and a shell on a node.
        check(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "16")], None);
        check(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")], None);
    }
}
