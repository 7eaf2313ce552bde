//! The stage `capture:n` by all ranks: each captures for some rows of every slab, as [`CapturePartition`] says, and reads no more of
//! the smaller databases than these rows lead to. Rank 0 writes the file, piece by piece, as they come.
//!
//! A rank is no more than some pieces ahead of the file, so memory does not depend on the database.

use super::load::{Loads, Meter};
use super::order::Reading;
use super::{Failure, Follower, Job, Order, agree};
use crate::capture::Files;
use crate::{Shared, files, watch::Watch};
use disk::Disk;
use engines::capture::{CapturePartition, CapturePiece, capture_piece};
use engines::{DriverObserver, Tables};
use game::{Index, Score};
use messaging::{CommunicationError, Communicator};
use pipeline::{StageContext, StageError, StageReport};
use planner::{CAPTURE_PIECES_AHEAD, DatabasePlan, Settings};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use store::{BlockCache, Codec, FileKind};

/// Taken, and go on; or do not.
const TAKEN: u8 = 1;

/// Runs the stage, on rank 0.
pub(crate) fn run(shared: &Shared, job: &Job, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let smaller = settings.smaller(stones).map(|stones| context.input(&files::database(stones)));
    let reading = Reading { stones, threads: context.threads(), files: smaller.collect() };
    let mut communicator = job.communicator();
    communicator.broadcast(0, Some(Order::Capture(reading.clone()).encode())).map_err(StageError::failed)?;
    let tables = shared.tables();
    let plan = shared.plan(stones);
    let member = Member { settings, plan, disk: context.disk(), tables: &tables, reading: &reading, index: &index };
    let path = context.output(&files::capture(stones));
    let create = || files::create(context.disk(), &path, settings, FileKind::Capture, &index, Codec::Packed);
    let watch = Watch::new(context, index.positions());
    let mut end = 0;
    let mut writer = None;
    let captured = member.take_part(&mut **communicator, context.stop_flag(), &mut |best| {
        end += best.len() as u64;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(create()?),
        };
        writer.append(best).map_err(files::unwritable)?;
        if watch.advance(end, index.positions()).is_break() { Err(StageError::Stopped) } else { Ok(()) }
    });
    let done = captured.map_err(Failure::into_error)?;
    let writer = writer.expect("every database has a row");
    writer.finish().map_err(files::unwritable)?;
    let report = StageReport::new(index.positions()).with("blocks", done.blocks).with("decoded", done.decoded);
    Ok(done.loads.expect("rank 0 hears of all").report(report))
}

/// Takes part, on another rank than 0.
pub(super) fn follow(
    follower: &Follower,
    reading: &Reading,
    tables: &Tables,
    communicator: &mut dyn Communicator,
) -> Result<(), Failure> {
    let Follower { plan, settings, disk, stop } = *follower;
    let index = Index::new(reading.stones, settings.set);
    let plan = plan.database(reading.stones);
    let member = Member { settings, plan, disk, tables, reading, index: &index };
    member.take_part(communicator, stop, &mut |_| unreachable!("rank 0 alone writes")).map(drop)
}

/// What a rank needs to take part.
struct Member<'a> {
    settings: &'a Settings,
    plan: &'a DatabasePlan,
    disk: &'a dyn Disk,
    tables: &'a Tables,
    reading: &'a Reading,
    index: &'a Index,
}

/// What the job did.
struct Done {
    /// Of smaller databases.
    blocks: u64,
    /// By all ranks.
    decoded: u64,
    loads: Option<Loads>,
}

/// Takes the captures of the rows that follow.
type Write<'a> = &'a mut dyn FnMut(&[Score]) -> Result<(), StageError>;

