//! Freshness: whether an artifact exists and is up to date.
//!
//! An artifact is *fresh* if its file exists undamaged, and its fingerprint in the journal agrees with the declaration
//! and with the actual or expected digests of its sources. One that is not in the journal is *adopted* if its header
//! holds all of its identity and agrees. A verification has no file: it is fresh if its fingerprint agrees and no
//! damage to its targets was found since.
//!
//! An artifact is *doubtful* if a source of it was found wrong later and was not known to be good after the artifact
//! was made: the fingerprint holds the expected digest of the source, not the actual one. Damage that every reader
//! notices casts no doubt, since nothing can have been made from it.

use crate::artifact::{ArtifactKind, ArtifactName, ArtifactSpec, Inspection};
use crate::directory::Inspections;
use crate::fingerprint::{Fingerprint, short};
use crate::graph::Graph;
use crate::journal::{BuiltArtifact, JournalMoment, JournalState};
use crate::plan::Reason;
use disk::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;

/// The state of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Up to date.
    Fresh {
        digest: Digest,
        /// For an adopted file, the fingerprint to record.
        adopted: Option<Fingerprint>,
    },
    /// To be made if it is needed. `expected` is its digest, if known in advance.
    Stale { reason: Reason, expected: Option<Digest> },
}

impl Freshness {
    /// Returns the actual or expected digest.
    pub(crate) fn digest(&self) -> Option<Digest> {
        match self {
            Freshness::Fresh { digest, .. } => Some(*digest),
            Freshness::Stale { expected, .. } => *expected,
        }
    }

    /// Returns why it is not fresh.
    pub(crate) fn reason(&self) -> Option<&Reason> {
        match self {
            Freshness::Fresh { .. } => None,
            Freshness::Stale { reason, .. } => Some(reason),
        }
    }
}

/// The freshness of every artifact of a graph. Plans are made after every stage of graphs with thousands of stages, so
/// artifacts are numbered here, and only stages from the first changed one on are evaluated again.
pub(crate) struct FreshnessTable<'g> {
    graph: &'g Graph,
    all: Vec<Option<Freshness>>,
}

impl<'g> FreshnessTable<'g> {
    /// Makes an empty table.
    pub(crate) fn none(graph: &'g Graph) -> Self {
        FreshnessTable { graph, all: vec![None; graph.artifacts().len()] }
    }

    /// Evaluates the outputs of the stages from position `from` on. Those before it are unchanged.
    pub(crate) fn evaluate_from(&mut self, from: usize, state: &JournalState, found: &Inspections) {
        let suspects = Suspects::new(self.graph, state);
        for at in from..self.graph.stages().len() {
            let sources = Sources::of(at, self);
            for &number in &self.graph.numbers(at).outputs {
                let output = self.graph.numbered(number);
                let freshness = if output.kind == ArtifactKind::Verification {
                    verification(output, &sources, state, broken(output, self))
                } else {
                    file(output, &sources, state, found)
                };
                // An artifact that is absent or was made for other values has a reason already.
                let doubt = match freshness.reason() {
                    None | Some(Reason::After { .. }) => suspects.doubt(number, &sources),
                    Some(_) => None,
                };
                self.all[number] = Some(match doubt {
                    Some(reason) => Freshness::Stale { reason, expected: None },
                    None => freshness,
                });
            }
        }
    }

    /// Returns the freshness of all artifacts, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'g ArtifactName, &Freshness)> {
        let names = self.graph.artifacts().map(|artifact| &artifact.name);
        names.zip(&self.all).filter_map(|(name, freshness)| Some((name, freshness.as_ref()?)))
    }

    /// Returns the freshness of the artifact of a number.
    pub(crate) fn of(&self, number: usize) -> &Freshness {
        self.all[number].as_ref().expect("stages come after those that make what they read")
    }
}

impl Index<&ArtifactName> for FreshnessTable<'_> {
    type Output = Freshness;

    fn index(&self, name: &ArtifactName) -> &Freshness {
        self.of(self.graph.number(name).expect("an artifact of the graph"))
    }
}

/// Evaluates every artifact of a graph.
pub(crate) fn evaluate<'g>(graph: &'g Graph, state: &JournalState, found: &Inspections) -> FreshnessTable<'g> {
    let mut evaluated = FreshnessTable::none(graph);
    evaluated.evaluate_from(0, state, found);
    evaluated
}

/// The sources of the outputs of a stage.
struct Sources<'g> {
    /// The known digests, by name.
    known: Vec<(&'g ArtifactName, Digest)>,
    /// The first source of unknown digest, as a reason.
    unknown: Option<Reason>,
}

