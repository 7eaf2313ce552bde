//! The databases of a run and their checks, as a table.

use crate::files::databases::artifact;
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use check::{Histogram, Published};
use game::{PositionSet, Rules};
use pipeline::journal::Measured;
use pipeline::status::{StageState, StageStatus, Status};
use pipeline::{Budget, StageName};
use planner::{Method, Settings, Verify};
use stages::{Phase, kinds};

/// The headings of the table.
pub(crate) const HEADINGS: [&str; 10] =
    ["stones", "positions", "method", "file", "bits/position", "time", "positions/s", "passes", "memory", "verified"];

/// The headings of columns that hold no numbers.
pub(crate) const TEXT_HEADINGS: [&str; 2] = ["method", "verified"];

/// The databases of a build.
pub(crate) struct DatabaseSummary<'a> {
    settings: &'a Settings,
    rows: Vec<SummaryRow>,
}

/// A finished database.
struct SummaryRow {
    stones: u32,
    positions: u64,
    bytes: u64,
    /// The cost of computing it, if the journal has it.
    made: Option<BuildCost>,
    checked: SummaryCheck,
}

#[derive(Default)]
struct BuildCost {
    method: &'static str,
    seconds: f64,
    passes: Option<u64>,
    /// The peak memory of its stages.
    peak_bytes: Option<u64>,
}

/// The verification of a database by its `verify` stage.
struct SummaryCheck {
    /// The number of scores that were derived again; 0 if none.
    positions: u64,
    /// Whether its counts equal the published ones.
    matches: bool,
}

impl<'a> DatabaseSummary<'a> {
    /// Creates the summary from the status of the run directory.
    pub(crate) fn new(settings: &'a Settings, status: &Status) -> DatabaseSummary<'a> {
        let mut rows = Vec::new();
        for stones in settings.stones() {
            let name = format!("databases/{stones:02}.awari");
            let database = status.artifacts.iter().find(|artifact| artifact.artifact.as_str() == name);
            if let Some(database) = database.filter(|database| database.damage.is_none()) {
                let positions = settings.set.positions(stones);
                rows.push(SummaryRow {
                    stones,
                    positions,
                    bytes: database.bytes,
                    made: made(status, database.stage.as_ref(), stones),
                    checked: checked(status, stones),
                });
            }
        }
        DatabaseSummary { settings, rows }
    }

    /// Whether there is no database yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders the [rows](DatabaseSummary::rows) as a table.
    pub(crate) fn table(&self, width: Width) -> String {
        let numbers = (0..HEADINGS.len()).filter(|&at| !TEXT_HEADINGS.contains(&HEADINGS[at]));
        let optional = ["memory", "passes", "method", "bits/position", "positions/s", "file"];
        let mut table = TextTable::new(&HEADINGS).numbers(numbers).optional(&optional);
        self.rows().into_iter().for_each(|row| table.add_row(row));
        table.fit(width)
    }

    /// Returns a row for each database and a total, with a cell for each of [`HEADINGS`].
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let row = |row: &SummaryRow| row.cells(row.stones.to_string(), row.verified(self.settings.verify));
        let total = (self.rows.len() > 1).then(|| self.total().cells("all".to_owned(), String::new()));
        self.rows.iter().map(row).chain(total).collect()
    }

    fn total(&self) -> SummaryRow {
        let seconds: f64 = self.rows.iter().filter_map(|row| row.made.as_ref()).map(|made| made.seconds).sum();
        let all_known = self.rows.iter().all(|row| row.made.is_some());
        SummaryRow {
            stones: 0,
            positions: self.rows.iter().map(|row| row.positions).fold(0, u64::saturating_add),
            bytes: self.rows.iter().map(|row| row.bytes).fold(0, u64::saturating_add),
            made: all_known.then_some(BuildCost { seconds, ..BuildCost::default() }),
            checked: SummaryCheck { positions: 0, matches: false },
        }
    }

    /// Describes how the counts compare with the published ones.
    pub(crate) fn published(&self) -> String {
        let Settings { rules, set, published, verify, .. } = self.settings;
        let is_published =
            |stones: u32| Published::compare(rules, stones, PositionSet::All, &Histogram::EMPTY) != Published::Absent;
        if *rules != Rules::AWARI {
            return format!("no published counts by the rules of {} to compare with", rules.name);
        }
        if *set != PositionSet::All {
            return format!("no published counts of the {set} positions to compare with");
        }
        if !published || *verify == Verify::None {
            let key = if *published { "check.verify = \"none\"" } else { "check.published = false" };
            return format!("not compared with published counts: {key}");
        }
        let (with_table, without): (Vec<&SummaryRow>, Vec<&SummaryRow>) =
            self.rows.iter().partition(|row| is_published(row.stones));
        let stones = |rows: &[&SummaryRow]| {
            let stones: Vec<u32> = rows.iter().map(|row| row.stones).collect();
            quantity::ranges(&stones, |stones| stones + 1)
        };
        let (matching, open): (Vec<&SummaryRow>, Vec<&SummaryRow>) =
            with_table.into_iter().partition(|row| row.checked.matches);
        if !open.is_empty() {
            return format!("to be compared with published counts: stones {}", stones(&open));
        }
        let rest = match without.len() {
            0 => String::new(),
            _ => format!(" (there are none for stones {})", stones(&without)),
        };
        match matching.len() {
            0 => format!("no published counts to compare with{rest}"),
            _ => format!("stones {}: matches published counts{rest}", stones(&matching)),
        }
    }
}

