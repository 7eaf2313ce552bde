//! Collection of the planes of a bound: each rank gets the words of a range, in runs.
//!
//! In each round every rank sends to every other one what it logged of a band of that rank's range. Before
//! the first message of a round is received, those of the round before were, so that a rank is ahead of
//! another by one round at most.

use super::log::DecisionLog;
use super::message::{BoundMessage, read};
use crate::bounds::{BitKernel, PlaneLayout, PlaneUnit};
use crate::ranks::varint::Malformed;
use messaging::{CommunicationError, Communicator, Result};
use std::ops::{ControlFlow, Range};

/// Words of a plane that a rank assembles at a time, unless a unit has more.
const BAND_WORDS: usize = 512 << 10;

/// First byte of a message of a rank that goes on, and of one whose sink broke.
const WANTS_MORE: u8 = 1;
const HAS_ENOUGH: u8 = 0;

/// The next run of words of a plane.
#[derive(Debug)]
pub enum PlaneRun<'a> {
    /// This number of zero words.
    Zeros(usize),
    /// Words.
    Words(&'a mut [u64]),
}

/// Collects the words of a plane from the logs of all ranks, and clears them. Each rank passes those of its
/// range, one of `ranges`, to `sink`. Returns false on all ranks if a `sink` broke.
///
/// # Panics
/// If there is not one range for each rank.
pub(super) fn collect_plane(
    log: &mut DecisionLog,
    layout: &PlaneLayout,
    ranges: &[Range<usize>],
    communicator: &mut dyn Communicator,
    sink: &mut dyn FnMut(PlaneRun) -> ControlFlow<()>,
) -> Result<bool> {
    let done = exchange(log, layout, ranges, communicator, sink);
    log.clear();
    done
}

fn exchange(
    log: &DecisionLog,
    layout: &PlaneLayout,
    ranges: &[Range<usize>],
    communicator: &mut dyn Communicator,
    sink: &mut dyn FnMut(PlaneRun) -> ControlFlow<()>,
) -> Result<bool> {
    let (ranks, mine) = (communicator.size(), communicator.rank());
    assert_eq!(ranges.len(), ranks, "a range for each rank");
    let units = layout.units();
    let bands: Vec<_> = ranges.iter().map(|range| bands(&units, range)).collect();
    let rounds = bands.iter().map(Vec::len).max().unwrap_or(0);
    let mut wants_more = true;
    let mut buffer = Vec::new();
    for round in 0..rounds {
        let piece = |rank: usize| {
            let mut message = vec![if wants_more { WANTS_MORE } else { HAS_ENOUGH }];
            if let Some(band) = bands[rank].get(round).filter(|_| wants_more) {
                message.extend(piece(log, layout, &units, band));
            }
            message
        };
        for ahead in 1..ranks {
            let to = (mine + ahead) % ranks;
            communicator.send(to, piece(to))?;
        }
        let mut pieces = vec![Vec::new(); ranks];
        pieces[mine] = piece(mine);
        for behind in 1..ranks {
            let from = (mine + ranks - behind) % ranks;
            pieces[from] = communicator.receive(from)?;
        }
        let mut all = true;
        for (rank, piece) in pieces.iter().enumerate() {
            all &= match piece.first() {
                Some(&WANTS_MORE) => true,
                Some(&HAS_ENOUGH) => false,
                _ => return Err(unexpected(rank)),
            };
        }
        if !all {
            // All ranks return here: the rank that wants no more said so to all in the same round.
            return Ok(false);
        }
        let Some(band) = bands[mine].get(round) else {
            if let Some(rank) = pieces.iter().position(|piece| piece.len() > 1) {
                return Err(unexpected(rank));
            }
            continue;
        };
        let took = if pieces.iter().all(|piece| piece.len() == 1) {
            sink(PlaneRun::Zeros(band.words.len()))
        } else {
            buffer.clear();
            buffer.resize(band.words.len(), 0);
            for (rank, piece) in pieces.iter().enumerate() {
                add(log.kernel, layout, &band.words, &piece[1..], &mut buffer).map_err(|Malformed| unexpected(rank))?;
            }
            sink(PlaneRun::Words(&mut buffer))
        };
        wants_more = took.is_continue();
    }
    Ok(communicator.sum(&[u64::from(!wants_more)])? == [0])
}

