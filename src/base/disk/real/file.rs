//! Real files, read or read and written at any offset.
//!
//! Files bypass the page cache where the file system allows it. A read then takes whole blocks, those at its ends
//! included, and a write that begins or ends within a block reads that block first. Two threads may write neighbouring
//! ranges that share a block: each changes it under a lock.

use super::file_system::{free_bytes, is_unsupported};
use super::pool::Pool;
use super::queue::Queue;
use super::request::{BlockRequest, Direction};
use super::{SECTOR_BYTES, direct};
use crate::ahead::PendingRead;
use crate::disk::{InputFile, ScratchFile};
use crate::error::{DiskError, Operation};
use crate::folder::parent;
use crate::io::Io;
use rustix::fs::{Advice, FallocateFlags};
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A file open for reads, or reads and writes, at any offset.
pub(crate) struct RealFile {
    file: Arc<File>,
    path: PathBuf,
    bytes: u64,
    pool: Arc<Pool>,
    /// Bytes of a block, if the file was opened for direct access.
    block: Option<usize>,
    /// Whether the file system has refused direct access since.
    cached: AtomicBool,
    /// Held while a block that is written in part is read, changed and written.
    edges: Mutex<()>,
    /// The space of a scratch file, from when it is allocated.
    _scratch_space: Option<ScratchSpace>,
}

/// The space that a scratch file takes, counted in the pool until it is dropped.
struct ScratchSpace {
    pool: Arc<Pool>,
    device: u64,
    bytes: u64,
}

impl Drop for ScratchSpace {
    fn drop(&mut self) {
        self.pool.count_scratch(self.device, |bytes| bytes.saturating_sub(self.bytes));
    }
}

impl RealFile {
    /// Opens a file for reads.
    pub(crate) fn input(file: File, path: &Path, bytes: u64, pool: Arc<Pool>) -> RealFile {
        let block = direct::turn_on(&file);
        RealFile::new(file, path, bytes, pool, block)
    }

    /// Opens a file for short reads whose neighbours are read later.
    pub(crate) fn scattered(file: File, path: &Path, bytes: u64, pool: Arc<Pool>) -> RealFile {
        match pool.io {
            Io::Auto => RealFile::new(file, path, bytes, pool, None),
            Io::Uring | Io::Plain => RealFile::input(file, path, bytes, pool),
        }
    }

    /// Opens an empty file for reads and writes. It becomes `bytes` zeros.
    pub(crate) fn scratch(file: File, path: &Path, bytes: u64, pool: Arc<Pool>) -> io::Result<RealFile> {
        let block = match pool.io {
            // Scratch data is read repeatedly and may stay in free memory.
            Io::Auto => None,
            Io::Uring | Io::Plain => direct::turn_on(&file),
        };
        let mut scratch = RealFile::sized(file, path, bytes, pool, block)?;
        scratch._scratch_space = Some(scratch.count_space()?);
        Ok(scratch)
    }

    /// Counts the allocated space of a new scratch file.
    fn count_space(&self) -> io::Result<ScratchSpace> {
        let metadata = self.file.metadata()?;
        let (pool, device, bytes) = (self.pool.clone(), metadata.dev(), metadata.blocks() * SECTOR_BYTES);
        pool.count_scratch(device, |counted| counted.saturating_add(bytes));
        Ok(ScratchSpace { pool, device, bytes })
    }

    /// Opens a file for reads and writes without the page cache, for which its users have no memory. Its content is
    /// kept, cut or extended by zeros.
    pub(crate) fn working(file: File, path: &Path, bytes: u64, pool: Arc<Pool>) -> io::Result<RealFile> {
        let block = direct::turn_on(&file);
        let file = RealFile::sized(file, path, bytes, pool, block)?;
        file.file.sync_all()?;
        Ok(file)
    }

