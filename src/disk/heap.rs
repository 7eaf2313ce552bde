//! Two words to the allocator, so that what a process takes is what it uses. Where it is another allocator than glibc's,
//! they do nothing.

/// Has all threads allocate from one arena. With one each, what a thread gives back serves no other: a build took half
/// as much again. To be called before there are threads.
pub fn share_arena() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a parameter of the allocator. It takes no pointer.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Gives memory that nothing uses any more back to the operating system.
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
