//! Access without the page cache (`O_DIRECT`): whether a file supports it, and with which block size.
//!
//! Streams of gigabytes gain nothing from the page cache: it copies every byte, evicts other data, and counts against
//! the memory limit of a container.

use rustix::fs::{AtFlags, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, statx};
use std::fs::File;
use std::io;

/// The block size where the kernel does not report it. No drive exposes larger sectors.
const BLOCK_BYTES: usize = 4096;

/// The largest supported block; a larger one would waste most of the bytes of small requests.
pub(crate) const BLOCK_BYTES_MAX: usize = 64 << 10;

/// Turns direct access on. Returns the bytes of a block, to which offsets and lengths must then be aligned; memory is
/// always aligned to pages. Returns `None`, and leaves the file as it is, if the file system does not support it.
pub(crate) fn turn_on(file: &File) -> Option<usize> {
    let block = block_bytes(file)?;
    let flags = fcntl_getfl(file).ok()?;
    fcntl_setfl(file, flags | OFlags::DIRECT).ok()?;
    Some(block)
}

/// Turns direct access off. The page cache sees what was written without it.
pub(crate) fn turn_off(file: &File) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    Ok(fcntl_setfl(file, flags - OFlags::DIRECT)?)
}

/// Whether an error of a request means that direct access is not supported after all. If the cause is another, the same
/// request through the page cache fails as well.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EPERM))
}

fn block_bytes(file: &File) -> Option<usize> {
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let stat = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let stat = stat.filter(|found| found.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    let Some(found) = stat else { return Some(BLOCK_BYTES) };
    // Zero means that the file does not support it.
    let offsets = found.stx_dio_offset_align as usize;
    let memory = found.stx_dio_mem_align as usize;
    let sound = offsets.is_power_of_two() && offsets <= BLOCK_BYTES_MAX && memory <= rustix::param::page_size();
    sound.then(|| offsets.max(BLOCK_BYTES))
}
