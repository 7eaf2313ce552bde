//! The engines against the slow reference, each other, and the published counts.

use check::{Databases, Histogram, Published};
use game::{Board, Index, Orientation, PositionSet, Rules, Score, Slab, reference};
use messaging::Alone;
use solvers::capture::{CaptureError, ChildRow, DecodeRun, InMemory, Sequential, SmallerRows};
use solvers::counting::{CountingReport, Distribution, RankValues, checkpoint_range, counting};
use solvers::ranks::{JobError, JobObserver, collect};
use solvers::sweep::RankScores;
use solvers::{Bytes, DriverObserver, Kernel, ScoreRows, Stopped, Tables, capture, sweep};
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tests::Random;

const SETS: [PositionSet; 2] = [PositionSet::All, PositionSet::REACHABLE];

fn captures(tables: &Tables, index: &Index, smaller: &[Vec<Score>]) -> Bytes {
    let smaller = InMemory::new(tables.set(), smaller.iter().map(Vec::as_slice));
    let mut best = Bytes::zeroed(index.positions() as usize).unwrap();
    capture::capture_into(tables, index, &smaller, &(), &mut best, &mut |_| Ok(())).unwrap();
    best
}

/// Databases 0 to `stones`, in canonical order.
fn build(set: PositionSet, stones: u32, kernel: Kernel) -> Vec<Vec<Score>> {
    let tables = Tables::new(Rules::AWARI, set, stones);
    let mut databases = Vec::new();
    for stones in 0..=stones {
        let index = Index::new(stones, set);
        let best = captures(&tables, &index, &databases);
        let (scores, _) = sweep::solve(&tables, &index, &best, kernel).unwrap();
        databases.push(scores.to_vec());
    }
    databases
}

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn sweep_agrees_with_the_reference() {
    let solved = reference::solve_up_to(7);
    for set in SETS {
        for kernel in Kernel::available() {
            for (stones, scores) in build(set, 7, kernel).iter().enumerate() {
                let index = Index::new(stones as u32, set);
                for (position, &score) in scores.iter().enumerate() {
                    let board = index.unrank(position as u64, Orientation::OpponentMajor);
                    assert_eq!(score, solved[stones][&board.0], "{board:?} with {kernel:?}");
                }
            }
        }
    }
}

#[test]
fn published_counts() {
    let mut databases = Databases::new(Rules::AWARI, PositionSet::All);
    for (stones, scores) in build(PositionSet::All, 12, Kernel::detect()).into_iter().enumerate() {
        databases.insert(stones as u32, scores).unwrap();
        let histogram = Histogram::of(databases.get(stones as u32).unwrap()).unwrap();
        assert_eq!(
            Published::compare(&Rules::AWARI, stones as u32, PositionSet::All, &histogram),
            Published::Matches,
            "{stones}"
        );
    }
}

#[test]
fn kernels_agree() {
    for set in SETS {
        let all: Vec<_> = Kernel::available().map(|kernel| build(set, 11, kernel)).collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{set}");
    }
}

#[test]
fn scores_do_not_depend_on_threads() {
    let single = with_threads(1, || build(PositionSet::All, 11, Kernel::detect()));
    for threads in [2, 3] {
        assert!(single == with_threads(threads, || build(PositionSet::All, 11, Kernel::detect())), "{threads} threads");
    }
}

#[test]
fn reachable_scores_are_those_of_all() {
    let all = build(PositionSet::All, 10, Kernel::detect());
    let reachable = build(PositionSet::REACHABLE, 10, Kernel::detect());
    for (stones, (all, reachable)) in all.iter().zip(&reachable).enumerate() {
        let index = Index::new(stones as u32, PositionSet::All);
        let sparse = Index::new(stones as u32, PositionSet::REACHABLE);
        let expected = game::binomial(stones as u32 + 11, 11) - game::binomial(stones as u32 + 5, 11);
        assert_eq!(reachable.len() as u64, expected);
        for (position, &score) in reachable.iter().enumerate() {
            let board = sparse.unrank(position as u64, Orientation::OpponentMajor);
            let same = index.rank(&board, Orientation::OpponentMajor).unwrap();
            assert_eq!(score, all[same as usize], "{board:?}");
        }
    }
}

/// Stops at the call of `advance` with this number, counted from 0.
struct StopAtAdvance(AtomicU64);

fn stop_at(call: u64) -> StopAtAdvance {
    StopAtAdvance(AtomicU64::new(call))
}

impl DriverObserver for StopAtAdvance {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        match self.0.fetch_sub(1, Relaxed) {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl<P> JobObserver<P> for StopAtAdvance {
    fn is_due(&self) -> bool {
        false
    }

