//! Opening a file: header, index and footer are verified, blocks are not.

use super::source::FileSource;
use crate::checksum;
use crate::codec::Codec;
use crate::error::{DecodeError, Result, StoreError};
use crate::format::{
    FOOTER_BYTES, Footer, HEADER_BYTES_MAX, HEADER_FIXED_BYTES, Header, INDEX_ENTRY_BYTES, MAGIC, MAGIC_END, VERSION,
    check_index,
};
use crate::identity::Identity;
use crate::layout::BlockLayout;
use crate::little_endian::u32_at;
use crate::scores::Scores;
use crate::shape::Shape;
use crate::value_range::ValueRange;
use disk::{Digest, Disk, InputFile};
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// An open file whose frame (header, index, footer, their checksums and sizes) is sound, but whose identity has not
/// been compared with the expected one.
#[derive(Debug)]
pub struct Unverified(Scores);

/// Whether a file begins with the magic of awari files, sound or damaged. An unreadable file does not.
pub fn begins_as_ours(disk: &dyn Disk, path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    disk.open(path).is_ok_and(|file| file.bytes() >= MAGIC.len() as u64 && file.read_at(0, &mut start).is_ok())
        && start == MAGIC
}

impl Scores {
    /// Maps a file and verifies header, index and footer; blocks are verified as they are read.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if there is no such file; [`StoreError::NotOurs`],
    /// [`StoreError::Version`] or [`StoreError::Damaged`] if it is not a sound file of ours.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Unverified> {
        Unverified::open(path, FileSource::mapped(disk.map(path)?))
    }

    /// As [`open`](Self::open), but without a map, where memory is bounded: the index is held in memory (24 bytes for
    /// 65,536 positions), and each requested block is read into a buffer.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_windowed(disk: &dyn Disk, path: &Path) -> Result<Unverified> {
        Scores::open_input(path, disk.open(path)?)
    }

    /// As [`open_windowed`](Self::open_windowed), for short reads whose neighbours are read later.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_scattered(disk: &dyn Disk, path: &Path) -> Result<Unverified> {
        Scores::open_input(path, disk.open_scattered(path)?)
    }

    /// As [`open_windowed`](Self::open_windowed), for a file that is already open; `path` names it in errors.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_input(path: &Path, file: Box<dyn InputFile>) -> Result<Unverified> {
        Unverified::open(path, FileSource::Windowed(file))
    }
}

