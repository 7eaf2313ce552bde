//! The frequency model of a block: the probability of a value given its neighbours.
//!
//! A value is coded as its distance from the least of the range, its *code*. The neighbours select one of [`CLASSES`]
//! classes; a class has a frequency for each code, and they sum to 2^[`SLOT_BITS`].
//!
//! With the codes to the left, above, and above left, l, u and c, the class consists of the guess 2 l + 2 u - c (a
//! plane through the three, half way to their mean, as in Weinberger, Seroussi and Sapiro 2000) in [`GUESSES`] equal
//! parts, and of the roughness |l - c| + |u - c|. On the scores of 20 stones, without the model itself, this takes
//! 3.078 bits a value; l + u and |l - u| take 3.101; a class for each pair of l and u takes 2.98, but its tables fit no
//! cache. Frequencies of 12 bits gain 0.004 bits, of 8 bits lose 0.036.
//!
//! A model is stored as its classes in order:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | the first code that occurs in the class, or 0 |
//! | 1 | the number of codes from there to the last that occurs, 0 for none; then for each of them: |
//! | 1 or 2 | its frequency: if below 128 in one byte, else 128 + frequency / 256 and frequency % 256 |

use super::tiling::LANES;
use crate::error::DecodeError;

/// Classes of neighbours.
pub(crate) const CLASSES: usize = GUESSES * ROUGHNESSES + 1;

/// Bits of a slot number; the frequencies of a class sum to 2 to this power.
pub(crate) const SLOT_BITS: u32 = 10;

/// The sum of a class's frequencies.
pub(crate) const SLOTS: u32 = 1 << SLOT_BITS;

/// The most codes of a model; blocks of a larger range are packed.
pub(crate) const CODES_MAX: usize = 254;

/// The number of equal intervals of guesses.
pub(crate) const GUESSES: usize = 25;

/// Lower bounds of the intervals of roughness; a single neighbour has an interval of its own.
pub(crate) const ROUGHNESS_BOUNDS: [u32; 3] = [1, 4, 9];
pub(crate) const ROUGHNESSES: usize = ROUGHNESS_BOUNDS.len() + 2;

/// Classes in a table of the decoder, a power of two.
pub(crate) const CLASSES_MAX: usize = 128;
const _: () = assert!(CLASSES <= CLASSES_MAX);
// The split that `Classes::parts` assumes.
const _: () = assert!(GUESSES <= 2 * LANES && ROUGHNESS_BOUNDS[2] < LANES as u32);

/// The neighbours that a value has, as the parameter of [`Classes::of`].
pub(crate) const NONE: u8 = 0;
pub(crate) const LEFT: u8 = 1;
pub(crate) const UPPER: u8 = 2;
pub(crate) const BOTH: u8 = 3;

/// Tables that map neighbours to classes.
pub(crate) struct Classes {
    /// By guess plus [`GUESS_OFFSET`]: the interval times [`ROUGHNESSES`].
    guesses: [u8; 2048],
    roughnesses: [u8; 512],
    guess_max: u32,
    parts: [[u32; LANES]; 3],
}

/// The offset of guesses, which may be below zero.
const GUESS_OFFSET: u32 = 256;

/// The number of occurrences of each code in each class: `class << 8 | code`.
pub(crate) type CodeCounts = [u32];

/// The tables of the decoder. A slot gives only the code, and the code gives the rest: a table of whole words by slot
/// would take four times the cache, which a probe finds cold (60 us a strip against 30).
pub(crate) struct Slots {
    /// The code, by `class << SLOT_BITS | slot`. Three bytes of padding allow reads of four at each entry.
    codes: Box<[u8]>,
    /// The frequency of a code times 2^16 plus its first slot, by `class << code_bits | code`.
    starts: Box<[u32]>,
    code_bits: u32,
}

/// The frequencies of the codes in each class: `class << 8 | code`.
pub(crate) struct FrequencyModel {
    frequencies: Box<[u16]>,
}

