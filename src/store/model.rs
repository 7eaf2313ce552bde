//! What a value is likely to be, given its neighbours: the model of a block.
//!
//! Values are coded as their distance from the least of the range. The neighbours choose one of [`CLASSES`] classes, and a
//! class has a frequency for each code; the frequencies of a class sum to 2^[`SLOT_BITS`].
//!
//! With the codes to the left, above, and to the left of that one, l, u and c, the class is made of the guess
//! 2 l + 2 u - c (a plane through the three, half way to their mean, as in Weinberger, Seroussi and Sapiro 2000) in
//! [`GUESSES`] equal parts, and of the roughness |l - c| + |u - c|. On the scores of 20 stones, without the model itself,
//! this takes 3.078 bits a value; l + u and |l - u| 3.101; a class for each pair of l and u 2.98, but its tables fit no
//! cache. Frequencies of 12 bits gain 0.004 bits, of 8 lose 0.036.
//!
//! On disk a model is its classes in order:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | the first code that occurs in the class, or 0 |
//! | 1 | so many codes from there to the last that occurs, 0 for none; then for each of them: |
//! | 1 or 2 | its frequency: if below 128 in one byte, else 128 + frequency / 256 and frequency % 256 |

use crate::form::DecodeError;

/// Classes of neighbours.
pub(crate) const CLASSES: usize = GUESSES * ROUGHNESSES + 1;

/// Bits of a slot; frequencies of a class sum to 2 to the power of it.
pub(crate) const SLOT_BITS: u32 = 10;

/// The sum of a class's frequencies.
pub(crate) const SLOTS: u32 = 1 << SLOT_BITS;

/// There are no more codes: a range of all bytes has no place for what the arithmetic needs.
pub(crate) const CODES_MAX: usize = 254;

/// Parts of equal width that guesses fall into.
pub(crate) const GUESSES: usize = 25;

/// The least roughnesses that are told from lesser ones; a single neighbour has one of its own.
pub(crate) const ROUGHNESS_BOUNDS: [u32; 3] = [1, 4, 9];
pub(crate) const ROUGHNESSES: usize = ROUGHNESS_BOUNDS.len() + 2;

const _: () = assert!(CLASSES <= 128);

/// Which neighbours a value has, in [`Classes::of`].
pub(crate) const NONE: u8 = 0;
pub(crate) const LEFT: u8 = 1;
pub(crate) const UPPER: u8 = 2;
pub(crate) const BOTH: u8 = 3;

/// The classes of neighbours.
pub(crate) struct Classes {
    /// By guess plus [`GUESS_OFFSET`], its part times [`ROUGHNESSES`].
    guesses: [u8; 2048],
    roughnesses: [u8; 512],
}

/// Guesses are not far below zero.
const GUESS_OFFSET: u32 = 256;

/// How often each code occurred in each class: `class << 8 | code`.
pub(crate) type Counts = [u32; CLASSES << 8];

/// By slot, what to do: `class << SLOT_BITS | slot`.
pub(crate) type Slots = [u32; 128 << SLOT_BITS];

/// The frequencies of the codes in each class, and where their slots begin: `class << 8 | code`.
pub(crate) struct Model {
    codes: usize,
    frequencies: Box<[u16; CLASSES << 8]>,
}

impl Classes {
    /// The classes for so many codes.
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
        Classes { guesses: std::array::from_fn(guess), roughnesses: std::array::from_fn(roughness) }
    }

    /// The class of a value: the codes to the left, above, and to the left of that one, as far as `NEIGHBOURS` are there.
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

impl Model {
    /// Counts to begin with.
    pub(crate) fn no_counts() -> Box<Counts> {
        boxed()
    }

