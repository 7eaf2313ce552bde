//! Scores written and read again, with any range, shape and codec.

use super::database;
use super::example_files::identity;
use disk::{Digest, MemoryDisk};
use std::path::Path;
use store::{Codec, Scores, Shape, SlabShape, StoreError, ValueRange, write};

/// Number of bytes that choose the case.
const CHOICE_BYTES: usize = 7;

/// Bit of the third byte that takes the pattern as it is, without mapping it into the range.
const PLAIN: u8 = 8;

/// Writes and reads scores. The first bytes choose range, codec and shape, the others a pattern of scores. Scores
/// round-trip, or the error names the first one out of range. The file also satisfies the property [`database`].
pub fn scores(bytes: &[u8]) {
    let Some((choice, pattern)) = bytes.split_at_checked(CHOICE_BYTES) else { return };
    let (low, high) = (choice[0] as i8, choice[1] as i8);
    let range = ValueRange::new(low.min(high), low.max(high));
    let codec = Codec::ALL[usize::from(choice[2]) % Codec::ALL.len()];
    let slabs = (0..1 + usize::from(choice[3]) % 3).map(|slab| SlabShape {
        rows: 1 + u32::from(choice[4]) * [1, 0, 0][slab],
        columns: 1 + u32::from(choice[5]) * [1, 5, 0][slab] + u32::from(choice[6]) * [0, 1, 256][slab],
    });
    let shape = Shape::new(slabs.collect()).expect("one to three slabs with rows and columns");
    let span = i16::from(range.high()) - i16::from(range.low()) + 1;
    // As they are, or brought into the range.
    let value = |&byte: &u8| match choice[2] & PLAIN {
        0 => (i16::from(range.low()) + i16::from(byte) % span) as i8,
        _ => byte as i8,
    };
    let pattern: Vec<i8> = pattern.iter().map(value).collect();
    let pattern = if pattern.is_empty() { vec![range.low()] } else { pattern };
    let values: Vec<i8> = pattern.iter().copied().cycle().take(shape.positions() as usize).collect();
    round_trip(&shape, range, codec, &values);
}

fn round_trip(shape: &Shape, range: ValueRange, codec: Codec, values: &[i8]) {
    let (disk, path) = (MemoryDisk::new(), Path::new("00.awari"));
    let written = write(&disk, path, &identity(), shape, range, codec, values);
    if let Some(outside) = values.iter().position(|&value| !range.contains(value)) {
        let error = written.expect_err("a score is outside of the range");
        let StoreError::OutOfRange { position, value, .. } = error else { panic!("{error}") };
        assert_eq!((position, value), (outside as u64, values[outside]));
        assert!(disk.paths().is_empty(), "nothing is left of a file that was not finished");
        return;
    }
    let written = written.expect("the scores are in the range");
    assert_eq!(written.digest, Digest::of_i8(values));
    let file = disk.peek(path).expect("it was written");
    assert_eq!(written.bytes, file.len() as u64);
    for open in [Scores::open, Scores::open_windowed] {
        let file = open(&disk, path).expect("it was written").expect(&identity(), shape).expect("as this");
        let mut found = vec![0; values.len()];
        file.read_into(&mut found).expect("it was written");
        assert!(found == values);
    }
    database(&[&[0], &file[..]].concat());
}

pub(super) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let seed = |name: &str, bytes: &[u8]| ("scores", name.to_owned(), bytes.to_vec());
    vec![
        seed("raw", &[250, 6, 0, 0, 30, 20, 1, 1, 2, 3, 4, 5]),
        seed("packed", &[250, 6, 1, 2, 9, 40, 3, 7, 7, 7, 1, 0, 0, 9, 200]),
        seed("zstd", &[232, 24, 2, 1, 200, 250, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        seed("rans", &[232, 24, 3, 1, 200, 250, 3, 20, 20, 20, 20, 19, 20, 20, 20, 1]),
        seed("blocks", &[253, 3, 1, 2, 255, 255, 255, 1, 2, 3, 4, 5, 6]),
        seed("outside", &[255, 1, PLAIN, 1, 9, 9, 9, 0, 1, 255, 0, 1, 2]),
        seed("one", &[7, 7, 2, 2, 100, 200, 0, 0]),
    ]
}
