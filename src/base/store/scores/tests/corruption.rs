//! Damaged and hostile files: an error or the scores that were written, never a panic, never another score.

use crate::codec::Form;
use crate::error::Result;
use crate::format::{FOOTER_BYTES, HEADER_FIXED_BYTES, INDEX_ENTRY_BYTES, header_bytes};
use crate::scores::tests::{Example, Parts, Way};
use crate::{CachedScores, Codec, Scores, StoreError};
use disk::{MemoryDisk, RealDisk};
use proptest::prelude::*;

/// Reads a file in every way. Returns whether anything was refused.
#[track_caller]
fn read(example: &Example, file: &[u8]) -> bool {
    let [mapped, windowed] = Way::ALL.map(|way| read_opened(example, way, file));
    assert_eq!(mapped, windowed, "both ways of opening refuse the same");
    mapped
}

#[track_caller]
fn read_opened(example: &Example, way: Way, file: &[u8]) -> bool {
    let Ok(scores) = example.open(way, file) else {
        return true;
    };
    let mut refused = false;
    let mut all = vec![99; example.scores.len()];
    match scores.read_into(&mut all) {
        Ok(()) => assert_eq!(all, example.scores),
        Err(error) => {
            assert!(error.is_damage());
            assert!(scores.verify_digest().is_err());
            refused = true;
        }
    }
    for block in 0..scores.block_count() {
        let range = scores.block_range(block);
        let (first, end) = (range.start as usize, range.end as usize);
        let mut decoded = vec![99; end - first];
        match scores.decode_block(block, &mut decoded) {
            Ok(()) => assert_eq!(decoded, example.scores[first..end]),
            Err(_) => assert!(refused),
        }
        for position in [range.start, range.end - 1] {
            match scores.get(position) {
                Ok(score) => assert_eq!(score, example.scores[position as usize]),
                Err(_) => assert!(refused),
            }
        }
    }
    let positions: Vec<u64> = (0..scores.shape().positions()).collect();
    match CachedScores::new(example.open(way, file).unwrap(), 0).gather(&positions, &mut all) {
        Ok(()) => assert!(!refused && all == example.scores),
        Err(_) => assert!(refused),
    }
    match scores.mapped() {
        Ok(None) => {}
        Ok(Some(mapped)) => assert!(!refused && mapped[..] == example.scores),
        Err(_) => assert!(refused),
    }
    assert!(refused || scores.verify_blocks().is_ok());
    refused
}

#[test]
fn every_bit_is_covered() {
    let example = Example::small();
    for codec in Codec::ALL {
        let file = example.file(codec);
        assert!(!read(&example, &file));
        for at in 0..file.len() {
            for mask in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut changed = file.clone();
                changed[at] ^= mask;
                assert!(read(&example, &changed), "{codec}: byte {at} xor {mask}");
            }
        }
    }
    let example = Example::strips();
    let file = example.file(Codec::Rans);
    assert!(!read(&example, &file));
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(read(&example, &changed), "byte {at}");
    }
}

#[test]
fn every_truncation_is_refused() {
    let example = Example::small();
    for codec in Codec::ALL {
        let file = example.file(codec);
        for length in 0..file.len() {
            let mut hole = file.clone();
            hole.remove(length);
            for way in Way::ALL {
                for part in [&file[..length], &file[length + 1..], &hole] {
                    assert!(example.open(way, part).is_err(), "{codec}, {way:?}: {length}");
                }
            }
            // A tail that never reached the disk reads as zeros on some file systems.
            let mut zeros = file.clone();
            zeros[length..].fill(0);
            assert!(read(&example, &zeros), "{codec}: {length}");
        }
    }
}

#[test]
fn garbage_at_the_end_is_refused() {
    let example = Example::small();
    let file = example.file(Codec::Packed);
    for garbage in [&[0][..], b"garbage", &file] {
        let longer = [&file[..], garbage].concat();
        let same = longer[longer.len() - file.len()..] == file;
        // A file followed by itself has a right end; what lies before it does not fit.
        for way in Way::ALL {
            let error = example.open(way, &longer).unwrap_err();
            assert!(error.is_damage(), "{same}: {error}");
        }
    }
}

#[test]
fn messages_name_file_place_and_remedy() {
    for way in Way::ALL {
        messages(way);
    }
}