impl<'g> Sources<'g> {
    fn of(at: usize, evaluated: &FreshnessTable<'g>) -> Self {
        let graph = evaluated.graph;
        let mut sources = Sources { known: Vec::new(), unknown: None };
        for &number in &graph.numbers(at).sources {
            let name = &graph.numbered(number).name;
            match evaluated.of(number).digest() {
                Some(digest) => sources.known.push((name, digest)),
                None if sources.unknown.is_none() => sources.unknown = Some(after(graph, name)),
                None => {}
            }
        }
        sources
    }

    /// Whether exactly these sources were used.
    fn are(&self, inputs: &BTreeMap<ArtifactName, Digest>) -> bool {
        self.unknown.is_none() && self.known.iter().copied().eq(inputs.iter().map(|(name, digest)| (name, *digest)))
    }

    fn fingerprint(&self, spec: &ArtifactSpec) -> Fingerprint {
        Fingerprint::new(spec, self.known.iter().map(|&(name, digest)| (name.clone(), digest)).collect())
    }
}

/// Silently damaged artifacts, and the artifacts in which the error may have its cause.
struct Suspects<'s> {
    graph: &'s Graph,
    state: &'s JournalState,
    /// The intermediates of a wrong artifact, with its name and the time of the finding: the error may be in them.
    condemned: BTreeMap<usize, (&'s ArtifactName, JournalMoment)>,
}

impl<'s> Suspects<'s> {
    fn new(graph: &'s Graph, state: &'s JournalState) -> Self {
        let mut condemned = BTreeMap::new();
        for name in state.silently_damaged() {
            let Some(found) = state.silent_damage(name).last() else { continue };
            let mut seen = BTreeSet::new();
            let mut open: Vec<usize> = graph.maker(name).into_iter().collect();
            while let Some(at) = open.pop() {
                let intermediates =
                    graph.numbers(at).inputs.iter().filter(|&&input| graph.is_intermediate_number(input));
                for &input in intermediates.filter(|&&input| seen.insert(input)) {
                    condemned.insert(input, (name, *found));
                    open.extend(graph.maker(&graph.numbered(input).name));
                }
            }
        }
        Suspects { graph, state, condemned }
    }

    /// Returns why an otherwise fresh artifact has to be made again, if it has.
    fn doubt(&self, number: usize, sources: &Sources) -> Option<Reason> {
        let name = &self.graph.numbered(number).name;
        let artifact = || name.clone();
        let known = self.state.built(name);
        let is_before = |found: &JournalMoment| known.is_none_or(|known| known.sequence < found.sequence);
        if let Some((wrong, _)) = self.condemned.get(&number).filter(|(_, found)| is_before(found)) {
            return Some(Reason::Damaged { artifact: artifact(), what: format!("{wrong}, made from it, is wrong") });
        }
        let doubtful = |source: &ArtifactName, found: JournalMoment, good: Option<JournalMoment>| Reason::Doubtful {
            artifact: artifact(),
            source: source.clone(),
            found_at: found.at,
            good_at: good.map(|good| good.at),
        };
        let Some(known) = known else {
            // The time at which it was made is unknown.
            let mut found =
                sources.known.iter().filter_map(|&(name, _)| Some((name, self.state.silent_damage(name).last()?)));
            return found.next().map(|(name, found)| doubtful(name, *found, None));
        };
        known.artifact.fingerprint.inputs.keys().find_map(|source| {
            self.state.silent_damage(source).iter().filter(|found| is_before(found)).find_map(|&found| {
                let good = self.last_good(source, found);
                let is_doubtful = good.is_none_or(|good| good.sequence < known.sequence);
                is_doubtful.then(|| doubtful(source, found, good))
            })
        })
    }

    /// Returns when an artifact was last made or compared with its digest, by a verification or otherwise.
    fn last_good(&self, name: &ArtifactName, before: JournalMoment) -> Option<JournalMoment> {
        let verifications =
            self.graph.number(name).into_iter().flat_map(|number| &self.graph.uses(number).verifications);
        let verifications = verifications.map(|&(_, number)| &self.graph.numbered(number).name);
        verifications.chain([name]).filter_map(|name| self.state.last_good(name, before)).max()
    }
}

fn after(graph: &Graph, name: &ArtifactName) -> Reason {
    let maker = graph.maker(name);
    let maker = maker.expect("a graph has a maker for every artifact");
    Reason::After { stage: graph.stages()[maker].name.clone(), artifact: name.clone() }
}

/// Returns the first target of a verification with a damaged or unreadable file, which will be replaced.
fn broken(spec: &ArtifactSpec, all: &FreshnessTable) -> Option<ArtifactName> {
    let is_broken =
        |name: &&ArtifactName| matches!(all[*name].reason(), Some(Reason::Damaged { .. } | Reason::Unreadable { .. }));
    spec.vouches.iter().find(is_broken).cloned()
}

