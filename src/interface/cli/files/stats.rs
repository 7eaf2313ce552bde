//! `awari stats`: shows the distribution of scores.
//!
//! Runs write statistics to `stats/`. Those that are missing or belong to an older database are counted again.

use crate::args::{StatsArgs, StatsFormat};
use crate::error::{CliError, Result};
use crate::files::databases::{OpenedDatabases, artifact, chosen, library, statistics, threads};
use crate::output::print;
use crate::text::quantity::plural;
use crate::text::screen::Width;
use crate::text::terminal::say;
use check::{CaptureStatistics, CheckError, Extent, Histogram, Sample, Statistics};
use disk::{Digest, Disk, RealDisk};
use oracle::{Library, LibraryFile};
use pipeline::Exit;
use pipeline::directory::journal_path;
use pipeline::journal::{Contents, JournalState};
use std::collections::BTreeMap;
use std::path::Path;

/// The longest statistics file.
const STATISTICS_BYTES_MAX: u64 = 1 << 20;

/// The largest database of which all positions are examined for captures; larger ones are sampled.
const WEIGHED_POSITIONS_MAX: u64 = 1 << 22;

pub(crate) fn run(args: &StatsArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let dir = &args.databases.dir;
    let library = library(&disk, dir)?;
    let chosen = chosen(&library, &args.databases)?;
    let mut known = recorded(&disk, dir, &library, &chosen);
    let unknown: Vec<u32> = chosen.into_iter().filter(|stones| !known.contains_key(stones)).collect();
    if !unknown.is_empty() {
        let opened = OpenedDatabases::new(library)?;
        threads(args.databases.threads)?.install(|| -> Result<()> {
            for stones in unknown {
                let editions = opened.sound.editions();
                known.insert(stones, count(&opened, stones)?);
                opened.sound.unchanged(&editions)?;
            }
            Ok(())
        })?;
    }
    let all: Vec<Statistics> = known.into_values().collect();
    print(&match args.format {
        StatsFormat::Table => explained(check::table(&all, Width::stdout().columns)) + &pairs(&all),
        StatsFormat::Bars => bars(&all),
        StatsFormat::Csv => check::csv(&all),
        StatsFormat::Json => check::json(&all),
        StatsFormat::Svg => check::svg(&all),
    })?;
    Ok(Exit::Done)
}

/// Describes how far the two bounds of positions are apart, if they have two.
fn pairs(all: &[Statistics]) -> String {
    match check::pairs_table(all) {
        none if none.is_empty() => none,
        table => format!(
            "\nthe figures above are those of the lower bounds; exact: positions whose bounds are equal\n\n{table}"
        ),
    }
}

/// Draws the distribution of scores of each database.
fn bars(all: &[Statistics]) -> String {
    let pictures: Vec<String> = all.iter().map(|statistics| check::bars(statistics, Width::stdout().columns)).collect();
    pictures.join("\n")
}

/// Adds notes on the last columns, if the table has room for these.
fn explained(table: String) -> String {
    let head = table.lines().next().unwrap_or_default().to_owned();
    let columns = [
        ("capture or not", "share of positions that offer a capture and another move"),
        ("better not", "share of these in which every best move captures nothing"),
    ];
    let shown = columns.iter().filter(|(name, _)| head.contains(name));
    let notes: String = shown.map(|(name, meaning)| format!("{name}: {meaning}\n")).collect();
    let sampled = if table.contains('~') { "~: by a sample of the positions\n" } else { "" };
    if notes.is_empty() { table } else { format!("{table}\n{notes}{sampled}") }
}

/// Reads the statistics that runs have written, if they belong to the present databases.
pub(crate) fn recorded(disk: &dyn Disk, dir: &Path, library: &Library, chosen: &[u32]) -> BTreeMap<u32, Statistics> {
    // Without a journal, the sources of statistics are unknown.
    let state = Contents::read(disk, &journal_path(dir)).map(|journal| JournalState::replay(&journal.entries));
    let Ok(state) = state else { return BTreeMap::new() };
    let read = |stones: u32| {
        let LibraryFile::Sound(scores) = library.files().get(&stones)? else { return None };
        let name = statistics(stones);
        let record = &state.built(&name)?.artifact;
        let text = disk.read(&name.below(dir), STATISTICS_BYTES_MAX).ok()?;
        let is_current = record.fingerprint.inputs.get(&artifact(stones)) == Some(&scores.digest())
            && record.digest == Digest::of(&text);
        let statistics = Statistics::of_json(std::str::from_utf8(&text).ok()?).ok()?;
        let is_whole = statistics.histogram().total() == library.set().positions(stones);
        (is_current && is_whole && statistics.stones() == stones).then_some((stones, statistics))
    };
    chosen.iter().filter_map(|&stones| read(stones)).collect()
}

fn count(opened: &OpenedDatabases, stones: u32) -> Result<Statistics> {
    if let Some(damaged) = opened.damaged.get(&stones) {
        return Err(CliError::Damaged { what: damaged.message.clone() });
    }
    let database = opened.sound.get(stones)?;
    let extent = match database.positions() {
        few if few <= WEIGHED_POSITIONS_MAX => Extent::Full,
        _ => Extent::Sample(Sample::default()),
    };
    let counted = match &opened.upper {
        Some(upper) => Statistics::of_bounds(&opened.sound, upper, stones, extent),
        None => Statistics::of(&opened.sound, stones, extent),
    };
    match counted {
        Err(CheckError::Missing { stones: missing }) => {
            let with = plural(stones.into(), "stone");
            say(format_args!("cannot value captures with {with}: {} does not exist", artifact(missing)));
            Ok(Statistics::new(stones, Histogram::of(database)?, CaptureStatistics::default()))
        }
        counted => Ok(counted?),
    }
}
