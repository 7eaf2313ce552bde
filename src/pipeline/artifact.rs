//! Artifacts: what stages read and write, by name.
//!
//! An artifact is a file in the run directory (or, for a [`ArtifactKind::Verification`], a fact in
//! the journal). It is immutable: a stage publishes it whole, under its final name, or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use disk::Digest;
use serde::{Deserialize, Serialize};

/// The name of an artifact: its path relative to the run directory, such as `databases/16`.
///
/// Parts are separated by `/`, none is empty, and none starts with a dot: a name never leads out of
/// the directory it is joined to, and never collides with a temporary.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactName(String);

/// Not the name of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not the name of an artifact; expected a relative path such as \"databases/16\"")]
pub struct ArtifactNameError {
    /// What was given instead.
    pub found: String,
}

impl ArtifactName {
    /// A longer name was not made by us.
    const BYTES_MAX: usize = 200;

    /// Checks a name.
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

/// What an artifact is for; decides when it is wanted, believed and removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactKind {
    /// A file wanted for its own sake, which says in its header what it is. If the journal is lost
    /// it is adopted on the word of its header.
    Target,
    /// A file wanted only while a stage that will run reads it. It never counts as an input of what
    /// is made from it: the targets it was made from do. Removed once they are verified, unless
    /// everything is kept. Adopted like a target.
    Intermediate,
    /// A file wanted for its own sake that tells about its inputs (statistics). Believed only if the
    /// journal knows it.
    Report,
    /// No file: the fact, in the journal only, that targets passed the check of its stage.
    Verification,
}

impl ArtifactKind {
    /// Whether there is a file of this name.
    pub fn is_file(self) -> bool {
        self != ArtifactKind::Verification
    }

    /// Whether a file that the journal does not know is believed on the word of its header.
    pub fn is_adoptable(self) -> bool {
        matches!(self, ArtifactKind::Target | ArtifactKind::Intermediate)
    }
}

/// An artifact as the stages declare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactSpec {
    /// Its name.
    pub name: ArtifactName,
    /// What it is for.
    pub kind: ArtifactKind,
    /// What its content is, whichever stage or method makes it: `database`, `capture`. Part of the
    /// fingerprint, so it never names a method.
    pub content: String,
    /// The version of the algorithm: raised when the same inputs should give another content.
    pub version: u32,
    /// The parameters that change its content (rules, positions, stones), and nothing else: neither
    /// threads nor memory, paths, codec or method. Keys that a header can hold are compared with it.
    pub identity: BTreeMap<String, String>,
    /// Values of `identity` that do as well as the one asked for: a full check where a sample would
    /// do.
    pub accepts: BTreeMap<String, BTreeSet<String>>,
    /// For a verification, and only for it: the targets that it vouches for, among the inputs of its
    /// stage. The other inputs it only reads.
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

    /// Lets another value of a parameter do as well.
    #[must_use]
    pub fn accept(mut self, key: &str, value: impl fmt::Display) -> Self {
        let values = self.accepts.entry(key.to_owned()).or_default();
        values.insert(value.to_string());
        self
    }

    /// Lets a verification vouch for a target.
    #[must_use]
    pub fn vouch(mut self, target: ArtifactName) -> Self {
        self.vouches.insert(target);
        self
    }

    /// Whether the value `was` of a parameter is the one asked for, or does as well.
    pub fn is_satisfied(&self, key: &str, was: &str) -> bool {
        self.identity.get(key).is_some_and(|is| is == was) || self.accepts.get(key).is_some_and(|v| v.contains(was))
    }
}

/// What a look at an artifact's file found. A look is cheap: header, lengths and block index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// There is no such file.
    Absent,
    /// A complete file, as far as a look can tell.
    Header {
        /// The digest of its content, whatever its encoding.
        digest: Digest,
        /// The parameters that its header holds, under the keys of [`ArtifactSpec::identity`].
        identity: BTreeMap<String, String>,
    },
    /// It is not a file of this kind or version, or could not be read.
    Unreadable(String),
    /// A file of this kind, but not as it was written.
    Damaged(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
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
