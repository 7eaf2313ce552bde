//! Writer of the blocks of a file or of a part of it: encodes in parallel, a batch at a time, and writes in order.

use crate::codec::BLOCK_POSITIONS;
use crate::codec::Codec;
use crate::codec::Form;
use crate::codec::block::{self, Values};
use crate::error::{Result, StoreError};
use crate::format::{INDEX_ENTRY_BYTES, IndexEntry};
use crate::hasher::{ContentHasher, HashFunction};
use crate::identity::FileKind;
use crate::layout::BlockLayout;
use crate::threads;
use crate::value_range::ValueRange;
use disk::{DiskError, bytes_of};
use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

/// Blocks for each thread that are encoded together: of a portion that has as many, and otherwise.
const LONG_BLOCKS: u64 = 16;
const SHORT_BLOCKS: u64 = 8;

/// The most blocks of zeros that are buffered.
const READY_MAX: usize = 32;

static ZEROS: [i8; BLOCK_POSITIONS] = [0; BLOCK_POSITIONS];

/// The destination of encoded blocks.
pub(crate) trait BlockSink: Send {
    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError>;

    /// The offset of the next byte, for the index.
    fn offset(&self) -> u64;
}

/// The parameters of a file that determine its blocks.
#[derive(Clone, Debug)]
pub(crate) struct FileContent {
    /// The file, for errors.
    pub(crate) path: PathBuf,
    pub(crate) kind: FileKind,
    pub(crate) hash: HashFunction,
    pub(crate) layout: BlockLayout,
    pub(crate) range: ValueRange,
    pub(crate) codec: Codec,
}

/// Encodes the scores of some blocks and writes them.
pub(crate) struct BlockWriter<S> {
    pub(crate) sink: S,
    content: FileContent,
    blocks: Range<usize>,
    hasher: ContentHasher,
    index: Vec<u8>,
    /// The position after those appended.
    position: u64,
    /// The first block not yet encoded.
    block: usize,
    /// The scores from that block on that were appended: less than a batch.
    pending: Vec<u8>,
    ready: Vec<EncodedBlock<'static>>,
}

/// The result of writing all blocks.
pub(crate) struct FinishedBlocks<S> {
    pub(crate) sink: S,
    pub(crate) index: Vec<u8>,
    pub(crate) hasher: ContentHasher,
}

