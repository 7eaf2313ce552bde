//! Artifacts: the named inputs and outputs of stages.
//!
//! An artifact is a file in the run directory (or, for a [`ArtifactKind::Verification`], a fact in
//! the journal). It is immutable: a stage publishes it whole, under its final name, or not at all.

use disk::Digest;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The name of an artifact: its path relative to the run directory, such as `databases/16`.
///
/// Parts are separated by `/`, none is empty, and none starts with a dot: a name never leads out of
/// the directory it is joined to, and never collides with a temporary.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactName(String);

/// A text that is not a valid name of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not the name of an artifact; expected a relative path such as \"databases/16\"")]
pub struct ArtifactNameError {
    /// The text that was given.
    pub found: String,
}

impl ArtifactName {
    /// The maximum length of a name, in bytes.
    const BYTES_MAX: usize = 200;

    /// Validates a name.
    ///
    /// # Errors
    /// If it is not a plain relative path.
    pub fn new(name: impl Into<String>) -> Result<Self, ArtifactNameError> {
        let name = name.into();
        let plain = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        };
        if name.len() <= Self::BYTES_MAX && name.split('/').all(plain) {
            Ok(ArtifactName(name))
        } else {
            Err(ArtifactNameError { found: name.chars().take(Self::BYTES_MAX).collect() })
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of the artifact below a directory.
    pub fn below(&self, directory: &Path) -> PathBuf {
        directory.join(&self.0)
    }
}

/// Names are ordered as their texts.
impl Borrow<str> for ArtifactName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ArtifactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ArtifactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl FromStr for ArtifactName {
    type Err = ArtifactNameError;

    fn from_str(text: &str) -> Result<Self, ArtifactNameError> {
        ArtifactName::new(text)
    }
}

impl TryFrom<String> for ArtifactName {
    type Error = ArtifactNameError;

    fn try_from(name: String) -> Result<Self, ArtifactNameError> {
        ArtifactName::new(name)
    }
}

impl From<ArtifactName> for String {
    fn from(name: ArtifactName) -> String {
        name.0
    }
}

/// The purpose of an artifact: decides when it is wanted, trusted and removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactKind {
    /// A file wanted for its own sake, whose header identifies it. If the journal is lost, the file is adopted by its
    /// header.
    Target,
    /// A file needed only by stages that will run. It is never an input in the fingerprint of an artifact made from it:
    /// the targets from which it was made are. Removed once they are verified, unless everything is kept. Adopted like
    /// a target.
    Intermediate,
    /// A file wanted for its own sake that describes its inputs (statistics). Trusted only if it is in the journal.
    Report,
    /// A journal entry without a file: targets passed the check of its stage.
    Verification,
}

impl ArtifactKind {
    /// Whether the artifact is a file.
    pub fn is_file(self) -> bool {
        self != ArtifactKind::Verification
    }

    /// Whether a file that is not in the journal is adopted by its header.
    pub fn is_adoptable(self) -> bool {
        matches!(self, ArtifactKind::Target | ArtifactKind::Intermediate)
    }
}

/// The declaration of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactSpec {
    /// Its name.
    pub name: ArtifactName,
    /// Its purpose.
    pub kind: ArtifactKind,
    /// The kind of content, whichever stage or method makes it: `database`, `capture`. Part of the fingerprint, so it
    /// never names a method.
    pub content: String,
    /// The version of the algorithm: raised when the same inputs should give different content.
    pub version: u32,
    /// The parameters that change the content (rules, positions, stones), and nothing else: neither threads nor memory,
    /// paths, codec or method. Keys that a header can hold are compared with the header.
    pub identity: BTreeMap<String, String>,
    /// Values that satisfy a key of `identity` besides the requested one: a full check where a sample is requested.
    pub accepts: BTreeMap<String, BTreeSet<String>>,
    /// For a verification only: the targets among the inputs of its stage that it vouches for. It only reads the other
    /// inputs.
    pub vouches: BTreeSet<ArtifactName>,
}

impl ArtifactSpec {
    /// An artifact of version 1 without parameters.
    pub fn new(name: ArtifactName, kind: ArtifactKind, content: &str) -> Self {
        ArtifactSpec {
            name,
            kind,
            content: content.to_owned(),
            version: 1,
            identity: BTreeMap::new(),
            accepts: BTreeMap::new(),
            vouches: BTreeSet::new(),
        }
    }

    /// Sets the version of the algorithm.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Adds a parameter that changes the content.
    #[must_use]
    pub fn identity(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.identity.insert(key.to_owned(), value.to_string());
        self
    }

    /// Accepts another value of a parameter.
    #[must_use]
    pub fn accept(mut self, key: &str, value: impl fmt::Display) -> Self {
        let values = self.accepts.entry(key.to_owned()).or_default();
        values.insert(value.to_string());
        self
    }

    /// Adds a target that a verification vouches for.
    #[must_use]
    pub fn vouch(mut self, target: ArtifactName) -> Self {
        self.vouches.insert(target);
        self
    }

    /// Whether the value `was` of a parameter is the requested one, or an accepted one.
    pub fn is_satisfied(&self, key: &str, was: &str) -> bool {
        self.identity.get(key).is_some_and(|is| is == was) || self.accepts.get(key).is_some_and(|v| v.contains(was))
    }
}

/// The result of inspecting the file of an artifact: its header, lengths and block index, not its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// The file does not exist.
    Absent,
    /// The file is complete, as far as an inspection shows.
    Header {
        /// The digest of its content, independent of the codec.
        digest: Digest,
        /// The parameters that its header holds, under the keys of [`ArtifactSpec::identity`].
        identity: BTreeMap<String, String>,
    },
    /// The file is of another kind or version, or could not be read.
    Unreadable(String),
    /// The file is of the right kind, but a checksum of it is wrong.
    Damaged(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_lead_out_of_the_directory() {
        for good in ["databases/16", "verified/3", "planes/36/12.plane", "a"] {
            assert_eq!(good.parse::<ArtifactName>().unwrap().to_string(), good);
        }
        for bad in ["", "/a", "a/", "a//b", "../a", "a/../b", ".", ".a", "a/.b", "a b", "a\\b", "ä"] {
            assert!(bad.parse::<ArtifactName>().is_err(), "{bad}");
        }
        assert!(ArtifactName::new("a".repeat(201)).is_err());
        assert!(serde_json::from_str::<ArtifactName>("\"../x\"").is_err());
    }
}
