//! Scores read are the scores written, in every way of reading, and files do not depend on threads or portions.

use crate::codec::Form;
use crate::error::Result;
use crate::hasher::HashFunction;
use crate::scores::tests::{Example, Parts, Way};
use crate::{
    BlockCache, CachedScores, Codec, FileKind, FileOrientation, Role, StoreError, Window, Writer, Written, write,
};
use disk::{Digest, Disk, MemoryDisk, RealDisk};
use proptest::prelude::*;
use std::path::Path;

#[track_caller]
fn check(example: &Example, codec: Codec) {
    let disk = MemoryDisk::new();
    let written = example.write(&disk, codec).unwrap();
    let file = disk.peek(&Example::path()).unwrap();
    assert_eq!(written.bytes, file.len() as u64);
    assert_eq!(written.digest, example.digest());

    for way in Way::ALL {
        check_read(example, codec, &disk, &written, way);
    }
}

#[track_caller]
fn check_read(example: &Example, codec: Codec, disk: &MemoryDisk, written: &Written, way: Way) {
    let unverified = way.open(disk, &Example::path()).unwrap();
    assert_eq!(unverified.identity(), &example.identity);
    assert_eq!(unverified.shape(), &example.shape);
    assert_eq!(unverified.digest(), written.digest);
    let scores = unverified.expect(&example.identity, &example.shape).unwrap();
    assert_eq!(scores.bytes(), written.bytes);
    assert_eq!(scores.codec(), codec);
    assert_eq!(scores.range(), example.range);
    assert_eq!(scores.bytes(), written.bytes);

    let positions = example.shape.positions();
    let step = (positions / 1000).max(1) as usize;
    let step = if scores.is_in_place() { step } else { step * 50 };
    for position in (0..positions).step_by(step) {
        let expect = example.scores[position as usize];
        assert_eq!(scores.get(position).unwrap(), expect, "position {position}");
    }
    let mut all = vec![99; example.scores.len()];
    scores.read_into(&mut all).unwrap();
    assert_eq!(all, example.scores);
    let mut blocks = Vec::new();
    for block in 0..scores.block_count() {
        let range = scores.block_range(block);
        assert_eq!(scores.block_of(range.start), block);
        let mut decoded = vec![99; (range.end - range.start) as usize];
        scores.decode_block(block, &mut decoded).unwrap();
        blocks.extend(decoded);
    }
    assert_eq!(blocks, example.scores);
    scores.verify_blocks().unwrap();
    scores.verify_digest().unwrap();
    assert!(scores.damaged_blocks().is_empty());

    let in_place = way == Way::Mapped && !codec.is_compressed();
    assert_eq!(scores.is_in_place(), in_place);
    let mapped = scores.mapped().unwrap();
    assert_eq!(mapped.is_some(), way == Way::Mapped && codec == Codec::Raw);
    assert!(mapped.is_none_or(|mapped| mapped[..] == example.scores));
}

#[test]
fn all_codecs_and_shapes() {
    for codec in Codec::ALL {
        check(&Example::small(), codec);
        check(&Example::large(), codec);
        check(&Example::strips(), codec);
        check(&Example::new(&[(1, 1)], 0, 0), codec);
        check(&Example::new(&[(1, 1); 49], -48, 48), codec);
        check(&Example::new(&[(300, 300), (1, 1)], -7, -7), codec);
        check(&Example::new(&[(256, 256)], 0, 1), codec);
        check(&Example::new(&[(65_537, 1), (1, 65_535)], -1, 1), codec);
        check(&Example::new(&[(100, 100)], -127, 127), codec);
        check(&Example::new(&[(100, 100)], -128, 127), codec);
    }
}

#[test]
fn ranges_of_positions() {
    let example = Example::large();
    for (codec, way) in Codec::ALL.into_iter().flat_map(|codec| Way::ALL.map(|way| (codec, way))) {
        let scores = example.open(way, &example.file(codec)).unwrap();
        let cached = CachedScores::new(example.open(way, &example.file(codec)).unwrap(), 1 << 20);
        for (start, end) in [
            (0, 0),
            (0, 1),
            (3, 300_000),
            (65_535, 65_537),
            (131_073, 131_080),
            (200_000, 200_010),
            (277_002, 277_009),
            (342_544, 342_545),
            (342_545, 342_545),
        ] {
            let expect = &example.scores[start as usize..end as usize];
            let mut found = vec![99; expect.len()];
            scores.read_range(start..end, &mut found).unwrap();
            assert_eq!(found, expect, "{start}..{end}");
            found.fill(99);
            cached.read_range(start..end, &mut found).unwrap();
            assert_eq!(found, expect, "{start}..{end}");
        }
    }
}

