//! The allocator: glibc's malloc, tuned to return memory, and an exit with a message when memory is exhausted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI32, Ordering};

/// The system allocator. When memory is exhausted it ends the process with a message and an exit code, where the
/// standard library would raise `SIGABRT`.
pub struct Heap;

/// The exit code when memory is exhausted.
static EXIT: AtomicI32 = AtomicI32::new(1);

/// Sets the exit code of a process whose memory is exhausted.
pub fn exit_with(code: u8) {
    EXIT.store(i32::from(code), Ordering::Relaxed);
}

// SAFETY: every call is forwarded to the system allocator, and its result is returned. If the result is null,
// the process ends.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the same call.
        some(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        some(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(address, layout) }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        some(unsafe { System.realloc(address, layout, bytes) }, bytes)
    }
}

#[inline(always)]
fn some(address: *mut u8, bytes: usize) -> *mut u8 {
    if address.is_null() {
        exhausted(bytes);
    }
    address
}

/// Reports that memory is exhausted and ends the process, without allocating.
#[cold]
fn exhausted(bytes: usize) -> ! {
    let mut message = [0; 160];
    let mut end = 0;
    let mut say = |part: &[u8]| {
        message[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    };
    say(b"awari: out of memory: ");
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = bytes;
    while rest > 0 || first == digits.len() {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    say(&digits[first..]);
    say(b" bytes more cannot be had; allow more (ulimit -v), or use less (--memory, --threads)\n");
    // SAFETY: writes initialised bytes to stderr, and ends the process. Neither allocates nor takes a lock.
    unsafe {
        libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), end);
        libc::_exit(EXIT.load(Ordering::Relaxed))
    }
}

/// Makes all threads allocate from one arena. With an arena per thread, no thread reuses memory that another freed: a
/// build took 1.5 times the memory. Must be called before threads are started.
pub fn share_arena() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a parameter of the allocator. It takes no pointer.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Returns free memory to the operating system.
pub fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointer, may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    /// Whether memory is returned; other tests, at the same time, take some.
    fn is_returned() -> bool {
        let many: Vec<_> = (0..8000).map(|_| vec![1u8; 16 << 10]).collect();
        let with = clock::resident_bytes();
        // Those that stay are in the way; of the others, whole pages go.
        let kept: Vec<_> = many.into_iter().step_by(2).collect();
        release();
        assert_eq!(kept.len(), 4000);
        with.is_none_or(|with| clock::resident_bytes().unwrap() + 4000 * (8 << 10) < with)
    }

    #[test]
    fn released_memory_is_not_resident() {
        if cfg!(target_env = "gnu") {
            assert!((0..20).any(|_| is_returned()));
        }
    }
}
