//! The identity of a file.

use crate::error::{Result, StoreError};
use crate::shape::STONES_MAX;
use std::fmt;

/// The meaning of the values of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// The score of every position.
    Database,
    /// The best score reachable by a capturing move, or a value below all scores if there is no capture.
    Capture,
    /// Intermediate scores: a state to resume from, not a result.
    Snapshot,
    /// Two bounds of every position: all lower ones, then all upper ones.
    Bounds,
    /// As [`FileKind::Capture`], by the upper and by the lower bounds of smaller databases: the best lower bounds, then
    /// the best upper ones.
    BoundCaptures,
    /// As [`FileKind::Snapshot`], of lower bounds, then of upper ones.
    BoundSnapshot,
    /// Bits, eight positions a byte, of an unfinished database.
    Plane {
        /// The meaning of the bits.
        role: Role,
        /// The bound; 0 for files of all bounds, or without a bound.
        bound: u8,
    },
}

/// The meaning of the bits of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// One plane a bound: a capture has exactly that score.
    WinSeeds = 1,
    /// One plane a bound: no capture avoids a loss from this bound on.
    CandidateSeeds = 2,
    /// Won by a capture at the bound, not before.
    Seed = 3,
    /// Won at the bound, not before.
    Won = 4,
    /// Lost at the bound, not before.
    Lost = 5,
    /// Lost at the bound, in the orientation of the finished database.
    Decided = 6,
}

impl Role {
    fn of_tag(tag: u8) -> Option<Role> {
        use Role::{CandidateSeeds, Decided, Lost, Seed, WinSeeds, Won};
        [WinSeeds, CandidateSeeds, Seed, Won, Lost, Decided].into_iter().find(|role| *role as u8 == tag)
    }
}

/// Which half indexes the rows of the slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FileOrientation {
    /// The half of the player to move.
    MoverMajor = 1,
    /// The half of the opponent.
    OpponentMajor = 2,
}

impl FileOrientation {
    pub(crate) fn of_tag(tag: u8) -> Option<FileOrientation> {
        [FileOrientation::MoverMajor, FileOrientation::OpponentMajor].into_iter().find(|found| *found as u8 == tag)
    }
}

impl fmt::Display for FileOrientation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            FileOrientation::MoverMajor => "mover-major",
            FileOrientation::OpponentMajor => "opponent-major",
        })
    }
}

/// The identity of a file. Two files of one identity and shape hold the same scores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// What the values mean.
    pub kind: FileKind,
    /// The name of the rules: 1 to 31 printable ASCII characters.
    pub rules: String,
    /// The name of the position set, such as `all`: 1 to 15 printable ASCII characters.
    pub positions: String,
    /// Stones on the board.
    pub stones: u8,
    /// Which half indexes the rows.
    pub orientation: FileOrientation,
}

/// Bytes of a file's field for the rules, the NUL at its end included.
pub(crate) const RULES_BYTES: usize = 32;
/// Bytes of a file's field for the position set, the NUL at its end included.
pub(crate) const POSITIONS_BYTES: usize = 16;

impl Identity {
    /// Checks that the number of stones is valid and the names fit the header.
    pub(crate) fn check(&self) -> Result<()> {
        if self.stones > STONES_MAX {
            let expected = format!("at most {STONES_MAX} stones");
            return Err(StoreError::Unsupported { expected, found: self.stones.to_string() });
        }
        check_name("rules", &self.rules, RULES_BYTES)?;
        check_name("positions", &self.positions, POSITIONS_BYTES)
    }
}

pub(crate) fn is_name(text: &[u8], field_bytes: usize) -> bool {
    !text.is_empty() && text.len() < field_bytes && text.iter().all(|c| (b' '..=b'~').contains(c))
}

fn check_name(field: &str, text: &str, field_bytes: usize) -> Result<()> {
    if is_name(text.as_bytes(), field_bytes) {
        return Ok(());
    }
    Err(StoreError::Unsupported {
        expected: format!("{field} of 1 to {} printable ASCII characters", field_bytes - 1),
        found: format!("{text:?}"),
    })
}

