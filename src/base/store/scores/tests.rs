//! Files that the tests write and read.

mod corruption;
mod round_trip;

use crate::checksum;
use crate::codec::Form;
use crate::codec::block;
use crate::error::Result;
use crate::format::{FOOTER_BYTES, Footer, Header, INDEX_ENTRY_BYTES, IndexEntry, header_bytes, seal_header};
use crate::hasher::{ContentHasher, HashFunction};
use crate::layout::BlockLayout;
use crate::little_endian::{u16_at, u32_at};
use crate::{
    Codec, FileKind, FileOrientation, Identity, Scores, Shape, SlabShape, Unverified, ValueRange, Written, write,
};
use disk::{Digest, Disk, MemoryDisk, bytes_of};
use std::path::{Path, PathBuf};

/// The contents of a file.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    pub(crate) identity: Identity,
    pub(crate) shape: Shape,
    pub(crate) range: ValueRange,
    pub(crate) scores: Vec<i8>,
}

impl Example {
    /// Slabs filled with scores in `low..=high` that repeat enough for zstd to gain something.
    pub(crate) fn new(slabs: &[(u32, u32)], low: i8, high: i8) -> Self {
        let slabs = slabs.iter();
        let shape = Shape::new(slabs.map(|&(rows, columns)| SlabShape { rows, columns }).collect()).unwrap();
        let values = i64::from(high) - i64::from(low) + 1;
        let scores = (0..shape.positions())
            .map(|p| {
                // Runs of eight, shuffled by a multiplicative hash.
                let hash = (p / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
                (i64::from(low) + hash as i64 % values) as i8
            })
            .collect();
        Example {
            identity: Identity {
                kind: FileKind::Database,
                rules: "awari".into(),
                positions: "all".into(),
                stones: 12,
                orientation: FileOrientation::OpponentMajor,
            },
            shape,
            range: ValueRange::new(low, high),
            scores,
        }
    }

    /// Few bytes, but slabs of one, several and, for zstd, many positions.
    pub(crate) fn small() -> Self {
        Example::new(&[(1, 1), (3, 7), (16, 25)], -5, 12)
    }

    /// Few bytes, but blocks of strips in a file of the codec rans, among them one with a value not in its
    /// range's middle.
    pub(crate) fn strips() -> Self {
        let mut example = Example::new(&[(1, 1), (60, 40), (16, 520)], -5, 12);
        for (at, score) in example.scores.iter_mut().enumerate() {
            *score = (at / 40 / 7 + at % 40 / 9) as i8 % 5 - i8::from(at % 97 == 5);
        }
        example
    }

    /// Several blocks a slab.
    pub(crate) fn large() -> Self {
        Example::new(&[(1, 200_003), (77, 1000), (1, 65_536), (2, 3)], -24, 24)
    }

    pub(crate) fn path() -> PathBuf {
        PathBuf::from("databases/12.awari")
    }

    pub(crate) fn write(&self, disk: &MemoryDisk, codec: Codec) -> Result<Written> {
        write(disk, &Example::path(), &self.identity, &self.shape, self.range, codec, &self.scores)
    }

    /// The content digest of the file.
    pub(crate) fn digest(&self) -> Digest {
        if matches!(self.identity.kind, FileKind::Database | FileKind::Bounds) {
            return Digest::of_i8(&self.scores);
        }
        let mut hasher = ContentHasher::new(HashFunction::Xxh3);
        hasher.update(bytes_of(&self.scores));
        hasher.finalize()
    }

    /// The bytes of the file.
    pub(crate) fn file(&self, codec: Codec) -> Vec<u8> {
        let disk = MemoryDisk::new();
        self.write(&disk, codec).unwrap();
        disk.peek(&Example::path()).unwrap()
    }

    pub(crate) fn open(&self, way: Way, file: &[u8]) -> Result<Scores> {
        let disk = MemoryDisk::new();
        disk.put(&Example::path(), file);
        way.open(&disk, &Example::path())?.expect(&self.identity, &self.shape)
    }
}

/// The ways of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Mapped,
    Windowed,
}

impl Way {
    pub(crate) const ALL: [Way; 2] = [Way::Mapped, Way::Windowed];

