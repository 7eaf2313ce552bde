//! Classes of scores with a floor: a value that the score is at least, and often equals.
//!
//! Of the scores of 20 stones 36 % equal their best capture, which is their floor. With it as context, besides the
//! neighbours, they take 2.0 bits instead of 3.1. A score with a floor is coded as its distance from it. Its class
//! consists of the floor relative to the guess from the neighbours, their roughness, and whether each neighbour equals
//! its own floor. A score without a floor is coded as in the module `model`, in the same classes.

use super::model::{BOTH, CLASSES, Classes, LEFT, NONE, UPPER};
use super::tiling::{LANES, Step};

/// Classes of scores with a floor: by place, roughness, and the two neighbours.
const FLOORED: usize = (PLACES.len() + 1) * ROUGHNESSES * NEIGHBOURS;

/// All classes; those of scores without a floor come first.
pub(crate) const FLOORED_CLASSES: usize = CLASSES + FLOORED;

/// Lower bounds of the intervals of places: three times the floor less the guess.
const PLACES: [i32; 11] = [-27, -18, -12, -8, -5, -2, 3, 6, 9, 15, 27];

/// As in the module `model`, with fewer intervals.
const ROUGHNESS_BOUNDS: [i32; 2] = [1, 6];
const ROUGHNESSES: usize = ROUGHNESS_BOUNDS.len() + 2;

/// Each of two neighbours has no floor, equals it, or exceeds it.
const NEIGHBOURS: usize = 9;

/// Tables that map neighbours and floors to classes. Floors are codes as well; a value that is no code means no floor.
pub(crate) struct FlooredClasses {
    codes: u8,
    classes: Classes,
    /// By place plus [`PLACE_OFFSET`]: the interval.
    places: Box<[u16]>,
}

/// The greatest place, in either direction.
const PLACE_OFFSET: i32 = 3 * 256;

/// The neighbours of a step: codes and floors.
pub(crate) struct Around<'a> {
    left: Option<(&'a Step, &'a Step)>,
    upper: Option<(&'a Step, &'a Step)>,
    corner: Option<&'a Step>,
    floors: &'a Step,
}

impl<'a> Around<'a> {
    /// Collects the neighbours of a step of a strip.
    #[inline(always)]
    pub(crate) fn of(at: usize, cell_columns: usize, steps: &'a [Step], floors: &'a [Step]) -> Around<'a> {
        let (has_left, has_upper) = (!at.is_multiple_of(cell_columns), at >= cell_columns);
        let with_floor = |at: usize| (&steps[at], &floors[at]);
        Around {
            left: has_left.then(|| with_floor(at - 1)),
            upper: has_upper.then(|| with_floor(at - cell_columns)),
            corner: (has_left && has_upper).then(|| &steps[at - cell_columns - 1]),
            floors: &floors[at],
        }
    }
}

impl FlooredClasses {
    /// Builds the tables for `codes` codes.
    ///
    /// # Panics
    /// As [`Classes::new`].
    pub(crate) fn new(codes: usize) -> Self {
        let place = |at: i32| PLACES.iter().filter(|&&bound| at - PLACE_OFFSET >= bound).count() as u16;
        let places = (0..2 * PLACE_OFFSET).map(place).collect();
        FlooredClasses { codes: codes as u8, classes: Classes::new(codes), places }
    }

