//! `awari plan --stones A..B --ranks R`: predictions for each database by each method in a job of several ranks.

use crate::builds::method_table::{JsonMachine, heading, refusals};
use crate::error::Result;
use crate::output::{print_json, print_text};
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use pipeline::Budget;
use planner::{BusySeconds, ByMethod, DatabaseJob, DatabasePlan, JobLimit, JobPlanner, Method, Network, Settings};
use serde::Serialize;
use std::ops::RangeInclusive;

/// Predictions for one database.
struct PredictedJobs {
    stones: u32,
    chosen: Method,
    jobs: ByMethod<DatabaseJob>,
}

impl PredictedJobs {
    fn of_chosen(&self) -> &DatabaseJob {
        &self.jobs[self.chosen as usize]
    }
}

/// Predictions for a range of databases.
pub(crate) struct JobTable<'a> {
    settings: &'a Settings,
    rows: Vec<PredictedJobs>,
}

#[derive(Serialize)]
struct JsonJobs {
    hardware: JsonMachine,
    memory_bytes: u64,
    threads: usize,
    ranks: usize,
    databases: Vec<JsonDatabaseJobs>,
}

#[derive(Serialize)]
struct JsonDatabaseJobs {
    stones: u32,
    positions: u64,
    method: &'static str,
    fits: bool,
    predictions: Vec<JsonDatabaseJob>,
}

/// A prediction for a database by a method, as JSON.
#[derive(Serialize)]
struct JsonDatabaseJob {
    method: &'static str,
    seconds: f64,
    cpu_seconds: f64,
    busy: JsonBusy,
    memory_bytes: u64,
    memory_bytes_max: u64,
    held_bytes: u64,
    scratch_bytes: u64,
    disk_bytes: u64,
    sent_bytes: f64,
    limit: String,
    fits: bool,
}

/// Seconds that the resources of the rank with the most to do are busy, as JSON.
#[derive(Serialize)]
pub(crate) struct JsonBusy {
    cores: f64,
    network: f64,
    latency: f64,
    local_disk: f64,
    shared_disk: f64,
}

impl JsonBusy {
    pub(crate) fn new(busy: &BusySeconds) -> JsonBusy {
        let BusySeconds { cores, network, latency, local_disk, shared_disk } = *busy;
        JsonBusy { cores, network, latency, local_disk, shared_disk }
    }
}

impl JsonDatabaseJob {
    fn new(job: &DatabaseJob) -> JsonDatabaseJob {
        JsonDatabaseJob {
            method: job.method.word(),
            seconds: job.seconds(),
            cpu_seconds: job.cpu_seconds(),
            busy: JsonBusy::new(&job.busy()),
            memory_bytes: job.memory_bytes(),
            memory_bytes_max: job.memory_bytes_max,
            held_bytes: job.held_bytes,
            scratch_bytes: job.local_bytes(),
            disk_bytes: job.shared_bytes,
            sent_bytes: job.sent_bytes(),
            limit: job.busy().limit().to_string(),
            fits: job.fits,
        }
    }
}

/// Returns two lines on the machines and the ranks that a plan is for.
pub(crate) fn job_heading(name: &str, settings: &Settings) -> String {
    let Network { bandwidth, latency } = settings.hardware.network;
    format!(
        "{}on each of {}; network: {}/s each way, latency {:.0} us; {}\n",
        heading(name, settings),
        quantity::plural(settings.ranks as u64, "rank"),
        Budget::show(bandwidth as u64),
        latency * 1e6,
        shared_disk(settings),
    )
}

/// Describes the disk of the run directory.
fn shared_disk(settings: &Settings) -> String {
    let shared = settings.hardware.shared;
    let of_all = |what: &str| format!("{what} as of all disks");
    let rate = |rate: Option<f64>, what: &str| match rate {
        Some(rate) => format!("{}/s {what}", Budget::show(rate as u64)),
        None => of_all(what),
    };
    if shared == planner::SharedDisk::default() {
        return "run directory on the disks of all".to_owned();
    }
    let free = shared.bytes.map_or_else(|| of_all("size"), Budget::show);
    format!("run directory: {free}, {}, {}", rate(shared.read, "read"), rate(shared.write, "written"))
}

