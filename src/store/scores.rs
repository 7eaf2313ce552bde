//! Reading a file: single scores, ranges, or all.

mod blocks;
mod verify;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disk::{Digest, Disk};
use rayon::prelude::*;

use crate::codec::{Codec, ValueRange};
use crate::error::StoreError;
use crate::form::{self, Form};
use crate::format::{Header, block_checksum};
use crate::frames;
use crate::identity::Identity;
use crate::layout::{BLOCK_POSITIONS, Layout, Place};
use crate::open::Unverified;
use crate::packed;
use crate::shape::Shape;
use crate::source::Source;
use crate::strips::Head;
use crate::tiles::Tiling;

/// The scores of a file, read through a map or in windows.
///
/// In a map, a block's checksum is compared when the block is first touched, and not again until the file has another
/// edition (see the module `source`). In windows it is compared at each read. A damaged block is an
/// error at every touch. One `Scores` serves all threads.
pub struct Scores {
    path: PathBuf,
    source: Source,
    header: Header,
    layout: Layout,
    index: Vec<u8>,
    digest: Digest,
    /// One bit a block: its checksum was right. None for windows: the next read is another one.
    verified: Box<[AtomicU64]>,
}

/// A block, the first value of it that is wanted, and where it and those behind it go.
pub(crate) type Piece<'a> = (usize, usize, &'a mut [i8]);

/// Where a score is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) block: usize,
    /// What is decoded together with it.
    pub(crate) part: Part,
    /// Its number in the part.
    pub(crate) at: usize,
    /// How many from it on are in the part, one behind the other in canonical order.
    pub(crate) ahead: usize,
}

/// What of a block is decoded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// All.
    Whole,
    /// Some values.
    Values { first: u32, end: u32 },
    /// A strip, row by row.
    Strip(u32),
    /// Nothing: a value is read where it lies.
    InPlace,
    /// No values, but what strips are decoded with.
    Head,
}

/// What somebody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A score here or there.
    Look,
    /// Rows or longer ranges.
    Run,
}

/// Blocks that were read together, not yet checked nor decoded.
#[derive(Debug)]
pub struct Run {
    blocks: Range<usize>,
    offset: u64,
    bytes: Vec<u8>,
}

impl Run {
    /// The blocks.
    pub fn blocks(&self) -> Range<usize> {
        self.blocks.clone()
    }
}

/// Bytes of neighbouring blocks that are read at once from a file without a map.
const RUN_BYTES: u64 = 256 << 10;
/// And so many of them, for there are other threads.
const RUN_BLOCKS: usize = 16;

/// Times that a file which others change is read again, before that is an error.
const READS_MAX: usize = 4;

