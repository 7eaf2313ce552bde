//! The digest of content that arrives in portions.
//!
//! That of a database is BLAKE3 of the whole, a tree whose leaves depend on their position and whose nodes do
//! not. Content is hashed in pieces of [`PIECE_BYTES`], each a whole subtree.
//!
//! Files that are removed before a build ends are protected against damage, not against an adversary: a piece
//! of theirs has the BLAKE3 of its XXH3 as its value, and a pair of values that of both.
//!
//! The value of a piece of zeros, at a position if it depends on that, is computed once per process: most of
//! a plane is zeros, and hashing them all took a tenth of the processor time of `two-bit`.

use crate::threads;
use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use disk::Digest;
use std::ops::Range;
use std::sync::{LazyLock, Mutex, PoisonError};
use twox_hash::XxHash3_128;

/// Bytes of a piece: as many leaves as the widest vector registers hash at once.
pub(crate) const PIECE_BYTES: usize = 16 << 10;

/// Pieces that a thread hashes at a time.
const PIECES: usize = 8;

/// Pieces of zeros whose hashes are cached: those of the first gibibyte of content, in 2 MiB.
const ZEROS_MAX: usize = 1 << 16;

/// Bytes of the hash of a subtree.
const VALUE_BYTES: usize = size_of::<ChainingValue>();

static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// The hash function of the content of a file, and of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashFunction {
    /// Of databases.
    Blake3,
    /// Of all other files since version 6: a fifth of the time.
    Xxh3,
}

/// A hasher of the whole content, or of a part that begins at any byte.
pub(crate) struct ContentHasher {
    hash: HashFunction,
    /// Bytes before the first piece boundary of the part, and how many of them are missing.
    lead: Vec<u8>,
    lead_missing: usize,
    /// Subtrees of pieces, in order; complete siblings are merged.
    stack: Vec<Subtree>,
    /// The number of the next piece of the content.
    pieces: u64,
    /// The next piece. A complete one is added to a subtree only when more content arrives: the last piece is the root
    /// or a child of it.
    held: PendingPiece,
}

/// 2^height pieces.
#[derive(Clone, Copy)]
struct Subtree {
    height: u32,
    value: ChainingValue,
}

/// A piece that arrives in portions, hashed once it is complete.
enum PendingPiece {
    /// A number of zeros.
    Zeros(usize),
    Bytes(Vec<u8>),
}

/// The layout of the encoded hash of a part: bytes before its first piece, its subtrees, bytes after them.
struct Outline {
    lead: usize,
    first_piece: u64,
    end_piece: u64,
    held: usize,
}

impl Outline {
    fn of(part: &Range<u64>) -> Outline {
        let first = part.start.next_multiple_of(PIECE_BYTES as u64).min(part.end);
        let whole = (part.end - first).saturating_sub(1) / PIECE_BYTES as u64;
        let first_piece = first / PIECE_BYTES as u64;
        let held = (part.end - first - whole * PIECE_BYTES as u64) as usize;
        Outline { lead: (first - part.start) as usize, first_piece, end_piece: first_piece + whole, held }
    }

    /// The heights of the subtrees: each is as large as its position and the end allow.
    fn heights(&self) -> impl Iterator<Item = u32> {
        let (mut at, end) = (self.first_piece, self.end_piece);
        std::iter::from_fn(move || {
            let left = end.checked_sub(at).filter(|&left| left > 0)?;
            let height = left.ilog2().min(at.trailing_zeros());
            at += 1 << height;
            Some(height)
        })
    }
}

impl ContentHasher {
    /// Creates a hasher of content that begins at byte 0.
    pub(crate) fn new(hash: HashFunction) -> Self {
        ContentHasher::beginning_at(hash, 0)
    }

    /// Creates a hasher of a part that begins at `byte`.
    pub(crate) fn beginning_at(hash: HashFunction, byte: u64) -> Self {
        let first = byte.next_multiple_of(PIECE_BYTES as u64);
        ContentHasher {
            hash,
            lead: Vec::new(),
            lead_missing: (first - byte) as usize,
            stack: Vec::new(),
            pieces: first / PIECE_BYTES as u64,
            held: PendingPiece::Zeros(0),
        }
    }

    /// Adds bytes, on all threads of the current rayon pool if there are many.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let (lead, mut bytes) = bytes.split_at(bytes.len().min(self.lead_missing));
        self.lead.extend_from_slice(lead);
        self.lead_missing -= lead.len();
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

