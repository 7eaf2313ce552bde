//! The coder of a strip: range asymmetric numeral systems (Duda 2013), one state per lane.
//!
//! A state x lies in 2^16 .. 2^32. To encode a symbol of frequency f whose slots begin at s, x becomes
//! `(x / f) * 1024 + s + x % f`, after its lower 16 bits were written to the stream if the result would not fit.
//! Decoding is the inverse, so the encoder runs from the last value to the first and the decoder from the first to the
//! last. The sixteen lanes share a stream of 16-bit words; in each step the lanes take words in order.
//!
//! A strip's bytes:
//!
//! | bytes | field |
//! |---|---|
//! | 4 each | the state of each lane |
//! | 2 each | the words; when they are used up, every state is 2^16 |
//!
//! Codes are ordered by step, then by lane: the neighbours of all lanes are adjacent in memory.

use super::avx512;
use super::floors::{Around, FlooredClasses};
use super::model::{BOTH, Classes, CodeCounts, LEFT, NONE, SLOT_BITS, SLOTS, Slots, UPPER};
use super::tiling::{LANES, Step, Strip};
use crate::error::DecodeError;

/// The least state, and the initial one of the encoder.
const STATE_MIN: u32 = 1 << 16;

const STATES_BYTES: usize = 4 * LANES;

/// The fewest bytes of a strip.
pub(crate) const BYTES_MIN: usize = STATES_BYTES;

/// The most steps of a strip, so that its length fits 16 bits.
const STEPS_MAX: usize = 1 << 11;

const _: () = assert!(STATES_BYTES + STEPS_MAX * LANES * SLOT_BITS as usize / 8 < 1 << 16);

/// Collects the codes of the lanes of a strip from the values of its band, which has `columns` values a row; `low` is
/// the least value of the range. Padding repeats the code to the left, else the one above.
pub(crate) fn gather(strip: &Strip, values: &[u8], columns: usize, low: u8, steps: &mut Vec<Step>) {
    steps.clear();
    steps.resize(strip.steps(), [0; LANES]);
    for lane in 0..LANES {
        let (rows, cell_columns) = strip.cell(lane);
        let mut steps = steps.chunks_exact_mut(strip.cell_columns);
        for (row, steps) in rows.clone().zip(&mut steps) {
            let values = &values[row * columns..][cell_columns.clone()];
            for (step, value) in steps.iter_mut().zip(values) {
                step[lane] = value.wrapping_sub(low);
            }
        }
    }
    if strip.values() < strip.steps() * LANES {
        (0..LANES).for_each(|lane| pad(strip, lane, steps));
    }
}

fn pad(strip: &Strip, lane: usize, steps: &mut [Step]) {
    let width = strip.cell_columns;
    let (rows, columns) = strip.cell(lane);
    for row in 0..strip.cell_rows {
        let there = if row < rows.len() { columns.len() } else { 0 };
        for column in there..width {
            let at = row * width + column;
            steps[at][lane] = match (row, column) {
                (0, 0) => 0,
                (_, 0) => steps[at - width][lane],
                _ => steps[at - 1][lane],
            };
        }
    }
}

/// A destination for values of a band: the value in row r and column c goes to index `r * stride + c - origin`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputWindow {
    pub(crate) stride: usize,
    pub(crate) origin: usize,
}

/// Writes the values of a strip to `out`; values outside of `out` are skipped. The inverse of [`gather`].
pub(crate) fn scatter(strip: &Strip, steps: &[Step], low: u8, place: OutputWindow, out: &mut [u8]) {
    let width = strip.cell_columns;
    // Sixteen steps of all lanes are sixteen values of each: a matrix to be transposed.
    let mut blocks = vec![[[0; LANES]; LANES]; width.div_ceil(LANES)];
    for row in 0..strip.cell_rows {
        for (block, steps) in blocks.iter_mut().zip(steps[row * width..(row + 1) * width].chunks(LANES)) {
            block[..steps.len()].copy_from_slice(steps);
            *block = transposed(*block).map(|step| step.map(|code| code.wrapping_add(low)));
        }
        for lane in 0..LANES {
            let (rows, columns) = strip.cell(lane);
            if row >= rows.len() {
                continue;
            }
            let begin = (rows.start + row) * place.stride + columns.start;
            let (first, end) = (begin.max(place.origin), (begin + columns.len()).min(place.origin + out.len()));
            for (number, block) in blocks.iter().enumerate() {
                let from = (begin + number * LANES).max(first);
                let upto = (begin + (number + 1) * LANES).min(end);
                if from < upto {
                    let at = from - begin - number * LANES;
                    out[from - place.origin..upto - place.origin].copy_from_slice(&block[lane][at..at + upto - from]);
                }
            }
        }
    }
}

