//! A cache of pages against a plain array.

use disk::{Disk, Fault, MemoryDisk};
use std::path::Path;
use store::PageCache;

/// Bytes of an access: operation, position, operands.
const ACCESS_BYTES: usize = 4;

/// Compares a page cache with an array. The first bytes choose the sizes of plane, page and cache, the others
/// accesses. A failing disk leads to an error, never to wrong words.
pub fn pages(bytes: &[u8]) {
    let Some((&[words, page, capacity], accesses)) = bytes.split_first_chunk() else { return };
    let (words, page_bytes) = (1 + usize::from(words), 8 * (1 + usize::from(page) % 16));
    let disk = MemoryDisk::new();
    let file = disk.scratch(Path::new("bits"), 8 * words as u64).expect("the disk is empty");
    let cache = PageCache::new(file, page_bytes, u64::from(capacity) * 8);
    let mut model = vec![0u64; words];
    // `None` after an access to several pages.
    let mut uses = Some(0);
    for access in accesses.chunks_exact(ACCESS_BYTES) {
        let at = usize::from(access[1]) % words;
        let mut lock = cache.lock();
        match access[0] % 8 {
            0..3 => {
                let bits = 1 << (access[2] % 64) | 1 << (access[3] % 64);
                assert_eq!(lock.set(at, bits), bits & !model[at]);
                model[at] |= bits;
                uses = uses.map(|uses| uses + 1);
            }
            3..6 => {
                assert_eq!(lock.word(at), model[at]);
                uses = uses.map(|uses| uses + 1);
            }
            6 => {
                let count = (usize::from(access[2]) + 1).min(words - at);
                let mut read = vec![0; count];
                lock.read(at, &mut read);
                assert_eq!(read, model[at..at + count]);
                uses = None;
            }
            _ => {
                drop(lock);
                fail(&disk, &cache, &model, access);
                return;
            }
        }
    }
    let counts = cache.page_counts();
    assert!(uses.is_none_or(|uses| counts.hits + counts.misses == uses), "{counts:?}, {uses:?} accesses");
    assert!(counts.written <= counts.misses);
    cache.check().expect("the disk did not fail");
}

/// Lets the disk fail: every word is right, or the cache reports an error.
fn fail(disk: &MemoryDisk, cache: &PageCache, model: &[u64], access: &[u8]) {
    disk.fail_from(disk.operations() + u64::from(access[1] % 4), Fault::Io);
    let mut read = vec![0; model.len()];
    let mut lock = cache.lock();
    for (word, at) in read.iter_mut().zip((0..model.len()).cycle().skip(usize::from(access[2]))) {
        *word = lock.word(at);
    }
    drop(lock);
    read.rotate_right(usize::from(access[2]) % model.len());
    assert!(cache.check().is_err() || read == model, "wrong words without an error");
}

pub(super) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let accesses = |size: [u8; 3], count: u8| {
        let access = |number: u8| [number, number.wrapping_mul(37), number ^ 5, number.wrapping_mul(3)];
        [size.to_vec(), (0..count).flat_map(access).collect()].concat()
    };
    let seed = |name: &str, bytes| ("pages", name.to_owned(), bytes);
    let quiet = |bytes: Vec<u8>| -> Vec<u8> {
        let (size, rest) = bytes.split_at(3);
        let kept = rest.chunks(ACCESS_BYTES).filter(|access| access[0] % 8 != 7).flatten().copied();
        size.iter().copied().chain(kept).collect()
    };
    vec![
        seed("one-page", quiet(accesses([200, 3, 0], 60))),
        seed("some-pages", quiet(accesses([255, 0, 9], 90))),
        seed("large-page", quiet(accesses([99, 15, 40], 60))),
        seed("failing", accesses([99, 1, 6], 8)),
    ]
}
