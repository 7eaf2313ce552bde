//! Writing a file: encode blocks in parallel, a batch at a time, write them in order, publish.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use disk::{Digest, Disk, Staged, bytes_of};
use rayon::prelude::*;

use crate::codec::{Codec, ValueRange};
use crate::error::StoreError;
use crate::form::{self, Form, Values};
use crate::format::{self, FOOTER_BYTES, Footer, Header, INDEX_ENTRY_BYTES, IndexEntry};
use crate::hasher::ContentHasher;
use crate::identity::{Identity, Kind};
use crate::layout::{BATCH_POSITIONS, BLOCK_POSITIONS, Layout};
use crate::shape::Shape;

/// Blocks of zeros that wait to be written, at most.
const READY_MAX: usize = 32;

static ZEROS: [i8; BLOCK_POSITIONS] = [0; BLOCK_POSITIONS];

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Length of the file.
    pub bytes: u64,
    /// BLAKE3 of the scores, one byte each, in canonical order.
    pub digest: Digest,
}

/// A file on its way: scores come in canonical order and any portions. Its bytes depend only on the
/// arguments, not on the portions.
///
/// Holds at most three batches of 2 MiB, or as long as a block of the codec rans (at most 8 MiB) and twice that again while
/// it is encoded: scores that are not yet a batch, a batch being encoded, and one
/// being written meanwhile. Dropped before [`finish`](Self::finish) it leaves nothing.
pub struct Writer<'d> {
    staged: Staged<'d>,
    path: PathBuf,
    kind: Kind,
    layout: Layout,
    range: ValueRange,
    codec: Codec,
    header: Vec<u8>,
    bytes_max: u64,
    hasher: ContentHasher,
    index: Vec<u8>,
    /// Positions appended.
    positions: u64,
    /// The first block that is not encoded yet.
    block: usize,
    /// The positions from that block on, as far as they were appended: less than a batch.
    pending: Vec<u8>,
    ready: Vec<Encoded<'static>>,
}

impl<'d> Writer<'d> {
    /// Begins a file, to be published under `path` by [`finish`](Self::finish); until then `path` shows
    /// what it showed before.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if there is no space or the disk fails; [`StoreError::Unsupported`] if the
    /// names in `identity` do not fit.
    pub fn create(
        disk: &'d dyn Disk,
        path: &Path,
        identity: &Identity,
        shape: &Shape,
        range: ValueRange,
        codec: Codec,
    ) -> Result<Self, StoreError> {
        let layout = Layout::new(shape, codec);
        let header = Header::new(identity.clone(), shape.clone(), range, codec).encode()?;
        let index_bytes = layout.block_count() * INDEX_ENTRY_BYTES;
        let bytes_max = (header.len() + index_bytes + FOOTER_BYTES) as u64 + layout.data_bytes_max(codec, range);
        let mut staged = Staged::create(disk, path, bytes_max)?;
        staged.write(&header)?;
        Ok(Writer {
            staged,
            path: path.to_path_buf(),
            kind: identity.kind,
            layout,
            range,
            codec,
            header,
            bytes_max,
            hasher: ContentHasher::new(),
            index: Vec::with_capacity(index_bytes),
            positions: 0,
            block: 0,
            pending: Vec::new(),
            ready: Vec::new(),
        })
    }

