//! Jobs of in-process ranks, with and without injected network faults.

use super::collect::{collect_plane, row_location};
use super::log::DecisionLog;
use super::{
    Decided, DistributedBoundReport, PlaneRun, RankPlanes, RankSolver, RowPartition, SuperstepMessage, Vote,
    solve_in_memory,
};
use crate::bounds::{BitKernel, PlaneLayout};
use crate::ranks::JobError;
use crate::sweep::ranks::tests::{alone, job, whole_captures};
use crate::{Bytes, DriverObserver, Tables};
use game::{Index, Orientation, PositionSet, Rules, Score};
use messaging::{CommunicationError, NetworkFaults};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Every bound decides what scores just that, by any number of ranks.
#[test]
fn bounds_are_those_of_one_machine() {
    for (rules, set, stones) in [
        (Rules::AWARI, PositionSet::All, 9),
        (Rules::AWARI, PositionSet::REACHABLE, 10),
        (Rules::WARI, PositionSet::All, 8),
        (Rules::SLAM_ILLEGAL_OWN_SIDE, PositionSet::REACHABLE, 8),
    ] {
        let expected = alone(rules, set, stones);
        let tables = Arc::new(Tables::new(rules, set, stones));
        for stones in 0..=stones {
            let index = Index::new(stones, set);
            let captures = whole_captures(&tables, &index, &expected[..stones as usize]);
            for (ranks, threads) in [(1, 1), (2, 1), (3, 2), (4, 1), (9, 1)] {
                let found = job(ranks, threads, NetworkFaults::none(), |end| {
                    let mut reports = Vec::new();
                    let each = |bound, report: Option<DistributedBoundReport>| {
                        reports.extend(report.map(|report| (bound, report)))
                    };
                    let kernel = BitKernel::detect();
                    let scores = solve_in_memory(&tables, &index, &captures, kernel, end, &(), each).unwrap();
                    (scores, reports)
                });
                assert!(found[0].0 == expected[stones as usize], "{stones} stones, {set}, by {ranks} ranks");
                let lost = |bound: u32| found[0].0.iter().filter(|&&score| score == -(bound as Score)).count() as u64;
                for (_, reports) in &found {
                    for ((bound, report), (_, first)) in reports.iter().zip(&found[0].1) {
                        assert_eq!(report.lost, lost(*bound), "{stones} stones, {set}, bound {bound}");
                        let together = |report: &DistributedBoundReport| DistributedBoundReport {
                            traffic: Default::default(),
                            ..*report
                        };
                        assert_eq!(together(report), together(first));
                    }
                }
            }
        }
    }
}

#[test]
fn network_faults_and_kernels_change_nothing() {
    let (set, stones) = (PositionSet::All, 7);
    let expected = alone(Rules::AWARI, set, stones);
    let (tables, index) = (Arc::new(Tables::new(Rules::AWARI, set, stones)), Index::new(stones, set));
    let captures = whole_captures(&tables, &index, &expected[..stones as usize]);
    for (seed, kernel) in (0..).zip(BitKernel::available()) {
        let found = job(3, 1, NetworkFaults::jitter(seed), |end| {
            solve_in_memory(&tables, &index, &captures, kernel, end, &(), |_, _| {}).unwrap()
        });
        assert!(found[0] == expected[stones as usize], "{kernel:?}, seed {seed}");
    }
}

/// Observer that stops after a number of calls.
struct StopAfterCalls(AtomicU64);

