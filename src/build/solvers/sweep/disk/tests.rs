//! Compares sweeps on disk with sweeps in memory: any budget and number of threads, interrupted, torn and damaged.

use super::*;
use crate::capture::InMemory;
use crate::{Tables, capture, sweep};
use game::{PositionSet, Score};
use std::ops::ControlFlow;
use std::sync::RwLock;
use std::sync::atomic::AtomicU64;

const SETS: [PositionSet; 2] = [PositionSet::All, PositionSet::REACHABLE];

/// A file in memory, which may fail.
struct TestFile {
    bytes: RwLock<Vec<i8>>,
    /// Writes until the process dies in one.
    writes_left: AtomicU64,
    /// Reads until one of cells gives other bytes.
    reads_until_damage: AtomicU64,
}

impl TestFile {
    fn new(plan: &DiskPlan) -> TestFile {
        TestFile::of(plan.file_bytes())
    }

    fn of(bytes: u64) -> TestFile {
        TestFile {
            bytes: RwLock::new(vec![0; bytes as usize]),
            writes_left: u64::MAX.into(),
            reads_until_damage: u64::MAX.into(),
        }
    }
}

impl CellFile for TestFile {
    type Error = String;

    fn read(&self, place: u64, into: &mut [i8]) -> Result<(), String> {
        into.copy_from_slice(&self.bytes.read().unwrap()[place as usize..][..into.len()]);
        if into.len().is_multiple_of(4096) && self.reads_until_damage.fetch_sub(1, Relaxed) == 0 {
            into[0] ^= 1;
        }
        Ok(())
    }

    fn write(&self, place: u64, bytes: &[i8]) -> Result<(), String> {
        let mut file = self.bytes.write().unwrap();
        let to = &mut file[place as usize..][..bytes.len()];
        match self.writes_left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) {
            Ok(1) => {
                // Every other sector of it.
                for (to, from) in to.chunks_mut(512).zip(bytes.chunks(512)).step_by(2) {
                    to.copy_from_slice(from);
                }
                Err("died".to_owned())
            }
            Ok(_) => {
                to.copy_from_slice(bytes);
                Ok(())
            }
            Err(_) => Err("is dead".to_owned()),
        }
    }

    fn checksum(&self, bytes: &[i8]) -> u64 {
        // FNV-1a.
        let bytes = bytes.iter().map(|&byte| u64::from(byte as u8));
        bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ byte).wrapping_mul(0x0100_0000_01b3))
    }

    fn is_damaged(&self, what: &str) -> String {
        what.to_owned()
    }
}

/// Best captures and scores of a database, made in memory.
struct KnownDatabase {
    rules: Rules,
    index: Index,
    captures: Vec<Score>,
    scores: Vec<Score>,
}

fn known(rules: Rules, set: PositionSet, stones_max: u32) -> Vec<KnownDatabase> {
    let tables = Tables::new(rules, set, stones_max);
    let mut all: Vec<KnownDatabase> = Vec::new();
    for stones in 0..=stones_max {
        let index = Index::new(stones, set);
        let mut best = Bytes::zeroed(index.slab_positions() as usize).unwrap();
        let smaller = InMemory::new(set, all.iter().map(|known| &known.scores[..]));
        capture::capture_into(&tables, &index, &smaller, &(), &mut best, &mut |_| Ok(())).unwrap();
        let (scores, _) = sweep::solve(&tables, &index, &best, Kernel::detect()).unwrap();
        all.push(KnownDatabase { rules, index, captures: best.to_vec(), scores: scores.to_vec() });
    }
    all
}

/// Sweeps over a file, and reads the scores.
fn solve(
    known: &KnownDatabase,
    plan: &DiskPlan,
    file: &TestFile,
    is_resumed: bool,
    kernel: Kernel,
    progress: &dyn DriverObserver,
) -> Result<(DiskSweepReport, Vec<Score>), DiskSweepError<String>> {
    let mut tiled = DiskSweep::new(&known.rules, &known.index, plan, kernel, file, is_resumed);
    let mut read = |first: u64, into: &mut [i8]| {
        into.copy_from_slice(&known.captures[first as usize..][..into.len()]);
        Ok(())
    };
    let report = tiled.solve(&mut read, |error| error.to_string(), progress)?;
    let mut scores = Vec::new();
    tiled
        .scores(|run| {
            scores.extend_from_slice(run);
            Ok(())
        })
        .map_err(DiskSweepError::Failed)?;
    Ok((report, scores))
}

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// Databases of each parity, the smallest among them, against those of sweep in memory.
#[test]
fn every_budget_gives_the_scores_of_a_sweep_in_memory() {
    // Kernels differ in what they compute, not in what the rules say.
    budgets_and_kernels_change_nothing(6, |rules| {
        if rules == Rules::AWARI { Kernel::available().collect() } else { vec![Kernel::detect()] }
    });
}

#[test]
#[ignore = "slow tier: all kernels by all rules, and 7 stones"]
fn every_budget_and_kernel_gives_the_scores_of_a_sweep_in_memory() {
    budgets_and_kernels_change_nothing(7, |_| Kernel::available().collect());
}

fn budgets_and_kernels_change_nothing(awari_stones_max: u32, kernels: impl Fn(Rules) -> Vec<Kernel>) {
    for (rules, set) in Rules::with_scores().flat_map(|rules| SETS.map(|set| (rules, set))) {
        for known in known(rules, set, if rules == Rules::AWARI { awari_stones_max } else { 5 }) {
            let stones = known.index.stones();
            let least = DiskPlan::arena_bytes_min(stones, set);
            assert_eq!(DiskPlan::new(&known.index, least - 1).unwrap_err(), TooSmall { needed: least });
            for (arena_bytes, threads) in [(least, 2), (usize::MAX, 1)] {
                let plan = DiskPlan::new(&known.index, arena_bytes).unwrap();
                assert!(plan.file_bytes() <= DiskPlan::file_bytes_max(stones, set));
                for kernel in kernels(rules) {
                    let file = TestFile::new(&plan);
                    let solve = || solve(&known, &plan, &file, false, kernel, &());
                    let (report, scores) = with_threads(threads, solve).unwrap();
                    assert!(scores == known.scores, "{stones} stones, {set}, {arena_bytes} bytes, {kernel:?}");
                    assert_eq!(report.damaged, 0);
                }
            }
        }
    }
}

