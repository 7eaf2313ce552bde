//! The digest of content that comes in portions: BLAKE3 of the whole.
//!
//! BLAKE3 hashes a tree whose leaves know their place and whose nodes do not. Content is hashed in pieces of
//! [`PIECE_BYTES`], whole subtrees, and a piece of zeros at a place gives the same each time: it is hashed once in the life
//! of a process. Most of what planes have is zeros; hashing them all took a tenth of the processor time of `two-bit`.

use std::sync::{Mutex, PoisonError};

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use disk::Digest;
use rayon::prelude::*;

/// Bytes of a piece: as many leaves as the widest registers hash at once.
pub(crate) const PIECE_BYTES: usize = 16 << 10;

/// Pieces at a time for a thread.
const PIECES: usize = 8;

/// Pieces of zeros that are remembered, those of the first gibibyte of content. They take 2 MiB.
const ZEROS_MAX: usize = 1 << 16;

static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// Content being hashed.
pub(crate) struct ContentHasher {
    /// Subtrees of pieces, each twice as large as the next or more.
    stack: Vec<ChainingValue>,
    /// The pieces in there.
    pieces: u64,
    /// The next piece. It may be whole, but is in no subtree before more comes: the last one is the root or its child.
    held: Held,
}

/// A piece that came in portions: to hash it at once takes less than to hash each.
enum Held {
    /// So many zeros.
    Zeros(usize),
    Bytes(Vec<u8>),
}

impl ContentHasher {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        ContentHasher { stack: Vec::new(), pieces: 0, held: Held::Zeros(0) }
    }

    /// Adds bytes; on all threads of the current rayon pool if there are many.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room();
            // The last piece is held.
            let whole = (bytes.len() - 1) / PIECE_BYTES;
            if room == PIECE_BYTES && whole > 0 {
                let (now, rest) = bytes.split_at(whole * PIECE_BYTES);
                self.push_all(now.as_chunks().0);
                bytes = rest;
            } else {
                let (now, rest) = bytes.split_at(bytes.len().min(room));
                self.hold(now);
                bytes = rest;
            }
        }
    }

    /// Adds so many zeros.
    pub(crate) fn update_zeros(&mut self, mut bytes: usize) {
        while bytes > 0 {
            let now = bytes.min(self.room());
            match &mut self.held {
                Held::Zeros(zeros) => *zeros += now,
                Held::Bytes(held) => held.resize(held.len() + now, 0),
            }
            bytes -= now;
        }
    }

    /// Adds pieces that were hashed elsewhere, at their places, and behind which there is more.
    ///
    /// # Panics
    /// Behind anything else.
    pub(crate) fn update_hashed(&mut self, values: &[ChainingValue]) {
        assert!(matches!(self.held, Held::Zeros(0)), "nothing but whole pieces so far");
        values.iter().for_each(|&value| self.push(value));
    }

    /// The digest of all of it.
    pub(crate) fn finalize(mut self) -> Digest {
        let mut last = hasher_of(self.pieces);
        last.update(match &self.held {
            Held::Zeros(zeros) => &ZEROS[..*zeros],
            Held::Bytes(held) => held,
        });
        let Some(first) = self.stack.first().copied() else { return Digest(*last.finalize().as_bytes()) };
        let right = self.stack.drain(1..).rev().fold(last.finalize_non_root(), |right, left| merged(&left, &right));
        Digest(*merge_subtrees_root(&first, &right, Mode::Hash).as_bytes())
    }

    /// Bytes that the piece held has room for, after it went to the others if it is whole.
    fn room(&mut self) -> usize {
        let (held, value) = match &self.held {
            Held::Zeros(PIECE_BYTES) => (0, Some(value_of_zeros(self.pieces))),
            Held::Zeros(zeros) => (*zeros, None),
            Held::Bytes(held) => match held.as_slice().try_into() {
                Ok(whole) => (0, Some(value_of(self.pieces, whole))),
                Err(_) => (held.len(), None),
            },
        };
        if let Some(value) = value {
            self.push(value);
            self.held = Held::Zeros(0);
        }
        PIECE_BYTES - held
    }

    /// Adds bytes for which there is room.
    fn hold(&mut self, bytes: &[u8]) {
        match &mut self.held {
            Held::Zeros(zeros) if is_zeros(bytes) => *zeros += bytes.len(),
            Held::Zeros(zeros) => {
                let mut held = Vec::with_capacity(PIECE_BYTES);
                held.resize(*zeros, 0);
                held.extend_from_slice(bytes);
                self.held = Held::Bytes(held);
            }
            Held::Bytes(held) => held.extend_from_slice(bytes),
        }
    }

    /// Adds whole pieces, behind which there is more.
    fn push_all(&mut self, pieces: &[[u8; PIECE_BYTES]]) {
        if pieces.len() <= PIECES || rayon::current_num_threads() == 1 {
            pieces.iter().for_each(|piece| self.push(value_of(self.pieces, piece)));
            return;
        }
        let first = self.pieces;
        let values = pieces.par_iter().enumerate().with_min_len(PIECES);
        let values: Vec<_> = values.map(|(at, piece)| value_of(first + at as u64, piece)).collect();
        values.into_iter().for_each(|value| self.push(value));
    }

    fn push(&mut self, mut value: ChainingValue) {
        self.pieces += 1;
        // As many subtrees as the number of pieces has bits.
        for _ in 0..self.pieces.trailing_zeros() {
            let left = self.stack.pop().expect("each bit that is carried was that of a subtree");
            value = merged(&left, &value);
        }
        self.stack.push(value);
    }
}

