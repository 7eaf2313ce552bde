//! Blocks of Zstandard frames.
//!
//! A block of the form `Frames` is divided into frames of [`FRAME_VALUES`] consecutive values, the last one shorter, so
//! that a probe decodes an eighth of the block. The lengths of the frames precede them:
//!
//! | bytes | field |
//! |---|---|
//! | 2 each | bytes of each frame; the frames follow each other up to the end of the block |
//! | | the frames: each the raw bytes of its values |
//!
//! A block of very few bytes is a single frame (form `Zstd`), like all blocks of version 1 and those of planes in
//! version 2: eight frames would be several times as long.

use super::BLOCK_POSITIONS;
use super::Form;
use super::zstd_library;
pub(crate) use super::zstd_library::compress;
use crate::error::DecodeError;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::OnceLock;

/// Values in a frame. On 84,672,315 scores of 20 stones, frames of 64, 16, 8 and 4 Ki take 3.588, 3.561, 3.568 and
/// 3.597 bits a value, and a probe decodes for 64, 18, 8 and 7 us.
pub(crate) const FRAME_VALUES: usize = 1 << 13;

const LENGTH_BYTES: usize = 2;

/// Lengths fit two bytes: Zstandard adds a few bytes to incompressible data.
const _: () = assert!(FRAME_VALUES + FRAME_VALUES / 128 + 64 < 1 << (8 * LENGTH_BYTES));

/// Values a byte from which a single frame is tried.
const SPARSE: usize = 32;

/// Compresses a block to one frame.
pub(crate) fn encode_one(values: &[u8]) -> Cow<'static, [u8]> {
    if values == ZEROS {
        return Cow::Borrowed(compressed_zeros());
    }
    let mut bytes = compress(values);
    // The buffer has room for the worst case, and may be kept for a while.
    bytes.shrink_to_fit();
    Cow::Owned(bytes)
}

/// Compresses a block to frames, or to one if that is shorter.
pub(crate) fn encode(values: &[u8]) -> (Cow<'static, [u8]>, Form) {
    if values.len() <= FRAME_VALUES || values == ZEROS {
        return (encode_one(values), Form::Zstd);
    }
    let mut bytes = Vec::with_capacity(values.len());
    let frames = values.len().div_ceil(FRAME_VALUES);
    bytes.resize(frames * LENGTH_BYTES, 0);
    for (number, frame) in values.chunks(FRAME_VALUES).enumerate() {
        let frame = compress(frame);
        bytes[number * LENGTH_BYTES..][..LENGTH_BYTES].copy_from_slice(&(frame.len() as u16).to_le_bytes());
        bytes.extend(frame);
    }
    if bytes.len() <= values.len() / SPARSE {
        let single = encode_one(values);
        if single.len() < bytes.len() {
            return (single, Form::Zstd);
        }
    }
    bytes.shrink_to_fit();
    (Cow::Owned(bytes), Form::Frames)
}

/// Decodes the values `first ..` of a block of frames until `out` is full.
pub(crate) fn decode(block: &[u8], values: usize, first: usize, out: &mut [u8]) -> Result<(), DecodeError> {
    let frames = Frames::of(block, values)?;
    let end = first + out.len();
    let mut rest = out;
    for number in first / FRAME_VALUES..end.div_ceil(FRAME_VALUES) {
        let (begin, frame_end) = (number * FRAME_VALUES, values.min((number + 1) * FRAME_VALUES));
        let wanted = first.max(begin)..end.min(frame_end);
        let (piece, after) = rest.split_at_mut(wanted.len());
        rest = after;
        decode_one(&block[frames.bytes_of(number)], frame_end - begin, wanted.start - begin, piece)?;
    }
    Ok(())
}

/// Decodes the values `first ..` of a frame of `values` until `out` is full.
pub(crate) fn decode_one(frame: &[u8], values: usize, first: usize, out: &mut [u8]) -> Result<(), DecodeError> {
    if out.len() == values {
        return decompress(frame, out);
    }
    let mut whole = vec![0; values];
    decompress(frame, &mut whole)?;
    out.copy_from_slice(&whole[first..first + out.len()]);
    Ok(())
}

/// The bounds of the frames in a block.
struct Frames {
    /// One more entry than there are frames.
    bounds: [usize; FRAMES_MAX + 1],
}

const FRAMES_MAX: usize = BLOCK_POSITIONS / FRAME_VALUES;

