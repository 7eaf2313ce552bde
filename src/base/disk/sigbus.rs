//! `SIGBUS` handling: pages of mapped files that the kernel cannot provide.
//!
//! Accessing a page of a map beyond the end of a truncated file, or on unreadable sectors, raises `SIGBUS`. The
//! handler of this module replaces the page by zeros and raises a flag of the map. The access then reads zeros; a
//! reader checks the flag after each use of the map ([`MapWatch::is_whole`]) and discards what it read. A `SIGBUS`
//! outside of watched maps is passed to the previous handler.
//!
//! The handler takes no lock and allocates nothing: watched maps are in a list of slots that are reused and never
//! freed.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};

/// Watches a map. Must be dropped before the map.
pub(crate) struct MapWatch {
    slot: &'static WatchSlot,
}

/// A map in the list.
struct WatchSlot {
    /// The address of its first byte; 0 while the slot is free.
    start: AtomicUsize,
    /// The address behind its last page.
    end: AtomicUsize,
    is_taken: AtomicBool,
    is_lost: AtomicBool,
    next: *const WatchSlot,
}

// SAFETY: `next` is written before the slot is shared and points to another slot, none of which is ever freed; all else
// is atomic.
unsafe impl Sync for WatchSlot {}
// SAFETY: as for `Sync`.
unsafe impl Send for WatchSlot {}

/// The list, the latest slot first.
static SLOTS: AtomicPtr<WatchSlot> = AtomicPtr::new(ptr::null_mut());

/// Bytes of a page, once the handler is installed.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The previous action of `SIGBUS`, or the error code of the failed installation.
static INSTALLED: OnceLock<Result<Previous, i32>> = OnceLock::new();

struct Previous(libc::sigaction);

impl MapWatch {
    /// Watches a map of `bytes` bytes.
    pub(crate) fn over(start: *const u8, bytes: usize) -> io::Result<MapWatch> {
        INSTALLED.get_or_init(install).as_ref().map_err(|&code| io::Error::from_raw_os_error(code))?;
        let slot = slots().find(|slot| !slot.is_taken.swap(true, Ordering::AcqRel)).unwrap_or_else(add_slot);
        slot.is_lost.store(false, Ordering::Relaxed);
        let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
        slot.end.store(start.addr() + bytes.next_multiple_of(page_bytes), Ordering::Relaxed);
        slot.start.store(start.addr(), Ordering::Release);
        Ok(MapWatch { slot })
    }

    /// Whether every byte that was read from the map so far is one of the file.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        // The flag is raised before the page is replaced: a reader that has read the zeros and passed this fence sees
        // it.
        fence(Ordering::Acquire);
        !self.slot.is_lost.load(Ordering::Relaxed)
    }
}

impl Drop for MapWatch {
    fn drop(&mut self) {
        self.slot.start.store(0, Ordering::Relaxed);
        self.slot.is_taken.store(false, Ordering::Release);
    }
}

fn slots() -> impl Iterator<Item = &'static WatchSlot> {
    let mut next = SLOTS.load(Ordering::Acquire).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: null, or a slot: these are leaked in `add_slot`, so they live for ever.
        let slot = unsafe { next.as_ref() }?;
        next = slot.next;
        Some(slot)
    })
}

fn add_slot() -> &'static WatchSlot {
    let slot = Box::leak(Box::new(WatchSlot {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        is_taken: AtomicBool::new(true),
        is_lost: AtomicBool::new(false),
        next: ptr::null(),
    }));
    let mut first = SLOTS.load(Ordering::Acquire);
    loop {
        slot.next = first;
        match SLOTS.compare_exchange_weak(first, slot, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return slot,
            Err(found) => first = found,
        }
    }
}

/// Unblocks signals that the parent process has blocked: a blocked `SIGBUS` would end the process before any handler
/// runs. Must be called before threads are started, which inherit the mask.
pub fn unblock(signals: &[i32]) {
    // SAFETY: the set is initialised by `sigemptyset`; nothing else is read or written.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        signals.iter().for_each(|&signal| {
            libc::sigaddset(&mut set, signal);
        });
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
    }
}

fn install() -> Result<Previous, i32> {
    let code = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    PAGE_BYTES.store(rustix::param::page_size(), Ordering::Relaxed);
    let mut previous = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: `ours` is a valid action: its handler has the signature that `SA_SIGINFO` asks for and does nothing that
    // a handler must not do. `previous` is written by the call, and read only if the call succeeds.
    unsafe {
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = on_fault as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut ours.sa_mask);
        match libc::sigaction(libc::SIGBUS, &ours, previous.as_mut_ptr()) {
            0 => Ok(Previous(previous.assume_init())),
            _ => Err(code()),
        }
    }
}

