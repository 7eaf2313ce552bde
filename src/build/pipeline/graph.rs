//! The graph of stages and artifacts.
//!
//! Invariants, checked by [`Graph::new`]: every artifact is made by exactly one stage; every input is made by an
//! earlier stage; a verification vouches for targets that it reads; names are unique. So stages can run in the given
//! order.

use crate::artifact::{ArtifactKind, ArtifactName, ArtifactSpec};
use crate::stage::{StageName, StageSpec};
use std::collections::{BTreeMap, BTreeSet};

/// Stages in the order in which they run, with the artifacts they make.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    stages: Vec<StageSpec>,
    index: BTreeMap<StageName, usize>,
    /// Sorted by name; the *number* of an artifact is its position here.
    artifacts: Vec<ArtifactSpec>,
    /// The stages that make and use each artifact.
    uses: Vec<ArtifactUses>,
    /// The artifacts of each stage, by number.
    numbers: Vec<StageArtifacts>,
}

/// The artifacts of a stage by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageArtifacts {
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    /// See [`Graph::sources`].
    pub(crate) sources: BTreeSet<usize>,
}

/// The stages that make and use an artifact.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArtifactUses {
    pub(crate) maker: Option<usize>,
    /// The positions of the stages that read it, ascending.
    pub(crate) readers: Vec<usize>,
    /// The verifications that vouch for it: position of the stage, number of the artifact.
    pub(crate) verifications: Vec<(usize, usize)>,
}

/// A graph that violates an invariant: a bug of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stages do not fit together: {what}")]
pub struct GraphError {
    what: String,
}

impl Graph {
    /// Checks and indexes a graph.
    ///
    /// # Errors
    /// If an invariant of this module is broken.
    pub fn new(stages: Vec<StageSpec>, artifacts: impl IntoIterator<Item = ArtifactSpec>) -> Result<Self, GraphError> {
        let broken = |what: String| Err(GraphError { what });
        let mut artifacts: Vec<_> = artifacts.into_iter().collect();
        artifacts.sort_by(|artifact, other| artifact.name.cmp(&other.name));
        if let Some(two) = artifacts.windows(2).find(|two| two[0].name == two[1].name) {
            return broken(format!("{} is declared twice", two[0].name));
        }
        let uses = vec![ArtifactUses::default(); artifacts.len()];
        let mut graph = Graph { artifacts, uses, ..Graph::default() };
        for (at, stage) in stages.iter().enumerate() {
            let name = &stage.name;
            let mut numbers = StageArtifacts::default();
            for input in &stage.inputs {
                let number = graph.number(input);
                let Some((number, maker)) = number.and_then(|number| Some((number, graph.uses[number].maker?))) else {
                    return broken(format!("{name} reads {input}, which no earlier stage makes"));
                };
                if graph.is_intermediate_number(number) {
                    numbers.sources.extend(&graph.numbers[maker].sources);
                } else {
                    numbers.sources.insert(number);
                }
                numbers.inputs.push(number);
                graph.uses[number].readers.push(at);
            }
            for first in &stage.after {
                if !graph.index.contains_key(first) {
                    return broken(format!("{name} comes after {first}, which is not an earlier stage"));
                }
            }
            if stage.outputs.is_empty() {
                return broken(format!("{name} makes nothing"));
            }
            for output in &stage.outputs {
                let Some(number) = graph.number(output) else {
                    return broken(format!("{name} makes {output}, which is not declared"));
                };
                let artifact = &graph.artifacts[number];
                let verifies = artifact.kind == ArtifactKind::Verification;
                if verifies == artifact.vouches.is_empty() {
                    return broken(format!("{output} vouches for what it should not, or nothing"));
                }
                let is_target = |&number: &usize| graph.artifacts[number].kind == ArtifactKind::Target;
                for target in &artifact.vouches {
                    let read = graph.number(target).filter(|target| numbers.inputs.contains(target));
                    let Some(target) = read.filter(is_target) else {
                        return broken(format!("{output} vouches for {target}, no target it reads"));
                    };
                    graph.uses[target].verifications.push((at, number));
                }
                numbers.outputs.push(number);
                if graph.uses[number].maker.replace(at).is_some() {
                    return broken(format!("{output} is made by two stages"));
                }
            }
            if graph.index.insert(name.clone(), at).is_some() {
                return broken(format!("there are two stages {name}"));
            }
            graph.numbers.push(numbers);
        }
        let mut unmade = graph.artifacts.iter().zip(&graph.uses).filter(|(_, uses)| uses.maker.is_none());
        if let Some((artifact, _)) = unmade.next() {
            return broken(format!("no stage makes {}", artifact.name));
        }
        graph.stages = stages;
        Ok(graph)
    }