impl Classes {
    /// Builds the tables for `codes` codes.
    ///
    /// # Panics
    /// If there are more than [`CODES_MAX`], or none.
    pub(crate) fn new(codes: usize) -> Self {
        assert!((1..=CODES_MAX).contains(&codes), "{codes} codes");
        let most = 3 * (codes - 1);
        let guess = |at: usize| {
            let guess = at.saturating_sub(GUESS_OFFSET as usize).min(most);
            (guess * GUESSES / (most + 1) * ROUGHNESSES) as u8
        };
        let roughness = |at: usize| ROUGHNESS_BOUNDS.iter().filter(|&&bound| at >= bound as usize).count() as u8;
        let part = |part: usize| ((part * ROUGHNESSES) as u32) << SLOT_BITS;
        let parts = [
            std::array::from_fn(part),
            std::array::from_fn(|at| part(LANES + at)),
            std::array::from_fn(|at| u32::from(roughness(at)) << SLOT_BITS),
        ];
        let (guesses, roughnesses) = (std::array::from_fn(guess), std::array::from_fn(roughness));
        Classes { guesses, roughnesses, guess_max: most as u32, parts }
    }

    /// The greatest guess; guesses are clamped to 0 and to this.
    pub(crate) fn guess_max(&self) -> u32 {
        self.guess_max
    }

    /// A guess times this, shifted right by [`GUESS_SHIFT`](Self::GUESS_SHIFT), is its interval.
    pub(crate) fn guess_scale(&self) -> u32 {
        ((GUESSES as u32) << Self::GUESS_SHIFT) / (self.guess_max + 1) + 1
    }

    pub(crate) const GUESS_SHIFT: u32 = 20;

    /// The first slots of classes: by the first sixteen intervals of guesses, by the next, and the amount that
    /// roughness adds, constant from the last bound on.
    pub(crate) fn parts(&self) -> &[[u32; LANES]; 3] {
        &self.parts
    }

    /// The class of a value, from the codes to the left, above, and above left, as far as `NEIGHBOURS` are present.
    #[inline(always)]
    pub(crate) fn of<const NEIGHBOURS: u8>(&self, left: u8, upper: u8, corner: u8) -> u8 {
        let [left, upper, corner] = [left, upper, corner].map(u32::from);
        let guess = |guess: u32| self.guesses[(guess.wrapping_add(GUESS_OFFSET) % 2048) as usize];
        match NEIGHBOURS {
            BOTH => {
                let roughness = left.abs_diff(corner) + upper.abs_diff(corner);
                guess((2 * (left + upper)).wrapping_sub(corner)) + self.roughnesses[(roughness % 512) as usize]
            }
            LEFT => guess(3 * left) + (ROUGHNESSES - 1) as u8,
            UPPER => guess(3 * upper) + (ROUGHNESSES - 1) as u8,
            _ => (CLASSES - 1) as u8,
        }
    }
}

impl FrequencyModel {
    /// Returns counts that are all zero.
    pub(crate) fn no_counts(classes: usize) -> Box<CodeCounts> {
        vec![0; classes << 8].into()
    }

    /// The model of the counted codes.
    pub(crate) fn new(counts: &CodeCounts, codes: usize) -> Self {
        let mut frequencies = vec![0; counts.len()].into_boxed_slice();
        for (counts, frequencies) in counts.chunks_exact(256).zip(frequencies.chunks_exact_mut(256)) {
            scale(&counts[..codes], &mut frequencies[..codes]);
        }
        FrequencyModel { frequencies }
    }

    /// Appends its bytes.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        for frequencies in self.frequencies.chunks_exact(256) {
            let first = frequencies.iter().position(|&frequency| frequency > 0).unwrap_or(0);
            let end = frequencies.iter().rposition(|&frequency| frequency > 0).map_or(first, |last| last + 1);
            bytes.extend([first as u8, (end - first) as u8]);
            for &frequency in &frequencies[first..end] {
                match frequency {
                    0..128 => bytes.push(frequency as u8),
                    _ => bytes.extend([128 + (frequency >> 8) as u8, frequency as u8]),
                }
            }
        }
    }

    /// The table of the encoder: `frequency << 16 | first slot`, by `class << 8 | code`.
    pub(crate) fn starts(&self) -> Box<CodeCounts> {
        let mut starts = vec![0; self.frequencies.len()].into_boxed_slice();
        for (frequencies, starts) in self.frequencies.chunks_exact(256).zip(starts.chunks_exact_mut(256)) {
            let mut slot = 0;
            for (&frequency, start) in frequencies.iter().zip(starts) {
                *start = u32::from(frequency) << 16 | slot;
                slot += u32::from(frequency);
            }
        }
        starts
    }
}

