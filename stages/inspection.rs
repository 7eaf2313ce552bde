//! Inspection of the files of a run directory: what they are by their headers.

use crate::bounds::PlaneFile;
use crate::files;
use crate::kind::{FamilyContent, FileFamily};
use disk::{Digest, Disk, DiskError};
use game::Rules;
use pipeline::{ArtifactName, ArtifactSpec, Inspection};
use planner::Settings;
use std::collections::BTreeMap;
use std::path::Path;
use store::{FileKind, Identity, Scores, Shape, StoreError};

/// Upper bound on a report.
const REPORT_BYTES_MAX: u64 = 1 << 20;

/// Inspects the file of an artifact, which belongs to a family.
///
/// # Errors
/// If the operating system fails.
pub(crate) fn inspect(
    settings: &Settings,
    disk: &dyn Disk,
    path: &Path,
    artifact: &ArtifactSpec,
    family: &FileFamily,
) -> Result<Inspection, DiskError> {
    match family.content {
        FamilyContent::Report(needs) => match needs(artifact, path) {
            Some(needed) if disk.bytes(&needed)?.is_none() => Ok(Inspection::Absent),
            _ => inspect_report(disk, path),
        },
        FamilyContent::Values(kind_by) => inspect_values(settings, disk, path, |rules| kind_by(artifact, rules)),
    }
}

fn inspect_report(disk: &dyn Disk, path: &Path) -> Result<Inspection, DiskError> {
    match disk.read(path, REPORT_BYTES_MAX) {
        Ok(text) => Ok(Inspection::Header { digest: Digest::of(&text), identity: Default::default() }),
        Err(error) if error.is_not_found() => Ok(Inspection::Absent),
        Err(error @ DiskError::TooLarge { .. }) => Ok(Inspection::Unreadable(error.to_string())),
        Err(error) => Err(error),
    }
}

fn inspect_values(
    settings: &Settings,
    disk: &dyn Disk,
    path: &Path,
    kind_by: impl Fn(&Rules) -> FileKind,
) -> Result<Inspection, DiskError> {
    let opened = Scores::open_windowed(disk, path);
    // A sound file of other rules is no damage, also where these rules have other kinds of files.
    let rules = opened.as_ref().ok().and_then(|file| Rules::by_name(&file.identity().rules));
    let kind = kind_by(&rules.unwrap_or(settings.rules));
    Ok(match opened {
        Err(StoreError::Disk(error)) if error.is_not_found() => Inspection::Absent,
        Err(StoreError::Disk(error)) => return Err(error),
        Err(error) if error.is_damage() => Inspection::Damaged(error.what()),
        Err(error) => Inspection::Unreadable(error.what()),
        Ok(file) if file.identity().kind != kind => {
            Inspection::Unreadable(format!("it is {}, not a {kind}", file.identity()))
        }
        Ok(file) if file.range() != files::range(kind, u32::from(file.identity().stones)) => {
            Inspection::Unreadable(format!("its header announces values in {}, which are impossible", file.range()))
        }
        Ok(file) if !is_laid_out(settings, file.identity(), file.shape()) => Inspection::Unreadable(format!(
            "it is {} with {}, which does not match its name",
            file.identity(),
            file.shape()
        )),
        Ok(file) => {
            let header = file.identity();
            let identity = [
                ("rules", header.rules.clone()),
                ("positions", header.positions.clone()),
                ("stones", header.stones.to_string()),
            ];
            let identity = identity.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            let mut identity: BTreeMap<_, _> = identity;
            if let FileKind::Plane { bound, .. } = header.kind {
                identity.insert("bound".to_owned(), bound.to_string());
            }
            // The shape shows the opening, and was compared.
            let opening =
                settings.set.opening(header.stones.into()).filter(|_| header.positions == settings.set.to_string());
            if let (FileKind::Database | FileKind::Bounds, Some(opening)) = (header.kind, opening) {
                identity.insert("opening".to_owned(), opening.pit_stones().to_string());
            }
            Inspection::Header { digest: file.digest(), identity }
        }
    })
}

/// Whether a file has the orientation and the shape of its number of stones. Files for other rules or positions
/// have other shapes and are not checked: their identity differs.
fn is_laid_out(settings: &Settings, found: &Identity, shape: &Shape) -> bool {
    let Settings { rules, set, .. } = settings;
    let expected = files::identity(rules.name, *set, found.kind, found.stones.into());
    let has_shape = || *shape == files::shape_of(*set, found.kind, found.stones.into());
    // The reader of a plane compares its columns, which are bytes of bits.
    let is_plane = matches!(found.kind, FileKind::Plane { .. });
    found.orientation == expected.orientation && (is_plane || found.positions != expected.positions || has_shape())
}

/// Returns the name of the artifact that a file is by its header; `None` if it is none.
pub(crate) fn recognised(disk: &dyn Disk, path: &Path) -> Option<ArtifactName> {
    // A link, a pipe or another file that cannot be opened was not written by awari.
    let file = Scores::open_windowed(disk, path).ok()?;
    let stones = u32::from(file.identity().stones);
    match file.identity().kind {
        FileKind::Database | FileKind::Bounds => Some(files::database(stones)),
        FileKind::Capture | FileKind::BoundCaptures => Some(files::capture(stones)),
        FileKind::Plane { role, bound } => Some(PlaneFile::of(role, bound.into()).name(stones)),
        FileKind::Snapshot | FileKind::BoundSnapshot => None,
    }
}
