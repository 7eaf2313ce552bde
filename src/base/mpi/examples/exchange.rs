//! One rank of the tests of the MPI communicator: `mpirun -n 4 exchange CASE`.

use messaging::{CommunicationError, Communicator, Result};
use mpi_messaging::MpiCommunicator;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Time that a rank may be silent, in the cases that test it.
const PATIENCE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let case = std::env::args().nth(1).unwrap_or_default();
    let mut mpi = match MpiCommunicator::start() {
        Ok(Some(mpi)) => mpi,
        Ok(None) => {
            println!("no ranks, and {}", MpiCommunicator::library());
            return ExitCode::SUCCESS;
        }
        Err(error) => return failed(&error),
    };
    let (rank, size) = (mpi.rank(), mpi.size());
    let done = match case.as_str() {
        "exchange" => exchange(&mut mpi),
        "threads" => threads(&mut mpi),
        "compute" => compute(&mut mpi),
        "leave" => leave(mpi),
        "unread" => unread(mpi),
        "exit" => vanish(&mut mpi, || std::process::exit(0)),
        "fail" => vanish(&mut mpi, || std::process::exit(7)),
        "silent" => vanish(&mut mpi, || thread::sleep(Duration::from_secs(600))),
        "panic" => vanish(&mut mpi, || panic!("of this rank, on purpose")),
        _ => panic!("no case `{case}`"),
    };
    match done {
        Ok(()) => {
            println!("rank {rank} of {size} is done");
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

fn failed(error: &CommunicationError) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}

/// A message that is unique to a pair of ranks and a step.
fn message(from: usize, to: usize, step: usize, length: usize) -> Vec<u8> {
    let first = from * 31 + to * 7 + step;
    (0..length).map(|at| (first + at + (at >> 8)) as u8).collect()
}

fn others(mpi: &MpiCommunicator) -> impl Iterator<Item = usize> + use<> {
    let rank = mpi.rank();
    (0..mpi.size()).filter(move |&other| other != rank)
}

/// Exchanges one message between each two ranks.
fn step(mpi: &mut MpiCommunicator, step: usize, length: usize) -> Result<()> {
    let rank = mpi.rank();
    for to in others(mpi) {
        mpi.send(to, message(rank, to, step, length))?;
    }
    for from in others(mpi) {
        assert_eq!(mpi.receive(from)?, message(from, rank, step, length), "from {from} in step {step}");
    }
    Ok(())
}

fn exchange(mpi: &mut MpiCommunicator) -> Result<()> {
    let (rank, size) = (mpi.rank(), mpi.size());
    let lengths = [0, 1, 70_000, 0, 3 << 20, 5];
    for (at, length) in lengths.into_iter().enumerate() {
        step(mpi, at, length)?;
    }
    // Large messages in both directions at once.
    let beside = rank ^ 1;
    if beside < size {
        const LARGE: usize = 50_000_000;
        mpi.send(beside, message(rank, beside, 0, LARGE))?;
        assert!(mpi.receive(beside)? == message(beside, rank, 0, LARGE), "50 MB from {beside}");
    }
    // Many messages in flight, small and large, received in another order of ranks than sent.
    let length = |at: usize| if at.is_multiple_of(50) { 100_000 } else { at % 5 };
    for at in 0..500 {
        for to in others(mpi) {
            mpi.send(to, message(rank, to, at, length(at)))?;
        }
    }
    let mut backwards: Vec<usize> = others(mpi).collect();
    backwards.reverse();
    for from in backwards {
        for at in 0..500 {
            assert_eq!(mpi.receive(from)?, message(from, rank, at, length(at)), "message {at} from {from}");
        }
    }
    for root in 0..size {
        let gathered = mpi.gather(root, vec![rank as u8; rank * 1000])?;
        let expect: Vec<Vec<u8>> = (0..size).map(|from| vec![from as u8; from * 1000]).collect();
        assert_eq!(gathered, (rank == root).then_some(expect));
        let given = mpi.broadcast(root, (rank == root).then(|| vec![root as u8; 1000]))?;
        assert_eq!(given, vec![root as u8; 1000]);
        mpi.barrier()?;
    }
    let ranks = size as u64;
    assert_eq!(mpi.sum(&[1, rank as u64, 1 << 40])?, [ranks, ranks * (ranks - 1) / 2, ranks << 40]);
    let traffic = mpi.traffic();
    let totals = [traffic.messages_sent, traffic.bytes_sent, traffic.messages_received, traffic.bytes_received];
    let sums = mpi.sum(&totals)?;
    assert_eq!(sums[0..2], sums[2..4]);
    Ok(())
}

/// Calls come from one thread after another.
fn threads(mpi: &mut MpiCommunicator) -> Result<()> {
    for at in 0..20 {
        let done = thread::scope(|scope| scope.spawn(|| step(mpi, at, 10_000 * at)).join());
        done.expect("the thread does not panic")?;
    }
    Ok(())
}

/// The last rank computes for longer than the patience of the others, but polls. They wait for it and for each other.
fn compute(mpi: &mut MpiCommunicator) -> Result<()> {
    mpi.set_patience(PATIENCE);
    if mpi.rank() + 1 == mpi.size() {
        let began = Instant::now();
        while began.elapsed() < 2 * PATIENCE {
            thread::sleep(PATIENCE / 20);
            mpi.poll()?;
        }
    }
    if mpi.rank() > 0 {
        // Rank 0 receives nothing here, and waits in `drop`.
        step_among(mpi, 1)?;
    }
    Ok(())
}

/// As `step`, among the ranks from `first` on.
fn step_among(mpi: &mut MpiCommunicator, first: usize) -> Result<()> {
    for to in others(mpi).filter(|&to| to >= first) {
        mpi.send(to, vec![1])?;
    }
    for from in others(mpi).filter(|&from| from >= first) {
        assert_eq!(mpi.receive(from)?, [1]);
    }
    Ok(())
}

/// The last rank leaves the job properly while the others wait for it. The messages that it sent arrive.
fn leave(mut mpi: MpiCommunicator) -> Result<()> {
    let last = mpi.size() - 1;
    if mpi.rank() == last {
        for to in 0..last {
            mpi.send(to, message(last, to, 0, 5_000_000))?;
        }
        drop(mpi);
        return Ok(());
    }
    assert!(mpi.receive(last)? == message(last, mpi.rank(), 0, 5_000_000));
    let gone = mpi.receive(last).expect_err("the last rank has left");
    assert!(matches!(gone, CommunicationError::Gone { rank } if rank == last), "{gone}");
    let gone = mpi.send(last, Vec::new()).expect_err("the last rank has left");
    assert!(matches!(gone, CommunicationError::Gone { rank } if rank == last), "{gone}");
    Ok(())
}

/// All ranks leave at once, with messages that were not received.
fn unread(mut mpi: MpiCommunicator) -> Result<()> {
    let rank = mpi.rank();
    for to in others(&mpi) {
        mpi.send(to, message(rank, to, 0, 1_000_000))?;
        mpi.send(to, Vec::new())?;
    }
    Ok(())
}

/// The last rank disappears without leaving the job; the others wait for it.
fn vanish(mpi: &mut MpiCommunicator, how: impl Fn()) -> Result<()> {
    mpi.set_patience(PATIENCE);
    let last = mpi.size() - 1;
    step(mpi, 0, 100)?;
    if mpi.rank() == last {
        how();
    } else {
        mpi.receive(last)?;
    }
    Ok(())
}