    fn sized(file: File, path: &Path, bytes: u64, pool: Arc<Pool>, block: Option<usize>) -> io::Result<RealFile> {
        // Whole blocks, so that the last one is written like all others.
        let length = block.map_or(bytes, |block| bytes.next_multiple_of(block as u64));
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, length.max(1)) {
            // With allocated blocks several threads write concurrently, and a full disk is noticed now.
            Ok(()) => {}
            Err(errno) if is_unsupported(errno) => {}
            Err(errno) => return Err(errno.into()),
        }
        file.set_len(length)?;
        Ok(RealFile::new(file, path, bytes, pool, block))
    }

    fn new(file: File, path: &Path, bytes: u64, pool: Arc<Pool>, block: Option<usize>) -> RealFile {
        let path = path.to_path_buf();
        let (file, cached, edges) = (Arc::new(file), false.into(), Mutex::new(()));
        RealFile { file, path, bytes, pool, block, cached, edges, _scratch_space: None }
    }

    /// Bytes of a block, if direct access is on.
    fn block(&self) -> Option<usize> {
        self.block.filter(|_| !self.cached.load(Ordering::Relaxed))
    }

    /// Whether the file system refuses direct access: some accept it when asked, and refuse the requests. The file then
    /// uses the page cache.
    fn is_refused(&self, result: &io::Result<()>) -> bool {
        if result.as_ref().is_err_and(direct::is_refusal) && direct::turn_off(&self.file).is_ok() {
            self.cached.store(true, Ordering::Relaxed);
            return true;
        }
        false
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if let Some(block) = self.block() {
            let read = self.read_blocks(offset, into, block);
            if !self.is_refused(&read) {
                return read;
            }
        }
        self.file.read_exact_at(into, offset)?;
        self.pool.meter.add_read(into.len() as u64);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(block) = self.block() {
            let written = self.write_blocks(offset, bytes, block);
            if !self.is_refused(&written) {
                return written;
            }
        }
        self.file.write_all_at(bytes, offset)?;
        self.pool.meter.add_written(bytes.len() as u64);
        Ok(())
    }

    fn request(&self, direction: Direction, offset: u64, bytes: usize, needed: usize, block: usize) -> BlockRequest {
        BlockRequest { file: self.file.clone(), direction, offset, bytes, needed, block, done: 0 }
    }

    /// Reads whole blocks and copies the requested bytes, with many requests in flight.
    fn read_blocks(&self, offset: u64, into: &mut [u8], block: usize) -> io::Result<()> {
        let end = offset + into.len() as u64;
        let mut next = offset / block as u64 * block as u64;
        let mut queue = self.pool.share()?;
        loop {
            while next < end
                && let Some(piece) = queue.idle()
            {
                let left = (end - next).next_multiple_of(block as u64);
                let bytes = left.min(queue.piece_bytes() as u64);
                let needed = bytes.min(end - next);
                queue.start(piece, self.request(Direction::Read, next, bytes as usize, needed as usize, block));
                next += bytes;
            }
            queue.submit()?;
            let Some((piece, request, result)) = queue.finish()? else { return Ok(()) };
            result?;
            self.pool.meter.add_read(request.done as u64);
            let from = request.offset.max(offset);
            let until = (request.offset + request.needed as u64).min(end);
            let found = &queue.bytes_mut(piece)[(from - request.offset) as usize..(until - request.offset) as usize];
            into[(from - offset) as usize..(until - offset) as usize].copy_from_slice(found);
        }
    }

    /// Writes whole blocks directly, and merges the blocks at the ends with their content.
    fn write_blocks(&self, offset: u64, bytes: &[u8], block: usize) -> io::Result<()> {
        let size = block as u64;
        let end = offset + bytes.len() as u64;
        let first = offset.next_multiple_of(size).min(end);
        let last = (end / size * size).max(first);
        if offset < first {
            self.write_edge(offset, &bytes[..(first - offset) as usize], block)?;
        }
        if last < end {
            self.write_edge(last, &bytes[(last - offset) as usize..], block)?;
        }
        let whole = &bytes[(first - offset) as usize..(last - offset) as usize];
        if whole.is_empty() {
            return Ok(());
        }
        let mut queue = self.pool.share()?;
        let mut next = 0;
        loop {
            while next < whole.len()
                && let Some(piece) = queue.idle()
            {
                let part = &whole[next..whole.len().min(next + queue.piece_bytes())];
                queue.bytes_mut(piece)[..part.len()].copy_from_slice(part);
                let (at, length) = (first + next as u64, part.len());
                queue.start(piece, self.request(Direction::Write, at, length, length, block));
                queue.submit()?;
                next += length;
            }
            match queue.finish()? {
                None => return Ok(()),
                Some((_, request, result)) => {
                    result?;
                    self.pool.meter.add_written(request.done as u64);
                }
            }
        }
    }

    /// Writes within one block.
    fn write_edge(&self, offset: u64, bytes: &[u8], block: usize) -> io::Result<()> {
        let _edge = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        let mut queue = self.pool.share()?;
        let start = offset / block as u64 * block as u64;
        let request = |direction| self.request(direction, start, block, block, block);
        let piece = carry_out(&mut queue, request(Direction::Read))?;
        self.pool.meter.add_read(block as u64);
        let at = (offset - start) as usize;
        queue.bytes_mut(piece)[at..at + bytes.len()].copy_from_slice(bytes);
        queue.start(piece, request(Direction::Write));
        let done = queue.finish()?;
        let (.., result) = done.expect("the request was started");
        result?;
        self.pool.meter.add_written(block as u64);
        Ok(())
    }
}

/// Carries out a request and returns the piece that has its bytes.
fn carry_out(queue: &mut Queue, request: BlockRequest) -> io::Result<usize> {
    let piece = queue.idle().expect("a queue lent has nothing in flight");
    queue.start(piece, request);
    let (piece, _, result) = queue.finish()?.expect("the request was started");
    result.map(|()| piece)
}

impl InputFile for RealFile {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        let failed = |source| DiskError::from_io(Operation::Read, &self.path, source);
        let length = into.len() as u64;
        if offset.checked_add(length).is_none_or(|end| end > self.bytes) {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        self.read(offset, into).map_err(failed)
    }
}

/// A file open for reads, which reads of it that were started share.
pub(crate) struct SharedFile(Arc<RealFile>);

impl SharedFile {
    pub(crate) fn new(file: RealFile) -> SharedFile {
        SharedFile(Arc::new(file))
    }
}

impl InputFile for SharedFile {
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        self.0.read_at(offset, into)
    }

    fn start_read(&self, offset: u64, bytes: usize) -> PendingRead {
        let file = self.0.clone();
        match self.0.block() {
            Some(_) => self.0.pool.start_read(file, offset, bytes),
            None => {
                // The system reads ahead into the page cache; a copy of it from another thread would cost more than it
                // saves. Advice may be ignored.
                let _ = rustix::fs::fadvise(&*self.0.file, offset, NonZeroU64::new(bytes as u64), Advice::WillNeed);
                PendingRead::deferred(bytes, Box::new(move |into| file.read_at(offset, into)))
            }
        }
    }
}

impl ScratchFile for RealFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let length = bytes.len() as u64;
        let end = offset.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.bytes), "a scratch file does not grow");
        self.write(offset, bytes).map_err(|source| {
            let error = DiskError::from_io(Operation::Write, &self.path, source);
            error.with_shortage(length, free_bytes(parent(&self.path)).ok())
        })
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync_all().map_err(|source| DiskError::from_io(Operation::Sync, &self.path, source))
    }
}
