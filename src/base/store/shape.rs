//! The shape of a database: the sizes of its slabs.

use crate::error::{Result, StoreError};
use std::fmt;
use std::ops::Range;

/// The size of one slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlabShape {
    /// Rows, at least 1.
    pub rows: u32,
    /// Columns, at least 1.
    pub columns: u32,
}

/// The slabs of a database in canonical order: slabs ascending, each row by row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    slabs: Vec<SlabShape>,
    positions: u64,
}

/// The most stones of a database.
pub(crate) const STONES_MAX: u8 = 48;

/// The most slabs of one section: one for each of 0 to 48 stones in one half, and one for the opening position.
pub(crate) const SECTION_SLABS_MAX: usize = STONES_MAX as usize + 2;

/// The most slabs: those of two sections, in a file of pairs.
pub(crate) const SLABS_MAX: usize = 2 * SECTION_SLABS_MAX;

/// The most positions: more than any database of 48 stones has (2.8e11), and so few that bits and offsets fit `u64`.
const POSITIONS_MAX: u64 = 1 << 48;

impl SlabShape {
    /// Rows times columns.
    pub fn positions(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.columns)
    }
}

impl Shape {
    /// The shape of these slabs.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] unless there are 1 to 100 slabs, each with at least one row and
    /// column, and at most 2^48 positions together.
    pub fn new(slabs: Vec<SlabShape>) -> Result<Self> {
        let refuse = |expected: String, found: String| Err(StoreError::Unsupported { expected, found });
        if slabs.is_empty() || slabs.len() > SLABS_MAX {
            let expected = format!("1 to {SLABS_MAX} slabs");
            return refuse(expected, slabs.len().to_string());
        }
        if let Some(empty) = slabs.iter().find(|slab| slab.positions() == 0) {
            return refuse("a row and a column in each slab".into(), empty.to_string());
        }
        let positions = slabs
            .iter()
            .try_fold(0u64, |sum, slab| sum.checked_add(slab.positions()))
            .filter(|&positions| positions <= POSITIONS_MAX);
        match positions {
            Some(positions) => Ok(Shape { slabs, positions }),
            None => refuse(format!("at most {POSITIONS_MAX} positions"), "more".into()),
        }
    }

    /// The slabs, ascending.
    pub fn slabs(&self) -> &[SlabShape] {
        &self.slabs
    }

    /// Positions in all slabs together.
    pub fn positions(&self) -> u64 {
        self.positions
    }

    /// The positions of one slab, in canonical order.
    ///
    /// # Panics
    /// If there is no such slab.
    pub fn slab_positions(&self, slab: usize) -> Range<u64> {
        let first = self.slabs[..slab].iter().map(SlabShape::positions).sum();
        first..first + self.slabs[slab].positions()
    }
}

impl fmt::Display for SlabShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.rows, self.columns)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} positions in slabs", self.positions)?;
        for (m, slab) in self.slabs.iter().enumerate() {
            let separator = if m == 0 { "" } else { "," };
            write!(f, "{separator} {slab}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(slabs: &[(u32, u32)]) -> Result<Shape> {
        let slabs = slabs.iter();
        Shape::new(slabs.map(|&(rows, columns)| SlabShape { rows, columns }).collect())
    }

    #[test]
    fn slabs_follow_each_other() {
        let shape = shape(&[(1, 21), (6, 6), (21, 1)]).unwrap();
        assert_eq!(shape.positions(), 78);
        assert_eq!(shape.slab_positions(0), 0..21);
        assert_eq!(shape.slab_positions(1), 21..57);
        assert_eq!(shape.slab_positions(2), 57..78);
        assert_eq!(shape.to_string(), "78 positions in slabs 1 x 21, 6 x 6, 21 x 1");
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert!(shape(&[]).is_err());
        assert!(SLABS_MAX == 100 && shape(&[(1, 1); SLABS_MAX]).is_ok());
        assert!(shape(&[(1, 1); SLABS_MAX + 1]).is_err());
        assert!(shape(&[(1, 0)]).is_err());
        assert!(shape(&[(1 << 24, 1 << 24)]).is_ok());
        assert!(shape(&[(1 << 24, 1 << 24), (1, 1)]).is_err());
        assert!(shape(&[(u32::MAX, u32::MAX); 49]).is_err());
    }
}