#[test]
fn scattered_positions() {
    let example = Example::large();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("12.awari");
    for (codec, way) in Codec::ALL.into_iter().flat_map(|codec| Way::ALL.map(|way| (codec, way))) {
        let file = example.file(codec);
        std::fs::write(&path, &file).unwrap();
        let real = way.open(&RealDisk::default(), &path).unwrap().expect(&example.identity, &example.shape).unwrap();
        let files = [example.open(way, &file).unwrap(), real].map(|scores| CachedScores::new(scores, 1 << 20));
        let positions = 0..example.shape.positions();
        for wanted in [
            Vec::new(),
            vec![0, 0, 0],
            // Blocks that follow each other, and blocks that do not.
            positions.clone().step_by(777).flat_map(|position| [position, position]).collect(),
            positions.clone().skip(70_000).step_by(140_000).collect(),
            (65_530..65_540).chain(342_540..342_545).collect(),
            positions.collect(),
        ] {
            let expected: Vec<i8> = wanted.iter().map(|&position| example.scores[position as usize]).collect();
            for file in &files {
                let mut found = vec![99; wanted.len()];
                file.gather(&wanted, &mut found).unwrap();
                assert!(found == expected, "{codec}, {way:?}: {} positions", wanted.len());
            }
        }
    }
}

#[test]
fn compression_gains_where_it_can_and_packs_elsewhere() {
    let example = Example::large();
    let bytes = |codec| example.file(codec).len();
    assert!(bytes(Codec::Rans) < bytes(Codec::Packed));
    assert!(bytes(Codec::Zstd) < bytes(Codec::Packed));
    assert!(bytes(Codec::Packed) < bytes(Codec::Raw));
    let constant = Example::new(&[(500, 500)], 3, 3);
    for codec in [Codec::Zstd, Codec::Rans] {
        assert!(Parts::of(&constant, codec).index.iter().all(|entry| entry.form == Form::Packed));
    }
    let forms = Parts::of(&Example::strips(), Codec::Rans).index.iter().map(|entry| entry.form).collect::<Vec<_>>();
    assert_eq!(forms, [Form::Packed, Form::Strips, Form::Strips]);
}

#[test]
fn threads_change_no_byte() {
    let example = Example::new(&[(4000, 5000)], -20, 20);
    for codec in Codec::ALL {
        let files = [1, 2, 3].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| example.file(codec))
        });
        assert!(files[0] == files[1] && files[0] == files[2]);
    }
}

/// Portions of any lengths make the file that one call makes.
#[test]
fn portions_change_no_byte() {
    let examples = [Example::small(), Example::large(), Example::new(&[(1, 3), (4000, 1100), (7, 9000)], -20, 20)];
    for (example, codec) in examples.iter().flat_map(|example| Codec::ALL.map(|codec| (example, codec))) {
        let file = example.file(codec);
        for portion in [1, 1000, 65_536, 100_003, 3_000_000] {
            if portion == 1 && example.scores.len() > 1000 {
                continue;
            }
            let disk = MemoryDisk::new();
            let mut writer = begin(example, codec, &disk).unwrap();
            for scores in example.scores.chunks(portion) {
                writer.append(scores).unwrap();
                writer.append(&[]).unwrap();
            }
            assert!(disk.peek(&Example::path()).is_none(), "nothing is published before the end");
            let written = writer.finish().unwrap();
            assert_eq!(written.digest, example.digest());
            assert!(disk.peek(&Example::path()).unwrap() == file, "{codec} in portions of {portion}");
        }
    }
}

fn begin<'d>(example: &Example, codec: Codec, disk: &'d MemoryDisk) -> Result<Writer<'d>> {
    Writer::create(disk, &Example::path(), &example.identity, &example.shape, example.range, codec)
}

