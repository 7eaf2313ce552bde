//! The vector kernel of the rans decoder. Its portable twin is `Decoder::step` in the module `coder`.
//!
//! One vector of sixteen words holds the states of all lanes. Classes are computed rather than looked up: look-ups are
//! gathers, and one gather takes as long as all the rest.

use super::model::{Classes, ROUGHNESSES, SLOT_BITS, SLOTS, Slots};
use super::tiling::{LANES, Step};
use crate::codec::kernels::is_portable;
use std::arch::x86_64::*;
use std::sync::LazyLock;

/// Decodes the codes of a row (of the first row of a strip from its second code on) while there are words for all
/// lanes. `above` is the row above, as long as `row`. Returns how many codes of the row are decoded and how many
/// words they took.
pub(crate) fn steps(
    states: &mut [u32; LANES],
    words: &[[u8; 2]],
    classes: &Classes,
    slots: &Slots,
    above: Option<&[Step]>,
    row: &mut [Step],
) -> (usize, usize) {
    static IS_THERE: LazyLock<bool> =
        LazyLock::new(|| is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"));
    if is_portable() || !*IS_THERE {
        return (usize::from(above.is_none()), 0);
    }
    // SAFETY: the check above has detected the features that the function enables.
    unsafe { steps_avx512(states, words, classes, slots, above, row) }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn steps_avx512(
    states: &mut [u32; LANES],
    words: &[[u8; 2]],
    classes: &Classes,
    slots: &Slots,
    above: Option<&[Step]>,
    row: &mut [Step],
) -> (usize, usize) {
    let (codes_by_slot, starts, class_shift) = slots.tables();
    let mut lanes = Lanes {
        state: of_words(states),
        words,
        used: 0,
        codes: codes_by_slot,
        starts,
        class_shift: _mm_cvtsi32_si128(class_shift as i32),
        parts: classes.parts().map(|part| of_words(&part)),
        guess_max: number(classes.guess_max()),
        guess_scale: number(classes.guess_scale()),
    };
    let mut done = 0;
    match above {
        None => {
            // The single neighbour counts as all three.
            let mut left = codes(&row[0]);
            for step in &mut row[1..] {
                let Some(found) = lanes.step(left, left, left, lanes.alone(), step) else { break };
                left = found;
                done += 1;
            }
            done += 1;
        }
        Some(above) => {
            let mut corner = codes(&above[0]);
            let mut left = corner;
            for (step, upper) in row.iter_mut().zip(above) {
                let upper = codes(upper);
                let roughness = if done == 0 { lanes.alone() } else { lanes.roughness(left, upper, corner) };
                let Some(found) = lanes.step(left, upper, corner, roughness, step) else { break };
                (left, corner) = (found, upper);
                done += 1;
            }
        }
    }
    // SAFETY: there are sixteen states of four bytes.
    unsafe { _mm512_storeu_si512(states.as_mut_ptr().cast(), lanes.state) };
    (done, lanes.used)
}

/// The decoder state of all lanes.
struct Lanes<'a> {
    state: __m512i,
    words: &'a [[u8; 2]],
    used: usize,
    codes: &'a [u8],
    starts: &'a [u32],
    class_shift: __m128i,
    parts: [__m512i; 3],
    guess_max: __m512i,
    guess_scale: __m512i,
}

impl Lanes<'_> {
    /// The offset of a class's slots that the roughness of three neighbours adds.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn roughness(&self, left: __m512i, upper: __m512i, corner: __m512i) -> __m512i {
        let roughness = _mm512_add_epi32(
            _mm512_abs_epi32(_mm512_sub_epi32(left, corner)),
            _mm512_abs_epi32(_mm512_sub_epi32(upper, corner)),
        );
        _mm512_permutexvar_epi32(_mm512_min_epi32(roughness, number(LANES as u32 - 1)), self.parts[2])
    }

    /// The offset that a single neighbour adds.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn alone(&self) -> __m512i {
        number((ROUGHNESSES as u32 - 1) << SLOT_BITS)
    }

    /// Decodes a code a lane, or returns `None` if there are too few words.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn step(
        &mut self,
        left: __m512i,
        upper: __m512i,
        corner: __m512i,
        roughness: __m512i,
        step: &mut Step,
    ) -> Option<__m512i> {
        let ahead = self.words.get(self.used..self.used + LANES)?;
        let guess = _mm512_sub_epi32(_mm512_slli_epi32::<1>(_mm512_add_epi32(left, upper)), corner);
        let guess = _mm512_min_epi32(_mm512_max_epi32(guess, number(0)), self.guess_max);
        let part = _mm512_srli_epi32::<{ Classes::GUESS_SHIFT }>(_mm512_mullo_epi32(guess, self.guess_scale));
        let class = _mm512_permutex2var_epi32(self.parts[0], part, self.parts[1]);
        let at = _mm512_and_si512(self.state, number(SLOTS - 1));
        let class = _mm512_add_epi32(class, roughness);
        // SAFETY: parts are below 25 and roughnesses below 5, so that a class times `SLOTS` and less than that again is
        // an index of the table, which is padded with three bytes.
        let found = unsafe { _mm512_i32gather_epi32::<1>(_mm512_add_epi32(class, at), self.codes.as_ptr().cast()) };
        let found = _mm512_and_si512(found, number(0xFF));
        let index = _mm512_add_epi32(_mm512_srl_epi32(class, self.class_shift), found);
        // SAFETY: the index is within the other table, in which each class has a power of two of entries, more than
        // there are codes.
        let start = unsafe { _mm512_i32gather_epi32::<4>(index, self.starts.as_ptr().cast()) };
        let first = _mm512_and_si512(start, number(0xFFFF));
        let frequency = _mm512_srli_epi32::<16>(start);
        let next = _mm512_mullo_epi32(frequency, _mm512_srli_epi32::<SLOT_BITS>(self.state));
        let next = _mm512_add_epi32(next, _mm512_sub_epi32(at, first));
        let is_short = _mm512_cmplt_epu32_mask(next, number(1 << 16));
        // SAFETY: these are sixteen words of two bytes.
        let ahead = _mm512_cvtepu16_epi32(unsafe { _mm256_loadu_si256(ahead.as_ptr().cast()) });
        let filled = _mm512_maskz_expand_epi32(is_short, ahead);
        self.state = _mm512_mask_or_epi32(next, is_short, _mm512_slli_epi32::<16>(next), filled);
        self.used += is_short.count_ones() as usize;
        // SAFETY: a step is sixteen bytes.
        unsafe { _mm_storeu_si128(step.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(found)) };
        Some(found)
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn number(number: u32) -> __m512i {
    _mm512_set1_epi32(number as i32)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn codes(step: &Step) -> __m512i {
    // SAFETY: a step is sixteen bytes.
    _mm512_cvtepu8_epi32(unsafe { _mm_loadu_si128(step.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn of_words(words: &[u32; LANES]) -> __m512i {
    // SAFETY: these are sixteen words of four bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}