impl<S: BlockSink> BlockWriter<S> {
    /// Begins to write some blocks of a file.
    pub(crate) fn new(sink: S, content: FileContent, blocks: Range<usize>) -> Self {
        let position = content.layout.first_position(blocks.start);
        BlockWriter {
            sink,
            hasher: ContentHasher::beginning_at(content.hash, position),
            content,
            index: Vec::with_capacity(blocks.len() * INDEX_ENTRY_BYTES),
            position,
            block: blocks.start,
            blocks,
            pending: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// The positions not yet appended.
    pub(crate) fn left(&self) -> Range<u64> {
        self.position..self.content.layout.first_position(self.blocks.end)
    }

    /// Appends the scores of the next positions, see [`Writer::append`](crate::Writer::append).
    pub(crate) fn append(&mut self, scores: &[i8]) -> Result<()> {
        let left = self.left();
        assert!(scores.len() as u64 <= left.end - left.start, "as many scores as positions, not more");
        self.position += scores.len() as u64;
        assert!(self.content.codec != Codec::Floors, "a file with floors is written band by band");
        let mut rest = bytes_of(scores);
        // Blocks that are encoded and written during this call borrow from `scores`.
        let mut ready: Vec<EncodedBlock<'_>> = std::mem::take(&mut self.ready);
        while !rest.is_empty() {
            let batch = self.batch(rest.len());
            let wanted = batch.values() - self.pending.len();
            if rest.len() < wanted {
                self.pending.extend_from_slice(rest);
                break;
            }
            let (values, after) = rest.split_at(wanted);
            rest = after;
            let mut pending = std::mem::take(&mut self.pending);
            ready = if pending.is_empty() {
                self.encode(&batch, values, ready)?
            } else {
                pending.extend_from_slice(values);
                let encoded = self.encode(&batch, &pending, ready)?;
                let encoded = encoded.into_iter().map(EncodedBlock::into_owned).collect();
                pending.clear();
                self.pending = pending;
                encoded
            };
        }
        self.ready = ready.into_iter().map(EncodedBlock::into_owned).collect();
        Ok(())
    }

    /// Appends zeros.
    pub(crate) fn append_zeros(&mut self, mut zeros: u64) -> Result<()> {
        while zeros > 0 {
            let values = self.content.layout.len_of(self.block);
            let is_whole = self.pending.is_empty() && values as u64 <= zeros;
            match block::zeros(self.content.codec, self.content.kind, values).filter(|_| is_whole) {
                Some((bytes, form)) => {
                    let checksum = block::checksum(self.content.hash, form, self.block, &bytes);
                    let checksum = checksum.expect("a block encoded here is valid");
                    self.ready.push(EncodedBlock { bytes: Cow::Owned(bytes), form, checksum });
                    if self.ready.len() >= READY_MAX {
                        write_blocks(&mut self.sink, &mut self.index, &std::mem::take(&mut self.ready))?;
                    }
                    self.hasher.update_zeros(values);
                    self.position += values as u64;
                    self.block += 1;
                    zeros -= values as u64;
                }
                None => {
                    let wanted = (self.batch(0).values() - self.pending.len()).min(ZEROS.len());
                    let now = zeros.min(wanted as u64);
                    self.append(&ZEROS[..now as usize])?;
                    zeros -= now;
                }
            }
        }
        Ok(())
    }

    /// The positions of the next band.
    pub(crate) fn next_band(&self) -> Option<Range<u64>> {
        (self.block < self.blocks.end).then(|| self.content.layout.positions_of(self.block))
    }

    /// Appends the scores of the next band, with their floors.
    pub(crate) fn append_band(&mut self, scores: &[i8], floors: &[i8]) -> Result<()> {
        assert!(self.content.codec == Codec::Floors, "a file with floors");
        let positions = self.next_band().expect("there is a band left");
        let count = positions.end - positions.start;
        assert_eq!((scores.len() as u64, floors.len() as u64), (count, count), "as many as positions in the band");
        self.position = positions.end;
        self.hasher.update(bytes_of(scores));
        let (values, floors) = (bytes_of(scores), bytes_of(floors));
        let encoder = BatchEncoder { content: &self.content, first: positions.start, values, floors };
        let encoded = encoder.encode(self.block)?;
        self.block += 1;
        write_blocks(&mut self.sink, &mut self.index, &[encoded])
    }

    /// Writes the remaining blocks.
    ///
    /// # Panics
    /// If not every position was appended, or after an error.
    pub(crate) fn finish(mut self) -> Result<FinishedBlocks<S>> {
        assert!(self.left().is_empty(), "as many scores as positions");
        let ready = std::mem::take(&mut self.ready);
        write_blocks(&mut self.sink, &mut self.index, &ready)?;
        let index_bytes = self.blocks.len() * INDEX_ENTRY_BYTES;
        assert_eq!(self.index.len(), index_bytes, "every block was written: nothing failed before");
        Ok(FinishedBlocks { sink: self.sink, index: self.index, hasher: self.hasher })
    }

    /// The next blocks to be encoded together, where this many values are there.
    fn batch(&self, values: usize) -> BlockBatch {
        // A few for each thread, and more of a long portion, since threads wait for each other at the end of
        // each batch. A single thread encodes one block at a time: longer portions then need not be copied.
        let block = BLOCK_POSITIONS as u64;
        let positions_max = match threads::count() as u64 {
            1 => block,
            threads if self.pending.is_empty() && values as u64 >= LONG_BLOCKS * threads * block => {
                LONG_BLOCKS * threads * block
            }
            threads => SHORT_BLOCKS * threads * block,
        };
        let end = self.content.layout.batch_end(self.block, positions_max);
        let end = end.min(self.blocks.end);
        let first = self.content.layout.positions_of(self.block).start;
        BlockBatch { blocks: self.block..end, positions: first..self.content.layout.positions_of(end - 1).end }
    }

    /// Encodes the next batch while the previous one is written.
    fn encode<'a>(
        &mut self,
        batch: &BlockBatch,
        values: &'a [u8],
        ready: Vec<EncodedBlock<'a>>,
    ) -> Result<Vec<EncodedBlock<'a>>> {
        let BlockWriter { sink, content, index, hasher, .. } = self;
        let encoder = BatchEncoder { content, first: batch.positions.start, values, floors: &[] };
        let (written, encoded) = threads::join(
            || write_blocks(sink, index, &ready),
            || {
                hasher.update(values);
                let encoded = threads::map(batch.blocks.clone().collect(), 1, |block| encoder.encode(block));
                encoded.into_iter().collect::<Result<Vec<_>, _>>()
            },
        );
        written?;
        self.block = batch.blocks.end;
        encoded
    }
}

/// A block ready to be written.
struct EncodedBlock<'a> {
    bytes: Cow<'a, [u8]>,
    form: Form,
    checksum: u64,
}

impl EncodedBlock<'_> {
    fn into_owned(self) -> EncodedBlock<'static> {
        EncodedBlock { bytes: Cow::Owned(self.bytes.into_owned()), ..self }
    }
}

/// Blocks that are encoded together.
struct BlockBatch {
    blocks: Range<usize>,
    positions: Range<u64>,
}

impl BlockBatch {
    fn values(&self) -> usize {
        (self.positions.end - self.positions.start) as usize
    }
}

/// The values of a batch, to be encoded block by block.
struct BatchEncoder<'a, 'w> {
    content: &'w FileContent,
    /// The position of the first value.
    first: u64,
    values: &'a [u8],
    floors: &'a [u8],
}

impl<'a> BatchEncoder<'a, '_> {
    fn encode(&self, number: usize) -> Result<EncodedBlock<'a>> {
        let FileContent { path, kind, hash, layout, range, codec } = self.content;
        let positions = layout.positions_of(number);
        let values = &self.values[(positions.start - self.first) as usize..(positions.end - self.first) as usize];
        if let Some(index) = range.find_outside(values) {
            return Err(StoreError::OutOfRange {
                path: path.clone(),
                position: positions.start + index as u64,
                value: values[index] as i8,
                range: *range,
            });
        }
        let floors = self.floors;
        let block = Values { block: number, values, band: layout.band_of(number), range: *range, floors };
        let (bytes, form) = block::encode(*codec, *kind, block);
        let checksum = block::checksum(*hash, form, number, &bytes).expect("a block encoded here is valid");
        Ok(EncodedBlock { checksum, bytes, form })
    }
}

fn write_blocks(sink: &mut impl BlockSink, index: &mut Vec<u8>, blocks: &[EncodedBlock<'_>]) -> Result<()> {
    for block in blocks {
        let entry = IndexEntry {
            offset: sink.offset(),
            bytes: block.bytes.len() as u32, // at most one a value
            form: block.form,
            checksum: block.checksum,
        };
        index.extend(entry.encode());
        sink.write(&block.bytes)?;
    }
    Ok(())
}
