//! Codecs: bits a position, and scores written, read and looked up a second of processor time.
//!
//! A database is built in memory and written with each codec. *Cold* look-ups read random scores of a file just opened,
//! with a cache of 64 MiB; *warm* ones repeat the same scores, with a cache that holds all blocks. The last line is the
//! archive, which codes scores given their best captures; computing these is not measured.

use bench::Largest;
use clap::Parser;
use disk::RealDisk;
use game::{PositionSet, Rules};
use std::path::Path;
use store::{Archive, CachedScores, Codec, FileKind, Identity, Scores, Shape, ValueRange, Writer};
use tests::Random;

/// Measures codecs.
#[derive(Parser)]
struct CodecsArguments {
    /// The stones of the database.
    #[arg(long, default_value_t = 18)]
    stones: u32,
    /// all or reachable.
    #[arg(long, default_value = "all")]
    positions: PositionSet,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Number of cold look-ups; warm ones are a hundred times as many.
    #[arg(long, default_value_t = 8000)]
    looks: u64,
}

/// A database to be written.
struct CodecInput {
    identity: Identity,
    shape: Shape,
    range: ValueRange,
    scores: Vec<i8>,
    /// Best captures, in the order of the scores.
    floors: Vec<i8>,
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut CodecsArguments| (tiny.stones, tiny.looks) = (8, 100));
    bench::pool(arguments.threads).install(|| measure(&arguments));
}

fn measure(arguments: &CodecsArguments) {
    let database = database(arguments);
    let temporary = tempfile::tempdir().expect("there is a temporary directory");
    let path = temporary.path().join("x.awari");
    let positions = database.scores.len() as f64;
    let mut table = bench::table("codec|bits|written M/s|read M/s|cold/s|warm/s", 1);
    for codec in Codec::ALL {
        let (bytes, written) = timed(|| write(&database, codec, &path));
        let mut found = vec![99; database.scores.len()];
        let ((), read) = timed(|| open(&database, &path).read_into(&mut found).expect("the file is sound"));
        assert!(found == database.scores);
        let [cold, warm] =
            [(64 << 20, arguments.looks, 1), (1 << 34, 100 * arguments.looks, 2)].map(|(cache_bytes, looks, turns)| {
                let cached = CachedScores::new(open(&database, &path), cache_bytes);
                // The last turn counts: before it, a warm cache is filled.
                let seconds = (0..turns).fold(0.0, |_, _| timed(|| look(&database, &cached, looks)).1);
                looks as f64 / seconds
            });
        let [written, read] = [written, read].map(|seconds| format!("{:.0}", positions / seconds * 1e-6));
        let bits = format!("{:.3}", 8.0 * bytes as f64 / positions);
        table.add_row([codec.to_string(), bits, written, read, format!("{cold:.0}"), format!("{warm:.0}")]);
    }
    let (bytes, written) = timed(|| archive(&database, &path));
    let ((), read) = timed(|| restore(&database, &path));
    let [written, read] = [written, read].map(|seconds| format!("{:.0}", positions / seconds * 1e-6));
    let bits = format!("{:.3}", 8.0 * bytes as f64 / positions);
    table.add_row(["archive".to_owned(), bits, written, read, String::new(), String::new()]);
    let CodecsArguments { stones, positions, threads, .. } = arguments;
    println!(
        "{stones} stones, {positions} positions: {}, threads: {threads}\n{}",
        database.scores.len(),
        table.trim_fmt()
    );
}

/// Returns the result of a call and its processor time in seconds, which is not 0.
fn timed<T>(call: impl FnOnce() -> T) -> (T, f64) {
    let (result, _, cpu) = bench::timed(call);
    (result, cpu.max(1e-9))
}

fn database(arguments: &CodecsArguments) -> CodecInput {
    let (stones, set) = (arguments.stones, arguments.positions);
    let Largest { index, captures, scores, .. } = Largest::new(set, stones);
    let mut floors = Vec::with_capacity(captures.len());
    let mut rest = &captures[..];
    for slab in index.slabs() {
        let (rows, columns) = (slab.mover_halves as usize, slab.opponent_halves as usize);
        let (here, after) = rest.split_at(rows * columns);
        rest = after;
        floors.extend((0..columns).flat_map(|column| (0..rows).map(move |row| here[row * columns + column])));
    }
    CodecInput {
        identity: stages::files::identity(Rules::AWARI.name, set, FileKind::Database, stones),
        shape: stages::files::shape(&index, FileKind::Database),
        range: ValueRange::new(-(stones as i8), stones as i8),
        scores,
        floors,
    }
}

fn write(database: &CodecInput, codec: Codec, path: &Path) -> u64 {
    let CodecInput { identity, shape, range, scores, .. } = database;
    store::write(&RealDisk::default(), path, identity, shape, *range, codec, scores).expect("there is space").bytes
}

fn open(database: &CodecInput, path: &Path) -> Scores {
    let file = Scores::open(&RealDisk::default(), path).expect("the file was written");
    file.expect(&database.identity, &database.shape).expect("it is what was written")
}

/// Looks up random scores, the same ones each time.
fn look(database: &CodecInput, cached: &CachedScores, looks: u64) {
    let mut random = Random::of(&[99]);
    for _ in 0..looks {
        let position = random.below(database.scores.len() as u64);
        assert_eq!(cached.get(position).expect("the file is sound"), database.scores[position as usize]);
    }
}

fn archive(database: &CodecInput, path: &Path) -> u64 {
    let CodecInput { identity, shape, range, scores, floors } = database;
    let disk = RealDisk::default();
    let mut writer = Writer::create(&disk, path, identity, shape, *range, Codec::Floors).expect("there is space");
    while let Some(band) = writer.next_band() {
        let band = band.start as usize..band.end as usize;
        writer.append_band(&scores[band.clone()], &floors[band]).expect("the scores are in the range");
    }
    writer.finish().expect("there is space").bytes
}

fn restore(database: &CodecInput, path: &Path) {
    let file = Scores::open(&RealDisk::default(), path).expect("the file was written");
    let archive = Archive::expect(file, &database.identity, &database.shape).expect("it is what was written");
    let mut scores = vec![99; database.scores.len()];
    for band in 0..archive.bands() {
        let at = archive.band(band);
        let at = at.start as usize..at.end as usize;
        archive.read_band(band, &database.floors[at.clone()], &mut scores[at]).expect("the file is sound");
    }
    assert!(scores == database.scores);
}
