//! `awari plan --stones A..B`: predictions for each database by each method, whether it is built or not.

use crate::error::Result;
use crate::output::{print_json, print_text};
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use pipeline::Budget;
use planner::{ByMethod, DatabasePlan, Hardware, Limit, Method, MethodPrediction, Settings, database_bytes};
use serde::Serialize;
use std::ops::RangeInclusive;

/// The machine of a prediction, as JSON.
#[derive(Serialize)]
pub(crate) struct JsonMachine {
    cores: usize,
    core_speed: f64,
    memory_speed: f64,
    memory_bytes: u64,
    disk_bytes: Option<u64>,
    read_bytes_a_second: f64,
    write_bytes_a_second: f64,
    operations_a_second: f64,
    network_bytes_a_second: f64,
    network_latency_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_disk_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_read_bytes_a_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_write_bytes_a_second: Option<f64>,
}

impl JsonMachine {
    pub(crate) fn new(hardware: &Hardware) -> JsonMachine {
        JsonMachine {
            cores: hardware.cores,
            core_speed: hardware.core_speed,
            memory_speed: hardware.memory_speed,
            memory_bytes: hardware.memory_bytes,
            disk_bytes: hardware.disk_bytes,
            read_bytes_a_second: hardware.read,
            write_bytes_a_second: hardware.write,
            operations_a_second: hardware.operations,
            network_bytes_a_second: hardware.network.bandwidth,
            network_latency_seconds: hardware.network.latency,
            shared_disk_bytes: hardware.shared.bytes,
            shared_read_bytes_a_second: hardware.shared.read,
            shared_write_bytes_a_second: hardware.shared.write,
        }
    }
}

/// A prediction for one method, as JSON.
#[derive(Serialize)]
pub(crate) struct JsonPrediction {
    method: &'static str,
    memory_bytes: u64,
    disk_bytes: u64,
    seconds: f64,
    cpu_seconds: f64,
    read_bytes: f64,
    written_bytes: f64,
    operations: f64,
    /// Resource that limits the speed.
    limit: &'static str,
    /// Whether the memory is within the budget.
    fits: bool,
}

impl JsonPrediction {
    pub(crate) fn new(settings: &Settings, prediction: &MethodPrediction) -> JsonPrediction {
        JsonPrediction {
            method: prediction.method.word(),
            memory_bytes: prediction.memory_bytes,
            disk_bytes: prediction.disk_bytes,
            seconds: prediction.seconds,
            cpu_seconds: settings.hardware.core_seconds(&prediction.load, 1),
            read_bytes: prediction.load.read_bytes + prediction.load.scratch_read_bytes,
            written_bytes: prediction.load.written_bytes + prediction.load.scratch_written_bytes,
            operations: prediction.load.random_reads + prediction.load.random_writes,
            limit: settings.hardware.limit(&prediction.load, settings.threads).word(),
            fits: prediction.fits,
        }
    }
}

/// Returns one line on the machine that a plan is for.
pub(crate) fn heading(name: &str, settings: &Settings) -> String {
    let Hardware { cores, core_speed, disk_bytes, read, write, operations, .. } = settings.hardware;
    let a_second = |bytes: f64| format!("{}/s", Budget::show(bytes as u64));
    let machine = if name == Hardware::NAMES[0] { "this machine" } else { name };
    let room = disk_bytes.map_or(String::new(), |bytes| format!("{} of ", Budget::show(bytes)));
    format!(
        "predicted for {machine}: {} on {} at {:.0} % of the reference speed, {} of memory, {room}disk: {} read, {} \
         written, {} blocks/s\n",
        quantity::plural(settings.threads as u64, "thread"),
        quantity::plural(cores as u64, "core"),
        core_speed * 100.0,
        Budget::show(settings.memory_bytes),
        a_second(read),
        a_second(write),
        quantity::grouped(operations as u64),
    )
}

/// Says which methods cannot solve databases by the rules, and why; nothing if all can.
pub(crate) fn refusals(settings: &Settings) -> String {
    let refused = Method::ALL.into_iter().filter_map(|method| Some((method, method.refusal(&settings.rules)?)));
    let mut lines: Vec<String> = refused.map(|(method, why)| format!("{method} cannot: {why}\n")).collect();
    if !settings.rules.has_scores() {
        lines
            .push("sweep cannot on disk, nor on several ranks: it holds both bounds in the memory of one\n".to_owned());
    }
    lines.concat()
}

/// Predictions for one database.
struct PredictedDatabase {
    stones: u32,
    positions: u64,
    database_bytes: u64,
    chosen: Method,
    predictions: ByMethod<MethodPrediction>,
}

impl PredictedDatabase {
    fn new(settings: &Settings, stones: u32) -> PredictedDatabase {
        PredictedDatabase {
            stones,
            positions: settings.set.positions(stones),
            database_bytes: database_bytes(settings, stones),
            chosen: DatabasePlan::new(settings, stones).method(),
            predictions: DatabasePlan::by_each_method(settings, stones).map(|plan| *plan.all_stages()),
        }
    }

