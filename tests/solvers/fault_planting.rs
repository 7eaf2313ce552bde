//! Planted faults in databases, and the checks that find them.
//!
//! `cargo test -p tests --test solvers fault_planting -- --include-ignored --nocapture` prints what was
//! planted and found. Columns:
//! `file` (checksums, digest, identity), `rules` (every score follows from its children), `sample` (one in 20 does),
//! `counts` (published ones), `claims` (every win and loss is derived, the other half of a certificate), `rebuild` (the
//! content digest that counting makes). A certificate is `rules` and `claims` from 0 stones up.

use check::{Databases, Extent, Histogram, Published, Sample, certify, check_integrity, verify};
use disk::{Digest, MemoryDisk};
use game::{Index, PositionSet, Rules, Score};
use pipeline::{Manifest, Orchestrator, RunOptions};
use planner::{Settings, schema};
use rayon::prelude::*;
use stages::{Awari, files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use store::{Codec, FileKind, Scores, ValueRange};
use tests::Random;
use tests::claims::{ClaimOutcome, Claims};
use tests::equations::{Equations, Extremes};
use tests::fault_planting::{self, Misread};

const STONES_MAX: u32 = 12;

/// Right databases, and their digests by another method.
struct RightDatabases {
    set: PositionSet,
    /// The fewest stones with which the position set differs from those checked before.
    stones_min: u32,
    random: Random,
    right: Vec<Vec<Score>>,
    rebuilt: Vec<Digest>,
}

/// Databases that take the place of right ones.
type Fault = BTreeMap<u32, Vec<Score>>;

/// Which checks refuse a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CheckVerdict {
    file: bool,
    rules: bool,
    sample: bool,
    counts: bool,
    claims: bool,
    rebuild: bool,
}

/// Verdicts by kind of fault, in the order of their first.
#[derive(Default)]
struct VerdictTable(Vec<(String, Vec<CheckVerdict>)>);

impl RightDatabases {
    fn new(set: PositionSet, stones_max: u32) -> RightDatabases {
        let swept = build(set, stones_max, "sweep");
        let counted = build(set, stones_max, "counting");
        let stones_min = if set == PositionSet::All { 1 } else { 6 };
        let mut ground =
            RightDatabases { set, stones_min, random: Random::new(11), right: Vec::new(), rebuilt: Vec::new() };
        for stones in 0..=stones_max {
            let file = open(&swept, set, stones);
            let mut scores = vec![0; set.positions(stones) as usize];
            file.read_into(&mut scores).unwrap();
            ground.right.push(scores);
            ground.rebuilt.push(open(&counted, set, stones).digest());
        }
        ground
    }

    fn equations(&self, stones: u32) -> Equations {
        Equations::new(self.set, stones, &self.right)
    }

    /// The generator of one plant.
    fn random(&self, stones: u32, number: u64) -> Random {
        self.random.branch(u64::from(stones) << 32 | number)
    }

    fn judge_one(&self, stones: u32, scores: Vec<Score>, number: u64) -> CheckVerdict {
        self.judge(&Fault::from([(stones, scores)]), number)
    }

    fn judge(&self, fault: &Fault, number: u64) -> CheckVerdict {
        let mut databases: Databases<&[Score]> = Databases::new(Rules::AWARI, self.set);
        for stones in 0..=*fault.keys().next_back().unwrap() {
            let right = &self.right[stones as usize];
            databases.insert(stones, fault.get(&stones).unwrap_or(right).as_slice()).unwrap();
        }
        let mut found = CheckVerdict::default();
        for (&stones, scores) in fault {
            let database = databases.get(stones).unwrap();
            let sample = Extent::Sample(Sample { one_in: 20, at_least: 100, seed: number });
            let counts = Histogram::of(database).unwrap();
            found.file |= self.file_is_damaged(stones, scores);
            found.rules |= verify(&databases, stones, Extent::Full).is_err();
            found.sample |= verify(&databases, stones, sample).is_err();
            found.counts |=
                matches!(Published::compare(&Rules::AWARI, stones, self.set, &counts), Published::Differs { .. });
            found.claims |= certify(&databases, stones).is_err();
            found.rebuild |= Digest::of_i8(scores) != self.rebuilt[stones as usize];
        }
        found
    }

