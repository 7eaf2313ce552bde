//! Jobs of in-process ranks, with and without injected network faults.

use super::{RankScores, ScorePartition, SweepReport, sweep};
use crate::capture::{InMemory, capture_into};
use crate::ranks::{JobError, JobObserver, ScoreShare, collect};
use crate::{Bytes, DriverObserver, Kernel, ScoreRows, Tables};
use game::{Index, PositionSet, Rules, Score};
use messaging::{Alone, CommunicationError, Communicator, NetworkFaults, ThreadCommunicator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Solves databases 0 to `stones` on one machine.
pub(crate) fn alone(rules: Rules, set: PositionSet, stones: u32) -> Vec<Vec<Score>> {
    let tables = Tables::new(rules, set, stones);
    let mut databases: Vec<Vec<Score>> = Vec::new();
    for stones in 0..=stones {
        let index = Index::new(stones, set);
        let best = whole_captures(&tables, &index, &databases);
        let (rows, _) = crate::sweep::solve(&tables, &index, &best, Kernel::detect()).unwrap();
        databases.push(rows.to_vec());
    }
    databases
}

/// Runs each rank of a job on a thread, and returns their results by rank.
pub(crate) fn job<T: Send>(
    ranks: usize,
    threads: usize,
    faults: NetworkFaults,
    rank: impl Fn(&mut dyn Communicator) -> T + Sync,
) -> Vec<T> {
    let ends = ThreadCommunicator::job(ranks, faults);
    std::thread::scope(|scope| {
        let rank = &rank;
        let run = |mut end: ThreadCommunicator| {
            scope.spawn(move || {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| rank(&mut end))
            })
        };
        let running: Vec<_> = ends.into_iter().map(run).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Computes the captures of a database.
pub(crate) fn whole_captures(tables: &Tables, index: &Index, smaller: &[Vec<Score>]) -> Bytes {
    let mut best = Bytes::zeroed(index.slab_positions() as usize).unwrap();
    let smaller = InMemory::new(tables.set(), smaller.iter().map(Vec::as_slice));
    capture_into(tables, index, &smaller, &(), &mut best, &mut |_| Ok(())).unwrap();
    best
}

/// Computes the captures of a rank.
fn captures(tables: &Tables, index: &Index, part: &RankScores, smaller: &[Vec<Score>]) -> Bytes {
    let best = whole_captures(tables, index, smaller);
    let read = |positions: Range<u64>, out: &mut [Score]| {
        out.copy_from_slice(&best[positions.start as usize..positions.end as usize]);
        Ok::<_, std::io::Error>(())
    };
    part.captures(read).unwrap()
}

/// Allocates the scores of a rank.
fn part(tables: &Tables, index: &Index, ranks: usize, rank: usize) -> RankScores {
    RankScores::zeroed(tables, Arc::new(ScorePartition::new(tables, index.slabs(), ranks)), rank).unwrap()
}

/// Solves a database with a job.
fn solved(
    tables: &Tables,
    stones: u32,
    smaller: &[Vec<Score>],
    end: &mut dyn Communicator,
    kernel: Kernel,
) -> (Vec<Score>, SweepReport) {
    let index = Index::new(stones, tables.set());
    let mut part = part(tables, &index, end.size(), end.rank());
    let captures = captures(tables, &index, &part, smaller);
    let report = sweep(tables, &index, &captures, &mut part, kernel, end, &()).unwrap();
    (collected(&part, &index, end), report)
}

/// Ranges of positions for all ranks, of about equal size, except that the second is empty.
pub(crate) fn ranges(index: &Index, ranks: usize) -> Vec<Range<u64>> {
    let cut = |rank: usize| index.slab_positions() * rank as u64 / ranks as u64;
    let range = |rank: usize| match rank {
        0 if ranks > 1 => 0..cut(2),
        1 => cut(2)..cut(2),
        _ => cut(rank)..cut(rank + 1),
    };
    (0..ranks).map(range).collect()
}

/// Collects the range of a rank.
pub(crate) fn collected(part: &dyn ScoreShare, index: &Index, end: &mut dyn Communicator) -> Vec<Score> {
    let mut scores = Vec::new();
    let mut sink = |run: &[Score]| {
        scores.extend_from_slice(run);
        ControlFlow::Continue(())
    };
    assert!(collect(part, &ranges(index, end.size()), end, &mut sink).unwrap());
    scores
}

/// Concatenates the ranges that the ranks have collected.
pub(crate) fn concatenated<'a>(index: &Index, found: impl ExactSizeIterator<Item = &'a Vec<Score>>) -> Vec<Score> {
    let lengths: Vec<_> = ranges(index, found.len()).iter().map(|range| (range.end - range.start) as usize).collect();
    let found: Vec<_> = found.collect();
    assert!(found.iter().map(|scores| scores.len()).eq(lengths));
    found.into_iter().flatten().copied().collect()
}

#[test]
fn any_number_of_ranks_makes_the_databases_of_one_machine() {
    for (rules, set, stones) in [
        (Rules::AWARI, PositionSet::All, 9),
        (Rules::AWARI, PositionSet::REACHABLE, 10),
        (Rules::WARI, PositionSet::All, 7),
        (Rules::SLAM_ILLEGAL_OWN_SIDE, PositionSet::REACHABLE, 8),
    ] {
        let expected = alone(rules, set, stones);
        let tables = Tables::new(rules, set, stones);
        for (ranks, threads) in [(1, 1), (2, 1), (3, 2), (4, 1), (7, 1)] {
            for stones in 0..=stones {
                let (expected, smaller) = (&expected[stones as usize], &expected[..stones as usize]);
                let found = job(ranks, threads, NetworkFaults::none(), |end| {
                    solved(&tables, stones, smaller, end, Kernel::detect())
                });
                let index = Index::new(stones, set);
                let scores = concatenated(&index, found.iter().map(|(scores, _)| scores));
                assert!(scores == *expected, "{stones} stones, {set}, by {ranks} ranks");
                let together = |report: &SweepReport| (report.passes, report.recomputed, report.changed);
                assert!(found.iter().all(|(_, report)| together(report) == together(&found[0].1)));
            }
        }
    }
}

#[test]
fn network_faults_and_kernels_change_nothing() {
    let (set, stones) = (PositionSet::All, 8);
    let expected = alone(Rules::AWARI, set, stones);
    let tables = Tables::new(Rules::AWARI, set, stones);
    let smaller = &expected[..stones as usize];
    for (seed, kernel) in (0..).zip(Kernel::available()) {
        let found = job(3, 1, NetworkFaults::jitter(seed), |end| solved(&tables, stones, smaller, end, kernel));
        let scores = concatenated(&Index::new(stones, set), found.iter().map(|(scores, _)| scores));
        assert!(scores == expected[stones as usize], "{kernel:?}, seed {seed}");
    }
}

/// Observer that takes a checkpoint at every chance, and stops after a number of recomputed positions.
struct CheckpointAlways<'a> {
    stop_at: u64,
    kept: &'a Mutex<Vec<(usize, usize, Vec<Score>)>>,
    taken: AtomicU64,
}

impl DriverObserver for CheckpointAlways<'_> {
    fn advance(&self, recomputed: u64, _: u64) -> ControlFlow<()> {
        if recomputed >= self.stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl JobObserver<RankScores> for CheckpointAlways<'_> {
    fn is_due(&self) -> bool {
        true
    }

    fn checkpoint(&self, part: &RankScores) {
        self.taken.fetch_add(1, Relaxed);
        let mut kept = self.kept.lock().unwrap();
        kept.retain(|(_, rank, _)| *rank != part.rank());
        kept.push((part.partition().ranks(), part.rank(), part.runs().flatten().copied().collect()));
    }
}

#[test]
fn a_stopped_job_resumes() {
    let (set, stones) = (PositionSet::All, 10);
    let expected = alone(Rules::AWARI, set, stones);
    let (tables, index) = (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set));
    let smaller = &expected[..stones as usize];
    let kept: Mutex<Vec<(usize, usize, Vec<Score>)>> = Mutex::new(Vec::new());
    let mut stopped = 0;
    for stop_at in (0..).map(|step| step * index.slab_positions() * 2) {
        // Sometimes as many ranks as the last time, sometimes not.
        let left = std::mem::take(&mut *kept.lock().unwrap());
        let found = job(2 + stopped % 3, 1, NetworkFaults::none(), |end| {
            let mut mine = part(&tables, &index, end.size(), end.rank());
            let captures = captures(&tables, &index, &mine, smaller);
            for (ranks, rank, scores) in &left {
                let read = |positions: Range<u64>, out: &mut [Score]| {
                    out.copy_from_slice(&scores[positions.start as usize..positions.end as usize]);
                    Ok::<_, ()>(())
                };
                mine.take_over(&ScorePartition::new(&tables, index.slabs(), *ranks), *rank, read).unwrap();
            }
            assert_eq!(mine.is_fresh(), left.is_empty() || mine.positions() == 0);
            let watch = CheckpointAlways { stop_at, kept: &kept, taken: AtomicU64::new(0) };
            let solved = sweep(&tables, &index, &captures, &mut mine, Kernel::detect(), end, &watch);
            assert!(watch.taken.into_inner() > 0);
            match solved {
                Err(JobError::Stopped) => return None,
                solved => solved.unwrap(),
            };
            Some(collected(&mine, &index, end))
        });
        match found.into_iter().collect::<Option<Vec<_>>>() {
            Some(found) => {
                assert!(stopped > 1 && concatenated(&index, found.iter()) == expected[stones as usize]);
                break;
            }
            None => stopped += 1,
        }
    }
}

