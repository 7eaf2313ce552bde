//! Jobs of one or several ranks that a seed draws and disturbs: faults of the disk, late messages and lost ranks, clocks that
//! jump, requests to stop. What is there in the end is what an undisturbed build makes, byte for byte.
//!
//! `cargo run --release -p tests --bin torture -- --job SEED` runs one of them and says what it consists of.

use std::time::Duration;
use tests::torture::{Simulation, Simulations};

#[test]
fn some_simulated_jobs_build_the_files_of_an_undisturbed_one() {
    simulated_jobs_build_the_files_of_an_undisturbed_one(20);
}

#[test]
#[ignore = "slow tier: many jobs"]
fn many_simulated_jobs_build_the_files_of_an_undisturbed_one() {
    simulated_jobs_build_the_files_of_an_undisturbed_one(120);
}

fn simulated_jobs_build_the_files_of_an_undisturbed_one(jobs: u64) {
    let simulations = Simulations { seed: 1, jobs, time_max: Duration::MAX, threads: disk::clock::cores() };
    let simulated = simulations.run(|_| {}, |_| {});
    println!("{simulated}");
    assert!(simulated.wrong.is_empty(), "{}", simulated.wrong.join("\n"));
    // Each kind of disturbance was there.
    let counts = &simulated.counts;
    assert_eq!(counts["jobs"], jobs);
    assert!(jobs < 60 || counts.values().all(|&count| count > 0), "{counts:?}");
}

/// By one rank, a seed gives one history.
#[test]
fn a_seed_reproduces_a_job_of_one_rank() {
    let seeds: Vec<u64> = (1..).filter(|&seed| Simulation::new(seed).is_alone()).take(4).collect();
    for seed in seeds {
        let operations = || Simulation::new(seed).operations().unwrap();
        assert_eq!(operations(), operations(), "seed {seed}");
    }
}
