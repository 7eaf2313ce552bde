//! The execution of one stage: reports its progress, measures it, and checks its outputs.

use crate::artifact::{ArtifactName, ArtifactSpec, Inspection};
use crate::directory::Inspections;
use crate::fingerprint::Fingerprint;
use crate::graph::Graph;
use crate::journal::{ArtifactRecord, JournalState, Measured};
use crate::observer::{Event, Observer};
use crate::report::StageError;
use crate::stage::StageSpec;
use crate::thread_label::{label, labelled};
use crate::work::{StageContext, Work};
use disk::{Digest, Usage, clock, heap, threads};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Time between samples of the resident memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(50);

/// Returns freed heap to the kernel before a stage: it counts as resident, and no prediction includes it.
/// That takes time, and so does getting it back. Therefore nothing is returned before short stages, those
/// with several parameters, unless the process has more than half of the budget, or before others unless it
/// has more than an eighth.
fn release_heap(stage: &StageSpec, budget_bytes: u64) {
    let share = if stage.name.parameters().len() > 1 { 2 } else { 8 };
    if clock::resident_bytes() > Some(budget_bytes / share) {
        heap::release();
    }
}

/// Measures the peak resident memory of a stage: the peak of the kernel if the stage raised it, otherwise the largest
/// sample. (Resetting the peak of the kernel would hide it from observers of the process.)
struct PeakMeter {
    peak_before: Option<u64>,
    seen: Option<u64>,
}

impl PeakMeter {
    fn start() -> PeakMeter {
        PeakMeter { peak_before: clock::peak_resident_bytes(), seen: clock::resident_bytes() }
    }

    fn sample(&mut self) {
        self.seen = self.seen.max(clock::resident_bytes());
    }

    fn peak(mut self) -> Option<u64> {
        self.sample();
        let peak = clock::peak_resident_bytes();
        if peak > self.peak_before { peak } else { self.seen }
    }
}

/// The outputs and the cost of a completed stage.
pub(crate) struct ExecutedStage {
    pub(crate) artifacts: Vec<ArtifactRecord>,
    pub(crate) found: Inspections,
    pub(crate) measured: Measured,
}

/// The fingerprints of the outputs of a stage.
pub(crate) struct Fingerprints(BTreeMap<ArtifactName, Fingerprint>);

impl Fingerprints {
    /// Returns a digest of all of them.
    pub(crate) fn digest(&self) -> Digest {
        let mut text = String::new();
        for (name, fingerprint) in &self.0 {
            text.push_str(&format!("{name} {}\n", fingerprint.digest()));
        }
        Digest::of(text.as_bytes())
    }

    /// Returns the fingerprint of snapshots: the same results from the same sources, none of which was found
    /// wrong since.
    pub(crate) fn snapshots(&self, state: &JournalState) -> Digest {
        let inputs: BTreeSet<&ArtifactName> =
            self.0.values().flat_map(|fingerprint| fingerprint.inputs.keys()).collect();
        let wrong = inputs.iter().flat_map(|name| state.silent_damage(name).iter().map(move |found| (name, found)));
        let wrong: String = wrong.map(|(name, found)| format!("{name} {}\n", found.sequence)).collect();
        if wrong.is_empty() { self.digest() } else { Digest::of(format!("{}\n{wrong}", self.digest()).as_bytes()) }
    }

    pub(crate) fn get(&self, name: &ArtifactName) -> &Fingerprint {
        &self.0[name]
    }
}

/// Returns the fingerprints of the outputs of a stage, made from sources with the given digests; `None` if a digest is
/// missing.
pub(crate) fn fingerprints_of(
    graph: &Graph,
    at: usize,
    digest: impl Fn(&ArtifactName) -> Option<Digest>,
) -> Option<Fingerprints> {
    let mut inputs = BTreeMap::new();
    for source in graph.sources(at) {
        inputs.insert(source.clone(), digest(source)?);
    }
    let outputs = graph.outputs(at);
    let fingerprints = outputs.map(|output| {
        let fingerprint = Fingerprint::new(output, inputs.clone());
        (output.name.clone(), fingerprint)
    });
    Some(Fingerprints(fingerprints.collect()))
}

