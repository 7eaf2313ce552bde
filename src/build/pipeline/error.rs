//! Errors that end a run early, each with cause, remedy and exit code.

use crate::artifact::ArtifactName;
use crate::exit::Exit;
use crate::graph::GraphError;
use crate::journal::JournalError;
use crate::manifest::Diagnostic;
use crate::plan::{PlannedStage, ReplacedArtifact};
use crate::preflight::PreflightError;
use crate::report::StageError;
use crate::stage::StageName;
use disk::DiskError;
use std::path::{Path, PathBuf};

/// A missing input of a single stage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stage} reads {artifact}, which {what}; {maker} makes it")]
pub struct MissingInput {
    /// The stage to be rerun, or one before it.
    pub stage: StageName,
    /// The input.
    pub artifact: ArtifactName,
    /// What is wrong with it.
    pub what: String,
    /// The stage that makes it.
    pub maker: StageName,
}

/// The result of an operation of the pipeline.
pub type Result<T, E = PipelineError> = std::result::Result<T, E>;

/// An error of the pipeline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum PipelineError {
    /// The manifest has mistakes, all of which are listed.
    #[error("{}", lines(.0))]
    Manifest(Vec<Diagnostic>),
    /// No stage has this name.
    #[error("{}; {}", unknown(name), suggestion(suggestions))]
    UnknownStage {
        name: String,
        /// Similar names, or examples.
        suggestions: Vec<StageName>,
    },
    /// A forced stage comes after the last stage to run.
    #[error("--force {stage} contradicts --until {until}: {stage} comes after {until}; leave out one of the two")]
    ForcedTooLate {
        stage: StageName,
        /// The last stage to run.
        until: StageName,
    },
    /// Disk, memory or directory do not allow the run.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// Another process holds the directory.
    #[error(
        "{} is in use by {holder}; wait for it to end, or stop it with `awari stop --dir {}`",
        directory.display(), directory.display()
    )]
    Locked { directory: PathBuf, holder: String },
    /// Something is stale, and `--frozen` forbids rebuilding it.
    #[error("{}; {}", frozen(stale), unfreezing(*replaces))]
    Frozen {
        stale: Vec<PlannedStage>,
        /// Whether `replace` would be needed too, because finished files are for other parameters.
        replaces: bool,
    },
    /// Finished files are for other parameters, and `--replace` was not given.
    #[error(
        "{}; build in another directory with --dir, or replace them with --replace",
        replacing(directory, replaced)
    )]
    Replaces { directory: PathBuf, replaced: Vec<ReplacedArtifact> },
    /// A stage failed.
    #[error("{stage} failed: {source}; finished work is kept, and the same command resumes")]
    StageFailed { stage: StageName, source: StageError },
    /// An artifact is damaged or wrong.
    #[error("{stage} stopped: {artifact} is damaged: {what}; {remedy}")]
    Integrity {
        /// The stage that found it.
        stage: StageName,
        artifact: ArtifactName,
        what: String,
        remedy: &'static str,
    },
    /// An artifact is wrong again after it was made again from the same inputs.
    #[error(
        "{stage} stopped: {artifact} is damaged: {what}; it was made again from the same files and is wrong again, so the \
         cause is probably in {}",
        listed(suspects)
    )]
    WrongAgain {
        /// The stage that found it.
        stage: StageName,
        artifact: ArtifactName,
        what: String,
        /// The inputs, in order; at least one.
        suspects: Vec<ArtifactName>,
    },
    /// Earlier runs made no progress.
    #[error(
        "the last {runs} runs were stopped or killed before they completed a stage or a snapshot, and the options end such a \
         series: look for the cause in their logs; then the same command resumes"
    )]
    NoProgress { runs: usize },
    /// An input of a single stage is missing.
    #[error(transparent)]
    InputMissing(Box<MissingInput>),
    /// The scratch directory overlaps the run directory.
    #[error("the scratch directory {} overlaps the run directory; choose another", scratch.display())]
    ScratchInRunDirectory { scratch: PathBuf },
    /// The scratch directory is the directory of a run.
    #[error("the scratch directory {} is a run directory, which only runs change; choose another", scratch.display())]
    ScratchIsRunDirectory { scratch: PathBuf },
    /// A single stage was stopped on request before it was done.
    #[error("{stage} was stopped; nothing was changed; repeat the command to start it again")]
    SingleStopped { stage: StageName },
    /// The journal cannot be read or written.
    #[error("the journal: {0}")]
    Journal(#[from] JournalError),
    /// A file operation outside of any stage failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The stages do not fit together.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl PipelineError {
    /// Whether the file system of the run directory is read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self, PipelineError::Preflight(PreflightError::Directory { source, .. }) if source.is_read_only())
    }

    /// Returns the exit code of the error.
    pub fn exit(&self) -> Exit {
        match self {
            PipelineError::Manifest(_) => Exit::ManifestInvalid,
            PipelineError::UnknownStage { .. }
            | PipelineError::ForcedTooLate { .. }
            | PipelineError::ScratchInRunDirectory { .. }
            | PipelineError::ScratchIsRunDirectory { .. } => Exit::Usage,
            PipelineError::Disk(DiskError::Overtaken { .. }) => Exit::Locked,
            PipelineError::Preflight(_) | PipelineError::InputMissing(_) => Exit::PreflightFailed,
            PipelineError::Locked { .. } => Exit::Locked,
            PipelineError::Frozen { .. } | PipelineError::Replaces { .. } => Exit::Frozen,
            PipelineError::StageFailed { .. } | PipelineError::NoProgress { .. } => Exit::StageFailed,
            PipelineError::Integrity { .. } | PipelineError::WrongAgain { .. } => Exit::Integrity,
            PipelineError::SingleStopped { .. } => Exit::Stopped,
            PipelineError::Journal(JournalError::Overtaken { .. }) => Exit::Locked,
            // During a run these count as failures of the current stage.
            PipelineError::Journal(_) | PipelineError::Disk(_) => Exit::StageFailed,
            PipelineError::Graph(_) => Exit::Internal,
        }
    }
}