impl Slots {
    /// Decodes the tables of a model of `codes` codes and `classes` classes from exactly its bytes. A class that does
    /// not occur decodes as zeros.
    pub(crate) fn decode(bytes: &[u8], codes: usize, classes: usize) -> Result<Self, DecodeError> {
        let short = || refuse(format!("a model of {classes} classes"), "its end".to_owned());
        let (code_bits, places) = (codes.next_power_of_two().ilog2(), classes.max(CLASSES_MAX));
        let mut starts = vec![0; places << code_bits].into_boxed_slice();
        // Each entry is written once; clearing them first would take as long again.
        let mut by_slot: Vec<u8> = Vec::with_capacity((places << SLOT_BITS) + 3);
        let mut rest = bytes;
        for (number, starts) in starts.chunks_exact_mut(1 << code_bits).take(classes).enumerate() {
            let (&[first, count], after) = rest.split_first_chunk().ok_or_else(short)?;
            rest = after;
            let (first, count) = (usize::from(first), usize::from(count));
            if first + count > codes {
                return Err(refuse(format!("codes up to {codes}"), format!("{first} and {count} from there")));
            }
            let mut sum = 0;
            for (code, start) in starts.iter_mut().enumerate().skip(first).take(count) {
                let (&byte, after) = rest.split_first().ok_or_else(short)?;
                let (frequency, after) = match after.split_first() {
                    _ if byte < 128 => (u32::from(byte), after),
                    Some((&low, after)) => (u32::from(byte - 128) << 8 | u32::from(low), after),
                    None => return Err(short()),
                };
                rest = after;
                *start = frequency << 16 | sum;
                sum += frequency;
                if sum > SLOTS {
                    break;
                }
                by_slot.resize(by_slot.len() + frequency as usize, code as u8);
            }
            if sum != SLOTS && count > 0 {
                return Err(refuse(format!("frequencies of class {number} that sum to {SLOTS}"), sum.to_string()));
            }
            if count == 0 {
                starts[0] = SLOTS << 16;
                by_slot.resize((number + 1) << SLOT_BITS, 0);
            }
        }
        if !rest.is_empty() {
            return Err(refuse("the end of the model".to_owned(), format!("{} bytes", rest.len())));
        }
        by_slot.resize((places << SLOT_BITS) + 3, 0);
        Ok(Slots { codes: by_slot.into(), starts, code_bits })
    }

    /// The code in a slot of a class, its frequency times 2^16 and its first slot.
    #[inline(always)]
    pub(crate) fn find(&self, class: usize, slot: u32) -> (u8, u32) {
        let code = self.codes[class << SLOT_BITS | (slot % SLOTS) as usize];
        (code, self.starts[class << self.code_bits | usize::from(code)])
    }

    /// The tables for the vector kernel, with at least [`CLASSES_MAX`] classes, and the difference between the bits of
    /// a slot and of a code.
    pub(crate) fn tables(&self) -> (&[u8], &[u32], u32) {
        let is_there = self.codes.len() >= (CLASSES_MAX << SLOT_BITS) + 3;
        assert!(is_there && self.starts.len() >= CLASSES_MAX << self.code_bits, "tables of that many places");
        (&self.codes, &self.starts, SLOT_BITS - self.code_bits)
    }

    /// Bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.codes.len() + size_of_val(&*self.starts)
    }
}

/// Computes frequencies of sum [`SLOTS`] in proportion to counts, at least 1 for each nonzero count.
fn scale(counts: &[u32], frequencies: &mut [u16]) {
    let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    if all == 0 {
        return;
    }
    let mut sum = 0;
    for (&count, frequency) in counts.iter().zip(&mut *frequencies) {
        if count > 0 {
            let nearest = (u64::from(count) * u64::from(SLOTS) + all / 2) / all;
            *frequency = nearest.max(1) as u16;
            sum += u32::from(*frequency);
        }
    }
    // The largest frequencies absorb the error of rounding.
    while sum != SLOTS {
        let largest = frequencies.iter_mut().max().expect("a class has codes");
        let change = if sum > SLOTS { -1 } else { 1 };
        *largest = largest.wrapping_add_signed(change);
        sum = sum.wrapping_add_signed(change.into());
    }
}

