//! The allocations of readers of hostile bytes: at most a constant and a multiple of the length of the input,
//! for any lengths and counts in the bytes.

use check::Statistics;
use disk::MemoryDisk;
use game::notation::PositionText;
use pipeline::journal::Contents;
use pipeline::manifest::Manifest;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::path::Path;
use store::{CachedScores, Scores, StoreError};
use tests::Random;
use tests::hostile::{mutant, seal_journal, seal_scores, seeds};

/// The system's allocator, which counts the bytes that each thread holds, and their peak.
struct CountingAllocator;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static IN_ALL: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // No destructors, so that this serves to the very end of a thread.
    let held = HELD.get() + bytes;
    HELD.set(held);
    MOST.set(MOST.get().max(held));
    IN_ALL.set(IN_ALL.get() + usize::try_from(bytes).unwrap_or(0));
}

// SAFETY: hands everything on to the system's allocator as it came. Counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's word.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's word; what was allocated here was allocated by the system's allocator.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The most bytes held at any time of a call, in addition to those held before.
fn most_during(call: impl FnOnce()) -> usize {
    let before = HELD.get();
    MOST.set(before);
    call();
    usize::try_from(MOST.get() - before).unwrap_or(0)
}

fn unsealed(_: &mut [u8]) {}

/// Inputs of a property and mutants of them, sealed or not; each is read in at most `times` its bytes and a constant.
fn bounded(property: &str, times: usize, constant: usize, seal: fn(&mut [u8]), read: impl Fn(&[u8])) {
    let inputs: Vec<Vec<u8>> =
        seeds().into_iter().filter(|(target, ..)| *target == property).map(|(.., bytes)| bytes).collect();
    let mut random = Random::new(11);
    let (mut greatest, mut cases) = (0.0f64, 0);
    for case in 0..3000 {
        let any = |random: &mut Random| &inputs[random.below(inputs.len() as u64) as usize];
        let (base, other) = (any(&mut random), any(&mut random));
        let mut bytes = if case < inputs.len() { inputs[case].clone() } else { mutant(base, other, &mut random) };
        if case % 2 == 0 {
            seal(&mut bytes);
        }
        read(&bytes);
        let most = most_during(|| read(&bytes));
        let bound = times * bytes.len() + constant;
        assert!(most <= bound, "{property}: {most} bytes for {}: \"{}\"", bytes.len(), bytes.escape_ascii());
        greatest = greatest.max(most as f64 / bound as f64);
        cases += 1;
    }
    println!("{property}: {cases} cases, at most {:.0} % of the bound", 100.0 * greatest);
    // A bound far above all cases would test nothing.
    assert!(greatest > 0.02, "{property}: {greatest}");
}

#[test]
fn journals() {
    // A short record is a larger value.
    bounded("journal", 8, 4 << 10, seal_journal, |bytes| {
        black_box(Contents::decode(bytes));
    });
}

#[test]
fn manifests() {
    let schema = planner::schema();
    bounded("manifest", 100, 64 << 10, unsealed, |bytes| {
        let _ = black_box(Manifest::parse(&String::from_utf8_lossy(bytes), "x", &schema, &[]));
    });
}

/// Allocations grow linearly with the number of mistakes.
#[test]
fn manifests_take_memory_by_their_length() {
    let schema = planner::schema();
    let lines: [fn(usize) -> String; 5] = [
        |at| format!("k{at} = 1\n"),
        |at| format!("[t{at}]\n"),
        |_| "= =\n".to_owned(),
        |at| format!("build.methods.\"x{at}\" = \"swep\"\n"),
        |at| format!("build.k{at} = \"{}\"\n", "x".repeat(at % 50)),
    ];
    for line in lines {
        let cost = |count| {
            let text: String = (0..count).map(line).collect();
            let before = IN_ALL.get();
            assert!(black_box(Manifest::parse(&text, "x", &schema, &[])).is_err());
            IN_ALL.get() - before
        };
        let (few, many) = (cost(1000), cost(4000));
        assert!(many < 6 * few, "{}: {few} and {many} bytes", line(1));
    }
}

#[test]
fn texts() {
    bounded("statistics", 4, 2 << 10, unsealed, |bytes| {
        let _ = black_box(Statistics::of_json(&String::from_utf8_lossy(bytes)));
    });
    bounded("notation", 60, 2 << 10, unsealed, |bytes| {
        let _ = black_box(String::from_utf8_lossy(bytes).parse::<PositionText>());
    });
}

/// A file on a disk: opened, its index read, one score looked up. Longer reads fill buffers of the caller.
#[test]
fn files_of_scores() {
    let seal = |bytes: &mut [u8]| seal_scores(bytes.get_mut(1..).unwrap_or(&mut []));
    // The disk in memory holds a file twice, and copies it to map it. One decoded block, or the model of one
    // and a strip; names and messages of errors.
    bounded("database", 5, (288 << 10) + (16 << 10), seal, |bytes| {
        let (disk, path) = (MemoryDisk::new(), Path::new("x"));
        disk.put(path, bytes.get(1..).unwrap_or(&[]));
        for open in [Scores::open, Scores::open_windowed] {
            let Ok(file) = open(&disk, path) else { continue };
            let (identity, shape) = (file.identity().clone(), file.shape().clone());
            let scores = match file.expect(&identity, &shape) {
                Ok(scores) => CachedScores::new(scores, 0),
                Err(StoreError::Archive { .. }) => continue,
                Err(error) => panic!("{error}"),
            };
            let _ = black_box(scores.get(shape.positions() - 1));
        }
    });
}