impl DriverObserver for StopAfterCalls {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        let left = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        if left.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn all_ranks_stop_when_one_stops() {
    let (set, stones) = (PositionSet::All, 8);
    let expected = alone(Rules::AWARI, set, stones);
    let (tables, index) = (Arc::new(Tables::new(Rules::AWARI, set, stones)), Index::new(stones, set));
    let captures = whole_captures(&tables, &index, &expected[..stones as usize]);
    for calls in [0, 1, 7, 20] {
        let stopped = job(3, 1, NetworkFaults::none(), |end| {
            let progress = StopAfterCalls(AtomicU64::new(if end.rank() == 1 { calls } else { u64::MAX }));
            let mut bounds = 0;
            let each = |_, report: Option<DistributedBoundReport>| bounds += u32::from(report.is_some());
            let solved = solve_in_memory(&tables, &index, &captures, BitKernel::detect(), end, &progress, each);
            assert!(matches!(solved, Err(JobError::Stopped)));
            // What comes next is not mistaken.
            assert_eq!(end.sum(&[1]).unwrap(), [3]);
            bounds
        });
        assert!(stopped[0] < stones && stopped.iter().all(|&bounds| bounds == stopped[0]), "{stopped:?}");
    }
}

#[test]
fn a_rank_that_leaves_is_an_error_of_the_others() {
    let (set, stones) = (PositionSet::All, 6);
    let (tables, index) = (Arc::new(Tables::new(Rules::AWARI, set, stones)), Index::new(stones, set));
    let captures = Bytes::zeroed(index.slab_positions() as usize).unwrap();
    let left = job(3, 1, NetworkFaults::none(), |end| {
        if end.rank() == 1 {
            return true;
        }
        let solved = solve_in_memory(&tables, &index, &captures, BitKernel::detect(), end, &(), |_, _| {});
        matches!(solved, Err(JobError::Communication(_)))
    });
    assert_eq!(left, [true; 3]);
}

/// Every row of wins is reported by one rank, which keeps it; a rank of several keeps less than all.
#[test]
fn rows_of_wins_are_reported_once() {
    for set in [PositionSet::All, PositionSet::REACHABLE] {
        let (stones, ranks) = (12, 4);
        let (tables, index) = (Arc::new(Tables::new(Rules::AWARI, set, stones)), Index::new(stones, set));
        let partition = RowPartition::new(stones, set, ranks);
        let holdings: Vec<_> = (0..ranks)
            .map(|rank| RankPlanes::in_memory(Arc::clone(&tables), &index, &partition, rank, BitKernel::detect()))
            .collect();
        let layout = PlaneLayout::new(&index, Orientation::OpponentMajor);
        for (number, slab) in layout.slabs().iter().enumerate() {
            for row in 0..slab.rows {
                let wins = |rank: usize| holdings[rank].solver.wins();
                let reports: Vec<_> = (0..ranks).filter(|&rank| wins(rank).reports(number, row)).collect();
                assert!(reports.len() == 1 && wins(reports[0]).takes(number, row, &[(0, 1)]), "{reports:?}");
            }
        }
        for (rank, planes) in holdings.iter().enumerate() {
            let rows = |number: usize| 0..layout.slabs()[number].rows;
            let kept = |&(number, row): &(usize, usize)| planes.solver.wins().takes(number, row, &[(0, 1)]);
            let kept: Vec<_> = (0..layout.slabs().len())
                .flat_map(|number| rows(number).map(move |row| (number, row)))
                .filter(kept)
                .collect();
            let runs = planes.kept_runs().flat_map(|run| {
                let slab = &layout.slabs()[run.slab];
                assert_eq!(run.words, slab.word(run.rows.start)..slab.word(run.rows.end));
                run.rows.map(move |row| (run.slab, row))
            });
            assert_eq!(runs.collect::<Vec<_>>(), kept, "rank {rank}");
        }
        let words = |rank: usize| holdings[rank].solver.wins().words.len();
        assert!((0..ranks).all(|rank| words(rank) * 4 < layout.words() * 3), "{set}");
        let units: usize = holdings.iter().flat_map(RankPlanes::units).map(|unit| unit.words.len()).sum();
        assert_eq!(units, PlaneLayout::new(&index, Orientation::MoverMajor).words());
    }
}

#[test]
fn a_sink_may_stop_a_collection() {
    let index = Index::new(22, PositionSet::All);
    let layout = PlaneLayout::new(&index, Orientation::OpponentMajor);
    let rows: Vec<_> =
        (0..layout.rows() as u32).rev().step_by(97).map(|row| row_location(&layout, row).unwrap()).collect();
    let bit = |slab: usize, number: usize| 1 << (number % layout.slabs()[slab].columns.min(6));
    // Cut within rows and units, the last row behind its first thousand words; rank 1 gets nothing.
    let (first, end) = (layout.words() / 5 + 1, layout.words());
    let ranges = [0..first, first..first, first..first + 3, first + 3..end - 100, end - 100..end];
    let mut runs = 0;
    for stop_at in [0, 1, 2, 3, usize::MAX] {
        let took = job(5, 1, NetworkFaults::none(), |end| {
            let mut log = DecisionLog::new(&layout, BitKernel::detect());
            // Ranks 2 and 4 have nothing to say.
            for (number, &(slab, row)) in
                rows.iter().enumerate().filter(|(number, _)| [0, 1, 3][number % 3] == end.rank())
            {
                let bits = [(0, bit(slab, number)), (layout.slabs()[slab].row_words as u32 - 1, 1)];
                log.write(slab, row, if bits[0].0 == bits[1].0 { &bits[..1] } else { &bits });
            }
            let (mut count, mut words, rank) = (0, Vec::new(), end.rank());
            let mut sink = |run: PlaneRun| {
                match run {
                    PlaneRun::Zeros(zeros) => words.resize(words.len() + zeros, 0),
                    PlaneRun::Words(run) => words.extend_from_slice(run),
                }
                count += 1;
                if rank == 3 && count > stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let all = collect_plane(&mut log, &layout, &ranges, end, &mut sink).unwrap();
            assert_eq!(all, stop_at == usize::MAX);
            // What comes next is not mistaken.
            assert_eq!(end.sum(&[1]).unwrap(), [5]);
            (count, words)
        });
        runs = took[3].0;
        if stop_at == usize::MAX {
            let mut expected = vec![0; layout.words()];
            for (number, &(slab, row)) in rows.iter().enumerate() {
                let layout = &layout.slabs()[slab];
                let words = &mut expected[layout.word(row)..][..layout.row_words];
                words[layout.row_words - 1] = 1;
                words[0] = bit(slab, number);
            }
            let found: Vec<u64> = took.into_iter().flat_map(|(_, words)| words).collect();
            assert!(found == expected);
        } else {
            assert_eq!(runs, stop_at + 1);
        }
    }
    assert!(runs > 4, "{runs} runs");
}

#[test]
fn messages_are_decoded() {
    let vote = Vote { found: 1, lost: 1 << 40, rows: 3, stop: 0 };
    let bytes = vote.with(&[vec![1, 2, 3], vec![], vec![4]]);
    let message = SuperstepMessage::read(&bytes).unwrap();
    assert_eq!(message.vote, Some(vote));
    assert_eq!(message.bound_messages, [&[1, 2, 3][..], &[], &[4]]);
    assert_eq!(SuperstepMessage::read(&[0, 7, 8]).unwrap().bound_messages, [[7, 8]]);
    assert_eq!(SuperstepMessage::read(&[0, 7, 8]).unwrap().vote, None);
    for length in 0..bytes.len() {
        let cut = SuperstepMessage::read(&bytes[..length]);
        assert!(cut.is_none_or(|message| message.bound_messages.len() < 3), "{length}");
    }
    assert!(SuperstepMessage::read(&[2]).is_none());
}

/// A job in which rank 1 says something else than wins.
#[test]
fn malformed_messages_are_refused() {
    let (set, stones) = (PositionSet::All, 5);
    let (tables, index) = (Arc::new(Tables::new(Rules::AWARI, set, stones)), Index::new(stones, set));
    let calm = Vote { found: 0, lost: 0, rows: 0, stop: 0 };
    // Row 0, which rank 0 keeps, has one column: 1 byte of a word is a message that it takes.
    let good = vec![0, 0, 1, 0, 1, 1];
    // A row that does not exist, a word and a column behind the last, the same behind a good word, a
    // truncated message, an unknown message.
    let messages = [
        vec![0, 0xfe, 0xff, 0xff, 0x0f, 1, 0, 1, 1],
        vec![0, 0, 1, 0xfe, 1, 1],
        vec![0, 0, 1, 0, 0x80, 0x80],
        vec![0, 0, 2, 0, 0, 1, 0x80, 1, 0x80],
        calm.with(&[vec![0, 2, 0]]),
        vec![9],
        good.clone(),
    ];
    for message in messages {
        let refused = job(2, 1, NetworkFaults::none(), |end| {
            if end.rank() == 1 {
                end.send(0, message.clone()).unwrap();
                return true;
            }
            let partition = RowPartition::new(stones, set, 2);
            let mut planes = RankPlanes::in_memory(Arc::clone(&tables), &index, &partition, 0, BitKernel::detect());
            let solved = planes.solve(end, &());
            // After a good message, rank 1 has left.
            let is_refused =
                |error: &CommunicationError| matches!(error, CommunicationError::Unexpected { rank: 1, .. });
            let refused = solved.is_err_and(|error| match error {
                JobError::Communication(error) => is_refused(&error) == (message != good),
                _ => false,
            });
            let mut sink = |_: PlaneRun| ControlFlow::Continue(());
            refused && planes.collect(Decided::Won, &[0..1, 1..2], end, &mut sink).is_err()
        });
        assert_eq!(refused, [true; 2], "{message:?}");
    }
}
