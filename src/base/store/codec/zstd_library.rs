//! Zstandard: one frame, compressed and decompressed by the library.

use std::cell::RefCell;
use std::io;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

/// The level of compression, which the bytes of a file depend on. Levels up to 19 save another tenth for a hundred
/// times the time.
const LEVEL: i32 = 1;

/// The shortest match. Shorter ones do not pay for their offsets in scores: 4 makes files 6 % longer and a quarter
/// slower to write.
const MATCH_BYTES_MIN: u32 = 7;

/// Compresses bytes to one frame.
pub(crate) fn compress(values: &[u8]) -> Vec<u8> {
    // The output depends on input and parameters alone, also when a context is reused.
    let compressed = COMPRESSOR.with_borrow_mut(|slot| -> io::Result<Vec<u8>> {
        let compressor = match slot {
            Some(compressor) => compressor,
            None => {
                let compressor = slot.insert(Compressor::new(LEVEL)?);
                compressor.set_parameter(CParameter::MinMatch(MATCH_BYTES_MIN))?;
                compressor
            }
        };
        compressor.compress(values)
    });
    compressed.expect("zstd fails only without memory: its buffer is large enough")
}

/// Decompresses a frame. Returns the number of bytes, which are at most those of `out`.
pub(crate) fn decompress(frame: &[u8], out: &mut [u8]) -> io::Result<usize> {
    DECOMPRESSOR.with_borrow_mut(|slot| {
        let decompressor = match slot {
            Some(decompressor) => decompressor,
            None => slot.insert(Decompressor::new()?),
        };
        // Writes at most `out`; a frame decoded in one call needs no window.
        decompressor.decompress_to_buffer(frame, out)
    })
}

// A context takes a few hundred kilobytes, and as long to create as a block to decode.
thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}
