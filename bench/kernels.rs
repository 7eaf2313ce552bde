//! Kernels of a build on one thread: captures and sweep. The bench `codecs` measures the store.

use bench::{Largest, captures};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use game::PositionSet;
use messaging::Alone;
use solvers::sweep::{RankScores, sweep};
use solvers::{Kernel, ScoreRows};

/// Stones: a database that fits in the third-level cache of most machines.
const STONES: u32 = 14;
/// Under `cargo test` everything runs once, on less.
const STONES_IN_TESTS: u32 = 6;

fn parts(criterion: &mut Criterion) {
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let stones = if measuring { STONES } else { STONES_IN_TESTS };
    let pool = bench::pool(1);
    let largest = pool.install(|| Largest::new(PositionSet::All, stones));
    let Largest { tables, index, captures: best, scores, smaller } = largest;

    let mut group = criterion.benchmark_group(format!("one thread, {stones} stones"));
    group.throughput(Throughput::Elements(index.positions())).sample_size(10);
    group.bench_function("capture", |bencher| {
        bencher.iter(|| pool.install(|| assert!(captures(&tables, &index, &smaller)[..] == best[..])));
    });
    for kernel in Kernel::available() {
        group.bench_function(format!("sweep {kernel:?}"), |bencher| {
            let zeros = || {
                let rows = ScoreRows::zeroed(&index).expect("there is memory");
                RankScores::alone(&tables, &index, rows)
            };
            let sweep = |mut values: RankScores| {
                pool.install(|| sweep(&tables, &index, &best, &mut values, kernel, &mut Alone, &()))
                    .expect("no observer stops it");
                assert!(values.rows().to_vec() == scores);
            };
            bencher.iter_batched(zeros, sweep, BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, parts);
criterion_main!(benches);
