//! Whether this process is one of several.

use std::env;

/// What launchers set in each process they start: MPICH and its relatives, Open MPI, whatever uses PMIx.
const LAUNCHERS: [&str; 3] = ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"];

/// Whether a launcher (`mpirun`, `srun`) started this process, as one of the ranks of a job. Needs no MPI: a program
/// without it can say so, instead of doing the same work once a rank.
pub fn launched() -> bool {
    launched_in(|name| env::var(name).ok())
}

fn launched_in(variable: impl Fn(&str) -> Option<String>) -> bool {
    // A batch script of Slurm has a SLURM_PROCID too; only a step, which `srun` starts, has a number of tasks.
    let step = variable("SLURM_STEP_NUM_TASKS").and_then(|tasks| tasks.trim().parse().ok()).unwrap_or(1u64);
    let slurm = variable("SLURM_PROCID").is_some() && step > 1;
    slurm || LAUNCHERS.iter().any(|name| variable(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_told_by_what_they_set() {
        let check = |variables: &[(&str, &str)], expect: bool| {
            let found = launched_in(|name| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            });
            assert_eq!(found, expect, "{variables:?}");
        };
        check(&[], false);
        check(&[("PMI_RANK", "0")], true);
        check(&[("OMPI_COMM_WORLD_RANK", "3")], true);
        check(&[("PMIX_RANK", "0")], true);
        check(&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")], true);
        // A batch script, and a shell on a node.
        check(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "16")], false);
        check(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")], false);
    }
}
