//! Seeded jobs of one or several ranks, and of several stages at a time, with disk faults, late messages,
//! lost ranks, clock jumps and requests to stop. Each ends with the files of an undisturbed build, byte for
//! byte.
//!
//! `cargo run --release -p tests --bin torture -- --job SEED` runs one of them and prints its faults.

use std::time::Duration;
use tests::torture::{Simulation, Simulations};

#[test]
fn some_simulated_jobs_build_the_files_of_an_undisturbed_one() {
    simulated_jobs_build_the_files_of_an_undisturbed_one(8);
}

#[test]
#[ignore = "slow tier: many jobs"]
fn many_simulated_jobs_build_the_files_of_an_undisturbed_one() {
    simulated_jobs_build_the_files_of_an_undisturbed_one(40);
}

fn simulated_jobs_build_the_files_of_an_undisturbed_one(jobs: u64) {
    let simulations = Simulations { seed: 1, jobs, time_max: Duration::MAX, threads: disk::clock::cores() };
    let simulated = simulations.run(|_| {}, |_| {});
    println!("{simulated}");
    assert!(simulated.wrong.is_empty(), "{}", simulated.wrong.join("\n"));
    // Each kind of fault occurred.
    let counts = &simulated.counts;
    assert_eq!(counts["jobs"], jobs);
    assert!(jobs < 60 || counts.values().all(|&count| count > 0), "{counts:?}");
}

/// With one rank, a seed determines every operation.
#[test]
fn a_seed_reproduces_a_job_of_one_rank() {
    for stages in 1..=3 {
        let is_such = |seed: &u64| {
            let simulation = Simulation::new(*seed);
            simulation.is_alone() && simulation.stages_at_a_time() == stages
        };
        let seed = (1..).find(is_such).unwrap();
        let operations = || Simulation::new(seed).operations().unwrap();
        assert_eq!(operations(), operations(), "seed {seed}");
    }
}