    fn checkpoint(&self, _: &P) {}
}

/// A pass stopped anywhere, or any mixture of an earlier and a later state, resumes to the same scores.
#[test]
fn a_sweep_resumes_from_any_mixture_of_states() {
    let SolverInput { tables, index, best, expected } = SolverInput::up_to(PositionSet::All, 9).pop().unwrap();
    let sweep = |values: ScoreRows, watch: &dyn JobObserver<RankScores>| {
        let mut scores = RankScores::alone(&tables, &index, values);
        let swept = sweep::sweep(&tables, &index, &best, &mut scores, Kernel::detect(), &mut Alone, watch);
        (scores.into_rows().to_vec(), swept)
    };
    let whole = stop_at(u64::MAX);
    sweep(ScoreRows::zeroed(&index).unwrap(), &whole).1.unwrap();
    let times = u64::MAX - whole.0.into_inner();
    let mut random = Random::new(1);
    for _ in 0..12 {
        let mut states = Vec::new();
        for _ in 0..2 {
            let (values, swept) = sweep(ScoreRows::zeroed(&index).unwrap(), &stop_at(random.below(times)));
            assert!(matches!(swept, Err(JobError::Stopped)));
            states.push(values);
        }
        let mut mixture = ScoreRows::zeroed(&index).unwrap();
        let any = |range: Range<u64>, out: &mut [Score]| {
            let mut value_at = |position: u64| states[random.below(2) as usize][position as usize];
            out.iter_mut().zip(range).for_each(|(value, position)| *value = value_at(position));
            Ok::<_, ()>(())
        };
        mixture.fill(any).unwrap();
        let (values, swept) = sweep(mixture, &());
        assert!(swept.is_ok() && values == expected);
    }
}

#[test]
fn captures_stop_or_fail_on_request() {
    let databases = build(PositionSet::All, 6, Kernel::detect());
    let tables = Tables::new(Rules::AWARI, PositionSet::All, 7);
    let index = Index::new(7, PositionSet::All);
    let smaller = InMemory::new(PositionSet::All, databases.iter().map(Vec::as_slice));
    let stopped = capture::capture(&tables, &index, &smaller, &stop_at(0), &mut |_| Ok(()));
    assert_eq!(stopped, Err(CaptureError::Stopped(Stopped)));

    /// One row cannot be read.
    struct Torn<'a>(InMemory<'a>);
    impl SmallerRows for Torn<'_> {
        type Window = ();
        type Error = ChildRow;
        fn window(&self) {}
        fn row<'w>(&'w self, window: &'w mut (), row: ChildRow) -> Result<&'w [Score], ChildRow> {
            let torn = row.stones == 5 && row.mover_stones == 2 && row.row == 3;
            if torn { Err(row) } else { Ok(self.0.row(window, row).unwrap()) }
        }
    }
    let torn = ChildRow { stones: 5, mover_stones: 2, row: 3, columns: 21 };
    let failed = capture::capture(&tables, &index, &Torn(smaller), &(), &mut |_| Ok(()));
    assert_eq!(failed, Err(CaptureError::Failed(torn)));
}

#[test]
fn capture_choices_follow_the_rules() {
    for set in SETS {
        let databases = build(set, 7, Kernel::detect());
        for ((tables, index, _, best), scores) in captured(set, &databases).zip(&databases) {
            let stones = index.stones();
            let (mut offered, mut declined) = (0, 0);
            for (position, &score) in scores.iter().enumerate() {
                let board = index.unrank(position as u64, Orientation::OpponentMajor);
                let value = |captured: u8, child: Board| {
                    let left = stones - u32::from(captured);
                    let at = Index::new(left, set).rank(&child, Orientation::OpponentMajor).unwrap();
                    captured as Score - databases[left as usize][at as usize]
                };
                let moves: Vec<_> =
                    board.moves(&Rules::AWARI).map(|(_, to)| (to.captured, value(to.captured, to.child))).collect();
                if moves.iter().any(|to| to.0 > 0) && moves.iter().any(|to| to.0 == 0) {
                    offered += 1;
                    declined += u64::from(!moves.iter().any(|to| to.0 > 0 && to.1 == score));
                }
            }
            let slice = |from: &[Score], first: u64, out: &mut [Score]| {
                out.copy_from_slice(&from[first as usize..][..out.len()]);
                Ok::<_, Stopped>(())
            };
            let (captures, scores) = (
                |first, out: &mut [Score]| slice(&best, first, out),
                |first, out: &mut [Score]| slice(scores, first, out),
            );
            let choice =
                solvers::choice(&tables, &index, 10_000, solvers::DatabasePart::WHOLE, &[], &captures, &scores)
                    .unwrap();
            assert_eq!((choice.offered, choice.declined), (offered, declined), "{stones} stones, {set}");
        }
    }
}