    /// Written with right checksums, as by a faulty solver.
    fn file_is_damaged(&self, stones: u32, scores: &[Score]) -> bool {
        let disk = MemoryDisk::new();
        write(&disk, self.set, stones, scores);
        check_integrity(&open(&disk, self.set, stones)).is_err()
    }
}

/// Builds databases by the stages of a run.
fn build(set: PositionSet, stones_max: u32, method: &str) -> MemoryDisk {
    let text = format!(
        "[game]\npositions = \"{set}\"\n[build]\nstones = \"0..{stones_max}\"\nmethod = \"{method}\"\nthreads = 1\n\
         [check]\nverify = \"none\"\n"
    );
    let disk = MemoryDisk::new();
    let work = Awari::new(Settings::new(&Manifest::parse(&text, "test", &schema(), &[]).unwrap()));
    Orchestrator::new(&disk, Path::new("run"), &work, RunOptions::default()).run().unwrap();
    disk
}

fn path(stones: u32) -> PathBuf {
    PathBuf::from(format!("run/databases/{stones:02}.awari"))
}

fn open(disk: &MemoryDisk, set: PositionSet, stones: u32) -> Scores {
    let identity = files::identity(Rules::AWARI.name, set, FileKind::Database, stones);
    let shape = files::shape(&Index::new(stones, set), FileKind::Database);
    Scores::open(disk, &path(stones)).unwrap().expect(&identity, &shape).unwrap()
}

fn write(disk: &MemoryDisk, set: PositionSet, stones: u32, scores: &[Score]) {
    let identity = files::identity(Rules::AWARI.name, set, FileKind::Database, stones);
    let shape = files::shape(&Index::new(stones, set), FileKind::Database);
    let range = ValueRange::new(-(stones as Score), stones as Score);
    store::write(disk, &path(stones), &identity, &shape, range, Codec::Packed, scores).unwrap();
}

impl VerdictTable {
    fn add(&mut self, what: impl Into<String>, verdicts: Vec<CheckVerdict>) {
        let what = what.into();
        match self.0.iter_mut().find(|(other, _)| *other == what) {
            Some((_, all)) => all.extend(verdicts),
            None => self.0.push((what, verdicts)),
        }
    }

    fn print(&self, set: PositionSet) {
        println!("\npositions {set}\n| fault | planted | file | rules | sample | counts | claims | rebuild |");
        println!("|---|---|---|---|---|---|---|---|");
        for (what, verdicts) in &self.0 {
            let count = |found: fn(&CheckVerdict) -> bool| verdicts.iter().filter(|verdict| found(verdict)).count();
            let counts = [
                count(|found| found.file),
                count(|found| found.rules),
                count(|found| found.sample),
                count(|found| found.counts),
                count(|found| found.claims),
                count(|found| found.rebuild),
            ];
            let counts = counts.map(|count| count.to_string()).join(" | ");
            println!("| {what} | {} | {counts} |", verdicts.len());
        }
    }
}

/// Plants faults into databases of a position set: all of them, or those that its index decides.
fn plant_all(set: PositionSet) -> VerdictTable {
    let ground = RightDatabases::new(set, STONES_MAX);
    let mut table = VerdictTable::default();
    singles(&ground, &mut table);
    displacements(&ground, &mut table);
    misreadings(&ground, &mut table);
    if set == PositionSet::All {
        consequences(&ground, &mut table);
        solutions(&ground, &mut table);
    }
    files_changed(&ground, &mut table);
    table.print(set);
    table
}

