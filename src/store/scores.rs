//! Reading a file: single scores, ranges, or all.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disk::{Digest, Disk, bytes_of, bytes_of_mut};
use rayon::prelude::*;

use crate::codec::{Codec, ValueRange};
use crate::error::StoreError;
use crate::flat::{Flat, FlatSlab};
use crate::form::{self, DecodeError, Form};
use crate::format::{Header, INDEX_ENTRY_BYTES, IndexEntry, block_checksum};
use crate::frames;
use crate::hasher::{ContentHasher, PIECE_BYTES};
use crate::identity::Identity;
use crate::layout::{BATCH_POSITIONS, BLOCK_POSITIONS, Layout, Place};
use crate::open::Unverified;
use crate::packed;
use crate::shape::Shape;
use crate::source::Source;
use crate::strips::{self, Context, Head};
use crate::tiles::Tiling;

/// The scores of a file, read through a map or in windows.
///
/// In a map, a block's checksum is compared when the block is first touched, and not again: the map
/// cannot change under us (see `disk`). In windows it is compared at each read. A damaged block is an
/// error at every touch. One `Scores` serves all threads.
pub struct Scores {
    path: PathBuf,
    source: Source,
    header: Header,
    layout: Layout,
    index_offset: usize,
    /// The index, where no map holds it.
    index: Option<Vec<u8>>,
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

impl Scores {
    /// Maps a file and checks header, index and footer; blocks are checked as they are read.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if there is no such file; [`StoreError::NotOurs`],
    /// [`StoreError::Version`] or [`StoreError::Damaged`] if it is not a sound file of ours.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Unverified, StoreError> {
        Unverified::open(path, Source::Mapped(disk.map(path)?))
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
            index_offset: file.footer.index_offset as usize,
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
        self.source.mapping().is_some() && !self.codec().is_compressed()
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
        match (self.codec(), reading, &self.source) {
            (Codec::Rans, ..) => self.spot_in_band(block, index),
            // Without a map, the whole block is read and compared with its checksum anyway.
            (_, Reading::Run, _) | (_, _, Source::Windowed(_)) => whole(),
            (_, Reading::Look, Source::Mapped(_)) => match self.entry(block).form {
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
        self.head(block, &self.entry(block))
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
                let bytes = self.strip_bytes(&self.entry(block), head.bytes_of(strip))?;
                let decoded = head.decode_strip(block, strip, &bytes);
                return decoded.map_err(|error| self.damaged(block, error.expected, error.found));
            }
            Part::InPlace | Part::Head => unreachable!("there is nothing to decode"),
        };
        let mut decoded = vec![0; values.len()];
        self.decode_stored(block, values.start, &mut decoded)?;
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
        self.decode_stored(block, 0, out)
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
            if self.source.mapping().is_some() {
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
        Ok(Run { blocks, offset: first.offset, bytes: self.source.read(first.offset, bytes)?.into_owned() })
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

    /// Compares the checksums of all blocks, on all threads.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first block that is.
    pub fn verify_blocks(&self) -> Result<(), StoreError> {
        match self.damaged_blocks().first() {
            None => Ok(()),
            Some(&block) => Err(self.block_damage(block)),
        }
    }

    /// The numbers of all blocks whose checksum is wrong or that cannot be read, ascending. Reads the
    /// whole file, also what was verified before.
    pub fn damaged_blocks(&self) -> Vec<usize> {
        let blocks = (0..self.block_count()).into_par_iter();
        blocks.filter(|&block| self.verify_block(block).is_err()).collect()
    }

    /// The error that touching a damaged block gives.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn block_damage(&self, block: usize) -> StoreError {
        let entry = self.entry(block);
        match self.verify_block(block) {
            Ok(()) => self.wrong_checksum(block, &entry, entry.checksum),
            Err(error) => error,
        }
    }

