//! Toy stages for tests: databases of a few bytes, each computed from all smaller ones.
//!
//! Per n: `capture:n` digests the smaller databases, `solve:n` (or another method's name) makes the
//! database, `verify:n` recomputes it, `stats:n` reports on it.

use crate::artifact::{ArtifactKind, ArtifactName, ArtifactSpec, Inspection};
use crate::directory::Directory;
use crate::error::Result;
use crate::graph::Graph;
use crate::journal::Record;
use crate::orchestrator::{Orchestrator, RunOptions, RunSummary, ScratchDirectory, StageRerun};
use crate::plan::Plan;
use crate::report::{StageError, StageReport};
use crate::stage::{Cost, StageName, StageSpec};
use crate::work::{StageContext, Work};
use disk::{Digest, Disk, DiskError, MemoryDisk, Staged};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The run directory of the tests.
pub(crate) const DIRECTORY: &str = "/run";

pub(crate) struct Toy {
    pub(crate) graph: Graph,
    /// Databases whose solver adds a salt, which is not part of the fingerprint.
    pub(crate) salted: BTreeSet<u32>,
    pub(crate) fail: BTreeSet<String>,
    /// Forges a file of the disk while a stage runs.
    pub(crate) exchange_in: Option<(String, Box<dyn Fn() + Sync>)>,
    /// Forges a file of the disk that a stage has just made.
    pub(crate) exchange_after: Option<(String, Box<dyn Fn() + Sync>)>,
    /// Called when a stage begins; an error is that of the stage.
    pub(crate) begins: Option<Box<Begins>>,
    /// Raises the flag while this stage runs.
    pub(crate) stop_in: Option<(String, &'static AtomicBool)>,
    pub(crate) log: Mutex<Vec<String>>,
}

/// Called with the name of a stage and its context.
type Begins = dyn Fn(&str, &StageContext<'_>) -> Result<(), StageError> + Sync;

/// How the toy's graph is made.
#[derive(Clone)]
pub(crate) struct Design {
    pub(crate) last: u32,
    pub(crate) method: &'static str,
    pub(crate) rules: &'static str,
    pub(crate) versions: BTreeMap<u32, u32>,
    pub(crate) check: &'static str,
    /// Whether the capture and the solver of a database share a folder.
    pub(crate) has_chains: bool,
    /// Whether stages take threads that become free.
    pub(crate) grows: bool,
}

impl Default for Design {
    fn default() -> Self {
        Design {
            last: 3,
            method: "solve",
            rules: "toy",
            versions: BTreeMap::new(),
            check: "full",
            has_chains: false,
            grows: false,
        }
    }
}

pub(crate) fn artifact(name: &str) -> ArtifactName {
    ArtifactName::new(name).unwrap()
}

fn database(n: u32) -> ArtifactName {
    artifact(&format!("databases/{n}"))
}

fn capture(n: u32) -> ArtifactName {
    artifact(&format!("captures/{n}"))
}

impl Design {
    pub(crate) fn toy(&self) -> Toy {
        let mut stages = Vec::new();
        let mut artifacts = Vec::new();
        let cost = Cost {
            positions: 10,
            seconds: 1.0,
            memory_bytes: 100,
            disk_bytes: 1000,
            disk_kept_bytes: 100,
            core_seconds: 1.0,
            disk_seconds: 0.0,
        };
        for n in 0..=self.last {
            let verified = artifact(&format!("verified/{n}"));
            let stats = artifact(&format!("stats/{n}"));
            let spec = |name: &ArtifactName, kind, content: &str| {
                ArtifactSpec::new(name.clone(), kind, content).identity("rules", self.rules).identity("n", n)
            };
            artifacts.push(spec(&capture(n), ArtifactKind::Intermediate, "capture"));
            let version = self.versions.get(&n).copied().unwrap_or(1);
            artifacts.push(spec(&database(n), ArtifactKind::Target, "database").version(version));
            let mut verification = spec(&verified, ArtifactKind::Verification, "verified")
                .identity("check", self.check)
                .vouch(database(n));
            if self.check == "sample" {
                verification = verification.accept("check", "full");
            }
            artifacts.push(verification);
            artifacts.push(spec(&stats, ArtifactKind::Report, "stats"));
            let mut stage = |kind: &str, inputs, outputs: &ArtifactName| {
                let is_chained = self.has_chains && (kind == "capture" || kind == self.method);
                stages.push(StageSpec {
                    inputs,
                    outputs: vec![outputs.clone()],
                    cost,
                    folder: is_chained.then(|| format!("planes/{n}/")),
                    grows: self.grows,
                    ..StageSpec::new(StageName::new(kind, &[n]))
                });
            };
            stage("capture", (0..n).map(database).collect(), &capture(n));
            stage(self.method, vec![capture(n)], &database(n));
            stage("verify", (0..=n).map(database).collect(), &verified);
            stage("stats", vec![database(n)], &stats);
        }
        Toy {
            graph: Graph::new(stages, artifacts).unwrap(),
            salted: BTreeSet::new(),
            fail: BTreeSet::new(),
            exchange_in: None,
            exchange_after: None,
            begins: None,
            stop_in: None,
            log: Mutex::new(Vec::new()),
        }
    }
}

/// Header line `toy IDENTITY LENGTH DIGEST CHECKSUM`, then the content.
fn encode(identity: &BTreeMap<String, String>, content: &[u8], digest: Digest) -> Vec<u8> {
    let identity: Vec<String> = identity.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let (identity, checksum) = (identity.join(","), Digest::of(content));
    let mut bytes = format!("toy {identity} {} {digest} {checksum}\n", content.len()).into_bytes();
    bytes.extend_from_slice(content);
    bytes
}

struct Decoded {
    identity: BTreeMap<String, String>,
    /// The digest in the header: only verification compares it.
    digest: Digest,
    /// Every reader compares it.
    checksum: Digest,
    length: usize,
    content: Vec<u8>,
}

fn decode(bytes: &[u8]) -> Option<Decoded> {
    let newline = bytes.iter().position(|b| *b == b'\n')?;
    let header = std::str::from_utf8(&bytes[..newline]).ok()?;
    let mut words = header.strip_prefix("toy ")?.split(' ');
    let identity = words.next()?.split(',').filter_map(|pair| pair.split_once('='));
    let identity = identity.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let length = words.next()?.parse().ok()?;
    let digest = words.next()?.parse().ok()?;
    let checksum = words.next()?.parse().ok()?;
    let content = bytes[newline + 1..].to_vec();
    Some(Decoded { identity, digest, checksum, length, content })
}

impl Toy {
    fn read(&self, context: &StageContext<'_>, name: &ArtifactName) -> Result<Vec<u8>, StageError> {
        let bytes = context.disk().read(&context.input(name), 1 << 20)?;
        let decoded = decode(&bytes).ok_or_else(|| StageError::failed("not a toy"))?;
        if Digest::of(&decoded.content) != decoded.checksum {
            return Err(StageError::Damaged {
                artifact: name.clone(),
                what: "its checksum differs".to_owned(),
                silent: false,
            });
        }
        Ok(decoded.content)
    }

    fn write(&self, context: &StageContext<'_>, name: &ArtifactName, content: &[u8]) -> Result<(), DiskError> {
        let spec = self.graph.artifact(name).unwrap();
        let path = context.output(name);
        let mut staged = Staged::create(context.disk(), &path, 200)?;
        staged.write(&encode(&spec.identity, content, Digest::of(content)))?;
        staged.publish()?;
        Ok(())
    }

    fn solve(&self, n: u32, capture: &[u8]) -> Vec<u8> {
        let salt = if self.salted.contains(&n) { "salt" } else { "" };
        let rules = &self.graph.artifact(&database(n)).unwrap().identity["rules"];
        let text = format!("database {n} {rules} {salt}");
        Digest::of(&[text.as_bytes(), capture].concat()).0.to_vec()
    }

    /// The stages that ran since the last call.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

impl Work for Toy {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn inspect(&self, disk: &dyn Disk, path: &Path, _artifact: &ArtifactSpec) -> Result<Inspection, DiskError> {
        let bytes = match disk.read(path, 1 << 20) {
            Err(error) if error.is_not_found() => return Ok(Inspection::Absent),
            other => other?,
        };
        Ok(match decode(&bytes) {
            None => Inspection::Unreadable("it is not a toy".to_owned()),
            Some(toy) if toy.content.len() != toy.length => {
                Inspection::Damaged(format!("{} bytes, expected {}", toy.content.len(), toy.length))
            }
            Some(toy) => Inspection::Header { digest: toy.digest, identity: toy.identity },
        })
    }

    fn folders(&self) -> Vec<PathBuf> {
        vec![PathBuf::from("planes")]
    }

    fn is_name(&self, name: &ArtifactName) -> bool {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        name.as_str().starts_with("planes/") || name.as_str().split_once('/').is_some_and(|(_, file)| is_number(file))
    }

    fn is_ours(&self, disk: &dyn Disk, path: &Path) -> bool {
        disk.read(path, 1 << 20).is_ok_and(|bytes| bytes.starts_with(b"toy "))
    }

    fn recognises(&self, disk: &dyn Disk, path: &Path, _name: &ArtifactName) -> Result<bool, DiskError> {
        Ok(decode(&disk.read(path, 1 << 20)?).is_some())
    }

    fn local_snapshots(&self, _disk: &dyn Disk, _directory: &Path) -> Option<PathBuf> {
        Some(PathBuf::from("/scratch/toy"))
    }

    fn run(&self, stage: &StageSpec, context: &StageContext<'_>) -> Result<StageReport, StageError> {
        let name = stage.name.to_string();
        self.log.lock().unwrap().push(name.clone());
        if self.fail.contains(&name) {
            return Err(StageError::failed("the toy broke"));
        }
        if let Some(begins) = &self.begins {
            begins(&name, context)?;
        }
        if let Some((stage, exchange)) = &self.exchange_in
            && *stage == name
        {
            exchange();
        }
        if let Some((stage, flag)) = &self.stop_in
            && *stage == name
        {
            flag.store(true, Ordering::Relaxed);
        }
        let n = stage.name.parameters()[0];
        context.progress().begin(10, "positions");
        match stage.name.kind() {
            "capture" => {
                let mut all = Vec::new();
                for input in &stage.inputs {
                    all.extend(self.read(context, input)?);
                }
                self.write(context, &capture(n), &Digest::of(&all).0)?;
            }
            "verify" => {
                let mut all = Vec::new();
                for smaller in 0..n {
                    all.extend(self.read(context, &database(smaller))?);
                }
                if self.read(context, &database(n))? != self.solve(n, &Digest::of(&all).0) {
                    return Err(StageError::Damaged {
                        artifact: database(n),
                        what: "a score is wrong".to_owned(),
                        silent: true,
                    });
                }
            }
            "stats" => {
                let content = self.read(context, &database(n))?;
                let mean = content.iter().map(|b| u64::from(*b)).sum::<u64>() / 32;
                let name = artifact(&format!("stats/{n}"));
                let text = mean.to_string();
                self.write(context, &name, text.as_bytes())?;
                if let Some((after, exchange)) = &self.exchange_after
                    && *after == stage.name.to_string()
                {
                    exchange();
                }
                return Ok(StageReport::new(10).wrote(name, Digest::of(text.as_bytes())));
            }
            _ => {
                if context.stop_requested() {
                    let snapshot = context.snapshots().prepare()?.join("half");
                    let mut staged = Staged::create(context.disk(), &snapshot, 0)?;
                    staged.write(b"half")?;
                    staged.publish()?;
                    return Err(StageError::Stopped);
                }
                let resumed = context.snapshots().saved().is_some();
                let content = self.solve(n, &self.read(context, &capture(n))?);
                self.write(context, &database(n), &content)?;
                context.progress().advance(10);
                return Ok(StageReport::new(10).with("resumed", u64::from(resumed)));
            }
        }
        Ok(StageReport::new(10))
    }
}

/// A disk and the toy's directory on it.
#[derive(Default)]
pub(crate) struct Bench {
    pub(crate) disk: MemoryDisk,
    pub(crate) options: RunOptions,
}

impl Bench {
    /// An empty directory for runs with several stages at a time.
    pub(crate) fn with_stages(stages_at_a_time: usize) -> Bench {
        let options = RunOptions { stages_at_a_time, threads: stages_at_a_time, ..RunOptions::default() };
        Bench { options, ..Bench::default() }
    }

    /// A directory in which everything is built.
    pub(crate) fn built() -> Bench {
        let bench = Bench::default();
        bench.run(&Design::default().toy()).unwrap();
        bench
    }

    pub(crate) fn run(&self, toy: &Toy) -> Result<RunSummary> {
        self.orchestrator(toy).run()
    }

    pub(crate) fn orchestrator<'a>(&'a self, toy: &'a Toy) -> Orchestrator<'a> {
        Orchestrator::new(&self.disk, Path::new(DIRECTORY), toy, self.options.clone())
    }

    pub(crate) fn plan(&self, toy: &Toy) -> Result<Plan> {
        self.orchestrator(toy).plan()
    }

    /// The steps of the plan with their reasons, one a line.
    #[track_caller]
    pub(crate) fn steps(&self, toy: &Toy) -> String {
        let plan = self.plan(toy).unwrap();
        let steps = plan.steps.iter();
        steps.map(|step| format!("{}: {}\n", step.stage, step.reason)).collect()
    }

    pub(crate) fn single(&self, toy: &Toy, stage: &str) -> Result<StageRerun> {
        let parent = Path::new("/tmp").to_path_buf();
        self.orchestrator(toy).single(stage, &ScratchDirectory::Temporary(parent))
    }

    pub(crate) fn remove(&self, name: &str) {
        self.disk.remove(&Path::new(DIRECTORY).join(name)).unwrap();
    }

    pub(crate) fn edit(&self, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let path = Path::new(DIRECTORY).join(name);
        let mut bytes = self.disk.peek(&path).unwrap();
        edit(&mut bytes);
        self.disk.put(&path, &bytes);
    }

    /// Puts other content into a file, under the old digest and a right checksum.
    pub(crate) fn forge(&self, name: &str) {
        self.edit(name, |bytes| {
            let Decoded { identity, digest, mut content, .. } = decode(bytes).unwrap();
            content[0] ^= 1;
            *bytes = encode(&identity, &content, digest);
        });
    }

    /// Puts a record into the journal, as a command beside the run does.
    pub(crate) fn record(&self, record: Record) {
        let mut directory = Directory::open(&self.disk, Path::new(DIRECTORY), "a command", &|| Ok(true)).unwrap();
        directory.journal().append(record).unwrap();
    }

    /// Returns all files that must not depend on the course of the run.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for path in self.disk.paths() {
            let name = path.to_string_lossy().into_owned();
            let name = name.trim_start_matches("/run/").to_owned();
            if !matches!(name.as_str(), "journal" | "lock") {
                files.insert(name, self.disk.peek(&path).unwrap());
            }
        }
        files
    }
}
