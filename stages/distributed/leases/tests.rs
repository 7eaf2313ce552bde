//! Leases of ranks that are threads, with a clock that tests set.

use super::*;
use messaging::{NetworkFaults, ThreadCommunicator};
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that advances by a number of milliseconds at each look.
#[derive(Debug)]
struct LookedAt {
    milliseconds: AtomicU64,
    step: u64,
}

impl Clock for LookedAt {
    fn utc(&self) -> Duration {
        Duration::ZERO
    }

    fn steady(&self) -> Duration {
        Duration::from_millis(self.milliseconds.fetch_add(self.step, Ordering::Relaxed))
    }
}

/// The result of a position, without a search.
fn result(key: u64) -> Assessed {
    let estimate = (key % 200) as i16 - 100;
    Assessed { assessment: Assessment { low: -300, high: 300, estimate }, depth: 3, nodes: key }
}

fn results(keys: &[u64]) -> Vec<Assessed> {
    keys.iter().copied().map(result).collect()
}

/// Positions of twelve stones.
fn keys(batch: u64) -> Vec<u64> {
    (0..20).map(|number| 12 << 40 | (20 * batch + number)).collect()
}

/// Answers leases until rank 0 leaves, as a rank does. `answer` changes the results of a lease.
fn follow(mut communicator: ThreadCommunicator, answer: impl Fn(Vec<Assessed>) -> Vec<Assessed>) {
    while let Ok(bytes) = communicator.receive(0) {
        let keys: Vec<u64> = serde_json::from_slice(&bytes).unwrap();
        if keys.is_empty() {
            // It waits for the next order.
            continue;
        }
        let found: LeaseAnswer = Ok(answer(results(&keys)).iter().map(LeaseResult::new).collect());
        // Rank 0 may have left, or this rank.
        let _ = communicator.send(0, message::encode(&found));
    }
}

/// What rank 0 does with its leases.
type Keeper<'a> = &'a mut dyn FnMut(&mut Leases<'_>, &mut dyn Communicator);

/// Runs a job of three ranks, of which rank 1 answers as given.
fn run(faults: NetworkFaults, step: u64, answer: impl Fn(Vec<Assessed>) -> Vec<Assessed> + Send, keep: Keeper<'_>) {
    let clock = LookedAt { milliseconds: AtomicU64::new(0), step };
    let mut ends = ThreadCommunicator::job(3, faults);
    let (second, first) = (ends.pop().unwrap(), ends.pop().unwrap());
    let mut own = ends.pop().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| follow(first, answer));
        scope.spawn(|| follow(second, |found| found));
        let mut leases = Leases::new(&clock, AwariGame::new(game::Rules::AWARI), true, 3, 2);
        keep(&mut leases, &mut own);
        leases.end(&mut own);
        drop(own);
    });
}

fn assess(leases: &mut Leases<'_>, communicator: &mut dyn Communicator, batch: u64) -> Result<Vec<Assessed>> {
    leases.assess(communicator, &keys(batch), &mut |keys| Ok(results(keys)))
}

/// Without faults no position is assessed twice, whatever the network does. The clock stands still.
#[test]
fn results_come_once() {
    for faults in [NetworkFaults::none(), NetworkFaults::jitter(3)] {
        run(faults, 0, |found| found, &mut |leases, communicator| {
            for batch in 0..20 {
                assert_eq!(assess(leases, communicator, batch).unwrap(), results(&keys(batch)));
            }
            assert_eq!((leases.count(), leases.repeated()), (3, 0));
        });
    }
}

/// A rank whose answers are lost holds nothing up, and gets no more positions.
#[test]
fn a_rank_that_never_answers_loses_its_lease() {
    // Its calls are a receive and a send for each lease.
    for call in [1, 5] {
        let faults = NetworkFaults { muted: Some((1, call)), ..NetworkFaults::none() };
        run(faults, 20, |found| found, &mut |leases, communicator| {
            for batch in 0..20 {
                assert_eq!(assess(leases, communicator, batch).unwrap(), results(&keys(batch)));
            }
            let overdue = leases.others.iter().filter(|other| other.lease.is_some());
            assert!(overdue.map(|other| other.rank).any(|rank| rank == 1));
            assert!(leases.count() < 3);
            assert_eq!(leases.end(communicator), Some(1), "its answer may come at any time");
        });
    }
}

/// A rank that answers late has its results compared with those that came first, and gets positions again.
#[test]
fn results_that_come_twice_are_recognized() {
    for is_wrong in [false, true] {
        let (free, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        let answer = move |mut found: Vec<Assessed>| {
            // An error means that the test is over, or has let it go on.
            let is_late = wait.lock().unwrap().recv().is_ok();
            if is_late && is_wrong {
                found[0].assessment.estimate += 1;
            }
            found
        };
        let mut free = Some(free);
        run(NetworkFaults::none(), 20, answer, &mut |leases, communicator| {
            assert_eq!(assess(leases, communicator, 0).unwrap(), results(&keys(0)));
            let late = &leases.others[0].lease.as_ref().unwrap().keys.clone();
            free.as_ref().unwrap().send(()).unwrap();
            // The answer is on its way.
            let mut batch = 1;
            let compared = loop {
                let found = assess(leases, communicator, batch);
                match found {
                    Ok(found) => assert_eq!(found, results(&keys(batch))),
                    Err(error) => break Err(error.to_string()),
                }
                if leases.repeated() > 0 {
                    break Ok(leases.repeated());
                }
                batch += 1;
                thread::sleep(PAUSE);
            };
            match compared {
                Ok(repeated) => assert!(!is_wrong && repeated >= late.len() as u64, "{repeated}"),
                Err(error) => assert!(is_wrong && error.contains("rank 1") && error.contains("different"), "{error}"),
            }
            // It answers at once from here on.
            free = None;
        });
    }
}

/// Impossible results, and answers of the wrong length, are refused.
#[test]
fn impossible_answers_are_refused() {
    let wrong: [fn(Vec<Assessed>) -> Vec<Assessed>; 2] = [
        |mut found| {
            found[0].assessment.high = 4_800;
            found
        },
        |mut found| {
            found.pop();
            found
        },
    ];
    for wrong in wrong {
        run(NetworkFaults::none(), 0, wrong, &mut |leases, communicator| {
            let error = assess(leases, communicator, 0).unwrap_err().to_string();
            assert!(error.contains("rank 1"), "{error}");
        });
    }
}