/// Transposes a matrix: four times, rows are interleaved with those eight further on.
fn transposed(mut rows: [Step; LANES]) -> [Step; LANES] {
    for _ in 0..LANES.ilog2() {
        let before = rows;
        for pair in 0..LANES / 2 {
            for at in 0..LANES / 2 {
                let (row, other) = (&before[pair], &before[pair + LANES / 2]);
                (rows[2 * pair][2 * at], rows[2 * pair][2 * at + 1]) = (row[at], other[at]);
                let at_high = at + LANES / 2;
                (rows[2 * pair + 1][2 * at], rows[2 * pair + 1][2 * at + 1]) = (row[at_high], other[at_high]);
            }
        }
    }
    rows
}

/// Finds the class of every code of a strip.
pub(crate) fn classify(strip: &Strip, steps: &[Step], classes: &Classes, found: &mut Vec<Step>) {
    found.clear();
    let mut above: Option<&[Step]> = None;
    for row in steps.chunks_exact(strip.cell_columns) {
        match above {
            None => {
                found.push([classes.of::<NONE>(0, 0, 0); LANES]);
                found
                    .extend(row.iter().map(|left| left.map(|left| classes.of::<LEFT>(left, 0, 0))).take(row.len() - 1));
            }
            Some(above) => {
                found.push(above[0].map(|upper| classes.of::<UPPER>(0, upper, 0)));
                found.extend(row.iter().zip(above.windows(2)).map(|(left, upper)| {
                    std::array::from_fn(|lane| classes.of::<BOTH>(left[lane], upper[1][lane], upper[0][lane]))
                }));
            }
        }
        above = Some(row);
    }
}

/// Counts codes by class.
pub(crate) fn count<C: Copy + Into<usize>>(steps: &[Step], classes: &[[C; LANES]], counts: &mut CodeCounts) {
    for (step, classes) in steps.iter().zip(classes) {
        for (&code, &class) in step.iter().zip(classes) {
            counts[class.into() << 8 | usize::from(code)] += 1;
        }
    }
}

/// Encodes a strip and appends its bytes. `starts` has a frequency for every symbol that occurs.
pub(crate) fn encode<C: Copy + Into<usize>>(
    steps: &[Step],
    classes: &[[C; LANES]],
    starts: &CodeCounts,
    bytes: &mut Vec<u8>,
) {
    assert!(steps.len() <= STEPS_MAX, "a strip of {} steps", steps.len());
    // A symbol takes at most ten bits, and emits at most one word.
    let mut words = vec![0u16; steps.len() * LANES];
    let mut free = words.len();
    let mut states = [STATE_MIN; LANES];
    for (step, classes) in steps.iter().zip(classes).rev() {
        for lane in (0..LANES).rev() {
            let start = starts[classes[lane].into() << 8 | usize::from(step[lane])];
            let (frequency, first) = (start >> 16, start & 0xFFFF);
            let mut state = states[lane];
            if u64::from(state) >= u64::from(frequency) << (u32::BITS - SLOT_BITS) {
                free -= 1;
                words[free] = state as u16;
                state >>= 16;
            }
            states[lane] = (state / frequency) << SLOT_BITS | (first + state % frequency);
        }
    }
    bytes.extend(states.iter().flat_map(|state| state.to_le_bytes()));
    bytes.extend(words[free..].iter().flat_map(|word| word.to_le_bytes()));
}

/// Decodes a strip. After an error `steps` holds arbitrary codes.
pub(crate) fn decode(
    strip: &Strip,
    bytes: &[u8],
    classes: &Classes,
    slots: &Slots,
    steps: &mut Vec<Step>,
) -> Result<(), DecodeError> {
    decode_by(false, strip, bytes, classes, slots, steps)
}