    /// Adds zeros.
    pub(crate) fn update_zeros(&mut self, mut bytes: usize) {
        let lead = bytes.min(self.lead_missing);
        self.lead.resize(self.lead.len() + lead, 0);
        self.lead_missing -= lead;
        bytes -= lead;
        while bytes > 0 {
            let now = bytes.min(self.room());
            match &mut self.held {
                PendingPiece::Zeros(zeros) => *zeros += now,
                PendingPiece::Bytes(held) => held.resize(held.len() + now, 0),
            }
            bytes -= now;
        }
    }

    /// Encodes the hash of a part for [`join`](Self::join): a few hundred bytes and up to two pieces.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = self.lead;
        self.stack.iter().for_each(|subtree| bytes.extend_from_slice(&subtree.value));
        match self.held {
            PendingPiece::Zeros(zeros) => bytes.resize(bytes.len() + zeros, 0),
            PendingPiece::Bytes(held) => bytes.extend(held),
        }
        bytes
    }

    /// Adds the next part, hashed elsewhere. Returns false, and adds nothing, if the bytes are not those of such a
    /// part.
    ///
    /// # Panics
    /// If `part` contains whole pieces and does not follow the content so far.
    #[must_use]
    pub(crate) fn join(&mut self, part: &Range<u64>, encoded: &[u8]) -> bool {
        let outline = Outline::of(part);
        let heights: Vec<u32> = outline.heights().collect();
        if encoded.len() != outline.lead + heights.len() * VALUE_BYTES + outline.held {
            return false;
        }
        let (lead, rest) = encoded.split_at(outline.lead);
        let (values, held) = rest.split_at(heights.len() * VALUE_BYTES);
        self.update(lead);
        if !heights.is_empty() {
            assert_eq!(self.room(), PIECE_BYTES, "parts follow each other");
        }
        let (values, _) = values.as_chunks();
        heights.into_iter().zip(values).for_each(|(height, &value)| self.push(Subtree { height, value }));
        self.update(held);
        true
    }

    /// The digest of the whole content.
    ///
    /// # Panics
    /// If the beginning is missing.
    pub(crate) fn finalize(mut self) -> Digest {
        let known: u64 = self.stack.iter().map(|subtree| 1 << subtree.height).sum();
        assert!(known == self.pieces && self.lead.is_empty(), "hashed from its beginning on");
        let last = match &self.held {
            PendingPiece::Zeros(zeros) => &ZEROS[..*zeros],
            PendingPiece::Bytes(held) => held,
        };
        let hash = self.hash;
        let Some(first) = self.stack.first().copied() else { return Digest(hash.of_single_piece(last)) };
        let rest = self.stack.drain(1..).rev();
        let right = rest.fold(hash.of_piece(self.pieces, last), |right, left| hash.of_pair(&left.value, &right));
        Digest(hash.of_last_pair(&first.value, &right))
    }

    /// Returns the free bytes of the pending piece. Pushes the piece first if it is complete.
    fn room(&mut self) -> usize {
        let (held, value) = match &self.held {
            PendingPiece::Zeros(PIECE_BYTES) => (0, Some(self.hash.of_zeros(self.pieces))),
            PendingPiece::Zeros(zeros) => (*zeros, None),
            PendingPiece::Bytes(held) => match held.as_slice().try_into() {
                Ok(whole) => (0, Some(self.hash.of_whole_piece(self.pieces, whole))),
                Err(_) => (held.len(), None),
            },
        };
        if let Some(value) = value {
            self.push(Subtree { height: 0, value });
            self.held = PendingPiece::Zeros(0);
        }
        PIECE_BYTES - held
    }

    /// Adds bytes to the pending piece, which has room for them.
    fn hold(&mut self, bytes: &[u8]) {
        match &mut self.held {
            PendingPiece::Zeros(zeros) if is_zeros(bytes) => *zeros += bytes.len(),
            PendingPiece::Zeros(zeros) => {
                let mut held = Vec::with_capacity(PIECE_BYTES);
                held.resize(*zeros, 0);
                held.extend_from_slice(bytes);
                self.held = PendingPiece::Bytes(held);
            }
            PendingPiece::Bytes(held) => held.extend_from_slice(bytes),
        }
    }

    /// Adds whole pieces that are not the last of the content.
    fn push_all(&mut self, pieces: &[[u8; PIECE_BYTES]]) {
        if pieces.len() <= PIECES || threads::count() == 1 {
            for piece in pieces {
                self.push(Subtree { height: 0, value: self.hash.of_whole_piece(self.pieces, piece) });
            }
            return;
        }
        let (first, hash) = (self.pieces, self.hash);
        let numbered = (first..).zip(pieces).collect();
        let values = threads::map(numbered, PIECES, |(number, piece)| hash.of_whole_piece(number, piece));
        values.into_iter().for_each(|value| self.push(Subtree { height: 0, value }));
    }

    fn push(&mut self, mut subtree: Subtree) {
        self.pieces += 1 << subtree.height;
        // Merges with left siblings of equal height.
        while subtree.height < self.pieces.trailing_zeros()
            && let Some(left) = self.stack.pop_if(|left| left.height == subtree.height)
        {
            subtree = Subtree { height: subtree.height + 1, value: self.hash.of_pair(&left.value, &subtree.value) };
        }
        self.stack.push(subtree);
    }
}

