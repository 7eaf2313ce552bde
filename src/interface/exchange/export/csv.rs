//! Export as text: `position,score`, a line for each position in canonical order. A position is written as
//! twelve numbers, A to F of the mover and then a to f, separated by spaces; every command accepts this form.
//!
//! Of a database of pairs `position,low,high,score`: the score is empty where the bounds differ.

use super::Exporter;
use crate::error::ExchangeError;
use game::Orientation;
use game::notation::PositionText;
use rayon::prelude::*;
use std::fmt::Write;

/// Positions of a piece of text, formatted by one thread.
const PIECE_POSITIONS: u64 = 1 << 13;
/// Pieces at a time: at most 20 MiB of text.
const PIECES: u64 = 64;

/// Writes `NN.csv`.
pub(crate) fn write(exporter: &mut Exporter<'_>) -> Result<(), ExchangeError> {
    let index = exporter.index;
    let positions = index.positions();
    let name = format!("{:02}.csv", index.stones());
    let mut sink = exporter.begin(&name, 0)?;
    sink.write(if exporter.has_pairs { b"position,low,high,score\n" } else { b"position,score\n" })?;
    let reader = &*exporter;
    let pieces = positions.div_ceil(PIECE_POSITIONS);
    for first_piece in (0..pieces).step_by(PIECES as usize) {
        exporter.check_stop()?;
        let texts: Vec<String> = (first_piece..pieces.min(first_piece + PIECES))
            .into_par_iter()
            .map(|piece| {
                let first = piece * PIECE_POSITIONS;
                let end = positions.min(first + PIECE_POSITIONS);
                let (mut low, mut high) = (Vec::new(), Vec::new());
                reader.read(first..end, &mut low, &mut high)?;
                let mut text = String::new();
                for (at, (position, low)) in (first..end).zip(low).enumerate() {
                    let board = PositionText::of_board(index.unrank(position, Orientation::OpponentMajor));
                    let _ = match high.get(at) {
                        None => writeln!(text, "{board},{low}"),
                        Some(&high) if low == high => writeln!(text, "{board},{low},{high},{low}"),
                        Some(high) => writeln!(text, "{board},{low},{high},"),
                    };
                }
                Ok::<_, ExchangeError>(text)
            })
            .collect::<Result<_, _>>()?;
        for text in texts {
            sink.write(text.as_bytes())?;
        }
    }
    exporter.finish(&name, sink)
}
