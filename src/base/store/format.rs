//! The layout of a file. All numbers are little-endian. docs/formats.md lists codecs, forms and versions for readers.
//!
//! A file is header, blocks, index, footer, without gaps. No byte is outside a checksum.
//!
//! **Header**: `header_bytes` bytes, a multiple of 64.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic `89 61 77 61 72 69 0D 0A` ("awari" between bytes that text transfers spoil) |
//! | 8 | 4 | version: of a database the first one that has the forms of the codec, or pairs; of other files 6 |
//! | 12 | 4 | `header_bytes` |
//! | 16 | 1 | kind: 1 database, 2 capture database, 3 snapshot, 4 plane, 5 to 7 as 1 to 3 with pairs |
//! | 17 | 1 | orientation: 1 mover-major, 2 opponent-major |
//! | 18 | 1 | stones, at most 48 |
//! | 19 | 1 | codec: the number of a [`Codec`] |
//! | 20 | 1 | least value, signed |
//! | 21 | 1 | greatest value, signed |
//! | 22 | 1 | of a plane, what its bits say: 1 to 6, in the order of [`Role`](crate::Role); else 0 |
//! | 23 | 1 | of a plane, its bound, or 0; else 0 |
//! | 24 | 32 | rules, ASCII, filled up with NUL |
//! | 56 | 16 | position set, ASCII, filled up with NUL |
//! | 72 | 4 | number of this part, 0 |
//! | 76 | 4 | number of parts, 1 (a later version may cut an artifact into parts) |
//! | 80 | 8 | first position of this part, 0 |
//! | 88 | 8 | positions in this part: all |
//! | 96 | 4 | positions in a block, 65,536, or 0 if the codec is rans, with floors or without: see the module `layout` |
//! | 100 | 4 | slabs, 1 to 50, or twice as many with pairs |
//! | 104 | 8 each | the slabs: rows (4), columns (4) |
//! | | | zeros, up to a multiple of 64 less 8 |
//! | last 8 | 8 | checksum of the header before it |
//!
//! A file of *pairs* has two values of every position, in two *sections*: the slabs of the first values, then
//! as many of the second ones, of the same sizes.
//!
//! **Blocks**: see the module `layout` for their positions. Each has a form, see the module `codec`. In raw and packed
//! files all blocks of a slab but its last are whole multiples of eight values, so they form one stream of bits.
//!
//! **Index**: 24 bytes a block.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | offset of the block in the file |
//! | 8 | 4 | its bytes |
//! | 12 | 1 | its form: the number of a [`Form`], one of those of the codec |
//! | 13 | 3 | zero |
//! | 16 | 8 | checksum of its bytes; of strips, of the head alone |
//!
//! **Footer**: 72 bytes.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 32 | content digest, of the values, one byte each, in canonical order |
//! | 32 | 8 | offset of the index |
//! | 40 | 8 | its bytes |
//! | 48 | 8 | its checksum |
//! | 56 | 8 | checksum of the header's checksum followed by the footer up to here |
//! | 64 | 8 | magic, reversed |
//!
//! A **checksum** is the first 8 bytes of BLAKE3 keyed with `awari-store-checksum-v1`, NUL, and a number: that of the
//! block; for a strip of it 2^40 times the number of the strip, counted from 1, plus that of the block; for the header
//! 2^64 - 1, the index 2^64 - 2, the footer 2^64 - 3. So a block in the place of another is detected.
//!
//! The **content digest** is BLAKE3 of the values.
//!
//! Since version 6 files that are not databases have other hashes, since they serve against damage alone: the
//! checksum of a block in the index is XXH3 of 64 bits, seeded with its number. The values are cut into
//! pieces of 16,384, the last one shorter; the digest of a piece is BLAKE3 of the 16 bytes of its XXH3 of 128
//! bits, seed 0. That of several pieces is BLAKE3 of two digests: of the first pieces, as many as the largest
//! power of two below their number, and of the others.
//!
//! All versions are read, and a database is written in the first version that has its forms.

