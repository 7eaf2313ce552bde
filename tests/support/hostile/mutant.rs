//! Seeded mutants of an input.

use crate::Random;

/// Longer mutants are cut.
const BYTES_MAX: usize = 64 << 10;

/// A mutant of `bytes`: one to four changes, among them splices with `other`.
pub fn mutant(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut mutant = bytes.to_vec();
    for _ in 0..=random.below(4) {
        change(&mut mutant, other, random);
    }
    mutant.truncate(BYTES_MAX);
    mutant
}

fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let place = |length: usize, random: &mut Random| random.below(length as u64 + 1) as usize;
    let at = place(bytes.len(), random);
    let end = (at + place(16, random)).min(bytes.len());
    match random.below(9) {
        // Flip.
        0 | 1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        // Another byte, among them those at the ends of ranges.
        2 if at < bytes.len() => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF, random.bits() as u8][random.below(6) as usize],
        // Truncate.
        3 => bytes.truncate(at),
        // Insert.
        4 => {
            let new: Vec<u8> = (0..random.below(9)).map(|_| random.bits() as u8).collect();
            bytes.splice(at..at, new);
        }
        // Repeat.
        5 => {
            let piece = bytes[at..end].repeat(1 + random.below(20) as usize);
            bytes.splice(at..at, piece);
        }
        // Leave out.
        6 => drop(bytes.drain(at..end)),
        // Splice.
        7 => {
            let (from, length) = (place(other.len(), random), place(64, random));
            let piece = other[from..(from + length).min(other.len())].to_vec();
            bytes.splice(at..end, piece);
        }
        // The start of one, the end of the other.
        _ => {
            let from = place(other.len(), random);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}
