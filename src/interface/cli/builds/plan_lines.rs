//! The lines of a plan: stages that are shown together.

use pipeline::Plan;
use pipeline::plan::PlannedStage;

/// Plans of fewer lines are not folded.
const FOLDED_LINES_MIN: usize = 12;

/// Stages that take less are folded, unless they make again what exists.
const FOLDED_SECONDS_MAX: f64 = 1.0;

/// A line of a plan: one stage, those of one kind for all bounds of a database, or consecutive ones that take
/// little time.
pub(crate) struct PlanLine<'a> {
    /// The stages of one kind of one database, in order.
    pub(crate) groups: Vec<Vec<&'a PlannedStage>>,
}

impl<'a> PlanLine<'a> {
    /// Returns all stages, in order.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &'a PlannedStage> + '_ {
        self.groups.iter().flatten().copied()
    }

    /// Returns the first stage.
    pub(crate) fn first(&self) -> &'a PlannedStage {
        self.groups[0][0]
    }

    /// Returns the number of stages, if they are folded because they take little time.
    pub(crate) fn folded(&self) -> Option<usize> {
        (self.groups.len() > 1).then(|| self.steps().count())
    }

    /// Returns the name: `sweep:9`, `process:9:9..1`, or `capture:0 to sweep:9`.
    pub(crate) fn name(&self) -> String {
        let first = &self.first().stage;
        let last = self.steps().last().map_or(first, |step| &step.stage);
        match (self.folded(), last.parameters().last()) {
            (Some(_), _) => format!("{first} to {last}"),
            (None, Some(upto)) if last != first => format!("{first}..{upto}"),
            (None, _) => first.to_string(),
        }
    }
}

/// Returns the lines of a plan; with `all`, each stage has its own.
pub(crate) fn lines(plan: &Plan, all: bool) -> Vec<PlanLine<'_>> {
    let mut groups: Vec<Vec<&PlannedStage>> = Vec::new();
    for step in &plan.steps {
        let parameters = step.stage.parameters();
        let same = |group: &&mut Vec<&PlannedStage>| {
            group[0].stage.kind() == step.stage.kind() && group[0].stage.parameters().first() == parameters.first()
        };
        // Searches from the end: the kinds of stages alternate, so the group is near.
        let group = groups.iter_mut().rev().take(3).find(same).filter(|_| parameters.len() > 1 && !all);
        match group {
            Some(group) => group.push(step),
            None => groups.push(vec![step]),
        }
    }
    let lines = groups.into_iter().map(|group| PlanLine { groups: vec![group] });
    if all || lines.len() < FOLDED_LINES_MIN {
        return lines.collect();
    }
    let mut folded: Vec<PlanLine> = Vec::new();
    // Why something that exists is made again stands in a line of its own.
    let is_short = |line: &PlanLine| {
        line.groups.iter().all(|group| seconds(group) < FOLDED_SECONDS_MAX)
            && !line.steps().any(|step| step.reason.is_stale())
    };
    for line in lines {
        match folded.last_mut().filter(|last| is_short(last) && is_short(&line)) {
            Some(last) => last.groups.extend(line.groups),
            None => folded.push(line),
        }
    }
    folded
}

fn seconds(group: &[&PlannedStage]) -> f64 {
    group.iter().map(|step| step.cost.seconds).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::{Cost, Reason, StageName};

    fn plan(stages: &[(&str, f64)]) -> Plan {
        let step = |&(name, seconds): &(&str, f64)| PlannedStage {
            stage: name.parse::<StageName>().unwrap(),
            reason: Reason::Forced,
            cost: Cost { seconds, ..Cost::default() },
            disk_there_bytes: 0,
            disk_kept_bytes: 0,
            disk_released_bytes: 0,
        };
        Plan { steps: stages.iter().map(step).collect(), ..Plan::default() }
    }

    fn names(plan: &Plan, all: bool) -> Vec<String> {
        lines(plan, all).iter().map(PlanLine::name).collect()
    }

    #[test]
    fn stages_of_less_than_a_second_are_folded() {
        let short: Vec<(String, f64)> = (0..12).map(|stones| (format!("sweep:{stones}"), 0.1)).collect();
        let mut stages: Vec<(&str, f64)> = short.iter().map(|(name, seconds)| (name.as_str(), *seconds)).collect();
        stages.extend([("sweep:12", 1.5), ("verify:12", 0.2), ("sweep:13", 9.0)]);
        let long = plan(&stages);
        assert_eq!(names(&long, false), ["sweep:0 to sweep:11", "sweep:12", "verify:12", "sweep:13"]);
        let folded = &lines(&long, false)[0];
        assert_eq!((folded.folded(), folded.first().stage.to_string()), (Some(12), "sweep:0".to_owned()));
        assert_eq!(names(&long, true).len(), 15);
        // A short plan shows each stage and its reason.
        assert_eq!(names(&plan(&stages[..3]), false), ["sweep:0", "sweep:1", "sweep:2"]);
        // So does one that makes again what exists.
        let mut again = plan(&stages);
        for step in &mut again.steps {
            let artifact = "databases/05.awari".parse().unwrap();
            step.reason = Reason::Damaged { artifact, what: "cut short".to_owned() };
        }
        assert_eq!(names(&again, false).len(), 15);
    }

    #[test]
    fn stages_of_all_bounds_share_a_line() {
        let stages = plan(&[("process:9:2", 0.1), ("postprocess:9", 0.1), ("process:9:1", 0.1)]);
        assert_eq!(names(&stages, false), ["process:9:2..1", "postprocess:9"]);
        assert_eq!(names(&stages, true), ["process:9:2", "postprocess:9", "process:9:1"]);
    }
}