impl FileKind {
    /// Whether the file has two values of every position, in two sections of the same slabs.
    pub const fn has_pairs(self) -> bool {
        matches!(self, FileKind::Bounds | FileKind::BoundCaptures | FileKind::BoundSnapshot)
    }

    /// Whether it is a result, rather than a file that a build makes for itself.
    pub(crate) const fn is_database(self) -> bool {
        matches!(self, FileKind::Database | FileKind::Bounds)
    }

    /// The tags of the kind and the role, and the bound.
    pub(crate) fn tags(self) -> [u8; 3] {
        match self {
            FileKind::Database => [1, 0, 0],
            FileKind::Capture => [2, 0, 0],
            FileKind::Snapshot => [3, 0, 0],
            FileKind::Bounds => [5, 0, 0],
            FileKind::BoundCaptures => [6, 0, 0],
            FileKind::BoundSnapshot => [7, 0, 0],
            FileKind::Plane { role, bound } => [4, role as u8, bound],
        }
    }

    pub(crate) fn of_tags(tags: [u8; 3]) -> Option<Self> {
        match tags {
            [1, 0, 0] => Some(FileKind::Database),
            [2, 0, 0] => Some(FileKind::Capture),
            [3, 0, 0] => Some(FileKind::Snapshot),
            [5, 0, 0] => Some(FileKind::Bounds),
            [6, 0, 0] => Some(FileKind::BoundCaptures),
            [7, 0, 0] => Some(FileKind::BoundSnapshot),
            [4, role, bound] => Role::of_tag(role).map(|role| FileKind::Plane { role, bound }),
            _ => None,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self {
            FileKind::Database => return f.pad("database"),
            FileKind::Capture => return f.pad("capture database"),
            FileKind::Snapshot => return f.pad("snapshot of an unfinished database"),
            FileKind::Bounds => return f.pad("database of pairs"),
            FileKind::BoundCaptures => return f.pad("capture database of pairs"),
            FileKind::BoundSnapshot => return f.pad("snapshot of an unfinished database of pairs"),
            FileKind::Plane { role, .. } => role,
        };
        let plane = match role {
            Role::WinSeeds => return f.pad("planes of winning captures"),
            Role::CandidateSeeds => return f.pad("planes of losing captures"),
            Role::Seed => "wins by captures",
            Role::Won => "wins",
            Role::Lost => "losses",
            Role::Decided => "decided losses",
        };
        let FileKind::Plane { bound, .. } = self else { unreachable!("others have returned") };
        f.pad(&format!("plane of {plane} at bound {bound}"))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the {} of {} stone{} (rules {}, positions {}, {})",
            self.kind,
            self.stones,
            if self.stones == 1 { "" } else { "s" },
            self.rules,
            self.positions,
            self.orientation
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(rules: &str, positions: &str) -> Identity {
        Identity {
            kind: FileKind::Capture,
            rules: rules.to_owned(),
            positions: positions.to_owned(),
            stones: 12,
            orientation: FileOrientation::OpponentMajor,
        }
    }

    #[test]
    fn prints_in_words() {
        assert_eq!(
            identity("awari", "all").to_string(),
            "the capture database of 12 stones (rules awari, positions all, opponent-major)"
        );
    }

    #[test]
    fn names_must_fit() {
        assert!(identity("awari", "reachable").check().is_ok());
        assert!(identity(&"r".repeat(31), &"p".repeat(15)).check().is_ok());
        assert!(identity(&"r".repeat(32), "all").check().is_err());
        assert!(identity("awari", &"p".repeat(16)).check().is_err());
        assert!(identity("", "all").check().is_err());
        assert!(identity("awári", "all").check().is_err());
        assert!(identity("a\0", "all").check().is_err());
        for (stones, fit) in [(48, true), (49, false), (u8::MAX, false)] {
            assert_eq!(Identity { stones, ..identity("awari", "all") }.check().is_ok(), fit);
        }
    }
}