use crate::checksum;
use crate::codec::Form;
use crate::codec::block::admits_bytes;
use crate::codec::{BLOCK_POSITIONS, Codec};
use crate::error::{DecodeError, Result, StoreError};
use crate::hasher::HashFunction;
use crate::identity::{FileKind, FileOrientation, Identity, POSITIONS_BYTES, RULES_BYTES, is_name};
use crate::layout::{BAND_COLUMNS_MAX, BlockLayout};
use crate::little_endian::{u32_at, u64_at};
use crate::shape::{SECTION_SLABS_MAX, SLABS_MAX, STONES_MAX, Shape, SlabShape};
use crate::value_range::ValueRange;
use disk::Digest;

/// The version of files of pairs.
const PAIRS_VERSION: u32 = 5;
/// The version since which files that are not databases are hashed by XXH3.
const XXH3_VERSION: u32 = 6;
/// The latest version; all are read.
pub(crate) const VERSION: u32 = Form::latest_version(Form::EVERY, XXH3_VERSION);
const _: () = assert!(PAIRS_VERSION < XXH3_VERSION);
pub(crate) const MAGIC: [u8; 8] = *b"\x89awari\r\n";
pub(crate) const MAGIC_END: [u8; 8] = *b"\n\rirawa\x89";
pub(crate) const INDEX_ENTRY_BYTES: usize = 24;
pub(crate) const FOOTER_BYTES: usize = 72;
/// Offset of the slabs; no header is shorter.
pub(crate) const HEADER_FIXED_BYTES: usize = 104;
const SLAB_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 8;
const HEADER_ALIGNMENT: usize = 64;
pub(crate) const HEADER_BYTES_MAX: usize =
    (HEADER_FIXED_BYTES + SLABS_MAX * SLAB_BYTES + CHECKSUM_BYTES).next_multiple_of(HEADER_ALIGNMENT);

const _: () = assert!(HEADER_FIXED_BYTES == 24 + RULES_BYTES + POSITIONS_BYTES + 32);
const _: () = assert!(FOOTER_BYTES == 32 + 5 * 8);

/// The content of the header.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) identity: Identity,
    pub(crate) shape: Shape,
    pub(crate) range: ValueRange,
    pub(crate) codec: Codec,
}

/// The index entry of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) form: Form,
    pub(crate) checksum: u64,
}

/// The content of the footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) digest: Digest,
    pub(crate) index_offset: u64,
    pub(crate) index_bytes: u64,
    pub(crate) index_checksum: u64,
}

/// Bytes of the header of a file with `slabs` slabs.
pub(crate) fn header_bytes(slabs: usize) -> usize {
    (HEADER_FIXED_BYTES + slabs * SLAB_BYTES + CHECKSUM_BYTES).next_multiple_of(HEADER_ALIGNMENT)
}

/// Sets the checksum at the end of a header.
pub(crate) fn seal_header(bytes: &mut [u8]) {
    let (body, place) = bytes.split_at_mut(bytes.len() - CHECKSUM_BYTES);
    place.copy_from_slice(&checksum::of_header(body).to_le_bytes());
}

impl Header {
    /// The header of a new file.
    pub(crate) fn new(identity: Identity, shape: Shape, range: ValueRange, codec: Codec) -> Self {
        let least = match identity.kind {
            kind if !kind.is_database() => XXH3_VERSION,
            kind if kind.has_pairs() => PAIRS_VERSION,
            _ => 0,
        };
        let version = codec.version(matches!(identity.kind, FileKind::Plane { .. })).max(least);
        Header { version, identity, shape, range, codec }
    }

    /// The hash function of blocks and content.
    pub(crate) fn hash(&self) -> HashFunction {
        if self.version >= XXH3_VERSION && !self.identity.kind.is_database() {
            HashFunction::Xxh3
        } else {
            HashFunction::Blake3
        }
    }

    /// Whether the file may contain blocks of this form.
    fn admits(&self, form: Form) -> bool {
        self.codec.has_form(form) && form.version() <= self.version
    }

