//! A file written by several processes. Each process writes one part, a range of blocks.
//!
//! If the codec makes blocks of known size, the offset of each part is known from the start. Otherwise it is known when
//! all parts are encoded; until then they are stored elsewhere. A process describes its part by a *summary*: the index
//! entries of its blocks and the hash of its positions. The summaries determine index and footer. The bytes of the file
//! are those that [`Writer`](crate::Writer) writes.

use crate::blocks::{BlockSink, BlockWriter, FileContent, FinishedBlocks};
use crate::codec::Codec;
use crate::codec::block::admits_bytes;
use crate::codec::packed;
use crate::error::{DecodeError, Result};
use crate::format::{FOOTER_BYTES, Footer, Header, INDEX_ENTRY_BYTES, IndexEntry};
use crate::hasher::ContentHasher;
use crate::identity::Identity;
use crate::layout::BlockLayout;
use crate::shape::Shape;
use crate::value_range::ValueRange;
use disk::{Digest, DiskError, Edge, Region, Spool};
use std::ops::Range;
use std::path::Path;

/// The division of a file into parts.
#[derive(Clone, Debug)]
pub struct Division {
    content: FileContent,
    header: Vec<u8>,
    /// The blocks of each part, possibly none.
    parts: Vec<Range<usize>>,
}

/// A part being written. Takes the memory of a [`Writer`](crate::Writer) and of its place.
pub struct PartWriter<'d> {
    blocks: BlockWriter<PartPlace<'d>>,
}

