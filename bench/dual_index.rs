//! Savings of dual indexing, after figure 2.7 of Lincke 2002: block misses a pass over the cached bits of wins,
//! with the bits indexed like the candidates (single) and by the half that a move leaves (dual), for caches of 1 to
//! 100 % of the bits.
//!
//! Measured for one pass in the order of the thesis, which ranks the whole board (see [`bench::whole_board`]), and for the
//! passes of the solver of bounds, whose index is divided into slabs.
//!
//! One run on one thread, in memory, yields the curve for all cache sizes: see [`bench::distances`]. Caches are empty at
//! the start: the first access to a page is a miss.

use bench::chart::{Curve, svg};
use bench::distances::{Access, AccessCounts};
use bench::recording::{RecordedBound, Use, record};
use bench::whole_board::WholeBoard;
use bench::{Largest, ratio, timed};
use clap::Parser;
use comfy_table::Table;
use game::PositionSet;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Measures the misses of caches under both indexings.
#[derive(Parser)]
struct DualIndexArguments {
    /// Stones.
    #[arg(long, default_value_t = 22)]
    stones: u32,
    /// Bounds to record, such as 1..4 or 1; default: all.
    #[arg(long, value_parser = bounds)]
    bounds: Option<RangeInclusive<u32>>,
    /// Bytes of a block: a power of two.
    #[arg(long, default_value_t = 16 << 10)]
    block: usize,
    /// all or reachable.
    #[arg(long, default_value = "all")]
    positions: PositionSet,
    /// Output file of the chart.
    #[arg(long)]
    svg: Option<PathBuf>,
}

fn bounds(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if 1 <= first && first <= last => Ok(first..=last),
        _ => Err(format!("expected one bound or two, as 1..4, the lower first, from 1; found {text:?}")),
    }
}

const PERCENT: [usize; 14] = [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100];

fn main() {
    let arguments = bench::arguments(|tiny: &mut DualIndexArguments| {
        tiny.stones = tiny.stones.min(8);
        tiny.bounds = None;
    });
    bench::pool(1).install(|| run(&arguments));
}

fn run(arguments: &DualIndexArguments) {
    let DualIndexArguments { stones, positions: set, block, .. } = *arguments;
    let bounds = arguments.bounds.clone().unwrap_or(1..=stones);
    let Largest { tables, index, captures, scores, .. } = Largest::new(set, stones);
    let mut recorded = Vec::new();
    let each = |bound| recorded.push(bound);
    let ((), seconds, _) = timed(|| record(&tables, &index, &captures, &scores, block, &bounds, each));
    let passes: u64 = recorded.iter().map(|bound| bound.report.passes).sum();
    let Some(all) = Use::all(recorded.iter().flat_map(|bound| &bound.passes)) else {
        panic!("a database of {stones} stones has no bounds {} to {}", bounds.start(), bounds.end())
    };
    println!(
        "{stones} stones, {set} positions: {}; blocks of {block} bytes: {} dual, {} single; bounds {} to {}, {passes} \
         passes; {seconds:.0} s",
        index.positions(),
        all.dual.pages(),
        all.single.pages(),
        bounds.start(),
        bounds.end()
    );
    println!("\nblock misses a pass, on average, by slabs");
    println!("{}", curve_table(&all, passes));
    println!("\ndual: misses by the pages of the plane, a pass, reading children and setting parents");
    println!("{}", kinds_table(&all.dual, passes));
    println!("\nby bound, with a cache of 10 %: misses by the pages of the plane; before: seeds and what is new");
    println!("{}", bounds_table(&recorded));
    let (whole, seconds, _) = timed(|| WholeBoard::new(stones).record(block));
    println!(
        "\nblock misses of a pass by the whole board: {} blocks, {} bits read; {seconds:.0} s",
        whole.dual.pages(),
        whole.dual.accesses(Access::Read)
    );
    println!("{}", curve_table(&whole, 1));
    if let Some(path) = &arguments.svg {
        let title = format!("Block misses a pass: {stones} stones, blocks of {} KiB", block as f64 / 1024.0);
        let curve = |name, look, counts: &AccessCounts, passes: u64| Curve {
            name,
            look,
            points: (1..=100).map(|percent| (percent as f64, misses(counts, percent) as f64 / passes as f64)).collect(),
        };
        // Of the palette of Okabe and Ito, which colour-blind readers can distinguish.
        let curves = [
            curve("thesis, single", "stroke=\"#d55e00\"", &whole.single, 1),
            curve("slabs, single", "stroke=\"#d55e00\" stroke-dasharray=\"6 4\"", &all.single, passes),
            curve("slabs, dual", "stroke=\"#0072b2\" stroke-dasharray=\"6 4\"", &all.dual, passes),
            curve("thesis, dual", "stroke=\"#0072b2\"", &whole.dual, 1),
        ];
        let svg = svg(&title, &curves);
        std::fs::write(path, svg).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// Pages of a cache with this percentage of the bits.
fn capacity(counts: &AccessCounts, percent: usize) -> usize {
    (counts.pages() * percent / 100).max(1)
}

fn misses(counts: &AccessCounts, percent: usize) -> u64 {
    counts.all_misses(capacity(counts, percent))
}

fn curve_table(all: &Use, passes: u64) -> Table {
    let mut table = bench::table("cache %|single|dual|ratio", 0);
    for percent in PERCENT {
        let [single, dual] = [&all.single, &all.dual].map(|counts| misses(counts, percent) as f64 / passes as f64);
        table.add_row([percent.to_string(), format!("{single:.1}"), format!("{dual:.1}"), ratio(single, dual, 1)]);
    }
    table
}

fn kinds_table(dual: &AccessCounts, passes: u64) -> Table {
    let mut table = bench::table("cache %|read|set|read %", 0);
    let planes = dual.pages() as f64 * passes as f64;
    for percent in PERCENT {
        let [read, set] = [Access::Read, Access::Set].map(|access| dual.misses(access, capacity(dual, percent)) as f64);
        table.add_row([
            percent.to_string(),
            format!("{:.3}", read / planes),
            format!("{:.3}", set / planes),
            ratio(100.0 * read, read + set, 0),
        ]);
    }
    table
}

fn bounds_table(recorded: &[RecordedBound]) -> Table {
    let mut table = bench::table("bound|passes|rows|lost|dual|first pass|second|before|single|before", 0);
    for bound in recorded {
        let Some(all) = Use::all(bound.passes.iter()) else { continue };
        let planes = |counts: &AccessCounts| format!("{:.2}", misses(counts, 10) as f64 / counts.pages() as f64);
        table.add_row([
            bound.bound.to_string(),
            bound.report.passes.to_string(),
            bound.report.rows.to_string(),
            bound.report.lost.to_string(),
            planes(&all.dual),
            bound.passes.first().map_or_else(String::new, |pass| planes(&pass.dual)),
            bound.passes.get(1).map_or_else(String::new, |pass| planes(&pass.dual)),
            planes(&bound.before.dual),
            planes(&all.single),
            planes(&bound.before.single),
        ]);
    }
    table
}
