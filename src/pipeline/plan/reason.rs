//! Why a stage runs, in one sentence that names the two values that differ.

use std::fmt;

use disk::clock;
use serde::Serialize;

use crate::artifact::ArtifactName;
use crate::stage::StageName;

/// Why a stage runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Reason {
    /// An output is not there.
    Absent {
        /// Which.
        artifact: ArtifactName,
    },
    /// An output was made for other values than those now asked for.
    Changed {
        /// Which.
        artifact: ArtifactName,
        /// The field that differs: a parameter, `version`, `content digest`, or the name of an input.
        field: String,
        /// The value it was made for.
        was: String,
        /// The value now asked for or found.
        is: String,
    },
    /// The user asked for it.
    Forced,
    /// An input comes from a stage that runs as well. If it comes out as it was, this one need not
    /// run after all.
    After {
        /// The other stage.
        stage: StageName,
        /// What it makes.
        artifact: ArtifactName,
    },
    /// An output is damaged.
    Damaged {
        /// Which.
        artifact: ArtifactName,
        /// What is wrong with it.
        what: String,
    },
    /// An output was made from something that was found wrong later, and may have been wrong then.
    Doubtful {
        /// Which.
        artifact: ArtifactName,
        /// What it was made from.
        source: ArtifactName,
        /// When that was found wrong, in seconds since 1970.
        found_at: u64,
        /// When that was last known to be good before; `None` if the journal does not say.
        good_at: Option<u64>,
    },
    /// An output cannot be read.
    Unreadable {
        /// Which.
        artifact: ArtifactName,
        /// Why not.
        what: String,
    },
    /// Its check has not been made, or not since damage was found.
    NotVerified {
        /// What is to be checked.
        artifacts: Vec<ArtifactName>,
    },
    /// An output is there, but the journal does not know it, and its kind is believed only if it
    /// does.
    NotRecorded {
        /// Which.
        artifact: ArtifactName,
    },
    /// A stage that runs reads an intermediate that was not kept.
    NeededBy {
        /// The other stage.
        stage: StageName,
        /// What it reads.
        artifact: ArtifactName,
    },
}

impl Reason {
    /// Whether something is there that is no longer right, as against something not yet there or
    /// asked for: what `frozen` forbids to rebuild.
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