#[test]
fn a_dropped_writer_leaves_the_old_file() {
    let example = Example::large();
    let disk = MemoryDisk::new();
    disk.put(&Example::path(), b"old");
    let mut writer = begin(&example, Codec::Packed, &disk).unwrap();
    writer.append(&example.scores[..100_000]).unwrap();
    drop(writer);
    assert_eq!(disk.peek(&Example::path()).unwrap(), b"old");
    assert_eq!(disk.paths(), [Example::path()]);
    // A score out of range is noticed once its batch is full.
    let mut wrong = example.scores.clone();
    wrong[250_000] = 25;
    let mut writer = begin(&example, Codec::Packed, &disk).unwrap();
    let error = wrong.chunks(1000).try_for_each(|scores| writer.append(scores)).unwrap_err();
    assert!(matches!(error, StoreError::OutOfRange { position: 250_000, .. }), "{error}");
    drop(writer);
    assert_eq!(disk.paths(), [Example::path()]);
}

#[test]
#[should_panic(expected = "as many scores as positions")]
fn an_incomplete_file_is_not_finished() {
    let example = Example::large();
    let disk = MemoryDisk::new();
    let mut writer = begin(&example, Codec::Raw, &disk).unwrap();
    writer.append(&example.scores[1..]).unwrap();
    let _ = writer.finish();
}

/// Version 1 had one frame a block.
#[test]
fn files_of_version_1_are_read() {
    for example in [Example::small(), Example::large()] {
        let parts = Parts::of(&example, Codec::Zstd);
        assert!(parts.index.iter().all(|entry| entry.form.version() == 1) == (parts.index.len() < 4));
        let file = parts.in_version_1(&example);
        let disk = MemoryDisk::new();
        disk.put(&Example::path(), &file);
        let written = Written { bytes: file.len() as u64, digest: Digest::of_i8(&example.scores) };
        for way in Way::ALL {
            check_read(&example, Codec::Zstd, &disk, &written, way);
        }
    }
    let mut parts = Parts::of(&Example::large(), Codec::Zstd);
    parts.header[8] = 1;
    crate::format::seal_header(&mut parts.header);
    let error = Example::large().open(Way::Mapped, &parts.assemble()).unwrap_err().to_string();
    assert!(error.contains("expected block 0 with a form of codec zstd, version 1, found"), "{error}");
}

/// Files that are not databases had the hashes of databases, and an earlier version.
#[test]
fn intermediates_of_earlier_versions_are_read() {
    let plane = FileKind::Plane { role: Role::Won, bound: 7 };
    let cases = [
        (FileKind::Capture, Codec::Packed, 1),
        (FileKind::Snapshot, Codec::Zstd, 2),
        (plane, Codec::Zstd, 3),
        (plane, Codec::SparseZstd, 4),
    ];
    for (kind, codec, version) in cases {
        let mut example = Example::large();
        example.identity.kind = kind;
        let repeated = example.scores.len() / 2;
        example.scores[..repeated].fill(0);
        let now = example.file(codec);
        assert_eq!((now[8], Parts::of(&example, codec).hash), (6, HashFunction::Xxh3), "{kind}");
        let file = Parts::of(&example, codec).in_version(version, &example);
        let disk = MemoryDisk::new();
        disk.put(&Example::path(), &file);
        let written = Written { bytes: file.len() as u64, digest: Digest::of_i8(&example.scores) };
        assert_ne!(written.digest, example.digest());
        for way in Way::ALL {
            check_read(&example, codec, &disk, &written, way);
        }
        // A version that has other hashes is not believed.
        let mut parts = Parts::of(&example, codec);
        parts.header[8] = version;
        crate::format::seal_header(&mut parts.header);
        let scores = example.open(Way::Mapped, &parts.assemble()).unwrap();
        assert!(scores.verify_blocks().is_err() && scores.verify_digest().is_err(), "{kind}");
    }
}

#[test]
fn kinds_and_orientations_round_trip() {
    for kind in
        [FileKind::Database, FileKind::Capture, FileKind::Snapshot, FileKind::Plane { role: Role::Lost, bound: 7 }]
    {
        for orientation in [FileOrientation::MoverMajor, FileOrientation::OpponentMajor] {
            let mut example = Example::small();
            example.identity.kind = kind;
            example.identity.orientation = orientation;
            example.identity.stones = 48;
            example.identity.positions = "reachable".into();
            check(&example, Codec::Packed);
        }
    }
    // Planes are read in order, and have no restart points.
    let mut plane = Example::large();
    plane.identity.kind = FileKind::Plane { role: Role::Won, bound: 7 };
    check(&plane, Codec::Zstd);
    assert!(Parts::of(&plane, Codec::Zstd).index.iter().all(|entry| entry.form != Form::Frames));
    check(&plane, Codec::SparseZstd);
    let repeated = plane.scores.len() / 2;
    plane.scores[..repeated].iter_mut().enumerate().for_each(|(at, score)| *score = i8::from(at % 100 == 0));
    check(&plane, Codec::SparseZstd);
    let forms: Vec<_> = Parts::of(&plane, Codec::SparseZstd).index.iter().map(|entry| entry.form).collect();
    assert_eq!(forms[0], Form::SparseFrame);
    assert!(forms.iter().all(|form| matches!(form, Form::SparseFrame | Form::Sparse | Form::Packed)), "{forms:?}");
}