    /// The bytes of the header, checksum included.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        self.identity.check()?;
        if !self.codec.is_built() {
            let expected = "the feature `zstd` of this program".to_owned();
            return Err(StoreError::Unsupported { expected, found: self.codec.to_string() });
        }
        check_columns(&self.shape, self.codec)
            .map_err(|columns| StoreError::Unsupported { expected: COLUMNS.to_owned(), found: columns.to_string() })?;
        let slabs = self.shape.slabs();
        let mut bytes = Vec::with_capacity(HEADER_BYTES_MAX);
        bytes.extend(MAGIC);
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((header_bytes(slabs.len()) as u32).to_le_bytes());
        let [kind, role, bound] = self.identity.kind.tags();
        bytes.push(kind);
        bytes.push(self.identity.orientation as u8);
        bytes.push(self.identity.stones);
        bytes.push(self.codec.tag());
        bytes.push(self.range.low() as u8);
        bytes.push(self.range.high() as u8);
        bytes.extend([role, bound]);
        push_name(&mut bytes, &self.identity.rules, RULES_BYTES);
        push_name(&mut bytes, &self.identity.positions, POSITIONS_BYTES);
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes.extend(self.shape.positions().to_le_bytes());
        bytes.extend(block_positions(self.codec).to_le_bytes());
        bytes.extend((slabs.len() as u32).to_le_bytes());
        debug_assert_eq!(bytes.len(), HEADER_FIXED_BYTES);
        for slab in slabs {
            bytes.extend(slab.rows.to_le_bytes());
            bytes.extend(slab.columns.to_le_bytes());
        }
        bytes.resize(header_bytes(slabs.len()), 0);
        seal_header(&mut bytes);
        Ok(bytes)
    }

    /// Decodes a header from exactly its bytes, whose magic and version were checked.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() < header_bytes(1) {
            return Err(DecodeError::new("a whole header", bytes.len()));
        }
        let (body, found) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        checksum::compare(checksum::of_header(body), u64_at(found, 0))?;

        let version = u32_at(body, 8);
        let check = |field: &str, expected: u64, found: u64| {
            if expected == found {
                return Ok(());
            }
            Err(DecodeError::new(format!("{field} {expected}"), found))
        };
        let kind = FileKind::of_tags([body[16], body[22], body[23]]).ok_or_else(|| {
            DecodeError::new(
                "a kind from 1 to 7, with a role and a bound if 4",
                format!("{:?}", [body[16], body[22], body[23]]),
            )
        })?;
        let orientation = FileOrientation::of_tag(body[17]).ok_or(DecodeError::new("orientation 1 or 2", body[17]))?;
        let codec = Codec::of_tag(body[19])
            .ok_or_else(|| DecodeError::new(format!("a codec from 1 to {}", Codec::EVERY.len()), body[19]))?;
        let stones = body[18];
        if stones > STONES_MAX {
            return Err(DecodeError::new(format!("at most {STONES_MAX} stones"), stones));
        }
        let (low, high) = (body[20] as i8, body[21] as i8);
        if low > high {
            return Err(DecodeError::new("a range", format!("{low}..={high}")));
        }
        let rules = name_at(body, 24, RULES_BYTES)?;
        let positions = name_at(body, 56, POSITIONS_BYTES)?;
        check("part", 0, u32_at(body, 72).into())?;
        check("parts", 1, u32_at(body, 76).into())?;
        check("first position", 0, u64_at(body, 80))?;
        check("block", block_positions(codec).into(), u32_at(body, 96).into())?;
        let slab_count = u32_at(body, 100) as usize;
        let slabs_max = if kind.has_pairs() { SLABS_MAX } else { SECTION_SLABS_MAX };
        if slab_count == 0 || slab_count > slabs_max {
            return Err(DecodeError::new(format!("1 to {slabs_max} slabs"), slab_count));
        }
        check("header bytes", header_bytes(slab_count) as u64, bytes.len() as u64)?;
        let (slabs, padding) = body[HEADER_FIXED_BYTES..].split_at(slab_count * SLAB_BYTES);
        check("padding", 0, padding.iter().copied().map(u64::from).sum())?;
        let slabs = slabs
            .chunks_exact(SLAB_BYTES)
            .map(|slab| SlabShape { rows: u32_at(slab, 0), columns: u32_at(slab, 4) })
            .collect();
        let shape = Shape::new(slabs).map_err(|error| match error {
            StoreError::Unsupported { expected, found } => DecodeError { expected, found },
            other => DecodeError::new("a shape", other),
        })?;
        let sections = shape.slabs().split_at(slab_count / 2);
        if kind.has_pairs() && (version < PAIRS_VERSION || sections.0 != sections.1) {
            let expected = format!("two sections of the same slabs, in version {PAIRS_VERSION} or later");
            return Err(DecodeError::new(expected, format!("{shape} in version {version}")));
        }
        check("positions", shape.positions(), u64_at(body, 88))?;
        check_columns(&shape, codec).map_err(|columns| DecodeError::new(COLUMNS, columns))?;
        Ok(Header {
            version,
            identity: Identity { kind, rules, positions, stones, orientation },
            shape,
            range: ValueRange::new(low, high),
            codec,
        })
    }
}

