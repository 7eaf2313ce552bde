//! Blocks of strips: a band of rows with a frequency model, divided into strips that are decoded independently.
//!
//! | bytes | field |
//! |---|---|
//! | 4 | bytes of the head |
//! | 4 | strips, as the module `tiling` cuts the band |
//! | 10 each | the strips: bytes (2), checksum (8) |
//! | | the model, see the module `model`, up to the end of the head |
//! | | the strips, see the module `rans`, in order up to the end of the block |
//!
//! With floors, the module `floors` defines the classes of scores; strips are larger and classes more, the layout is
//! the same.
//!
//! The checksum of such a block in the index covers its head alone, and the head contains those of the strips: a probe
//! reads, verifies and decodes only a head and a strip.

use disk::bytes_of_mut;
use std::cell::RefCell;
use std::ops::Range;

pub(crate) mod avx512;
mod coder;
mod floors;
mod model;
pub(crate) mod tiling;

use self::coder::OutputWindow;
use self::floors::{FLOORED_CLASSES, FlooredClasses};
use self::model::{CLASSES, CODES_MAX, Classes, CodeCounts, FrequencyModel, Slots};
use self::tiling::{LANES, Step, Strip, Tiling};
use super::packed;
use crate::checksum;
use crate::error::DecodeError;
use crate::little_endian::{u16_at, u32_at, u64_at};
use crate::threads;
use crate::value_range::ValueRange;

/// Rows and columns of the band that a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Band {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// The context by which scores are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    Neighbours,
    /// The neighbours and a floor for each score, which the decoder needs too.
    Floors,
}

/// Bytes of a head before the strips' entries.
pub(crate) const HEAD_FIXED_BYTES: usize = 8;
const ENTRY_BYTES: usize = 10;

/// Strips that a thread counts or encodes at a time.
const STRIPS_A_TASK: usize = 8;

/// The decoded head of a block.
pub(crate) struct Head {
    band: Band,
    low: u8,
    tiling: Tiling,
    rule: Rule,
    slots: Slots,
    /// Offset of each strip in the block, and the end of the last.
    bounds: Box<[u32]>,
    checksums: Box<[u64]>,
}

/// The classes of a context.
enum Rule {
    Neighbours(Classes),
    Floors(FlooredClasses),
}

impl Context {
    fn tiling(self, band: Band) -> Tiling {
        match self {
            Context::Neighbours => Tiling::new(band.rows, band.columns),
            Context::Floors => Tiling::large(band.rows, band.columns),
        }
    }

    fn classes(self) -> usize {
        match self {
            Context::Neighbours => CLASSES,
            Context::Floors => FLOORED_CLASSES,
        }
    }

    /// The fewest bytes of a block of this context.
    pub(crate) fn bytes_min(self, band: Band) -> usize {
        HEAD_FIXED_BYTES + self.tiling(band).strips() * (ENTRY_BYTES + coder::BYTES_MIN) + 2 * self.classes()
    }
}

impl Band {
    pub(crate) fn values(self) -> usize {
        self.rows * self.columns
    }
}

/// Reads and checks the length of a head, from its first bytes.
pub(crate) fn head_bytes(start: &[u8], block_bytes: usize) -> Result<usize, DecodeError> {
    let found = start.get(..4).map_or(0, |start| u32_at(start, 0) as usize);
    if (HEAD_FIXED_BYTES..=block_bytes).contains(&found) {
        return Ok(found);
    }
    Err(DecodeError {
        expected: format!("a head of {HEAD_FIXED_BYTES} to {block_bytes} bytes"),
        found: found.to_string(),
    })
}

/// Encodes a block on all threads of the current rayon pool. Returns `None` if the result is no smaller than packing,
/// or the range is that of all bytes.
pub(crate) fn encode(block: usize, values: &[u8], band: Band, range: ValueRange) -> Option<Vec<u8>> {
    let codes = range.values();
    if codes > CODES_MAX {
        return None;
    }
    let (classes, low) = (Classes::new(codes), range.low() as u8);
    encode_by(block, values, band, range, Context::Neighbours, |strip| {
        let (mut steps, mut found) = (Vec::new(), Vec::new());
        coder::gather(strip, values, band.columns, low, &mut steps);
        coder::classify(strip, &steps, &classes, &mut found);
        (steps, found)
    })
}