/// The hashes of whole pieces that are not the last of their content; the first is at place `first` among the pieces.
pub(crate) fn hash_pieces(first: u64, bytes: &[u8]) -> Vec<ChainingValue> {
    let (pieces, rest) = bytes.as_chunks();
    assert!(rest.is_empty(), "whole pieces");
    let values = pieces.par_iter().enumerate().with_min_len(PIECES);
    values.map(|(at, piece)| value_of(first + at as u64, piece)).collect()
}

fn merged(left: &ChainingValue, right: &ChainingValue) -> ChainingValue {
    merge_subtrees_non_root(left, right, Mode::Hash)
}

fn hasher_of(piece: u64) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(piece * PIECE_BYTES as u64);
    hasher
}

/// The chaining value of a whole piece.
fn value_of(piece: u64, bytes: &[u8; PIECE_BYTES]) -> ChainingValue {
    if is_zeros(bytes) {
        return value_of_zeros(piece);
    }
    hasher_of(piece).update(bytes).finalize_non_root()
}

/// The same of a piece of zeros.
fn value_of_zeros(piece: u64) -> ChainingValue {
    static KNOWN: Mutex<Vec<Option<ChainingValue>>> = Mutex::new(Vec::new());
    let value = || hasher_of(piece).update(&ZEROS).finalize_non_root();
    let Some(at) = usize::try_from(piece).ok().filter(|&at| at < ZEROS_MAX) else { return value() };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() <= at {
        known.resize(at + 1, None);
    }
    *known[at].get_or_insert_with(value)
}

/// Whether there is nothing but zeros. Mostly the first few bytes say no.
fn is_zeros(bytes: &[u8]) -> bool {
    bytes.chunks(512).all(|bytes| bytes.iter().fold(0, |any, byte| any | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs of bytes: how many, and whether they are zeros.
    fn check(runs: &[(usize, bool)], portion: usize) {
        let mut bytes = Vec::new();
        let mut hasher = ContentHasher::new();
        for &(len, zeros) in runs {
            let first = bytes.len();
            bytes.extend((0..len).map(|at| if zeros { 0 } else { (at * 7 + first) as u8 }));
            match zeros && portion.is_multiple_of(2) {
                true => hasher.update_zeros(len),
                false => bytes[first..].chunks(portion).for_each(|bytes| hasher.update(bytes)),
            }
        }
        assert_eq!(hasher.finalize(), Digest(*blake3::hash(&bytes).as_bytes()), "{runs:?} by {portion}");
    }

    #[test]
    fn digests_are_those_of_blake3() {
        let lengths = [0, 1, 1023, 1024, 1025, 16_383, 16_384, 16_385, 32_768, 49_152, 65_536, 65_537, 300_000];
        for portion in [100, 999, 16_384, 50_001, 1 << 20] {
            for len in lengths {
                check(&[(len, true)], portion);
                check(&[(len, false)], portion);
                check(&[(len, true), (len, false), (3 * len, true)], portion);
            }
        }
    }

    #[test]
    fn pieces_are_hashed_anywhere() {
        for len in [1, 16_383, 16_384, 16_385, 32_768, 500_000] {
            let bytes: Vec<u8> = (0..len).map(|at| ((at * 7) >> 3) as u8).collect();
            let whole = (len as u64 - 1) / PIECE_BYTES as u64;
            let mut hasher = ContentHasher::new();
            for part in 0..3 {
                let [first, end] = [part, part + 1].map(|part| whole * part / 3);
                let values = hash_pieces(first, &bytes[first as usize * PIECE_BYTES..end as usize * PIECE_BYTES]);
                hasher.update_hashed(&values);
            }
            hasher.update(&bytes[whole as usize * PIECE_BYTES..]);
            assert_eq!(hasher.finalize(), Digest::of(&bytes), "{len} bytes");
        }
    }

    #[test]
    fn threads_change_nothing() {
        let bytes: Vec<u8> =
            (0..3_000_000u32).map(|at| if at < 1_000_000 { 0 } else { ((at * 7) >> 3) as u8 }).collect();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut hasher = ContentHasher::new();
            pool.install(|| hasher.update(&bytes));
            assert_eq!(hasher.finalize(), Digest::of(&bytes));
        }
    }

    proptest! {
        #[test]
        fn any_runs(runs in prop::collection::vec((0usize..60_000, any::<bool>()), 0..6), portion in 1000usize..70_000) {
            check(&runs, portion);
        }
    }
}