/// Runs a stage and checks its outputs.
pub(crate) fn execute(
    work: &dyn Work,
    stage: &StageSpec,
    context: &StageContext<'_>,
    fingerprints: &Fingerprints,
    observer: &dyn Observer,
) -> Result<ExecutedStage, StageError> {
    let watch = context.stopwatch();
    let cpu_start = clock::cpu_seconds();
    let traffic_start = context.disk.traffic();
    // What other stages use meanwhile is not that of this one.
    let usage = (!context.is_alone()).then(Arc::<Usage>::default);
    release_heap(stage, context.memory.bytes());
    let mut memory = PeakMeter::start();
    let run = || {
        std::thread::scope(|scope| {
            let (_running, ended) = mpsc::channel::<()>();
            // The thread ends when the sender is dropped, also if the stage panics.
            let memory = &mut memory;
            let show = move || {
                let start = Instant::now();
                let tick = observer.interval().min(MEMORY_INTERVAL);
                let mut next = observer.interval();
                while ended.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                    memory.sample();
                    if start.elapsed() < next {
                        continue;
                    }
                    next = next.saturating_add(observer.interval());
                    observer.notice(&Event::Progress {
                        stage: stage.name.clone(),
                        reading: context.progress.read(context.disk.clock().steady()),
                        seconds: watch.elapsed().as_secs_f64(),
                    });
                }
            };
            let label = label();
            let show = || labelled(label, show);
            threads::spawn_scoped(scope, Builder::new(), show).map_err(StageError::no_threads)?;
            work.run(stage, context)
        })
    };
    let mut report = Usage::charge(usage.clone(), run)?;
    let written = std::mem::take(&mut report.written);
    let (cpu_seconds, traffic) = match usage {
        None => (clock::cpu_seconds() - cpu_start, context.disk.traffic() - traffic_start),
        Some(usage) => (usage.cpu_seconds(), usage.traffic()),
    };
    let measured = Measured {
        wall_seconds: watch.elapsed().as_secs_f64(),
        cpu_seconds,
        memory_peak_bytes: memory.peak(),
        read_bytes: Some(traffic.read_bytes),
        written_bytes: Some(traffic.written_bytes),
        report,
    };
    let mut done = ExecutedStage { artifacts: Vec::new(), found: Inspections::new(), measured };
    let at = work.graph().position(&stage.name).expect("a stage of the graph");
    for artifact in work.graph().outputs(at) {
        let name = &artifact.name;
        let fingerprint = fingerprints.get(name).clone();
        let (digest, bytes) = if artifact.kind.is_file() {
            let path = context.output(name);
            let found = work.inspect(context.disk, &path, artifact)?;
            let digest = made(artifact, &found)?;
            if written.get(name).is_some_and(|written| *written != digest) {
                let what = "it is not what was written a moment ago".to_owned();
                return Err(StageError::Damaged { artifact: name.clone(), what, silent: false });
            }
            done.found.insert(name.clone(), found);
            (digest, context.disk.bytes(&path)?.unwrap_or(0))
        } else {
            (fingerprint.digest(), 0)
        };
        done.artifacts.push(ArtifactRecord { name: name.clone(), digest, bytes, fingerprint });
    }
    Ok(done)
}

/// Returns the digest of an output, if it is what the stage should have made.
fn made(artifact: &ArtifactSpec, found: &Inspection) -> Result<Digest, StageError> {
    let name = &artifact.name;
    let wrong = |what: String| Err(StageError::failed(format!("it should have made {name}, {what}")));
    match found {
        Inspection::Header { digest, identity } => {
            for (key, value) in identity {
                if artifact.identity.get(key).is_some_and(|_| !artifact.is_satisfied(key, value)) {
                    return wrong(format!("but made one for {key} {value}"));
                }
            }
            Ok(*digest)
        }
        Inspection::Absent => wrong("which is absent".to_owned()),
        Inspection::Unreadable(what) => wrong(format!("which cannot be read: {what}")),
        Inspection::Damaged(what) => {
            Err(StageError::Damaged { artifact: name.clone(), what: what.clone(), silent: false })
        }
    }
}
