//! Jobs of in-process ranks, with and without injected network faults.

use super::*;
use crate::DriverObserver;
use crate::ranks::collect;
use crate::sweep::ranks::tests::{alone, collected, concatenated, job, ranges, whole_captures};
use game::{PositionSet, Rules, Score};
use messaging::{Alone, NetworkFaults};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Best captures of the positions of a rank.
fn captures(rank_values: &RankValues, whole: &[i8]) -> Bytes {
    let mut best = Bytes::zeroed(rank_values.values().len()).unwrap();
    let mut rest = &mut best[..];
    for run in rank_values.runs() {
        let run = &whole[run.start as usize..run.end as usize];
        rest.split_off_mut(..run.len()).unwrap().copy_from_slice(run);
    }
    assert!(rest.is_empty());
    best
}

/// Solves a database with a job of `processors` processors a rank.
fn solved(
    tables: &Tables,
    index: &Index,
    whole: &[i8],
    end: &mut dyn Communicator,
    processors: usize,
) -> (Vec<Score>, CountingReport) {
    let mut rank_values = RankValues::zeroed(index, end.size(), end.rank(), Distribution::new(processors)).unwrap();
    let captures = captures(&rank_values, whole);
    let report = counting(tables, index, &captures, &mut rank_values, end, &()).unwrap();
    (collected(&rank_values, index, end), report)
}

#[test]
fn any_number_of_ranks_makes_the_databases_of_one_machine() {
    any_number_of_ranks(9);
}

#[test]
#[ignore = "slow tier: 10 stones by seven numbers of ranks and processors"]
fn any_number_of_ranks_makes_the_databases_of_10_stones() {
    any_number_of_ranks(10);
}

fn any_number_of_ranks(awari_stones_max: u32) {
    for (rules, set, stones_max) in [
        (Rules::AWARI, PositionSet::All, awari_stones_max),
        (Rules::AWARI, PositionSet::REACHABLE, awari_stones_max),
        (Rules::WARI, PositionSet::All, 8),
        (Rules::SLAM_ILLEGAL_OWN_SIDE, PositionSet::REACHABLE, 8),
    ] {
        let expected = alone(rules, set, stones_max);
        let tables = Tables::new(rules, set, stones_max);
        for stones in 0..=stones_max {
            let index = Index::new(stones, set);
            let whole = whole_captures(&tables, &index, &expected[..stones as usize]);
            for (ranks, processors) in [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1)] {
                let found = job(ranks, processors.min(2), NetworkFaults::none(), |end| {
                    solved(&tables, &index, &whole, end, processors)
                });
                let scores = concatenated(&index, found.iter().map(|(scores, _)| scores));
                assert!(scores == expected[stones as usize], "{stones} stones, {set}, by {ranks} ranks");
                // The counts of the logical processors are those on one machine.
                let (_, local) = solved(&tables, &index, &whole, &mut Alone, ranks * processors);
                for (_, report) in &found {
                    assert_eq!((report.supersteps, report.total), (local.supersteps, local.total));
                    assert_eq!(report.processors, (ranks * processors) as u64);
                    assert!(report.sent <= report.total.sent && report.messages <= report.sent);
                    let between = report.supersteps * (ranks * (ranks - 1)) as u64;
                    assert!(report.messages <= between, "{report:?}");
                    assert!(report.sent > 0 || ranks == 1 || stones < 5, "{stones} stones by {ranks}");
                    if processors == 1 {
                        assert_eq!(report.sent, report.total.sent);
                    }
                }
            }
        }
    }
}

#[test]
fn network_faults_change_nothing() {
    let (set, stones) = (PositionSet::All, 8);
    let expected = alone(Rules::AWARI, set, stones);
    let (tables, index) = (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set));
    let whole = whole_captures(&tables, &index, &expected[..stones as usize]);
    for seed in 0..3 {
        let found = job(3, 2, NetworkFaults::jitter(seed), |end| solved(&tables, &index, &whole, end, 2));
        let scores = concatenated(&index, found.iter().map(|(scores, _)| scores));
        assert!(scores == expected[stones as usize], "seed {seed}");
    }
}