    /// The model that says what was counted.
    pub(crate) fn new(counts: &Counts, codes: usize) -> Self {
        let mut frequencies = boxed::<u16, { CLASSES << 8 }>();
        for (counts, frequencies) in counts.chunks_exact(256).zip(frequencies.chunks_exact_mut(256)) {
            scale(&counts[..codes], &mut frequencies[..codes]);
        }
        Model { codes, frequencies }
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

    /// Reads a model of so many codes from exactly its bytes.
    pub(crate) fn decode(bytes: &[u8], codes: usize) -> Result<Self, DecodeError> {
        let short = || refuse(format!("a model of {CLASSES} classes"), "its end".to_owned());
        let mut frequencies = boxed::<u16, { CLASSES << 8 }>();
        let mut rest = bytes.iter().copied();
        let mut next = || rest.next().ok_or_else(short);
        for (number, class) in frequencies.chunks_exact_mut(256).enumerate() {
            let (first, count) = (usize::from(next()?), usize::from(next()?));
            if first + count > codes {
                return Err(refuse(format!("codes up to {codes}"), format!("{first} and {count} from there")));
            }
            let mut sum = 0;
            for frequency in &mut class[first..first + count] {
                let byte = u16::from(next()?);
                *frequency = if byte < 128 { byte } else { (byte - 128) << 8 | u16::from(next()?) };
                sum += u32::from(*frequency);
            }
            if sum != SLOTS && count > 0 {
                return Err(refuse(format!("frequencies of class {number} that sum to {SLOTS}"), sum.to_string()));
            }
        }
        match rest.count() {
            0 => Ok(Model { codes, frequencies }),
            more => Err(refuse("the end of the model".to_owned(), format!("{more} bytes"))),
        }
    }

    /// What the encoder looks up: `frequency << 16 | first slot`, by `class << 8 | code`.
    pub(crate) fn starts(&self) -> Box<Counts> {
        let mut starts = boxed::<u32, { CLASSES << 8 }>();
        for (frequencies, starts) in self.frequencies.chunks_exact(256).zip(starts.chunks_exact_mut(256)) {
            let mut slot = 0;
            for (&frequency, start) in frequencies.iter().zip(starts) {
                *start = u32::from(frequency) << 16 | slot;
                slot += u32::from(frequency);
            }
        }
        starts
    }

    /// What the decoder looks up, see [`Slot`]. A class that does not occur decodes as zeros.
    pub(crate) fn slots(&self) -> Box<Slots> {
        let mut slots = boxed::<u32, { 128 << SLOT_BITS }>();
        for (frequencies, slots) in self.frequencies.chunks_exact(256).zip(slots.chunks_exact_mut(SLOTS as usize)) {
            let mut start = 0;
            for (code, &frequency) in frequencies[..self.codes].iter().enumerate() {
                let end = start + usize::from(frequency);
                if frequency > 0 {
                    slots[start..end].fill(slot(code as u32, u32::from(frequency), start as u32));
                }
                start = end;
            }
            if start == 0 {
                slots.fill(slot(0, SLOTS, 0));
            }
        }
        slots
    }
}

/// An entry of [`Slots`]: the code in 8 bits, its first slot in 10, its frequency in 11.
const fn slot(code: u32, frequency: u32, start: u32) -> u32 {
    code | start << 8 | frequency << 18
}

/// Frequencies of sum [`SLOTS`] in proportion to counts, at least 1 where the count is.
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
    // The most frequent feel least what rounding took or gave.
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

/// Zeros, without a visit to the stack.
fn boxed<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    vec![T::default(); N].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("it has {N} elements"))
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

    fn counts(codes: usize, seed: u32) -> Box<Counts> {
        let mut counts = boxed::<u32, { CLASSES << 8 }>();
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

    #[test]
    fn models_come_back() {
        for codes in [1, 2, 41, 97, 254] {
            let model = Model::new(&counts(codes, 3), codes);
            let mut bytes = Vec::new();
            model.encode(&mut bytes);
            let back = Model::decode(&bytes, codes).unwrap();
            assert!(back.frequencies == model.frequencies);
            for length in 0..bytes.len() {
                assert!(Model::decode(&bytes[..length], codes).is_err());
            }
            assert!(Model::decode(&[&bytes[..], &[0]].concat(), codes).is_err());
            assert!(Model::decode(&bytes, codes - 1).is_err());
        }
    }

    #[test]
    fn what_occurs_has_slots_and_nothing_else() {
        let counts = counts(41, 9);
        let model = Model::new(&counts, 41);
        let (starts, slots) = (model.starts(), model.slots());
        for class in 0..CLASSES {
            let mut sum = 0;
            for code in 0..41 {
                let (frequency, start) = (starts[class << 8 | code] >> 16, starts[class << 8 | code] & 0xFFFF);
                assert_eq!(frequency > 0, counts[class << 8 | code] > 0);
                sum += frequency;
                for at in start..start + frequency {
                    let found = slots[class << SLOT_BITS | at as usize];
                    assert_eq!(found, slot(code as u32, frequency, start));
                }
            }
            assert_eq!(sum, if class == 7 { 0 } else { SLOTS });
        }
        assert!(slots[7 << SLOT_BITS..8 << SLOT_BITS].iter().all(|&found| found == slot(0, SLOTS, 0)));
    }
}