    /// Compares all checksums of a block.
    fn verify_block(&self, block: usize) -> Result<(), StoreError> {
        let entry = self.entry(block);
        if !matches!(entry.form, Form::Strips | Form::Floors) {
            return self.check(block, &entry).map(drop);
        }
        let head = self.head(block, &entry)?;
        let stored = self.stored_bytes(&entry)?;
        let checked =
            (0..head.tiling().strips()).try_for_each(|strip| head.check(block, strip, &stored[head.bytes_of(strip)]));
        checked.map_err(|error| self.damaged(block, error.expected, error.found))
    }

    /// The bits of a raw or packed file in a map, after comparing the checksums of all blocks not
    /// touched so far; `None` for a compressed file, and without a map.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first block that is.
    pub fn flat(&self) -> Result<Option<Flat<'_>>, StoreError> {
        let Some(mapping) = self.source.mapping() else { return Ok(None) };
        let range = self.header.range;
        let (bits, low) = match self.header.codec {
            Codec::Raw => (8, 0),
            Codec::Packed => (range.bits(), range.low()),
            Codec::Zstd | Codec::Rans | Codec::Floors => return Ok(None),
        };
        let damaged = (0..self.block_count()).into_par_iter().find_map_first(|block| self.stored(block).err());
        if let Some(error) = damaged {
            return Err(error);
        }
        let slabs = self.shape().slabs().iter().enumerate();
        let slabs = slabs.map(|(m, slab)| {
            let first = self.entry(self.layout.slab_blocks(m).start);
            let positions = slab.positions() as usize;
            FlatSlab::new(&mapping[first.offset as usize..], positions, bits, low)
        });
        Ok(Some(Flat::new(slabs.collect())))
    }

    /// Decodes everything and compares the digest of the scores with the one the file gives, in
    /// bounded memory, on all threads.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first block that is; [`StoreError::DigestDiffers`].
    pub fn verify_digest(&self) -> Result<(), StoreError> {
        self.verify_digest_of(|_| ())
    }

    /// As [`verify_digest`](Self::verify_digest); `see` is given all scores in canonical order, some million at a time.
    ///
    /// # Errors
    /// As [`verify_digest`](Self::verify_digest).
    pub fn verify_digest_of(&self, mut see: impl FnMut(&[i8])) -> Result<(), StoreError> {
        let mut hasher = blake3::Hasher::new();
        let mut scores = Vec::new();
        let mut first = 0;
        while first < self.block_count() {
            let blocks = first..self.layout.batch_end(first, BATCH_POSITIONS);
            first = blocks.end;
            let positions = self.block_range(blocks.start).start..self.block_range(blocks.end - 1).end;
            scores.resize((positions.end - positions.start) as usize, 0);
            self.read_range(positions, &mut scores)?;
            hasher.update_rayon(bytes_of(&scores));
            see(&scores);
        }
        let found = Digest(*hasher.finalize().as_bytes());
        if found == self.digest {
            return Ok(());
        }
        Err(StoreError::DigestDiffers { path: self.path.clone(), expected: self.digest, found })
    }