    /// The stages, in the order in which they run.
    pub fn stages(&self) -> &[StageSpec] {
        &self.stages
    }

    /// The artifacts, by name.
    pub fn artifacts(&self) -> impl ExactSizeIterator<Item = &ArtifactSpec> {
        self.artifacts.iter()
    }

    /// The stage of a name.
    pub fn stage(&self, name: &StageName) -> Option<&StageSpec> {
        self.position(name).map(|at| &self.stages[at])
    }

    /// The position of a stage in the order.
    pub fn position(&self, name: &StageName) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// The number of an artifact: its position in the order of names.
    pub(crate) fn number(&self, name: &ArtifactName) -> Option<usize> {
        self.artifacts.binary_search_by(|artifact| artifact.name.cmp(name)).ok()
    }

    /// The artifact of a number.
    pub(crate) fn numbered(&self, number: usize) -> &ArtifactSpec {
        &self.artifacts[number]
    }

    /// Whether the artifact of a number is an intermediate.
    pub(crate) fn is_intermediate_number(&self, number: usize) -> bool {
        self.artifacts[number].kind == ArtifactKind::Intermediate
    }

    /// The artifacts of stage `at`.
    pub(crate) fn numbers(&self, at: usize) -> &StageArtifacts {
        &self.numbers[at]
    }

    /// The stages that make and use the artifact of a number.
    pub(crate) fn uses(&self, number: usize) -> &ArtifactUses {
        &self.uses[number]
    }

    /// The artifact of a name.
    pub fn artifact(&self, name: &ArtifactName) -> Option<&ArtifactSpec> {
        self.number(name).map(|number| &self.artifacts[number])
    }

    /// The position of the stage that makes an artifact.
    pub fn maker(&self, name: &ArtifactName) -> Option<usize> {
        self.uses[self.number(name)?].maker
    }

    /// The artifacts that determine the content of the outputs of stage `at`, by name: its inputs, with every
    /// intermediate replaced by its own sources. So the intermediates, and with them the method, do not matter.
    pub fn sources(&self, at: usize) -> impl Iterator<Item = &ArtifactName> {
        self.numbers[at].sources.iter().map(|&number| &self.artifacts[number].name)
    }

    /// The outputs of the stage at a position, as declared.
    pub(crate) fn outputs(&self, at: usize) -> impl Iterator<Item = &ArtifactSpec> {
        self.numbers[at].outputs.iter().map(|&number| &self.artifacts[number])
    }

    pub(crate) fn is_intermediate(&self, name: &ArtifactName) -> bool {
        self.number(name).is_some_and(|number| self.is_intermediate_number(number))
    }

    /// Returns stages with a name similar to an unknown one, or an example of each kind.
    pub fn suggest(&self, name: &str) -> Vec<StageName> {
        let kind = name.split(':').next().unwrap_or(name);
        let of_kind = |kind: &str| -> Vec<StageName> {
            let mut stages = self.stages.iter().filter(|stage| stage.name.kind() == kind);
            let first = stages.next().map(|stage| stage.name.clone());
            let last = stages.next_back().map(|stage| stage.name.clone());
            first.into_iter().chain(last).collect()
        };
        let same = of_kind(kind);
        if !same.is_empty() {
            return same;
        }
        let mut kinds: Vec<&str> = Vec::new();
        for stage in &self.stages {
            if !kinds.contains(&stage.name.kind()) {
                kinds.push(stage.name.kind());
            }
        }
        if let Some(near) = crate::suggest::nearest(kind, kinds.iter().copied()) {
            let meant = format!("{near}{}", &name[kind.len()..]);
            let exact = self.stages.iter().find(|stage| stage.name.to_string() == meant);
            return exact.map_or_else(|| of_kind(near), |stage| vec![stage.name.clone()]);
        }
        kinds.iter().filter_map(|kind| of_kind(kind).pop()).collect()
    }
}