/// The field of the header for the positions in a block.
fn block_positions(codec: Codec) -> u32 {
    if codec.has_bands() { 0 } else { BLOCK_POSITIONS as u32 }
}

const COLUMNS: &str = "at most 4194304 columns in a file of the codec rans";
const _: () = assert!(BAND_COLUMNS_MAX == 4_194_304);

fn check_columns(shape: &Shape, codec: Codec) -> Result<(), u32> {
    let most = shape.slabs().iter().map(|slab| slab.columns).max().unwrap_or(0);
    if codec.has_bands() && most > BAND_COLUMNS_MAX { Err(most) } else { Ok(()) }
}

impl IndexEntry {
    pub(crate) fn encode(&self) -> [u8; INDEX_ENTRY_BYTES] {
        let mut bytes = [0; INDEX_ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12] = self.form.tag();
        bytes[16..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// Decodes the entry of a block of an index that [`check_index`] accepted.
    #[inline]
    pub(crate) fn of_block(index: &[u8], block: usize) -> Self {
        let at = block * INDEX_ENTRY_BYTES;
        Self::decode(&index[at..at + INDEX_ENTRY_BYTES]).expect("the index was checked when opened")
    }

    #[inline]
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        Some(IndexEntry {
            offset: u64_at(bytes, 0),
            bytes: u32_at(bytes, 8),
            form: Form::of_tag(bytes[12])?,
            checksum: u64_at(bytes, 16),
        })
    }
}

/// Checks that the blocks of an index fill the file from `first_offset` to `end_offset` and have sizes and forms that
/// are allowed.
pub(crate) fn check_index(
    index: &[u8],
    header: &Header,
    layout: &BlockLayout,
    first_offset: u64,
    end_offset: u64,
) -> Result<(), DecodeError> {
    let mut offset = first_offset;
    for (block, bytes) in index.chunks_exact(INDEX_ENTRY_BYTES).enumerate() {
        let refuse =
            |expected: String, found: String| Err(DecodeError::new(format!("block {block} with {expected}"), found));
        let reserved = &bytes[13..16];
        let entry = match IndexEntry::decode(bytes) {
            Some(entry) if header.admits(entry.form) && reserved == [0; 3] => entry,
            _ => {
                return refuse(
                    format!("a form of codec {}, version {}", header.codec, header.version),
                    format!("{:?}", &bytes[12..16]),
                );
            }
        };
        if entry.offset != offset {
            return refuse(format!("offset {offset}"), entry.offset.to_string());
        }
        let stored = u64::from(entry.bytes);
        let values = layout.len_of(block);
        if !admits_bytes(entry.form, stored, values, || layout.band_of(block), header.range) {
            let expected = format!("the size of {values} values ({:?})", entry.form);
            return refuse(expected, format!("{stored} bytes"));
        }
        offset += stored;
    }
    if offset != end_offset {
        return Err(DecodeError::new(format!("blocks up to {end_offset}"), offset));
    }
    Ok(())
}

impl Footer {
    /// The footer of a file whose index is at `index_offset`.
    pub(crate) fn of(digest: Digest, index_offset: u64, index: &[u8]) -> Self {
        let (index_bytes, index_checksum) = (index.len() as u64, checksum::of_index(index));
        Footer { digest, index_offset, index_bytes, index_checksum }
    }

