//! A dress rehearsal of the whole game, 0 to 46 and 48 stones: all of the plumbing at its true size, with
//! positions that cost nothing. Stages publish a line of text in place of each file, and reserve the space of
//! the true one.

use check::{CheckError, DatabasePortion, Databases, Extent, Sample, ScoreSource};
use disk::{Digest, Disk, DiskError, MemoryDisk, Staged};
use game::{Index, Orientation, PositionSet, Rules, Score};
use pipeline::journal::RunEnd;
use pipeline::{
    ArtifactName, ArtifactSpec, Cost, Graph, Inspection, Keep, Manifest, Orchestrator, RunOptions, StageContext,
    StageError, StageName, StageReport, StageSpec, Work,
};
use planner::{Hardware, Settings};
use solvers::bounds::{PlaneLayout, ranks::RowPartition};
use stages::{Awari, files};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use store::{Codec, Division, FileKind, Role, Scores, Shape, SlabShape, ValueRange, Writer};
use tests::directory::TestDirectory;
use tests::root;

const SET: PositionSet = PositionSet::REACHABLE;

/// All stones of the game.
const STONES: u32 = 48;

/// Databases of 0 to 46 and of 48 stones.
const DATABASES: usize = 48;

/// All positions that can be reached, and the opening (Romein & Bal 2002).
const POSITIONS: u64 = 889_063_398_406;

const RUN: &str = "run";

/// Times that a run is killed.
const KILLS: u64 = 2;

/// First word of a file.
const MARK: &str = "rehearsal";

/// The settings of the manifest on a desktop. Of the methods with thousands of stages, one database stands for all.
fn settings() -> Settings {
    let read = |file: &str| fs::read_to_string(root().join("manifests").join(file)).unwrap();
    let methods = [("build.method", "sweep"), ("build.methods.\"46..48\"", "two-bit")];
    let methods = methods.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let manifest = Manifest::parse(&read("awari.toml"), "", &planner::schema(), &methods).unwrap();
    let hardware = Manifest::parse(&read("hardware/desktop.toml"), "", &Hardware::schema(), &[]).unwrap();
    let hardware = Hardware::of_manifest(&hardware);
    Settings::new(&manifest).for_machine(hardware, hardware.memory_bytes, hardware.cores)
}

/// The stages of the manifest, with stand-ins for files.
struct Rehearsal {
    awari: Awari,
    graph: Graph,
    finished: Mutex<Vec<StageName>>,
}

impl Rehearsal {
    fn new() -> Rehearsal {
        let awari = Awari::new(settings());
        // The machine that runs the test has less memory than the desktop.
        let without_memory =
            |stage: &StageSpec| StageSpec { cost: Cost { memory_bytes: 0, ..stage.cost }, ..stage.clone() };
        let stages = awari.graph().stages().iter().map(without_memory).collect();
        let graph = Graph::new(stages, awari.graph().artifacts().cloned()).unwrap();
        Rehearsal { awari, graph, finished: Mutex::default() }
    }

    fn run(&self, disk: &MemoryDisk) -> Option<RunEnd> {
        Orchestrator::new(disk, Path::new(RUN), self, RunOptions::default()).run().ok().map(|summary| summary.how)
    }
}

impl Work for Rehearsal {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn inspect(&self, disk: &dyn Disk, path: &Path, artifact: &ArtifactSpec) -> Result<Inspection, DiskError> {
        match disk.read(path, 1 << 10) {
            Ok(text) => Ok(Inspection::Header { digest: Digest::of(&text), identity: artifact.identity.clone() }),
            Err(error) if error.is_not_found() => Ok(Inspection::Absent),
            Err(error) => Err(error),
        }
    }

    fn folders(&self) -> Vec<PathBuf> {
        self.awari.folders()
    }

    fn is_name(&self, name: &ArtifactName) -> bool {
        self.awari.is_name(name)
    }

    fn is_ours(&self, disk: &dyn Disk, path: &Path) -> bool {
        disk.read(path, 1 << 10).is_ok_and(|text| text.starts_with(MARK.as_bytes()))
    }

    fn run(&self, stage: &StageSpec, context: &StageContext<'_>) -> Result<StageReport, StageError> {
        context.progress().begin(stage.cost.positions, "positions");
        let mut report = StageReport::new(stage.cost.positions);
        for input in &stage.inputs {
            assert!(context.disk().bytes(&context.input(input))?.is_some(), "{}: {input}", stage.name);
        }
        for output in stage.outputs.iter().filter(|output| self.graph.artifact(output).unwrap().kind.is_file()) {
            let text = format!("{MARK} {output}");
            let mut staged = Staged::create(context.disk(), &context.output(output), stage.cost.disk_bytes)?;
            staged.write(text.as_bytes())?;
            staged.publish()?;
            report = report.wrote(output.clone(), Digest::of(text.as_bytes()));
        }
        context.progress().advance(stage.cost.positions);
        self.finished.lock().unwrap().push(stage.name.clone());
        Ok(report)
    }
}

