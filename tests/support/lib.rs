//! Support of the tests that cross crates: seeded random boards, the program under test, the equations of
//! scores, planted faults, disturbed builds, and the properties of readers of hostile bytes.
//!
//! The tests are in the folders beside this one, a test target each.

#![allow(clippy::unwrap_used)]

pub mod claims;
pub mod control_group;
pub mod directory;
pub mod equations;
pub mod fault_planting;
pub mod guide_table;
pub mod hostile;
pub mod needs;
pub mod serve_process;
pub mod stored_scores;
pub mod torture;

use game::Board;
use std::env;
use std::path::Path;
use std::sync::LazyLock;

/// The folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the root")
}

/// The path of the program under test, which Cargo builds with the tests and lays two folders above a test.
pub fn awari() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| {
        let test = env::current_exe().expect("a program knows its own path");
        let folder = test.ancestors().nth(2).expect("tests are in a folder of the target folder");
        folder.join("awari-under-test").into_os_string().into_string().expect("the target folder is text")
    });
    &PATH
}

/// The variable that replaces a test's seed, to rerun what failed.
pub const SEED_VARIABLE: &str = "AWARI_TEST_SEED";

/// A small seeded generator (SplitMix64, Steele, Lea & Flood 2014): the same seed gives the same boards everywhere.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator of this seed, or of the one in [`SEED_VARIABLE`]. Prints which, for the log of a failing test.
    pub fn new(seed: u64) -> Random {
        let seed = env::var(SEED_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(seed);
        println!("random boards of seed {seed}; rerun with {SEED_VARIABLE}={seed}");
        Random { state: seed }
    }

    /// A generator of its own for each number, and for each seed of this one. Prints nothing.
    pub fn branch(&self, number: u64) -> Random {
        let mut branch = Random { state: self.state ^ number.wrapping_mul(0xd134_2543_de82_ef95) };
        branch.bits();
        branch
    }

    /// The generator of these seeds, independent of [`SEED_VARIABLE`].
    pub fn of(parts: &[u64]) -> Random {
        let mut random = Random { state: 0 };
        for part in parts {
            random.state ^= part;
            random.state = random.bits();
        }
        random
    }

    /// One of some.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; the bias of the remainder does not matter to tests.
    ///
    /// # Panics
    /// When `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// A board of `stones` stones: each falls into one of a random choice of pits, so that sparse boards, starving
    /// players and heaps of more than eleven stones (laps) all come up often.
    pub fn board(&mut self, stones: u32) -> Board {
        let open: Vec<usize> = loop {
            let mask = self.bits() & self.bits_or_all();
            let open: Vec<usize> = (0..12).filter(|pit| mask >> pit & 1 == 1).collect();
            if !open.is_empty() {
                break open;
            }
        };
        let mut pits = [0; 12];
        for _ in 0..stones {
            pits[open[self.below(open.len() as u64) as usize]] += 1;
        }
        Board(pits)
    }

    /// All pits, or one in two of them.
    fn bits_or_all(&mut self) -> u64 {
        if self.below(2) == 0 { u64::MAX } else { self.bits() }
    }
}