/// Every position with every wrong score, of up to 3 stones; one wrong score for every position with 4; some with more.
fn singles(ground: &RightDatabases, table: &mut VerdictTable) {
    for stones in ground.stones_min..=4 {
        let right = &ground.right[stones as usize];
        let plants = (0..right.len()).flat_map(|position| {
            let all: Vec<Score> =
                (-(stones as Score)..=stones as Score).filter(|&wrong| wrong != right[position]).collect();
            let kept = if stones < 4 { all.len() } else { 1 };
            let first = if stones < 4 { 0 } else { position % all.len() };
            all.into_iter().skip(first).take(kept).map(move |wrong| (position, wrong))
        });
        let plants: Vec<(usize, Score)> = plants.collect();
        let verdicts = plants.into_par_iter().map(|(position, wrong)| {
            let mut scores = right.clone();
            scores[position] = wrong;
            ground.judge_one(stones, scores, position as u64)
        });
        table.add("one wrong score, 1 to 4 stones, every position", verdicts.collect());
    }
    for (stones, count) in
        [(8, 6), (9, 2), (10, 1)].into_iter().filter(|&(stones, _)| stones < ground.right.len() as u32)
    {
        let verdicts = (0..count).into_par_iter().map(|number| {
            let mut random = ground.random(stones, number);
            ground.judge_one(
                stones,
                fault_planting::single(&ground.right[stones as usize], stones, &mut random),
                number,
            )
        });
        table.add("one wrong score, 8 to 10 stones", verdicts.collect());
    }
}

/// A wrong score, and others that follow from it.
fn consequences(ground: &RightDatabases, table: &mut VerdictTable) {
    for (stones, count) in [(4, 60), (6, 20), (8, 3)].into_iter().filter(|&(stones, _)| stones >= ground.stones_min) {
        let equations = ground.equations(stones);
        let right = &ground.right[stones as usize];
        let verdicts = (0..count).into_par_iter().map(|number| {
            let mut random = ground.random(stones, number);
            ground.judge_one(stones, fault_planting::child_and_parent(&equations, right, stones, &mut random), number)
        });
        table.add("a child and a parent that follows from it", verdicts.collect());
        let verdicts = (0..count).into_par_iter().filter_map(|number| {
            let scores =
                fault_planting::with_all_that_follows(&equations, right, stones, &mut ground.random(stones, number))?;
            // A consistent database is another solution, which has its own row.
            (!equations.hold(&scores)).then(|| ground.judge_one(stones, scores, number))
        });
        table.add("one wrong score and all that follows from it", verdicts.collect());
    }
}

/// Right scores in wrong places, or with wrong signs.
fn displacements(ground: &RightDatabases, table: &mut VerdictTable) {
    for stones in [4, 6, 7].into_iter().filter(|&stones| stones >= ground.stones_min) {
        let right = &ground.right[stones as usize];
        let plants = fault_planting::displaced(&Index::new(stones, ground.set), right, &mut ground.random(stones, 0));
        let verdicts: Vec<_> =
            plants.into_par_iter().map(|(what, scores)| (what, ground.judge_one(stones, scores, 0))).collect();
        for (what, verdict) in verdicts {
            table.add(what, vec![verdict]);
        }
    }
    for stones in 6..=8 {
        let positions = ground.set.positions(stones);
        let smaller = fault_planting::of_other_positions(&ground.right[stones as usize - 1], positions);
        table.add("scores of a smaller database", vec![ground.judge_one(stones, smaller, 0)]);
        let other = match ground.set {
            PositionSet::All => PositionSet::REACHABLE,
            PositionSet::Reachable { .. } => PositionSet::All,
        };
        let solved = Equations::new(other, stones, &solved_by_equations(other, stones)).least();
        let scores = fault_planting::of_other_positions(&solved, positions);
        table.add("scores of the other position set", vec![ground.judge_one(stones, scores, 0)]);
    }
}