    /// Appends the scores of the next positions, as many as there are. Encodes on all threads of the
    /// current rayon pool, a batch at a time.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if the disk fails; [`StoreError::OutOfRange`] if a score is not in the range.
    /// The file can then only be dropped. Either may be noticed by a later call.
    ///
    /// # Panics
    /// If there are more scores than positions left.
    pub fn append(&mut self, scores: &[i8]) -> Result<(), StoreError> {
        self.positions += scores.len() as u64;
        assert!(self.positions <= self.layout.positions(), "as many scores as positions, not more");
        assert!(self.codec != Codec::Floors, "a file with floors is written band by band");
        let mut rest = bytes_of(scores);
        // What is encoded but not written while the scores are at hand need not be copied.
        let mut ready: Vec<Encoded<'_>> = std::mem::take(&mut self.ready);
        while !rest.is_empty() {
            let batch = self.batch();
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
                let encoded = encoded.into_iter().map(Encoded::into_owned).collect();
                pending.clear();
                self.pending = pending;
                encoded
            };
        }
        self.ready = ready.into_iter().map(Encoded::into_owned).collect();
        Ok(())
    }

    /// Appends so many zeros. In files of planes that takes next to nothing.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    ///
    /// # Panics
    /// If there are more than positions left.
    pub fn append_zeros(&mut self, mut zeros: u64) -> Result<(), StoreError> {
        while zeros > 0 {
            let values = self.layout.len_of(self.block);
            let is_whole = self.pending.is_empty() && values as u64 <= zeros;
            match form::zeros(self.codec, self.kind, values).filter(|_| is_whole) {
                Some((bytes, form)) => {
                    let checksum = form::checksum(form, self.block, &bytes).expect("it was made just now");
                    self.ready.push(Encoded { bytes: Cow::Owned(bytes), form, checksum });
                    if self.ready.len() >= READY_MAX {
                        write_blocks(&mut self.staged, &mut self.index, &std::mem::take(&mut self.ready))?;
                    }
                    self.hasher.update_zeros(values);
                    self.positions += values as u64;
                    self.block += 1;
                    zeros -= values as u64;
                }
                None => {
                    let wanted = (self.batch().values() - self.pending.len()).min(ZEROS.len());
                    let now = zeros.min(wanted as u64);
                    self.append(&ZEROS[..now as usize])?;
                    zeros -= now;
                }
            }
        }
        Ok(())
    }

    /// The positions of the band that comes next, of a file of the codec [`Floors`](Codec::Floors); `None` after the last.
    pub fn next_band(&self) -> Option<Range<u64>> {
        (self.block < self.layout.block_count()).then(|| self.layout.positions_of(self.block))
    }

    /// Appends the scores of the next band to a file of the codec [`Floors`](Codec::Floors), each with a floor: a value
    /// that it is at least, or one below the range for none. Any floors will do, those that scores often are the best;
    /// who reads the file must have the same. Encodes on all threads of the current rayon pool.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    ///
    /// # Panics
    /// If the file is of another codec, or there are not as many scores and floors as positions in the band.
    pub fn append_band(&mut self, scores: &[i8], floors: &[i8]) -> Result<(), StoreError> {
        assert!(self.codec == Codec::Floors, "a file with floors");
        let positions = self.next_band().expect("there is a band left");
        let count = positions.end - positions.start;
        assert_eq!((scores.len() as u64, floors.len() as u64), (count, count), "as many as positions in the band");
        self.positions = positions.end;
        self.hasher.update(bytes_of(scores));
        let (range, codec, kind) = (self.range, self.codec, self.kind);
        let (path, layout, values, floors) = (&self.path, &self.layout, bytes_of(scores), bytes_of(floors));
        let encoder = Encoder { path, layout, range, codec, kind, first: positions.start, values, floors };
        let encoded = encoder.encode(self.block)?;
        self.block += 1;
        write_blocks(&mut self.staged, &mut self.index, &[encoded])
    }

    /// Completes the file and publishes it.
    ///
    /// # Errors
    /// As [`append`](Self::append); `path` then shows what it showed before, or the complete new file.
    ///
    /// # Panics
    /// If not every position was appended, or after an error.
    pub fn finish(mut self) -> Result<Written, StoreError> {
        assert_eq!(self.positions, self.layout.positions(), "as many scores as positions");
        let ready = std::mem::take(&mut self.ready);
        write_blocks(&mut self.staged, &mut self.index, &ready)?;
        let index_bytes = self.layout.block_count() * INDEX_ENTRY_BYTES;
        assert_eq!(self.index.len(), index_bytes, "every block was written: nothing failed before");

        let digest = self.hasher.finalize();
        let footer = Footer {
            digest,
            index_offset: self.staged.bytes(),
            index_bytes: self.index.len() as u64,
            index_checksum: format::index_checksum(&self.index),
        };
        self.staged.write(&self.index)?;
        self.staged.write(&footer.encode(&self.header))?;
        assert!(self.staged.bytes() <= self.bytes_max, "no more was written than reserved");
        let bytes = self.staged.publish()?;
        Ok(Written { bytes, digest })
    }

    /// The next blocks to be encoded together.
    fn batch(&self) -> Batch {
        // A few for each thread: more would only take memory. One alone is handed no more than it needs: what comes in
        // longer portions is then not copied.
        let blocks = match rayon::current_num_threads() as u64 {
            1 => 1,
            threads => 8 * threads,
        };
        let end = self.layout.batch_end(self.block, BATCH_POSITIONS.min(blocks * BLOCK_POSITIONS as u64));
        let first = self.layout.positions_of(self.block).start;
        Batch { blocks: self.block..end, positions: first..self.layout.positions_of(end - 1).end }
    }

    /// Encodes the next batch, while the one before is written.
    fn encode<'a>(
        &mut self,
        batch: &Batch,
        values: &'a [u8],
        ready: Vec<Encoded<'a>>,
    ) -> Result<Vec<Encoded<'a>>, StoreError> {
        let Writer { staged, index, hasher, path, kind, layout, range, codec, .. } = self;
        let (range, codec, kind) = (*range, *codec, *kind);
        let encoder = Encoder { path, layout, range, codec, kind, first: batch.positions.start, values, floors: &[] };
        let (written, encoded) = rayon::join(
            || write_blocks(staged, index, &ready),
            || {
                hasher.update(values);
                let blocks = batch.blocks.clone().into_par_iter();
                let encoded: Vec<_> = blocks.map(|block| encoder.encode(block)).collect();
                encoded.into_iter().collect::<Result<Vec<_>, _>>()
            },
        );
        written?;
        self.block = batch.blocks.end;
        encoded
    }
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({}: {} of {} positions)", self.path.display(), self.positions, self.layout.positions())
    }
}