fn refuse(expected: String, found: String) -> DecodeError {
    DecodeError { expected, found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_neighbours_have_a_class() {
        for codes in [1, 2, 3, 41, 97, 254] {
            let classes = Classes::new(codes);
            let mut seen = [false; CLASSES];
            let mut see = |class: u8| seen[usize::from(class)] = true;
            see(classes.of::<NONE>(0, 0, 0));
            for left in 0..codes as u8 {
                see(classes.of::<LEFT>(left, 0, 0));
                assert_eq!(classes.of::<LEFT>(left, 0, 0), classes.of::<UPPER>(0, left, 0));
                for upper in 0..codes as u8 {
                    for corner in (0..codes as u8).step_by(1 + codes / 50) {
                        see(classes.of::<BOTH>(left, upper, corner));
                    }
                }
            }
            assert_eq!(classes.of::<NONE>(0, 0, 0), CLASSES as u8 - 1);
            assert!(codes < 41 || seen.iter().filter(|&&seen| seen).count() > 120, "{codes}");
        }
    }

    fn sample_counts(codes: usize, seed: u32) -> Box<CodeCounts> {
        let mut counts = FrequencyModel::no_counts(CLASSES);
        for class in 0..CLASSES {
            for code in 0..codes {
                let hash = ((class * 256 + code) as u32 ^ seed).wrapping_mul(0x9E37_79B9) >> 12;
                counts[class << 8 | code] = [0, 0, 1, hash % 10, hash % 1000, hash][hash as usize % 6];
            }
        }
        counts[7 << 8..8 << 8].fill(0);
        counts[(8 << 8) + 1..9 << 8].fill(0);
        counts[8 << 8] = 5;
        counts
    }

    /// The vector kernel multiplies where the portable one uses tables.
    #[test]
    fn parts_of_guesses_are_the_same_by_table_and_by_scale() {
        for codes in 1..=CODES_MAX {
            let classes = Classes::new(codes);
            for guess in 0..=classes.guess_max() {
                let part = (guess * classes.guess_scale()) >> Classes::GUESS_SHIFT;
                let found = u32::from(classes.guesses[(guess + GUESS_OFFSET) as usize]);
                assert_eq!(part * ROUGHNESSES as u32, found, "{guess} of {codes} codes");
                let [low, high, _] = classes.parts();
                assert_eq!([&low[..], &high[..]].concat()[part as usize], found << SLOT_BITS);
            }
        }
    }

    #[test]
    fn incomplete_models_are_refused() {
        for codes in [1, 2, 41, 97, 254] {
            let model = FrequencyModel::new(&sample_counts(codes, 3), codes);
            let mut bytes = Vec::new();
            model.encode(&mut bytes);
            let slots = |bytes: &[u8], codes| Slots::decode(bytes, codes, CLASSES);
            assert!(slots(&bytes, codes).is_ok());
            for length in (0..bytes.len()).rev().step_by(7) {
                assert!(slots(&bytes[..length], codes).is_err());
            }
            assert!(slots(&[&bytes[..], &[0]].concat(), codes).is_err());
            assert!(slots(&bytes, codes - 1).is_err());
            for at in [1, 2] {
                // The sum of a class, or where it ends, is another.
                bytes[at] ^= 1;
                assert!(slots(&bytes, codes).is_err());
                bytes[at] ^= 1;
            }
        }
    }

    #[test]
    fn only_codes_that_occur_have_slots() {
        let counts = sample_counts(41, 9);
        let model = FrequencyModel::new(&counts, 41);
        let mut bytes = Vec::new();
        model.encode(&mut bytes);
        let (starts, slots) = (model.starts(), Slots::decode(&bytes, 41, CLASSES).unwrap());
        for class in 0..CLASSES {
            let mut sum = 0;
            for code in 0..41 {
                let (frequency, start) = (starts[class << 8 | code] >> 16, starts[class << 8 | code] & 0xFFFF);
                assert_eq!(frequency > 0, counts[class << 8 | code] > 0);
                sum += frequency;
                for at in start..start + frequency {
                    assert_eq!(slots.find(class, at), (code as u8, starts[class << 8 | code]));
                }
            }
            assert_eq!(sum, if class == 7 { 0 } else { SLOTS });
        }
        assert!((0..SLOTS).all(|at| slots.find(7, at) == (0, SLOTS << 16)));
    }
}