fn solved_by_equations(set: PositionSet, stones: u32) -> Vec<Vec<Score>> {
    let mut solved = Vec::new();
    for stones in 0..stones {
        solved.push(Equations::new(set, stones, &solved).least());
    }
    solved
}

/// All databases of a directory solved by other rules.
fn misreadings(ground: &RightDatabases, table: &mut VerdictTable) {
    let verdicts: Vec<_> = Misread::all()
        .into_par_iter()
        .filter(|misread| misread.stays_in(ground.set))
        .map(|misread| {
            let first = misread.stones_min();
            let last = first.max(7);
            let mut solved = ground.right[..first as usize].to_vec();
            let mut fault = Fault::new();
            for stones in first..=last {
                let scores = misread.solve(ground.set, stones, &solved);
                if scores != ground.right[stones as usize] {
                    fault.insert(stones, scores.clone());
                }
                solved.push(scores);
            }
            assert!(!fault.is_empty(), "{} makes no difference", misread.what);
            (misread.what, ground.judge(&fault, 0))
        })
        .collect();
    for (what, verdict) in verdicts {
        table.add(what, vec![verdict]);
    }
}

/// Other solutions of the same equations, each with the number of positions that it changes.
fn other_solutions(ground: &RightDatabases, stones: u32, count_max: usize) -> BTreeMap<Vec<Score>, usize> {
    const CONFLICTS_MAX: usize = 2_000;
    let equations = ground.equations(stones);
    let right = &ground.right[stones as usize];
    let extremes = equations.extremes();
    let mut random = ground.random(stones, 0);
    let mut found = BTreeMap::new();
    for bound in 1..=stones as Score {
        let mut claims = Claims::new(&equations, &extremes, right, bound);
        for number in 0..count_max {
            let seeds = claims.seeds();
            let at = if number == 0 { 0 } else { random.below(seeds.len().max(1) as u64) as usize };
            let Some(&seed) = seeds.get(at) else { break };
            if let ClaimOutcome::Found(scores) = claims.search(seed, CONFLICTS_MAX) {
                assert!(equations.hold(&scores) && scores != *right);
                let changed = scores.iter().zip(right).filter(|(score, other)| score != other).count();
                found.insert(scores, changed);
            }
        }
    }
    found
}

/// Databases that are consistent and wrong.
fn solutions(ground: &RightDatabases, table: &mut VerdictTable) {
    for (stones, count) in [(2, 4), (3, 20), (4, 20), (6, 6), (7, 2), (8, 2), (9, 1)] {
        let found = other_solutions(ground, stones, count);
        let changed: BTreeSet<usize> = found.values().copied().collect();
        println!("{stones} stones: {} other solutions, which change {changed:?} positions", found.len());
        assert!(found.len() > 1, "{stones} stones");
        let verdicts: Vec<_> = found.into_par_iter().map(|(scores, _)| ground.judge_one(stones, scores, 0)).collect();
        table.add("consistent but wrong", verdicts);
    }
    // Solved on top of a database that is consistent and wrong.
    for stones in [2, 3, 4] {
        let (wrong, _) = other_solutions(ground, stones, 2).pop_first().unwrap();
        let mut solved = ground.right[..stones as usize].to_vec();
        solved.push(wrong.clone());
        let mut fault = Fault::from([(stones, wrong)]);
        for above in stones + 1..=7 {
            let scores = Equations::new(ground.set, above, &solved).least();
            if scores != ground.right[above as usize] {
                fault.insert(above, scores.clone());
            }
            solved.push(scores);
        }
        assert!(fault.len() > 2, "{stones} stones: what is above rests on it");
        table.add("solved on top of a consistent but wrong one", vec![ground.judge(&fault, 0)]);
        // The databases above pass every check by themselves: so a proof begins at 0 stones.
        let mut databases: Databases<&[Score]> = Databases::new(Rules::AWARI, ground.set);
        for (stones, scores) in (0..).zip(&solved) {
            databases.insert(stones, scores.as_slice()).unwrap();
        }
        let top = *fault.keys().next_back().unwrap();
        assert!(verify(&databases, top, Extent::Full).is_ok() && certify(&databases, top).is_ok());
    }
}