/// Describes the total cost of the databases that fit, and why the next one does not fit.
pub(crate) fn verdict<'a>(settings: &Settings, jobs: impl Iterator<Item = &'a DatabaseJob>) -> String {
    let jobs: Vec<&DatabaseJob> = jobs.collect();
    let fitting: Vec<&DatabaseJob> = jobs.iter().copied().take_while(|job| job.fits).collect();
    let mut text = String::new();
    if let (Some(first), Some(last)) = (fitting.first(), fitting.last()) {
        let most = |figure: &dyn Fn(&DatabaseJob) -> u64| fitting.iter().map(|job| figure(job)).max().unwrap_or(0);
        let sent: f64 = fitting.iter().map(|job| job.sent_bytes()).sum();
        text += &format!(
            "{}: about {}, {} sent; at most {} of memory and {} of scratch a rank, and {} in the run directory\n",
            quantity::fitting(first.stones, last.stones),
            quantity::about(fitting.iter().map(|job| job.seconds()).sum()),
            Budget::show(sent as u64),
            Budget::show(most(&DatabaseJob::memory_bytes)),
            Budget::show(most(&DatabaseJob::local_bytes)),
            Budget::show(most(&|job| job.shared_bytes)),
        );
    }
    // If none fits, the largest says what all would need.
    let first = if fitting.is_empty() { jobs.last() } else { jobs.get(fitting.len()) };
    if let Some(job) = first {
        text += &format!(
            "{} does not fit: the fullest rank needs {} of memory by {}, up to {} at worst, the limit is {}; {} of scratch, and \
             {} in the run directory\n",
            job.stones,
            Budget::show(job.memory_bytes()),
            job.method,
            Budget::show(job.memory_bytes_max.max(job.memory_bytes())),
            Budget::show(settings.memory_bytes),
            Budget::show(job.local_bytes()),
            Budget::show(job.shared_bytes),
        );
    }
    text
}

/// Returns the letter of a limit in tables.
fn letter(limit: JobLimit) -> char {
    match limit {
        JobLimit::Cores => ' ',
        JobLimit::Network => 'n',
        JobLimit::Latency => 't',
        JobLimit::LocalDisk => 'l',
        JobLimit::SharedDisk => 's',
    }
}

impl<'a> JobTable<'a> {
    pub(crate) fn new(settings: &'a Settings, stones: RangeInclusive<u32>) -> JobTable<'a> {
        let planner = JobPlanner::new(settings);
        let row = |stones| PredictedJobs {
            stones,
            chosen: DatabasePlan::new(settings, stones).method(),
            jobs: planner.by_each_method(stones),
        };
        JobTable { settings, rows: stones.map(row).collect() }
    }

    pub(crate) fn show(&self, name: &str, json: bool) -> Result<()> {
        if json {
            return print_json(&self.json());
        }
        let mut text = job_heading(name, self.settings);
        text += "all stages of a database; * is chosen, - does not fit; limited by the network (n), latency (t), local disk (l), \
                 shared disk (s)\n";
        text += &self.table("time", |job| quantity::time(job.seconds()));
        text += &self.table("memory of the fullest rank", |job| Budget::show(job.memory_bytes()));
        text += &self.table("bytes sent", |job| Budget::show(job.sent_bytes() as u64));
        let chosen = self.rows.iter().map(PredictedJobs::of_chosen);
        print_text(&(text + "\n" + &verdict(self.settings, chosen) + &refusals(self.settings)))
    }

    fn table(&self, what: &str, cell: impl Fn(&DatabaseJob) -> String) -> String {
        let headings: Vec<&str> = ["stones", "positions"].into_iter().chain(Method::ALL.map(Method::word)).collect();
        let mut table = TextTable::new(&headings).numbers(0..headings.len()).optional(&["positions"]);
        for row in &self.rows {
            let cells = row.jobs.iter().map(|job| {
                let used = match job.fits {
                    false => '-',
                    true if job.method == row.chosen => '*',
                    true => ' ',
                };
                format!("{} {used}{}", cell(job), letter(job.busy().limit()))
            });
            let first = [row.stones.to_string(), quantity::grouped(self.settings.set.positions(row.stones))];
            table.add_row(first.into_iter().chain(cells));
        }
        format!("\n{what}:\n{}\n", table.fit(Width::stdout()))
    }

    fn json(&self) -> JsonJobs {
        let row = |row: &PredictedJobs| JsonDatabaseJobs {
            stones: row.stones,
            positions: self.settings.set.positions(row.stones),
            method: row.chosen.word(),
            fits: row.of_chosen().fits,
            predictions: row.jobs.iter().map(JsonDatabaseJob::new).collect(),
        };
        JsonJobs {
            hardware: JsonMachine::new(&self.settings.hardware),
            memory_bytes: self.settings.memory_bytes,
            threads: self.settings.threads,
            ranks: self.settings.ranks,
            databases: self.rows.iter().map(row).collect(),
        }
    }
}