impl Frames {
    /// Reads and checks the lengths.
    fn of(block: &[u8], values: usize) -> Result<Frames, DecodeError> {
        let count = values.div_ceil(FRAME_VALUES);
        let mut bounds = [count * LENGTH_BYTES; FRAMES_MAX + 1];
        let lengths = block.get(..count * LENGTH_BYTES).unwrap_or(&[]);
        for (number, length) in lengths.chunks_exact(LENGTH_BYTES).enumerate() {
            bounds[number + 1] = bounds[number] + usize::from(u16::from_le_bytes([length[0], length[1]]));
        }
        match bounds[count] {
            end if end == block.len() => Ok(Frames { bounds }),
            end => Err(DecodeError {
                expected: format!("{count} frames in {} bytes", block.len()),
                found: format!("{end} bytes"),
            }),
        }
    }

    fn bytes_of(&self, number: usize) -> Range<usize> {
        self.bounds[number]..self.bounds[number + 1]
    }
}

/// A block of zeros, the content of most blocks of a plane.
static ZEROS: [u8; BLOCK_POSITIONS] = [0; BLOCK_POSITIONS];

/// A compressed block of zeros.
fn compressed_zeros() -> &'static [u8] {
    static COMPRESSED: OnceLock<Vec<u8>> = OnceLock::new();
    COMPRESSED.get_or_init(|| compress(&ZEROS))
}

fn decompress(frame: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
    let values = out.len();
    if values == ZEROS.len() && frame == compressed_zeros() {
        out.fill(0);
        return Ok(());
    }
    let found = match zstd_library::decompress(frame, out) {
        Ok(decoded) if decoded == values => return Ok(()),
        Ok(decoded) => format!("{decoded} values"),
        Err(error) => error.to_string(),
    };
    Err(DecodeError { expected: format!("a zstd frame of {values} values"), found })
}

/// Decompresses a frame of at most `bytes_max` bytes, and passes on its content.
pub(crate) fn decompress_up_to<T>(
    frame: &[u8],
    bytes_max: usize,
    content: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    CONTENT.with_borrow_mut(|buffer| {
        buffer.resize(buffer.len().max(bytes_max), 0);
        let bytes = zstd_library::decompress(frame, &mut buffer[..bytes_max]).map_err(|error| DecodeError {
            expected: format!("a zstd frame of at most {bytes_max} bytes"),
            found: error.to_string(),
        })?;
        content(&buffer[..bytes])
    })
}

thread_local! {
    static CONTENT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that compress to about a half.
    fn values(count: usize) -> Vec<u8> {
        (0..count as u64).map(|i| ((i * i).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as u8).collect()
    }

    #[test]
    fn any_piece_of_a_block() {
        for count in [1, 100, 8_191, 8_192, 8_193, 40_000, 65_536] {
            let values = values(count);
            let (block, form) = encode(&values);
            assert_eq!(form, if count <= FRAME_VALUES { Form::Zstd } else { Form::Frames });
            for (first, end) in
                [(0, 1), (0, count), (count - 1, count), (8_190, 8_194), (8_000, 25_000), (16_384, 24_576)]
            {
                let (first, end) = (first.min(count), end.min(count));
                let mut out = vec![99; end - first];
                match form {
                    Form::Zstd => decode_one(&block, count, first, &mut out).unwrap(),
                    _ => decode(&block, count, first, &mut out).unwrap(),
                }
                assert_eq!(out, values[first..end], "{first}..{end} of {count}");
            }
        }
    }

    #[test]
    fn sparse_blocks_are_one_frame() {
        let mut sparse = vec![0; BLOCK_POSITIONS];
        assert_eq!(encode(&sparse), (Cow::Owned(compress(&sparse)), Form::Zstd));
        sparse[40_000] = 1;
        let (block, form) = encode(&sparse);
        assert_eq!(form, Form::Zstd);
        assert!(block.len() < 60, "{}", block.len());
    }

    #[test]
    fn inconsistent_lengths_are_refused() {
        let values = values(20_000);
        let (block, _) = encode(&values);
        let mut out = vec![0; 20_000];
        let check = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut block = block.to_vec();
            change(&mut block);
            assert!(decode(&block, 20_000, 0, &mut vec![0; 20_000]).is_err());
        };
        decode(&block, 20_000, 0, &mut out).unwrap();
        check(&|block| block.truncate(5));
        check(&|block| block.clear());
        check(&|block| block.push(0));
        check(&|block| block[1] ^= 0x80);
        check(&|block| block[0] ^= 1);
        // The sum is right: the frames are not.
        check(&|block| {
            block[0] ^= 1;
            let change = if block[0] & 1 == 1 { -1 } else { 1 };
            let second = u16::from_le_bytes([block[2], block[3]]).wrapping_add_signed(change);
            block[2..4].copy_from_slice(&second.to_le_bytes());
        });
    }
}
