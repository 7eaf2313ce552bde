//! What changed of a stripe, as one rank tells another: row by row, masks of columns and the new scores.
//!
//! A row: how far it is from the one before (zigzag, seven bits a byte), then 16 bits, little-endian, for the chunks of
//! the stripe with changes. A chunk: how many changed if that is little, and which columns, a byte each; else `0xff` and
//! 64 bits. Then the scores. A change takes 1.4 bytes where every third position changes, 2 to 3 where every tenth does.

use crate::kernel::UNIT_CHUNKS;
use crate::tables::CHUNK;

/// Columns told one by one, at most: a mask takes as much as this many.
const LISTED_MAX: u32 = 7;
/// Stands before a mask.
const MASK: u8 = 0xff;

/// Changes of a stripe for one rank.
#[derive(Default)]
pub(crate) struct Letter {
    bytes: Vec<u8>,
    row: u32,
}

/// A chunk of columns of one row, and what changed there.
pub(crate) struct Changed<'a> {
    /// Rank of the mover's half.
    pub(crate) row: u32,
    /// Chunk of the stripe.
    pub(crate) chunk: usize,
    pub(crate) columns: u64,
    /// One for each of these columns.
    pub(crate) scores: &'a [u8],
}

/// The bytes are no letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Letter {
    /// Tells of a row, chunk by chunk of its stripe: which columns changed, and all scores.
    pub(crate) fn write(&mut self, row: u32, columns: &[u64; UNIT_CHUNKS], scores: &[i8]) {
        let chunks = columns.iter().enumerate().fold(0u16, |all, (at, &one)| all | u16::from(one != 0) << at);
        if chunks == 0 {
            return;
        }
        let gap = row.wrapping_sub(self.row) as i32;
        let mut gap = (gap << 1 ^ gap >> 31) as u32;
        self.row = row;
        while gap >= 0x80 {
            self.bytes.push(gap as u8 | 0x80);
            gap >>= 7;
        }
        self.bytes.push(gap as u8);
        self.bytes.extend_from_slice(&chunks.to_le_bytes());
        for (&columns, scores) in columns.iter().zip(scores.chunks(CHUNK)).filter(|&(&columns, _)| columns != 0) {
            if columns.count_ones() <= LISTED_MAX {
                self.bytes.push(columns.count_ones() as u8);
                self.bytes.extend(lanes(columns).map(|lane| lane as u8));
            } else {
                self.bytes.push(MASK);
                self.bytes.extend_from_slice(&columns.to_le_bytes());
            }
            self.bytes.extend(lanes(columns).map(|lane| scores[lane] as u8));
        }
    }

    /// The letter so far, and a new one begins.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.row = 0;
        std::mem::take(&mut self.bytes)
    }
}

/// Reads what [`Letter::write`] wrote.
pub(crate) fn read(mut bytes: &[u8], mut visit: impl FnMut(Changed) -> Result<(), Malformed>) -> Result<(), Malformed> {
    let mut row = 0u32;
    while !bytes.is_empty() {
        let gap = take_number(&mut bytes)?;
        row = row.wrapping_add(gap >> 1 ^ (gap & 1).wrapping_neg());
        let mut chunks = u16::from_le_bytes(*take(&mut bytes)?);
        while chunks != 0 {
            let chunk = chunks.trailing_zeros() as usize;
            chunks &= chunks - 1;
            let [kind] = *take(&mut bytes)?;
            let columns = if kind == MASK {
                u64::from_le_bytes(*take(&mut bytes)?)
            } else {
                let (listed, rest) = bytes.split_at_checked(kind.into()).ok_or(Malformed)?;
                bytes = rest;
                listed.iter().fold(0, |columns, lane| columns | 1 << (lane % CHUNK as u8))
            };
            let (scores, rest) = bytes.split_at_checked(columns.count_ones() as usize).ok_or(Malformed)?;
            bytes = rest;
            visit(Changed { row, chunk, columns, scores })?;
        }
    }
    Ok(())
}

/// The bits of a word, from the lowest.
pub(crate) fn lanes(mut columns: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = columns.trailing_zeros() as usize;
        (columns != 0).then(|| {
            columns &= columns - 1;
            lane
        })
    })
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N], Malformed> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
    *bytes = rest;
    Ok(taken)
}

fn take_number(bytes: &mut &[u8]) -> Result<u32, Malformed> {
    let mut number = 0;
    for shift in (0..u32::BITS).step_by(7) {
        let [byte] = *take(bytes)?;
        number |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let scores: Vec<i8> = (0..UNIT_CHUNKS * CHUNK).map(|at| (at * 37 % 97) as i8 - 48).collect();
        let mut rows = Vec::new();
        for (at, row) in [5u32, 6, 700, 3, 0, 2_869_684, 2_869_683].into_iter().enumerate() {
            let mut columns = [0u64; UNIT_CHUNKS];
            columns[at] = u64::MAX >> (at * 9);
            columns[15 - at] |= 1 << (at * 10) | 1;
            rows.push((row, columns));
        }
        rows.push((7, [u64::MAX; UNIT_CHUNKS]));
        rows.push((9, [0; UNIT_CHUNKS]));
        let mut letter = Letter::default();
        rows.iter().for_each(|(row, columns)| letter.write(*row, columns, &scores));
        let bytes = letter.take();
        assert!(letter.take().is_empty());
        let mut found = Vec::new();
        read(&bytes, |changed| {
            for (lane, &score) in lanes(changed.columns).zip(changed.scores) {
                found.push((changed.row, changed.chunk, lane, score as i8));
            }
            Ok(())
        })
        .unwrap();
        let all = rows.iter().flat_map(|(row, columns)| {
            let scores = &scores;
            columns.iter().enumerate().flat_map(move |(chunk, &columns)| {
                lanes(columns).map(move |lane| (*row, chunk, lane, scores[chunk * CHUNK + lane]))
            })
        });
        assert!(found.into_iter().eq(all));
        // Nothing that is cut short is taken for whole.
        for length in 0..bytes.len() {
            let mut told = 0;
            let cut = read(&bytes[..length], |changed| {
                told += changed.scores.len();
                Ok(())
            });
            assert!(cut == Err(Malformed) || told < 2000, "{length} of {}", bytes.len());
        }
        assert_eq!(read(&[0xff; 9], |_| Ok(())), Err(Malformed));
    }
}