    /// One of several parts of what [`verify_digest_of`](Self::verify_digest_of) does, by its number, wherever the others
    /// are: [`verify_hashes`](Self::verify_hashes) takes what all return. `see` is given the scores of the part.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first block that is.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn hash_part(&self, number: u64, of: u64, mut see: impl FnMut(&[i8])) -> Result<Vec<u8>, StoreError> {
        assert!(number < of, "{of} parts have no number {number}");
        let part = self.part(number, of);
        let mut hasher = ContentHasher::beginning_at(part.start);
        let (mut scores, mut first) = (Vec::new(), part.start);
        while first < part.end {
            let end = part.end.min(first + BATCH_POSITIONS);
            scores.resize((end - first) as usize, 0);
            self.read_range(first..end, &mut scores)?;
            hasher.update(bytes_of(&scores));
            see(&scores);
            first = end;
        }
        Ok(hasher.encode())
    }

    /// Compares the digest of the scores with the one the file gives: `parts` are what [`hash_part`](Self::hash_part)
    /// returned, in order.
    ///
    /// # Errors
    /// [`StoreError::DigestDiffers`]; [`StoreError::Unsupported`] if one of them is none of those.
    pub fn verify_hashes(&self, parts: &[Vec<u8>]) -> Result<(), StoreError> {
        let mut hasher = ContentHasher::new();
        for (number, hash) in (0..).zip(parts) {
            let part = self.part(number, parts.len() as u64);
            if !hasher.join(&part, hash) {
                let expected = format!("the hash of positions {part:?}");
                return Err(StoreError::Unsupported { expected, found: format!("{} bytes", hash.len()) });
            }
        }
        let found = hasher.finalize();
        if found == self.digest {
            return Ok(());
        }
        Err(StoreError::DigestDiffers { path: self.path.clone(), expected: self.digest, found })
    }

    /// One of some parts of the positions: whole pieces for the hasher, but for the end.
    fn part(&self, number: u64, of: u64) -> Range<u64> {
        let positions = self.shape().positions();
        let pieces = positions.div_ceil(PIECE_BYTES as u64);
        let cut = |number: u64| (u128::from(pieces) * u128::from(number) / u128::from(of)) as u64 * PIECE_BYTES as u64;
        cut(number).min(positions)..cut(number + 1).min(positions)
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

    /// Reads and decodes the values `first ..` of a block until `out` is full.
    fn decode_stored(&self, block: usize, first: usize, out: &mut [i8]) -> Result<(), StoreError> {
        let entry = self.entry(block);
        if entry.form == Form::Strips {
            let head = self.head(block, &entry)?;
            return self.decode_strips(block, &head, |bytes| self.strip_bytes(&entry, bytes), first, out);
        }
        let (stored, form) = self.stored(block)?;
        self.decode(block, &stored, form, first, out)
    }

    fn decode(&self, block: usize, stored: &[u8], form: Form, first: usize, out: &mut [i8]) -> Result<(), StoreError> {
        let values = self.layout.len_of(block);
        let range = self.header.range;
        form::decode(form, stored, values, range, first, bytes_of_mut(out))
            .map_err(|error| self.damaged(block, error.expected, error.found))
    }

    /// Decodes the values `first ..` of a block of strips until `out` is full.
    fn decode_strips<'a>(
        &self,
        block: usize,
        head: &Head,
        read: impl Fn(Range<usize>) -> Result<Cow<'a, [u8]>, StoreError>,
        first: usize,
        out: &mut [i8],
    ) -> Result<(), StoreError> {
        for strip in head.strips_of(&(first..first + out.len())) {
            let bytes = read(head.bytes_of(strip))?;
            head.decode_into(block, strip, &bytes, first, bytes_of_mut(out))
                .map_err(|error| self.damaged(block, error.expected, error.found))?;
        }
        Ok(())
    }

    fn strip_bytes(&self, entry: &IndexEntry, bytes: Range<usize>) -> Result<Cow<'_, [u8]>, StoreError> {
        Ok(self.source.read(entry.offset + bytes.start as u64, bytes.len())?)
    }

    /// Decodes a whole block given the floors of its scores.
    pub(crate) fn decode_floored(&self, block: usize, floors: &[i8], out: &mut [i8]) -> Result<(), StoreError> {
        let entry = self.entry(block);
        if entry.form != Form::Floors {
            return self.decode_stored(block, 0, out);
        }
        let head = self.head(block, &entry)?;
        let stored = self.stored_bytes(&entry)?;
        for strip in 0..head.tiling().strips() {
            head.decode_floored(block, strip, &stored[head.bytes_of(strip)], bytes_of(floors), bytes_of_mut(out))
                .map_err(|error| self.damaged(block, error.expected, error.found))?;
        }
        Ok(())
    }

    /// Reads the head of a block of strips and compares its checksum, unless that was done in a map.
    fn head(&self, block: usize, entry: &IndexEntry) -> Result<Head, StoreError> {
        let start = self.strip_bytes(entry, 0..strips::HEAD_FIXED_BYTES)?;
        let length = strips::head_bytes(&start, entry.bytes as usize)
            .map_err(|error| self.damaged(block, error.expected, error.found))?;
        let bytes = self.strip_bytes(entry, 0..length)?;
        let head = self.head_of(block, entry, &bytes, self.is_verified(block))?;
        self.note_verified(block);
        Ok(head)
    }

    /// The head of a block of strips from its bytes, or more than those.
    fn head_of(&self, block: usize, entry: &IndexEntry, stored: &[u8], is_verified: bool) -> Result<Head, StoreError> {
        let decode = || {
            let length = strips::head_bytes(stored, entry.bytes as usize)?;
            let Some(bytes) = stored.get(..length) else {
                return Err(DecodeError {
                    expected: format!("a head of {length} bytes"),
                    found: stored.len().to_string(),
                });
            };
            let computed = if is_verified { entry.checksum } else { block_checksum(block, bytes) };
            if computed != entry.checksum {
                let expected = format!("checksum {:016x}", entry.checksum);
                return Err(DecodeError { expected, found: format!("{computed:016x}") });
            }
            let context = if entry.form == Form::Floors { Context::Floors } else { Context::Neighbours };
            Head::decode(bytes, entry.bytes as usize, self.layout.band_of(block), self.header.range, context)
        };
        decode().map_err(|error| self.damaged(block, error.expected, error.found))
    }

    /// The stored bytes of a block, verified; of a block of strips, not.
    #[inline]
    fn stored(&self, block: usize) -> Result<(Cow<'_, [u8]>, Form), StoreError> {
        let entry = self.entry(block);
        let is_checked = entry.form == Form::Strips || self.is_verified(block);
        let stored = if is_checked { self.stored_bytes(&entry)? } else { self.check(block, &entry)? };
        Ok((stored, entry.form))
    }

    #[inline]
    fn entry(&self, block: usize) -> IndexEntry {
        IndexEntry::of_block(self.index(), block)
    }

    #[inline]
    fn index(&self) -> &[u8] {
        let end = self.index_offset + self.block_count() * INDEX_ENTRY_BYTES;
        match (&self.index, self.source.mapping()) {
            (Some(index), _) => index,
            (None, Some(mapping)) => &mapping[self.index_offset..end],
            (None, None) => unreachable!("an index is held where there is no map"),
        }
    }

    #[inline]
    fn stored_bytes(&self, entry: &IndexEntry) -> Result<Cow<'_, [u8]>, StoreError> {
        Ok(self.source.read(entry.offset, entry.bytes as usize)?)
    }

    #[inline]
    fn is_verified(&self, block: usize) -> bool {
        // The bytes that the bit vouches for never change, so nothing needs to be ordered with it.
        self.verified.get(block / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (block % 64) & 1 == 1)
    }

    /// Reads a block, compares its checksum, and notes it if it is right and the bytes are to stay.
    #[cold]
    fn check(&self, block: usize, entry: &IndexEntry) -> Result<Cow<'_, [u8]>, StoreError> {
        let stored = self.stored_bytes(entry)?;
        let computed = block_checksum(block, &stored);
        if computed != entry.checksum {
            return Err(self.wrong_checksum(block, entry, computed));
        }
        self.note_verified(block);
        Ok(stored)
    }

    fn note_verified(&self, block: usize) {
        if let Some(word) = self.verified.get(block / 64) {
            word.fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
    }

    fn wrong_checksum(&self, block: usize, entry: &IndexEntry, computed: u64) -> StoreError {
        self.damaged(block, format!("checksum {:016x}", entry.checksum), format!("{computed:016x}"))
    }

    fn damaged(&self, block: usize, expected: String, found: String) -> StoreError {
        let positions = self.block_range(block);
        StoreError::Damaged {
            path: self.path.clone(),
            part: format!(
                "block {block} of {} (slab {}, positions {}..{})",
                self.block_count(),
                self.layout.slab_of(block),
                positions.start,
                positions.end
            ),
            expected,
            found,
        }
    }
}

impl fmt::Debug for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scores({}: {})", self.path.display(), self.identity())
    }
}
