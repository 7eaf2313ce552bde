//! Kernels of a build on one thread: captures and sweep. The bench `codecs` measures the store.

use bench::{captures, solve};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use engines::{Kernel, ScoreRows, Tables, sweep};
use game::{Index, PositionSet, Rules};

/// Stones: a database that fits in the third-level cache of most machines.
const STONES: u32 = 14;
/// Under `cargo test` everything runs once, on less.
const STONES_IN_TESTS: u32 = 6;

fn parts(criterion: &mut Criterion) {
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let stones = if measuring { STONES } else { STONES_IN_TESTS };
    let set = PositionSet::All;
    let pool = bench::pool(1);
    let mut solved = pool.install(|| solve(set, stones, |_| {}));
    let last = solved.pop().expect("a database was solved");
    let tables = Tables::new(Rules::AWARI, set, stones);
    let index = Index::new(stones, set);
    let best = captures(&tables, &index, &solved);

    let mut group = criterion.benchmark_group(format!("one thread, {stones} stones"));
    group.throughput(Throughput::Elements(index.positions())).sample_size(10);
    group.bench_function("capture", |bencher| {
        bencher.iter(|| pool.install(|| assert!(captures(&tables, &index, &solved)[..] == best[..])));
    });
    for kernel in Kernel::available() {
        group.bench_function(format!("sweep {kernel:?}"), |bencher| {
            let zeros = || ScoreRows::zeroed(&index).expect("there is memory");
            let sweep = |mut values: ScoreRows| {
                pool.install(|| sweep::sweep(&tables, &index, &best, &mut values, kernel, &(), &mut |_| {}))
                    .expect("no observer stops it");
                assert!(values.to_vec() == last);
            };
            bencher.iter_batched(zeros, sweep, BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, parts);
criterion_main!(benches);
