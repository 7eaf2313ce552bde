//! Encoding of words with few bits: for all words a byte with the distance from the word before, then for all
//! a mask of the bytes that are not zero, then these bytes. Where the next word is further than a byte can
//! say, *fillers* without bits stand between. A processor cannot predict how many bits a word has, so there
//! is no branch for a bit or byte where it has BMI2.

/// Bytes of a word.
const WORD_BYTES: usize = 8;

/// The least gap between words that needs a filler, which has no bytes.
const LONG_GAP: u32 = u8::MAX as u32;

/// Returns the number of encoded words, fillers included, of words that ascend.
pub(crate) fn encoded_count(words: &[(u32, u64)]) -> usize {
    let (mut before, mut count) = (0, words.len());
    for &(number, _) in words {
        count += ((number - before) / LONG_GAP) as usize;
        before = number;
    }
    count
}

/// See [`encode_words`](super::BitKernel::encode_words); `squeeze` returns the bytes of a word that are not
/// zero, and the mask of these bytes.
#[inline(always)]
pub(super) fn encode(words: &[(u32, u64)], count: usize, bytes: &mut Vec<u8>, squeeze: impl Fn(u64) -> (u64, u8)) {
    let start = bytes.len();
    bytes.resize(start + count * (2 + WORD_BYTES), 0);
    let (gaps, rest) = bytes[start..].split_at_mut(count);
    let (masks, values) = rest.split_at_mut(count);
    let (mut before, mut at, mut end) = (0, 0, 0);
    for &(number, word) in words {
        let mut gap = number - before;
        before = number;
        while gap >= LONG_GAP {
            gap -= LONG_GAP;
            (gaps[at], masks[at]) = (LONG_GAP as u8, 0);
            at += 1;
        }
        let (value, mask) = squeeze(word);
        (gaps[at], masks[at]) = (gap as u8, mask);
        at += 1;
        // The bytes behind those of this word are overwritten by the next one.
        values[end..end + WORD_BYTES].copy_from_slice(&value.to_le_bytes());
        end += mask.count_ones() as usize;
    }
    bytes.truncate(start + 2 * count + end);
}

/// See [`decode_words`](super::BitKernel::decode_words); `spread` undoes `squeeze`, whatever follows the bytes.
#[inline(always)]
pub(super) fn decode(
    bytes: &[u8],
    count: usize,
    words: &mut Vec<(u32, u64)>,
    spread: impl Fn(u64, u8) -> u64,
) -> Option<usize> {
    let (gaps, rest) = bytes.split_at_checked(count)?;
    let (masks, values) = rest.split_at_checked(count)?;
    let length: usize = masks.iter().map(|mask| mask.count_ones() as usize).sum();
    if length > values.len() {
        return None;
    }
    let (mut number, mut end, mut kept) = (0u32, 0, 0);
    words.clear();
    words.resize(count, (0, 0));
    for (&gap, &mask) in gaps.iter().zip(masks) {
        number = number.saturating_add(gap.into());
        let rest = &values[end..];
        end += mask.count_ones() as usize;
        let value = rest.first_chunk().map_or_else(|| last_bytes(rest), |&value| u64::from_le_bytes(value));
        words[kept] = (number, spread(value, mask));
        // Fillers are overwritten.
        kept += usize::from(mask != 0);
    }
    words.truncate(kept);
    Some(2 * count + length)
}

/// Returns fewer bytes than a word has as a word.
#[cold]
fn last_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Returns the bytes of a word that are not zero, and the mask of these bytes.
pub(super) fn squeeze(word: u64) -> (u64, u8) {
    let (mut value, mut mask) = ([0; WORD_BYTES], 0u8);
    for (at, byte) in word.to_le_bytes().into_iter().enumerate().filter(|&(_, byte)| byte != 0) {
        value[mask.count_ones() as usize] = byte;
        mask |= 1 << at;
    }
    (u64::from_le_bytes(value), mask)
}

/// Undoes [`squeeze`].
pub(super) fn spread(mut value: u64, mask: u8) -> u64 {
    let (mut word, mut left) = (0, mask);
    while left != 0 {
        word |= (value & 0xff) << (8 * left.trailing_zeros());
        value >>= 8;
        left &= left - 1;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::super::BitKernel;
    use super::*;

    #[test]
    fn every_kernel_encodes_and_decodes_words() {
        let noise = |at: u64| (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32 % 64);
        let lists: [Vec<(u32, u64)>; 6] = [
            vec![],
            vec![(0, 1)],
            vec![(0, 1 << 63), (1, 1), (90, 0x8001), (345, 0xff00), (600, u64::MAX), (70_000, 1)],
            (0..40).map(|at| (at, u64::MAX)).collect(),
            (0..90).map(|at| (7 * at, noise(at.into()))).collect(),
            (0..500)
                .map(|at| (254 + at, noise(at.into()) & noise(u64::from(at) + 7) & 0x00f1_0000_9000_7003))
                .collect(),
        ];
        for (case, list) in lists.iter().enumerate() {
            let count = encoded_count(list);
            let encoded = BitKernel::available().map(|kernel| {
                let mut bytes = vec![7];
                kernel.encode_words(list, count, &mut bytes);
                bytes
            });
            let encoded: Vec<_> = encoded.collect();
            assert!(encoded.iter().all(|other| *other == encoded[0]), "case {case}");
            let bytes = &encoded[0];
            for kernel in BitKernel::available() {
                let mut words = vec![(9, 9)];
                assert_eq!(kernel.decode_words(&bytes[1..], count, &mut words), Some(bytes.len() - 1));
                words.retain(|&(_, bits)| bits != 0);
                assert!(
                    words == list.iter().copied().filter(|&(_, bits)| bits != 0).collect::<Vec<_>>(),
                    "case {case}"
                );
                // A truncated encoding is refused.
                for length in 1..bytes.len() {
                    assert_eq!(
                        kernel.decode_words(&bytes[1..length], count, &mut words),
                        None,
                        "case {case}, {length}"
                    );
                }
            }
        }
    }

    #[test]
    fn numbers_of_decoded_words_never_descend() {
        let bytes = [[0xff; 20], [1; 20], [7; 20]].concat();
        for kernel in BitKernel::available() {
            let mut words = Vec::new();
            assert_eq!(kernel.decode_words(&bytes, 20, &mut words), Some(60));
            assert!(words.is_sorted() && words.len() == 20);
            assert_eq!(kernel.decode_words(&bytes, usize::MAX, &mut words), None);
        }
    }
}
