//! Explains why a stage is or is not up to date, field by field: recorded, on disk, requested.

use crate::artifact::{ArtifactKind, ArtifactName, ArtifactSpec, Inspection};
use crate::directory::survey;
use crate::error::Result;
use crate::fingerprint::short;
use crate::journal::{Contents, JournalState};
use crate::orchestrator::Orchestrator;
use crate::plan::{Reason, StageCounts, Standing};
use crate::planning::{Freshness, evaluate, find, plan};
use crate::stage::StageName;
use disk::clock;
use serde::Serialize;

/// The explanation of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The stage.
    pub stage: StageName,
    /// Whether the next run runs it.
    pub runs: bool,
    /// Its standing in the plan.
    pub standing: Standing,
    /// The number of stages of each standing.
    pub counts: StageCounts,
    /// Why it does or does not run, in a sentence.
    pub why: String,
    /// Its outputs.
    pub outputs: Vec<ExplainedArtifact>,
}

/// An output, compared field by field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedArtifact {
    /// The artifact.
    pub artifact: ArtifactName,
    /// Its purpose.
    pub kind: ArtifactKind,
    /// Why it is stale; `None` if it is fresh.
    pub stale: Option<String>,
    /// The stage that made it; `None` if not recorded, or adopted.
    pub made_by: Option<StageName>,
    /// The time when it was made, in seconds since 1970.
    pub made_at: Option<u64>,
    /// The fields that decide whether it is fresh.
    pub fields: Vec<ComparedField>,
}

/// A field that decides whether an artifact is fresh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparedField {
    /// Its name; for a source, `reads NAME`.
    pub field: String,
    /// The value in the journal.
    pub recorded: Option<String>,
    /// The value in the file.
    pub on_disk: Option<String>,
    /// The requested value.
    pub asked: Option<String>,
    /// Whether the known values agree. Always true for a stage that is not needed.
    pub agrees: bool,
}

impl Orchestrator<'_> {
    /// Explains one stage. Writes nothing and takes no lock.
    ///
    /// # Errors
    /// As [`Orchestrator::plan`], or [`PipelineError::UnknownStage`](crate::PipelineError::UnknownStage).
    pub fn explain(&self, name: &str) -> Result<Explanation> {
        let graph = self.work.graph();
        let at = find(graph, name)?;
        let stage = &graph.stages()[at];
        let journal = Contents::read(self.disk, &crate::directory::journal_path(&self.directory))?;
        let state = JournalState::replay(&journal.entries);
        let found = survey(self.disk, &self.directory, self.work)?;
        let plan = plan(graph, &state, &found, &self.plan_options(self.options.force.iter().cloned().collect()))?;
        let freshness = evaluate(graph, &state, &found);
        let step = plan.steps.iter().find(|step| step.stage == stage.name);
        let settled = plan.fresh.iter().find(|settled| settled.stage == stage.name);
        let why = match (step, settled) {
            (Some(step), _) => step.reason.to_string(),
            (None, Some(settled)) => settled.why.to_string(),
            (None, None) => String::new(),
        };
        let standing = plan.standing(&stage.name);
        let outputs = graph.outputs(at).map(|output| {
            let sources: Vec<(&ArtifactName, &Freshness)> =
                graph.sources(at).map(|name| (name, &freshness[name])).collect();
            let mut explained = explained(output, &state, found.get(&output.name), &freshness[&output.name], &sources);
            explained.fields.iter_mut().for_each(|field| field.agrees |= standing == Standing::NotNeeded);
            explained
        });
        Ok(Explanation {
            stage: stage.name.clone(),
            runs: step.is_some(),
            standing,
            counts: plan.stage_counts(),
            why,
            outputs: outputs.collect(),
        })
    }
}

fn explained(
    spec: &ArtifactSpec,
    state: &JournalState,
    found: Option<&Inspection>,
    freshness: &Freshness,
    sources: &[(&ArtifactName, &Freshness)],
) -> ExplainedArtifact {
    let built = state.built(&spec.name);
    let recorded = built.map(|built| &built.artifact.fingerprint);
    let (header, digest) = match found {
        Some(Inspection::Header { digest, identity }) => (Some(identity), Some(short(digest))),
        _ => (None, None),
    };
    let mut fields = Vec::new();
    if spec.kind.is_file() {
        let there = match found {
            None | Some(Inspection::Absent) => "absent".to_owned(),
            Some(Inspection::Header { .. }) => "there".to_owned(),
            Some(Inspection::Unreadable(what) | Inspection::Damaged(what)) => what.clone(),
        };
        let agrees = matches!(found, Some(Inspection::Header { .. }));
        fields.push(ComparedField { field: "file".into(), recorded: None, on_disk: Some(there), asked: None, agrees });
    }
    let recorded_content = recorded.map(|fingerprint| fingerprint.content.clone());
    fields.push(ComparedField::new("content", recorded_content, None, Some(spec.content.clone())));
    fields.push(ComparedField::new(
        "version",
        recorded.map(|fingerprint| fingerprint.version.to_string()),
        None,
        Some(spec.version.to_string()),
    ));
    for (key, asked) in &spec.identity {
        let was = recorded.and_then(|fingerprint| fingerprint.identity.get(key));
        let is = header.and_then(|identity| identity.get(key));
        let satisfied = |value: &String| spec.is_satisfied(key, value);
        let agrees = was.is_none_or(satisfied) && is.is_none_or(satisfied);
        fields.push(ComparedField {
            field: key.clone(),
            recorded: was.cloned(),
            on_disk: is.cloned(),
            asked: Some(asked.clone()),
            agrees,
        });
    }
    for (name, source) in sources {
        let was = recorded.and_then(|fingerprint| fingerprint.inputs.get(*name)).map(short);
        let is = source.digest().as_ref().map(short);
        let agrees = recorded.is_none() || is.is_some() && was == is;
        let asked = is.or_else(|| Some("unknown until it is made".to_owned()));
        fields.push(ComparedField { field: format!("reads {name}"), recorded: was, on_disk: None, asked, agrees });
    }
    let content_digest = built.map(|built| short(&built.artifact.digest));
    if spec.kind.is_file() {
        fields.push(ComparedField::new("content digest", content_digest, digest, None));
    }
    if let Some(Reason::Doubtful { source, found_at, good_at, .. }) = freshness.reason() {
        let good = good_at.map_or("never".to_owned(), clock::utc);
        fields.push(ComparedField {
            field: format!("made from {source}"),
            recorded: built.map(|built| clock::utc(built.at)),
            on_disk: None,
            asked: Some(format!("last good {good}, found wrong {}", clock::utc(*found_at))),
            agrees: false,
        });
    }
    if let Some(damage) = state.damage(&spec.name) {
        let what = Some(damage.what.clone());
        fields.push(ComparedField {
            field: "damage".into(),
            recorded: what,
            on_disk: None,
            asked: None,
            agrees: false,
        });
    }
    ExplainedArtifact {
        artifact: spec.name.clone(),
        kind: spec.kind,
        stale: freshness.reason().map(ToString::to_string),
        made_by: built.and_then(|built| built.stage.clone()),
        made_at: built.map(|built| built.at),
        fields,
    }
}

impl ComparedField {
    /// Makes a field whose known values must all be equal.
    fn new(field: &str, recorded: Option<String>, on_disk: Option<String>, asked: Option<String>) -> ComparedField {
        let known: Vec<&String> = [&recorded, &on_disk, &asked].into_iter().flatten().collect();
        let agrees = known.windows(2).all(|two| two[0] == two[1]);
        ComparedField { field: field.to_owned(), recorded, on_disk, asked, agrees }
    }
}