    pub(crate) fn open(self, disk: &dyn Disk, path: &Path) -> Result<Unverified> {
        match self {
            Way::Mapped => Scores::open(disk, path),
            Way::Windowed => Scores::open_windowed(disk, path),
        }
    }
}

/// The parts of a file, to be reassembled with right checksums of wrong content.
pub(crate) struct Parts {
    pub(crate) header: Vec<u8>,
    pub(crate) hash: HashFunction,
    pub(crate) data: Vec<u8>,
    pub(crate) index: Vec<IndexEntry>,
    pub(crate) footer: Footer,
}

impl Parts {
    pub(crate) fn of(example: &Example, codec: Codec) -> Self {
        let file = example.file(codec);
        let (header, rest) = file.split_at(header_bytes(example.shape.slabs().len()));
        let (rest, footer) = rest.split_at(rest.len() - FOOTER_BYTES);
        let footer = Footer::decode(footer, header).unwrap();
        let (data, index) = rest.split_at(footer.index_offset as usize - header.len());
        let blocks = index.len() / INDEX_ENTRY_BYTES;
        Parts {
            header: header.to_vec(),
            hash: Header::decode(header).unwrap().hash(),
            data: data.to_vec(),
            index: (0..blocks).map(|block| IndexEntry::of_block(index, block)).collect(),
            footer,
        }
    }

    pub(crate) fn assemble(&self) -> Vec<u8> {
        let index: Vec<u8> = self.index.iter().flat_map(IndexEntry::encode).collect();
        let footer = Footer { index_checksum: checksum::of_index(&index), ..self.footer };
        let footer = footer.encode(&self.header);
        [&self.header[..], &self.data, &index, &footer].concat()
    }

    /// Recomputes all checksums.
    pub(crate) fn reseal(&mut self) {
        let mut offset = 0;
        for (block, entry) in self.index.iter_mut().enumerate() {
            let bytes = &mut self.data[offset..offset + entry.bytes as usize];
            offset += bytes.len();
            if entry.form == Form::Strips {
                reseal_strips(block, bytes);
            }
            // A head without an end is refused with any checksum.
            entry.checksum = block::checksum(self.hash, entry.form, block, bytes).unwrap_or(0);
        }
    }

    /// The file in an earlier version that has its forms, with the hashes of that.
    pub(crate) fn in_version(mut self, version: u8, example: &Example) -> Vec<u8> {
        self.header[8] = version;
        seal_header(&mut self.header);
        self.hash = HashFunction::Blake3;
        self.footer.digest = Digest::of_i8(&example.scores);
        self.reseal();
        self.assemble()
    }

    /// The file with its zstd blocks as version 1 had them.
    pub(crate) fn in_version_1(mut self, example: &Example) -> Vec<u8> {
        self.header[8] = 1;
        seal_header(&mut self.header);
        let (mut data, mut next, mut values) = (Vec::new(), 0, &example.scores[..]);
        let layout = BlockLayout::new(&example.shape, Codec::Zstd);
        for (block, entry) in self.index.iter_mut().enumerate() {
            let mut stored = self.data[next..next + entry.bytes as usize].to_vec();
            next += stored.len();
            let (now, after) = values.split_at(layout.len_of(block));
            values = after;
            if entry.form == Form::Frames {
                stored = zstd::bulk::compress(bytes_of(now), 1).unwrap();
                entry.form = Form::Zstd;
            }
            entry.offset = (self.header.len() + data.len()) as u64;
            (entry.bytes, entry.checksum) = (stored.len() as u32, checksum::of_block(self.hash, block, &stored));
            data.extend(stored);
        }
        self.footer.index_offset = (self.header.len() + data.len()) as u64;
        self.data = data;
        self.assemble()
    }
}

/// Sets the checksums of the strips of a block, as far as its head locates them.
fn reseal_strips(block: usize, bytes: &mut [u8]) -> Option<()> {
    let mut start = u32_at(bytes, 0) as usize;
    for strip in 0..u32_at(bytes, 4) as usize {
        let entry = 8 + 10 * strip;
        let end = start + usize::from(u16_at(bytes.get(entry..entry + 10)?, 0));
        let computed = checksum::of_strip(block, strip, bytes.get(start..end)?);
        bytes[entry + 2..entry + 10].copy_from_slice(&computed.to_le_bytes());
        start = end;
    }
    Some(())
}