/// As [`encode`], with a floor for each score.
pub(crate) fn encode_floored(
    block: usize,
    values: &[u8],
    floors: &[u8],
    band: Band,
    range: ValueRange,
) -> Option<Vec<u8>> {
    assert_eq!(floors.len(), values.len(), "a floor for each value");
    let codes = range.values();
    if codes > CODES_MAX {
        return None;
    }
    let (classes, low) = (FlooredClasses::new(codes), range.low() as u8);
    encode_by(block, values, band, range, Context::Floors, |strip| {
        let (mut steps, mut floors_of) = (Vec::new(), Vec::new());
        coder::gather(strip, values, band.columns, low, &mut steps);
        coder::gather(strip, floors, band.columns, low, &mut floors_of);
        coder::classify_floored(strip, &steps, &floors_of, &classes)
    })
}

/// The symbols of a strip, by step and lane, and the class of each.
type Coded<C> = (Vec<Step>, Vec<[C; LANES]>);

fn encode_by<C: Copy + Into<usize> + Send + Sync>(
    block: usize,
    values: &[u8],
    band: Band,
    range: ValueRange,
    context: Context,
    code: impl Fn(&Strip) -> Coded<C> + Sync,
) -> Option<Vec<u8>> {
    assert_eq!(values.len(), band.values(), "the values of a band");
    let packed_bytes = packed::packed_bytes(values.len(), range.bits());
    if context.bytes_min(band) >= packed_bytes {
        return None;
    }
    let tiling = context.tiling(band);
    let tasks = (0..tiling.strips()).step_by(STRIPS_A_TASK).collect();
    let of_task = |first: usize| first..tiling.strips().min(first + STRIPS_A_TASK);
    let counted: Vec<(Vec<Coded<C>>, Box<CodeCounts>)> = threads::map(tasks, 1, |first| {
        let mut counts = FrequencyModel::no_counts(context.classes());
        let coded = of_task(first).map(|number| {
            let coded = code(&tiling.strip(number));
            coder::count(&coded.0, &coded.1, &mut counts);
            coded
        });
        (coded.collect(), counts)
    });
    let mut counts = FrequencyModel::no_counts(context.classes());
    for (_, some) in &counted {
        counts.iter_mut().zip(some.iter()).for_each(|(sum, some)| *sum += some);
    }
    let model = FrequencyModel::new(&counts, range.values());
    let starts = model.starts();
    let encode = |(coded, _): (Vec<Coded<C>>, _)| -> Vec<Vec<u8>> {
        let strips = coded.into_iter().map(|(steps, classes)| {
            let mut bytes = Vec::new();
            coder::encode(&steps, &classes, &starts, &mut bytes);
            bytes
        });
        strips.collect()
    };
    let strips: Vec<Vec<u8>> = threads::map(counted, 1, encode).into_iter().flatten().collect();
    let mut bytes = vec![0; 4];
    bytes.extend((strips.len() as u32).to_le_bytes());
    for (number, strip) in strips.iter().enumerate() {
        bytes.extend((strip.len() as u16).to_le_bytes()); // see `rans`
        bytes.extend(checksum::of_strip(block, number, strip).to_le_bytes());
    }
    model.encode(&mut bytes);
    let head_bytes = bytes.len() as u32;
    bytes[..4].copy_from_slice(&head_bytes.to_le_bytes());
    bytes.extend(strips.iter().flatten());
    (bytes.len() < packed_bytes).then_some(bytes)
}

