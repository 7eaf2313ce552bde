//! Export as raw bytes: one signed byte a position in canonical order, and a description beside it.
//!
//! The BLAKE3 of the bytes is the content digest of the database. The description is a JSON object:
//!
//! ```json
//! {
//!   "layout": "awari-raw", "version": 1, "stones": 6, "rules": "awari", "positions": "all", "count": 12376,
//!   "order": "...", "slabs": [{ "mover_stones": 0, "rows": 462, "columns": 1 }, ...],
//!   "scores": "06.raw", "blake3": "..."
//! }
//! ```
//!
//! Of a database of pairs there are two such files, `"low": "06.low.raw"` and `"high": "06.high.raw"` in
//! place of `scores`, and the layout is `awari-raw-bounds`. The content digest is the BLAKE3 of the bytes of
//! the first, followed by those of the second.
//!
//! The opening position is a slab of its own behind the others, `{ "opening": [4, 4, ...], "rows": 1, "columns": 1 }`.

use super::Exporter;
use crate::error::ExchangeError;
use disk::{Digest, bytes_of};
use serde_json::json;
use store::{BLOCK_POSITIONS, StoreError};

/// Positions read at a time: 4 MiB.
const BATCH_POSITIONS: u64 = 64 * BLOCK_POSITIONS as u64;

const ORDER: &str = "one signed byte a position; slabs ascending by the stones of the player to move; in a slab one row \
    for each half of the opponent (of those in the position set), in it one column for each half of the player to move, \
    both in descending lexicographic order of their pits, the first pit first";

/// Writes `NN.raw` and `NN.json`.
pub(crate) fn write(exporter: &mut Exporter<'_>) -> Result<(), ExchangeError> {
    let (scores, stones) = (exporter.scores, exporter.index.stones());
    let positions = exporter.index.positions();
    // The key of the description, and the name.
    let files = if exporter.has_pairs {
        vec![("low", format!("{stones:02}.low.raw")), ("high", format!("{stones:02}.high.raw"))]
    } else {
        vec![("scores", format!("{stones:02}.raw"))]
    };
    let mut hasher = blake3::Hasher::new();
    let (mut low, mut buffer) = (Vec::new(), Vec::new());
    let mut sinks = Vec::new();
    for (section, (_, name)) in files.iter().enumerate() {
        let mut sink = exporter.begin(name, positions)?;
        for first in (0..positions).step_by(BATCH_POSITIONS as usize) {
            exporter.check_stop()?;
            let end = positions.min(first + BATCH_POSITIONS);
            if section == 0 {
                buffer.resize((end - first) as usize, 0);
                scores.read_range(first..end, &mut buffer)?;
            } else {
                // With the lower bounds, which the upper ones must not be below.
                exporter.read(first..end, &mut low, &mut buffer)?;
            }
            hasher.update_rayon(bytes_of(&buffer));
            sink.write(bytes_of(&buffer))?;
        }
        sinks.push(sink);
    }
    let found = Digest(*hasher.finalize().as_bytes());
    if found != scores.digest() {
        let (path, expected) = (scores.path().to_path_buf(), scores.digest());
        return Err(StoreError::DigestDiffers { path, expected, found }.into());
    }
    for ((_, name), sink) in files.iter().zip(sinks) {
        exporter.finish(name, sink)?;
    }
    let identity = scores.identity();
    let slabs = scores.shape().slabs();
    let slabs = slabs[..slabs.len() / files.len()].iter().zip(0..);
    let slabs: Vec<_> = slabs
        .map(|(slab, mover_stones)| match exporter.index.opening().filter(|_| mover_stones > stones) {
            Some(opening) => json!({ "opening": opening.board().0, "rows": slab.rows, "columns": slab.columns }),
            None => json!({ "mover_stones": mover_stones, "rows": slab.rows, "columns": slab.columns }),
        })
        .collect();
    let order = match exporter.index.opening() {
        Some(_) => format!("{ORDER}; the opening position is last"),
        None => ORDER.to_owned(),
    };
    let layout = if exporter.has_pairs { "awari-raw-bounds" } else { "awari-raw" };
    let mut text = json!({
        "layout": layout, "version": 1, "stones": stones, "rules": identity.rules, "positions": identity.positions,
        "count": positions, "order": order, "slabs": slabs, "blake3": found.to_string(),
    });
    for (key, name) in files {
        text[key] = name.into();
    }
    exporter.write(&format!("{stones:02}.json"), format!("{text:#}\n").as_bytes())
}
