//! Archives: files of scores coded with a floor for each, the smallest form.
//!
//! A floor is a value that a score is at least. For a database it is the best capture, which follows from the smaller
//! databases. The reader must provide the floors that were given to
//! [`Writer::append_band`](crate::Writer::append_band).

use crate::error::Result;
use crate::identity::Identity;
use crate::scores::Scores;
use crate::scores::open::Unverified;
use crate::shape::Shape;
use crate::value_range::ValueRange;
use disk::Digest;
use std::ops::Range;
use std::path::Path;

/// An open archive, read band by band given the floors.
#[derive(Debug)]
pub struct Archive(Scores);

impl Archive {
    /// Accepts an open file if it has the expected identity and shape.
    ///
    /// # Errors
    /// [`StoreError::Mismatch`](crate::StoreError::Mismatch) with both sides.
    pub fn expect(file: Unverified, identity: &Identity, shape: &Shape) -> Result<Self> {
        file.expect_any(identity, shape).map(Archive)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// The values it may hold.
    pub fn range(&self) -> ValueRange {
        self.0.range()
    }

    /// The digest of its scores in the footer. Wrong floors give wrong scores, so the caller compares the digest of
    /// what it read.
    pub fn digest(&self) -> Digest {
        self.0.digest()
    }

    /// The number of bands.
    pub fn bands(&self) -> usize {
        self.0.block_count()
    }

    /// The positions of a band, in canonical order: whole rows of a slab, at most 8,388,608 positions.
    ///
    /// # Panics
    /// If there is no such band.
    pub fn band(&self, band: usize) -> Range<u64> {
        self.0.block_range(band)
    }

    /// The scores of a band, given their floors.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) if the band is damaged; possibly also if the floors differ
    /// from those given to the writer.
    ///
    /// # Panics
    /// If there is no such band, or `floors` or `out` is not as long as the band.
    pub fn read_band(&self, band: usize, floors: &[i8], out: &mut [i8]) -> Result<()> {
        let positions = self.band(band);
        let count = positions.end - positions.start;
        assert_eq!((floors.len() as u64, out.len() as u64), (count, count), "as many as positions in the band");
        self.0.decode_floored(band, floors, out)
    }

    /// Compares the checksums of all bands, on all threads.
    ///
    /// # Errors
    /// As [`Scores::verify_blocks`].
    pub fn verify_blocks(&self) -> Result<()> {
        self.0.verify_blocks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreError;
    use crate::scores::tests::{Example, Way};
    use crate::{Codec, Scores, Writer};
    use disk::MemoryDisk;

    /// Scores in bands, floors that most of them are, and the file.
    fn archive(example: &Example) -> (Vec<i8>, MemoryDisk) {
        let floor = |(at, &score): (usize, &i8)| if at % 4 == 0 { i8::MIN } else { score - i8::from(at % 7 == 0) };
        let floors: Vec<i8> = example.scores.iter().enumerate().map(floor).collect();
        let disk = MemoryDisk::new();
        let Example { identity, shape, range, scores } = example;
        let path = Example::path();
        let mut writer = Writer::create(&disk, &path, identity, shape, *range, Codec::Floors).unwrap();
        while let Some(band) = writer.next_band() {
            let band = band.start as usize..band.end as usize;
            writer.append_band(&scores[band.clone()], &floors[band]).unwrap();
        }
        let written = writer.finish().unwrap();
        assert_eq!(written.digest, Digest::of_i8(scores));
        (floors, disk)
    }

    #[test]
    fn scores_round_trip_with_floors() {
        for example in [Example::small(), Example::strips(), Example::large(), Example::new(&[(4000, 1100)], -20, 20)] {
            let (floors, disk) = archive(&example);
            for way in Way::ALL {
                let file = way.open(&disk, &Example::path()).unwrap();
                let archive = Archive::expect(file, &example.identity, &example.shape).unwrap();
                archive.verify_blocks().unwrap();
                let mut found = vec![99; example.scores.len()];
                for band in 0..archive.bands() {
                    let at = archive.band(band);
                    let at = at.start as usize..at.end as usize;
                    archive.read_band(band, &floors[at.clone()], &mut found[at]).unwrap();
                }
                assert!(found == example.scores);
                assert_eq!(Digest::of_i8(&found), archive.digest());
                let bytes = example.file(Codec::Rans).len() as u64;
                assert!(
                    example.scores.len() < 100_000 || archive.bytes() < bytes * 3 / 4,
                    "{} of {bytes}",
                    archive.bytes()
                );
            }
        }
    }

    /// Pins the format, as `golden_files` does.
    #[test]
    fn a_golden_file() {
        let (_, disk) = archive(&Example::strips());
        let file = disk.peek(&Example::path()).unwrap();
        assert_eq!(format!("{:.16}", Digest::of(&file)), "c796abb111741f9f");
    }

    #[test]
    fn an_archive_is_no_database() {
        let example = Example::strips();
        let (_, disk) = archive(&example);
        let file = Scores::open(&disk, &Example::path()).unwrap();
        let error = file.expect(&example.identity, &example.shape).unwrap_err();
        assert!(matches!(error, StoreError::Archive { .. }), "{error}");
        let mut other = example.identity.clone();
        other.stones = 13;
        let file = Scores::open(&disk, &Example::path()).unwrap();
        assert!(matches!(Archive::expect(file, &other, &example.shape), Err(StoreError::Mismatch { .. })));
    }

    #[test]
    fn damage_is_found() {
        let example = Example::strips();
        let (floors, disk) = archive(&example);
        let whole = disk.peek(&Example::path()).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            disk.put(&Example::path(), &changed);
            let Ok(file) = Scores::open(&disk, &Example::path()) else { continue };
            let Ok(archive) = Archive::expect(file, &example.identity, &example.shape) else { continue };
            assert!(archive.verify_blocks().is_err(), "byte {at}");
            let mut refused = 0;
            for band in 0..archive.bands() {
                let at = archive.band(band);
                let at = at.start as usize..at.end as usize;
                let mut found = vec![99; at.len()];
                match archive.read_band(band, &floors[at.clone()], &mut found) {
                    Ok(()) => assert!(found == example.scores[at]),
                    Err(error) => refused += usize::from(error.is_damage()),
                }
            }
            assert_eq!(refused, 1, "byte {at}");
        }
    }
}