/// A file of pairs has two sections of the same slabs, and a version of its own.
#[test]
fn pairs_round_trip() {
    for kind in [FileKind::Bounds, FileKind::BoundCaptures, FileKind::BoundSnapshot] {
        for codec in Codec::ALL {
            let mut example = Example::small();
            let slabs = example.shape.slabs().to_vec();
            let section = example.scores.clone();
            example.identity.kind = kind;
            example.shape = crate::Shape::new(slabs.repeat(2)).unwrap();
            example.scores.extend(section.iter().rev());
            check(&example, codec);
            let header = Parts::of(&example, codec).header;
            let version = if kind == FileKind::Bounds { codec.version(false).max(5) } else { 6 };
            assert_eq!(u32::from(header[8]), version, "5 is the version of databases of pairs");
            // As files of one section they would have too many slabs, and in an earlier version be unknown.
            for (at, byte) in [(8, 2), (100, slabs.len() as u8)] {
                let mut parts = Parts::of(&example, codec);
                parts.header[at] = byte;
                crate::format::seal_header(&mut parts.header);
                assert!(example.open(Way::Mapped, &parts.assemble()).is_err(), "{kind} {codec} {at}");
            }
        }
    }
}

#[test]
fn another_file_is_refused_with_both_sides() {
    let example = Example::small();
    let file = example.file(Codec::Raw);
    let mut other = example.clone();
    other.identity.stones = 13;
    let error = other.open(Way::Windowed, &file).unwrap_err();
    assert!(!error.is_damage());
    assert_eq!(
        error.to_string(),
        "databases/12.awari is the wrong file: \
         expected the database of 13 stones (rules awari, positions all, opponent-major), \
         found the database of 12 stones (rules awari, positions all, opponent-major); remove the file and rebuild \
         it with `awari run MANIFEST`"
    );
    let mut other = example.clone();
    other.shape = Example::new(&[(1, 1), (7, 3), (16, 25)], 0, 1).shape;
    let error = other.open(Way::Windowed, &file).unwrap_err().to_string();
    assert!(error.contains("1 x 1, 7 x 3, 16 x 25"), "{error}");
    assert!(error.contains("1 x 1, 3 x 7, 16 x 25"), "{error}");
}

#[test]
fn a_score_out_of_range_is_not_written() {
    let mut example = Example::large();
    example.scores[250_000] = 25;
    for codec in Codec::ALL {
        let disk = MemoryDisk::new();
        let error = example.write(&disk, codec).unwrap_err();
        assert!(matches!(error, StoreError::OutOfRange { position: 250_000, value: 25, .. }), "{error}");
        assert!(disk.paths().is_empty());
    }
    let mut example = Example::small();
    example.identity.rules = "r".repeat(32);
    let error = example.write(&MemoryDisk::new(), Codec::Raw).unwrap_err();
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error}");
}

#[test]
fn the_cache_is_bounded_and_right() {
    let example = Example::large();
    let [zstd, rans, packed] = [Codec::Zstd, Codec::Rans, Codec::Packed].map(|codec| example.file(codec));
    for blocks in [0, 1, 2, 3, 100] {
        let cache = BlockCache::new(blocks * 65_536);
        let files = [(Way::Mapped, &zstd), (Way::Mapped, &rans), (Way::Windowed, &rans), (Way::Windowed, &packed)]
            .map(|(way, file)| CachedScores::sharing(example.open(way, file).unwrap(), cache.clone()));
        for k in 0..300u64 {
            let position = k * 99_991 % example.shape.positions();
            for cached in &files {
                let expect = example.scores[position as usize];
                assert_eq!(cached.get(position).unwrap(), expect);
            }
        }
        assert!(cache.bytes() <= blocks.max(1) * 65_536);
        assert!(cache.bytes() > 0);
        assert_eq!(files[0].scores().codec(), Codec::Zstd);
        assert_eq!(files[1].scores().codec(), Codec::Rans);
    }
}