/// As [`decode`], optionally without the vector kernel.
fn decode_by(
    portable: bool,
    strip: &Strip,
    bytes: &[u8],
    classes: &Classes,
    slots: &Slots,
    steps: &mut Vec<Step>,
) -> Result<(), DecodeError> {
    let mut coder = Decoder::new(bytes, slots)?;
    steps.clear();
    steps.resize(strip.steps(), [0; LANES]);
    let (first, rows) = steps.split_at_mut(strip.cell_columns);
    let none = &[0; LANES];
    coder.step::<NONE>(classes, &mut [0; LANES], none, none, &mut first[0]);
    let done = if portable { 1 } else { coder.vector_steps(classes, None, first) };
    let mut left = first[done - 1];
    for step in &mut first[done..] {
        coder.step::<LEFT>(classes, &mut left, none, none, step);
    }
    let mut above = &*first;
    for row in rows.chunks_exact_mut(strip.cell_columns) {
        let done = if portable { 0 } else { coder.vector_steps(classes, Some(above), row) };
        if done == 0 {
            coder.step::<UPPER>(classes, &mut left, &above[0], none, &mut row[0]);
        }
        let done = done.max(1);
        left = row[done - 1];
        for (step, upper) in row[done..].iter_mut().zip(above[done - 1..].windows(2)) {
            coder.step::<BOTH>(classes, &mut left, &upper[1], &upper[0], step);
        }
        above = row;
    }
    coder.end()
}

/// Decodes a strip of scores, given the floors of its lanes. After an error `steps` holds arbitrary codes.
pub(crate) fn decode_floored(
    strip: &Strip,
    bytes: &[u8],
    classes: &FlooredClasses,
    slots: &Slots,
    floors: &[Step],
    steps: &mut Vec<Step>,
) -> Result<(), DecodeError> {
    assert_eq!(floors.len(), strip.steps(), "the floors of the strip");
    let mut coder = Decoder::new(bytes, slots)?;
    steps.clear();
    steps.resize(strip.steps(), [0; LANES]);
    for at in 0..steps.len() {
        let mut ahead = coder.ahead();
        let (before, rest) = steps.split_at_mut(at);
        let around = Around::of(at, strip.cell_columns, before, floors);
        for (lane, code) in rest[0].iter_mut().enumerate() {
            let symbol = coder.lane(lane, classes.of(&around, lane).into(), &mut ahead);
            *code = classes.code(symbol, floors[at][lane]);
        }
        coder.used += ahead.used;
    }
    coder.end()
}

/// Returns the symbols of a strip with floors, and the class of each.
pub(crate) fn classify_floored(
    strip: &Strip,
    steps: &[Step],
    floors: &[Step],
    classes: &FlooredClasses,
) -> (Vec<Step>, Vec<[u16; LANES]>) {
    let all = steps.iter().zip(floors).enumerate().map(|(at, (step, floors_here))| {
        let around = Around::of(at, strip.cell_columns, steps, floors);
        let symbols: Step = std::array::from_fn(|lane| classes.symbol(step[lane], floors_here[lane]));
        (symbols, std::array::from_fn(|lane| classes.of(&around, lane)))
    });
    all.unzip()
}

/// The state of decoding a strip.
struct Decoder<'a> {
    states: [u32; LANES],
    words: &'a [[u8; 2]],
    used: usize,
    slots: &'a Slots,
}

