//! The in-process communicator, with and without injected network faults.

#![allow(clippy::unwrap_used)]

use messaging::{
    CommunicationError, Communicator, MESSAGE_BYTES_MAX, MessageTraffic, NetworkFaults, Result, ThreadCommunicator,
};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

type Outcome<T> = Result<T>;

/// Runs a program on all ranks and returns its results, by rank.
fn run<T: Send>(size: usize, faults: NetworkFaults, program: impl Fn(&mut dyn Communicator) -> T + Sync) -> Vec<T> {
    let program = &program;
    thread::scope(|scope| {
        let ends = ThreadCommunicator::job(size, faults);
        let threads: Vec<_> = ends.into_iter().map(|mut end| scope.spawn(move || program(&mut end))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn others(communicator: &dyn Communicator) -> impl Iterator<Item = usize> + use<> {
    let rank = communicator.rank();
    (0..communicator.size()).filter(move |&other| other != rank)
}

/// A message that is unique to a pair of ranks and a step.
fn message(from: usize, to: usize, step: usize, length: usize) -> Vec<u8> {
    let mut message = vec![from as u8, to as u8, step as u8, (step >> 8) as u8];
    message.extend((0..length).map(|at| (at * 13 + step) as u8));
    message
}

/// Exchanges one message between each two ranks.
fn step(communicator: &mut dyn Communicator, step: usize, length: usize) -> Outcome<()> {
    let rank = communicator.rank();
    for to in others(communicator) {
        communicator.send(to, message(rank, to, step, length))?;
    }
    communicator.poll()?;
    for from in others(communicator) {
        assert_eq!(communicator.receive(from)?, message(from, rank, step, length));
    }
    Ok(())
}

/// All collective calls, from every root.
fn collective(communicator: &mut dyn Communicator) -> Outcome<()> {
    let (rank, size) = (communicator.rank(), communicator.size());
    for root in 0..size {
        let gathered = communicator.gather(root, vec![rank as u8; 10 * rank])?;
        let expect: Vec<Vec<u8>> = (0..size).map(|from| vec![from as u8; 10 * from]).collect();
        assert_eq!(gathered, (rank == root).then_some(expect));
        communicator.barrier()?;
        let given = communicator.broadcast(root, (rank == root).then(|| vec![root as u8; 3 * root]))?;
        assert_eq!(given, vec![root as u8; 3 * root]);
        let ranks = size as u64;
        let sums = communicator.sum(&[rank as u64, 1, u64::MAX / ranks])?;
        assert_eq!(sums, [ranks * (ranks - 1) / 2, ranks, u64::MAX / ranks * ranks]);
    }
    Ok(())
}

fn any_faults() -> impl Strategy<Value = NetworkFaults> {
    let drawn = (any::<u64>(), 0u64..300, 0u64..10).prop_map(|(seed, delay, stall_every)| NetworkFaults {
        delay: Duration::ZERO..Duration::from_micros(delay),
        stall_every,
        stall: Duration::from_micros(300),
        ..NetworkFaults::jitter(seed)
    });
    prop_oneof![Just(NetworkFaults::none()), any::<u64>().prop_map(NetworkFaults::jitter), drawn]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_message_arrives_once_and_in_order(
        size in 1usize..=5,
        faults in any_faults(),
        lengths in prop::collection::vec(0usize..5000, 1..8),
    ) {
        let traffic = run(size, faults, |communicator| {
            for (at, &length) in lengths.iter().enumerate() {
                step(communicator, at, length).unwrap();
            }
            collective(communicator).unwrap();
            // Many in flight at once; those of the last rank are read first.
            let rank = communicator.rank();
            for at in 0..20 {
                for to in others(communicator) {
                    communicator.send(to, message(rank, to, at, at)).unwrap();
                }
            }
            let from: Vec<usize> = others(communicator).collect();
            for from in from.into_iter().rev() {
                for at in 0..20 {
                    assert_eq!(communicator.receive(from).unwrap(), message(from, rank, at, at));
                }
            }
            communicator.traffic()
        });
        let total = |figure: fn(&MessageTraffic) -> u64| traffic.iter().map(figure).sum::<u64>();
        prop_assert_eq!(total(|traffic| traffic.messages_sent), total(|traffic| traffic.messages_received));
        prop_assert_eq!(total(|traffic| traffic.bytes_sent), total(|traffic| traffic.bytes_received));
        let pairs = size * (size - 1);
        let stepped: usize = lengths.iter().map(|length| pairs * (length + 4)).sum();
        prop_assert!(total(|traffic| traffic.bytes_sent) >= stepped as u64);
    }

    #[test]
    fn a_dropped_end_hangs_no_other_rank(
        size in 2usize..=5,
        faults in any_faults(),
        leaver in 0usize..5,
        after in 0usize..6,
    ) {
        let leaver = leaver % size;
        let outcomes = run(size, faults, |communicator| -> Outcome<()> {
            for at in 0..6 {
                if communicator.rank() == leaver && at == after {
                    return Ok(());
                }
                if at % 2 == 0 { step(communicator, at, 100)? } else { collective(communicator)? }
            }
            Ok(())
        });
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            if rank != leaver {
                let error = outcome.unwrap_err();
                prop_assert!(matches!(error, CommunicationError::Gone { .. }), "{}", error);
            }
        }
    }
}

#[test]
fn messages_sent_before_leaving_arrive() {
    for faults in [NetworkFaults::none(), NetworkFaults::jitter(3)] {
        let mut ends = ThreadCommunicator::job(2, faults);
        let (mut last, mut first) = (ends.pop().unwrap(), ends.pop().unwrap());
        last.send(0, vec![1]).unwrap();
        last.send(0, vec![2]).unwrap();
        drop(last);
        assert_eq!(first.receive(1).unwrap(), [1]);
        assert_eq!(first.receive(1).unwrap(), [2]);
        for _ in 0..2 {
            assert!(matches!(first.receive(1), Err(CommunicationError::Gone { rank: 1 })));
            assert!(matches!(first.send(1, vec![3]), Err(CommunicationError::Gone { rank: 1 })));
        }
        assert_eq!(first.traffic().messages_received, 2);
        assert_eq!(first.traffic().messages_sent, 0);
    }
}

#[test]
fn a_panic_drops_the_end_of_the_rank() {
    let outcomes = run(3, NetworkFaults::jitter(1), |communicator| {
        let rank = communicator.rank();
        if rank == 1 {
            return None;
        }
        Some(communicator.receive(1))
    });
    assert!(matches!(outcomes[..], [Some(Err(CommunicationError::Gone { rank: 1 })), None, Some(Err(_))]));

    let mut ends = ThreadCommunicator::job(2, NetworkFaults::none());
    let last = ends.pop().unwrap();
    let mut first = ends.pop().unwrap();
    let thread = thread::spawn(move || {
        let _end = last;
        std::panic::resume_unwind(Box::new("of this rank, on purpose"));
    });
    assert!(matches!(first.receive(1), Err(CommunicationError::Gone { rank: 1 })));
    assert!(thread.join().is_err());
}

#[test]
fn a_lost_rank_is_gone_from_that_call_on() {
    const STEPS: usize = 20;
    for call in [0, 1, 7] {
        let faults = NetworkFaults { lost: Some((2, call)), ..NetworkFaults::none() };
        let outcomes = run(3, faults, |communicator| {
            let done = (0..STEPS).try_for_each(|at| step(communicator, at, 8));
            (done, communicator.poll())
        });
        for (rank, (done, poll)) in outcomes.into_iter().enumerate() {
            assert!(matches!(done, Err(CommunicationError::Gone { .. })), "rank {rank}: {done:?}");
            assert_eq!(poll.is_err(), rank == 2, "{poll:?}");
        }
    }
}

/// A message is received once it has arrived, without waiting for it. A rank that has left is an error after
/// its last one.
#[test]
fn messages_can_be_received_without_waiting() {
    let mut ends = ThreadCommunicator::job(3, NetworkFaults { muted: Some((2, 0)), ..NetworkFaults::none() });
    let (mut muted, mut other, mut own) = (ends.pop().unwrap(), ends.pop().unwrap(), ends.pop().unwrap());
    assert!(matches!(own.try_receive(1), Ok(None)));
    other.send(0, vec![1]).unwrap();
    other.send(0, vec![2]).unwrap();
    assert_eq!(own.try_receive(1).unwrap(), Some(vec![1]));
    drop(other);
    assert_eq!(own.try_receive(1).unwrap(), Some(vec![2]));
    assert!(matches!(own.try_receive(1), Err(CommunicationError::Gone { rank: 1 })));
    // What a muted rank sends does not arrive, but it receives.
    muted.send(0, vec![3]).unwrap();
    own.send(2, vec![4]).unwrap();
    assert_eq!(muted.try_receive(0).unwrap(), Some(vec![4]));
    assert!(matches!(own.try_receive(2), Ok(None)));
}

#[test]
fn messages_are_moved_not_copied() {
    let addresses = run(2, NetworkFaults::jitter(5), |communicator| {
        let other = 1 - communicator.rank();
        let large = message(communicator.rank(), other, 0, 50_000_000);
        let sent = large.as_ptr() as usize;
        communicator.send(other, large).unwrap();
        let received = communicator.receive(other).unwrap();
        assert!(received == message(other, communicator.rank(), 0, 50_000_000));
        (sent, received.as_ptr() as usize)
    });
    assert_eq!(addresses[0], (addresses[1].1, addresses[1].0));
}

#[test]
fn a_message_that_is_too_large_is_refused() {
    let mut ends = ThreadCommunicator::job(2, NetworkFaults::none());
    // Untouched zeros take no memory.
    let error = ends[0].send(1, vec![0; MESSAGE_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a message to rank 1 has 2147483648 bytes, the limit is 2147483647; run with more ranks"
    );
    assert_eq!(ends[0].traffic(), MessageTraffic::default());
    ends[0].send(1, vec![0; MESSAGE_BYTES_MAX]).unwrap();
    assert_eq!(ends[1].receive(0).unwrap().len(), MESSAGE_BYTES_MAX);
}

#[test]
fn ranks_that_wait_for_each_other_are_a_deadlock() {
    for size in 2..=5 {
        for faults in [NetworkFaults::none(), NetworkFaults::jitter(size as u64)] {
            let errors = run(size, faults, |communicator| {
                let (rank, size) = (communicator.rank(), communicator.size());
                // One message goes round first; then no rank sends.
                communicator.send((rank + 1) % size, Vec::new()).unwrap();
                let previous = (rank + size - 1) % size;
                communicator.receive(previous).unwrap();
                communicator.receive(previous).unwrap_err()
            });
            let deadlocks = errors.iter().filter(|error| matches!(error, CommunicationError::Deadlock { .. }));
            assert_eq!(deadlocks.count(), 1, "{errors:?}");
            let gone = errors.iter().filter(|error| matches!(error, CommunicationError::Gone { .. }));
            assert_eq!(gone.count(), size - 1, "{errors:?}");
        }
    }
}

#[test]
fn sums_of_different_lengths_or_too_large_are_refused() {
    let lengths = run(3, NetworkFaults::none(), |communicator| {
        let values = vec![1; if communicator.rank() == 2 { 4 } else { 3 }];
        communicator.sum(&values)
    });
    assert_eq!(
        lengths[0].as_ref().unwrap_err().to_string(),
        "rank 2 sent 32 bytes, expected 3 values of 8 bytes to add up: run the same program with the same arguments on \
         all ranks"
    );
    assert!(lengths.iter().all(Result::is_err));
    let overflow = run(2, NetworkFaults::none(), |communicator| communicator.sum(&[u64::MAX, 1 << 63]));
    assert!(matches!(overflow[0], Err(CommunicationError::Unexpected { rank: 1, .. })), "{overflow:?}");
    assert!(overflow[1].is_err());
}

#[test]
fn misuse_panics() {
    let check = |call: fn(&mut ThreadCommunicator), expect: &str| {
        let mut end = ThreadCommunicator::job(2, NetworkFaults::none()).swap_remove(1);
        let panic = catch_unwind(AssertUnwindSafe(|| call(&mut end))).unwrap_err();
        let text = panic.downcast_ref::<String>().expect("a text with values in it");
        assert!(text.contains(expect), "{text}");
    };
    check(|end| drop(end.send(1, Vec::new())), "rank 1 cannot exchange messages with itself");
    check(|end| drop(end.receive(1)), "rank 1 cannot exchange messages with itself");
    check(|end| drop(end.receive(2)), "a job of 2 ranks has no rank 2");
    check(|end| drop(end.send(2, Vec::new())), "a job of 2 ranks has no rank 2");
    check(|end| drop(end.broadcast(0, Some(Vec::new()))), "rank 0, and no other, brings the message");
    check(|end| drop(end.broadcast(1, None)), "rank 1, and no other, brings the message");
}