#[test]
fn the_whole_game_is_planned() {
    let place = TestDirectory::new(0);
    let manifests = root().join("manifests");
    let plan = format!("plan {0}/awari.toml --hardware {0}/hardware/desktop.toml", manifests.display());
    let shown = place.awari(&plan).is(0).shows(&["capture:46", "capture:48", "stats:48"]);
    assert!(!shown.out.contains("capture:47"));
    let json = place.awari(&format!("{plan} --json")).is(0).json();
    let steps = json["steps"].as_array().unwrap();
    let step_of = |stage: &str| steps.iter().find(|step| step["stage"] == stage).unwrap();
    let total: u64 = (0..=46)
        .chain([48])
        .map(|stones| step_of(&format!("stats:{stones}"))["cost"]["positions"].as_u64().unwrap())
        .sum();
    assert_eq!(total, POSITIONS);
    for step in steps {
        let [seconds, memory, disk] =
            ["seconds", "memory_bytes", "disk_bytes"].map(|key| step["cost"][key].as_f64().unwrap());
        assert!(
            (0.0..1e9).contains(&seconds) && (0.0..1e15).contains(&memory) && (0.0..1e15).contains(&disk),
            "{step}"
        );
    }
}

#[test]
fn a_killed_run_of_the_whole_game_resumes() {
    let rehearsal = Rehearsal::new();
    let stages = rehearsal.graph.stages().len();
    let (whole, killed) = (MemoryDisk::new(), MemoryDisk::new());
    assert_eq!(rehearsal.run(&whole), Some(RunEnd::Done));
    assert_eq!(std::mem::take(&mut *rehearsal.finished.lock().unwrap()).len(), stages);
    let lifetime = whole.operations() / (KILLS + 1);
    for _ in 0..KILLS {
        killed.die_at(killed.operations() + lifetime);
        assert_eq!(rehearsal.run(&killed), None);
        killed.fail_never();
        killed.crash();
    }
    assert_eq!(rehearsal.run(&killed), Some(RunEnd::Done));
    let finished = rehearsal.finished.lock().unwrap().len() as u64;
    assert!((stages as u64..=stages as u64 + KILLS).contains(&finished), "{finished} of {stages} stages");
    assert_eq!(kept(&killed).len(), 2 * DATABASES);
    assert!(kept(&killed) == kept(&whole));
    let plan = Orchestrator::new(&killed, Path::new(RUN), &rehearsal, RunOptions::default()).plan().unwrap();
    assert!(plan.steps.is_empty(), "{} stages to run", plan.steps.len());
    let status = pipeline::status::status(&killed, Path::new(RUN), Some(&rehearsal), Keep::Targets).unwrap();
    let positions = status.stages.iter().filter(|stage| stage.stage.kind() == "stats");
    let positions = positions.filter_map(|stage| Some(stage.measured.as_ref()?.report.positions));
    assert_eq!(positions.sum::<u64>(), POSITIONS);
}

/// Databases and statistics.
fn kept(disk: &MemoryDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let folders = ["databases", "stats"].map(|folder| Path::new(RUN).join(folder));
    let paths = disk.paths().into_iter().filter(|path| folders.iter().any(|folder| path.starts_with(folder)));
    paths.map(|path| (path.clone(), disk.peek(&path).unwrap())).collect()
}

#[test]
fn files_of_the_largest_database_are_laid_out() {
    let disk = MemoryDisk::new();
    let path = Path::new("x");
    for kind in [FileKind::Database, FileKind::Capture, FileKind::Snapshot] {
        let (identity, shape) = (files::identity("awari", SET, kind, STONES), files::shape_of(SET, kind, STONES));
        let range = files::range(kind, STONES);
        let opening = u64::from(kind == FileKind::Database);
        assert_eq!(shape.positions(), SET.slab_positions(STONES) + opening);
        assert_eq!(shape.slabs().len() as u64, 49 + opening);
        for codec in Codec::ALL {
            // A file of known length is reserved whole, with its index.
            let bits = if codec == Codec::Raw { 8 } else { 7 };
            let bytes = shape.positions() * bits / 8;
            disk.set_bytes_max(bytes);
            let is_created = Writer::create(&disk, path, &identity, &shape, range, codec).is_ok();
            assert_eq!(is_created, codec.is_compressed(), "{codec}");
            disk.set_bytes_max(bytes + bytes / 100);
            let mut writer = Writer::create(&disk, path, &identity, &shape, range, codec).unwrap();
            writer.append(&[0; 100_000]).unwrap();
            drop(writer);
            let starts = Division::even_starts(shape.positions(), 64);
            let division = Division::new(path, &identity, &shape, range, codec, &starts).unwrap();
            let ranges = division.ranges();
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((ranges[0].start, ranges[63].end), (0, shape.positions()));
            let even = shape.positions() / 64;
            assert!(ranges.iter().all(|range| (range.end - range.start).abs_diff(even) < even / 8), "{codec}");
        }
    }
}