/// Observer that stops at one of its calls, and keeps the checkpoint before it.
struct StopAtBound<'a> {
    rank: usize,
    calls: AtomicU64,
    stop_at: u64,
    is_due: bool,
    kept: &'a Mutex<Vec<Vec<i8>>>,
}

impl DriverObserver for StopAtBound<'_> {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        if self.calls.fetch_add(1, Relaxed) >= self.stop_at {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl JobObserver<RankValues> for StopAtBound<'_> {
    fn is_due(&self) -> bool {
        self.is_due
    }

    fn checkpoint(&self, rank_values: &RankValues) {
        let (low, high) = crate::counting::checkpoint_range(rank_values.slabs().len() as u32 - 1);
        assert!(rank_values.values().iter().all(|value| (low..=high).contains(value)));
        self.kept.lock().unwrap()[self.rank] = rank_values.values().to_vec();
    }
}

#[test]
fn a_stopped_job_resumes() {
    const RANKS: usize = 3;
    let (set, stones) = (PositionSet::All, 10);
    let expected = alone(Rules::AWARI, set, stones);
    let (tables, index) = (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set));
    let whole = whole_captures(&tables, &index, &expected[..stones as usize]);
    let kept = Mutex::new(vec![Vec::new(); RANKS]);
    let mut stopped = 0;
    for is_due in [false, true] {
        kept.lock().unwrap().fill(Vec::new());
        for round in 0.. {
            let left = kept.lock().unwrap().clone();
            let found = job(RANKS, 2, NetworkFaults::none(), |end| {
                let rank = end.rank();
                let mut rank_values = RankValues::zeroed(&index, RANKS, rank, Distribution::new(2)).unwrap();
                if !left[rank].is_empty() {
                    rank_values.values_mut().copy_from_slice(&left[rank]);
                }
                let captures = captures(&rank_values, &whole);
                // One rank alone wants to stop, another one at a time.
                let stop_at = if rank == round % RANKS { 1 + round as u64 * 3 } else { u64::MAX };
                let watch =
                    StopAtBound { rank, calls: AtomicU64::new(0), stop_at, is_due: is_due && rank == 1, kept: &kept };
                match counting(&tables, &index, &captures, &mut rank_values, end, &watch) {
                    Err(JobError::Stopped) => None,
                    solved => {
                        solved.unwrap();
                        Some(collected(&rank_values, &index, end))
                    }
                }
            });
            assert!(found.iter().all(|solved| solved.is_some() == found[0].is_some()), "all ranks stop together");
            match found.into_iter().collect::<Option<Vec<_>>>() {
                Some(found) => {
                    assert!(concatenated(&index, found.iter()) == expected[stones as usize]);
                    break;
                }
                None => stopped += 1,
            }
        }
    }
    assert!(stopped > 2, "{stopped}");
}

#[test]
fn a_checkpoint_between_bounds_is_enough() {
    const RANKS: usize = 2;
    let (set, stones) = (PositionSet::REACHABLE, 10);
    let expected = alone(Rules::AWARI, set, stones);
    let (tables, index) = (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set));
    let whole = whole_captures(&tables, &index, &expected[..stones as usize]);
    let kept = Mutex::new(vec![Vec::new(); RANKS]);
    let run = |left: &[Vec<i8>]| {
        job(RANKS, 1, NetworkFaults::none(), |end| {
            let rank = end.rank();
            let mut rank_values = RankValues::zeroed(&index, RANKS, rank, Distribution::new(1)).unwrap();
            if let Some(left) = left.get(rank) {
                rank_values.values_mut().copy_from_slice(left);
            }
            let captures = captures(&rank_values, &whole);
            let watch =
                StopAtBound { rank, calls: AtomicU64::new(0), stop_at: u64::MAX, is_due: rank == 0, kept: &kept };
            counting(&tables, &index, &captures, &mut rank_values, end, &watch).unwrap();
            collected(&rank_values, &index, end)
        })
    };
    assert!(concatenated(&index, run(&[]).iter()) == expected[stones as usize]);
    let left = kept.lock().unwrap().clone();
    assert!(left.iter().flatten().any(|&value| value < -(stones as i8)), "what is undecided is still counted");
    assert!(concatenated(&index, run(&left).iter()) == expected[stones as usize]);
}