impl Head {
    /// Decodes a head, of a block of `block_bytes` bytes.
    pub(crate) fn decode(
        bytes: &[u8],
        block_bytes: usize,
        band: Band,
        range: ValueRange,
        context: Context,
    ) -> Result<Self, DecodeError> {
        let refuse = |expected: String, found: String| Err(DecodeError { expected, found });
        let tiling = context.tiling(band);
        let (strips, codes) = (tiling.strips(), range.values());
        if codes > CODES_MAX {
            return refuse(format!("at most {CODES_MAX} values"), codes.to_string());
        }
        let entries_end = HEAD_FIXED_BYTES + strips * ENTRY_BYTES;
        if bytes.len() < entries_end || u32_at(bytes, 4) as usize != strips {
            return refuse(format!("a head with {strips} strips"), format!("{} bytes", bytes.len()));
        }
        let mut end = bytes.len();
        let mut bounds = vec![end as u32];
        let mut checksums = Vec::with_capacity(strips);
        for entry in bytes[HEAD_FIXED_BYTES..entries_end].chunks_exact(ENTRY_BYTES) {
            end += usize::from(u16_at(entry, 0));
            bounds.push(end as u32);
            checksums.push(u64_at(entry, 2));
        }
        if end != block_bytes {
            return refuse(format!("strips up to {block_bytes}"), end.to_string());
        }
        let slots = Slots::decode(&bytes[entries_end..], codes, context.classes())?;
        let rule = match context {
            Context::Neighbours => Rule::Neighbours(Classes::new(codes)),
            Context::Floors => Rule::Floors(FlooredClasses::new(codes)),
        };
        let (bounds, checksums) = (bounds.into(), checksums.into());
        Ok(Head { band, low: range.low() as u8, tiling, rule, slots, bounds, checksums })
    }

    /// Bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Head>() + self.slots.memory_bytes() + self.checksums.len() * 12
    }

    /// The division of the band into strips.
    pub(crate) fn tiling(&self) -> &Tiling {
        &self.tiling
    }

    /// The range of a strip in the block.
    pub(crate) fn bytes_of(&self, strip: usize) -> Range<usize> {
        self.bounds[strip] as usize..self.bounds[strip + 1] as usize
    }

    /// Verifies the checksum of a strip.
    pub(crate) fn check(&self, block: usize, strip: usize, bytes: &[u8]) -> Result<(), DecodeError> {
        let (stored, computed) = (self.checksums[strip], checksum::of_strip(block, strip, bytes));
        if stored == computed {
            return Ok(());
        }
        let expected = format!("strip {strip} with checksum {stored:016x}");
        Err(DecodeError { expected, found: format!("{computed:016x}") })
    }

    /// The strips that contain any of a range of values, row by row in the band.
    pub(crate) fn strips_of(&self, values: &Range<usize>) -> impl Iterator<Item = usize> {
        let columns = self.band.columns;
        let (rows, last) = (values.start / columns..values.end.div_ceil(columns), (values.end - 1) % columns);
        // Within a single row, only the columns of the range.
        let wanted = if rows.len() == 1 { values.start % columns..last + 1 } else { 0..columns };
        self.tiling.strips_of_rows(rows).filter(move |&strip| {
            let found = self.tiling.strip(strip).columns;
            found.start < wanted.end && wanted.start < found.end
        })
    }

    /// Decodes a strip and writes its values from `first` on to their places in `out`.
    pub(crate) fn decode_into(
        &self,
        block: usize,
        number: usize,
        bytes: &[u8],
        first: usize,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        self.decode_to(block, number, bytes, None, OutputWindow { stride: self.band.columns, origin: first }, out)
    }

    /// Decodes a strip, given the floors of the whole band, and writes it to its place in the band.
    pub(crate) fn decode_floored(
        &self,
        block: usize,
        number: usize,
        bytes: &[u8],
        floors: &[u8],
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        self.decode_to(block, number, bytes, Some(floors), OutputWindow { stride: self.band.columns, origin: 0 }, out)
    }

    /// Decodes a strip and returns its values row by row.
    pub(crate) fn decode_strip(&self, block: usize, number: usize, bytes: &[u8]) -> Result<Vec<i8>, DecodeError> {
        let strip = self.tiling.strip(number);
        let stride = strip.columns.len();
        let mut values = vec![0; strip.values()];
        let origin = strip.rows.start * stride + strip.columns.start;
        self.decode_to(block, number, bytes, None, OutputWindow { stride, origin }, bytes_of_mut(&mut values))?;
        Ok(values)
    }

    fn decode_to(
        &self,
        block: usize,
        number: usize,
        bytes: &[u8],
        floors: Option<&[u8]>,
        place: OutputWindow,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        self.check(block, number, bytes)?;
        let strip = self.tiling.strip(number);
        STEPS.with_borrow_mut(|steps| {
            let decoded = match (&self.rule, floors) {
                (Rule::Neighbours(classes), None) => coder::decode(&strip, bytes, classes, &self.slots, steps),
                (Rule::Floors(classes), Some(floors)) => {
                    let mut floors_of = Vec::new();
                    coder::gather(&strip, floors, self.band.columns, self.low, &mut floors_of);
                    coder::decode_floored(&strip, bytes, classes, &self.slots, &floors_of, steps)
                }
                _ => unreachable!("floors are given where they are needed"),
            };
            decoded.map_err(|error| DecodeError {
                expected: format!("strip {number} with {}", error.expected),
                found: error.found,
            })?;
            coder::scatter(&strip, steps, self.low, place, out);
            Ok(())
        })
    }
}

