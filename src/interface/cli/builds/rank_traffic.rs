//! Work, traffic and balance of the stages that several ranks ran, for `awari status`.

use crate::text::quantity;
use pipeline::status::StageStatus;
use pipeline::{Budget, StageName};
use std::fmt::Write;

/// Number of stages that are listed, the last ones.
const STAGES_MAX: usize = 6;

/// Work, traffic and balance of one stage.
struct RankTraffic<'a> {
    stage: &'a StageName,
    ranks: f64,
    bytes_sent: f64,
    messages_sent: f64,
    /// Shares of the time of the threads in which they computed, and of that of the ranks in which they
    /// waited for messages.
    computed_share: f64,
    waited_share: f64,
    work_most_by_mean: f64,
    bytes_most_by_mean: f64,
    disk_most_by_mean: f64,
    memory_bytes: f64,
    seconds: f64,
}

impl RankTraffic<'_> {
    /// Returns the figures of a stage, if several ranks ran it.
    fn of(status: &StageStatus) -> Option<RankTraffic<'_>> {
        let measured = status.measured.as_ref()?;
        let counter = |name: &str| Some(measured.report.counters.get(name)?.as_f64());
        let ranks = counter("ranks").filter(|&ranks| ranks > 1.0)?;
        Some(RankTraffic {
            stage: &status.stage,
            ranks,
            bytes_sent: counter("bytes_sent")?,
            messages_sent: counter("messages_sent")?,
            computed_share: counter("computed_share")?,
            waited_share: counter("waited_share")?,
            work_most_by_mean: counter("work_most_by_mean")?,
            bytes_most_by_mean: counter("bytes_most_by_mean")?,
            disk_most_by_mean: counter("disk_most_by_mean")?,
            memory_bytes: counter("rank_memory_bytes")?,
            seconds: ranks * measured.wall_seconds,
        })
    }
}

/// Returns a line on all stages that several ranks ran, and one on each of the last ones; nothing if there are none.
pub(crate) fn summary(stages: &[StageStatus]) -> String {
    let all: Vec<RankTraffic> = stages.iter().filter_map(RankTraffic::of).collect();
    let Some(most) = all.iter().map(|traffic| traffic.ranks).reduce(f64::max) else { return String::new() };
    let sum = |figure: fn(&RankTraffic) -> f64| all.iter().map(figure).sum::<f64>();
    let mut text = format!(
        "{} done by up to {most:.0} ranks: sent {} in {}, computed {} of the time, waited for messages {} (most: of one \
         rank, by the mean)\n",
        quantity::plural(all.len() as u64, "stage"),
        size(sum(|traffic| traffic.bytes_sent)),
        quantity::plural(sum(|traffic| traffic.messages_sent) as u64, "message"),
        percent(
            sum(|traffic| traffic.computed_share * traffic.seconds) / f64::max(sum(|traffic| traffic.seconds), 1e-9)
        ),
        percent(sum(|traffic| traffic.waited_share * traffic.seconds) / f64::max(sum(|traffic| traffic.seconds), 1e-9)),
    );
    for traffic in &all[all.len().saturating_sub(STAGES_MAX)..] {
        let _ = writeln!(
            text,
            "  {:<12} {:.0} ranks, sent {} in {}, computed {}, waited {}, most: {:.2} of the work, {:.2} sent, {:.2} of the \
             disk, {} of memory",
            traffic.stage,
            traffic.ranks,
            size(traffic.bytes_sent),
            quantity::plural(traffic.messages_sent as u64, "message"),
            percent(traffic.computed_share),
            percent(traffic.waited_share),
            traffic.work_most_by_mean,
            traffic.bytes_most_by_mean,
            traffic.disk_most_by_mean,
            size(traffic.memory_bytes),
        );
    }
    text
}

fn size(bytes: f64) -> String {
    Budget::show(bytes as u64)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::StageReport;
    use pipeline::journal::Measured;
    use pipeline::status::StageState;

    fn stage(name: &str, ranks: u64, wall_seconds: f64, waited_share: f64) -> StageStatus {
        let report = StageReport::new(1).with("ranks", ranks).with("bytes_sent", 2_500_000u64);
        let report = report.with("messages_sent", 1200u64).with("waited_share", waited_share);
        let report = report.with("work_most_by_mean", 1.25).with("bytes_most_by_mean", 1.0);
        let report = report.with("computed_share", 0.5).with("disk_most_by_mean", 1.125);
        let report = report.with("rank_memory_bytes", 300_000_000u64);
        StageStatus {
            stage: name.parse().unwrap(),
            state: StageState::Done,
            reason: None,
            started_at: None,
            done_at: None,
            measured: Some(Measured { wall_seconds, report, ..Measured::default() }),
            rate: None,
        }
    }

    #[test]
    fn only_stages_of_several_ranks_are_listed() {
        let alone = || stage("sweep:8", 1, 1.0, 0.0);
        assert_eq!(summary(&[alone()]), "");
        // The journal of a version that recorded only the first rank.
        let mut old = stage("sweep:8", 4, 1.0, 0.0);
        old.measured.as_mut().unwrap().report.counters.remove("waited_share");
        assert_eq!(summary(&[old]), "");
        let text = summary(&[stage("sweep:8", 2, 2.0, 0.25), stage("sweep:9", 4, 3.0, 0.5), alone()]);
        let stage = |name: &str, ranks, waited| {
            format!(
                "  {name}      {ranks} ranks, sent 2.38 MiB in 1,200 messages, computed 50 %, waited {waited} %, most: 1.25 of the \
                 work, 1.00 sent, 1.12 of the disk, 286 MiB of memory\n"
            )
        };
        let all = "2 stages done by up to 4 ranks: sent 4.77 MiB in 2,400 messages, computed 50 % of the time, waited for \
                   messages 44 % (most: of one rank, by the mean)\n";
        let expected = [all.to_owned(), stage("sweep:8", 2, 25), stage("sweep:9", 4, 50)].concat();
        assert_eq!(text, expected);
    }

    #[test]
    fn the_last_stages_are_listed() {
        let stages: Vec<_> = (0..20).map(|stones| stage(&format!("counting:{stones}"), 3, 1.0, 0.5)).collect();
        let text = summary(&stages);
        assert!(text.starts_with("20 stages done by up to 3 ranks: sent 47.7 MiB"), "{text}");
        assert_eq!(text.lines().count(), 1 + STAGES_MAX);
        assert!(text.contains("counting:19") && !text.contains("counting:13 "), "{text}");
    }
}