impl Member<'_> {
    fn take_part(&self, communicator: &mut dyn Communicator, stop: &AtomicBool, write: Write) -> Result<Done, Failure> {
        let cache = BlockCache::new(self.plan.memory().cache_bytes);
        let opened = Files::open(self.settings, self.disk, self.reading.files.iter().cloned(), &cache, |_, _| None);
        let smaller = agree(communicator, opened)?;
        let meter = Meter::start(communicator);
        let capture = |piece: &CapturePiece, best: &mut Vec<Score>| {
            if stop.load(Relaxed) {
                return Err(StageError::Stopped);
            }
            capture_piece(self.tables, self.index, piece, &smaller, best)
        };
        let deal = CapturePartition::new(self.index.slabs(), communicator.size());
        let done = match communicator.rank() {
            0 => lead(&deal, self.index, communicator, capture, write),
            _ => send(&deal, self.index, CAPTURE_PIECES_AHEAD * deal.piece_positions(), communicator, capture),
        };
        agree(communicator, done.map_err(Failure::lost)?)?;
        let loads = meter.gather(communicator).map_err(Failure::lost)?;
        let decoded = communicator.sum(&[cache.decoded()]).map_err(Failure::lost)?[0];
        Ok(Done { blocks: smaller.blocks(), decoded, loads })
    }
}

/// Sends what this rank captures for to rank 0, but not so many positions ahead of what it took. An empty message, as no
/// piece is, says that nothing comes any more: after
/// an error, or because rank 0 wants nothing.
fn send(
    deal: &CapturePartition,
    index: &Index,
    window: u64,
    communicator: &mut dyn Communicator,
    capture: impl Fn(&CapturePiece, &mut Vec<Score>) -> Result<(), StageError>,
) -> Result<Result<(), StageError>, CommunicationError> {
    let rank = communicator.rank();
    let mut best = Vec::new();
    // Positions of pieces that were sent, and all in all.
    let (mut sent, mut ahead) = (VecDeque::new(), 0);
    for piece in deal.pieces().filter(|piece| piece.rank == rank) {
        let positions = piece.positions(index);
        while ahead > 0 && ahead + positions > window {
            if !is_taken(communicator)? {
                return communicator.send(0, Vec::new()).map(Ok);
            }
            ahead -= sent.pop_front().unwrap_or(0);
        }
        if let Err(error) = capture(&piece, &mut best) {
            communicator.send(0, Vec::new())?;
            while is_taken(communicator)? {}
            return Ok(Err(error));
        }
        communicator.send(0, best.iter().map(|&score| score as u8).collect())?;
        sent.push_back(positions);
        ahead += positions;
    }
    for _ in sent {
        if !is_taken(communicator)? {
            return communicator.send(0, Vec::new()).map(Ok);
        }
    }
    Ok(Ok(()))
}

/// What rank 0 says of a piece.
fn is_taken(communicator: &mut dyn Communicator) -> Result<bool, CommunicationError> {
    Ok(communicator.receive(0)? == [TAKEN])
}

/// Captures for what is rank 0's, and writes all.
fn lead(
    deal: &CapturePartition,
    index: &Index,
    communicator: &mut dyn Communicator,
    capture: impl Fn(&CapturePiece, &mut Vec<Score>) -> Result<(), StageError>,
    write: Write,
) -> Result<Result<(), StageError>, CommunicationError> {
    let ranks = communicator.size();
    // By rank: pieces that it knows were taken, and whether it sends no more.
    let (mut taken, mut ended) = (vec![0; ranks], vec![false; ranks]);
    let mut best = Vec::new();
    let mut written = Ok(());
    for piece in deal.pieces() {
        let CapturePiece { rank, .. } = piece;
        written = if rank == 0 {
            capture(&piece, &mut best)
        } else {
            let message = communicator.receive(rank)?;
            ended[rank] = message.is_empty();
            take(&message, &piece, index, &mut best)?
        };
        written = written.and_then(|()| write(&best));
        if written.is_err() {
            break;
        }
        if rank != 0 {
            communicator.send(rank, vec![TAKEN])?;
            taken[rank] += 1;
        }
    }
    if written.is_err() {
        let mut pieces = vec![0; ranks];
        deal.pieces().for_each(|piece| pieces[piece.rank] += 1);
        for rank in (1..ranks).filter(|&rank| taken[rank] < pieces[rank]) {
            communicator.send(rank, vec![0])?;
            // What it sent before it heard of that would be taken for what comes next.
            while !ended[rank] {
                ended[rank] = communicator.receive(rank)?.is_empty();
            }
        }
    }
    Ok(written)
}

