//! Collection of a database: from the ranks that computed its values to the ranks that write them.
//!
//! Each rank collects the values of a range of positions, band by band. In each round a rank sends every other rank its
//! share of the band that the other collects next, and receives the shares of its own band. A rank sends in round k
//! only after it has received all of round k - 1, so no rank runs more than two rounds ahead. Each rank sends to its
//! next neighbour first, which spreads the load.

use game::Slab;
use messaging::{CommunicationError, Communicator, Result};
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};

/// Positions of a band, unless one row has more. Smaller in tests, so that slabs have several bands.
pub const BAND_POSITIONS: u64 = if cfg!(test) { 1 << 10 } else { 4 << 20 };

/// First byte of a message: whether the sender wants more scores.
const WANTS_MORE: u8 = 1;
const HAS_ENOUGH: u8 = 0;

/// Consecutive rows of a slab.
#[derive(Clone, Debug)]
pub struct RowBand {
    /// The slab, by the stones of the mover.
    pub slab: usize,
    /// Its rows.
    pub rows: Range<usize>,
}

/// The values that one rank has of a database, or computes as they are collected, by bands.
pub trait ScoreShare: Sync {
    /// The slabs of the database.
    fn slabs(&self) -> &[Slab];

    /// Positions of each row of a slab: those of a row that is `OpponentMajor`, unless stated otherwise.
    fn columns(&self, slab: &Slab) -> usize {
        slab.mover_halves as usize
    }

    /// Appends this rank's values of a band to `piece`.
    fn give(&self, band: &RowBand, piece: &mut Vec<u8>);

    /// Assembles the rows of a band from the pieces of all ranks.
    fn join(&self, band: &RowBand, pieces: &[&[u8]], rows: &mut [i8]) -> Result<()>;
}

/// Collects on each rank the scores of its range of positions, and passes them to `sink` in canonical order.
///
/// `ranges` has the range of every rank. A sink that breaks ends the collection on all ranks. Returns false if this
/// rank has seen a sink break; in the last two rounds other ranks may not see it.
///
/// # Panics
/// If there is not one range for each rank.
pub fn collect(
    part: &dyn ScoreShare,
    ranges: &[Range<u64>],
    communicator: &mut dyn Communicator,
    sink: &mut dyn FnMut(&[i8]) -> ControlFlow<()>,
) -> Result<bool> {
    let (ranks, mine) = (communicator.size(), communicator.rank());
    assert_eq!(ranges.len(), ranks, "a range for each rank");
    let bands: Vec<_> = ranges.iter().map(|range| bands(part, range)).collect();
    let rounds = bands.iter().map(Vec::len).max().unwrap_or(0);
    let mut take = |band: &RowBand, rows: &[i8]| {
        let wanted = wanted(part, band, &ranges[mine]);
        sink(&rows[wanted]).is_continue()
    };
    let mut wants_more = true;
    // The last band received: passed to the sink while the next one is in transit.
    let mut came: Option<(&RowBand, Vec<i8>)> = None;
    let mut rows = Vec::new();
    for round in 0..rounds {
        let piece = |rank: usize| {
            let mut piece = vec![if wants_more { WANTS_MORE } else { HAS_ENOUGH }];
            if let Some(band) = bands[rank].get(round).filter(|_| wants_more) {
                part.give(band, &mut piece);
            }
            piece
        };
        let pieces: Vec<_> = (0..ranks).into_par_iter().map(|ahead| piece((mine + ahead) % ranks)).collect();
        let mut pieces = pieces.into_iter();
        let own = pieces.next();
        for (ahead, piece) in (1..).zip(pieces) {
            communicator.send((mine + ahead) % ranks, piece)?;
        }
        let wanted_more = wants_more;
        if let Some((band, scores)) = came.take() {
            wants_more = wants_more && take(band, &scores);
            rows = scores;
        }
        let mut pieces = vec![Vec::new(); ranks];
        pieces[mine] = own.unwrap_or_default();
        for behind in 1..ranks {
            let from = (mine + ranks - behind) % ranks;
            pieces[from] = communicator.receive(from)?;
        }
        let marks = pieces.iter().enumerate().map(|(rank, piece)| mark(rank, piece));
        let all = marks.collect::<Result<Vec<_>, _>>()?.into_iter().all(|wants_more| wants_more);
        if !all || !wanted_more {
            // All ranks return here: the rank that wants no more said so to all in the same round.
            return Ok(false);
        }
        let pieces: Vec<_> = pieces.iter().map(|piece| &piece[1..]).collect();
        match bands[mine].get(round) {
            Some(band) => {
                let slab = &part.slabs()[band.slab];
                rows.clear();
                rows.resize(band.rows.len() * part.columns(slab), 0);
                part.join(band, &pieces, &mut rows)?;
                came = Some((band, std::mem::take(&mut rows)));
            }
            None => pieces.iter().enumerate().try_for_each(|(rank, piece)| fits(rank, 0, piece))?,
        }
    }
    Ok(wants_more && came.is_none_or(|(band, rows)| take(band, &rows)))
}

/// Returns whether the sender of a message wants more scores.
fn mark(rank: usize, message: &[u8]) -> Result<bool> {
    match message {
        [WANTS_MORE, ..] => Ok(true),
        [HAS_ENOUGH] => Ok(false),
        _ => {
            let (expected, found) = ("scores".to_owned(), format!("{} other bytes", message.len()));
            Err(CommunicationError::Unexpected { rank, expected, found })
        }
    }
}

/// Checks the length of a piece against the number of scores that the rank has of the band.
pub fn fits(rank: usize, expected: usize, piece: &[u8]) -> Result<()> {
    if piece.len() == expected {
        return Ok(());
    }
    let (expected, found) = (format!("{expected} scores"), format!("{} bytes", piece.len()));
    Err(CommunicationError::Unexpected { rank, expected, found })
}

/// Cuts the rows of a range of positions into bands, slab by slab.
fn bands(part: &dyn ScoreShare, range: &Range<u64>) -> Vec<RowBand> {
    let mut bands = Vec::new();
    for (at, slab) in part.slabs().iter().enumerate() {
        let row = part.columns(slab) as u64;
        let within = |position: u64| position.clamp(slab.offset, slab.offset + slab.positions()) - slab.offset;
        let (first, end) = (within(range.start), within(range.end));
        if first < end {
            let (first, end) = ((first / row) as usize, end.div_ceil(row) as usize);
            let height = (BAND_POSITIONS / row).max(1) as usize;
            let starts = (first..end).step_by(height);
            bands.extend(starts.map(|start| RowBand { slab: at, rows: start..end.min(start + height) }));
        }
    }
    bands
}

/// Returns the part of a band that is in a range of positions.
fn wanted(part: &dyn ScoreShare, band: &RowBand, range: &Range<u64>) -> Range<usize> {
    let slab = &part.slabs()[band.slab];
    let row = part.columns(slab) as u64;
    let first = slab.offset + band.rows.start as u64 * row;
    let end = first + band.rows.len() as u64 * row;
    let within = |position: u64| (position.clamp(first, end) - first) as usize;
    within(range.start)..within(range.end)
}
