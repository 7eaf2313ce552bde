//! The closing summary of `cargo test --workspace`: the tests that did not run, and why. No test itself.
//!
//! Cargo runs targets by the names of their packages and then by their own, so this one comes last.

use solvers::Kernel;
use tests::needs::Need;

fn main() {
    let is_slow = std::env::args().any(|argument| argument == "--ignored");
    let mut needs = if is_slow { Need::OF_THE_SLOW_TIER.to_vec() } else { Need::OF_THE_FAST_TIER.to_vec() };
    if cfg!(feature = "mpi") {
        needs.extend(Need::OF_MPI);
    }
    if cfg!(feature = "browser") {
        needs.extend([Need::Chromium, Need::Axe]);
    }
    let mut lines: Vec<String> = needs.into_iter().filter_map(Need::skipped).collect();
    for kernel in [Kernel::Avx2, Kernel::Avx512] {
        if !Kernel::available().any(|available| available == kernel) {
            lines.push(format!("skipped: tests of the {kernel} kernels: this processor has no such instructions"));
        }
    }
    if !cfg!(feature = "mpi") {
        let tests = Need::Mpirun.tests();
        lines.push(format!("not built: {tests}: need an MPI and `--features tests/mpi`"));
    }
    if !cfg!(feature = "parquet") {
        lines.push("not built: formats (export), exchange, Parquet: need `--features tests/parquet`".to_owned());
    }
    if !cfg!(feature = "browser") {
        lines.push(format!("not built: {}: needs Chromium and `--features tests/browser`", Need::Chromium.tests()));
    }
    if !is_slow {
        let slow = "long fault runs, every planted fault and every example";
        lines.push(format!("not run: the slow tier ({slow}): `cargo test -p tests -- --ignored`"));
    }
    println!("\nTests that did not run:");
    match &lines[..] {
        [] => println!("none"),
        lines => lines.iter().for_each(|line| println!("{line}")),
    }
}
