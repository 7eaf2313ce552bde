//! What the tests write and read.

use std::path::{Path, PathBuf};

use disk::{Disk, MemoryDisk};

use crate::{
    Codec, Identity, Kind, Orientation, Scores, Shape, SlabShape, StoreError, Unverified, ValueRange, Written, write,
};

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
                kind: Kind::Database,
                rules: "awari".into(),
                positions: "all".into(),
                stones: 12,
                orientation: Orientation::OpponentMajor,
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

    /// Several blocks a slab.
    pub(crate) fn large() -> Self {
        Example::new(&[(1, 200_003), (77, 1000), (1, 65_536), (2, 3)], -24, 24)
    }

    pub(crate) fn path() -> PathBuf {
        PathBuf::from("databases/12.awari")
    }

    pub(crate) fn write(&self, disk: &MemoryDisk, codec: Codec) -> Result<Written, StoreError> {
        write(disk, &Example::path(), &self.identity, &self.shape, self.range, codec, &self.scores)
    }

    /// The bytes of the file.
    pub(crate) fn file(&self, codec: Codec) -> Vec<u8> {
        let disk = MemoryDisk::new();
        self.write(&disk, codec).unwrap();
        disk.peek(&Example::path()).unwrap()
    }

    pub(crate) fn open(&self, way: Way, file: &[u8]) -> Result<Scores, StoreError> {
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

    pub(crate) fn open(self, disk: &dyn Disk, path: &Path) -> Result<Unverified, StoreError> {
        match self {
            Way::Mapped => Scores::open(disk, path),
            Way::Windowed => Scores::open_windowed(disk, path),
        }
    }
}
