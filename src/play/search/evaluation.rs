//! The static evaluation: an estimate of the score without looking ahead.
//!
//! It is a small network, fitted to scores of databases (see [`Training`](crate::Training)). The columns of
//! the [features](crate::features) select rows, whose sum is the first layer; two more layers follow. All
//! numbers are integers, so that the estimate is the same on every machine.
//!
//! # File
//!
//! Little-endian numbers without padding:
//!
//! ```text
//! "awari-eval\0\2"                           magic and version
//! u16 columns, u16 wide, u16 narrow          308, 64, 16
//! i16 rows[columns][wide]                    the first layer, 512 = 1
//! i16 first_bias[wide]
//! i16 direct[columns]                        what a column adds to the estimate itself, 64 = 1 stone
//! i16 second[narrow][wide]                   the second layer, 512 = 1
//! i32 second_bias[narrow]                    2^18 = 1
//! i16 last[narrow]                           the output, 512 = 1 stone
//! i32 last_bias                              2^18 = 1 stone
//! u64 checksum                               XXH3 of all bytes before it
//! ```
//!
//! Version 1 had no checksum.

use crate::board::PackedBoard;
use crate::features::{COLUMNS, FEATURES};
use crate::table::STONE;
use game::Board;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use twox_hash::XxHash3_64;

/// The width of the first layer.
pub(crate) const WIDE: usize = 64;

/// The width of the second layer.
pub(crate) const NARROW: usize = 16;

/// 1 in the first layer and in weights of the other layers.
pub(crate) const ONE: i32 = 1 << ONE_BITS;
pub(crate) const ONE_BITS: u32 = 9;

/// A stone in the direct part.
pub(crate) const DIRECT_STONE: i32 = 64;

const MAGIC: &[u8; 12] = b"awari-eval\0\x02";

/// The length of the file.
const BYTES: usize = MAGIC.len()
    + 6
    + 2 * (COLUMNS * WIDE + WIDE + COLUMNS + NARROW * WIDE + NARROW)
    + 4 * (NARROW + 1)
    + CHECKSUM_BYTES;

/// The length of the checksum.
const CHECKSUM_BYTES: usize = 8;

/// The bound of each weight of the first layer: with it, no sum overflows.
pub(crate) const ROW_MAX: i32 = i16::MAX as i32 / (FEATURES as i32 + 1);

/// An estimate of scores from features of the board.
#[derive(Clone, PartialEq, Eq)]
pub struct Evaluation {
    network: Option<Box<EvaluationNetwork>>,
}

/// The weights.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EvaluationNetwork {
    pub(crate) rows: Vec<Row>,
    pub(crate) first_bias: Row,
    pub(crate) direct: Vec<i16>,
    pub(crate) second: [Row; NARROW],
    pub(crate) second_bias: [i32; NARROW],
    pub(crate) last: [i16; NARROW],
    pub(crate) last_bias: i32,
}

/// A row of the first or of the second layer: two cache lines.
#[derive(Clone, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Row(pub(crate) [i16; WIDE]);

/// Why bytes are not an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// The first bytes are those of another format or version.
    #[error("not an evaluation of this version of the program; make it again with the stage `evaluation`")]
    Magic,
    /// The numbers of weights are others.
    #[error("an evaluation of other features: it has {found:?} columns and widths, expected {expected:?}")]
    Shape {
        /// The numbers of the file.
        found: [u16; 3],
        /// The numbers that this program has.
        expected: [u16; 3],
    },
    /// The file is cut, or has bytes after its end.
    #[error("the evaluation has {found} bytes, expected {expected}")]
    Length {
        /// The length.
        found: usize,
        /// The length that its shape requires.
        expected: usize,
    },
    /// The checksum is wrong.
    #[error("the evaluation is damaged: its checksum is {found:016x}, expected {expected:016x}")]
    Checksum {
        /// The checksum in the file.
        found: u64,
        /// The checksum of its bytes.
        expected: u64,
    },
    /// A weight is so large that sums could overflow.
    #[error("the evaluation has a weight that is out of range")]
    Range,
}

/// The evaluation that the program contains.
static SHIPPED: LazyLock<Evaluation> = LazyLock::new(|| {
    Evaluation::from_bytes(include_bytes!("evaluation.bin")).expect("a test reads the evaluation that is built in")
});