    /// Encodes the footer; `header` are the bytes of the header.
    pub(crate) fn encode(&self, header: &[u8]) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        bytes[..32].copy_from_slice(&self.digest.0);
        bytes[32..40].copy_from_slice(&self.index_offset.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.index_bytes.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.index_checksum.to_le_bytes());
        let checksum = footer_checksum(header, &bytes);
        bytes[56..64].copy_from_slice(&checksum.to_le_bytes());
        bytes[64..].copy_from_slice(&MAGIC_END);
        bytes
    }

    /// Decodes a footer, whose magic and header were checked.
    pub(crate) fn decode(bytes: &[u8], header: &[u8]) -> Result<Self, DecodeError> {
        checksum::compare(footer_checksum(header, bytes), u64_at(bytes, 56))?;
        let mut digest = [0; 32];
        digest.copy_from_slice(&bytes[..32]);
        Ok(Footer {
            digest: Digest(digest),
            index_offset: u64_at(bytes, 32),
            index_bytes: u64_at(bytes, 40),
            index_checksum: u64_at(bytes, 48),
        })
    }
}

fn footer_checksum(header: &[u8], footer: &[u8]) -> u64 {
    let mut covered = [0; CHECKSUM_BYTES + 56];
    covered[..CHECKSUM_BYTES].copy_from_slice(&header[header.len() - CHECKSUM_BYTES..]);
    covered[CHECKSUM_BYTES..].copy_from_slice(&footer[..56]);
    checksum::of_footer(&covered)
}

fn push_name(bytes: &mut Vec<u8>, name: &str, field_bytes: usize) {
    bytes.extend(name.as_bytes());
    bytes.resize(bytes.len() + field_bytes - name.len(), 0);
}

fn name_at(bytes: &[u8], at: usize, field_bytes: usize) -> Result<String, DecodeError> {
    let field = &bytes[at..at + field_bytes];
    let end = field.iter().position(|&c| c == 0).unwrap_or(field_bytes);
    let (name, padding) = field.split_at(end);
    let padded = padding.iter().all(|&c| c == 0);
    match str::from_utf8(name) {
        Ok(text) if padded && is_name(name, field_bytes) => Ok(text.to_owned()),
        _ => Err(DecodeError::new("a name", field.escape_ascii())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The guide lists what the code writes.
    #[test]
    fn the_guide_lists_every_codec_form_and_version() {
        let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/formats.md")).unwrap();
        let guide = guide.replace('`', "");
        let row = |start: &str| {
            guide.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("there is no row {start}"))
        };
        assert!(row("| 8 | 4 | version").contains(&format!("version, 1 to {VERSION} |")));
        let forms = Form::EVERY;
        for form in forms {
            let listed = format!("{} ", form.tag());
            assert!(row("| 12 | 1 |").contains(&listed), "the form {form:?} is not listed");
        }
        let next = format!("{} ", forms.len() + 1);
        assert!(!row("| 12 | 1 |").contains(&next), "the guide has a form that the code lacks");
        for codec in Codec::EVERY {
            let listed = format!("{} {codec}", codec.tag());
            assert!(row("| 19 | 1 | codec").contains(&listed), "the codec {listed} is not listed");
            let row = row(&format!("| {codec} | "));
            let version = forms.iter().filter(|&&form| codec.has_form(form)).map(|form| form.version()).max().unwrap();
            assert!(
                row.split('|').nth(3).unwrap().contains(&version.to_string()),
                "version {version} of {codec}: {row}"
            );
        }
        let history = guide.split("## Version history").nth(1).unwrap();
        for version in 1..=VERSION {
            assert!(history.contains(&format!("| {version} | ")), "version {version} has no row in the history");
        }
    }
}