fn verification(
    spec: &ArtifactSpec,
    sources: &Sources,
    state: &JournalState,
    broken: Option<ArtifactName>,
) -> Freshness {
    let stale = |reason| Freshness::Stale { reason, expected: None };
    let Some(known) = state.built(&spec.name) else {
        return stale(Reason::NotVerified { artifacts: spec.vouches.iter().cloned().collect() });
    };
    let damaged = |name: &&ArtifactName| state.damaged_after(name, known);
    if let Some(reason) = outdated(spec, sources, known) {
        return stale(reason);
    }
    match broken.or_else(|| spec.vouches.iter().find(damaged).cloned()) {
        Some(name) => stale(Reason::NotVerified { artifacts: vec![name] }),
        None => Freshness::Fresh { digest: known.artifact.digest, adopted: None },
    }
}

fn file(spec: &ArtifactSpec, sources: &Sources, state: &JournalState, found: &Inspections) -> Freshness {
    let artifact = || spec.name.clone();
    let known = state.built(&spec.name);
    let outdated = known.and_then(|known| outdated(spec, sources, known));
    let expected = match (known, &outdated) {
        (Some(known), None) => Some(known.artifact.digest),
        _ => None,
    };
    let stale = |reason| Freshness::Stale { reason, expected };

    let (digest, identity) = match found.get(&spec.name) {
        None | Some(Inspection::Absent) => {
            return stale(Reason::Absent { artifact: artifact() });
        }
        Some(Inspection::Unreadable(what)) => {
            return stale(Reason::Unreadable { artifact: artifact(), what: what.clone() });
        }
        Some(Inspection::Damaged(what)) => {
            return stale(Reason::Damaged { artifact: artifact(), what: what.clone() });
        }
        Some(Inspection::Header { digest, identity }) => (*digest, identity),
    };
    if let Some(damage) = state.damage(&spec.name) {
        return stale(Reason::Damaged { artifact: artifact(), what: damage.what.clone() });
    }
    for (key, is) in &spec.identity {
        if let Some(was) = identity.get(key).filter(|was| !spec.is_satisfied(key, was)) {
            if known.is_some() && expected.is_some() {
                // The file was replaced after the stage made it.
                let what = format!("it is for {key} {was}, but the journal records {key} {is}");
                return stale(Reason::Unreadable { artifact: artifact(), what });
            }
            return Freshness::Stale {
                reason: Reason::Changed { artifact: artifact(), field: key.clone(), was: was.clone(), is: is.clone() },
                expected: None,
            };
        }
    }
    match known {
        None => {
            let says_all = spec.identity.keys().all(|key| identity.contains_key(key));
            if !spec.kind.is_adoptable() || !says_all {
                return stale(Reason::NotRecorded { artifact: artifact() });
            }
            // Its fingerprint needs the digests of its sources.
            match &sources.unknown {
                Some(after) => stale(after.clone()),
                None => Freshness::Fresh { digest, adopted: Some(sources.fingerprint(spec)) },
            }
        }
        Some(known) => match outdated {
            Some(reason) => stale(reason),
            None if known.artifact.digest != digest => stale(Reason::Changed {
                artifact: artifact(),
                field: "content digest".to_owned(),
                was: short(&known.artifact.digest),
                is: short(&digest),
            }),
            None => Freshness::Fresh { digest, adopted: None },
        },
    }
}

/// Returns how the recorded fingerprint of an artifact differs from the current one, if it does.
fn outdated(spec: &ArtifactSpec, sources: &Sources, known: &BuiltArtifact) -> Option<Reason> {
    let was = &known.artifact.fingerprint;
    let changed = |field: &str, was: String, is: String| {
        Some(Reason::Changed { artifact: spec.name.clone(), field: field.to_owned(), was, is })
    };
    if let Some(difference) = was.outdated(spec) {
        return changed(&difference.field, difference.was, difference.is);
    }
    if sources.are(&was.inputs) {
        return None;
    }
    for (name, is) in &sources.known {
        match was.inputs.get(*name) {
            None => return changed(name.as_str(), "no input".to_owned(), short(is)),
            Some(was) if was != is => return changed(name.as_str(), short(was), short(is)),
            Some(_) => {}
        }
    }
    if let Some(after) = &sources.unknown {
        return Some(after.clone());
    }
    let is_known = |name: &ArtifactName| sources.known.iter().any(|(known, _)| *known == name);
    let gone = was.inputs.iter().find(|(name, _)| !is_known(name));
    gone.and_then(|(name, was)| changed(name.as_str(), short(was), "no input".to_owned()))
}
