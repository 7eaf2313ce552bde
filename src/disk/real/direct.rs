//! Files without the page cache (`O_DIRECT`): whether a file can do it, and in blocks of how many bytes.
//!
//! Streams of gigabytes gain nothing from the page cache: it copies every byte once more, pushes out what others need,
//! and counts against the memory limit of a container.

use std::fs::File;
use std::io;

use rustix::fs::{AtFlags, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, statx};

/// The block where the kernel does not tell. No drive has larger sectors that it shows to programs.
const BLOCK_BYTES: usize = 4096;

/// The largest block that we go along with; a larger one would waste most of what is read for small requests.
pub(crate) const BLOCK_BYTES_MAX: usize = 64 << 10;

/// Takes a file off the page cache. Returns the bytes of a block, to which offsets and lengths must then be aligned;
/// memory always is, to pages. `None` if the file system cannot do it: the file is then as before.
pub(crate) fn turn_on(file: &File) -> Option<usize> {
    let block = block_bytes(file)?;
    let flags = fcntl_getfl(file).ok()?;
    fcntl_setfl(file, flags | OFlags::DIRECT).ok()?;
    Some(block)
}

/// Puts a file back on the page cache. What was written without it is seen through it.
pub(crate) fn turn_off(file: &File) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    Ok(fcntl_setfl(file, flags - OFlags::DIRECT)?)
}

fn block_bytes(file: &File) -> Option<usize> {
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let told = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let told = told.filter(|found| found.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    let Some(found) = told else { return Some(BLOCK_BYTES) };
    // Zero says that this file cannot.
    let offsets = found.stx_dio_offset_align as usize;
    let memory = found.stx_dio_mem_align as usize;
    let sound = offsets.is_power_of_two() && offsets <= BLOCK_BYTES_MAX && memory <= rustix::param::page_size();
    sound.then(|| offsets.max(BLOCK_BYTES))
}
