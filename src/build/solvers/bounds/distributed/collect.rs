//! Collection of the planes of a bound on rank 0, in runs of words.

use super::log::DecisionLog;
use super::message::read;
use crate::bounds::{PlaneLayout, PlaneUnit};
use crate::distributed::varint::Malformed;
use crate::kernels::tables::CHUNK;
use messaging::{CommunicationError, Communicator, Result};
use std::ops::{ControlFlow, Range};

/// Words of a plane that rank 0 assembles at a time, unless a unit has more.
const BAND_WORDS: usize = 512 << 10;

/// Pieces that a rank sends ahead of acknowledgements.
const AHEAD: usize = 2;

/// Acknowledgement of a piece; anything else stops the sender.
const TAKEN: u8 = 1;

/// The next run of words of a plane.
#[derive(Debug)]
pub enum PlaneRun<'a> {
    /// This number of zero words.
    Zeros(usize),
    /// Words.
    Words(&'a mut [u64]),
}

/// Collects a plane from the logs of all ranks, and clears them. Rank 0 passes all words to `sink`. Returns false if
/// `sink` broke.
pub(super) fn collect_plane(
    log: &mut DecisionLog,
    layout: &PlaneLayout,
    communicator: &mut dyn Communicator,
    sink: &mut dyn FnMut(PlaneRun) -> ControlFlow<()>,
) -> Result<bool> {
    let units = layout.units();
    let bands = bands(&units);
    let has: Vec<bool> = bands.iter().map(|band| band.clone().any(|unit| log.has(unit))).collect();
    let announced = communicator.gather(0, has.iter().map(|&has| u8::from(has)).collect())?;
    let done = match announced {
        None => send(log, &bands, &has, communicator),
        Some(announced) => {
            let mut ranks = announced.into_iter().enumerate().map(|(rank, has)| Announced::new(rank, has, bands.len()));
            let mut ranks = ranks.by_ref().collect::<Result<Vec<_>, _>>()?;
            receive(log, layout, (&units, &bands), &mut ranks, communicator, sink)
        }
    };
    log.clear();
    done
}