impl Default for Evaluation {
    /// The evaluation that the program contains.
    fn default() -> Evaluation {
        SHIPPED.clone()
    }
}

impl Evaluation {
    /// The folder of a run directory for an evaluation that was fitted to its databases.
    pub const FOLDER: &str = "evaluation";

    /// The name of its file there.
    pub const FILE: &str = "network.bin";

    /// The length of a file, in bytes.
    pub const FILE_BYTES: u64 = BYTES as u64;

    /// An evaluation without fitted weights: a sixth of the difference of stones, and a stone for the move.
    pub const MATERIAL: Evaluation = Evaluation { network: None };

    /// Returns the weights, if there are any.
    #[cfg(test)]
    pub(crate) fn network(&self) -> Option<&EvaluationNetwork> {
        self.network.as_deref()
    }

    pub(crate) fn new(network: EvaluationNetwork) -> Evaluation {
        Evaluation { network: Some(Box::new(network)) }
    }

    /// Returns the path of the evaluation in a run directory; there may be none.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join(Evaluation::FOLDER).join(Evaluation::FILE)
    }

    /// Reads an evaluation from the bytes of a file.
    ///
    /// # Errors
    /// [`EvaluationError`] for anything but what [`to_bytes`](Self::to_bytes) writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Evaluation, EvaluationError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(EvaluationError::Magic)?;
        if bytes.len() < MAGIC.len() + 6 {
            return Err(EvaluationError::Length { found: bytes.len(), expected: BYTES });
        }
        let mut numbers = Numbers(rest);
        let found = std::array::from_fn(|_| numbers.next_i16() as u16);
        let expected = [COLUMNS as u16, WIDE as u16, NARROW as u16];
        if found != expected {
            return Err(EvaluationError::Shape { found, expected });
        }
        if bytes.len() != BYTES {
            return Err(EvaluationError::Length { found: bytes.len(), expected: BYTES });
        }
        let (summed, checksum) = bytes.split_at(BYTES - CHECKSUM_BYTES);
        let (found, expected) = (Numbers(checksum).next_u64(), XxHash3_64::oneshot(summed));
        if found != expected {
            return Err(EvaluationError::Checksum { found, expected });
        }
        let network = EvaluationNetwork {
            rows: (0..COLUMNS).map(|_| numbers.row()).collect(),
            first_bias: numbers.row(),
            direct: (0..COLUMNS).map(|_| numbers.next_i16()).collect(),
            second: std::array::from_fn(|_| numbers.row()),
            second_bias: std::array::from_fn(|_| numbers.next_i32()),
            last: std::array::from_fn(|_| numbers.next_i16()),
            last_bias: numbers.next_i32(),
        };
        let is_small = |row: &Row| row.0.iter().all(|&weight| i32::from(weight).abs() <= ROW_MAX);
        let biases = network.second_bias.iter().chain([&network.last_bias]);
        if !network.rows.iter().chain([&network.first_bias]).all(is_small)
            || biases.into_iter().any(|bias| bias.unsigned_abs() > 1 << 28)
        {
            return Err(EvaluationError::Range);
        }
        Ok(Evaluation::new(network))
    }

    /// Writes the evaluation; nothing for [`MATERIAL`](Self::MATERIAL).
    pub fn to_bytes(&self) -> Vec<u8> {
        let Some(network) = &self.network else { return Vec::new() };
        let mut bytes = MAGIC.to_vec();
        let mut words = |numbers: &[i16]| bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        words(&[COLUMNS as i16, WIDE as i16, NARROW as i16]);
        network.rows.iter().chain([&network.first_bias]).for_each(|row| words(&row.0));
        words(&network.direct);
        network.second.iter().for_each(|row| words(&row.0));
        bytes.extend(network.second_bias.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(network.last.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(network.last_bias.to_le_bytes());
        bytes.extend(XxHash3_64::oneshot(&bytes).to_le_bytes());
        bytes
    }

    /// Returns the estimate of the score of a position, in hundredths of a stone.
    pub fn hundredths(&self, board: &Board) -> i32 {
        let stones = board.stones() as i32;
        (self.estimate(PackedBoard::new(board)) * 100 / STONE).clamp(-stones * 100, stones * 100)
    }

    /// Returns the estimate in units of 1/[`STONE`] stone.
    #[inline]
    pub(crate) fn estimate(&self, board: PackedBoard) -> i32 {
        match &self.network {
            Some(network) => network.estimate(board),
            None => {
                const ONES: u64 = 0x0101_0101_0101_0101;
                let sum = |half: u64| (half.wrapping_mul(ONES) >> 56) as i32;
                (sum(board.mover) - sum(board.opponent)) * STONE / 6 + STONE
            }
        }
    }
}

/// Returns the estimate of a position whose bounds are known and differ, given that of the evaluation.
///
/// What such a position yields depends on how play repeats, which the position hardly tells, so the best
/// guess is near the middle. Fitted to the ends of games by least squares: 15,000 open boards of oware of 4
/// to 12 stones, from games of 3,000 nodes a move. On 7,070 boards of other games the root mean square error
/// is 3.33 stones, that of the evaluation alone 3.50, of the middle 3.35.
pub(crate) fn open_estimate(estimate: i32, low: i32, high: i32) -> i32 {
    let (low, high) = (low * STONE, high * STONE);
    let middle = (low + high) / 2;
    (estimate.clamp(low, high) / 4 + middle * 9 / 16).clamp(low, high)
}

impl std::fmt::Debug for Evaluation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.network.is_some() { "Evaluation(network)" } else { "Evaluation(material)" })
    }
}

