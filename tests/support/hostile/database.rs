//! Files of scores: databases, captures, planes and snapshots, which share a format.

use super::{content_digest, example_files, run, seal_scores, split};
use crate::stored_scores::accepted;
use disk::MemoryDisk;
use std::path::Path;
use store::{Archive, CachedScores, Codec, Scores, StoreError, Unverified, Window};

/// Files of more positions are not read as a whole.
const POSITIONS_MAX: u64 = 1 << 20;

/// The bit of the first byte that asks for right checksums.
const SEAL: u8 = 1;

/// Reads a file of scores: it is refused, or all ways of reading agree with each other, the digest and the
/// range. Bit 0 of the first byte asks for right checksums, so that only the digest can reveal changes.
pub fn database(bytes: &[u8]) {
    let Some((choice, file)) = split(bytes) else { return };
    let mut file = file.to_vec();
    let sealed = choice & SEAL != 0;
    if sealed {
        seal_scores(&mut file);
    }
    let disk = MemoryDisk::new();
    let path = Path::new("00.awari");
    disk.put(path, &file);
    let opened = [Scores::open(&disk, path), Scores::open_windowed(&disk, path)];
    let [mapped, windowed] = match opened {
        [Ok(mapped), Ok(windowed)] => [mapped, windowed],
        [Err(mapped), Err(windowed)] => {
            assert_eq!(mapped.to_string(), windowed.to_string(), "both ways refuse with the same error");
            assert!(mapped.is_damage() || matches!(mapped, StoreError::Version { .. }), "{mapped}");
            return;
        }
        [mapped, windowed] => panic!("opened in one way only: {mapped:?}, {windowed:?}"),
    };
    if mapped.codec() == Codec::Floors {
        return archives(mapped, windowed);
    }
    let [mapped, windowed] = [mapped, windowed].map(accepted);
    let positions = mapped.shape().positions();
    assert!(mapped.block_count() <= file.len() / 24, "each block has an entry in the index");
    assert_eq!(mapped.damaged_blocks(), windowed.damaged_blocks());
    if positions > POSITIONS_MAX {
        ends(&mapped);
        ends(&windowed);
        return;
    }
    let whole = read(&mapped, sealed, &file);
    assert!(whole == read(&windowed, sealed, &file), "both ways read alike");
    rows(&disk, path, whole.as_deref());
}

/// Reads an archive with several floors: both ways of opening agree on scores in the range, or on damage.
fn archives(mapped: Unverified, windowed: Unverified) {
    let [mapped, windowed] = [mapped, windowed].map(|file| {
        let (identity, shape) = (file.identity().clone(), file.shape().clone());
        (shape.positions(), Archive::expect(file, &identity, &shape).expect("a file is what it says it is"))
    });
    let (positions, mapped) = mapped;
    if positions > POSITIONS_MAX {
        return;
    }
    for band in 0..mapped.bands() {
        let count = (mapped.band(band).end - mapped.band(band).start) as usize;
        let any = (0..count).map(|at| (at % 7) as i8).collect();
        for floors in [vec![mapped.range().high(); count], vec![i8::MIN; count], any] {
            let [read, other] = [&mapped, &windowed.1].map(|archive| {
                let mut scores = vec![0; count];
                match archive.read_band(band, &floors, &mut scores) {
                    Ok(()) => Some(scores),
                    Err(error) => {
                        assert!(error.is_damage(), "{error}");
                        None
                    }
                }
            });
            assert!(read == other, "both ways read alike");
            assert!(read.is_none_or(|scores| scores.iter().all(|&score| mapped.range().contains(score))));
        }
    }
}

/// Reads a file as a whole, by block and by score. Returns all scores if none is damaged.
fn read(scores: &Scores, sealed: bool, file: &[u8]) -> Option<Vec<i8>> {
    let mut whole = vec![0; scores.shape().positions() as usize];
    let sound = match scores.read_into(&mut whole) {
        Ok(()) => true,
        Err(error) => {
            assert!(error.is_damage(), "{error}");
            false
        }
    };
    let is_right = content_digest(file, &whole) == scores.digest();
    assert_eq!(scores.verify_digest().is_ok(), sound && is_right);
    // Other bytes have right checksums only by intent.
    assert!(sealed || !sound || is_right, "bytes without damage are those that were written");
    // A header without meaning is damage, even with a right checksum.
    assert!(!sealed || scores.codec() == Codec::Rans || scores.damaged_blocks().is_empty());
    let mut damaged = Vec::new();
    for block in 0..scores.block_count() {
        let range = scores.block_range(block);
        let mut decoded = vec![0; (range.end - range.start) as usize];
        let is_sound = scores.decode_block(block, &mut decoded).is_ok();
        assert!(!sound || is_sound);
        if sound {
            assert!(decoded == whole[range.start as usize..range.end as usize]);
        }
        if is_sound {
            assert!(decoded.iter().all(|&score| scores.range().contains(score)));
        } else {
            damaged.push(block);
        }
        for position in [range.start, (range.start + range.end) / 2, range.end - 1] {
            match scores.get(position) {
                Ok(score) if is_sound => assert_eq!(score, decoded[(position - range.start) as usize]),
                // A strip may be sound where another of its block is not.
                Ok(score) => assert!((sealed || scores.codec() == Codec::Rans) && scores.range().contains(score)),
                Err(error) => assert!(!is_sound && error.is_damage(), "{error}"),
            }
        }
    }
    assert_eq!(sound, damaged.is_empty());
    sound.then_some(whole)
}

/// Rows and ranges through a cache.
fn rows(disk: &MemoryDisk, path: &Path, whole: Option<&[i8]>) {
    for open in [Scores::open, Scores::open_windowed] {
        let cached = CachedScores::new(accepted(open(disk, path).expect("it was opened before")), 0);
        let mut window = Window::new();
        let mut first = 0;
        for (slab, shape) in cached.scores().shape().slabs().iter().enumerate() {
            for row in [0, shape.rows / 2, shape.rows - 1] {
                let start = first + u64::from(row) * u64::from(shape.columns);
                let end = start + u64::from(shape.columns);
                let found = cached.row(slab, row, shape.columns, &mut window);
                let mut ranged = vec![0; shape.columns as usize];
                let read = cached.read_range(start..end, &mut ranged);
                if let Some(whole) = whole {
                    let expected = &whole[start as usize..end as usize];
                    assert!(found.is_ok_and(|row| row == expected) && read.is_ok() && ranged == expected);
                }
            }
            first += shape.positions();
        }
    }
}

/// Reads the first and the last score of a large file.
fn ends(scores: &Scores) {
    for position in [0, scores.shape().positions() - 1] {
        if let Ok(score) = scores.get(position) {
            assert!(scores.range().contains(score));
        }
    }
}

/// All kinds of files in all codecs, checksums as they are and to be put right.
pub(super) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = example_files::files();
    for (build, name) in [(run::SmallBuild::sweep(), "sweep"), (run::SmallBuild::two_bit(), "two-bit")] {
        let kept = |path: &Path| path.extension().is_none_or(|extension| extension != "json");
        for (path, bytes) in build.artifacts().into_iter().filter(|(path, _)| kept(path)) {
            let file = path.file_name().map_or_else(String::new, |file| file.to_string_lossy().into_owned());
            files.push((format!("{name}-{file}"), bytes));
        }
    }
    let choices = [("as-is", 0), ("sealed", SEAL)];
    let all = files.into_iter().flat_map(|(name, bytes)| {
        choices.map(|(how, choice)| ("database", format!("{name}-{how}"), [&[choice], &bytes[..]].concat()))
    });
    all.collect()
}
