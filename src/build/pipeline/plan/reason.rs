//! The reason why a stage runs, as a sentence that names the two values that differ.

use crate::artifact::ArtifactName;
use crate::stage::StageName;
use disk::clock;
use serde::Serialize;
use std::fmt;

/// The reason why a stage runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the doc of a variant explains its fields")]
pub enum Reason {
    /// An output is absent.
    Absent { artifact: ArtifactName },
    /// An output was made for other values than the requested ones.
    Changed {
        artifact: ArtifactName,
        /// The field that differs: a parameter, `version`, `content digest`, or the name of an input.
        field: String,
        was: String,
        is: String,
    },
    /// The user forced the stage.
    Forced,
    /// An input comes from a stage that runs too. If its content does not change, this stage need not run.
    After { stage: StageName, artifact: ArtifactName },
    /// An output is damaged.
    Damaged { artifact: ArtifactName, what: String },
    /// An output was made from a source that was found wrong later, and may have been wrong already.
    Doubtful {
        artifact: ArtifactName,
        source: ArtifactName,
        /// When the source was found wrong, in seconds since 1970.
        found_at: u64,
        /// When the source was last known to be good before that; `None` if unknown.
        good_at: Option<u64>,
    },
    /// An output cannot be read.
    Unreadable { artifact: ArtifactName, what: String },
    /// Targets have not been checked, or not since damage was found.
    NotVerified { artifacts: Vec<ArtifactName> },
    /// An output exists, but is not in the journal, and its kind is not adopted.
    NotRecorded { artifact: ArtifactName },
    /// A stage that runs reads an intermediate that was not kept.
    NeededBy { stage: StageName, artifact: ArtifactName },
}

impl Reason {
    /// Whether something exists that is out of date, as opposed to absent or forced: `frozen` forbids rebuilding it.
    pub fn is_stale(&self) -> bool {
        match self {
            Reason::Changed { .. }
            | Reason::After { .. }
            | Reason::Damaged { .. }
            | Reason::Doubtful { .. }
            | Reason::Unreadable { .. } => true,
            Reason::Absent { .. }
            | Reason::Forced
            | Reason::NotVerified { .. }
            | Reason::NotRecorded { .. }
            | Reason::NeededBy { .. } => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Absent { artifact } => write!(f, "{artifact} is absent"),
            Reason::Changed { artifact, field, was, is } => {
                write!(f, "{artifact} is out of date: {field} recorded: {was}; ")?;
                match field.as_str() {
                    "version" | "content" => write!(f, "this program makes {is}"),
                    "content digest" => write!(f, "found {is}"),
                    // The name of an input.
                    name if name.contains('/') => write!(f, "found {is}"),
                    _ => write!(f, "the manifest asks for {is}"),
                }
            }
            Reason::Forced => write!(f, "forced"),
            Reason::After { stage, artifact } => {
                write!(f, "after {stage}, if {artifact} changes")
            }
            Reason::Damaged { artifact, what } => write!(f, "{artifact} is damaged: {what}"),
            Reason::Doubtful { artifact, source, found_at, good_at } => {
                let found = clock::utc(*found_at);
                let good =
                    good_at.map_or("never checked before".to_owned(), |at| format!("last good {}", clock::utc(at)));
                write!(f, "{artifact} was made from {source}, which was found wrong {found} ({good})")
            }
            Reason::Unreadable { artifact, what } => {
                write!(f, "{artifact} cannot be read: {what}")
            }
            Reason::NotVerified { artifacts } => {
                let names: Vec<&str> = artifacts.iter().map(ArtifactName::as_str).collect();
                match names.len() {
                    1 => write!(f, "{} is not verified yet", names[0]),
                    _ => write!(f, "{} are not verified yet", names.join(", ")),
                }
            }
            Reason::NotRecorded { artifact } => {
                write!(f, "{artifact} is not in the journal")
            }
            Reason::NeededBy { stage, artifact } => {
                write!(f, "{stage} needs {artifact}, which was not kept")
            }
        }
    }
}
