//! Export as text: `position,score`, or `position,low,high` of a database of pairs, a line for each position in canonical order. A position is written as twelve
//! numbers, A to F of the mover and then a to f, separated by spaces; every command accepts this form.

use super::Exporter;
use crate::ExchangeError;
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
    let (scores, index) = (exporter.scores, exporter.index);
    let positions = index.positions();
    let has_pairs = scores.identity().kind.has_pairs();
    let name = format!("{:02}.csv", index.stones());
    let mut sink = exporter.begin(&name, 0)?;
    sink.write(if has_pairs { b"position,low,high\n" } else { b"position,score\n" })?;
    let pieces = positions.div_ceil(PIECE_POSITIONS);
    for first_piece in (0..pieces).step_by(PIECES as usize) {
        exporter.check_stop()?;
        let texts: Vec<String> = (first_piece..pieces.min(first_piece + PIECES))
            .into_par_iter()
            .map(|piece| {
                let first = piece * PIECE_POSITIONS;
                let end = positions.min(first + PIECE_POSITIONS);
                let mut buffer = vec![0; (end - first) as usize];
                scores.read_range(first..end, &mut buffer)?;
                let mut high = vec![0; if has_pairs { buffer.len() } else { 0 }];
                if has_pairs {
                    scores.read_range(positions + first..positions + end, &mut high)?;
                }
                let mut text = String::new();
                for (at, (position, score)) in (first..end).zip(buffer).enumerate() {
                    let board = PositionText::of_board(index.unrank(position, Orientation::OpponentMajor));
                    let _ = match high.get(at) {
                        Some(high) => writeln!(text, "{board},{score},{high}"),
                        None => writeln!(text, "{board},{score}"),
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