impl Scores {
    /// Maps a file and checks header, index and footer; blocks are checked as they are read.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if there is no such file; [`StoreError::NotOurs`],
    /// [`StoreError::Version`] or [`StoreError::Damaged`] if it is not a sound file of ours.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Unverified, StoreError> {
        Unverified::open(path, Source::mapped(disk.map(path)?))
    }

    /// As [`open`](Self::open), but without a map: the index is held in memory (24 bytes for 65,536
    /// positions), and each block that is asked for is read into a buffer of its own. Where memory is bounded.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_windowed(disk: &dyn Disk, path: &Path) -> Result<Unverified, StoreError> {
        Unverified::open(path, Source::Windowed(disk.open(path)?))
    }

    /// As [`open_windowed`](Self::open_windowed), for short reads whose neighbours are wanted later.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_scattered(disk: &dyn Disk, path: &Path) -> Result<Unverified, StoreError> {
        Unverified::open(path, Source::Windowed(disk.open_scattered(path)?))
    }

    pub(crate) fn new(file: Unverified) -> Self {
        let words = match file.source {
            Source::Mapped(_) => file.layout.block_count().div_ceil(64),
            Source::Windowed(_) => 0,
        };
        Scores {
            path: file.path,
            source: file.source,
            header: file.header,
            layout: file.layout,
            index: file.index,
            digest: file.footer.digest,
            verified: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.source.bytes()
    }

    /// What it is of.
    pub fn identity(&self) -> &Identity {
        &self.header.identity
    }

    /// Its slabs.
    pub fn shape(&self) -> &Shape {
        &self.header.shape
    }

    /// How its blocks are stored.
    pub fn codec(&self) -> Codec {
        self.header.codec
    }

    /// Whether single scores are read where they lie: raw and packed blocks in a map. Elsewhere each
    /// look decodes, and perhaps reads, a whole block, so that a cache pays.
    pub fn is_in_place(&self) -> bool {
        self.source.is_mapped() && !self.codec().is_compressed()
    }

    /// The values it may hold.
    pub fn range(&self) -> ValueRange {
        self.header.range
    }

    /// The digest of its scores, as the file says; [`verify_digest`](Self::verify_digest) compares.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// How many blocks there are.
    pub fn block_count(&self) -> usize {
        self.layout.block_count()
    }

    /// The positions of a block, in canonical order.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn block_range(&self, block: usize) -> Range<u64> {
        self.layout.positions_of(block)
    }

    /// The block that holds a position.
    ///
    /// # Panics
    /// If there is no such position.
    pub fn block_of(&self, position: u64) -> usize {
        self.layout.place(position).block
    }

    pub(crate) fn slab_positions(&self, slab: usize) -> Range<u64> {
        self.layout.slab_positions(slab)
    }

    /// The edition of the file, as far as is known; it is never another one where there is no map. What [`get`](Self::get)
    /// reads in place is right if the edition was the same before and [`latest_edition`](Self::latest_edition) is afterwards.
    #[inline]
    pub fn edition(&self) -> u64 {
        self.source.edition().unwrap_or(0)
    }

    /// The edition of the file now: another one if others have changed it. Takes a system call. All methods but
    /// [`get`](Self::get) do this by themselves.
    pub fn latest_edition(&self) -> u64 {
        let forget = || self.verified.iter().for_each(|word| word.store(0, Ordering::SeqCst));
        self.source.latest_edition(forget).unwrap_or(0)
    }

    /// Does what reads the file until it stays the same meanwhile.
    fn settled<T>(&self, mut read: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
        for _ in 0..READS_MAX {
            let edition = self.edition();
            let done = read();
            if self.latest_edition() == edition {
                return done;
            }
        }
        Err(StoreError::Changing { path: self.path.clone() })
    }

    /// One score. Raw and packed blocks of a map are read in place; else a frame, a strip with its model or, without a map,
    /// a block is read and decoded each time (see [`CachedScores`](crate::CachedScores)).
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the block is; [`StoreError::Disk`] if it cannot be read.
    ///
    /// # Panics
    /// If there is no such position.
    #[inline]
    pub fn get(&self, position: u64) -> Result<i8, StoreError> {
        let edition = self.edition();
        if let Ok(score) = self.get_once(position) {
            // The score must be there before the edition is looked at again.
            let score = std::hint::black_box(score);
            if self.edition() == edition {
                return Ok(score);
            }
        }
        self.get_settled(position)
    }

    #[cold]
    fn get_settled(&self, position: u64) -> Result<i8, StoreError> {
        self.settled(|| self.get_once(position))
    }

    #[inline(always)]
    fn get_once(&self, position: u64) -> Result<i8, StoreError> {
        let place = self.layout.place(position);
        let (stored, form) = self.stored(place.block)?;
        let value = match form {
            Form::Strips | Form::Floors => {
                let mut value = [0];
                self.decode_stored(place.block, place.index, &mut value)?;
                value[0]
            }
            Form::Raw => stored[place.index] as i8,
            Form::Packed => {
                let range = self.header.range;
                packed::value_at(&stored, place.index, range.low(), range.bits())
            }
            Form::Zstd | Form::Frames | Form::Sparse => {
                let mut value = [0];
                self.decode(place.block, &stored, form, place.index, &mut value)?;
                value[0]
            }
        };
        if self.header.range.contains(value) {
            return Ok(value);
        }
        Err(self.damaged(place.block, format!("values in {}", self.header.range), value.to_string()))
    }

    /// Where a score is, and what is worth decoding to see it.
    #[inline]
    pub(crate) fn spot(&self, position: u64, reading: Reading) -> Spot {
        let Place { block, index, ahead } = self.layout.place(position);
        let whole = || Spot { block, part: Part::Whole, at: index, ahead };
        match (self.codec(), reading, self.source.is_mapped()) {
            (Codec::Rans, ..) => self.spot_in_band(block, index),
            // Without a map, the whole block is read and compared with its checksum anyway.
            (_, Reading::Run, _) | (_, _, false) => whole(),
            (_, Reading::Look, true) => match self.entry(block).form {
                Form::Frames => self.spot_in_piece(block, index, frames::FRAME_VALUES),
                Form::Raw | Form::Packed => Spot { block, part: Part::InPlace, at: 0, ahead: 1 },
                Form::Zstd | Form::Strips | Form::Floors | Form::Sparse => whole(),
            },
        }
    }

    fn spot_in_piece(&self, block: usize, index: usize, values: usize) -> Spot {
        let first = index - index % values;
        let end = self.layout.len_of(block).min(first + values);
        let part = Part::Values { first: first as u32, end: end as u32 };
        Spot { block, part, at: index - first, ahead: end - index }
    }

    fn spot_in_band(&self, block: usize, index: usize) -> Spot {
        if self.entry(block).form != Form::Strips {
            return self.spot_in_piece(block, index, BLOCK_POSITIONS);
        }
        let band = self.layout.band_of(block);
        let tiling = Tiling::new(band.rows, band.columns);
        let (row, column) = (index / band.columns, index % band.columns);
        let number = tiling.strip_of(row, column);
        let strip = tiling.strip(number);
        Spot {
            block,
            part: Part::Strip(number as u32),
            at: (row - strip.rows.start) * strip.columns.len() + column - strip.columns.start,
            ahead: strip.columns.end - column,
        }
    }

    /// The head of a block of strips.
    pub(crate) fn head_of_block(&self, block: usize) -> Result<Head, StoreError> {
        self.settled(|| self.head(block, &self.entry(block)))
    }

    /// Decodes some values of a block. `head` gives that of a block of strips.
    pub(crate) fn decode_part(
        &self,
        block: usize,
        part: Part,
        head: impl FnOnce() -> Result<Arc<Head>, StoreError>,
    ) -> Result<Vec<i8>, StoreError> {
        let values = match part {
            Part::Whole => 0..self.layout.len_of(block),
            Part::Values { first, end } => first as usize..end as usize,
            Part::Strip(strip) => {
                let (head, strip) = (head()?, strip as usize);
                return self.settled(|| {
                    let bytes = self.strip_bytes(block, &self.entry(block), head.bytes_of(strip))?;
                    let decoded = head.decode_strip(block, strip, &bytes);
                    decoded.map_err(|error| self.damaged(block, error.expected, error.found))
                });
            }
            Part::InPlace | Part::Head => unreachable!("there is nothing to decode"),
        };
        let mut decoded = vec![0; values.len()];
        self.settled(|| self.decode_stored(block, values.start, &mut decoded))?;
        Ok(decoded)
    }

    /// All scores of a block.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the block is; `out` then holds anything.
    ///
    /// # Panics
    /// If there is no such block or `out` is not as long as it.
    pub fn decode_block(&self, block: usize, out: &mut [i8]) -> Result<(), StoreError> {
        assert_eq!(out.len(), self.layout.len_of(block), "the block's length");
        self.settled(|| self.decode_stored(block, 0, out))
    }

    /// All scores in canonical order, on all threads.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first block that is; `out` then holds anything.
    ///
    /// # Panics
    /// If `out` is not as long as there are positions.
    pub fn read_into(&self, out: &mut [i8]) -> Result<(), StoreError> {
        assert_eq!(out.len() as u64, self.shape().positions(), "as many scores as positions");
        self.read_range(0..self.shape().positions(), out)
    }

    /// The scores of some consecutive positions, on all threads. Zstd frames are decoded as a whole, so long ranges are
    /// cheaper than short ones; blocks of a file without a map are read several at a time.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first block that is; `out` then holds anything.
    ///
    /// # Panics
    /// If the positions are not there or `out` is not as long as they are many.
    pub fn read_range(&self, positions: Range<u64>, out: &mut [i8]) -> Result<(), StoreError> {
        self.settled(|| self.read_range_once(positions.clone(), out))
    }

    fn read_range_once(&self, positions: Range<u64>, out: &mut [i8]) -> Result<(), StoreError> {
        let mut pieces = self.pieces(positions, out).collect::<Vec<_>>();
        if let [(block, first, piece)] = &mut pieces[..] {
            return self.decode_stored(*block, *first, piece);
        }
        let mut runs = Vec::new();
        let mut rest = &mut pieces[..];
        while let Some(&(block, ..)) = rest.first() {
            let end = self.run_end(block, RUN_BYTES).min(block + rest.len().min(RUN_BLOCKS));
            let (run, after) = rest.split_at_mut(end - block);
            runs.push((block..end, run));
            rest = after;
        }
        let decode = |(blocks, pieces): (Range<usize>, &mut [Piece<'_>])| {
            if self.source.is_mapped() {
                return pieces
                    .iter_mut()
                    .try_for_each(|(block, first, piece)| self.decode_stored(*block, *first, piece));
            }
            let run = self.read_blocks(blocks)?;
            pieces.iter_mut().try_for_each(|(block, first, piece)| self.decode_of_run(&run, *block, *first, piece))
        };
        let results: Vec<_> = runs.into_par_iter().map(decode).filter(Result::is_err).collect();
        results.into_iter().next().unwrap_or(Ok(()))
    }

    /// Reads the first of some blocks, and the others as far as they lie within so many bytes.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if they cannot be read.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn read_run(&self, blocks: Range<usize>, bytes_max: u64) -> Result<Run, StoreError> {
        self.read_blocks(blocks.start..self.run_end(blocks.start, bytes_max).min(blocks.end))
    }

    /// Whether a block of a plane is known to have nothing but zeros, from the index alone. Where it does not say so, they
    /// may be zeros all the same.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn is_zeros(&self, block: usize) -> bool {
        let entry = self.entry(block);
        form::is_zeros(entry.form, block, self.layout.len_of(block), entry.bytes as usize, entry.checksum)
    }

    /// Decodes a block of a run.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the block is; `out` then holds anything.
    ///
    /// # Panics
    /// If the run does not have the block, or `out` is not as long as it.
    pub fn decode_block_of(&self, run: &Run, block: usize, out: &mut [i8]) -> Result<(), StoreError> {
        assert_eq!(out.len(), self.layout.len_of(block), "the block's length");
        self.decode_of_run(run, block, 0, out)
    }

    /// Behind a block and its neighbours in the file, as far as they lie within so many bytes. A block alone may be as
    /// long as it likes.
    fn run_end(&self, block: usize, bytes_max: u64) -> usize {
        let first = self.entry(block);
        let mut end = first.offset + u64::from(first.bytes);
        let is_in_run = |block: &usize| {
            let entry = self.entry(*block);
            let is_next = entry.offset == end;
            end += u64::from(entry.bytes);
            is_next && end - first.offset <= bytes_max
        };
        block + 1 + (block + 1..self.block_count()).take_while(is_in_run).count()
    }

    /// Reads neighbouring blocks.
    fn read_blocks(&self, blocks: Range<usize>) -> Result<Run, StoreError> {
        let (first, last) = (self.entry(blocks.start), self.entry(blocks.end - 1));
        let bytes = (last.offset - first.offset) as usize + last.bytes as usize;
        let bytes = self.source.copy(first.offset, bytes).map_err(|error| self.unread(blocks.start, error))?;
        Ok(Run { blocks, offset: first.offset, bytes })
    }

    fn decode_of_run(&self, run: &Run, block: usize, first: usize, out: &mut [i8]) -> Result<(), StoreError> {
        assert!(run.blocks.contains(&block), "block {block} of {:?}", run.blocks);
        let entry = self.entry(block);
        let stored = &run.bytes[(entry.offset - run.offset) as usize..][..entry.bytes as usize];
        if entry.form == Form::Strips {
            let head = self.head_of(block, &entry, stored, false)?;
            return self.decode_strips(block, &head, |bytes| Ok(Cow::Borrowed(&stored[bytes])), first, out);
        }
        let computed = block_checksum(block, stored);
        if computed != entry.checksum {
            return Err(self.wrong_checksum(block, &entry, computed));
        }
        self.decode(block, stored, entry.form, first, out)
    }

    /// Cuts a range of positions into pieces of blocks: block, first value in it, where to.
    pub(crate) fn pieces<'a>(&self, positions: Range<u64>, out: &'a mut [i8]) -> impl Iterator<Item = Piece<'a>> {
        assert!(
            positions.start <= positions.end && positions.end <= self.shape().positions(),
            "there are no positions {positions:?}"
        );
        assert_eq!(out.len() as u64, positions.end - positions.start, "as many scores as positions");
        let mut position = positions.start;
        let mut rest = out;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let place = self.layout.place(position);
            let length = rest.len().min(place.ahead);
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(length);
            rest = after;
            position += length as u64;
            Some((place.block, place.index, piece))
        })
    }
}

impl fmt::Debug for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scores({}: {})", self.path.display(), self.identity())
    }
}