/// Files that were changed after they were written.
fn files_changed(ground: &RightDatabases, table: &mut VerdictTable) {
    let disk = MemoryDisk::new();
    let identity = files::identity(Rules::AWARI.name, ground.set, FileKind::Database, 6);
    let shape = files::shape(&Index::new(6, ground.set), FileKind::Database);
    for stones in 5..=6 {
        write(&disk, ground.set, stones, &ground.right[stones as usize]);
    }
    let verdict = |bytes: &[u8]| {
        disk.put(&path(6), bytes);
        let opened = Scores::open(&disk, &path(6)).and_then(|file| file.expect(&identity, &shape));
        let file = opened.map_or(true, |file| check_integrity(&file).is_err());
        CheckVerdict { file, ..CheckVerdict::default() }
    };
    let sound = disk.peek(&path(6)).unwrap();
    assert!(!verdict(&sound).file);
    let mut random = ground.random(6, 0);
    for _ in 0..500 {
        let mut bytes = sound.clone();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
        table.add("file: a bit flipped", vec![verdict(&bytes)]);
        bytes[at] = sound[at];
        bytes.truncate(at);
        table.add("file: cut short", vec![verdict(&bytes)]);
    }
    table.add("file: of another database", vec![verdict(&disk.peek(&path(5)).unwrap())]);
}

/// Damaged files, and single wrong scores in the smallest databases.
#[test]
fn small_planted_faults_are_found() {
    let ground = RightDatabases::new(PositionSet::All, 7);
    let mut table = VerdictTable::default();
    files_changed(&ground, &mut table);
    singles(&ground, &mut table);
    check_verdicts(PositionSet::All, &table);
}

#[test]
#[ignore = "slow tier: rebuilds databases thousands of times"]
fn every_planted_fault_is_found() {
    for set in [PositionSet::All, PositionSet::REACHABLE] {
        check_verdicts(set, &plant_all(set));
    }
}

/// Each fault is found, by the checks that must find it.
fn check_verdicts(set: PositionSet, table: &VerdictTable) {
    for (what, verdicts) in &table.0 {
        assert!(!verdicts.is_empty(), "{what}: nothing was planted");
        if what.starts_with("file: ") {
            assert!(verdicts.iter().all(|verdict| verdict.file), "{what}");
            continue;
        }
        for verdict in verdicts {
            assert!(verdict.rebuild, "{what}: a rebuild finds everything");
            assert!(verdict.rules || verdict.claims, "{what}: a certificate finds everything");
            assert!(!verdict.file, "{what}: files were written as they should be");
            if set == PositionSet::All && !verdict.rules {
                assert!(verdict.counts, "{what}: no other solution has the published counts");
            }
        }
        if what.starts_with("one wrong") || what.starts_with("a child") {
            assert!(verdicts.iter().all(|verdict| verdict.rules), "{what}: it contradicts itself somewhere");
        }
        if what.contains("consistent but wrong") {
            assert!(verdicts.iter().all(|verdict| !verdict.rules && verdict.claims), "{what}");
        }
    }
}