impl HashFunction {
    /// The value of a whole piece.
    fn of_whole_piece(self, piece: u64, bytes: &[u8; PIECE_BYTES]) -> ChainingValue {
        if is_zeros(bytes) { self.of_zeros(piece) } else { self.of_piece(piece, bytes) }
    }

    /// The value of a piece; the last one may be shorter than others.
    fn of_piece(self, piece: u64, bytes: &[u8]) -> ChainingValue {
        match self {
            HashFunction::Blake3 => {
                let mut hasher = blake3::Hasher::new();
                hasher.set_input_offset(piece * PIECE_BYTES as u64);
                hasher.update(bytes).finalize_non_root()
            }
            HashFunction::Xxh3 => *blake3::hash(&XxHash3_128::oneshot(bytes).to_le_bytes()).as_bytes(),
        }
    }

    /// The value of a piece that is all of the content.
    fn of_single_piece(self, bytes: &[u8]) -> ChainingValue {
        match self {
            HashFunction::Blake3 => *blake3::hash(bytes).as_bytes(),
            HashFunction::Xxh3 => self.of_piece(0, bytes),
        }
    }

    /// The value of a whole piece of zeros.
    fn of_zeros(self, piece: u64) -> ChainingValue {
        static KNOWN: Mutex<Vec<Option<ChainingValue>>> = Mutex::new(Vec::new());
        static OF_ANY: LazyLock<ChainingValue> = LazyLock::new(|| HashFunction::Xxh3.of_piece(0, &ZEROS));
        if self == HashFunction::Xxh3 {
            return *OF_ANY;
        }
        let value = || self.of_piece(piece, &ZEROS);
        let Some(at) = usize::try_from(piece).ok().filter(|&at| at < ZEROS_MAX) else { return value() };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() <= at {
            known.resize(at + 1, None);
        }
        *known[at].get_or_insert_with(value)
    }

    /// The value of two subtrees that are not all of the content.
    fn of_pair(self, left: &ChainingValue, right: &ChainingValue) -> ChainingValue {
        match self {
            HashFunction::Blake3 => merge_subtrees_non_root(left, right, Mode::Hash),
            HashFunction::Xxh3 => *blake3::hash([*left, *right].as_flattened()).as_bytes(),
        }
    }

    /// The value of the two subtrees that are all of the content.
    fn of_last_pair(self, left: &ChainingValue, right: &ChainingValue) -> ChainingValue {
        match self {
            HashFunction::Blake3 => *merge_subtrees_root(left, right, Mode::Hash).as_bytes(),
            HashFunction::Xxh3 => self.of_pair(left, right),
        }
    }
}

