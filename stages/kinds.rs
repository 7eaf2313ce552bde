//! The kinds of stages, and what other crates ask about a stage by its name.

use crate::book::BOOK;
use crate::bounds::{MERGE, POSTPROCESS, PREPROCESS, PROCESS, SEEDS_OF_BOUNDS};
use crate::capture::CAPTURE;
use crate::counting::COUNTING;
use crate::evaluation::EVALUATION;
use crate::kind::{FileFamily, Phase, STONES, StageKind};
use crate::puzzles::PUZZLES;
use crate::solver;
use crate::stats::STATS;
use crate::sweep::SWEEP;
use crate::verify::VERIFY;
use pipeline::{ArtifactName, StageName};
use planner::{Method, StageClass};

/// All kinds, in the order in which the stages of a database run if nothing else decides.
pub(crate) static KINDS: [&StageKind; 13] = [
    &CAPTURE,
    &COUNTING,
    &SWEEP,
    &SEEDS_OF_BOUNDS,
    &PREPROCESS,
    &PROCESS,
    &POSTPROCESS,
    &MERGE,
    &VERIFY,
    &STATS,
    &PUZZLES,
    &EVALUATION,
    &BOOK,
];

/// Returns the kind of this word.
pub(crate) fn named(word: &str) -> Option<&'static StageKind> {
    KINDS.into_iter().find(|kind| kind.word == word)
}

/// Returns the kind of a stage.
pub(crate) fn kind_of(stage: &StageName) -> Option<&'static StageKind> {
    named(stage.kind())
}

/// Returns the family that files of this name belong to.
pub(crate) fn family(name: &ArtifactName) -> Option<&'static FileFamily> {
    KINDS.into_iter().filter_map(|kind| kind.files).find(|family| family.contains(name))
}

/// Returns the folders of a run directory that hold files of stages, each once.
pub fn folders() -> Vec<&'static str> {
    let mut folders: Vec<_> = KINDS.into_iter().filter_map(|kind| kind.files).map(|family| family.folder).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

/// Returns the names of the kinds with one stage for a database, in the order in which they run.
pub fn of_one_database() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().filter(|kind| kind.options.parameters == [STONES]).map(|kind| kind.word)
}

/// Returns each kind as the guide writes the names of its stages: `process:n:b`.
pub fn patterns() -> impl Iterator<Item = String> {
    KINDS.into_iter().map(|kind| [&[kind.word], kind.options.parameters].concat().join(":"))
}

/// Returns the part of a build that a stage belongs to; `None` if no build has such stages.
pub fn phase(stage: &StageName) -> Option<Phase> {
    kind_of(stage).map(|kind| kind.phase)
}

/// Returns the class by which the planner predicts a stage, for a database that is solved by a method.
pub fn class(stage: &StageName, method: Method) -> Option<StageClass> {
    kind_of(stage)?.class(method)
}

/// Returns the only method whose databases need such a stage.
pub fn method(stage: &StageName) -> Option<Method> {
    let kind = kind_of(stage)?;
    let mut methods = Method::ALL.into_iter().filter(|&method| kind.is_needed_by(method));
    methods.next().filter(|_| methods.next().is_none())
}

/// Whether a stage makes a database.
pub fn makes_database(stage: &StageName) -> bool {
    kind_of(stage).is_some_and(makes_databases)
}

/// Whether a stage makes databases that are solved by a method.
pub fn makes_database_by(stage: &StageName, method: Method) -> bool {
    kind_of(stage).is_some_and(|kind| makes_databases(kind) && kind.is_needed_by(method))
}

fn makes_databases(kind: &StageKind) -> bool {
    kind.files.is_some_and(|family| std::ptr::eq(family, &solver::DATABASES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_of_a_method_have_the_classes_that_the_planner_adds_up() {
        for method in Method::ALL {
            let solving = KINDS.into_iter().filter(|kind| kind.phase == Phase::Solving);
            let classes: Vec<_> = solving.filter_map(|kind| kind.class(method)).collect();
            assert_eq!(classes, method.stages(), "{method}");
        }
    }

    #[test]
    fn each_kind_has_a_name_of_its_own() {
        for kind in KINDS {
            assert_eq!(named(kind.word).map(|kind| kind.word), Some(kind.word));
            let same = KINDS.into_iter().filter(|other| other.word == kind.word);
            assert_eq!(same.count(), 1, "{}", kind.word);
        }
        assert!(named("cook").is_none());
    }

    #[test]
    fn a_name_belongs_to_one_family() {
        for (name, folder) in [
            ("databases/07.awari", Some("databases")),
            ("databases/7.awari", None),
            ("databases/07.cap", None),
            ("captures/48.cap", Some("captures")),
            ("planes/24/12.won", Some("planes")),
            ("planes/24/win.seeds", Some("planes")),
            ("planes/24/12.awari", None),
            ("planes/24/12/12.won", None),
            ("stats/00.json", Some("stats")),
            ("puzzles/24.txt", Some("puzzles")),
            ("books/250000.json", Some("books")),
            ("books/opening.sqlite", None),
            ("evaluation/network.bin", Some("evaluation")),
            ("evaluation/other.bin", None),
            ("logs/07.awari", None),
        ] {
            let found = family(&ArtifactName::new(name).unwrap()).map(|family| family.folder);
            assert_eq!(found, folder, "{name}");
        }
    }
}