/// A probe of a zstd block caches only a frame, unless there is no map.
#[test]
fn a_probe_decodes_a_frame() {
    let example = Example::large();
    let file = example.file(Codec::Zstd);
    for (way, bytes) in [(Way::Mapped, 8_192), (Way::Windowed, 65_536)] {
        let cache = BlockCache::new(1 << 20);
        let cached = CachedScores::sharing(example.open(way, &file).unwrap(), cache.clone());
        for position in [0, 1, 8_191] {
            assert_eq!(cached.get(position).unwrap(), example.scores[position as usize]);
        }
        assert_eq!(cache.bytes(), bytes);
        assert_eq!(cache.decoded(), 1);
    }
}

/// Rows within a block, across one border and across several, from a cache of two blocks.
#[test]
fn rows_through_a_window() {
    let example = Example::large();
    for (codec, way) in Codec::ALL.into_iter().flat_map(|codec| Way::ALL.map(|way| (codec, way))) {
        let file = example.file(codec);
        let cache = BlockCache::new(2 * 65_536);
        let files = [0, 1].map(|_| CachedScores::sharing(example.open(way, &file).unwrap(), cache.clone()));
        let mut window = Window::new();
        for (m, slab) in example.shape.slabs().iter().enumerate() {
            let first = example.shape.slab_positions(m).start as usize;
            for row in 0..slab.rows {
                let expect = &example.scores[first + (row * slab.columns) as usize..][..slab.columns as usize];
                for cached in &files {
                    assert_eq!(cached.row(m, row, slab.columns, &mut window).unwrap(), expect, "slab {m}, row {row}");
                }
            }
        }
        assert!(cache.bytes() <= 2 * 65_536);
        assert!(cache.decoded() >= 2 * files[0].scores().block_count() as u64 || codec == Codec::Rans);
    }
    let mut damaged = example.file(Codec::Packed);
    damaged[crate::format::header_bytes(4) + 100_000] ^= 1;
    let cached = CachedScores::new(example.open(Way::Windowed, &damaged).unwrap(), 0);
    let error = cached.row(0, 0, 200_003, &mut Window::new()).unwrap_err();
    assert!(error.is_damage(), "{error}");
    assert!(cached.row(1, 3, 1000, &mut Window::new()).is_ok());
}

#[test]
fn one_file_serves_many_threads() {
    let example = Example::large();
    for codec in Codec::ALL {
        for way in Way::ALL {
            let scores = example.open(way, &example.file(codec)).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..4u64 {
                    let (scores, example) = (&scores, &example);
                    scope.spawn(move || {
                        for k in 0..50 {
                            let position = (thread + k * 7919) % example.shape.positions();
                            let expect = example.scores[position as usize];
                            assert_eq!(scores.get(position).unwrap(), expect);
                        }
                    });
                }
            });
        }
    }
}

#[test]
fn an_absent_file_is_not_found() {
    for way in Way::ALL {
        let error = way.open(&MemoryDisk::new(), Path::new("none")).unwrap_err();
        assert!(matches!(error, StoreError::Disk(e) if e.is_not_found()));
    }
}

#[test]
fn the_real_disk_does_the_same() {
    let example = Example::large();
    let directory = tempfile::tempdir().unwrap();
    for codec in Codec::ALL {
        let path = directory.path().join("databases").join(codec.to_string());
        let Example { identity, shape, range, scores } = &example;
        let written = write(&RealDisk::default(), &path, identity, shape, *range, codec, scores).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), example.file(codec));
        for way in Way::ALL {
            let read = way.open(&RealDisk::default(), &path).unwrap().expect(identity, shape).unwrap();
            assert_eq!(read.digest(), written.digest);
            read.verify_digest().unwrap();
        }
    }
    let names = RealDisk::default().list(&directory.path().join("databases")).unwrap();
    assert_eq!(names.len(), Codec::ALL.len(), "no temporaries: {names:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_shapes_and_ranges(
        slabs in prop::collection::vec((1u32..40, 1u32..40), 1..6),
        low: i8,
        high: i8,
        codec in prop::sample::select(&Codec::ALL),
    ) {
        check(&Example::new(&slabs, low.min(high), low.max(high)), codec);
    }
}