#[test]
fn a_foreign_checkpoint_is_detected_on_every_rank() {
    let (set, stones) = (PositionSet::All, 6);
    let (tables, index) = (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set));
    let expected = alone(Rules::AWARI, set, stones);
    let whole = whole_captures(&tables, &index, &expected[..stones as usize]);
    let found = job(3, 1, NetworkFaults::none(), |end| {
        let mut rank_values = RankValues::zeroed(&index, 3, end.rank(), Distribution::new(1)).unwrap();
        // No child of any position is left.
        rank_values.values_mut().fill(-(stones as i8) - 1);
        let captures = captures(&rank_values, &whole);
        counting(&tables, &index, &captures, &mut rank_values, end, &())
    });
    assert!(found.iter().all(|found| matches!(found, Err(JobError::Inconsistent))), "{found:?}");
}

#[test]
fn a_rank_that_leaves_is_an_error_of_the_others() {
    let (set, stones) = (PositionSet::All, 6);
    let (tables, index) = (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set));
    let left = job(3, 1, NetworkFaults::none(), |end| {
        if end.rank() == 1 {
            return true;
        }
        let mut rank_values = RankValues::zeroed(&index, 3, end.rank(), Distribution::new(1)).unwrap();
        let captures = Bytes::zeroed(rank_values.values().len()).unwrap();
        let solved = counting(&tables, &index, &captures, &mut rank_values, end, &());
        matches!(solved, Err(JobError::Communication(_)))
    });
    assert_eq!(left, [true; 3]);
}

#[test]
fn malformed_messages_are_refused() {
    let (set, stones) = (PositionSet::All, 5);
    let (tables, index) = (Tables::new(Rules::AWARI, set, stones), Index::new(stones, set));
    let mut rank_values = RankValues::zeroed(&index, 2, 0, Distribution::new(1)).unwrap();
    let captures = Bytes::zeroed(rank_values.values().len()).unwrap();
    let positions = rank_values.values().len() as u32;
    let mut processors = vec![Processor::new(&rank_values.partition, 0, Distribution::new(2))];
    let (work, mut parts) = parts(&tables, &index, &captures, &mut processors, &mut rank_values, 1);
    let mut read = |words: &[u32], cut: usize| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        read(&work, &mut parts, 1..2, &bytes[..bytes.len() - cut])
    };
    assert_eq!(read(&[], 0), Some(0));
    assert_eq!(read(&[2, 0, 3], 0), Some(2));
    for (words, cut) in [
        (&[2, 0][..], 0),
        (&[1, 0, 0], 0),
        (&[1, 0], 1),
        (&[0], 1),
        (&[u32::MAX, 0], 0),
        (&[1, u32::MAX], 0),
        (&[1, 2 * positions.next_multiple_of(64)], 0),
    ] {
        assert_eq!(read(words, cut), None, "{words:?} without {cut} bytes");
    }
}

#[test]
fn a_sink_may_stop_a_collection() {
    let index = Index::new(8, PositionSet::All);
    let took = job(3, 1, NetworkFaults::none(), |end| {
        let rank_values = RankValues::zeroed(&index, 3, end.rank(), Distribution::new(2)).unwrap();
        let mut runs = 0;
        let mut sink = |_: &[Score]| {
            runs += 1;
            if runs > 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let all = collect(&rank_values, &ranges(&index, 3), end, &mut sink).unwrap();
        // Later messages are not confused with those of the collection.
        assert_eq!(end.sum(&[1]).unwrap(), [3]);
        all
    });
    assert_eq!(took, [false; 3]);
}