/// Writes scores in canonical order to a file and publishes it atomically: under `path` there is
/// what was there before, or the complete new file. Its bytes depend only on the arguments.
///
/// # Errors
/// [`StoreError::Disk`] if there is no space or the disk fails; [`StoreError::OutOfRange`] if a score
/// is not in `range`; [`StoreError::Unsupported`] if the names in `identity` do not fit.
///
/// # Panics
/// If there are not as many scores as `shape` has positions.
pub fn write(
    disk: &dyn Disk,
    path: &Path,
    identity: &Identity,
    shape: &Shape,
    range: ValueRange,
    codec: Codec,
    scores: &[i8],
) -> Result<Written, StoreError> {
    assert_eq!(scores.len() as u64, shape.positions(), "as many scores as positions");
    let mut writer = Writer::create(disk, path, identity, shape, range, codec)?;
    writer.append(scores)?;
    writer.finish()
}

/// A block ready to be written.
struct Encoded<'a> {
    bytes: Cow<'a, [u8]>,
    form: Form,
    checksum: u64,
}

impl Encoded<'_> {
    fn into_owned(self) -> Encoded<'static> {
        Encoded { bytes: Cow::Owned(self.bytes.into_owned()), ..self }
    }
}

/// Some blocks to be encoded together.
struct Batch {
    blocks: Range<usize>,
    positions: Range<u64>,
}

impl Batch {
    fn values(&self) -> usize {
        (self.positions.end - self.positions.start) as usize
    }
}

/// The values of a batch, to be encoded block by block.
struct Encoder<'a, 'w> {
    path: &'w Path,
    layout: &'w Layout,
    range: ValueRange,
    codec: Codec,
    kind: Kind,
    /// The position of the first value.
    first: u64,
    values: &'a [u8],
    floors: &'a [u8],
}

impl<'a> Encoder<'a, '_> {
    fn encode(&self, number: usize) -> Result<Encoded<'a>, StoreError> {
        let positions = self.layout.positions_of(number);
        let values = &self.values[(positions.start - self.first) as usize..(positions.end - self.first) as usize];
        if let Some(index) = self.range.find_outside(values) {
            return Err(StoreError::OutOfRange {
                path: self.path.to_path_buf(),
                position: positions.start + index as u64,
                value: values[index] as i8,
                range: self.range,
            });
        }
        let floors = self.floors;
        let block = Values { block: number, values, band: self.layout.band_of(number), range: self.range, floors };
        let (bytes, form) = form::encode(self.codec, self.kind, block);
        let checksum = form::checksum(form, number, &bytes).expect("it was encoded just now");
        Ok(Encoded { checksum, bytes, form })
    }
}

