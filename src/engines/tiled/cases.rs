//! Sweep on disk against sweep in memory: any budget, any threads, interrupted, torn and damaged.

use super::*;
use crate::capture::InMemory;
use crate::{Tables, capture, sweep};
use game::{PositionSet, Score};
use std::sync::RwLock;
use std::sync::atomic::AtomicU64;

const SETS: [PositionSet; 2] = [PositionSet::All, PositionSet::Reachable];

/// A file in memory, which may fail.
struct File {
    bytes: RwLock<Vec<i8>>,
    /// Writes until the process dies in one.
    writes_left: AtomicU64,
}

impl File {
    fn new(plan: &Plan) -> File {
        File { bytes: RwLock::new(vec![0; plan.file_bytes() as usize]), writes_left: u64::MAX.into() }
    }
}

impl Working for File {
    type Error = String;

    fn read(&self, place: u64, into: &mut [i8]) -> Result<(), String> {
        into.copy_from_slice(&self.bytes.read().unwrap()[place as usize..][..into.len()]);
        Ok(())
    }

    fn write(&self, place: u64, bytes: &[i8]) -> Result<(), String> {
        let mut file = self.bytes.write().unwrap();
        let to = &mut file[place as usize..][..bytes.len()];
        match self.writes_left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) {
            Ok(0) => {
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

    fn checksum(&self, number: u64, bytes: &[i8]) -> u64 {
        // FNV-1a.
        let bytes = bytes.iter().map(|&byte| u64::from(byte as u8));
        bytes.fold(number ^ 0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ byte).wrapping_mul(0x0100_0000_01b3))
    }

    fn is_damaged(&self, what: &str) -> String {
        what.to_owned()
    }
}

/// Best captures and scores of a database, made in memory.
struct Known {
    index: Index,
    captures: Vec<Score>,
    scores: Vec<Score>,
}

fn known(set: PositionSet, stones_max: u32) -> Vec<Known> {
    let tables = Tables::new(Rules::AWARI, set, stones_max);
    let mut all: Vec<Known> = Vec::new();
    for stones in 0..=stones_max {
        let index = Index::new(stones, set);
        let mut best = Bytes::zeroed(index.positions() as usize).unwrap();
        let smaller = InMemory::new(set, all.iter().map(|known| &known.scores[..]));
        capture::capture_into(&tables, &index, &smaller, &(), &mut best).unwrap();
        let mut scores = crate::Rows::zeroed(&index).unwrap();
        sweep::sweep(&tables, &index, &best, &mut scores, Kernel::detect(), &(), &mut |_| {}).unwrap();
        all.push(Known { index, captures: best.to_vec(), scores: scores.to_vec() });
    }
    all
}

/// Sweeps over a file, and reads the scores.
fn solve(
    known: &Known,
    plan: &Plan,
    file: &File,
    is_resumed: bool,
    kernel: Kernel,
    progress: &dyn Progress,
) -> Result<(Report, Vec<Score>), TiledError<String>> {
    let mut tiled = Tiled::new(&Rules::AWARI, &known.index, plan, kernel, file, is_resumed);
    let mut read = |first: u64, into: &mut [i8]| {
        into.copy_from_slice(&known.captures[first as usize..][..into.len()]);
        Ok(())
    };
    let started = std::time::Instant::now();
    let report = tiled.solve(&mut read, |error| error.to_string(), progress)?;
    eprintln!("{:?}", started.elapsed());
    let mut scores = Vec::new();
    tiled
        .scores(|run| {
            scores.extend_from_slice(run);
            Ok(())
        })
        .map_err(TiledError::Failed)?;
    Ok((report, scores))
}

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn every_budget_makes_the_scores_of_memory() {
    for set in SETS {
        for known in known(set, 10) {
            let stones = known.index.stones();
            let least = Plan::arena_bytes_min(stones, set);
            eprintln!("{stones} {least}");
            for (arena_bytes, threads) in [(least, 1), (least * 3 / 2, 2), (usize::MAX, 2)] {
                let plan = Plan::new(&known.index, arena_bytes).unwrap();
                let file = File::new(&plan);
                for kernel in Kernel::available() {
                    let solve = || solve(&known, &plan, &file, false, kernel, &());
                    let (report, scores) = with_threads(threads, solve).unwrap();
                    assert!(scores == known.scores, "{stones} stones, {set}, {arena_bytes} bytes, {kernel:?}");
                    eprintln!("{report:?}");
                    assert_eq!(report.damaged, 0);
                }
            }
        }
    }
}
#[test]
#[ignore]
fn show() {
    for stones in [10, 12, 14, 16, 18] {
        let known = known(PositionSet::All, stones).pop().unwrap();
        let least = Plan::arena_bytes_min(stones, PositionSet::All);
        for arena_bytes in [least, known.scores.len() / 8] {
            let Ok(plan) = Plan::new(&known.index, arena_bytes) else { continue };
            let file = File::new(&plan);
            let (report, scores) =
                with_threads(2, || solve(&known, &plan, &file, false, Kernel::detect(), &())).unwrap();
            assert!(scores == known.scores);
            let p = known.scores.len() as f64;
            println!(
                "{stones} arena {:.3} of {p}: {:.1} computed, {report:?} read {:.1} written {:.1}, plan {:?}",
                plan.arena_bytes() as f64 / p,
                report.recomputed as f64 / p,
                report.read_bytes as f64 / p,
                report.written_bytes as f64 / p,
                plan.pass_bytes()
            );
        }
    }
}