    fn of_chosen(&self) -> &MethodPrediction {
        let chosen = self.predictions.iter().find(|prediction| prediction.method == self.chosen);
        chosen.expect("there is a prediction for each method")
    }
}

/// Predictions for a range of databases.
pub(crate) struct MethodTable<'a> {
    settings: &'a Settings,
    rows: Vec<PredictedDatabase>,
}

#[derive(Serialize)]
struct JsonTable {
    hardware: JsonMachine,
    memory_bytes: u64,
    threads: usize,
    databases: Vec<JsonDatabase>,
}

#[derive(Serialize)]
struct JsonDatabase {
    stones: u32,
    positions: u64,
    database_bytes: u64,
    method: &'static str,
    fits: bool,
    predictions: Vec<JsonPrediction>,
}

impl<'a> MethodTable<'a> {
    pub(crate) fn new(settings: &'a Settings, stones: RangeInclusive<u32>) -> MethodTable<'a> {
        MethodTable { settings, rows: stones.map(|stones| PredictedDatabase::new(settings, stones)).collect() }
    }

    pub(crate) fn show(&self, name: &str, json: bool) -> Result<()> {
        if json {
            return print_json(&self.json());
        }
        let mut text = heading(name, self.settings);
        text += "all stages of a database; * is chosen, - does not fit, d is limited by the disk\n";
        text += &self.table("time", |prediction| quantity::time(prediction.seconds));
        text += &self.table("peak memory", |prediction| Budget::show(prediction.memory_bytes));
        text +=
            &self.table("peak disk, all smaller databases included", |prediction| Budget::show(prediction.disk_bytes));
        print_text(&(text + &self.verdict() + &refusals(self.settings)))
    }

    fn fits(&self, prediction: &MethodPrediction) -> bool {
        prediction.fits && self.settings.hardware.disk_bytes.is_none_or(|free| prediction.disk_bytes <= free)
    }

    fn table(&self, what: &str, cell: impl Fn(&MethodPrediction) -> String) -> String {
        let headings: Vec<&str> =
            ["stones", "positions", "database"].into_iter().chain(Method::ALL.map(Method::word)).collect();
        let mut table = TextTable::new(&headings).numbers(0..headings.len()).optional(&["database", "positions"]);
        for row in &self.rows {
            let cells = row.predictions.iter().map(|prediction| {
                let fits = if self.fits(prediction) { ' ' } else { '-' };
                let used = if prediction.method == row.chosen && fits == ' ' { '*' } else { fits };
                let limit = self.settings.hardware.limit(&prediction.load, self.settings.threads);
                format!("{} {used}{}", cell(prediction), if limit == Limit::Disk { 'd' } else { ' ' })
            });
            let first = [row.stones.to_string(), quantity::grouped(row.positions), Budget::show(row.database_bytes)];
            table.add_row(first.into_iter().chain(cells));
        }
        format!("\n{what}:\n{}\n", table.fit(Width::stdout()))
    }

    /// Describes the total cost of the databases that fit, and why the next one does not fit.
    fn verdict(&self) -> String {
        let fitting: Vec<&PredictedDatabase> = self.rows.iter().take_while(|row| self.fits(row.of_chosen())).collect();
        let mut text = String::from("\n");
        if let (Some(first), Some(last)) = (fitting.first(), fitting.last()) {
            let used = || fitting.iter().map(|row| row.of_chosen());
            text += &format!(
                "{}: about {}, at most {} of memory and {} of disk\n",
                quantity::fitting(first.stones, last.stones),
                quantity::about(used().map(|prediction| prediction.seconds).sum()),
                Budget::show(used().map(|prediction| prediction.memory_bytes).max().unwrap_or(0)),
                Budget::show(used().map(|prediction| prediction.disk_bytes).max().unwrap_or(0)),
            );
        }
        if let Some(row) = self.rows.get(fitting.len()) {
            let prediction = row.of_chosen();
            text += &format!(
                "{} does not fit: {} needs {} of memory and {} of disk\n",
                row.stones,
                prediction.method,
                Budget::show(prediction.memory_bytes),
                Budget::show(prediction.disk_bytes)
            );
        }
        text
    }

    fn json(&self) -> JsonTable {
        let databases = self.rows.iter().map(|row| JsonDatabase {
            stones: row.stones,
            positions: row.positions,
            database_bytes: row.database_bytes,
            method: row.chosen.word(),
            fits: self.fits(row.of_chosen()),
            predictions: row
                .predictions
                .iter()
                .map(|prediction| JsonPrediction::new(self.settings, prediction))
                .collect(),
        });
        JsonTable {
            hardware: JsonMachine::new(&self.settings.hardware),
            memory_bytes: self.settings.memory_bytes,
            threads: self.settings.threads,
            databases: databases.collect(),
        }
    }
}