/// The captures of a piece from the message of its rank.
fn take(
    message: &[u8],
    piece: &CapturePiece,
    index: &Index,
    best: &mut Vec<Score>,
) -> Result<Result<(), StageError>, CommunicationError> {
    if message.is_empty() {
        // That rank says why when all have come to the end.
        return Ok(Err(StageError::Stopped));
    }
    let expected = piece.positions(index);
    if message.len() as u64 != expected {
        let (expected, found) = (format!("{expected} captures"), format!("{} bytes", message.len()));
        return Err(CommunicationError::Unexpected { rank: piece.rank, expected, found });
    }
    best.clear();
    best.extend(message.iter().map(|&score| score as Score));
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::PositionSet;
    use messaging::{NetworkFaults, ThreadCommunicator};
    use std::sync::atomic::AtomicUsize;

    const STONES: u32 = 5;

    /// What a rank ends with, and what rank 0 has written, where one rank fails at one of its pieces, or the file does.
    fn exchange(window: u64, ranks: usize, failing: Option<(usize, usize)>, full_at: usize) -> (Vec<bool>, Vec<Score>) {
        let index = Index::new(STONES, PositionSet::All);
        let deal = CapturePartition::new(index.slabs(), ranks);
        let mut written = Vec::new();
        let mut writes = 0;
        let ended = std::thread::scope(|scope| {
            let (index, deal) = (&index, &deal);
            let mut ends = ThreadCommunicator::job(ranks, NetworkFaults::none()).into_iter();
            let first = ends.next().unwrap();
            let pieces = |rank: usize| {
                let captured = AtomicUsize::new(0);
                move |piece: &CapturePiece, best: &mut Vec<Score>| {
                    assert_eq!(piece.rank, rank);
                    if failing == Some((rank, captured.fetch_add(1, Relaxed))) {
                        return Err(StageError::failed("no disk"));
                    }
                    best.clear();
                    best.resize(piece.positions(index) as usize, (piece.rows.start % 100) as Score);
                    Ok(())
                }
            };
            let follow = |mut end: ThreadCommunicator| {
                let capture = pieces(end.rank());
                scope.spawn(move || {
                    let sent = send(deal, index, window, &mut end, capture).unwrap();
                    // Whatever is left over would be taken for a part of this.
                    end.barrier().unwrap();
                    sent.is_ok()
                })
            };
            let running: Vec<_> = ends.map(follow).collect();
            let mut end = first;
            let mut write = |best: &[Score]| {
                writes += 1;
                if writes > full_at {
                    return Err(StageError::failed("the disk is full"));
                }
                written.extend_from_slice(best);
                Ok(())
            };
            let led = lead(deal, index, &mut end, pieces(0), &mut write).unwrap();
            end.barrier().unwrap();
            let others = running.into_iter().map(|rank| rank.join().unwrap());
            std::iter::once(led.is_ok()).chain(others).collect()
        });
        (ended, written)
    }

    #[test]
    fn all_ranks_come_to_the_end_whatever_fails() {
        let index = Index::new(STONES, PositionSet::All);
        for (window, ranks) in [(1, 2), (300, 2), (1, 3), (300, 3), (1 << 20, 3)] {
            let (ended, whole) = exchange(window, ranks, None, usize::MAX);
            assert!(ended.iter().all(|&is_ok| is_ok) && whole.len() as u64 == index.positions());
            let deal = CapturePartition::new(index.slabs(), ranks);
            for rank in 0..ranks {
                let pieces = deal.pieces().filter(|piece| piece.rank == rank).count();
                for at in 0..pieces {
                    let (ended, written) = exchange(window, ranks, Some((rank, at)), usize::MAX);
                    assert!(!ended[0] && !ended[rank] && whole.starts_with(&written), "rank {rank}, piece {at}");
                }
            }
            for full_at in 0..deal.pieces().count() {
                let (ended, written) = exchange(window, ranks, None, full_at);
                assert!(!ended[0] && ended[1..].iter().all(|&is_ok| is_ok), "write {full_at}");
                assert!(written.len() < whole.len() && whole.starts_with(&written));
            }
        }
    }
}