/// Where the blocks of a part go.
pub enum PartPlace<'d> {
    /// Their place in the file.
    File(Region<'d>),
    /// A spool, until their place is known.
    Spool(Spool<'d>),
}

/// The combined summaries of all parts.
#[derive(Debug)]
pub struct CombinedParts {
    /// The content digest.
    pub digest: Digest,
    /// Bytes of the blocks of each part.
    pub part_bytes: Vec<u64>,
    index: Vec<u8>,
}

impl Division {
    /// Divides a file into parts that begin near the positions `starts`, such as
    /// [`even_starts`](Self::even_starts), ascending from 0 on. `path` names the file in errors.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`](crate::StoreError::Unsupported) if the header cannot hold the names or the slabs.
    ///
    /// # Panics
    /// If the first start is not 0, the starts do not ascend, or the codec has floors.
    pub fn new(
        path: &Path,
        identity: &Identity,
        shape: &Shape,
        range: ValueRange,
        codec: Codec,
        starts: &[u64],
    ) -> Result<Division> {
        assert!(starts.first() == Some(&0) && starts.is_sorted(), "parts of all positions");
        assert!(codec != Codec::Floors, "parts of a file without floors");
        let header = Header::new(identity.clone(), shape.clone(), range, codec);
        let hash = header.hash();
        let header = header.encode()?;
        let layout = BlockLayout::new(shape, codec);
        let cut = |part: usize| match starts.get(part) {
            Some(&start) if start < layout.positions() => layout.locate(start).block,
            _ => layout.block_count(),
        };
        let parts = (0..starts.len()).map(|part| cut(part)..cut(part + 1)).collect();
        let content = FileContent { path: path.to_path_buf(), kind: identity.kind, hash, layout, range, codec };
        Ok(Division { content, header, parts })
    }

    /// Returns the first positions of parts of about as many positions each.
    pub fn even_starts(positions: u64, parts: usize) -> Vec<u64> {
        (0..parts).map(|part| (u128::from(positions) * part as u128 / parts as u128) as u64).collect()
    }

    /// The positions of each part, in canonical order.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.parts.iter().map(|blocks| self.positions(blocks)).collect()
    }

    fn positions(&self, blocks: &Range<usize>) -> Range<u64> {
        let layout = &self.content.layout;
        layout.first_position(blocks.start)..layout.first_position(blocks.end)
    }

    /// An upper bound of the bytes of the blocks of a part.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn part_bytes_max(&self, part: usize) -> u64 {
        let FileContent { layout, range, codec, .. } = &self.content;
        let bits = codec.bits_max(range.bits());
        let bytes = |block: usize| packed::packed_bytes(layout.len_of(block), bits);
        self.parts[part].clone().map(|block| bytes(block) as u64).sum()
    }

    /// The bytes of the blocks of each part, if they do not depend on the scores.
    pub fn part_bytes(&self) -> Option<Vec<u64>> {
        let is_known = !self.content.codec.is_compressed();
        is_known.then(|| (0..self.parts.len()).map(|part| self.part_bytes_max(part)).collect())
    }

    /// The range of a part in the file, given the bytes of each part.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn range(&self, part: usize, part_bytes: &[u64]) -> Range<u64> {
        let start = self.header.len() as u64 + part_bytes[..part].iter().sum::<u64>();
        start..start + part_bytes[part]
    }

    /// The length of the file, given the bytes of each part.
    pub fn file_bytes(&self, part_bytes: &[u64]) -> u64 {
        let index_bytes = self.content.layout.block_count() * INDEX_ENTRY_BYTES;
        (self.header.len() + index_bytes + FOOTER_BYTES) as u64 + part_bytes.iter().sum::<u64>()
    }

    /// Begins to write the blocks of a part.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn writer<'d>(&self, part: usize, place: PartPlace<'d>) -> PartWriter<'d> {
        PartWriter { blocks: BlockWriter::new(place, self.content.clone(), self.parts[part].clone()) }
    }

    /// Combines the summaries of all parts, in order.
    ///
    /// # Errors
    /// The first part with an invalid summary, with what was expected and what was found.
    ///
    /// # Panics
    /// If the number of summaries differs from the number of parts.
    pub fn whole(&self, summaries: Vec<Vec<u8>>) -> Result<CombinedParts, (usize, String, String)> {
        assert_eq!(summaries.len(), self.parts.len(), "a summary for each part");
        let mut index = Vec::with_capacity(self.content.layout.block_count() * INDEX_ENTRY_BYTES);
        let mut hasher = ContentHasher::new(self.content.hash);
        let mut part_bytes = Vec::new();
        let mut offset = self.header.len() as u64;
        for (part, (blocks, summary)) in self.parts.iter().zip(summaries).enumerate() {
            let start = offset;
            let refuse = |DecodeError { expected, found }: DecodeError| (part, expected, found);
            let Some((entries, hash)) = summary.split_at_checked(blocks.len() * INDEX_ENTRY_BYTES) else {
                return Err(refuse(DecodeError::new(format!("entries of blocks {blocks:?}"), summary.len())));
            };
            for (block, entry) in blocks.clone().zip(entries.chunks_exact(INDEX_ENTRY_BYTES)) {
                let entry = self.entry(block, entry).map_err(refuse)?;
                index.extend(IndexEntry { offset, ..entry }.encode());
                offset += u64::from(entry.bytes);
            }
            let positions = self.positions(blocks);
            if !hasher.join(&positions, hash) {
                return Err(refuse(DecodeError::new(format!("the hash of positions {positions:?}"), hash.len())));
            }
            part_bytes.push(offset - start);
        }
        Ok(CombinedParts { digest: hasher.finalize(), part_bytes, index })
    }

    /// Decodes and checks the entry of a block, except for its offset.
    fn entry(&self, block: usize, bytes: &[u8]) -> Result<IndexEntry, DecodeError> {
        let FileContent { layout, range, codec, .. } = &self.content;
        let found = || format!("{bytes:?}");
        let entry = IndexEntry::decode(bytes).filter(|entry| codec.has_form(entry.form));
        let entry = entry.ok_or_else(|| DecodeError::new(format!("an entry of codec {codec}"), found()))?;
        let fits = admits_bytes(entry.form, entry.bytes.into(), layout.len_of(block), || layout.band_of(block), *range);
        if fits { Ok(entry) } else { Err(DecodeError::new(format!("an entry of block {block}"), found())) }
    }

    /// The bytes of the file that are in no part: the header, and index with footer.
    pub fn edges(&self, whole: &CombinedParts) -> [Edge; 2] {
        let offset = self.header.len() as u64 + whole.part_bytes.iter().sum::<u64>();
        let footer = Footer::of(whole.digest, offset, &whole.index).encode(&self.header);
        [Edge { offset: 0, bytes: self.header.clone() }, Edge { offset, bytes: [&whole.index[..], &footer].concat() }]
    }
}

