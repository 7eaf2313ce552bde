//! Encoding of the set bits of rows in messages.
//!
//! A row is the difference of its number, counted over all slabs, from that of the row before (zigzag). Then follow
//! twice the number of columns, and each column as its distance from the one before, less one; or, if words have many
//! bits, twice the number of words plus one, and each word as its distance from the one before, less one, with its 64
//! bits, little-endian. Numbers are varints. A bit takes a byte if every tenth to hundredth column has one, less if
//! more have, and two bytes if fewer have.

use crate::layout::plane::WORD;
use crate::ranks::varint::{self, Malformed};

/// Most listed columns of a word, on average: a mask takes about as many bytes.
const LISTED_MAX: usize = 9;

/// Encoder of a message: rows and their set bits.
#[derive(Debug, Default)]
pub(super) struct BoundMessage {
    bytes: Vec<u8>,
    row: u32,
}

/// Set bits of a row, encoded for any number of messages.
#[derive(Debug, Default)]
pub(super) struct EncodedBits(Vec<u8>);

impl EncodedBits {
    /// Encodes words of a row, ascending.
    pub(super) fn encode(&mut self, bits: &[(u32, u64)]) {
        self.0.clear();
        push_bits(&mut self.0, bits);
    }
}

impl BoundMessage {
    /// Appends words of a row, ascending.
    pub(super) fn write(&mut self, row: u32, bits: &[(u32, u64)]) {
        if bits.iter().any(|&(_, bits)| bits != 0) {
            self.begin(row);
            push_bits(&mut self.bytes, bits);
        }
    }

    /// Appends words of a row that are encoded, if any bit is set.
    pub(super) fn append(&mut self, row: u32, encoded: &EncodedBits) {
        if !encoded.0.is_empty() {
            self.begin(row);
            self.bytes.extend_from_slice(&encoded.0);
        }
    }

    fn begin(&mut self, row: u32) {
        varint::push_gap(&mut self.bytes, self.row.into(), row.into());
        self.row = row;
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The message.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the message, leaving an empty one.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.row = 0;
        std::mem::take(&mut self.bytes)
    }
}

/// Encodes words of a row, ascending; nothing if no bit is set.
fn push_bits(bytes: &mut Vec<u8>, bits: &[(u32, u64)]) {
    let columns: usize = bits.iter().map(|(_, bits)| bits.count_ones() as usize).sum();
    if columns == 0 {
        return;
    }
    let mut push = |number: u32| varint::push(bytes, number.into());
    if columns <= LISTED_MAX * bits.len() {
        push((columns << 1) as u32);
        let mut next = 0;
        for &(word, bits) in bits {
            let mut left = bits;
            while left != 0 {
                let column = word * WORD as u32 + left.trailing_zeros();
                left &= left - 1;
                push(column - next);
                next = column + 1;
            }
        }
    } else {
        push((bits.len() << 1 | 1) as u32);
        let mut next = 0;
        for &(word, bits) in bits {
            varint::push(bytes, (word - next).into());
            bytes.extend_from_slice(&bits.to_le_bytes());
            next = word + 1;
        }
    }
}

/// Decodes a message of [`BoundMessage::write`]: row by row, words ascending.
pub(super) fn read(
    mut bytes: &[u8],
    mut visit: impl FnMut(u32, &[(u32, u64)]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut row = 0u32;
    let mut words: Vec<(u32, u64)> = Vec::new();
    while !bytes.is_empty() {
        row = varint::take_gap(&mut bytes, row.into())?.try_into().map_err(|_| Malformed)?;
        let count = take_number(&mut bytes)?;
        let is_listed = count & 1 == 0;
        let mut next = 0u32;
        words.clear();
        // Each takes at least a byte, which bounds the count by the length of the message.
        for _ in 0..count >> 1 {
            let at = next.checked_add(take_number(&mut bytes)?).ok_or(Malformed)?;
            next = at.checked_add(1).ok_or(Malformed)?;
            if is_listed {
                let (word, bit) = (at / WORD as u32, 1 << (at % WORD as u32));
                match words.last_mut() {
                    Some((last, bits)) if *last == word => *bits |= bit,
                    _ => words.push((word, bit)),
                }
            } else {
                words.push((at, u64::from_le_bytes(*varint::take_bytes(&mut bytes)?)));
            }
        }
        visit(row, &words)?;
    }
    Ok(())
}

#[inline]
fn take_number(bytes: &mut &[u8]) -> Result<u32, Malformed> {
    varint::take(bytes)?.try_into().map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_messages_are_read_back() {
        let noise = |at: u64| (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32 % 64);
        let rows: Vec<(u32, Vec<(u32, u64)>)> = vec![
            (5, vec![(0, 1)]),
            (6, vec![(0, 1 << 63), (1, 1), (90, 0x8001), (70_000, 1)]),
            (25_000_000, (0..40).map(|at| (at, u64::MAX)).collect()),
            (24_999_999, (0..90).map(|at| (7 * at, noise(at.into()))).collect()),
            (0, (0..50).map(|at| (3 * at, 1 << at)).collect()),
            (3, vec![(9, 0)]),
        ];
        let mut bound_message = BoundMessage::default();
        rows.iter().for_each(|(row, bits)| bound_message.write(*row, bits));
        let bytes = bound_message.take();
        assert_eq!(bound_message.len(), 0);
        let mut found = Vec::new();
        let mut keep = |row: u32, bits: &[(u32, u64)]| {
            found.push((row, bits.to_vec()));
            Ok(())
        };
        read(&bytes, &mut keep).unwrap();
        assert_eq!(found, rows[..5]);
        // A truncated message is never read as a whole one.
        for length in 0..bytes.len() {
            let mut read_bits = 0;
            let cut = read(&bytes[..length], |_, bits| {
                read_bits += bits.len();
                Ok(())
            });
            assert!(cut == Err(Malformed) || read_bits < 185, "{length} of {}", bytes.len());
        }
        assert_eq!(read(&[0xff; 9], |_, _| Ok(())), Err(Malformed));
        assert_eq!(read(&[0, 2, 0xff, 0xff, 0xff, 0xff, 0x0f], |_, _| Ok(())), Err(Malformed));
    }
}