// Some 16 KiB, reused for every strip.
thread_local! {
    static STEPS: RefCell<Vec<Step>> = const { RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::bytes_of;

    /// Values like scores: near their neighbours, in `low ..= high`.
    pub(crate) fn scores(band: Band, low: i8, high: i8) -> Vec<u8> {
        let mut state = 5u64;
        let mut values: Vec<i8> = Vec::with_capacity(band.values());
        for at in 0..band.values() {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let near = if at >= band.columns { values[at - band.columns] } else { 0 };
            let change = [0, 0, 0, 0, 1, -1, 2, -5][(state >> 61) as usize];
            values.push((near + change).clamp(low, high));
        }
        values.iter().map(|&value| value as u8).collect()
    }

    #[test]
    fn blocks_round_trip_whole_and_in_pieces() {
        for (rows, columns) in [(16, 700), (3000, 6), (400, 56), (90, 252), (1, 20_000), (20_000, 1)] {
            let (band, range) = (Band { rows, columns }, ValueRange::new(-20, 20));
            let values = scores(band, -20, 20);
            let block = encode(7, &values, band, range).expect("these compress");
            assert!(block.len() >= Context::Neighbours.bytes_min(band));
            let length = head_bytes(&block, block.len()).unwrap();
            let head = Head::decode(&block[..length], block.len(), band, range, Context::Neighbours).unwrap();
            // 41 codes take 6 bits.
            let tables = (128 << 10) + 3 + 4 * (128 << 6);
            assert_eq!(head.memory_bytes(), size_of::<Head>() + tables + 12 * head.tiling().strips());
            for (first, end) in [(0, band.values()), (5, 6), (columns / 2, columns), (columns - 1, columns + 1)] {
                let mut out = vec![99; end.min(band.values()) - first];
                for strip in head.strips_of(&(first..first + out.len())) {
                    head.decode_into(7, strip, &block[head.bytes_of(strip)], first, &mut out).unwrap();
                }
                assert!(out == values[first..first + out.len()], "{first}..{end} of {band:?}");
            }
            for number in 0..head.tiling().strips() {
                let strip = head.tiling().strip(number);
                let found = head.decode_strip(7, number, &block[head.bytes_of(number)]).unwrap();
                let rows = strip.rows.clone();
                let expect = rows.flat_map(|row| &values[row * columns..][strip.columns.clone()]);
                assert!(bytes_of(&found).iter().eq(expect));
                assert!(head.decode_strip(8, number, &block[head.bytes_of(number)]).is_err(), "of another block");
            }
        }
    }

    /// Floors that equal most scores, absent floors, and random ones.
    #[test]
    fn any_floors_round_trip_and_good_ones_help() {
        let (band, range) = (Band { rows: 90, columns: 700 }, ValueRange::new(-20, 20));
        let values = scores(band, -20, 20);
        let near = |at: usize, value: u8| match at % 5 {
            0 => 0x80,
            1 => value.wrapping_sub(3),
            _ => value,
        };
        let kinds: [Vec<u8>; 3] = [
            values.iter().enumerate().map(|(at, &value)| near(at, value)).collect(),
            vec![0x80; values.len()],
            (0..values.len() as u32).map(|at| blake3::hash(&at.to_le_bytes()).as_bytes()[0]).collect(),
        ];
        let plain = encode(3, &values, band, range).expect("it compresses").len();
        for (kind, floors) in kinds.iter().enumerate() {
            let block = encode_floored(3, &values, floors, band, range).expect("it compresses");
            assert_eq!(kind == 0, block.len() < plain / 2, "{} of {plain} bytes", block.len());
            let length = head_bytes(&block, block.len()).unwrap();
            let head = Head::decode(&block[..length], block.len(), band, range, Context::Floors).unwrap();
            let mut out = vec![99; values.len()];
            for strip in 0..head.tiling().strips() {
                head.decode_floored(3, strip, &block[head.bytes_of(strip)], floors, &mut out).unwrap();
            }
            assert!(out == values, "floors {kind}");
            // With other floors the result is arbitrary, but in range.
            for other in &kinds {
                for strip in 0..head.tiling().strips() {
                    let _ = head.decode_floored(3, strip, &block[head.bytes_of(strip)], other, &mut out);
                    assert!(out.iter().all(|&value| value == 99 || range.contains(value as i8)));
                }
            }
        }
    }

    #[test]
    fn incompressible_blocks_are_not_coded() {
        let band = Band { rows: 100, columns: 100 };
        let random: Vec<u8> = (0..10_000u32).map(|at| blake3::hash(&at.to_le_bytes()).as_bytes()[0]).collect();
        assert!(encode(0, &random, band, ValueRange::new(-128, 127)).is_none(), "too many values");
        assert!(encode(0, &random.iter().map(|v| v % 64).collect::<Vec<_>>(), band, ValueRange::new(0, 63)).is_none());
        assert!(encode(0, &[0; 10_000], band, ValueRange::new(0, 0)).is_none());
    }

    #[test]
    fn larger_ranges_are_neither_coded_nor_decoded() {
        let band = Band { rows: 32, columns: 600 };
        let values = scores(band, -20, 20);
        let encode = |context, range| match context {
            Context::Neighbours => encode(0, &values, band, range),
            Context::Floors => encode_floored(0, &values, &values, band, range),
        };
        for context in [Context::Neighbours, Context::Floors] {
            let block = encode(context, ValueRange::new(-128, 125)).expect("254 values are coded");
            let length = head_bytes(&block, block.len()).unwrap();
            for high in [125, 126, 127] {
                let range = ValueRange::new(-128, high);
                assert_eq!(encode(context, range).is_some(), high == 125);
                let head = Head::decode(&block[..length], block.len(), band, range, context);
                assert_eq!(head.is_ok(), high == 125);
            }
        }
    }

    #[test]
    fn inconsistent_heads_are_refused() {
        let (band, range) = (Band { rows: 32, columns: 600 }, ValueRange::new(-20, 20));
        let block = encode(0, &scores(band, -20, 20), band, range).expect("it compresses");
        let length = head_bytes(&block, block.len()).unwrap();
        let head = |bytes: &[u8], block_bytes, band| Head::decode(bytes, block_bytes, band, range, Context::Neighbours);
        assert!(head(&block[..length], block.len(), band).is_ok());
        assert!(head(&block[..length], block.len() + 1, band).is_err());
        assert!(head(&block[..length], block.len(), Band { rows: 64, columns: 600 }).is_err());
        for shorter in 0..length {
            assert!(head(&block[..shorter], block.len(), band).is_err());
        }
        for at in [8, 18] {
            let mut changed = block[..length].to_vec();
            changed[at] ^= 1;
            assert!(head(&changed, block.len(), band).is_err());
        }
        assert!(head_bytes(&[], 100).is_err());
        assert!(head_bytes(&[7, 0, 0, 0], 100).is_err());
        assert!(head_bytes(&[101, 0, 0, 0], 100).is_err());
        assert!(head_bytes(&[0xFF; 4], 100).is_err());
    }
}
