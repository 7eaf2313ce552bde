//! The bytes of a book as of one moment, read into memory.
//!
//! A reader of SQLite may write: it recovers logs, makes files for locks, and waits for writers. So SQLite
//! never opens the file of a reader. The file and its log (`-wal`) are read as bytes, and the committed pages
//! of the log are put in their places. SQLite reads the result, which nothing can change meanwhile, also on a
//! medium that cannot be written.
//!
//! A writer goes on while they are read. It copies pages of its log into the file (a checkpoint), each of
//! which is in the log before, and begins the log again only after all of them were copied. So a log that was
//! the same one before the file was read and after the log was read has every page that changed meanwhile.
//!
//! Format of the log: <https://sqlite.org/fileformat2.html#the_write_ahead_log>, all numbers with the most
//! significant byte first. The header has 32 bytes: magic, version, page size, sequence number, two salts,
//! checksum. A frame has a header of 24 bytes (page number; pages of the file after a commit, or 0; salts;
//! checksum of everything before) and a page. Frames count up to the last commit before the first invalid
//! one, as for SQLite.

use super::error::BookError;
use disk::{Disk, DiskError, InputFile};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The largest file: some 15 million positions, which take more memory than that when they are derived.
pub(super) const BOOK_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a page, which is the default of SQLite.
pub(super) const PAGE_BYTES: usize = 4096;

const LOG_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// The last bit says whether checksums are of words with the most significant byte first.
const LOG_MAGIC: u32 = 0x377F_0682;

const LOG_VERSION: u32 = 3_007_000;

/// The most tables and indices of a book of any version are 9. More entries would need a second page of the schema.
const SCHEMA_ENTRIES_MAX: u16 = 16;

/// Attempts while a writer begins its log again and again.
const TRIES: usize = 100;

