//! The bits of a raw or packed file, for kernels that read them without a detour.

use disk::signed_of;

use crate::packed;

/// All slabs of a raw or packed file, verified. Made by [`Scores::flat`](crate::Scores::flat).
#[derive(Clone, Debug)]
pub struct Flat<'a> {
    slabs: Vec<FlatSlab<'a>>,
}

/// One slab of a raw or packed file: a stream of bits that fills bytes from their least significant
/// bit, `bits` a score, each the score less `low`. That no score exceeds the file's range was checked
/// by who wrote it and is vouched for by the checksums; it is not checked again.
#[derive(Clone, Copy, Debug)]
pub struct FlatSlab<'a> {
    bytes: &'a [u8],
    positions: usize,
    bits: u32,
    low: i8,
}

/// Bytes that follow the last score of a slab in [`FlatSlab::bytes`], so that a kernel may read up to
/// eight bytes at once anywhere. The index and footer of the file see to it.
const PADDING_BYTES: usize = 8;

const _: () = assert!(crate::format::FOOTER_BYTES >= PADDING_BYTES);

impl<'a> Flat<'a> {
    pub(crate) fn new(slabs: Vec<FlatSlab<'a>>) -> Self {
        Flat { slabs }
    }

    /// One slab.
    ///
    /// # Panics
    /// If there is no such slab.
    #[inline]
    pub fn slab(&self, slab: usize) -> FlatSlab<'a> {
        self.slabs[slab]
    }

    /// All slabs, ascending.
    pub fn slabs(&self) -> &[FlatSlab<'a>] {
        &self.slabs
    }

    /// One score, by slab and index within the slab (row times columns plus column).
    ///
    /// # Panics
    /// As [`FlatSlab::value`].
    #[inline]
    pub fn value(&self, slab: usize, index: usize) -> i8 {
        self.slabs[slab].value(index)
    }
}

impl<'a> FlatSlab<'a> {
    /// `bytes` begins with the slab and goes on for at least [`PADDING_BYTES`] after it.
    pub(crate) fn new(bytes: &'a [u8], positions: usize, bits: u32, low: i8) -> Self {
        let end = packed::packed_bytes(positions, bits) + PADDING_BYTES;
        FlatSlab { bytes: &bytes[..end], positions, bits, low }
    }

    /// The stream, and at least 8 bytes after it.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many scores there are.
    #[inline]
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Bits a score, 0 to 8.
    #[inline]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The score that is stored as 0. (Raw files have 8 bits and 0: the byte is the score.)
    #[inline]
    pub fn low(&self) -> i8 {
        self.low
    }

    /// One score: row times columns plus column.
    ///
    /// # Panics
    /// If `index` lies beyond the slab; at least where it would read beyond its bytes, and in debug
    /// builds always.
    #[inline(always)]
    pub fn value(&self, index: usize) -> i8 {
        debug_assert!(index < self.positions);
        let bit = index * self.bits as usize;
        let pair = u16::from_le_bytes([self.bytes[bit / 8], self.bytes[bit / 8 + 1]]);
        let mask = (1u16 << self.bits) - 1;
        let code = (pair >> (bit % 8)) & mask;
        self.low.wrapping_add(code as u8 as i8)
    }

    /// Consecutive scores from `first` on, until `out` is full.
    ///
    /// # Panics
    /// If the slab has no so many.
    pub fn read(&self, first: usize, out: &mut [i8]) {
        assert!(first <= self.positions && out.len() <= self.positions - first);
        let out = disk::bytes_of_mut(out);
        packed::unpack(self.bytes, first, self.low, self.bits, out);
    }

    /// The scores in place, if they are stored as signed bytes.
    #[inline]
    pub fn signed(&self) -> Option<&'a [i8]> {
        (self.bits == 8 && self.low == 0).then(|| signed_of(&self.bytes[..self.positions]))
    }
}