/// Databases in memory, read sequentially in runs that are not aligned to rows; one of them can fail.
struct Runs<'a> {
    smaller: &'a [Vec<Score>],
    torn: Option<u32>,
    /// Recently read runs: stones and number.
    read: Mutex<Vec<(u32, u64)>>,
}

impl Runs<'_> {
    fn of(smaller: &[Vec<Score>]) -> Runs<'_> {
        Runs { smaller, torn: None, read: Mutex::default() }
    }
}

impl Sequential for Runs<'_> {
    type Error = u32;
    type Pending = (u32, Range<u64>);

    fn run_end(&self, _: u32, position: u64) -> u64 {
        (position / 1000 + 1) * 1000
    }

    fn start(&self, stones: u32, positions: Range<u64>) -> (u32, Range<u64>) {
        (stones, positions)
    }

    fn decoder<'a>(&'a self, (stones, positions): (u32, Range<u64>), out: &'a mut [Score]) -> impl DecodeRun<u32> + 'a {
        out.copy_from_slice(&self.smaller[stones as usize][positions.start as usize..positions.end as usize]);
        let runs = positions.start / 1000..=(positions.end - 1) / 1000;
        self.read.lock().unwrap().extend(runs.map(|run| (stones, run)));
        CopiedRun(if self.torn == Some(stones) { Err(stones) } else { Ok(()) })
    }
}

/// Scores that were copied at once, or the error.
struct CopiedRun(Result<(), u32>);

impl DecodeRun<u32> for CopiedRun {
    fn work(&self) {}

    fn finish(self) -> Result<(), u32> {
        self.0
    }
}

/// Tables and index of each database, those smaller than it, and its captures.
fn captured(set: PositionSet, solved: &[Vec<Score>]) -> impl Iterator<Item = (Tables, Index, &[Vec<Score>], Bytes)> {
    (0..solved.len()).map(move |stones| {
        let (tables, index) = (Tables::new(Rules::AWARI, set, stones as u32), Index::new(stones as u32, set));
        let smaller = &solved[..stones];
        let expected = captures(&tables, &index, smaller);
        (tables, index, smaller, expected)
    })
}

/// Each rank of a job computes the captures of a part, which begins and ends within rows.
#[test]
fn captures_of_parts_are_the_same() {
    for set in SETS {
        let solved = build(set, 11, Kernel::Portable);
        for (tables, index, smaller, expected) in captured(set, &solved) {
            for parts in [2, 3, 7] {
                let mut best = Vec::new();
                for part in 0..parts {
                    let cut = |part: u64| index.slab_positions() * part / parts;
                    let range = cut(part)..cut(part + 1);
                    let mut stripe = vec![99; 30_000];
                    let mut receive = |received: &[Score]| {
                        best.extend_from_slice(received);
                        Ok(())
                    };
                    let runs = Runs::of(smaller);
                    capture::capture_in_stripes(&tables, (&index, &range), &runs, &(), &mut stripe, &mut receive)
                        .unwrap();
                    assert_eq!(best.len() as u64, range.end);
                }
                assert!(best == expected[..], "{} stones, {set}, {parts} parts", index.stones());
            }
        }
    }
}