impl Unverified {
    pub(crate) fn open(path: &Path, source: FileSource) -> Result<Self> {
        let not_ours =
            |expected: String, found: String| StoreError::NotOurs { path: path.to_path_buf(), expected, found };
        let damaged = |part: &str| {
            let (path, part) = (path.to_path_buf(), part.to_owned());
            move |malformed: DecodeError| StoreError::Damaged {
                path,
                part,
                expected: malformed.expected,
                found: malformed.found,
            }
        };

        // Copies, not references into the map: they are used as long as the file is open, even if it changes.
        let read = |offset: u64, bytes: usize| {
            source.copy(offset, bytes).map_err(|error| {
                if error.is_cut_short() {
                    not_ours(disk::bytes(source.bytes()), "fewer, for it was cut".to_owned())
                } else {
                    StoreError::Disk(error)
                }
            })
        };

        let bytes_min = (HEADER_FIXED_BYTES + FOOTER_BYTES) as u64;
        if source.bytes() < bytes_min {
            let found = disk::bytes(source.bytes());
            return Err(not_ours(format!("at least {bytes_min} bytes"), found));
        }
        let start = read(0, HEADER_FIXED_BYTES)?;
        if start[..8] != MAGIC {
            let expected = format!("\"{}\" at its start", MAGIC.escape_ascii());
            let found = format!("\"{}\"", start[..8].escape_ascii());
            return Err(not_ours(expected, found));
        }
        let version = u32_at(&start, 8);
        if !(1..=VERSION).contains(&version) {
            return Err(StoreError::Version { path: path.to_path_buf(), expected: VERSION, found: version });
        }
        let index_end = source.bytes() - FOOTER_BYTES as u64;
        let footer = read(index_end, FOOTER_BYTES)?;
        if footer[64..] != MAGIC_END {
            let expected = format!("\"{}\" at its end", MAGIC_END.escape_ascii());
            let found = format!("\"{}\"", footer[64..].escape_ascii());
            return Err(not_ours(expected, found));
        }

        let header_bytes = u64::from(u32_at(&start, 12));
        if header_bytes > index_end.min(HEADER_BYTES_MAX as u64) {
            let expected = format!("at most {HEADER_BYTES_MAX} bytes, and no more than the file has");
            return Err(damaged("the header")(DecodeError::new(expected, header_bytes)));
        }
        let header_part = read(0, header_bytes as usize)?;
        let header = Header::decode(&header_part).map_err(damaged("the header"))?;
        let footer = Footer::decode(&footer, &header_part).map_err(damaged("the footer"))?;
        if !header.codec.is_built() {
            return Err(StoreError::NotBuilt { path: path.to_path_buf() });
        }

        let layout = BlockLayout::new(&header.shape, header.codec);
        let index_bytes = layout.block_count() as u64 * INDEX_ENTRY_BYTES as u64;
        let fits = index_bytes <= index_end - header_bytes
            && footer.index_bytes == index_bytes
            && footer.index_offset == index_end - index_bytes;
        if !fits {
            return Err(damaged("the footer")(DecodeError::new(
                format!("an index of {index_bytes} bytes that ends at {index_end}"),
                format!("{} at {}", disk::bytes(footer.index_bytes), footer.index_offset),
            )));
        }
        let index = read(footer.index_offset, index_bytes as usize)?;
        checksum::compare(checksum::of_index(&index), footer.index_checksum).map_err(damaged("the block index"))?;
        let (first, end) = (header_bytes, footer.index_offset);
        check_index(&index, &header, &layout, first, end).map_err(damaged("the block index"))?;
        let words = match source {
            FileSource::Mapped(_) => layout.block_count().div_ceil(64),
            FileSource::Windowed(_) => 0,
        };
        let verified = (0..words).map(|_| AtomicU64::new(0)).collect();
        let (path, digest) = (path.to_path_buf(), footer.digest);
        Ok(Unverified(Scores { path, source, header, layout, index, digest, verified }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The identity in the header.
    pub fn identity(&self) -> &Identity {
        self.0.identity()
    }

    /// The shape in the header.
    pub fn shape(&self) -> &Shape {
        self.0.shape()
    }

    /// How its blocks are stored.
    pub fn codec(&self) -> Codec {
        self.0.codec()
    }

    /// The values it may hold.
    pub fn range(&self) -> ValueRange {
        self.0.range()
    }

    /// The digest of the scores in the footer.
    pub fn digest(&self) -> Digest {
        self.0.digest()
    }

    /// Accepts the file if it has the expected identity and shape.
    ///
    /// # Errors
    /// [`StoreError::Mismatch`] with both sides; [`StoreError::Archive`] for an archive.
    pub fn expect(self, identity: &Identity, shape: &Shape) -> Result<Scores> {
        if self.codec() == Codec::Floors {
            return Err(StoreError::Archive { path: self.0.path });
        }
        self.expect_any(identity, shape)
    }

    /// As [`expect`](Self::expect), for any codec.
    pub(crate) fn expect_any(self, identity: &Identity, shape: &Shape) -> Result<Scores> {
        let found = &self.0.header;
        let (expected, found) = if found.identity != *identity {
            (identity.to_string(), found.identity.to_string())
        } else if found.shape != *shape {
            (shape.to_string(), found.shape.to_string())
        } else {
            return Ok(self.0);
        };
        Err(StoreError::Mismatch { path: self.0.path, expected, found })
    }
}