/// Whether all bytes are zero. Returns early for most other content.
fn is_zeros(bytes: &[u8]) -> bool {
    bytes.chunks(512).all(|bytes| bytes.iter().fold(0, |any, byte| any | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EACH: [HashFunction; 2] = [HashFunction::Blake3, HashFunction::Xxh3];

    /// The digest of content, from the description of the format alone.
    fn reference(hash: HashFunction, content: &[u8]) -> Digest {
        fn value(pieces: &[&[u8]]) -> [u8; 32] {
            let (left, right) = match pieces {
                [] => return value(&[&[]]),
                [piece] => return *blake3::hash(&XxHash3_128::oneshot(piece).to_le_bytes()).as_bytes(),
                // All pieces that are a power of two, fewer than all.
                more => more.split_at(more.len().next_power_of_two() / 2),
            };
            *blake3::hash(&[value(left), value(right)].concat()).as_bytes()
        }
        match hash {
            HashFunction::Blake3 => Digest(*blake3::hash(content).as_bytes()),
            HashFunction::Xxh3 => Digest(value(&content.chunks(16_384).collect::<Vec<_>>())),
        }
    }

    /// Runs of bytes: how many, and whether they are zeros.
    fn check(runs: &[(usize, bool)], portion: usize) {
        EACH.into_iter().for_each(|hash| check_by(hash, runs, portion));
    }

    fn check_by(hash: HashFunction, runs: &[(usize, bool)], portion: usize) {
        let mut bytes = Vec::new();
        let mut hasher = ContentHasher::new(hash);
        for &(len, zeros) in runs {
            let first = bytes.len();
            bytes.extend((0..len).map(|at| if zeros { 0 } else { (at * 7 + first) as u8 }));
            if zeros && portion.is_multiple_of(2) {
                hasher.update_zeros(len)
            } else {
                bytes[first..].chunks(portion).for_each(|bytes| hasher.update(bytes))
            }
        }
        assert_eq!(hasher.finalize(), reference(hash, &bytes), "{hash:?}, {runs:?} by {portion}");
    }

    #[test]
    fn digests_are_those_of_the_format() {
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
    fn parts_are_hashed_anywhere() {
        let piece = PIECE_BYTES as u64;
        for len in [1, 100, 16_383, 16_384, 16_385, 32_768, 500_000] {
            let bytes: Vec<u8> = (0..len).map(|at: u64| ((at * 7) >> 3) as u8).collect();
            let cuts =
                [1, 99, 100, piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 5, 20 * piece, 400_000, 499_999];
            let cuts: Vec<u64> = cuts.into_iter().filter(|&cut| cut <= len).collect();
            for (hash, seed) in EACH.into_iter().flat_map(|hash| (0..20u64).map(move |seed| (hash, seed))) {
                // Any of the cuts, some of them twice: parts may be empty.
                let chosen = cuts.iter().filter(|&&cut| (cut * 31 + seed * 17).is_multiple_of(3));
                let mut ends: Vec<u64> = chosen.flat_map(|&cut| vec![cut; 1 + (cut + seed) as usize % 2]).collect();
                ends.push(len);
                let mut all = ContentHasher::new(hash);
                let mut start = 0;
                for end in ends {
                    let mut hasher = ContentHasher::beginning_at(hash, start);
                    let portion = 1 + seed as usize * 4001;
                    bytes[start as usize..end as usize].chunks(portion).for_each(|bytes| hasher.update(bytes));
                    let encoded = hasher.encode();
                    assert!(encoded.len() <= 2 * PIECE_BYTES + 2 * 5 * VALUE_BYTES);
                    assert!(!all.join(&(start..end), &[&encoded[..], b"x"].concat()));
                    assert!(all.join(&(start..end), &encoded), "{start}..{end} of {len}");
                    start = end;
                }
                assert_eq!(all.finalize(), reference(hash, &bytes), "{len} bytes, seed {seed}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "from its beginning")]
    fn a_part_is_not_all() {
        let mut hasher = ContentHasher::beginning_at(HashFunction::Blake3, PIECE_BYTES as u64);
        hasher.update(b"more");
        hasher.finalize();
    }

    #[test]
    fn threads_change_nothing() {
        let bytes: Vec<u8> =
            (0..3_000_000u32).map(|at| if at < 1_000_000 { 0 } else { ((at * 7) >> 3) as u8 }).collect();
        for (hash, threads) in EACH.into_iter().flat_map(|hash| [1, 3].map(|threads| (hash, threads))) {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut hasher = ContentHasher::new(hash);
            pool.install(|| hasher.update(&bytes));
            assert_eq!(hasher.finalize(), reference(hash, &bytes));
        }
    }

    proptest! {
        #[test]
        fn any_runs(runs in prop::collection::vec((0usize..60_000, any::<bool>()), 0..6), portion in 1000usize..70_000) {
            check(&runs, portion);
        }
    }
}