/// The next words of the stream, for one step.
struct Ahead {
    words: [[u8; 2]; LANES],
    used: usize,
}

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8], slots: &'a Slots) -> Result<Self, DecodeError> {
        let Some((head, words)) = bytes.split_at_checked(STATES_BYTES).filter(|(_, words)| words.len() % 2 == 0) else {
            let found = format!("{} bytes", bytes.len());
            return Err(DecodeError { expected: format!("{LANES} states and words"), found });
        };
        let mut states = [0; LANES];
        for (state, bytes) in states.iter_mut().zip(head.as_chunks().0) {
            *state = u32::from_le_bytes(*bytes);
        }
        Ok(Decoder { states, words: words.as_chunks().0, used: 0, slots })
    }

    /// Checks that all words were used and all states are initial ones.
    fn end(&self) -> Result<(), DecodeError> {
        if self.used == self.words.len() && self.states == [STATE_MIN; LANES] {
            return Ok(());
        }
        let found = format!("{}, and states that are not at their start", self.used);
        Err(DecodeError { expected: format!("{} words", self.words.len()), found })
    }

    /// Decodes codes of a row with the vector kernel where there is one. Returns how many codes of the row are decoded.
    fn vector_steps(&mut self, classes: &Classes, above: Option<&[Step]>, row: &mut [Step]) -> usize {
        let words = self.words.get(self.used..).unwrap_or(&[]);
        let (done, used) = avx512::steps(&mut self.states, words, classes, self.slots, above, row);
        self.used += used;
        done
    }

    /// Decodes one code a lane, given its neighbours. `left` becomes the result.
    #[inline(always)]
    fn step<const NEIGHBOURS: u8>(
        &mut self,
        classes: &Classes,
        left: &mut Step,
        upper: &Step,
        corner: &Step,
        step: &mut Step,
    ) {
        let mut ahead = self.ahead();
        for lane in 0..LANES {
            let class = classes.of::<NEIGHBOURS>(left[lane], upper[lane], corner[lane]);
            let code = self.lane(lane, class.into(), &mut ahead);
            // Twice, byte by byte: a vector copy would wait for the single stores.
            (left[lane], step[lane]) = (code, code);
        }
        self.used += ahead.used;
    }

    /// The next words of the stream, padded with zeros at its end.
    #[inline(always)]
    fn ahead(&self) -> Ahead {
        let words = match self.words.get(self.used..).and_then(|words| words.first_chunk()) {
            Some(words) => *words,
            None => {
                let rest = self.words.get(self.used..).unwrap_or(&[]);
                std::array::from_fn(|at| rest.get(at).copied().unwrap_or_default())
            }
        };
        Ahead { words, used: 0 }
    }

    /// Decodes a code of a lane.
    #[inline(always)]
    fn lane(&mut self, lane: usize, class: usize, ahead: &mut Ahead) -> u8 {
        let state = self.states[lane];
        let at = state % SLOTS;
        let (code, start) = self.slots.find(class, at);
        // Cannot overflow: at most 1024 * (2^22 - 1) + 1023.
        let state = (start >> 16) * (state >> SLOT_BITS) + (at - start % (1 << 16));
        let filled = state << 16 | u32::from(u16::from_le_bytes(ahead.words[ahead.used % LANES]));
        let is_short = state < STATE_MIN;
        self.states[lane] = if is_short { filled } else { state };
        ahead.used += usize::from(is_short);
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::rans::model::{CLASSES, FrequencyModel};
    use crate::codec::rans::tiling::Tiling;

    #[test]
    fn strips_round_trip() {
        for (rows, columns, codes) in [(1, 1, 2), (40, 30, 5), (16, 512, 41), (100, 126, 97), (33, 700, 254)] {
            let mut state = 1u64;
            let values: Vec<u8> = (0..rows * columns)
                .map(|at| {
                    state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(at as u64 | 1);
                    (((state >> 40) % (codes as u64)).min((state >> 20) % codes as u64) as u8).wrapping_add(250)
                })
                .collect();
            let (tiling, rule) = (Tiling::new(rows, columns), Classes::new(codes));
            let mut back = vec![0; values.len()];
            for number in 0..tiling.strips() {
                let strip = tiling.strip(number);
                let (mut steps, mut classes, mut counts) = (Vec::new(), Vec::new(), FrequencyModel::no_counts(CLASSES));
                gather(&strip, &values, columns, 250, &mut steps);
                classify(&strip, &steps, &rule, &mut classes);
                count(&steps, &classes, &mut counts);
                let model = FrequencyModel::new(&counts, codes);
                let mut bytes = Vec::new();
                model.encode(&mut bytes);
                let slots = Slots::decode(&bytes, codes, CLASSES).unwrap();
                bytes.clear();
                encode(&steps, &classes, &model.starts(), &mut bytes);
                let mut decoded = Vec::new();
                decode(&strip, &bytes, &rule, &slots, &mut decoded).unwrap();
                assert!(decoded == steps);
                decode_by(true, &strip, &bytes, &rule, &slots, &mut decoded).unwrap();
                assert!(decoded == steps);
                scatter(&strip, &decoded, 250, OutputWindow { stride: columns, origin: 0 }, &mut back);
                for length in [0, 3, STATES_BYTES - 1, bytes.len() - 1, bytes.len() - 2] {
                    let cut = &bytes[..length.min(bytes.len() - 1)];
                    assert!(decode(&strip, cut, &rule, &slots, &mut decoded).is_err());
                }
                let longer = [&bytes[..], &[0, 0]].concat();
                assert!(decode(&strip, &longer, &rule, &slots, &mut decoded).is_err());
            }
            assert!(back == values, "{rows} x {columns}");
        }
    }
}
