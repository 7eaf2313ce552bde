//! Files of scores, read whole and written with other scores.

use disk::Disk;
use std::path::Path;
use store::{Codec, Identity, Scores, Shape, StoreError, Unverified, ValueRange, write};

/// A file of scores with its header.
#[derive(Clone, Debug)]
pub struct StoredScores {
    /// Identity.
    pub identity: Identity,
    /// Shape.
    pub shape: Shape,
    /// Range of the scores.
    pub range: ValueRange,
    /// Codec.
    pub codec: Codec,
    /// All scores.
    pub scores: Vec<i8>,
}

impl StoredScores {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be opened.
    ///
    /// # Panics
    /// If a block is damaged.
    pub fn read(disk: &dyn Disk, path: &Path) -> Result<StoredScores, StoreError> {
        let file = Scores::open(disk, path)?;
        let (identity, range, codec) = (file.identity().clone(), file.range(), file.codec());
        let file = accepted(file);
        let shape = file.shape().clone();
        let mut scores = vec![0; shape.positions() as usize];
        file.read_into(&mut scores).expect("the file is not damaged");
        Ok(StoredScores { identity, shape, range, codec, scores })
    }

    /// Writes a file with this header and these scores.
    ///
    /// # Panics
    /// If a score is out of range, or the disk fails.
    pub fn write(&self, disk: &dyn Disk, path: &Path) {
        let StoredScores { identity, shape, range, codec, scores } = self;
        write(disk, path, identity, shape, *range, *codec, scores).expect("the scores are in the range");
    }
}

/// Accepts a file as what its header says.
pub fn accepted(file: Unverified) -> Scores {
    let (identity, shape) = (file.identity().clone(), file.shape().clone());
    file.expect(&identity, &shape).expect("a file is what it says it is")
}
