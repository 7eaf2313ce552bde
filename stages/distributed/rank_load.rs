//! Balance of a stage over the ranks: work, traffic, waits and memory of each, gathered by rank 0.

use super::message;
use disk::{Disk, Traffic, clock};
use messaging::{Communicator, MessageTraffic};
use pipeline::StageReport;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What a rank did in one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct RankLoad {
    threads: u64,
    /// Duration, including waits.
    took_micros: u64,
    /// Processor time of all threads.
    cpu_micros: u64,
    /// Time in which the rank waited for a message.
    waited_micros: u64,
    messages_sent: u64,
    bytes_sent: u64,
    read_bytes: u64,
    written_bytes: u64,
    /// Most resident memory of the process; if the stage did not raise it, what is resident at its end.
    memory_bytes: u64,
}

/// What all ranks did, by rank.
#[derive(Debug, PartialEq)]
pub(crate) struct RankLoads(Vec<RankLoad>);

/// Measurement of a rank, from a start.
pub(crate) struct LoadMeter<'a> {
    disk: &'a dyn Disk,
    messages_before: MessageTraffic,
    disk_before: Traffic,
    cpu_before: f64,
    peak_before: Option<u64>,
    started: Instant,
}

impl<'a> LoadMeter<'a> {
    /// Starts to measure.
    pub(crate) fn start(communicator: &dyn Communicator, disk: &'a dyn Disk) -> LoadMeter<'a> {
        LoadMeter {
            disk,
            messages_before: communicator.traffic(),
            disk_before: disk.traffic(),
            cpu_before: clock::cpu_seconds(),
            peak_before: clock::peak_resident_bytes(),
            started: Instant::now(),
        }
    }

    /// Sends what this rank did since the start to rank 0, which gets the loads of all ranks.
    pub(crate) fn gather(&self, communicator: &mut dyn Communicator) -> messaging::Result<Option<RankLoads>> {
        let messages = communicator.traffic().since(&self.messages_before);
        let disk = self.disk.traffic() - self.disk_before;
        let peak = clock::peak_resident_bytes();
        let memory = if peak > self.peak_before { peak } else { clock::resident_bytes() };
        let load = RankLoad {
            threads: rayon::current_num_threads() as u64,
            took_micros: self.started.elapsed().as_micros() as u64,
            cpu_micros: ((clock::cpu_seconds() - self.cpu_before) * 1e6) as u64,
            waited_micros: (messages.seconds_waited * 1e6) as u64,
            messages_sent: messages.messages_sent,
            bytes_sent: messages.bytes_sent,
            read_bytes: disk.read_bytes,
            written_bytes: disk.written_bytes,
            memory_bytes: memory.unwrap_or(0),
        };
        gather(communicator, &load)
    }
}

fn gather(communicator: &mut dyn Communicator, load: &RankLoad) -> messaging::Result<Option<RankLoads>> {
    let Some(all) = communicator.gather(0, message::encode(load))? else { return Ok(None) };
    let decode = |(rank, bytes): (usize, &Vec<u8>)| message::decode(bytes, rank, "the load of a rank", |_| true);
    Ok(Some(RankLoads(all.iter().enumerate().map(decode).collect::<Result<_, _>>()?)))
}

impl RankLoads {
    /// Adds figures to a report: ranks; processor time, bytes of disk and messages of all; the shares of time
    /// in which the threads of a rank computed and in which it waited for messages (the rest are waits for
    /// the disk, for other threads and for other processes); the memory of the fullest rank; and the maximum
    /// by the mean of what each did.
    pub(crate) fn report(&self, report: StageReport) -> StageReport {
        let sum =
            |figure: fn(&RankLoad) -> u64| self.0.iter().fold(0, |sum: u64, load| sum.saturating_add(figure(load)));
        let most = |figure: fn(&RankLoad) -> u64| self.0.iter().map(figure).max().unwrap_or(0);
        let most_by_mean = |figure: fn(&RankLoad) -> u64| match most(figure) {
            // All ranks are equal if all have none.
            0 => 1.0,
            most => most as f64 * self.0.len() as f64 / sum(figure) as f64,
        };
        let disk_bytes = |load: &RankLoad| load.read_bytes.saturating_add(load.written_bytes);
        let took = sum(|load| load.took_micros).max(1);
        let waited = sum(|load| load.waited_micros.min(load.took_micros));
        let thread_micros = |load: &RankLoad| load.took_micros.saturating_mul(load.threads);
        let computed = sum(|load| load.cpu_micros) as f64 / sum(thread_micros).max(1) as f64;
        report
            .with("ranks", self.0.len() as u64)
            .with("messages_sent", sum(|load| load.messages_sent))
            .with("bytes_sent", sum(|load| load.bytes_sent))
            .with("rank_cpu_seconds", sum(|load| load.cpu_micros) as f64 / 1e6)
            .with("rank_disk_bytes", sum(disk_bytes))
            .with("rank_memory_bytes", most(|load| load.memory_bytes))
            .with("computed_share", computed.min(1.0))
            .with("waited_share", waited as f64 / took as f64)
            .with("work_most_by_mean", most_by_mean(|load| load.cpu_micros))
            .with("bytes_most_by_mean", most_by_mean(|load| load.bytes_sent))
            .with("disk_most_by_mean", most_by_mean(disk_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging::{NetworkFaults, ThreadCommunicator};

    #[test]
    fn maxima_are_relative_to_the_mean() {
        let report = |loads: &[RankLoad], names: &[&str]| {
            let report = RankLoads(loads.to_vec()).report(StageReport::new(1));
            names.iter().map(|&name| report.counters[name].as_f64()).collect::<Vec<_>>()
        };
        let maxima = ["work_most_by_mean", "bytes_most_by_mean", "disk_most_by_mean"];
        let busy = RankLoad {
            threads: 2,
            took_micros: 1_000_000,
            cpu_micros: 1_500_000,
            waited_micros: 250_000,
            messages_sent: 5,
            bytes_sent: 300,
            read_bytes: 10,
            written_bytes: 20,
            memory_bytes: 7,
        };
        let idle = RankLoad { cpu_micros: 500_000, waited_micros: 750_000, bytes_sent: 100, read_bytes: 30, ..busy };
        assert_eq!(report(&[busy, idle], &maxima), [1.5, 1.5, 1.25]);
        let shares = ["computed_share", "waited_share", "ranks", "messages_sent", "bytes_sent", "rank_cpu_seconds"];
        assert_eq!(report(&[busy, idle], &shares), [0.5, 0.5, 2.0, 10.0, 400.0, 2.0]);
        assert_eq!(report(&[busy, idle], &["rank_disk_bytes", "rank_memory_bytes"]), [80.0, 7.0]);
        assert_eq!(report(&[RankLoad::default()], &maxima), [1.0, 1.0, 1.0]);
        // The clocks are read at slightly different times.
        let late = RankLoad { took_micros: 10, cpu_micros: 21, waited_micros: 11, ..busy };
        assert_eq!(report(&[late], &["computed_share", "waited_share"]), [1.0, 1.0]);
    }

    #[test]
    fn rank_0_gathers_all() {
        let ends = ThreadCommunicator::job(3, NetworkFaults::none());
        let load = |rank: usize| RankLoad { bytes_sent: 10 * rank as u64, threads: 1, ..RankLoad::default() };
        let gathered: Vec<_> = std::thread::scope(|scope| {
            let send = |mut end: ThreadCommunicator| {
                let load = load(end.rank());
                gather(&mut end, &load).unwrap()
            };
            let running: Vec<_> = ends.into_iter().map(|end| scope.spawn(move || send(end))).collect();
            running.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        assert_eq!(gathered, [Some(RankLoads(vec![load(0), load(1), load(2)])), None, None]);
    }
}
