//! The stages of a build: what each reads and makes, with its planned cost.
//!
//! For each number of stones: capture, solve, verify, statistics; the next number waits for the verification.

use crate::bounds::Plane;
use crate::files;
use pipeline::{ArtifactKind, ArtifactName, ArtifactSpec, Graph, StageName, StageSpec};
use planner::{BuildPlan, DatabasePlan, Settings, Verify};

/// Versions of what the stages compute: raised when the same inputs should give other contents.
const DATABASE_VERSION: u32 = 1;
const CAPTURE_VERSION: u32 = 1;
const PLANE_VERSION: u32 = 1;
const VERIFY_VERSION: u32 = 1;
const STATS_VERSION: u32 = 1;

/// Returns all stages and artifacts of a build.
pub(crate) fn graph(plan: &BuildPlan) -> Graph {
    let mut stages = Vec::new();
    let mut artifacts = Vec::new();
    for database in plan.databases() {
        let one = OneDatabase { settings: plan.settings(), plan: database };
        one.declare(&mut stages, &mut artifacts);
    }
    Graph::new(stages, artifacts).expect("stages are declared in the order in which they read each other")
}

/// The stages of one number of stones.
struct OneDatabase<'a> {
    settings: &'a Settings,
    plan: &'a DatabasePlan,
}

impl OneDatabase<'_> {
    fn declare(&self, stages: &mut Vec<StageSpec>, artifacts: &mut Vec<ArtifactSpec>) {
        let stones = self.plan.stones();
        let (capture, database) = (files::capture(stones), files::database(stones));
        let smaller = self.smaller();

        let mut after = Vec::new();
        if let Some(before) = stones.checked_sub(1).filter(|_| self.settings.verify != Verify::None) {
            after.push(StageName::new("verify", &[before]));
        }
        let method = self.plan.method();
        stages.push(StageSpec {
            inputs: smaller.clone(),
            outputs: vec![capture.clone()],
            after,
            cost: self.plan.cost("capture"),
            ..StageSpec::new(StageName::new("capture", &[stones]))
        });
        artifacts.push(self.artifact(capture.clone(), ArtifactKind::Intermediate, "capture").version(CAPTURE_VERSION));

        if method.has_bounds() {
            self.declare_bounds(stages, artifacts);
        } else {
            stages.push(StageSpec {
                inputs: vec![capture.clone()],
                outputs: vec![database.clone()],
                cost: self.plan.cost(method.word()),
                ..StageSpec::new(StageName::new(method.word(), &[stones]))
            });
        }
        artifacts.push(self.artifact(database.clone(), ArtifactKind::Target, "database").version(DATABASE_VERSION));

        if self.settings.verify != Verify::None {
            let verified = files::verification(stones);
            let mut inputs = smaller;
            inputs.push(database.clone());
            stages.push(StageSpec {
                inputs,
                outputs: vec![verified.clone()],
                cost: self.plan.cost("verify"),
                ..StageSpec::new(StageName::new("verify", &[stones]))
            });
            let fact = self
                .artifact(verified, ArtifactKind::Verification, "verification")
                .version(VERIFY_VERSION)
                .identity("extent", self.settings.verify)
                .identity("published", self.settings.published);
            artifacts.push(fact.accept("extent", Verify::Full).accept("published", true).vouch(database.clone()));
        }

        let stats = files::stats(stones);
        stages.push(StageSpec {
            inputs: vec![capture, database],
            outputs: vec![stats.clone()],
            cost: self.plan.cost("stats"),
            ..StageSpec::new(StageName::new("stats", &[stones]))
        });
        artifacts.push(self.artifact(stats, ArtifactKind::Report, "statistics").version(STATS_VERSION));
    }

    /// The stages of a method that solves bound after bound, up to the database.
    fn declare_bounds(&self, stages: &mut Vec<StageSpec>, artifacts: &mut Vec<ArtifactSpec>) {
        let stones = self.plan.stones();
        let name = |plane: Plane| plane.name(stones);
        let mut stage = |kind: &str, bound: Option<u32>, inputs: Vec<Plane>, outputs: &[Plane]| {
            let parameters: Vec<u32> = std::iter::once(stones).chain(bound).collect();
            let mut inputs: Vec<_> = inputs.into_iter().map(name).collect();
            let mut produced: Vec<_> = outputs.iter().copied().map(name).collect();
            match kind {
                "seeds" => inputs.push(files::capture(stones)),
                "merge" => produced.push(files::database(stones)),
                _ => {}
            }
            stages.push(StageSpec {
                inputs,
                outputs: produced,
                cost: self.plan.cost(kind),
                // Those of seeds are reserved whole before they are written.
                folder: (kind != "seeds").then(|| Plane::folder(stones)),
                ..StageSpec::new(StageName::new(kind, &parameters))
            });
            artifacts.extend(outputs.iter().map(|&plane| {
                self.artifact(name(plane), ArtifactKind::Intermediate, plane.content())
                    .version(PLANE_VERSION)
                    .identity("bound", plane.bound())
            }));
        };
        if stones > 0 {
            stage("seeds", None, Vec::new(), &[Plane::WinSeeds, Plane::CandidateSeeds]);
        }
        for bound in (1..=stones).rev() {
            // The state is that of the bounds above.
            let above = || (bound + 1..=stones).rev().flat_map(|above| [Plane::Won(above), Plane::Lost(above)]);
            let inputs = [Plane::WinSeeds, Plane::CandidateSeeds].into_iter().chain(above()).collect();
            stage("preprocess", Some(bound), inputs, &[Plane::Seed(bound)]);
            let inputs = [Plane::CandidateSeeds, Plane::Seed(bound)].into_iter().chain(above()).collect();
            stage("process", Some(bound), inputs, &[Plane::Won(bound), Plane::Lost(bound)]);
            stage("postprocess", Some(bound), vec![Plane::Lost(bound)], &[Plane::Decided(bound)]);
        }
        let inputs = (1..=stones).flat_map(|bound| [Plane::Won(bound), Plane::Decided(bound)]).collect();
        stage("merge", None, inputs, &[]);
    }

    /// The databases that captures lead to.
    fn smaller(&self) -> Vec<ArtifactName> {
        self.settings.smaller(self.plan.stones()).map(files::database).collect()
    }

    fn artifact(&self, name: ArtifactName, kind: ArtifactKind, content: &str) -> ArtifactSpec {
        ArtifactSpec::new(name, kind, content)
            .identity("rules", self.settings.rules.name)
            .identity("positions", self.settings.set)
            .identity("stones", self.plan.stones())
    }
}