#[test]
fn a_sink_may_stop_a_collection() {
    let (set, ranks) = (PositionSet::All, 3);
    let index = Index::new(8, set);
    let tables = Tables::new(Rules::AWARI, set, 8);
    let run = |stopper: usize, calls: usize, faults: NetworkFaults| {
        job(ranks, 1, faults, |end| {
            let (part, rank) = (part(&tables, &index, ranks, end.rank()), end.rank());
            let mut runs = 0;
            let mut sink = |_: &[Score]| {
                runs += 1;
                if rank == stopper && runs > calls { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let all = collect(&part, &ranges(&index, ranks), end, &mut sink).unwrap();
            // Later messages are not confused with those of the collection.
            assert_eq!(end.sum(&[1]).unwrap(), [3]);
            (all, runs)
        })
    };
    let runs: Vec<usize> =
        run(0, usize::MAX, NetworkFaults::none()).into_iter().map(|(all, runs)| runs * usize::from(all)).collect();
    assert!(runs[0] > 20 && runs[1] == 0 && runs[2] > 20 && runs[0] != runs[2], "{runs:?}");
    for stopper in [0, 2] {
        for (seed, calls) in (0..).zip([0, 1, 2, runs[stopper] / 2, runs[stopper] - 2, runs[stopper] - 1]) {
            let took = run(stopper, calls, NetworkFaults::jitter(seed));
            assert!(!took[stopper].0, "rank {stopper} after {calls}");
            // All ranks see the stop, except in the last two bands.
            let is_last = calls + 2 >= runs[stopper] && runs[stopper] > runs[2 - stopper];
            assert!(is_last || took.iter().all(|(all, _)| !all), "rank {stopper} after {calls}: {took:?}");
            assert!(took.iter().zip(&runs).all(|((_, took), runs)| took <= runs) && took[stopper].1 == calls + 1);
        }
    }
}

#[test]
fn pieces_of_wrong_length_are_refused() {
    let set = PositionSet::All;
    let index = Index::new(5, set);
    let tables = Tables::new(Rules::AWARI, set, 5);
    for message in [&[][..], &[7], &[0, 0], &[1], &[1; 3], &[1; 100_000]] {
        let found = job(2, 1, NetworkFaults::none(), |end| match end.rank() {
            0 => {
                let part = part(&tables, &index, 2, 0);
                let all = index.slab_positions();
                collect(&part, &[0..all, all..all], end, &mut |_| ControlFlow::Continue(())).map_err(
                    |error| match error {
                        CommunicationError::Unexpected { rank, .. } => rank,
                        error => panic!("{error}"),
                    },
                )
            }
            _ => {
                end.send(0, message.to_vec()).unwrap();
                // The other rank sends, or has left by then.
                let _ = end.receive(0);
                Ok(true)
            }
        });
        assert_eq!(found[0], Err(1), "{} bytes", message.len());
    }
}

#[test]
fn a_rank_that_leaves_is_an_error_of_the_others() {
    let set = PositionSet::All;
    let tables = Tables::new(Rules::AWARI, set, 6);
    let left = job(3, 1, NetworkFaults::none(), |end| {
        if end.rank() == 1 {
            return true;
        }
        let index = Index::new(6, set);
        let mut part = part(&tables, &index, 3, end.rank());
        let captures = captures(&tables, &index, &part, &alone(Rules::AWARI, set, 5));
        let solved = sweep(&tables, &index, &captures, &mut part, Kernel::detect(), end, &());
        matches!(solved, Err(JobError::Communication(_)))
    });
    assert_eq!(left, [true; 3]);
}

/// Observer that has a larger pool before every pass.
struct LargerPools(AtomicUsize);

impl DriverObserver for LargerPools {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl JobObserver<RankScores> for LargerPools {
    fn is_due(&self) -> bool {
        false
    }

    fn checkpoint(&self, _: &RankScores) {}

    fn larger_pool(&self) -> Option<Arc<ThreadPool>> {
        let threads = 1 + self.0.fetch_add(1, Relaxed);
        Some(Arc::new(ThreadPoolBuilder::new().num_threads(threads).build().unwrap()))
    }
}

#[test]
fn a_sweep_goes_on_in_larger_pools() {
    let (set, stones) = (PositionSet::All, 10);
    let expected = alone(Rules::AWARI, set, stones);
    let (tables, index) = (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set));
    let captures = whole_captures(&tables, &index, &expected[..stones as usize]);
    let mut scores = RankScores::alone(&tables, &index, ScoreRows::zeroed(&index).unwrap());
    let watch = LargerPools(AtomicUsize::new(0));
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let swept =
        pool.install(|| sweep(&tables, &index, &captures, &mut scores, Kernel::detect(), &mut Alone, &watch)).unwrap();
    assert!(scores.rows().to_vec() == expected[stones as usize]);
    assert!(swept.passes > 3 && swept.passes == watch.0.into_inner() as u64);
}