#[test]
fn captures_in_stripes_are_the_same() {
    for set in SETS {
        let solved = build(set, 11, Kernel::Portable);
        for (tables, index, smaller, expected) in captured(set, &solved) {
            let (stones, all) = (index.stones(), 0..index.slab_positions());
            let row = index.slabs().iter().map(|slab| slab.opponent_halves).max().unwrap() as usize;
            for (threads, positions) in
                [(1, row), (3, row + 1), (1, 20_000 + row), (3, 70_000 + row), (1, usize::MAX), (3, usize::MAX)]
            {
                let runs = Runs::of(smaller);
                let (mut best, mut all_read) = (Vec::new(), 0);
                let mut stripe = vec![99; positions.min(index.positions() as usize)];
                let mut receive = |received: &[Score]| {
                    best.extend_from_slice(received);
                    let mut read = std::mem::take(&mut *runs.read.lock().unwrap());
                    all_read += read.len();
                    // Slabs begin and end in the middle of a run.
                    read.sort_unstable();
                    read.chunk_by(|run, other| run == other).for_each(|same| {
                        let (number, run) = same[0];
                        let ends = |slab: &&Slab| (run * 1000 + 1..(run + 1) * 1000).contains(&slab.offset);
                        let slabs = index.set().slabs(number);
                        let reads_max = 1 + slabs.iter().filter(ends).count();
                        assert!(same.len() <= reads_max, "{stones} stones, {set}: {same:?}");
                    });
                    Ok(())
                };
                with_threads(threads, || {
                    capture::capture_in_stripes(&tables, (&index, &all), &runs, &(), &mut stripe, &mut receive)
                        .unwrap();
                });
                assert!(best == expected[..], "{stones} stones, {set}, {threads} threads, {positions} at a time");
                let stripes = index.positions() as usize / stripe.len() + 1;
                let blocks: usize = smaller.iter().map(|scores| scores.len().div_ceil(1000)).sum();
                if stones == 11 && positions == 20_000 + row {
                    assert!(2 * all_read < stripes * blocks, "{all_read} of {stripes} times {blocks}");
                }
            }
        }
        let (tables, index) = (Tables::new(Rules::AWARI, set, 11), Index::new(11, set));
        let all = 0..index.slab_positions();
        let mut stripe = vec![0; 50_000];
        let runs = Runs { torn: Some(8), ..Runs::of(&solved) };
        let failed = capture::capture_in_stripes(&tables, (&index, &all), &runs, &(), &mut stripe, &mut |_| Ok(()));
        assert_eq!(failed, Err(CaptureError::Failed(8)));
        let runs = Runs::of(&solved);
        let stopped =
            capture::capture_in_stripes(&tables, (&index, &all), &runs, &stop_at(0), &mut stripe, &mut |_| Ok(()));
        assert!(matches!(stopped, Err(CaptureError::Stopped(_))));
        let refused = capture::capture_in_stripes(&tables, (&index, &all), &runs, &(), &mut stripe, &mut |_| Err(7));
        assert_eq!(refused, Err(CaptureError::Failed(7)));
    }
}

/// The input of a solver, with the expected scores.
struct SolverInput {
    tables: Tables,
    index: Index,
    best: Bytes,
    expected: Vec<Score>,
}

impl SolverInput {
    /// All databases of up to `stones` stones.
    fn up_to(set: PositionSet, stones: u32) -> Vec<SolverInput> {
        let databases = build(set, stones, Kernel::detect());
        let all = captured(set, &databases).zip(databases.clone());
        all.map(|((tables, index, _, best), expected)| SolverInput { tables, index, best, expected }).collect()
    }

    fn zeros(&self, distribution: Distribution) -> RankValues {
        RankValues::zeroed(&self.index, 1, 0, distribution).unwrap()
    }

    /// Counts from a checkpoint.
    fn resume(&self, distribution: Distribution, checkpoint: &[i8]) -> (RankValues, Result<CountingReport, JobError>) {
        let mut values = self.zeros(distribution);
        values.values_mut().copy_from_slice(checkpoint);
        let counted = self.count(&mut values, &());
        (values, counted)
    }

    fn count(&self, values: &mut RankValues, watch: &dyn JobObserver<RankValues>) -> Result<CountingReport, JobError> {
        counting(&self.tables, &self.index, &self.best, values, &mut Alone, watch)
    }

    fn assert_solved(&self, values: &RankValues) {
        let mut scores = Vec::new();
        let mut sink = |run: &[Score]| {
            scores.extend_from_slice(run);
            ControlFlow::Continue(())
        };
        let all = 0..self.index.positions();
        assert!(collect(values, std::slice::from_ref(&all), &mut Alone, &mut sink).unwrap());
        assert!(scores == self.expected, "{} stones, {}", self.index.stones(), self.index.set());
    }
}

#[test]
fn counting_agrees_with_sweep() {
    for set in SETS {
        for counted in SolverInput::up_to(set, 9) {
            let stones = counted.index.stones();
            let mut updates = None;
            for processors in [1, 2, 3, 4, 8] {
                for batch in [1, 7, 1024] {
                    let mut values = counted.zeros(Distribution { processors, batch, ..Distribution::new(1) });
                    let report = counted.count(&mut values, &()).unwrap();
                    counted.assert_solved(&values);
                    let total = report.total;
                    assert_eq!((report.processors, report.sent, report.messages), (processors as u64, 0, 0));
                    assert_eq!(total.positions, counted.index.positions());
                    assert_eq!(total.decided, counted.expected.iter().filter(|&&score| score != 0).count() as u64);
                    // Every decided position updates each of its parents once, on any processor.
                    assert_eq!(total.updates(), *updates.get_or_insert(total.updates()));
                    assert_eq!(total.sent, total.received);
                    assert_eq!(total.sent == 0, total.messages == 0);
                    assert!(total.sent.div_ceil(batch as u64) <= total.messages && total.messages <= total.sent);
                    assert_eq!(total.volume_bytes(), 4 * total.sent);
                    assert!(processors > 1 || total.sent == 0);
                    if stones >= 6 && processors > 1 {
                        assert!(total.kept > 0 && total.combining().unwrap() <= batch as f64);
                    }
                }
            }
        }
    }
}

