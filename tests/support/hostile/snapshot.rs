//! Snapshots with right checksums and any values in their range.

use super::run::is_temporary;
use super::{SmallBuild, split};
use crate::stored_scores::{StoredScores, accepted};
use check::{Databases, certify};
use disk::MemoryDisk;
use game::{PositionSet, Rules};
use oracle::Library;
use std::path::PathBuf;
use std::sync::OnceLock;
use store::{CachedScores, Codec, Scores};

/// A snapshot of a build that was killed.
struct SnapshotCase {
    build: &'static SmallBuild,
    path: PathBuf,
    saved: StoredScores,
}

fn snapshots() -> &'static [SnapshotCase] {
    static SNAPSHOTS: OnceLock<Vec<SnapshotCase>> = OnceLock::new();
    SNAPSHOTS.get_or_init(|| {
        let snapshots_of = |build: &'static SmallBuild| {
            let disk = build.disk();
            let is_saved = |path: &&PathBuf| path.starts_with(SmallBuild::path("snapshots")) && !is_temporary(path);
            let paths = build.files().keys().filter(is_saved);
            let found = paths.filter_map(move |path| {
                let saved = StoredScores { codec: Codec::Packed, ..StoredScores::read(&disk, path).ok()? };
                Some(SnapshotCase { build, path: path.clone(), saved })
            });
            found.collect::<Vec<_>>()
        };
        SmallBuild::all().into_iter().flat_map(snapshots_of).collect()
    })
}

/// Changes the values of a snapshot, which the first byte chooses. A run that resumes from it builds the
/// right scores, or scores that verification refuses and the next run rebuilds. A certificate refuses wrong
/// scores that are consistent.
pub fn snapshot(bytes: &[u8]) {
    let Some((choice, changes)) = split(bytes) else { return };
    let snapshots = snapshots();
    snapshots[usize::from(choice) % snapshots.len()].try_on(changes);
}

impl SnapshotCase {
    fn try_on(&self, changes: &[u8]) {
        let SnapshotCase { build, path, saved } = self;
        let StoredScores { range, scores, .. } = saved;
        let span = i16::from(range.high()) - i16::from(range.low()) + 1;
        let changed: Vec<i8> = scores
            .iter()
            .zip(changes.iter().copied().chain(std::iter::repeat(0)))
            .map(|(&score, change)| {
                let from_low = i16::from(score) - i16::from(range.low()) + i16::from(change);
                (i16::from(range.low()) + from_low % span) as i8
            })
            .collect();
        let disk: MemoryDisk = build.disk();
        StoredScores { scores: changed.clone(), ..saved.clone() }.write(&disk, path);
        build.run_until_done(&disk);
        for (different, _) in build.differences(&disk) {
            assert_ne!(changed, *scores, "{}: {}", build.name(), different.display());
            let stones = Library::stones_of(&different);
            assert!(stones.is_none_or(|stones| !is_proved(&disk, stones)), "{}: {stones:?}", build.name());
        }
    }
}

fn is_proved(disk: &MemoryDisk, stones: u32) -> bool {
    let mut databases = Databases::new(Rules::AWARI, PositionSet::All);
    for stones in 0..=stones {
        let file =
            Scores::open(disk, &SmallBuild::path(&format!("databases/{stones:02}.awari"))).expect("it was built");
        databases.insert(stones, CachedScores::new(accepted(file), 0)).expect("as many scores as positions");
    }
    certify(&databases, stones).is_ok()
}

pub(super) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (choice, snapshot) in snapshots().iter().enumerate() {
        let folder = snapshot.path.parent().and_then(|parent| parent.file_name()).unwrap_or_default();
        let name = format!("{}-{}", snapshot.build.name(), folder.display()).replace(' ', "-");
        for (how, change) in [("as-is", 0), ("all-other", 3), ("far-off", 101)] {
            let changes = vec![change; snapshot.saved.scores.len()];
            seeds.push(("snapshot", format!("{name}-{how}"), [&[choice as u8], &changes[..]].concat()));
        }
    }
    seeds
}