impl SummaryRow {
    /// Returns the cells of a row.
    fn cells(&self, name: String, verified: String) -> Vec<String> {
        let unknown = || "-".to_owned();
        let seconds = self.made.as_ref().map(|made| made.seconds);
        let is_small = self.positions < quantity::POSITIONS_MIN;
        let rate = seconds.filter(|_| !is_small).and_then(|seconds| quantity::rate_over(self.positions, seconds));
        let bits = || format!("{:.2}", self.bytes as f64 * 8.0 / self.positions as f64);
        let passes = self.made.as_ref().and_then(|made| made.passes);
        let peak = self.made.as_ref().and_then(|made| made.peak_bytes);
        vec![
            name,
            quantity::grouped(self.positions),
            self.made.as_ref().map_or("", |made| made.method).to_owned(),
            Budget::show(self.bytes),
            if is_small { unknown() } else { bits() },
            seconds.map_or_else(unknown, quantity::time),
            rate.unwrap_or_else(unknown),
            passes.map_or_else(String::new, |passes| passes.to_string()),
            peak.map_or_else(String::new, Budget::show),
            verified,
        ]
    }

    fn verified(&self, requested: Verify) -> String {
        let SummaryCheck { positions, matches } = self.checked;
        let extent = match positions {
            0 if requested == Verify::None => "no".to_owned(),
            0 => "not yet".to_owned(),
            all if all == self.positions => "full".to_owned(),
            some => format!("sampled {}", quantity::grouped(some)),
        };
        if matches { extent + ", matches" } else { extent }
    }
}

/// Adds up the stages that compute a database; `None` unless all of them were measured.
fn made(status: &Status, maker: Option<&StageName>, stones: u32) -> Option<BuildCost> {
    let maker = maker?;
    let mut made = BuildCost { method: method(status, maker, stones), ..BuildCost::default() };
    for stage in &status.stages {
        let phase = kinds::phase(&stage.stage).filter(|_| stage.stage.parameters().first() == Some(&stones));
        let Some(phase @ (Phase::Captures | Phase::Solving)) = phase else { continue };
        let Some(measured) = &stage.measured else {
            if phase == Phase::Captures {
                continue;
            }
            return None;
        };
        made.seconds += measured.wall_seconds;
        made.peak_bytes = made.peak_bytes.max(measured.memory_peak_bytes);
        if let Some(passes) = counter(measured, "passes") {
            made.passes = Some(made.passes.unwrap_or(0) + passes);
        }
    }
    measured(status, maker).map(|_| made)
}

/// Returns the method by which the database of some stones was computed; empty if it is not finished or not known.
pub(crate) fn method_of_database(status: &Status, stones: u32) -> &'static str {
    let name = artifact(stones);
    let database = status.artifacts.iter().find(|database| database.artifact == name);
    database.and_then(|database| database.stage.as_ref()).map_or("", |maker| method(status, maker, stones))
}

/// Returns the method by which a database was computed.
fn method(status: &Status, maker: &StageName, stones: u32) -> &'static str {
    let of_database = status.stages.iter().filter(|stage| stage.stage.parameters().first() == Some(&stones));
    let mut bits = of_database.filter_map(|stage| counter(stage.measured.as_ref()?, "bits in memory"));
    // All bounds by the same method.
    let of_bounds = bits.next_back().and_then(|bits| {
        Method::ALL.into_iter().find(|method| method.planes_in_memory().is_some_and(|planes| planes.bits() == bits))
    });
    kinds::method(maker).or(of_bounds).map_or("", Method::word)
}

fn checked(status: &Status, stones: u32) -> SummaryCheck {
    let is_done = |stage: &&StageStatus| {
        kinds::phase(&stage.stage) == Some(Phase::Verification)
            && stage.stage.parameters().first() == Some(&stones)
            && stage.state == StageState::Done
    };
    let stage = status.stages.iter().find(is_done);
    let count = |name| stage.and_then(|stage| counter(stage.measured.as_ref()?, name));
    SummaryCheck { positions: count("checked").unwrap_or(0), matches: count("published") == Some(1) }
}

fn measured<'s>(status: &'s Status, name: &StageName) -> Option<&'s Measured> {
    status.stages.iter().find(|stage| stage.stage == *name)?.measured.as_ref()
}

fn counter(measured: &Measured, name: &str) -> Option<u64> {
    measured.report.counters.get(name).map(|counter| counter.as_f64() as u64)
}