fn write_blocks(staged: &mut Staged<'_>, index: &mut Vec<u8>, blocks: &[Encoded<'_>]) -> Result<(), StoreError> {
    for block in blocks {
        let entry = IndexEntry {
            offset: staged.bytes(),
            bytes: block.bytes.len() as u32, // at most one a value
            form: block.form,
            checksum: block.checksum,
        };
        index.extend(entry.encode());
        staged.write(&block.bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use disk::{DiskError, MemoryDisk};

    use super::*;
    use crate::example::{Example, Way};
    use crate::identity::Role;

    #[test]
    fn failure_at_every_operation_leaves_the_old_file_or_the_new() {
        let example = Example::large();
        let path = Example::path();
        let new = example.file(Codec::Packed);
        for old in [None, Some(Example::small().file(Codec::Raw))] {
            for crash in [false, true] {
                for k in 0.. {
                    let disk = MemoryDisk::new();
                    if let Some(old) = &old {
                        disk.put(&path, old);
                    }
                    if crash {
                        disk.fail_from(k, disk::Fault::Io);
                    } else {
                        disk.fail_at(k, disk::Fault::NoSpace);
                    }
                    let written = example.write(&disk, Codec::Packed);
                    if crash {
                        disk.crash();
                    } else if let Err(error) = &written {
                        assert!(matches!(error, StoreError::Disk(e) if e.is_no_space()));
                        let names: Vec<_> = disk.paths().iter().map(|path| disk::is_leftover(path)).collect();
                        assert!(!names.contains(&true), "operation {k}");
                    }
                    let found = disk.peek(&path);
                    let whole = found.as_ref() == Some(&new);
                    assert!(whole || (written.is_err() && found == old), "operation {k}");
                    if written.is_ok() {
                        assert!(k > 5, "{k} operations are too few to be all");
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn zeros_make_the_same_file_however_they_come() {
        let kinds = [Kind::Database, Kind::Plane { role: Role::Won, bound: 7 }];
        // Runs, every other of zeros; they end within blocks and slabs, and with them.
        let runs = [70_000, 130_003, 0, 9, 10_000, 132_527, 6];
        for (kind, codec) in kinds.into_iter().flat_map(|kind| Codec::ALL.map(|codec| (kind, codec))) {
            let mut example = Example::large();
            example.identity.kind = kind;
            let mut next = 0;
            let mut runs_of = |run: usize| {
                next += run;
                (next - run, next)
            };
            let runs: Vec<_> = runs.iter().map(|&run| runs_of(run)).collect();
            assert_eq!(next, example.scores.len());
            for &(first, end) in runs.iter().skip(1).step_by(2) {
                example.scores[first..end].fill(0);
            }
            for threads in [1, 2] {
                let disk = MemoryDisk::new();
                let path = Example::path();
                let (identity, shape) = (&example.identity, &example.shape);
                let mut writer = Writer::create(&disk, &path, identity, shape, example.range, codec).unwrap();
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let written = pool.install(|| {
                    for (number, &(first, end)) in runs.iter().enumerate() {
                        match number % 2 {
                            0 => writer.append(&example.scores[first..end]).unwrap(),
                            _ => writer.append_zeros((end - first) as u64).unwrap(),
                        }
                    }
                    writer.finish().unwrap()
                });
                assert_eq!(written.digest, Digest::of_i8(&example.scores));
                let file = disk.peek(&path).unwrap();
                assert_eq!(file, example.file(codec), "{kind}, {codec:?}");
                let scores = example.open(Way::Windowed, &file).unwrap();
                let is_zeros = |block: usize| {
                    let range = scores.block_range(block);
                    example.scores[range.start as usize..range.end as usize].iter().all(|&score| score == 0)
                };
                for block in 0..scores.block_count() {
                    let is_told = matches!(kind, Kind::Plane { .. }) && codec == Codec::Zstd;
                    assert_eq!(scores.is_zeros(block), is_told && is_zeros(block), "{kind}, {codec:?}, {block}");
                }
                assert!((0..scores.block_count()).any(is_zeros));
            }
        }
    }

    #[test]
    fn a_disk_too_small_is_noticed_before_writing() {
        let example = Example::large();
        for codec in Codec::ALL {
            let disk = MemoryDisk::new();
            disk.set_bytes_max(100_000);
            let error = example.write(&disk, codec).unwrap_err();
            let StoreError::Disk(DiskError::NoSpace { needed, free, .. }) = error else {
                panic!("{error}");
            };
            assert!(needed.unwrap() > 200_000);
            assert_eq!(free, Some(100_000));
            assert!(disk.paths().is_empty());
        }
    }
}
