//! Small files of scores of unusual shapes, which are no databases.

use disk::MemoryDisk;
use game::{PositionSet, Rules};
use std::path::Path;
use store::{Codec, FileKind, Identity, Shape, SlabShape, ValueRange, Writer, write};

/// The identity of every example.
pub(super) fn identity() -> Identity {
    stages::files::identity(Rules::AWARI.name, PositionSet::All, FileKind::Database, 3)
}

/// Files with values of no bits, several blocks, several frames, one slab, and an archive.
pub(super) fn files() -> Vec<(String, Vec<u8>)> {
    let slab = |rows, columns| SlabShape { rows, columns };
    let cases = [
        ("none", vec![slab(3, 5), slab(1, 1)], (4, 4), 1),
        ("blocks", vec![slab(300, 450), slab(1, 65_536)], (-3, 3), 40_000),
        ("frames", vec![slab(19, 1000)], (-1, 1), 1),
        ("bytes", vec![slab(9, 9)], (-128, 127), 1),
    ];
    let mut files = Vec::new();
    for (name, slabs, (low, high), run) in cases {
        let scatter = |number: u64| if name == "frames" { number * number } else { number };
        let (shape, range) = (Shape::new(slabs).expect("slabs with rows and columns"), ValueRange::new(low, high));
        for codec in Codec::ALL {
            if shape.positions() > 1000 && !codec.is_compressed() {
                continue; // Too many bytes.
            }
            let disk = MemoryDisk::new();
            let span = i64::from(high) - i64::from(low) + 1;
            let value = |position: u64| (i64::from(low) + (scatter(position / run) * 37 / 11) as i64 % span) as i8;
            let values: Vec<i8> = (0..shape.positions()).map(value).collect();
            let path = Path::new("00.awari");
            write(&disk, path, &identity(), &shape, range, codec, &values).expect("the scores are in the range");
            files.push((format!("{name}-{codec}"), disk.peek(path).expect("it was written")));
        }
    }
    files.push(("archive".to_owned(), archive()));
    files
}

/// A file of scores with floors that most of them are.
fn archive() -> Vec<u8> {
    let slabs = vec![SlabShape { rows: 1, columns: 1 }, SlabShape { rows: 40, columns: 70 }];
    let (shape, range) = (Shape::new(slabs).expect("slabs with rows and columns"), ValueRange::new(-9, 9));
    let (disk, path) = (MemoryDisk::new(), Path::new("00.awari"));
    let mut writer = Writer::create(&disk, path, &identity(), &shape, range, Codec::Floors).expect("there is space");
    while let Some(band) = writer.next_band() {
        let scores: Vec<i8> = band.map(|at| (at / 70 % 5 + at % 70 / 9) as i8 - 4).collect();
        let floors: Vec<i8> =
            scores.iter().enumerate().map(|(at, score)| if at % 3 == 0 { -10 } else { *score }).collect();
        writer.append_band(&scores, &floors).expect("the scores are in the range");
    }
    writer.finish().expect("there is space");
    disk.peek(path).expect("it was written")
}
