//! Stages: steps with declared inputs, outputs and cost.

use crate::artifact::ArtifactName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of a stage: a kind and its parameters, such as `sweep:16` or `process:36:12`.
///
/// Ordered by kind, then by parameters as numbers; the order of execution is the graph's, not this.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StageName {
    kind: String,
    parameters: Vec<u32>,
}

/// A text that is not the name of a stage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not the name of a stage; expected a kind and numbers, such as sweep:16 or process:36:12")]
pub struct StageNameError {
    /// The text that was given.
    pub found: String,
}

impl StageName {
    /// The largest number of parameters.
    const PARAMETERS_MAX: usize = 8;

    /// Makes a name.
    ///
    /// # Panics
    /// If `kind` is not made of lower-case letters, digits and hyphens, beginning with a letter:
    /// kinds are constants of the program.
    pub fn new(kind: &str, parameters: &[u32]) -> Self {
        assert!(is_kind(kind), "stage kind {kind:?}");
        assert!(parameters.len() <= Self::PARAMETERS_MAX, "stage {kind}");
        StageName { kind: kind.to_owned(), parameters: parameters.to_vec() }
    }

    /// The kind: the text before the first colon.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The parameters: the numbers after the first colon.
    pub fn parameters(&self) -> &[u32] {
        &self.parameters
    }

    /// The name as a file name: `process-36-12`.
    pub fn file_name(&self) -> String {
        self.to_string().replace(':', "-")
    }
}

fn is_kind(text: &str) -> bool {
    text.len() <= 40
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

impl fmt::Display for StageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.kind.clone();
        for parameter in &self.parameters {
            text.push(':');
            text.push_str(&parameter.to_string());
        }
        f.pad(&text)
    }
}

impl fmt::Debug for StageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for StageName {
    type Err = StageNameError;

    fn from_str(text: &str) -> Result<Self, StageNameError> {
        let error = || StageNameError { found: text.chars().take(80).collect() };
        let mut parts = text.split(':');
        let kind = parts.next().filter(|kind| is_kind(kind)).ok_or_else(error)?;
        let mut parameters = Vec::new();
        for part in parts {
            // `u32::from_str` takes "+1", and "01" would be a second name for 1.
            let number: u32 = part.parse().map_err(|_| error())?;
            if number.to_string() != part || parameters.len() == Self::PARAMETERS_MAX {
                return Err(error());
            }
            parameters.push(number);
        }
        Ok(StageName { kind: kind.to_owned(), parameters })
    }
}

impl TryFrom<String> for StageName {
    type Error = StageNameError;

    fn try_from(name: String) -> Result<Self, StageNameError> {
        name.parse()
    }
}

impl From<StageName> for String {
    fn from(name: StageName) -> String {
        name.to_string()
    }
}

/// The predicted cost of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Positions processed.
    pub positions: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Peak memory, excluding maps of finished files.
    pub memory_bytes: u64,
    /// Peak disk space, outputs included.
    pub disk_bytes: u64,
    /// Disk space of its outputs.
    pub disk_kept_bytes: u64,
    /// Seconds of work of all its threads together.
    #[serde(skip)]
    pub core_seconds: f64,
    /// Seconds that the drive is busy.
    #[serde(skip)]
    pub disk_seconds: f64,
}

/// The declaration of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageSpec {
    /// Its name.
    pub name: StageName,
    /// The artifacts it reads.
    pub inputs: Vec<ArtifactName>,
    /// The artifacts it makes.
    pub outputs: Vec<ArtifactName>,
    /// Stages that come first if they run, although this one reads none of their outputs.
    pub after: Vec<StageName>,
    /// The predicted cost.
    pub cost: Cost,
    /// The name prefix of the intermediates that [`Cost::disk_bytes`] of this stage includes, regardless of the stage
    /// that makes them.
    pub folder: Option<String>,
    /// Whether the stage takes threads that become free while it runs.
    pub grows: bool,
}

impl StageSpec {
    /// Makes a stage without inputs, outputs and cost.
    pub fn new(name: StageName) -> Self {
        StageSpec {
            name,
            inputs: Vec::new(),
            outputs: Vec::new(),
            after: Vec::new(),
            cost: Cost::default(),
            folder: None,
            grows: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_print_what_they_parse() {
        for name in ["sweep:16", "process:36:12", "one-bit:3", "merge"] {
            assert_eq!(name.parse::<StageName>().unwrap().to_string(), name);
        }
        for bad in [
            "",
            ":",
            "sweep:",
            "sweep:x",
            "sweep:-1",
            "sweep:+1",
            "sweep:01",
            "Sweep:1",
            "1:1",
            "sweep:16 ",
            "sweep:4294967296",
            "a:1:1:1:1:1:1:1:1:1",
        ] {
            assert!(bad.parse::<StageName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn names_sort_by_number() {
        let name = |text: &str| text.parse::<StageName>().unwrap();
        assert!(name("sweep:9") < name("sweep:16"));
        assert!(name("process:36:9") < name("process:36:12"));
        assert!(name("capture:99") < name("sweep:1"));
        assert_eq!(name("process:36:12").file_name(), "process-36-12");
    }
}
