//! Balance of a stage over the ranks: traffic and waits of each, gathered by rank 0.

use super::message;
use messaging::{Communicator, MessageTraffic};
use pipeline::StageReport;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Traffic and time of a rank in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RankLoad {
    messages_sent: u64,
    bytes_sent: u64,
    waited_micros: u64,
    /// Duration, including waits.
    took_micros: u64,
}

/// Traffic and time of all ranks, by rank.
#[derive(Debug, PartialEq)]
pub(crate) struct RankLoads(Vec<RankLoad>);

/// Measurement of a rank's traffic and time, from a start.
pub(crate) struct LoadMeter {
    before: MessageTraffic,
    started: Instant,
}

impl LoadMeter {
    /// Starts to measure.
    pub(crate) fn start(communicator: &dyn Communicator) -> LoadMeter {
        LoadMeter { before: communicator.traffic(), started: Instant::now() }
    }

    /// Gathers traffic and time since the start, as [`gather`].
    pub(crate) fn gather(&self, communicator: &mut dyn Communicator) -> messaging::Result<Option<RankLoads>> {
        let traffic = communicator.traffic().since(&self.before);
        gather(communicator, &traffic, self.started.elapsed())
    }
}

/// Sends the traffic and time of this rank to rank 0, which gets those of all ranks.
pub(crate) fn gather(
    communicator: &mut dyn Communicator,
    traffic: &MessageTraffic,
    took: Duration,
) -> messaging::Result<Option<RankLoads>> {
    let load = RankLoad {
        messages_sent: traffic.messages_sent,
        bytes_sent: traffic.bytes_sent,
        waited_micros: (traffic.seconds_waited * 1e6) as u64,
        took_micros: took.as_micros() as u64,
    };
    let Some(all) = communicator.gather(0, message::encode(&load))? else { return Ok(None) };
    let decode = |(rank, bytes): (usize, &Vec<u8>)| message::decode(bytes, rank, "the load of a rank", |_| true);
    Ok(Some(RankLoads(all.iter().enumerate().map(decode).collect::<Result<_, _>>()?)))
}

impl RankLoads {
    /// Adds figures to a report: ranks, messages and bytes sent, the share of time spent waiting for messages, and the
    /// maximum by the mean of bytes sent and of time at work.
    pub(crate) fn report(&self, report: StageReport) -> StageReport {
        let sum = |of: fn(&RankLoad) -> u64| self.0.iter().fold(0, |sum: u64, load| sum.saturating_add(of(load)));
        let most_by_mean = |of: fn(&RankLoad) -> u64| {
            let most = self.0.iter().map(of).max().unwrap_or(0);
            // All ranks are equal if all have none.
            if most == 0 { 1.0 } else { most as f64 * self.0.len() as f64 / sum(of) as f64 }
        };
        let took = sum(|load| load.took_micros).max(1);
        let waited = sum(|load| load.waited_micros.min(load.took_micros));
        report
            .with("ranks", self.0.len() as u64)
            .with("messages_sent", sum(|load| load.messages_sent))
            .with("bytes_sent", sum(|load| load.bytes_sent))
            .with("waited_share", waited as f64 / took as f64)
            .with("bytes_most_by_mean", most_by_mean(|load| load.bytes_sent))
            .with("work_most_by_mean", most_by_mean(|load| load.took_micros.saturating_sub(load.waited_micros)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging::{NetworkFaults, ThreadCommunicator};

    fn report(loads: &[[u64; 4]]) -> Vec<f64> {
        let load = |&[messages_sent, bytes_sent, waited_micros, took_micros]: &[u64; 4]| RankLoad {
            messages_sent,
            bytes_sent,
            waited_micros,
            took_micros,
        };
        let report = RankLoads(loads.iter().map(load).collect()).report(StageReport::new(1));
        let names = ["ranks", "messages_sent", "bytes_sent", "waited_share", "bytes_most_by_mean", "work_most_by_mean"];
        names.map(|name| report.counters[name].as_f64()).to_vec()
    }

    #[test]
    fn maxima_are_relative_to_the_mean() {
        assert_eq!(report(&[[3, 100, 250, 1000], [5, 300, 750, 1000]]), [2.0, 8.0, 400.0, 0.5, 1.5, 1.5]);
        assert_eq!(report(&[[0, 0, 0, 0]]), [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
        // The clocks are read at slightly different times.
        assert_eq!(report(&[[1, 1, 11, 10], [1, 1, 0, 10]])[3..], [0.5, 1.0, 2.0][..]);
    }

    #[test]
    fn rank_0_gathers_all() {
        let ends = ThreadCommunicator::job(3, NetworkFaults::none());
        let gathered: Vec<_> = std::thread::scope(|scope| {
            let send = |mut end: ThreadCommunicator| {
                let traffic = MessageTraffic {
                    bytes_sent: 10 * end.rank() as u64,
                    seconds_waited: 0.5,
                    ..MessageTraffic::default()
                };
                gather(&mut end, &traffic, Duration::from_secs(2)).unwrap()
            };
            let running: Vec<_> = ends.into_iter().map(|end| scope.spawn(move || send(end))).collect();
            running.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        let load =
            |bytes_sent| RankLoad { messages_sent: 0, bytes_sent, waited_micros: 500_000, took_micros: 2_000_000 };
        assert_eq!(gathered, [Some(RankLoads(vec![load(0), load(10), load(20)])), None, None]);
    }
}