/// Reads a book.
///
/// # Errors
/// [`BookError::Missing`], [`BookError::NotABook`], [`BookError::Busy`], or what the disk reports: a file
/// that is a link is refused.
pub(super) fn read(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, BookError> {
    let refused = |what: String| BookError::NotABook { path: path.to_path_buf(), what };
    let log_path = beside(path, "-wal");
    for _ in 0..TRIES {
        let before = log_header(disk, &log_path)?;
        let Some(main) = open(disk, path)? else { return Err(BookError::Missing(path.to_path_buf())) };
        check_start(&*main).map_err(|error| error.map_or_else(BookError::Disk, refused))?;
        let mut image = whole(&*main, path, BOOK_BYTES_MAX)?;
        let log = match open(disk, &log_path)? {
            Some(log) => whole(&*log, &log_path, 2 * BOOK_BYTES_MAX)?,
            None => Vec::new(),
        };
        let is_same = header_of(&log) == before
            && log_header(disk, &log_path)? == before
            && (before.is_some() || is_unchanged(disk, path, &image)?);
        if !is_same {
            continue;
        }
        if open(disk, &beside(path, "-journal"))?.is_some_and(|journal| journal.bytes() > 0) {
            return Err(refused("beside it is the journal of another program, which changed the file".to_owned()));
        }
        apply_log(&mut image, &log).and_then(|()| check_header(&mut image)).map_err(refused)?;
        return Ok(image);
    }
    Err(BookError::Busy(path.to_path_buf()))
}

/// Returns the path of a file that belongs to a database.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Opens a file that belongs to a database, if there is one.
pub(super) fn open(disk: &dyn Disk, path: &Path) -> Result<Option<Box<dyn InputFile>>, DiskError> {
    match disk.open_unfollowed(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn whole(file: &dyn InputFile, path: &Path, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
    let bytes = file.bytes();
    if bytes > bytes_max {
        return Err(DiskError::TooLarge { path: path.to_path_buf(), bytes, bytes_max });
    }
    let mut read = vec![0; bytes as usize];
    file.read_at(0, &mut read)?;
    Ok(read)
}

/// Returns the header of a log; `None` if there is none.
fn log_header(disk: &dyn Disk, path: &Path) -> Result<Option<[u8; LOG_HEADER_BYTES]>, DiskError> {
    let mut header = [0; LOG_HEADER_BYTES];
    match open(disk, path)? {
        Some(log) if log.bytes() >= header.len() as u64 => log.read_at(0, &mut header).map(|()| Some(header)),
        _ => Ok(None),
    }
}

fn header_of(log: &[u8]) -> Option<[u8; LOG_HEADER_BYTES]> {
    log.first_chunk().copied()
}

/// Whether a file still has the bytes that were read.
fn is_unchanged(disk: &dyn Disk, path: &Path, read: &[u8]) -> Result<bool, DiskError> {
    let Some(file) = open(disk, path)?.filter(|file| file.bytes() == read.len() as u64) else { return Ok(false) };
    let mut again = vec![0; read.len().min(1 << 20)];
    let mut offset = 0;
    for piece in read.chunks(again.len().max(1)) {
        let again = &mut again[..piece.len()];
        file.read_at(offset, again)?;
        if again != piece {
            return Ok(false);
        }
        offset += piece.len() as u64;
    }
    Ok(true)
}

/// Refuses a file by its first bytes, before all of it is read.
fn check_start(file: &dyn InputFile) -> Result<(), Result<String, DiskError>> {
    if file.bytes() == 0 {
        return Err(Ok("it is empty".to_owned()));
    }
    let mut start = [0; 16];
    if file.bytes() < PAGE_BYTES as u64 {
        return Err(Ok(format!("it has {}", disk::bytes(file.bytes()))));
    }
    file.read_at(0, &mut start).map_err(Err)?;
    if &start == b"SQLite format 3\0" { Ok(()) } else { Err(Ok("it is no database of SQLite".to_owned())) }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.first_chunk().copied());
    u32::from_be_bytes(word.unwrap_or_default())
}

/// The running checksum of a log.
struct LogChecksum {
    sums: [u32; 2],
    is_big_endian: bool,
}

impl LogChecksum {
    fn add(&mut self, bytes: &[u8]) {
        let number =
            |bytes: [u8; 4]| if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
        let [mut first, mut other] = self.sums;
        for &[a, b, c, d, e, f, g, h] in bytes.as_chunks().0 {
            first = first.wrapping_add(number([a, b, c, d])).wrapping_add(other);
            other = other.wrapping_add(number([e, f, g, h])).wrapping_add(first);
        }
        self.sums = [first, other];
    }

    fn is(&self, bytes: &[u8], at: usize) -> bool {
        self.sums == [word(bytes, at), word(bytes, at + 4)]
    }
}

/// Puts the committed pages of a log into the file.
fn apply_log(image: &mut Vec<u8>, log: &[u8]) -> Result<(), String> {
    let (header, frames) = log.split_at(LOG_HEADER_BYTES.min(log.len()));
    let magic = word(header, 0);
    let mut sum = LogChecksum { sums: [0, 0], is_big_endian: magic & 1 == 1 };
    sum.add(header.get(..24).unwrap_or_default());
    let is_valid = magic & !1 == LOG_MAGIC
        && word(header, 4) == LOG_VERSION
        && word(header, 8) == PAGE_BYTES as u32
        && sum.is(header, 24);
    let (mut pending, mut committed) = (Vec::new(), HashMap::new());
    let mut pages = None;
    for (number, frame) in frames.chunks_exact(FRAME_HEADER_BYTES + PAGE_BYTES).enumerate() {
        let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
        sum.add(&head[..8]);
        sum.add(page);
        if !is_valid || head[8..16] != header[16..24] || !sum.is(head, 16) || word(head, 0) == 0 {
            break;
        }
        pending.push((word(head, 0), number));
        if word(head, 4) > 0 {
            committed.extend(pending.drain(..));
            pages = Some(word(head, 4));
        }
    }
    let Some(pages) = pages else { return Ok(()) };
    let (had, bytes) = (image.len() / PAGE_BYTES, u64::from(pages) * PAGE_BYTES as u64);
    let lacks = |page: u32| page as usize > had && !committed.contains_key(&page);
    // A log has a frame for each page beyond the end of the file, so this bounds the allocation.
    if bytes > BOOK_BYTES_MAX || pages as usize > had + committed.len() || (had as u32 + 1..=pages).any(lacks) {
        return Err(format!("its log is of {pages} pages, which are neither in the log nor in the file"));
    }
    image.resize(bytes as usize, 0);
    for (page, number) in committed {
        let from = number * (FRAME_HEADER_BYTES + PAGE_BYTES) + FRAME_HEADER_BYTES;
        let at = (page as usize - 1) * PAGE_BYTES;
        // Pages beyond the end were dropped by the last commit.
        if let Some(place) = image.get_mut(at..at + PAGE_BYTES) {
            place.copy_from_slice(&frames[from..from + PAGE_BYTES]);
        }
    }
    Ok(())
}

/// Checks the header of a database, and makes it one without a log. Books have page size, encoding and format
/// of all that SQLite makes by default. A schema within the first page takes no time to read.
fn check_header(image: &mut [u8]) -> Result<(), String> {
    let page_bytes = u32::from(image[16]) << 8 | u32::from(image[17]);
    let fixed = [image[20], image[21], image[22], image[23]];
    let (format, encoding, vacuum) = (word(image, 44), word(image, 56), word(image, 52));
    if (page_bytes, fixed, format, encoding, vacuum) != (PAGE_BYTES as u32, [0, 64, 32, 32], 4, 1, 0) {
        return Err("its header is not that of a book".to_owned());
    }
    let pages = word(image, 28);
    if u64::from(pages) * PAGE_BYTES as u64 != image.len() as u64 {
        return Err(format!("it has {}, expected {pages} pages of {PAGE_BYTES}", disk::bytes(image.len() as u64)));
    }
    let entries = u16::from_be_bytes([image[103], image[104]]);
    if image[100] != 0x0D || entries > SCHEMA_ENTRIES_MAX {
        return Err("its schema is not that of a book".to_owned());
    }
    (image[18], image[19]) = (1, 1);
    Ok(())
}
