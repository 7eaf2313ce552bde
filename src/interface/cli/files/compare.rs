//! `awari compare`: how many positions change their score from the rules of one directory to those of another.

use crate::args::CompareArgs;
use crate::error::{CliError, Result};
use crate::files::databases::{OpenedDatabases, library, threads};
use crate::output::{print_json, print_text};
use crate::text::quantity::grouped;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use check::ScoreChanges;
use disk::RealDisk;
use pipeline::Exit;
use serde::Serialize;

/// Changes of one database, as JSON.
#[derive(Serialize)]
struct JsonChanges {
    stones: u32,
    positions: u64,
    slams: u64,
    changed: u64,
    decided_otherwise: u64,
    raised: u64,
    open: u64,
}

pub(crate) fn run(args: &CompareArgs) -> Result<Exit> {
    let [first, second] = &args.dirs[..] else { return Err(CliError::TwoDirectories(args.dirs.len())) };
    let disk = RealDisk::default();
    let libraries = [library(&disk, first)?, library(&disk, second)?];
    let sets = [&libraries[0], &libraries[1]].map(|library| library.set());
    if sets[0] != sets[1] {
        let [first, second] = sets.map(|set| set.to_string());
        return Err(CliError::OtherPositions { first, second });
    }
    let in_both = |stones: &u32| libraries.iter().all(|library| library.files().contains_key(stones));
    let wanted = |stones: &u32| args.stones.as_ref().is_none_or(|range| range.contains(stones));
    let stones: Vec<u32> = libraries[0].files().keys().copied().filter(in_both).filter(wanted).collect();
    if stones.is_empty() {
        return Err(CliError::NothingInCommon);
    }
    let names = [&libraries[0], &libraries[1]].map(|library| library.rules().name);
    let [first, second] = libraries.map(OpenedDatabases::new);
    let (first, second) = (first?, second?);
    let (pool, mut all) = (threads(args.threads)?, Vec::new());
    for stones in stones {
        if let Some(damaged) = [&first, &second].iter().find_map(|opened| opened.damaged.get(&stones)) {
            return Err(CliError::Damaged { what: damaged.message.clone() });
        }
        let changes = pool.install(|| ScoreChanges::of_bounds(first.bounds(), second.bounds(), stones))?;
        all.push((stones, changes));
    }
    if args.json {
        print_json(&all.iter().map(json).collect::<Vec<_>>())?
    } else {
        print_text(&table(names, &all))?
    }
    Ok(Exit::Done)
}

fn json(
    &(stones, ScoreChanges { positions, slams, changed, decided_otherwise, raised, open }): &(u32, ScoreChanges),
) -> JsonChanges {
    JsonChanges { stones, positions, slams, changed, decided_otherwise, raised, open }
}

fn table([first, second]: [&str; 2], all: &[(u32, ScoreChanges)]) -> String {
    let mut table =
        TextTable::new(&["stones", "positions", "slam", "open", "changed", "share", "outcome", "raised"]).numbers(0..8);
    let share = |part: u64, whole: u64| format!("{:.3} %", 100.0 * part as f64 / whole.max(1) as f64);
    for (stones, changes) in all {
        table.add_row([
            stones.to_string(),
            grouped(changes.positions),
            share(changes.slams, changes.positions),
            share(changes.open, changes.positions),
            grouped(changes.changed),
            share(changes.changed, changes.positions),
            share(changes.decided_otherwise, changes.positions),
            share(changes.raised, changes.changed),
        ]);
    }
    format!(
        "from {first} to {second}\n\n{}\n\
         slam: positions in which a move would capture all of the opponent's stones\n\
         open: positions with two bounds by either rules, which may change or not\n\
         changed: positions with another score, whichever it is within the bounds\n\
         outcome: positions that change between won, drawn and lost\n\
         raised: of the changed positions, those with a higher score by {second}\n",
        table.fit(Width::stdout())
    )
}
