//! What a kind of stage is: one module with a [`StageKind`], and one row of the table in `kinds`.
//!
//! A kind declares its stages and their files, runs them on a machine or on all ranks of a job, and describes them to
//! the planner, the stage cache, and the reports. Nothing else knows a kind by its name.

use crate::build_context::BuildContext;
use crate::distributed::{RankResult, StageOrder};
use crate::stage_cache::CacheUse;
use crate::team::FollowerRank;
use game::Rules;
use messaging::Communicator;
use pipeline::{ArtifactName, ArtifactSpec, StageContext, StageReport, StageResult, StageSpec};
use planner::{BuildPlan, Method, Settings, StageClass};
use std::path::{Path, PathBuf};
use store::FileKind;

/// A kind of stage.
pub(crate) struct StageKind {
    /// The first part of the names of its stages: `process` of `process:36:12`.
    pub(crate) word: &'static str,
    /// The part of a build that its stages belong to.
    pub(crate) phase: Phase,
    /// The files that its stages make, if any.
    pub(crate) files: Option<&'static FileFamily>,
    /// Declares its stages of a build, each with the artifacts that it makes.
    pub(crate) declare: fn(&StageKind, &BuildPlan) -> Vec<Declaration>,
    /// Runs a stage of these parameters: on this machine, or as rank 0 of a job. Errors are those of
    /// [`pipeline::Work::run`].
    pub(crate) run: fn(&BuildContext, &[u32], &StageContext<'_>) -> StageResult<StageReport>,
    pub(crate) options: KindOptions,
}

/// What a kind may leave out: then it is that of [`KindOptions::OF_DATABASES`].
pub(crate) struct KindOptions {
    /// What the numbers in the names of its stages are, as the guide writes them.
    pub(crate) parameters: &'static [&'static str],
    /// The classes by which the planner predicts its stages; none if their cost does not depend on one database. A
    /// stage that solves is of the class that is among the [stages of its method](Method::stages).
    pub(crate) classes: &'static [StageClass],
    /// Returns the number of stones of the database whose plan its stages follow, from their parameters.
    pub(crate) stones: fn(&Settings, &[u32]) -> u32,
    /// What its stages use of the stage cache. The rest is dropped when one begins.
    pub(crate) cache_use: CacheUse,
    /// Whether a file of a run directory belongs to the user although its stages write it.
    pub(crate) is_kept: fn(&ArtifactName) -> bool,
    /// Runs the share of a rank other than 0 in a stage that rank 0 has ordered.
    pub(crate) follow: fn(&FollowerRank<'_>, &StageOrder, &mut dyn Communicator) -> RankResult<()>,
}

impl KindOptions {
    /// Those of a kind with one stage for each database, which rank 0 runs alone and which uses nothing of the stage
    /// cache.
    pub(crate) const OF_DATABASES: KindOptions = KindOptions {
        parameters: &[STONES],
        classes: &[],
        stones: |_, parameters| parameters[0],
        cache_use: CacheUse::NOTHING,
        is_kept: |_| false,
        follow: |_, order, _| Err(order.unexpected().into()),
    };
}

impl StageKind {
    /// Returns the class of its stages for a database that is solved by a method.
    pub(crate) fn class(&self, method: Method) -> Option<StageClass> {
        let is_of_method = |class: &StageClass| self.phase != Phase::Solving || method.stages().contains(class);
        self.options.classes.iter().copied().find(is_of_method)
    }

    /// Whether a database that is solved by a method needs its stages.
    pub(crate) fn is_needed_by(&self, method: Method) -> bool {
        self.phase != Phase::Solving || self.class(method).is_some()
    }
}

/// A stage, and the artifacts that it makes.
pub(crate) struct Declaration {
    pub(crate) stage: StageSpec,
    pub(crate) artifacts: Vec<ArtifactSpec>,
}

/// The parameter of a stage of one database.
pub(crate) const STONES: &str = "n";

/// Parts of a build, in the order in which a database passes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::VariantArray)]
pub enum Phase {
    /// The best captures of all positions, from smaller databases.
    Captures,
    /// The scores.
    Solving,
    /// Checks of the scores.
    Verification,
    /// What is counted over, or made from, a finished database.
    Statistics,
    /// The evaluation of the engine, after all databases.
    Evaluation,
    /// The opening book, after all databases.
    Book,
}

impl Phase {
    /// All phases, in their order.
    pub const ALL: &[Phase] = <Phase as strum::VariantArray>::VARIANTS;

    /// Returns the phase in words.
    pub const fn word(self) -> &'static str {
        match self {
            Phase::Captures => "captures",
            Phase::Solving => "solving",
            Phase::Verification => "verification",
            Phase::Statistics => "statistics",
            Phase::Evaluation => "evaluation",
            Phase::Book => "book",
        }
    }

    /// Returns what is done in the phase, in words.
    pub const fn activity(self) -> &'static str {
        match self {
            Phase::Captures => "finding captures",
            Phase::Solving => "solving",
            Phase::Verification => "verifying",
            Phase::Statistics => "collecting statistics",
            Phase::Evaluation => "training",
            Phase::Book => "expanding the book",
        }
    }

    /// Whether each database passes the phase.
    pub const fn is_of_databases(self) -> bool {
        !matches!(self, Phase::Evaluation | Phase::Book)
    }
}

/// The files of one folder of a run directory that stages make.
pub(crate) struct FileFamily {
    /// The folder, relative to the run directory.
    pub(crate) folder: &'static str,
    /// Whether a build can make a file of this name, relative to the folder.
    pub(crate) has: fn(&str) -> bool,
    pub(crate) content: FamilyContent,
}

/// How the files of a family are inspected.
pub(crate) enum FamilyContent {
    /// A file of `store`, of the kind for the artifact by some rules.
    Values(fn(&ArtifactSpec, &Rules) -> FileKind),
    /// A small file, known by its digest. It counts as absent while the file that the function names is.
    Report(fn(&ArtifactSpec, &Path) -> Option<PathBuf>),
}

impl FamilyContent {
    /// A report that is complete by itself.
    pub(crate) const REPORT: FamilyContent = FamilyContent::Report(|_, _| None);
}

impl FileFamily {
    /// Whether an artifact of this name belongs to the family.
    pub(crate) fn contains(&self, name: &ArtifactName) -> bool {
        name.as_str().strip_prefix(self.folder).and_then(|rest| rest.strip_prefix('/')).is_some_and(self.has)
    }
}

/// Whether `file` is a number of at least two digits with an extension: `07.awari`.
pub(crate) fn is_numbered(file: &str, extension: &str) -> bool {
    file.split_once('.').is_some_and(|(stem, rest)| is_number(stem) && rest == extension)
}

/// Whether `text` is a number of at least two digits.
pub(crate) fn is_number(text: &str) -> bool {
    text.len() >= 2 && text.bytes().all(|byte| byte.is_ascii_digit())
}
