//! The graph of stages and artifacts.
//!
//! Invariants, checked by [`Graph::new`]: every artifact is made by exactly one stage; every input is
//! made by an earlier stage; a verification vouches for targets it reads; names are unique. So the order of the stages is an order in which they
//! can run, and it is the one in which they do.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifact::{ArtifactKind, ArtifactName, ArtifactSpec};
use crate::stage::{StageName, StageSpec};

/// Stages in the order in which they run, with the artifacts they make.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    stages: Vec<StageSpec>,
    index: BTreeMap<StageName, usize>,
    artifacts: BTreeMap<ArtifactName, ArtifactSpec>,
    makers: BTreeMap<ArtifactName, usize>,
    /// Per stage: the inputs that count, see [`Graph::sources`].
    sources: Vec<BTreeSet<ArtifactName>>,
    readers: BTreeMap<ArtifactName, Vec<usize>>,
    verifications: BTreeMap<ArtifactName, Vec<(usize, ArtifactName)>>,
}

/// A graph that breaks an invariant: a mistake in the program, not of its user.
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
        let mut graph = Graph::default();
        for artifact in artifacts {
            let name = artifact.name.clone();
            if graph.artifacts.insert(name.clone(), artifact).is_some() {
                return broken(format!("{name} is declared twice"));
            }
        }
        for (at, stage) in stages.iter().enumerate() {
            let name = &stage.name;
            let mut sources = BTreeSet::new();
            for input in &stage.inputs {
                let Some(&maker) = graph.makers.get(input) else {
                    return broken(format!("{name} reads {input}, which no earlier stage makes"));
                };
                if graph.artifacts[input].kind == ArtifactKind::Intermediate {
                    sources.extend(graph.sources[maker].iter().cloned());
                } else {
                    sources.insert(input.clone());
                }
                graph.readers.entry(input.clone()).or_default().push(at);
            }
            for first in &stage.after {
                if !graph.index.contains_key(first) {
                    return broken(format!("{name} comes after {first}, which is no earlier stage"));
                }
            }
            if stage.outputs.is_empty() {
                return broken(format!("{name} makes nothing"));
            }
            for output in &stage.outputs {
                if !graph.artifacts.contains_key(output) {
                    return broken(format!("{name} makes {output}, which is not declared"));
                }
                let artifact = &graph.artifacts[output];
                let verifies = artifact.kind == ArtifactKind::Verification;
                if verifies == artifact.vouches.is_empty() {
                    return broken(format!("{output} vouches for what it should not, or nothing"));
                }
                for target in &artifact.vouches {
                    let is_target = |name| graph.artifacts[name].kind == ArtifactKind::Target;
                    if !stage.inputs.contains(target) || !is_target(target) {
                        return broken(format!("{output} vouches for {target}, no target it reads"));
                    }
                    let verifications = graph.verifications.entry(target.clone()).or_default();
                    verifications.push((at, output.clone()));
                }
                if graph.makers.insert(output.clone(), at).is_some() {
                    return broken(format!("{output} is made by two stages"));
                }
            }
            if graph.index.insert(name.clone(), at).is_some() {
                return broken(format!("there are two stages {name}"));
            }
            graph.sources.push(sources);
        }
        if let Some(name) = graph.artifacts.keys().find(|name| !graph.makers.contains_key(name)) {
            return broken(format!("no stage makes {name}"));
        }
        graph.stages = stages;
        Ok(graph)
    }

    /// The stages, in the order in which they run.
    pub fn stages(&self) -> &[StageSpec] {
        &self.stages
    }

    /// The artifacts, by name.
    pub fn artifacts(&self) -> impl Iterator<Item = &ArtifactSpec> {
        self.artifacts.values()
    }

    /// The stage of a name.
    pub fn stage(&self, name: &StageName) -> Option<&StageSpec> {
        self.position(name).map(|at| &self.stages[at])
    }

    /// The place of a stage in the order.
    pub fn position(&self, name: &StageName) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// The artifact of a name.
    pub fn artifact(&self, name: &ArtifactName) -> Option<&ArtifactSpec> {
        self.artifacts.get(name)
    }

    /// The place of the stage that makes an artifact.
    pub fn maker(&self, name: &ArtifactName) -> Option<usize> {
        self.makers.get(name).copied()
    }

    /// The places of the stages that read an artifact, ascending.
    pub fn readers(&self, name: &ArtifactName) -> &[usize] {
        self.readers.get(name).map_or(&[], Vec::as_slice)
    }

    /// The verifications that vouch for a target, each with the place of its stage.
    pub fn verifications(&self, name: &ArtifactName) -> &[(usize, ArtifactName)] {
        self.verifications.get(name).map_or(&[], Vec::as_slice)
    }

    /// The artifacts whose content decides what stage `at` makes: its inputs, with every intermediate
    /// replaced by what it was itself made from. So it does not matter by which intermediates, that
    /// is by which method, an artifact was made.
    pub fn sources(&self, at: usize) -> &BTreeSet<ArtifactName> {
        &self.sources[at]
    }

    /// The outputs of a stage as declared.
    pub(crate) fn outputs<'a>(&'a self, stage: &'a StageSpec) -> impl Iterator<Item = &'a ArtifactSpec> {
        stage.outputs.iter().map(|name| &self.artifacts[name])
    }

    pub(crate) fn is_intermediate(&self, name: &ArtifactName) -> bool {
        self.artifacts.get(name).is_some_and(|artifact| artifact.kind == ArtifactKind::Intermediate)
    }

    /// Names of the graph near to one that is not in it, or examples of each kind if none is near.
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
