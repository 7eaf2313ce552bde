//! A solved database, of the parts that the ranks own.

use super::Part;
use game::Slab;
use ranks::{CommunicationError, Communicator};
use std::ops::{ControlFlow, Range};

/// Scores that travel at a time, about, to the rank that collects them.
const BAND_POSITIONS: usize = 8 << 20;

/// Bands that a rank sends before it hears that one was taken.
const AHEAD: usize = 2;

/// Columns of a band, at most.
const COLUMNS_MAX: usize = 1024;

/// Taken, and go on; or do not.
const TAKEN: u8 = 1;

/// Some columns of a slab.
pub(crate) struct Band {
    pub(crate) slab: usize,
    pub(crate) columns: Range<usize>,
}

/// What a rank owns, as bands ask for it.
pub(crate) trait Banded {
    fn rank(&self) -> usize;

    fn ranks(&self) -> usize;

    fn slabs(&self) -> &[Slab];

    /// The scores that this rank has of a band.
    fn piece(&self, band: &Band) -> Vec<u8>;

    /// Puts the pieces of all ranks together, column by column, behind `run`.
    fn join(&self, band: &Band, pieces: &[Vec<u8>], run: &mut Vec<i8>) -> Result<(), CommunicationError>;
}

/// Brings all parts together: rank 0 gives the scores to `sink`, in canonical order and in runs of whole rows. Whether
/// `sink` took all.
///
/// # Errors
/// Where a rank cannot be reached any more.
pub fn collect(
    part: &Part,
    communicator: &mut dyn Communicator,
    sink: &mut dyn FnMut(&[i8]) -> ControlFlow<()>,
) -> Result<bool, CommunicationError> {
    collect_bands(part, communicator, sink)
}

/// The same, of what is shared in any way.
pub(crate) fn collect_bands(
    part: &dyn Banded,
    communicator: &mut dyn Communicator,
    sink: &mut dyn FnMut(&[i8]) -> ControlFlow<()>,
) -> Result<bool, CommunicationError> {
    let bands = bands(part.slabs());
    if part.rank() != 0 {
        for (at, band) in bands.iter().enumerate() {
            if at >= AHEAD && !is_taken(communicator)? {
                return Ok(false);
            }
            communicator.send(0, part.piece(band))?;
        }
        for _ in 0..bands.len().min(AHEAD) {
            if !is_taken(communicator)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let mut run = Vec::new();
    for (at, band) in bands.iter().enumerate() {
        let mut pieces = vec![part.piece(band)];
        for rank in 1..part.ranks() {
            pieces.push(communicator.receive(rank)?);
        }
        run.clear();
        part.join(band, &pieces, &mut run)?;
        let took = sink(&run).is_continue();
        for rank in 1..part.ranks() {
            communicator.send(rank, vec![if took { TAKEN } else { 0 }])?;
        }
        if !took {
            // What the others sent before they heard of it would be taken for what comes next.
            for rank in 1..part.ranks() {
                for _ in at + 1..bands.len().min(at + AHEAD) {
                    communicator.receive(rank)?;
                }
            }
            return Ok(false);
        }
    }
    Ok(true)
}

/// A piece that has not as many scores as its rank owns of the band.
pub(crate) fn misfit(rank: usize, expected: usize, piece: &[u8]) -> CommunicationError {
    let (expected, found) = (format!("{expected} scores"), format!("{} bytes", piece.len()));
    CommunicationError::Unexpected { rank, expected, found }
}

/// What rank 0 says of a band.
fn is_taken(communicator: &mut dyn Communicator) -> Result<bool, CommunicationError> {
    Ok(communicator.receive(0)? == [TAKEN])
}

/// All columns, slab by slab: a function of the database alone.
fn bands(slabs: &[Slab]) -> Vec<Band> {
    let mut bands = Vec::new();
    for (at, slab) in slabs.iter().enumerate() {
        let columns = slab.opponent_halves as usize;
        let width = (BAND_POSITIONS / slab.mover_halves as usize).clamp(1, COLUMNS_MAX);
        for stripe in (0..columns).step_by(COLUMNS_MAX) {
            let end = columns.min(stripe + COLUMNS_MAX);
            let starts = (stripe..end).step_by(width);
            bands.extend(starts.map(|start| Band { slab: at, columns: start..end.min(start + width) }));
        }
    }
    bands
}

impl Banded for Part {
    fn rank(&self) -> usize {
        Part::rank(self)
    }

    fn ranks(&self) -> usize {
        self.territories().ranks()
    }

    fn slabs(&self) -> &[Slab] {
        self.territories().slabs()
    }

    /// Row by row of the band, `OpponentMajor`.
    fn piece(&self, band: &Band) -> Vec<u8> {
        let slab = self.rows.slabs()[band.slab];
        let mut piece = Vec::new();
        for row in band.columns.clone() {
            let columns = self.territories().columns(Part::rank(self), band.slab, row);
            let scores = &self.rows.bytes()[slab.place(row, &columns)];
            piece.extend(scores.iter().map(|&score| score as u8));
        }
        piece
    }

    fn join(&self, band: &Band, pieces: &[Vec<u8>], run: &mut Vec<i8>) -> Result<(), CommunicationError> {
        let columns = |rank: usize, row: usize| self.territories().columns(rank, band.slab, row).len();
        for (rank, piece) in pieces.iter().enumerate() {
            let expected = band.columns.clone().map(|row| columns(rank, row)).sum();
            if piece.len() != expected {
                return Err(misfit(rank, expected, piece));
            }
        }
        let mut rest: Vec<_> = pieces.iter().map(|piece| &piece[..]).collect();
        for row in band.columns.clone() {
            for (rank, rest) in rest.iter_mut().enumerate() {
                let (now, later) = rest.split_at(columns(rank, row));
                run.extend(now.iter().map(|&score| score as i8));
                *rest = later;
            }
        }
        Ok(())
    }
}
