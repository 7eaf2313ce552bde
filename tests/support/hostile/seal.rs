//! Recomputes checksums, so that hostile bytes reach the code behind them, as an attacker could. Written from
//! the descriptions of the formats alone.

use disk::{Digest, bytes_of};
use twox_hash::{XxHash3_64, XxHash3_128};

/// The magic of a journal's records, and how long they are without payload.
const RECORD_MAGIC: [u8; 4] = [0xFF, b'J', b'R', 1];
const RECORD_HEADER_BYTES: usize = 16;

/// The version since which blocks are hashed by XXH3, and the kinds of file that are exempt.
const XXH3_VERSION: u64 = 6;
const DATABASES: [u8; 2] = [1, 5];
const PIECE_BYTES: usize = 16_384;

const FOOTER_BYTES: usize = 72;
const INDEX_ENTRY_BYTES: usize = 24;

/// The forms of blocks of strips, and the offset and length of their entries in the header.
const STRIPS: [u8; 2] = [5, 6];
const STRIPS_AT: usize = 8;
const STRIP_ENTRY_BYTES: usize = 10;

/// Recomputes the checksums of all records of a journal.
pub fn seal_journal(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(header) = bytes.get(at..at + RECORD_HEADER_BYTES) {
        let length = number(header, 4, 4) as usize;
        let end = at + RECORD_HEADER_BYTES + length;
        if header[..4] != RECORD_MAGIC || bytes.len() < end {
            at += 1;
            continue;
        }
        let covered = [&bytes[at + 4..at + 8], &bytes[at + RECORD_HEADER_BYTES..end]].concat();
        bytes[at + 8..at + 16].copy_from_slice(&Digest::of(&covered).0[..8]);
        at = end;
    }
}

/// Recomputes the checksums of header, blocks, index and footer of a file of scores, as far as they can be located.
pub fn seal_scores(bytes: &mut [u8]) {
    let _ = try_seal_scores(bytes);
}

fn try_seal_scores(bytes: &mut [u8]) -> Option<()> {
    let header_bytes = number(bytes.get(..16)?, 12, 4) as usize;
    let footer_start = bytes.len().checked_sub(FOOTER_BYTES)?;
    if header_bytes < 24 || header_bytes > footer_start {
        return None;
    }
    seal(bytes, 0..header_bytes - 8, u64::MAX, header_bytes - 8);
    let is_fast = has_xxh3(bytes);
    let index_offset = number(&bytes[footer_start..], 32, 8) as usize;
    if header_bytes <= index_offset && index_offset <= footer_start {
        for block in 0..(footer_start - index_offset) / INDEX_ENTRY_BYTES {
            let entry = index_offset + block * INDEX_ENTRY_BYTES;
            let start = number(&bytes[entry..], 0, 8) as usize;
            let end = start.checked_add(number(&bytes[entry..], 8, 4) as usize);
            if let Some(end) = end.filter(|&end| end <= index_offset) {
                let mut covered = start..end;
                if STRIPS.contains(&bytes[entry + 12]) {
                    seal_strips(bytes, covered.clone(), block as u64);
                    let head = bytes.get(start..start + 4).map_or(0, |head| number(head, 0, 4) as usize);
                    covered.end = end.min(start + head);
                }
                if is_fast {
                    let sum = XxHash3_64::oneshot_with_seed(block as u64, &bytes[covered]).to_le_bytes();
                    bytes[entry + 16..entry + 24].copy_from_slice(&sum);
                } else {
                    seal(bytes, covered, block as u64, entry + 16);
                }
            }
        }
        seal(bytes, index_offset..footer_start, u64::MAX - 1, footer_start + 48);
    }
    let covered = [&bytes[header_bytes - 8..header_bytes], &bytes[footer_start..footer_start + 56]].concat();
    let sum = checksum(&covered, u64::MAX - 2);
    bytes[footer_start + 56..footer_start + 64].copy_from_slice(&sum);
    Some(())
}

/// Whether a file of scores, by its header, has the faster hashes.
fn has_xxh3(bytes: &[u8]) -> bool {
    number(bytes, 8, 4) >= XXH3_VERSION && !DATABASES.contains(&bytes[16])
}

/// The content digest that a file of scores should state, by its header.
pub fn content_digest(file: &[u8], values: &[i8]) -> Digest {
    fn of_pieces(pieces: &[&[u8]]) -> Digest {
        match pieces {
            [] => of_pieces(&[&[]]),
            [piece] => Digest::of(&XxHash3_128::oneshot(piece).to_le_bytes()),
            more => {
                let (first, rest) = more.split_at(more.len().next_power_of_two() / 2);
                Digest::of(&[of_pieces(first).0, of_pieces(rest).0].concat())
            }
        }
    }
    if !has_xxh3(file) {
        return Digest::of_i8(values);
    }
    let pieces: Vec<&[u8]> = bytes_of(values).chunks(PIECE_BYTES).collect();
    of_pieces(&pieces)
}

/// Recomputes the checksums of strips, which are in the head of their block; the index covers the head only.
fn seal_strips(bytes: &mut [u8], block: std::ops::Range<usize>, number_of_block: u64) -> Option<()> {
    let head = bytes.get(block.start..block.start + STRIPS_AT)?.to_vec();
    let head = &head[..];
    let mut start = block.start + number(head, 0, 4) as usize;
    for strip in 0..number(head, 4, 4) {
        let entry = block.start + STRIPS_AT + strip as usize * STRIP_ENTRY_BYTES;
        let end = start + number(bytes.get(entry..entry + STRIP_ENTRY_BYTES)?, 0, 2) as usize;
        if end > block.end || entry + STRIP_ENTRY_BYTES > block.end {
            return None;
        }
        seal(bytes, start..end, (strip + 1) << 40 | number_of_block, entry + 2);
        start = end;
    }
    Some(())
}

fn seal(bytes: &mut [u8], covered: std::ops::Range<usize>, number: u64, at: usize) {
    let sum = checksum(&bytes[covered], number);
    bytes[at..at + 8].copy_from_slice(&sum);
}

fn checksum(bytes: &[u8], number: u64) -> [u8; 8] {
    let mut key = [0; 32];
    key[..23].copy_from_slice(b"awari-store-checksum-v1");
    key[24..].copy_from_slice(&number.to_le_bytes());
    let mut sum = [0; 8];
    sum.copy_from_slice(&blake3::keyed_hash(&key, bytes).as_bytes()[..8]);
    sum
}

/// A little-endian number.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::seeds;

    /// Nothing changes in files that are whole: what is written here agrees with what writes them.
    #[test]
    fn whole_files_are_sealed_already() {
        let mut sealed = 0;
        for (property, name, bytes) in seeds() {
            let (seal, from): (fn(&mut [u8]), _) = match property {
                "database" => (seal_scores, 1),
                "journal" => (seal_journal, 1),
                _ => continue,
            };
            let mut again = bytes[from..].to_vec();
            seal(&mut again);
            assert!(again == bytes[from..], "{property}, {name}");
            sealed += 1;
        }
        assert!(sealed > 20, "{sealed}");
    }

    #[test]
    fn any_bytes_are_sealed_without_panic() {
        for length in 0..200 {
            let mut bytes = vec![0xFF; length];
            seal_scores(&mut bytes);
            seal_journal(&mut bytes);
        }
    }
}
