//! `awari plan --stones A..B --ranks R`: predictions for jobs of several ranks that sweep each database.

use crate::builds::method_table::{JsonMachine, heading};
use crate::error::Result;
use crate::text::output::{print_json, print_text};
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use pipeline::Budget;
use planner::{JobPlanner, JobPrediction, Network, Settings};
use serde::Serialize;
use std::ops::RangeInclusive;

/// Predictions for a range of databases.
pub(crate) struct JobTable<'a> {
    settings: &'a Settings,
    ranks: usize,
    rows: Vec<(u32, JobPrediction)>,
}

#[derive(Serialize)]
struct JsonJobs {
    hardware: JsonMachine,
    memory_bytes: u64,
    threads: usize,
    ranks: usize,
    databases: Vec<JsonJob>,
}

#[derive(Serialize)]
struct JsonJob {
    stones: u32,
    positions: u64,
    seconds: f64,
    cpu_seconds: f64,
    work_seconds: f64,
    network_seconds: f64,
    latency_seconds: f64,
    collect_seconds: f64,
    memory_bytes: u64,
    held_bytes: u64,
    sent_bytes: f64,
    messages: f64,
    limit: String,
    fits: bool,
}

impl<'a> JobTable<'a> {
    pub(crate) fn new(settings: &'a Settings, stones: RangeInclusive<u32>, ranks: usize) -> JobTable<'a> {
        let jobs = JobPlanner::new(settings);
        let rows = stones.map(|stones| (stones, jobs.sweep(stones, ranks))).collect();
        JobTable { settings, ranks, rows }
    }

    pub(crate) fn show(&self, name: &str, json: bool) -> Result<()> {
        if json {
            return print_json(&self.json());
        }
        let Network { bandwidth, latency } = self.settings.hardware.network;
        print_text(&format!(
            "{}on each of {}; network: {}/s each way, latency {:.0} us\n\
             sweep by all ranks, from captures to the file; - does not fit\n\n{}\n{}",
            heading(name, self.settings),
            quantity::plural(self.ranks as u64, "rank"),
            Budget::show(bandwidth as u64),
            latency * 1e6,
            self.table(),
            self.verdict(),
        ))
    }

    fn table(&self) -> String {
        let headings = [
            "stones",
            "positions",
            "time",
            "work",
            "network",
            "latency",
            "collecting",
            "fullest rank",
            "all ranks",
            "sent",
            "messages",
            "limit",
        ];
        let optional = ["messages", "latency", "all ranks", "collecting", "network", "work", "positions", "limit"];
        let mut table = TextTable::new(&headings).numbers(0..headings.len() - 1).optional(&optional);
        for (stones, of) in &self.rows {
            table.add_row([
                stones.to_string(),
                quantity::grouped(self.settings.set.positions(*stones)),
                quantity::time(of.seconds),
                quantity::time(of.work_seconds),
                quantity::time(of.network_seconds),
                quantity::time(of.latency_seconds),
                quantity::time(of.collect_seconds),
                format!("{} {}", Budget::show(of.memory_bytes), if of.fits { ' ' } else { '-' }),
                Budget::show(of.all_bytes),
                Budget::show(of.sent_bytes as u64),
                quantity::grouped(of.messages as u64),
                of.limit.to_string(),
            ]);
        }
        format!("{}\n", table.fit(Width::stdout()))
    }

    /// Describes the total cost of the databases that fit, and why the next one does not fit.
    fn verdict(&self) -> String {
        let fitting = self.rows.iter().take_while(|(_, of)| of.fits);
        let (mut seconds, mut sent, mut last) = (0.0, 0.0, None);
        for (stones, of) in fitting {
            (seconds, sent, last) = (seconds + of.seconds, sent + of.sent_bytes, Some(stones));
        }
        let mut text = String::new();
        if let (Some((first, _)), Some(last)) = (self.rows.first(), last) {
            let sent = Budget::show(sent as u64);
            text += &format!("{}: about {}, {sent} sent\n", quantity::fitting(*first, *last), quantity::about(seconds));
        }
        if let Some((stones, of)) = self.rows.iter().find(|(_, of)| !of.fits) {
            let needs = Budget::show(of.memory_bytes);
            let has = Budget::show(self.settings.memory_bytes);
            text += &format!("{stones} does not fit: the fullest rank needs {needs} of memory, the limit is {has}\n");
        }
        text
    }

    fn json(&self) -> JsonJobs {
        let row = |(stones, of): &(u32, JobPrediction)| JsonJob {
            stones: *stones,
            positions: self.settings.set.positions(*stones),
            seconds: of.seconds,
            cpu_seconds: of.cpu_seconds,
            work_seconds: of.work_seconds,
            network_seconds: of.network_seconds,
            latency_seconds: of.latency_seconds,
            collect_seconds: of.collect_seconds,
            memory_bytes: of.memory_bytes,
            held_bytes: of.held_bytes,
            sent_bytes: of.sent_bytes,
            messages: of.messages,
            limit: of.limit.to_string(),
            fits: of.fits,
        };
        JsonJobs {
            hardware: JsonMachine::new(&self.settings.hardware),
            memory_bytes: self.settings.memory_bytes,
            threads: self.settings.threads,
            ranks: self.ranks,
            databases: self.rows.iter().map(row).collect(),
        }
    }
}
