//! The closing summary of `cargo test --workspace`: the tests that this machine cannot run. No test itself.
//!
//! Cargo runs targets by the names of their packages and then by their own, so this one comes last. With the argument `mpi`
//! it speaks of a build with `--features tests/mpi`.

use engines::Kernel;
use tests::needs::Need;

fn main() {
    let needs = Need::OF_THE_WORKSPACE.into_iter().chain(Need::OF_THE_SLOW_TIER);
    let mut lines: Vec<String> = needs.filter_map(Need::skipped).collect();
    for kernel in [Kernel::Avx2, Kernel::Avx512] {
        if !Kernel::available().any(|available| available == kernel) {
            lines.push(format!("skipped: tests of the {kernel} kernels: this processor has no such instructions"));
        }
    }
    if std::env::args().any(|argument| argument == "mpi") {
        lines.extend(Need::OF_MPI.into_iter().filter_map(Need::skipped));
    } else {
        lines.push(format!(
            "skipped: {}: not built; `cargo test --workspace --features tests/mpi --test cluster mpi` and \
             `cargo test -p messaging --features mpi` run them, with an MPI",
            Need::Mpirun.tests()
        ));
    }
    println!("\nTests that were skipped on this machine:");
    match &lines[..] {
        [] => println!("none"),
        lines => lines.iter().for_each(|line| println!("{line}")),
    }
}
