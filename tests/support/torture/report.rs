//! Outcomes of cases, counted by class and by method.

use super::case::{CaseOutcome, FaultCase};
use super::class::FaultClass;
use comfy_table::{CellAlignment, Table, TableStyle};
use std::collections::BTreeMap;

/// Counts of a class or method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultTally {
    /// Cases run.
    pub cases: u64,
    /// Injected faults: several or none a case, if its run has fewer operations than expected.
    pub faults: u64,
    /// Cases in which every run succeeded in spite of a fault.
    pub unnoticed: u64,
    /// Cases in which a run ended early, and a later one resumed.
    pub resumed: u64,
    /// Cases with mistakes.
    pub wrong: u64,
    /// Stages that had to begin again, at most one a run.
    pub begun_again: u64,
    /// Stages that resumed from a snapshot.
    pub from_snapshots: u64,
}

/// Counts of all cases.
#[derive(Clone, Debug, Default)]
pub struct FaultReport {
    /// By class.
    pub classes: BTreeMap<FaultClass, FaultTally>,
    /// By method.
    pub methods: BTreeMap<String, FaultTally>,
    /// Of all cases.
    pub all: FaultTally,
    /// Mistakes, each with the command that repeats it.
    pub wrong: Vec<String>,
}

impl FaultTally {
    fn add(&mut self, outcome: &CaseOutcome) {
        self.cases += 1;
        self.faults += outcome.struck;
        self.begun_again += outcome.begun_in_vain;
        self.from_snapshots += outcome.from_snapshots;
        match outcome {
            CaseOutcome { wrong: Some(_), .. } => self.wrong += 1,
            CaseOutcome { ended: 0, struck: 0, .. } => {}
            CaseOutcome { ended: 0, .. } => self.unnoticed += 1,
            _ => self.resumed += 1,
        }
    }

    fn cells(&self) -> [String; 7] {
        [self.cases, self.faults, self.unnoticed, self.resumed, self.begun_again, self.from_snapshots, self.wrong]
            .map(|count| count.to_string())
    }
}

const HEADER: [&str; 8] =
    ["fault", "cases", "faults", "unnoticed", "resumed", "stages begun again", "gone on from a snapshot", "wrong"];

impl FaultReport {
    pub(crate) fn add(&mut self, case: &FaultCase, outcome: CaseOutcome) {
        self.all.add(&outcome);
        self.classes.entry(case.class).or_default().add(&outcome);
        self.methods.entry(case.method().to_string()).or_default().add(&outcome);
        if let Some(wrong) = outcome.wrong {
            self.wrong.push(format!("{}: {wrong}", case.again()));
        }
    }

    /// A table in one of the styles of comfy-table: `NOTHING` for a terminal, `ASCII_MARKDOWN` for the
    /// chapter of measurements.
    pub fn table(&self, style: TableStyle) -> String {
        let mut table = Table::new();
        table.load_style(style).set_header(HEADER);
        let classes = self.classes.iter().map(|(class, tally)| (class.names().1, tally));
        let methods = self.methods.iter().map(|(method, tally)| (format!("By {method}"), tally));
        for (name, tally) in classes.chain(methods).chain([("All".to_owned(), &self.all)]) {
            table.add_row([name].into_iter().chain(tally.cells()));
        }
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        table.to_string()
    }
}