    /// The class of a lane's next code.
    #[inline(always)]
    pub(crate) fn of(&self, around: &Around<'_>, lane: usize) -> u16 {
        let floor = around.floors[lane];
        let codes = |step: Option<(&Step, &Step)>| step.map(|(step, floors)| (step[lane], floors[lane]));
        let (left, upper) = (codes(around.left), codes(around.upper));
        let corner = around.corner.map(|step| step[lane]);
        if floor >= self.codes {
            return u16::from(match (left, upper, corner) {
                (Some((left, _)), Some((upper, _)), Some(corner)) => self.classes.of::<BOTH>(left, upper, corner),
                (Some((left, _)), ..) => self.classes.of::<LEFT>(left, 0, 0),
                (_, Some((upper, _)), _) => self.classes.of::<UPPER>(0, upper, 0),
                _ => self.classes.of::<NONE>(0, 0, 0),
            });
        }
        let (guess, roughness) = match (left, upper, corner) {
            (Some((left, _)), Some((upper, _)), Some(corner)) => {
                let [left, upper, corner] = [left, upper, corner].map(i32::from);
                let roughness = (left - corner).abs() + (upper - corner).abs();
                let number = ROUGHNESS_BOUNDS.iter().filter(|&&bound| roughness >= bound).count();
                (2 * (left + upper) - corner, number)
            }
            (Some((code, _)), ..) | (_, Some((code, _)), _) => (3 * i32::from(code), ROUGHNESSES - 1),
            _ => (3 * i32::from(floor), ROUGHNESSES - 1),
        };
        let place = (3 * i32::from(floor) - guess + PLACE_OFFSET).clamp(0, 2 * PLACE_OFFSET - 1);
        let kind = |neighbour: Option<(u8, u8)>| match neighbour {
            Some((code, floor)) if floor < self.codes => 1 + u16::from(code != floor),
            _ => 0,
        };
        let number = (self.places[place as usize] * ROUGHNESSES as u16 + roughness as u16) * NEIGHBOURS as u16;
        CLASSES as u16 + number + 3 * kind(left) + kind(upper)
    }

    /// The symbol of a code: its distance from the floor, if there is one.
    #[inline(always)]
    pub(crate) fn symbol(&self, code: u8, floor: u8) -> u8 {
        match floor < self.codes {
            // A code below its floor is rare, but valid.
            true if code < floor => self.codes - (floor - code),
            true => code - floor,
            false => code,
        }
    }

    /// The code of a symbol. The inverse of [`symbol`](Self::symbol).
    #[inline(always)]
    pub(crate) fn code(&self, symbol: u8, floor: u8) -> u8 {
        match floor < self.codes {
            true if symbol >= self.codes - floor => symbol - (self.codes - floor),
            true => symbol + floor,
            false => symbol,
        }
    }
}

const _: () = assert!(FLOORED_CLASSES <= 1 << 10 && LANES == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_round_trip() {
        for codes in [1, 2, 41, 254] {
            let classes = FlooredClasses::new(codes);
            let codes = codes as u8;
            for floor in 0..=255 {
                for code in 0..codes {
                    let symbol = classes.symbol(code, floor);
                    assert!(symbol < codes);
                    assert_eq!(classes.code(symbol, floor), code, "{code} above {floor}");
                }
            }
        }
    }

    #[test]
    fn classes_are_in_bounds() {
        for codes in [1, 2, 41, 254] {
            let classes = FlooredClasses::new(codes);
            let mut seen = std::collections::BTreeSet::new();
            for case in 0..50_000u32 {
                let hash = blake3::hash(&case.to_le_bytes());
                let byte = |at: usize| hash.as_bytes()[at];
                // Half of them smooth.
                let code = |at: usize| if case % 2 == 0 { byte(at) } else { byte(0) / 2 + byte(at) % 4 };
                let steps: Vec<Step> = (0..4).map(|at| [code(at) % codes as u8; LANES]).collect();
                let floors: Vec<Step> =
                    (4..8).map(|at| [if byte(20) & 1 << at == 0 { 255 } else { byte(at) }; LANES]).collect();
                let class = |floors: &[Step]| classes.of(&Around::of(usize::from(byte(8) % 4), 2, &steps, floors), 0);
                seen.insert(class(&floors));
                // Every floor that is no code says that there is none.
                let none = |floor: u8| if usize::from(floor) < codes { floor } else { codes as u8 };
                let smallest: Vec<Step> = floors.iter().map(|step| step.map(none)).collect();
                assert_eq!(class(&smallest), class(&floors));
            }
            assert!(seen.iter().all(|&class| usize::from(class) < FLOORED_CLASSES));
            assert!(codes < 41 || seen.len() > 200, "{codes}: {}", seen.len());
        }
    }
}