/// Twelve stones in two arenas of a fifth of their size: slabs are cut into many tasks.
#[test]
fn many_tasks_a_slab() {
    let known = known(Rules::AWARI, PositionSet::REACHABLE, 12).pop().unwrap();
    let plan = DiskPlan::new(&known.index, DiskPlan::arena_bytes_min(12, PositionSet::REACHABLE)).unwrap();
    assert!(plan.tasks.len() > 40 && plan.arena_bytes() < known.scores.len() / 5, "{}", plan.arena_bytes());
    let file = TestFile::new(&plan);
    let solve = || solve(&known, &plan, &file, false, Kernel::detect(), &());
    let (_, scores) = with_threads(2, solve).unwrap();
    assert!(scores == known.scores);
}

/// The process dies in a write, which is torn, and again and again; with another memory each time.
#[test]
fn a_sweep_resumes_after_any_write() {
    let stones = 6;
    for set in SETS {
        let known = known(Rules::AWARI, set, stones).pop().unwrap();
        let least = DiskPlan::arena_bytes_min(stones, set);
        let plans = [least, least * 2].map(|bytes| DiskPlan::new(&known.index, bytes).unwrap());
        let longest = plans.iter().map(DiskPlan::file_bytes).max().unwrap();
        let run = |plan: &DiskPlan, file: &TestFile, resumed| {
            with_threads(1, || solve(&known, plan, file, resumed, Kernel::detect(), &()))
        };
        let counting = TestFile::new(&plans[0]);
        run(&plans[0], &counting, false).unwrap();
        let writes = u64::MAX - counting.writes_left.into_inner();
        let mut damaged = 0;
        for first in (0..writes).step_by(writes as usize / 12) {
            let file = TestFile::of(longest);
            for death in 0..3 {
                file.writes_left.store(first / (death + 1), Relaxed);
                let died = run(&plans[death as usize % 2], &file, death > 0);
                // Once resumed, it may be done before.
                assert!(death > 0 || matches!(died, Err(DiskSweepError::Failed(_))), "write {first}");
            }
            file.writes_left.store(u64::MAX, Relaxed);
            let (report, scores) = run(&plans[0], &file, true).unwrap();
            assert!(scores == known.scores, "killed in write {first}, {set}");
            damaged += report.damaged;
        }
        assert!(damaged > 0, "no write was torn");
    }
}

/// A file of a previous process that is no state of a sweep has wrong checksums, and counts as zeros.
#[test]
fn a_damaged_file_is_swept_to_the_same_scores() {
    let known = known(Rules::AWARI, PositionSet::All, 7).pop().unwrap();
    let plan = DiskPlan::new(&known.index, usize::MAX).unwrap();
    let file = TestFile::new(&plan);
    let run = |resumed| with_threads(2, || solve(&known, &plan, &file, resumed, Kernel::detect(), &())).unwrap();
    run(false);
    let whole = file.bytes.read().unwrap().clone();
    for step in [1, 97, 4096, 20_000] {
        let mut bytes = whole.clone();
        bytes.iter_mut().step_by(step).for_each(|byte| *byte ^= 0x55);
        *file.bytes.write().unwrap() = bytes;
        let (report, scores) = run(true);
        assert!(scores == known.scores && report.damaged > 0, "every {step}");
    }
    // Whole, it is done after a pass.
    let (report, scores) = run(true);
    let once = plan.pass_bytes().written + plan.file_bytes() - plan.layout.bytes();
    assert!(scores == known.scores && report.written_bytes <= once && report.damaged == 0);
}

/// The drive gives back other bytes than were written, while the sweep is under way.
#[test]
fn damage_during_a_sweep_is_repaired() {
    let known = known(Rules::AWARI, PositionSet::All, 7).pop().unwrap();
    let plan = DiskPlan::new(&known.index, DiskPlan::arena_bytes_min(7, PositionSet::All)).unwrap();
    let file = TestFile::new(&plan);
    for at in [60, 150, 250] {
        file.reads_until_damage.store(at, Relaxed);
        let (report, scores) = with_threads(1, || solve(&known, &plan, &file, false, Kernel::detect(), &())).unwrap();
        assert!(scores == known.scores && report.damaged > 0, "read {at}: {report:?}");
    }
}

/// Observer that stops at its n-th call.
struct StopAtCall(AtomicU64);

impl DriverObserver for StopAtCall {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        match self.0.fetch_sub(1, Relaxed) {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn a_sweep_resumes_wherever_it_was_stopped() {
    let known = known(Rules::AWARI, PositionSet::All, 7).pop().unwrap();
    let plan = DiskPlan::new(&known.index, DiskPlan::arena_bytes_min(7, PositionSet::All)).unwrap();
    let file = TestFile::new(&plan);
    for times in [0, 7, 20, 33] {
        let stop = StopAtCall(times.into());
        let stopped = solve(&known, &plan, &file, times > 0, Kernel::detect(), &stop);
        assert_eq!(stopped.err(), Some(DiskSweepError::Stopped(Stopped)));
    }
    let (_, scores) = solve(&known, &plan, &file, true, Kernel::detect(), &()).unwrap();
    assert!(scores == known.scores);
}
