//! Encoding of the set bits of rows in messages.
//!
//! A row is the difference of its number, counted over all slabs, from that of the row before (zigzag), the
//! number of its encoded words, and these words (`kernels/bits/words.rs`). Both numbers are varints. A bit
//! takes a byte if every tenth column has one, two if every fiftieth has, and three if even fewer have.

use crate::bounds::BitKernel;
use crate::kernels::bits::words::encoded_count;
use crate::ranks::varint::{self, Malformed};

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
    /// Encodes words of a row that are not zero, ascending.
    pub(super) fn encode(&mut self, kernel: BitKernel, bits: &[(u32, u64)]) {
        self.0.clear();
        push_words(kernel, bits, &mut self.0);
    }
}

/// Appends words of a row that are not zero, ascending, if there are any.
fn push_words(kernel: BitKernel, bits: &[(u32, u64)], bytes: &mut Vec<u8>) {
    let count = encoded_count(bits);
    if count > 0 {
        varint::push(bytes, count as u64);
        kernel.encode_words(bits, count, bytes);
    }
}

impl BoundMessage {
    /// Appends words of a row that are not zero, ascending, if there are any.
    pub(super) fn write(&mut self, kernel: BitKernel, row: u32, bits: &[(u32, u64)]) {
        if !bits.is_empty() {
            self.begin(row);
            push_words(kernel, bits, &mut self.bytes);
        }
    }

    /// Appends words of a row that are encoded, if there are any.
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

/// Decodes a message: row by row, words in the order of their numbers, which do not descend.
pub(super) fn read(
    kernel: BitKernel,
    mut bytes: &[u8],
    mut visit: impl FnMut(u32, &[(u32, u64)]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut row = 0u32;
    let mut words: Vec<(u32, u64)> = Vec::new();
    while !bytes.is_empty() {
        row = varint::take_gap(&mut bytes, row.into())?.try_into().map_err(|_| Malformed)?;
        let count = varint::take(&mut bytes)?.try_into().map_err(|_| Malformed)?;
        let length = kernel.decode_words(bytes, count, &mut words).ok_or(Malformed)?;
        bytes = &bytes[length..];
        visit(row, &words)?;
    }
    Ok(())
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
            (3, vec![]),
        ];
        let kernel = BitKernel::detect();
        let (mut bound_message, mut encoded) = (BoundMessage::default(), EncodedBits::default());
        for (row, bits) in &rows {
            encoded.encode(kernel, bits);
            bound_message.append(*row, &encoded);
        }
        let bytes = bound_message.take();
        assert_eq!(bound_message.len(), 0);
        let mut found = Vec::new();
        let mut keep = |row: u32, bits: &[(u32, u64)]| {
            found.push((row, bits.to_vec()));
            Ok(())
        };
        read(kernel, &bytes, &mut keep).unwrap();
        assert_eq!(found, rows[..5]);
        // A truncated message is never read as a whole one.
        for length in 0..bytes.len() {
            let mut read_bits = 0;
            let cut = read(kernel, &bytes[..length], |_, bits| {
                read_bits += bits.len();
                Ok(())
            });
            assert!(cut == Err(Malformed) || read_bits < 184, "{length} of {}", bytes.len());
        }
        assert_eq!(read(kernel, &[0xff; 9], |_, _| Ok(())), Err(Malformed));
        assert_eq!(read(kernel, &[0, 0xff, 0xff, 0xff, 0xff, 0x0f], |_, _| Ok(())), Err(Malformed));
    }
}