#[test]
fn counting_reports_do_not_depend_on_threads() {
    let counted = SolverInput::up_to(PositionSet::All, 8).pop().unwrap();
    let report =
        |threads| with_threads(threads, || counted.count(&mut counted.zeros(Distribution::new(4)), &()).unwrap());
    assert_eq!(report(1), report(2));
    assert_eq!(report(1), report(3));
}

/// Observer that keeps a checkpoint of each bound.
struct KeepAll(Mutex<Vec<Vec<i8>>>);

impl DriverObserver for KeepAll {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl JobObserver<RankValues> for KeepAll {
    fn is_due(&self) -> bool {
        true
    }

    fn checkpoint(&self, values: &RankValues) {
        self.0.lock().unwrap().push(values.values().to_vec());
    }
}

/// Stopped between any two bounds or supersteps, repeatedly, counting resumes to the same scores.
#[test]
fn counting_resumes_from_any_checkpoint() {
    for set in SETS {
        for counted in SolverInput::up_to(set, 9).into_iter().skip(1) {
            let range = checkpoint_range(counted.index.stones());
            let sane = |values: &[i8]| assert!(values.iter().all(|value| (range.0..=range.1).contains(value)));
            let kept = KeepAll(Mutex::new(Vec::new()));
            let distribution = Distribution { processors: 3, batch: 5, queued: 1000 };
            counted.count(&mut counted.zeros(distribution), &kept).unwrap();
            let checkpoints = kept.0.into_inner().unwrap();
            assert_eq!(checkpoints.len(), counted.index.stones() as usize);
            for checkpoint in checkpoints {
                sane(&checkpoint);
                let (values, resumed) = counted.resume(Distribution::new(2), &checkpoint);
                resumed.unwrap();
                counted.assert_solved(&values);
            }
            let mut values = counted.zeros(Distribution::new(1));
            for turn in 0.. {
                let distribution = Distribution { processors: 1 + turn % 4, batch: 1 + turn % 3, queued: 100 };
                let mut next = counted.zeros(distribution);
                next.values_mut().copy_from_slice(values.values());
                values = next;
                // Each call gets one superstep further than to where it starts.
                if counted.count(&mut values, &stop_at(2 + turn as u64 / 4)).is_ok() {
                    break;
                }
                sane(values.values());
            }
            counted.assert_solved(&values);
        }
    }
}

/// With full queues, processors wait, and send full messages until all updates are sent.
#[test]
fn counting_with_full_queues() {
    let counted = SolverInput::up_to(PositionSet::All, 8).pop().unwrap();
    let count = |queued| {
        let mut values = counted.zeros(Distribution { processors: 4, batch: 16, queued });
        let report = counted.count(&mut values, &()).unwrap();
        counted.assert_solved(&values);
        report
    };
    let (little, much) = (count(0), count(1 << 18));
    assert!(little.supersteps > 10 * much.supersteps, "{} and {}", little.supersteps, much.supersteps);
    assert_eq!(little.total.updates(), much.total.updates());
}

/// A checkpoint with fewer children than updates is an error, not a panic.
#[test]
fn counting_refuses_a_forged_checkpoint() {
    let counted = SolverInput::up_to(PositionSet::All, 7).pop().unwrap();
    let stones = counted.index.stones() as i8;
    // Undecided, without a child that is.
    let mut values = vec![-(stones + 1); counted.index.positions() as usize];
    let (_, counted_on) = counted.resume(Distribution::new(2), &values);
    assert!(matches!(counted_on, Err(JobError::Inconsistent)));
    let (low, high) = checkpoint_range(counted.index.stones());
    let (mut random, mut told) = (Random::new(3), 0);
    for _ in 0..50 {
        values.iter_mut().for_each(|value| *value = low + random.below((high - low + 1) as u64) as i8);
        told += u32::from(counted.resume(Distribution::new(2), &values).1.is_err());
    }
    assert!(told > 0);
}
