//! A solved database, brought from those who solved it to those who write it.
//!
//! Each rank collects the scores of a range of positions, band by band. In a round, every rank sends each other one what
//! it has of that one's next band, and takes in its own. That a message of a round came says that its sender has all of
//! the round before, so no rank is more than two rounds ahead of another, whoever waits. Each feeds its next neighbour
//! first, so that nobody is fed by all at once.

use game::Slab;
use messaging::{CommunicationError, Communicator};
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};

/// Scores that a rank takes in at a time, about. Tests have several bands in slabs, too.
const BAND_POSITIONS: u64 = if cfg!(test) { 1 << 10 } else { 4 << 20 };

/// What a message begins with: its sender goes on, or has enough.
const GOES_ON: u8 = 1;
const HAS_ENOUGH: u8 = 0;

/// Consecutive `OpponentMajor` rows of a slab.
#[derive(Clone, Debug)]
pub struct RowBand {
    /// The slab, by the stones of the mover.
    pub slab: usize,
    /// Its rows.
    pub rows: Range<usize>,
}

/// What a rank has of a database, as bands ask for it.
pub trait ScoreShare: Sync {
    /// The slabs of the database.
    fn slabs(&self) -> &[Slab];

    /// Adds the scores that this rank has of a band.
    fn give(&self, band: &RowBand, piece: &mut Vec<u8>);

    /// Puts the pieces of all ranks together, row by row.
    fn join(&self, band: &RowBand, pieces: &[&[u8]], rows: &mut [i8]) -> Result<(), CommunicationError>;
}

/// Brings scores to those who want them: each rank gives those of its range of positions to `sink`, in canonical order.
/// `ranges` are those of all ranks. Whether all sinks took all, as far as is known here.
///
/// # Errors
/// Where a rank cannot be reached any more.
///
/// # Panics
/// When there are not as many ranges as ranks.
pub fn collect(
    part: &dyn ScoreShare,
    ranges: &[Range<u64>],
    communicator: &mut dyn Communicator,
    sink: &mut dyn FnMut(&[i8]) -> ControlFlow<()>,
) -> Result<bool, CommunicationError> {
    let (ranks, mine) = (communicator.size(), communicator.rank());
    assert_eq!(ranges.len(), ranks, "a range for each rank");
    let bands: Vec<_> = ranges.iter().map(|range| bands(part.slabs(), range)).collect();
    let rounds = bands.iter().map(Vec::len).max().unwrap_or(0);
    let mut take = |band: &RowBand, rows: &[i8]| {
        let wanted = wanted(&part.slabs()[band.slab], band, &ranges[mine]);
        sink(&rows[wanted]).is_continue()
    };
    let mut goes_on = true;
    // What came, and is not taken while the next is on its way.
    let mut came: Option<(&RowBand, Vec<i8>)> = None;
    let mut rows = Vec::new();
    for round in 0..rounds {
        let piece = |rank: usize| {
            let mut piece = vec![if goes_on { GOES_ON } else { HAS_ENOUGH }];
            if let Some(band) = bands[rank].get(round).filter(|_| goes_on) {
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
        let went_on = goes_on;
        if let Some((band, scores)) = came.take() {
            goes_on = goes_on && take(band, &scores);
            rows = scores;
        }
        let mut pieces = vec![Vec::new(); ranks];
        pieces[mine] = own.unwrap_or_default();
        for behind in 1..ranks {
            let from = (mine + ranks - behind) % ranks;
            pieces[from] = communicator.receive(from)?;
        }
        let marks = pieces.iter().enumerate().map(|(rank, piece)| mark(rank, piece));
        let all = marks.collect::<Result<Vec<_>, _>>()?.into_iter().all(|goes_on| goes_on);
        if !all || !went_on {
            // All know: whoever has enough told everybody in the same round.
            return Ok(false);
        }
        let pieces: Vec<_> = pieces.iter().map(|piece| &piece[1..]).collect();
        match bands[mine].get(round) {
            Some(band) => {
                let slab = &part.slabs()[band.slab];
                rows.clear();
                rows.resize(band.rows.len() * slab.mover_halves as usize, 0);
                part.join(band, &pieces, &mut rows)?;
                came = Some((band, std::mem::take(&mut rows)));
            }
            None => pieces.iter().enumerate().try_for_each(|(rank, piece)| fits(rank, 0, piece))?,
        }
    }
    Ok(goes_on && came.is_none_or(|(band, rows)| take(band, &rows)))
}

/// Whether the sender of a message goes on.
fn mark(rank: usize, message: &[u8]) -> Result<bool, CommunicationError> {
    match message {
        [GOES_ON, ..] => Ok(true),
        [HAS_ENOUGH] => Ok(false),
        _ => {
            let (expected, found) = ("scores".to_owned(), format!("{} other bytes", message.len()));
            Err(CommunicationError::Unexpected { rank, expected, found })
        }
    }
}

/// That a rank sent as many scores as it has of the band.
pub(crate) fn fits(rank: usize, expected: usize, piece: &[u8]) -> Result<(), CommunicationError> {
    if piece.len() == expected {
        return Ok(());
    }
    let (expected, found) = (format!("{expected} scores"), format!("{} bytes", piece.len()));
    Err(CommunicationError::Unexpected { rank, expected, found })
}

/// The rows that have a range of positions, slab by slab.
fn bands(slabs: &[Slab], range: &Range<u64>) -> Vec<RowBand> {
    let mut bands = Vec::new();
    for (at, slab) in slabs.iter().enumerate() {
        let row = u64::from(slab.mover_halves);
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

/// What of the rows of a band is in a range of positions.
fn wanted(slab: &Slab, band: &RowBand, range: &Range<u64>) -> Range<usize> {
    let row = u64::from(slab.mover_halves);
    let first = slab.offset + band.rows.start as u64 * row;
    let end = first + band.rows.len() as u64 * row;
    let within = |position: u64| (position.clamp(first, end) - first) as usize;
    within(range.start)..within(range.end)
}