impl BlockSink for PartPlace<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        match self {
            PartPlace::File(region) => region.write(bytes),
            PartPlace::Spool(spool) => spool.write(bytes),
        }
    }

    fn offset(&self) -> u64 {
        match self {
            PartPlace::File(region) => region.offset(),
            PartPlace::Spool(spool) => spool.bytes(),
        }
    }
}

impl<'d> PartWriter<'d> {
    /// Appends the scores of the next positions. Encodes on all threads of the current rayon pool, a batch at a time.
    ///
    /// # Errors
    /// [`StoreError::Disk`](crate::StoreError::Disk) if the disk fails;
    /// [`StoreError::OutOfRange`](crate::StoreError::OutOfRange) if a score is not in the range. Either may be reported
    /// by a later call. The part can then only be dropped.
    ///
    /// # Panics
    /// If there are more scores than positions left.
    pub fn append(&mut self, scores: &[i8]) -> Result<()> {
        self.blocks.append(scores)
    }

    /// Appends zeros, as [`append`](Self::append). Whole blocks of zeros are not encoded.
    ///
    /// # Errors
    /// Those of [`append`](Self::append).
    pub fn append_zeros(&mut self, count: u64) -> Result<()> {
        self.blocks.append_zeros(count)
    }

    /// Completes the part. Returns its summary, and where its blocks are.
    ///
    /// # Errors
    /// Those of [`append`](Self::append).
    ///
    /// # Panics
    /// If not every position was appended, or after an error.
    pub fn finish(self) -> Result<(Vec<u8>, PartPlace<'d>)> {
        let FinishedBlocks { sink, index, hasher } = self.blocks.finish()?;
        Ok(([index, hasher.encode()].concat(), sink))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreError;
    use crate::identity::{FileKind, Role};
    use crate::scores::tests::Example;
    use disk::{Joint, MemoryDisk};

    fn division(example: &Example, codec: Codec, parts: usize) -> Division {
        let Example { identity, shape, range, .. } = example;
        let starts = Division::even_starts(shape.positions(), parts);
        Division::new(&Example::path(), identity, shape, *range, codec, &starts).unwrap()
    }

    /// Writes a part outside the file. Returns its summary and its bytes.
    fn kept(division: &Division, example: &Example, part: usize, disk: &MemoryDisk) -> (Vec<u8>, Vec<u8>) {
        let bytes = division.part_bytes_max(part);
        let spool = Spool::new(disk, "part".into());
        let mut writer = division.writer(part, PartPlace::Spool(spool));
        let Range { start, end } = division.ranges()[part];
        example.scores[start as usize..end as usize].chunks(50_001).for_each(|run| writer.append(run).unwrap());
        let (summary, PartPlace::Spool(spool)) = writer.finish().unwrap() else { panic!("the place is a spool") };
        let mut found = Vec::new();
        let take = |bytes: &[u8]| {
            found.extend_from_slice(bytes);
            Ok(())
        };
        spool.pass_on(take).unwrap();
        assert!(found.len() as u64 <= bytes);
        (summary, found)
    }

    #[test]
    fn parts_make_the_file() {
        for (codec, parts) in Codec::ALL.into_iter().flat_map(|codec| [1, 2, 3, 8, 40].map(|parts| (codec, parts))) {
            let mut example = Example::new(&[(1, 200_003), (77, 1000), (1300, 1100), (2, 3)], -24, 24);
            if parts == 3 {
                example.identity.kind = FileKind::Plane { role: Role::Won, bound: 7 };
            }
            let disk = MemoryDisk::new();
            let division = division(&example, codec, parts);
            let ranges = division.ranges();
            assert!(
                ranges
                    .iter()
                    .map(|range| range.start)
                    .eq([0].into_iter().chain(ranges.iter().map(|range| range.end)).take(parts))
            );
            assert_eq!(ranges[parts - 1].end, example.scores.len() as u64);
            let all: Vec<_> = (0..parts).map(|part| kept(&division, &example, part, &disk)).collect();
            let (summaries, encoded): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            let whole = division.whole(summaries).unwrap();
            assert_eq!(whole.digest, example.digest());
            assert!(division.part_bytes().is_none_or(|bytes| bytes == whole.part_bytes));
            assert_eq!(division.part_bytes().is_some(), matches!(codec, Codec::Raw | Codec::Packed));
            let bytes = division.file_bytes(&whole.part_bytes);
            let joint = Joint::create(&disk, &Example::path(), bytes).unwrap();
            let mut edges = division.edges(&whole).to_vec();
            for (part, encoded) in encoded.iter().enumerate() {
                let place = division.range(part, &whole.part_bytes);
                let mut region = Region::open(&disk, joint.temporary(), bytes, place).unwrap();
                region.write(encoded).unwrap();
                edges.extend(region.finish().unwrap());
            }
            assert_eq!(joint.publish(edges).unwrap(), bytes);
            assert!(disk.peek(&Example::path()).unwrap() == example.file(codec), "{codec:?}, {parts} parts");
        }
    }

    #[test]
    fn parts_begin_near_any_starts() {
        let Example { identity, shape, range, .. } = &Example::new(&[(1, 200_003), (77, 1000)], -24, 24);
        let end = shape.positions();
        let starts = [0, 0, 5, 150_000, 150_001, end, end + 9];
        let division = Division::new(&Example::path(), identity, shape, *range, Codec::Packed, &starts).unwrap();
        let ranges = division.ranges();
        assert_eq!((ranges.len(), ranges[0].start, ranges[6].end), (7, 0, end));
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        for (range, start) in ranges.iter().zip(starts) {
            assert!(range.start.abs_diff(start.min(end)) < 70_000, "{range:?} begins near {start}");
        }
    }

    #[test]
    fn other_summaries_are_refused() {
        let example = Example::large();
        for codec in Codec::ALL {
            let disk = MemoryDisk::new();
            let division = division(&example, codec, 3);
            let summaries: Vec<_> = (0..3).map(|part| kept(&division, &example, part, &disk).0).collect();
            division.whole(summaries.clone()).unwrap();
            let refused = |part: usize, summary: Vec<u8>| {
                let mut summaries = summaries.clone();
                summaries[part] = summary;
                division.whole(summaries).unwrap_err().0
            };
            for (part, summary) in summaries.iter().enumerate() {
                assert_eq!(refused(part, [&summary[..], b"x"].concat()), part);
                if summary.is_empty() {
                    continue;
                }
                for length in [0, 1, INDEX_ENTRY_BYTES - 1, INDEX_ENTRY_BYTES, summary.len() - 1] {
                    assert_eq!(refused(part, summary[..length].to_vec()), part, "{codec:?}, {length} bytes");
                }
                // Bytes and form of the first block.
                for (at, byte) in [(11, 0x80), (12, 0), (12, 99)] {
                    let mut changed = summary.clone();
                    changed[at] = byte;
                    assert_eq!(refused(part, changed), part, "{codec:?}, {byte} at {at}");
                }
            }
        }
    }

    #[test]
    fn a_score_out_of_range_is_reported() {
        let mut example = Example::large();
        example.scores[100_000] = 25;
        let division = division(&example, Codec::Packed, 1);
        let disk = MemoryDisk::new();
        let mut writer = division.writer(0, PartPlace::Spool(Spool::new(&disk, "part".into())));
        let error = writer.append(&example.scores).and_then(|()| writer.finish()).map(drop).unwrap_err();
        assert!(matches!(error, StoreError::OutOfRange { position: 100_000, value: 25, .. }), "{error}");
    }
}