/// Sends the pieces of a rank other than 0. Returns whether all were acknowledged.
fn send(
    log: &mut DecisionLog,
    bands: &[Range<usize>],
    has: &[bool],
    communicator: &mut dyn Communicator,
) -> Result<bool> {
    let mut ahead = 0;
    for (band, _) in bands.iter().zip(has).filter(|&(_, &has)| has) {
        if ahead == AHEAD {
            if communicator.receive(0)? != [TAKEN] {
                return Ok(false);
            }
            ahead -= 1;
        }
        communicator.send(0, piece(log, band))?;
        ahead += 1;
    }
    for _ in 0..ahead {
        if communicator.receive(0)? != [TAKEN] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Announcement of the pieces that a rank will send to rank 0.
struct Announced {
    rank: usize,
    /// By band, nonzero if there is a piece.
    has: Vec<u8>,
    /// Pieces still to be received.
    left: usize,
}

impl Announced {
    fn new(rank: usize, has: Vec<u8>, bands: usize) -> Result<Announced> {
        if has.len() != bands {
            let (expected, found) = (format!("{bands} bands"), format!("{} bytes", has.len()));
            return Err(CommunicationError::Unexpected { rank, expected, found });
        }
        let left = has.iter().filter(|&&has| has != 0).count();
        Ok(Announced { rank, has, left })
    }
}

/// Receives the pieces of all ranks on rank 0.
fn receive(
    log: &mut DecisionLog,
    layout: &PlaneLayout,
    (units, bands): (&[PlaneUnit], &[Range<usize>]),
    ranks: &mut [Announced],
    communicator: &mut dyn Communicator,
    sink: &mut dyn FnMut(PlaneRun) -> ControlFlow<()>,
) -> Result<bool> {
    let mut buffer = Vec::new();
    for (at, band) in bands.iter().enumerate() {
        let words = units[band.start].words.start..units[band.end - 1].words.end;
        let speaking: Vec<_> = ranks.iter().filter(|rank| rank.has[at] != 0).map(|rank| rank.rank).collect();
        let took = if speaking.is_empty() {
            sink(PlaneRun::Zeros(words.len()))
        } else {
            buffer.clear();
            buffer.resize(words.len(), 0);
            for &rank in &speaking {
                let piece = if rank == 0 { piece(log, band) } else { communicator.receive(rank)? };
                add(layout, &words, &piece, &mut buffer).map_err(|Malformed| unexpected(rank))?;
            }
            sink(PlaneRun::Words(&mut buffer))
        };
        for &rank in &speaking {
            ranks[rank].left -= 1;
        }
        if took.is_break() {
            return stop(ranks, &speaking, communicator).map(|()| false);
        }
        for &rank in speaking.iter().filter(|&&rank| rank != 0) {
            communicator.send(rank, vec![TAKEN])?;
        }
    }
    Ok(true)
}

/// Stops all ranks that still wait for an acknowledgement, and drains the pieces that they have sent: these would be
/// read as later messages.
fn stop(ranks: &[Announced], speaking: &[usize], communicator: &mut dyn Communicator) -> Result<()> {
    for rank in ranks.iter().filter(|rank| rank.rank != 0) {
        let unanswered = usize::from(speaking.contains(&rank.rank));
        if rank.left + unanswered > 0 {
            communicator.send(rank.rank, vec![0])?;
            for _ in 0..rank.left.min(AHEAD - unanswered) {
                communicator.receive(rank.rank)?;
            }
        }
    }
    Ok(())
}

/// Encodes the logs of some units, each prefixed by its length.
fn piece(log: &mut DecisionLog, band: &Range<usize>) -> Vec<u8> {
    let mut piece = Vec::new();
    for bound_message in band.clone().map(|unit| log.take(unit)).filter(|bound_message| !bound_message.is_empty()) {
        piece.extend_from_slice(&(bound_message.len() as u32).to_le_bytes());
        piece.extend_from_slice(&bound_message);
    }
    piece
}

/// Adds the bits of a piece to words of a plane.
fn add(layout: &PlaneLayout, words: &Range<usize>, mut piece: &[u8], to: &mut [u64]) -> Result<(), Malformed> {
    while !piece.is_empty() {
        let (length, rest) = piece.split_first_chunk().ok_or(Malformed)?;
        let (bound_message, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(Malformed)?;
        piece = rest;
        read(bound_message, |row, bits| {
            let (slab, row) = row_location(layout, row).ok_or(Malformed)?;
            let slab = &layout.slabs()[slab];
            for &(word, bits) in bits {
                let behind = (slab.columns as u64).saturating_sub(u64::from(word) * CHUNK as u64);
                let is_inside = behind >= CHUNK as u64 || bits >> behind == 0;
                let at = slab.word(row) + word as usize;
                if word as usize >= slab.row_words || !is_inside || !words.contains(&at) {
                    return Err(Malformed);
                }
                to[at - words.start] |= bits;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Returns the slab of a row that is counted over all slabs, and its number there.
pub(super) fn row_location(layout: &PlaneLayout, row: u32) -> Option<(usize, usize)> {
    let row = row as usize;
    let slab = layout.slabs().partition_point(|slab| slab.first_row <= row).checked_sub(1)?;
    let row = row - layout.slabs()[slab].first_row;
    (row < layout.slabs()[slab].rows).then_some((slab, row))
}

/// Cuts the units into bands that are assembled together. Depends on the database alone.
fn bands(units: &[PlaneUnit]) -> Vec<Range<usize>> {
    let mut bands: Vec<Range<usize>> = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        match bands.last_mut() {
            Some(band) if unit.words.end - units[band.start].words.start <= BAND_WORDS => band.end = number + 1,
            _ => bands.push(number..number + 1),
        }
    }
    bands
}

fn unexpected(rank: usize) -> CommunicationError {
    let (expected, found) = ("bits of a plane".to_owned(), "something else".to_owned());
    CommunicationError::Unexpected { rank, expected, found }
}