/// Handles `SIGBUS`.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `info`. Its address is read only where the kernel raised the signal (a positive
    // code), for then there is one. The page that is replaced belongs to a map that is watched, hence alive.
    let is_handled = unsafe { (*info).si_code > 0 && replace_page((*info).si_addr().addr()) };
    if !is_handled {
        pass_on(signal, info, context);
    }
}

/// Puts a page of zeros at an address of a watched map, and raises the flag of the map.
///
/// # Safety
/// A thread has faulted at the address.
unsafe fn replace_page(address: usize) -> bool {
    let holds = |slot: &&WatchSlot| {
        let start = slot.start.load(Ordering::Acquire);
        start != 0 && start <= address && address < slot.end.load(Ordering::Relaxed)
    };
    let Some(slot) = slots().find(holds) else { return false };
    slot.is_lost.store(true, Ordering::SeqCst);
    let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
    let page = (address - address % page_bytes) as *mut libc::c_void;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the page is one of the map, whose owner unmaps it like the others. The faulting thread is in the middle
    // of a read of it, so nothing can unmap it meanwhile. `mmap` is a system call that a handler may make; the error
    // number of the interrupted thread is put back.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        let placed = libc::mmap(page, page_bytes, libc::PROT_READ, flags, -1, 0);
        *errno = saved;
        placed != libc::MAP_FAILED
    }
}

/// Performs the previous action of the signal.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let previous = match INSTALLED.get() {
        Some(Ok(Previous(previous))) => *previous,
        // SAFETY: all zeros is the default action without flags.
        _ => unsafe { std::mem::zeroed() },
    };
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the default action is valid. The signal is blocked until this handler returns, and then ends the
            // process, as it would have.
            unsafe {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &default, ptr::null_mut());
                libc::raise(signal);
            }
        }
        // SAFETY: it was installed as a handler with this flag, so it has this signature.
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => unsafe {
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) = std::mem::transmute(handler);
            handler(signal, info, context);
        },
        // SAFETY: it was installed as a handler without that flag, so it has this signature.
        handler => unsafe {
            let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
            handler(signal);
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::Mmap;
    use std::fs::File;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    const PAGES: usize = 3;

    /// A map of a file of ones that is cut to its first page afterwards.
    fn cut(directory: &std::path::Path) -> Mmap {
        let path = directory.join("cut");
        std::fs::write(&path, vec![1; PAGES * rustix::param::page_size()]).unwrap();
        // SAFETY: what becomes of the file is what is tested.
        let map = unsafe { Mmap::map(&File::open(&path).unwrap()).unwrap() };
        File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
        map
    }

    #[test]
    fn lost_pages_are_zeros_and_flagged_by_their_map_alone() {
        let directory = tempfile::tempdir().unwrap();
        let other = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        // SAFETY: the program of the test does not change.
        let other = unsafe { Mmap::map(&other).unwrap() };
        let watched = MapWatch::over(other.as_ptr(), other.len()).unwrap();
        for _ in 0..3 {
            let map = cut(directory.path());
            let watch = MapWatch::over(map.as_ptr(), map.len()).unwrap();
            assert!(map[0] == 1 && watch.is_whole());
            let second = rustix::param::page_size();
            assert!(map[second] == 0 && !watch.is_whole());
            assert!(map[second..].iter().all(|&byte| byte == 0) && map[0] == 1);
            drop(watch);
        }
        assert!(other.iter().any(|&byte| byte != 0) && watched.is_whole());
    }

    #[test]
    fn slots_are_used_again() {
        let bytes = [0; 10];
        let count = || slots().count();
        let held: Vec<MapWatch> = (0..20).map(|_| MapWatch::over(bytes.as_ptr(), 10).unwrap()).collect();
        drop(held);
        let before = count();
        for _ in 0..100 {
            MapWatch::over(bytes.as_ptr(), 10).unwrap();
        }
        // Other tests run at the same time, and take some.
        assert!(count() < before + 50, "{before} {}", count());
    }

    /// The child of the test below; by itself it does nothing.
    #[test]
    fn a_fault_that_is_not_watched_in_a_child() {
        let Some(which) = std::env::var_os("AWARI_TEST_FAULT") else { return };
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (cut(directory.path()), cut(directory.path()));
        let _watch = MapWatch::over(first.as_ptr(), first.len()).unwrap();
        if which == "raised" {
            // SAFETY: raising a signal is always allowed.
            unsafe { libc::raise(libc::SIGBUS) };
        }
        assert_eq!(second[rustix::param::page_size()], 0, "not reached");
    }

    #[test]
    fn other_faults_end_the_process_as_before() {
        for which in ["touched", "raised"] {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child
                .args(["--exact", "sigbus::tests::a_fault_that_is_not_watched_in_a_child"])
                .env("AWARI_TEST_FAULT", which);
            let ended = child.output().unwrap();
            assert_eq!(ended.status.signal(), Some(libc::SIGBUS), "{which}: {ended:?}");
        }
    }
}