/// Words that a rank assembles together, and the units in which they are.
struct WordBand {
    units: Range<usize>,
    words: Range<usize>,
}

/// Encodes the logs of some units, each prefixed by its length.
fn piece(log: &DecisionLog, layout: &PlaneLayout, units: &[PlaneUnit], band: &WordBand) -> Vec<u8> {
    let mut piece = Vec::new();
    for number in band.units.clone() {
        let mut bound_message = log.of_unit(number);
        let words = &units[number].words;
        if words.start < band.words.start || band.words.end < words.end {
            bound_message = only(log.kernel, layout, &bound_message, &band.words);
        }
        if !bound_message.is_empty() {
            piece.extend_from_slice(&(bound_message.len() as u32).to_le_bytes());
            piece.extend_from_slice(&bound_message);
        }
    }
    piece
}

/// Returns the bits of a log that are in some words.
fn only(kernel: BitKernel, layout: &PlaneLayout, bound_message: &[u8], words: &Range<usize>) -> Vec<u8> {
    let (mut only, mut inside) = (BoundMessage::default(), Vec::new());
    let read = read(kernel, bound_message, |row, bits| {
        let (slab, in_slab) = row_location(layout, row).ok_or(Malformed)?;
        let first = layout.slabs()[slab].word(in_slab);
        inside.clear();
        inside.extend(bits.iter().filter(|&&(word, _)| words.contains(&(first + word as usize))));
        only.write(kernel, row, &inside);
        Ok(())
    });
    read.expect("a log is what this rank wrote");
    only.take()
}

/// Adds the bits of a piece to words of a plane.
fn add(
    kernel: BitKernel,
    layout: &PlaneLayout,
    words: &Range<usize>,
    mut piece: &[u8],
    to: &mut [u64],
) -> Result<(), Malformed> {
    while !piece.is_empty() {
        let (length, rest) = piece.split_first_chunk().ok_or(Malformed)?;
        let (bound_message, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(Malformed)?;
        piece = rest;
        read(kernel, bound_message, |row, bits| {
            let (slab, row) = row_location(layout, row).ok_or(Malformed)?;
            let slab = &layout.slabs()[slab];
            let (Some(&(least, _)), Some(&(most, _))) = (bits.first(), bits.last()) else { return Err(Malformed) };
            let first = slab.word(row);
            let place = |word: u32| first + word as usize;
            if !slab.has_bits(bits) || !words.contains(&place(least)) || !words.contains(&place(most)) {
                return Err(Malformed);
            }
            bits.iter().for_each(|&(word, bits)| to[place(word) - words.start] |= bits);
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

/// Cuts the words of a range into bands, at the ends of units.
fn bands(units: &[PlaneUnit], range: &Range<usize>) -> Vec<WordBand> {
    let mut bands: Vec<WordBand> = Vec::new();
    if range.is_empty() {
        return bands;
    }
    let first = units.partition_point(|unit| unit.words.end <= range.start);
    for (number, unit) in units.iter().enumerate().skip(first).take_while(|(_, unit)| unit.words.start < range.end) {
        let words = unit.words.start.max(range.start)..unit.words.end.min(range.end);
        match bands.last_mut() {
            Some(band) if words.end - band.words.start <= BAND_WORDS => {
                band.units.end = number + 1;
                band.words.end = words.end;
            }
            _ => bands.push(WordBand { units: number..number + 1, words }),
        }
    }
    bands
}

fn unexpected(rank: usize) -> CommunicationError {
    let (expected, found) = ("bits of a plane".to_owned(), "something else".to_owned());
    CommunicationError::Unexpected { rank, expected, found }
}