fn messages(way: Way) {
    let example = Example::large();
    let mut file = example.file(Codec::Packed);
    let header = header_bytes(4);
    file[header + 100_000] ^= 4;
    let error = example.open(way, &file).unwrap().verify_blocks().unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(
            "databases/12.awari is damaged in block 2 of 8 (slab 0, positions 131072..196608): \
             expected checksum "
        ),
        "{text}"
    );
    assert!(text.ends_with("`awari run MANIFEST` rebuilds it"), "{text}");
    let last = file.len() - FOOTER_BYTES - 8 * INDEX_ENTRY_BYTES - 1;
    file[last] ^= 1;
    let scores = example.open(way, &file).unwrap();
    assert_eq!(scores.damaged_blocks(), [2, 7]);
    assert!(scores.get(131_071).is_ok());
    assert!(scores.get(131_072).is_err());
    assert!(scores.get(131_072).is_err(), "also at the second touch");
    let cached = CachedScores::new(scores, 0);
    assert!(cached.get(140_000).is_err());

    let error = example.open(way, b"short").unwrap_err().to_string();
    assert!(error.contains("found 5 bytes"), "{error}");
    let error = example.open(way, &[7; 1000]).unwrap_err().to_string();
    assert!(error.contains(r#"expected "\x89awari\r\n" at its start"#), "{error}");
    let mut file = example.file(Codec::Raw);
    file[8] = 99;
    let error = example.open(way, &file).unwrap_err();
    assert!(matches!(error, StoreError::Version { found: 99, .. }), "{error}");
}

#[test]
fn swapped_blocks_are_found() {
    let example = Example::large();
    let damaged_blocks = |parts: &Parts| {
        let [mapped, windowed] = Way::ALL.map(|way| example.open(way, &parts.assemble()).unwrap().damaged_blocks());
        assert_eq!(mapped, windowed);
        mapped
    };
    for codec in [Codec::Raw, Codec::Packed] {
        let mut parts = Parts::of(&example, codec);
        assert!(!read(&example, &parts.assemble()));
        let bytes = parts.index[0].bytes as usize;
        let (first, second) = parts.data.split_at_mut(bytes);
        first.swap_with_slice(&mut second[..bytes]);
        assert_eq!(damaged_blocks(&parts), [0, 1]);
        // Also where the index was swapped with them: a checksum knows its block.
        let checksum = parts.index[0].checksum;
        parts.index[0].checksum = parts.index[1].checksum;
        parts.index[1].checksum = checksum;
        assert_eq!(damaged_blocks(&parts), [0, 1]);
    }
}

#[test]
fn an_inconsistent_index_is_refused() {
    let example = Example::large();
    let check = |codec: Codec, change: &dyn Fn(&mut Parts)| {
        let mut parts = Parts::of(&example, codec);
        change(&mut parts);
        for way in Way::ALL {
            let error = example.open(way, &parts.assemble()).unwrap_err();
            assert!(error.is_damage(), "{way:?}: {error}");
        }
    };
    for codec in Codec::ALL {
        check(codec, &|parts| parts.index[1].offset += 1);
        check(codec, &|parts| parts.index[1].offset = u64::MAX);
        check(codec, &|parts| parts.index[0].bytes = u32::MAX);
        check(codec, &|parts| parts.index[0].bytes += 1);
        check(codec, &|parts| parts.index.truncate(1));
        check(codec, &|parts| parts.index.push(parts.index[0]));
        check(codec, &|parts| parts.data.push(0));
        check(codec, &|parts| parts.footer.index_offset = u64::MAX);
        check(codec, &|parts| parts.footer.index_bytes = u64::MAX);
        check(codec, &|parts| parts.footer.index_offset -= 1);
    }
    check(Codec::Packed, &|parts| parts.index[0].form = Form::Raw);
    check(Codec::Raw, &|parts| parts.index[0].form = Form::Packed);
    check(Codec::Zstd, &|parts| parts.index[0].form = Form::Packed);
}

/// More stones than any game has: half of what is done with them would not fit a signed byte.
#[test]
fn too_many_stones_are_refused() {
    let example = Example::small();
    for (stones, is_refused) in [(48, false), (49, true), (128, true), (255, true)] {
        let mut parts = Parts::of(&example, Codec::Packed);
        parts.header[18] = stones;
        crate::format::seal_header(&mut parts.header);
        let disk = MemoryDisk::new();
        disk.put(&Example::path(), &parts.assemble());
        for way in Way::ALL {
            assert_eq!(way.open(&disk, &Example::path()).is_err(), is_refused, "{stones}");
        }
    }
}

/// Bytes that decode to something else, under checksums that are right.
#[test]
fn forged_blocks_are_refused_or_differ_in_digest() {
    let example = Example::small();
    for codec in Codec::ALL {
        for at in 0..Parts::of(&example, codec).data.len() {
            lie(&example, codec, |data| data[at] ^= 0xFF);
        }
    }
    let example = Example::strips();
    let bytes = Parts::of(&example, Codec::Rans).data.len();
    for at in (0..bytes).step_by(3) {
        lie(&example, Codec::Rans, |data| data[at] ^= 1 << (at % 8));
    }
}

#[track_caller]
fn lie(example: &Example, codec: Codec, change: impl Fn(&mut [u8])) {
    let mut parts = Parts::of(example, codec);
    change(&mut parts.data);
    parts.reseal();
    for way in Way::ALL {
        lies_do_no_harm(example, &example.open(way, &parts.assemble()).unwrap());
    }
}

#[track_caller]
fn lies_do_no_harm(example: &Example, scores: &Scores) {
    let mut all = vec![0; example.scores.len()];
    let read = scores.read_into(&mut all);
    assert!(read.is_err() || all.iter().all(|&score| example.range.contains(score)));
    // In the last byte of a packed slab there may be bits that mean nothing.
    let same = read.is_ok() && all == example.scores;
    assert_eq!(scores.verify_digest().is_ok(), same);
    // A head that lies has no checksum that is right.
    assert!(scores.verify_blocks().is_ok() || scores.codec() == Codec::Rans && read.is_err());
    let step = if scores.codec() == Codec::Rans { 301 } else { 1 };
    for position in (0..example.shape.positions()).step_by(step) {
        let score = scores.get(position);
        assert!(score.is_err() || example.range.contains(score.unwrap()));
    }
}

/// Reads a score as a reader of a changing file does, which must never return a wrong one.
fn asked(scores: &Scores, position: u64) -> Result<i8> {
    loop {
        let edition = scores.edition();
        let found = scores.get(position);
        if scores.latest_edition() == edition {
            return found;
        }
    }
}

/// A file that is written in place after it was opened and read, then put right, then cut, then put right again.
#[test]
fn later_changes_are_noticed() {
    let example = Example::large();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("12.awari");
    let header = header_bytes(example.shape.slabs().len());
    for codec in Codec::ALL {
        for way in Way::ALL {
            let file = example.file(codec);
            std::fs::write(&path, &file).unwrap();
            let open =
                || way.open(&RealDisk::default(), &path).unwrap().expect(&example.identity, &example.shape).unwrap();
            let scores = open();
            let cached = CachedScores::new(open(), 0);
            let check = |refused: &dyn Fn(usize) -> bool| {
                let damaged = scores.damaged_blocks();
                let blocks = 0..scores.block_count();
                assert_eq!(damaged, blocks.filter(|&block| refused(block)).collect::<Vec<_>>(), "{codec} {way:?}");
                for position in (0..example.shape.positions()).step_by(9973) {
                    let right = example.scores[position as usize];
                    let block = scores.block_of(position);
                    let found = [asked(&scores, position), asked(cached.scores(), position), cached.get(position)];
                    for (at, found) in found.into_iter().enumerate() {
                        match found {
                            Ok(score) => assert_eq!(score, right, "{codec} {way:?}, {at}"),
                            Err(error) => assert!(refused(block) && error.is_damage(), "{codec} {way:?}: {error}"),
                        }
                    }
                    let (mut score, mut part) = ([0], vec![0; 1000]);
                    if let Ok(()) = scores.read_range(position..position + 1, &mut score) {
                        assert_eq!(score, [right]);
                    }
                    let range = position.min(example.shape.positions() - 1000)..;
                    if let Ok(()) = scores.read_range(range.start..range.start + 1000, &mut part) {
                        assert_eq!(part, example.scores[range.start as usize..][..1000]);
                    }
                }
            };
            let none = |_| false;
            check(&none);
            let write = |bytes: &[u8]| {
                let file = std::fs::File::options().write(true).open(&path).unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).unwrap();
            };
            let first = scores.block_of(0);
            let mut other = file.clone();
            let index = Parts::of(&example, codec).index;
            let flipped = index[first].bytes.min(2000) as usize;
            other[header..header + flipped].iter_mut().for_each(|byte| *byte ^= 0x55);
            write(&other);
            check(&|block| block == first);
            write(&file);
            check(&none);
            let cut = file.len() * 2 / 3;
            std::fs::File::options().write(true).open(&path).unwrap().set_len(cut as u64).unwrap();
            let ends = |block: usize| index[block].offset as usize + index[block].bytes as usize > cut;
            check(&ends);
            assert!(ends(scores.block_count() - 1) && !scores.is_in_place());
            let error = scores.block_damage(scores.block_count() - 1).to_string();
            assert!(error.contains("12.awari is damaged in block") && error.contains("it was cut"), "{error}");
            write(&file);
            check(&none);
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let disk = MemoryDisk::new();
        disk.put(&Example::path(), &bytes);
        for way in Way::ALL {
            prop_assert!(way.open(&disk, &Example::path()).is_err());
        }
    }

    /// Headers with a right checksum and any contents: the reader must bound what it allocates.
    #[test]
    fn random_headers_are_harmless(
        changes in prop::collection::vec((12usize..HEADER_FIXED_BYTES + 8, any::<u8>()), 1..6),
    ) {
        let example = Example::small();
        let mut parts = Parts::of(&example, Codec::Packed);
        for (at, byte) in changes {
            parts.header[at] = byte;
        }
        crate::format::seal_header(&mut parts.header);
        let disk = MemoryDisk::new();
        disk.put(&Example::path(), &parts.assemble());
        for way in Way::ALL {
            if let Ok(unverified) = way.open(&disk, &Example::path()) {
                let (identity, shape) = (unverified.identity().clone(), unverified.shape().clone());
                let scores = unverified.expect(&identity, &shape).unwrap();
                prop_assert!(shape.positions() <= 1 << 30);
                let mut all = vec![0; shape.positions() as usize];
                let _ = scores.read_into(&mut all);
                let _ = scores.verify_digest();
            }
        }
    }
}