/// Little-endian numbers of bytes that are long enough.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next<const N: usize>(&mut self) -> [u8; N] {
        let mut found = [0; N];
        let (first, rest) = self.0.split_at(N);
        found.copy_from_slice(first);
        self.0 = rest;
        found
    }

    fn next_i16(&mut self) -> i16 {
        i16::from_le_bytes(self.next())
    }

    fn next_i32(&mut self) -> i32 {
        i32::from_le_bytes(self.next())
    }

    fn next_u64(&mut self) -> u64 {
        u64::from_le_bytes(self.next())
    }

    fn row(&mut self) -> Row {
        Row(std::array::from_fn(|_| self.next_i16()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::reference;

    #[test]
    fn the_evaluation_of_the_program_is_read_as_it_is_written() {
        let bytes = include_bytes!("evaluation.bin");
        let read = Evaluation::from_bytes(bytes).unwrap();
        assert_eq!(read.to_bytes(), bytes);
        assert!(read == Evaluation::default());
    }

    /// Also far from the positions to which it was fitted: all of 6 stones.
    #[test]
    fn the_evaluation_of_the_program_is_better_than_material() {
        let solved = reference::solve_up_to(6);
        let error = |evaluation: &Evaluation| -> i32 {
            let errors = solved[6]
                .iter()
                .map(|(pits, score)| (evaluation.hundredths(&Board(*pits)) - 100 * i32::from(*score)).abs());
            errors.sum()
        };
        let (fitted, material) = (error(&Evaluation::default()), error(&Evaluation::MATERIAL));
        assert!(fitted < material / 2, "{fitted} {material}");
    }

    #[test]
    fn other_bytes_are_refused() {
        let bytes = Evaluation::default().to_bytes();
        let refused = |bytes: &[u8]| Evaluation::from_bytes(bytes).err();
        assert_eq!(refused(&[]), Some(EvaluationError::Magic));
        for cut in [MAGIC.len(), MAGIC.len() + 5, 1000, BYTES - 1] {
            assert_eq!(refused(&bytes[..cut]), Some(EvaluationError::Length { found: cut, expected: BYTES }), "{cut}");
        }
        assert!(matches!(refused(&[&bytes[..], &[0]].concat()), Some(EvaluationError::Length { .. })));
        let mut other = bytes.clone();
        other[MAGIC.len()] ^= 1;
        assert!(matches!(refused(&other), Some(EvaluationError::Shape { .. })));
        let mut large = bytes.clone();
        large[MAGIC.len() + 7] = 0x7f;
        assert!(matches!(refused(&large), Some(EvaluationError::Checksum { .. })));
        let checksum = XxHash3_64::oneshot(&large[..BYTES - CHECKSUM_BYTES]);
        large[BYTES - CHECKSUM_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(refused(&large), Some(EvaluationError::Range));
        for at in (0..BYTES).step_by(97) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(refused(&changed).is_some(), "byte {at}");
        }
    }
}