#[test]
fn work_on_the_largest_database_is_divided() {
    let index = Index::new(STONES, SET);
    let opening = index.slab_positions();
    for orientation in [Orientation::MoverMajor, Orientation::OpponentMajor] {
        let layout = PlaneLayout::new(&index, orientation);
        let bits: u64 = layout.slabs().iter().map(|slab| slab.rows as u64 * slab.columns as u64).sum();
        assert_eq!(bits, index.slab_positions());
        let units = layout.units();
        assert!(units.windows(2).all(|pair| pair[0].words.end == pair[1].words.start));
        assert_eq!(units.last().unwrap().words.end, layout.words());
        let board = index.unrank(opening, orientation);
        assert_eq!((board, index.rank(&board, orientation)), (game::Board::OPENING, Some(opening)));
    }
    let rows = RowPartition::new(STONES, SET, 64);
    assert_eq!((0..64).map(|rank| rows.positions(rank)).sum::<u64>(), index.slab_positions());
}

#[test]
#[ignore = "slow tier: hashes 35 GB of zeros"]
fn a_plane_of_the_largest_database_is_written_and_read() {
    let disk = MemoryDisk::new();
    let path = Path::new("planes/48/48.won");
    let layout = PlaneLayout::of_slabs(&SET.slabs(STONES), Orientation::OpponentMajor);
    let kind = FileKind::Plane { role: Role::Won, bound: STONES as u8 };
    let identity = files::identity("awari", SET, kind, STONES);
    let slabs = layout.slabs().iter();
    let slabs = slabs.map(|slab| SlabShape { rows: slab.rows as u32, columns: slab.row_words as u32 * 8 });
    let shape = Shape::new(slabs.collect()).unwrap();
    let range = ValueRange::new(i8::MIN, i8::MAX);
    let mut writer = Writer::create(&disk, path, &identity, &shape, range, Codec::Zstd).unwrap();
    writer.append_zeros(shape.positions() - 1).unwrap();
    writer.append(&[5]).unwrap();
    let written = writer.finish().unwrap();
    assert!(written.bytes < 64 << 20, "{} bytes", written.bytes);
    let file = Scores::open_windowed(&disk, path).unwrap().expect(&identity, &shape).unwrap();
    let mut end = [1; 8];
    file.read_range(shape.positions() - 8..shape.positions(), &mut end).unwrap();
    assert_eq!(end, [0, 0, 0, 0, 0, 0, 0, 5]);
    assert!(file.is_zeros(0) && !file.is_zeros(file.block_count() - 1));
}

/// A database of draws.
struct Draws(u64);

impl ScoreSource for Draws {
    fn positions(&self) -> u64 {
        self.0
    }

    fn score(&self, position: u64) -> Result<Score, CheckError> {
        assert!(position < self.0);
        Ok(0)
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<(), CheckError> {
        assert!(first + out.len() as u64 <= self.0);
        out.fill(0);
        Ok(())
    }
}

#[test]
#[ignore = "slow tier: makes the tables of all halves for many databases"]
fn positions_of_the_largest_database_are_verified() {
    /// No move captures more: three in each of six pits.
    const CAPTURED_MAX: u32 = 18;
    let mut databases = Databases::new(Rules::AWARI, SET);
    for stones in (STONES - CAPTURED_MAX..=46).chain([STONES]) {
        databases.insert(stones, Draws(SET.positions(stones))).unwrap();
    }
    let sample = Sample { one_in: 10_000_000, at_least: 1, seed: 48 };
    for extent in [Extent::Sample(sample), Extent::Tiles(sample)] {
        let watch = |_| ControlFlow::Continue(());
        let found = check::verify_portion(&databases, STONES, extent, DatabasePortion::WHOLE, &watch);
        match found.and_then(|found| found.verified(STONES, check::Histogram::EMPTY)) {
            // Every capture refutes a draw; the opening, which has none, does not.
            Err(CheckError::Wrong { mistakes, checked, .. }) => {
                let expected = SET.positions(STONES) / sample.one_in;
                assert!((expected * 9 / 10..expected * 12 / 10).contains(&checked), "{checked} of {expected}");
                assert!(mistakes > checked / 10 && mistakes < checked, "{mistakes} of {checked}");
            }
            other => panic!("{other:?}"),
        }
    }
}