/// Returns the error of a directory that cannot be used.
pub(crate) fn unusable(path: &Path, source: DiskError) -> PipelineError {
    if source.is_overtaken() {
        return PipelineError::Disk(source);
    }
    PipelineError::Preflight(PreflightError::Directory { directory: path.to_path_buf(), source })
}

fn lines(diagnostics: &[Diagnostic]) -> String {
    let lines: Vec<String> = diagnostics.iter().map(Diagnostic::to_string).collect();
    lines.join("\n")
}

fn unknown(name: &str) -> String {
    if name.is_empty() { "the name of a stage is empty".to_owned() } else { format!("there is no stage {name}") }
}

fn suggestion(names: &[StageName]) -> String {
    let names: Vec<String> = names.iter().map(StageName::to_string).collect();
    match names.len() {
        0 => "the manifest asks for no stages".to_owned(),
        _ => format!("stages of this manifest include {}", names.join(", ")),
    }
}

fn replacing(directory: &Path, replaced: &[ReplacedArtifact]) -> String {
    let mut kinds: Vec<(&ReplacedArtifact, usize)> = Vec::new();
    for artifact in replaced {
        let same = |(kind, _): &&mut (&ReplacedArtifact, usize)| {
            (&kind.field, &kind.was, &kind.is) == (&artifact.field, &artifact.was, &artifact.is)
        };
        match kinds.iter_mut().find(same) {
            Some((_, count)) => *count += 1,
            None => kinds.push((artifact, 1)),
        }
    }
    let kinds = kinds.iter().map(|(ReplacedArtifact { artifact, field, was, is }, count)| match count {
        1 => format!("{artifact} is for {field} {was}, but the manifest asks for {field} {is}"),
        _ => format!(
            "{count} finished files, from {artifact} on, are for {field} {was}, but the manifest asks for {field} {is}"
        ),
    });
    format!("in {}: {}", directory.display(), kinds.collect::<Vec<_>>().join("; "))
}

/// Lists artifacts in order, those between the first and the last three without their names.
fn listed(artifacts: &[ArtifactName]) -> String {
    let names: Vec<&str> = artifacts.iter().map(ArtifactName::as_str).collect();
    match &names[..] {
        [first, .., before, last] if names.len() > 4 => {
            format!("one of {} files, {first} to {before} and {last}", names.len())
        }
        _ => names.join(", "),
    }
}

fn unfreezing(replaces: bool) -> &'static str {
    if replaces {
        "build in another directory with --dir, or replace finished files with --replace instead of --frozen"
    } else {
        "leave out --frozen to rebuild"
    }
}

fn frozen(stale: &[PlannedStage]) -> String {
    let shown: Vec<String> =
        stale.iter().take(3).map(|step| format!("{} would be rebuilt ({})", step.stage, step.reason)).collect();
    let more = match stale.len().saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    format!("--frozen: {}{more}", shown.join("; "))
}
