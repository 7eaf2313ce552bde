//! What a file is of.

use std::fmt;

use crate::error::StoreError;

/// What the values of a file mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The score of every position.
    Database,
    /// The best score reachable by a capturing move, or a value that says there is none.
    Capture,
    /// Scores on their way: a state to go on from, not a result.
    Snapshot,
    /// Bits, eight to a value: the values are bytes of any bits, -128 to 127, and the shape counts bytes.
    Plane,
}

/// Which half indexes the rows of the slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Orientation {
    /// The half of the player to move.
    MoverMajor,
    /// The half of the opponent.
    OpponentMajor,
}

/// What a file is of. Two files of one identity and shape hold the same scores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// What the values mean.
    pub kind: Kind,
    /// The name of the rules: 1 to 31 printable ASCII characters.
    pub rules: String,
    /// The name of the position set, such as `all`: 1 to 15 printable ASCII characters.
    pub positions: String,
    /// Stones on the board.
    pub stones: u8,
    /// Which half indexes the rows.
    pub orientation: Orientation,
}

/// Bytes of a file's field for the rules, the NUL at its end included.
pub(crate) const RULES_BYTES: usize = 32;
/// Bytes of a file's field for the position set, the NUL at its end included.
pub(crate) const POSITIONS_BYTES: usize = 16;

impl Identity {
    /// Checks that the names fit the fields of a file.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        check_name("rules", &self.rules, RULES_BYTES)?;
        check_name("positions", &self.positions, POSITIONS_BYTES)
    }
}

pub(crate) fn is_name(text: &[u8], field_bytes: usize) -> bool {
    !text.is_empty() && text.len() < field_bytes && text.iter().all(|c| (b' '..=b'~').contains(c))
}

fn check_name(field: &str, text: &str, field_bytes: usize) -> Result<(), StoreError> {
    if is_name(text.as_bytes(), field_bytes) {
        return Ok(());
    }
    Err(StoreError::Unsupported {
        expected: format!("{field} of 1 to {} printable ASCII characters", field_bytes - 1),
        found: format!("{text:?}"),
    })
}

impl Kind {
    pub(crate) fn tag(self) -> u8 {
        match self {
            Kind::Database => 1,
            Kind::Capture => 2,
            Kind::Snapshot => 3,
            Kind::Plane => 4,
        }
    }

    pub(crate) fn of_tag(tag: u8) -> Option<Self> {
        [Kind::Database, Kind::Capture, Kind::Snapshot, Kind::Plane].into_iter().find(|kind| kind.tag() == tag)
    }
}

impl Orientation {
    pub(crate) fn tag(self) -> u8 {
        match self {
            Orientation::MoverMajor => 1,
            Orientation::OpponentMajor => 2,
        }
    }

    pub(crate) fn of_tag(tag: u8) -> Option<Self> {
        [Orientation::MoverMajor, Orientation::OpponentMajor].into_iter().find(|orientation| orientation.tag() == tag)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Database => "database",
            Kind::Capture => "capture database",
            Kind::Snapshot => "snapshot of a database in the making",
            Kind::Plane => "plane",
        })
    }
}

impl fmt::Display for Orientation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Orientation::MoverMajor => "mover-major",
            Orientation::OpponentMajor => "opponent-major",
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the {} of {} stones (rules {}, positions {}, {})",
            self.kind, self.stones, self.rules, self.positions, self.orientation
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(rules: &str, positions: &str) -> Identity {
        Identity {
            kind: Kind::Capture,
            rules: rules.to_owned(),
            positions: positions.to_owned(),
            stones: 12,
            orientation: Orientation::OpponentMajor,
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
    }
}