/// Where the bounds of all solutions agree, consistency is a proof; elsewhere there are other solutions.
/// `AWARI_TEST_STONES=16` tests more stones: 13 take a minute, 16 ten.
#[test]
fn consistent_solutions_are_unique_for_known_stones() {
    const UNIQUE: [u32; 9] = [0, 1, 5, 10, 12, 13, 14, 15, 16];
    let asked = std::env::var("AWARI_TEST_STONES").ok().and_then(|text| text.parse().ok());
    let stones_max: u32 = asked.unwrap_or(10);
    for set in [PositionSet::All, PositionSet::REACHABLE] {
        let mut right: Vec<Vec<Score>> = Vec::new();
        for stones in 0..=stones_max {
            let equations = Equations::new(set, stones, &right);
            let least = equations.least();
            let extremes = equations.extremes();
            let open = (0..least.len()).filter(|&at| extremes.high[at] != extremes.low[at]).count();
            assert!((0..least.len()).all(|at| extremes.low[at] <= least[at] && least[at] <= extremes.high[at]));
            println!("{set} {stones}: {open} of {} positions may score otherwise", least.len());
            if open > 0 {
                let other =
                    (1..=stones as Score).find_map(|bound| first_solution(&equations, &extremes, &least, bound));
                assert!(other.is_some_and(|other| other != least && equations.hold(&other)), "{set} {stones}");
            }
            assert!(stones > 16 || UNIQUE.contains(&stones) == (open == 0), "{set} {stones}");
            right.push(least);
        }
    }
}

fn first_solution(equations: &Equations, extremes: &Extremes, least: &[Score], bound: Score) -> Option<Vec<Score>> {
    let mut claims = Claims::new(equations, extremes, least, bound);
    claims.seeds().into_iter().take(100).find_map(|seed| match claims.search(seed, 2_000) {
        ClaimOutcome::Found(scores) => Some(scores),
        ClaimOutcome::Impossible | ClaimOutcome::GivenUp => None,
    })
}

/// A sample finds wrong scores with the documented probability.
#[test]
#[ignore = "slow tier: thousands of checks"]
fn samples_find_faults_as_often_as_predicted() {
    let (set, stones) = (PositionSet::All, 6);
    let solved = solved_by_equations(set, stones + 1);
    let equations = Equations::new(set, stones, &solved);
    let right = &solved[stones as usize];
    let positions = right.len() as u64;
    let random = Random::new(23);
    for one_in in [10, 40, 200] {
        let sample = |seed| Sample { one_in, at_least: 1, seed };
        let count = sample(0).count(positions);
        // The run of positions of which the sample has one.
        let run = |at: u64| (0..count).find(|run| at < (run + 1) * positions / count).unwrap();
        let size = |run: u64| ((run + 1) * positions / count - run * positions / count) as f64;
        let plants: Vec<u64> = (0..3000).collect();
        let looked: Vec<(bool, f64)> = plants
            .into_par_iter()
            .map(|number| {
                let mut random = random.branch(number);
                let mut scores = right.clone();
                for _ in 0..=number % 4 {
                    scores = fault_planting::single(&scores, stones, &mut random);
                }
                let bad: Vec<usize> = equations.violations(&scores).collect();
                let mut runs: BTreeMap<u64, f64> = BTreeMap::new();
                bad.iter().for_each(|&at| *runs.entry(run(at as u64)).or_default() += 1.0);
                let missed: f64 = runs.iter().map(|(&run, bad)| 1.0 - bad / size(run)).product();
                let promised = sample(0).chance(positions, bad.len() as u64);
                assert!(1.0 - missed >= promised - 1e-3, "{bad:?}: {missed} and {promised}");
                let mut databases: Databases<&[Score]> = Databases::new(Rules::AWARI, set);
                for (stones, right) in (0..=stones).zip(&solved) {
                    databases.insert(stones, right.as_slice()).unwrap();
                }
                databases.insert(stones, scores.as_slice()).unwrap();
                let found = verify(&databases, stones, Extent::Sample(sample(random.bits()))).is_err();
                (found, 1.0 - missed)
            })
            .collect();
        let found = looked.iter().filter(|(found, _)| *found).count() as f64;
        let expected: f64 = looked.iter().map(|(_, chance)| chance).sum();
        let variance: f64 = looked.iter().map(|(_, chance)| chance * (1.0 - chance)).sum();
        println!("one in {one_in}: found {found} of 3000, expected {expected:.1} +- {:.1}", variance.sqrt());
        assert!((found - expected).abs() < 4.0 * variance.sqrt(), "{found} found, {expected} expected");
    }
}
