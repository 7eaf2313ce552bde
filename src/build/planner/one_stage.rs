//! What plans need to know of the methods that make the scores of a database in one stage.

use crate::method::OneStage;
use crate::ramp::{Ramp, Rates};
use crate::settings::Settings;
use crate::sharing::{RankModel, Sharing};
use store::Codec;

/// What plans need to know of a method that makes the scores in one stage.
#[derive(Clone, Copy)]
pub(crate) struct OneStageModel {
    /// Work for each position, besides captures and the file of scores.
    pub(crate) rates: Rates,
    /// Whether the time grows because of cache misses: each update goes to a random position, and the cache
    /// holds a smaller share of them.
    pub(crate) waits_for_memory: bool,
    /// Nanoseconds a position where a board has two bounds; `None` if the method
    /// [refuses](crate::Method::refusal) such rules.
    pub(crate) two_bound_nanoseconds: Option<f64>,
    /// Bytes of arrays and caches, given stones and the cache of decoded blocks.
    pub(crate) memory_bytes: fn(&Settings, u32, u64) -> u64,
    /// Codec whose largest file bounds that of a snapshot.
    pub(crate) snapshot_bound: Codec,
    /// Whether its scores stay in the stage cache for later captures.
    pub(crate) keeps_databases: bool,
    /// Whether a machine alone counts the choices that `stats` needs.
    pub(crate) counts_choices: bool,
    /// What ranks compute and exchange.
    pub(crate) ranks: RankModel,
}

/// Updates that counting sends, if there are very many ranks, and bytes of each: 2.44 a position at 13
/// stones, 2.7 to 2.85 at 15 to 18. The score of each position is collected by the rank that writes it.
const UPDATES: f64 = 2.75;
const UPDATE_BYTES: f64 = 4.0;

/// Upper bound on the rows that a rank of a sweep holds, in shares of a database times the root of the number
/// of ranks: of 16 stones 3.0 times for 4 ranks, 6.5 for 16, 16.3 for 64; of 24 stones 2.7, 4.9 and 12.
const HELD_SHARES_MAX: f64 = 2.1;

impl OneStage {
    /// Returns what plans need to know of the method.
    pub(crate) const fn model(self) -> OneStageModel {
        const NONE: Ramp = Ramp::constant(0.0);
        match self {
            OneStage::Counting => OneStageModel {
                // Updates wait for memory: 121 at 14 stones, 166 at 18, 200 at 20.
                rates: Rates { cpu: Ramp::growing(115.0, 14, 14.0), read: NONE, written: NONE },
                waits_for_memory: true,
                two_bound_nanoseconds: None,
                memory_bytes: counting_bytes,
                // Snapshots have more values than scores: up to a byte a position.
                snapshot_bound: Codec::Raw,
                keeps_databases: false,
                counts_choices: false,
                ranks: RankModel::Messages {
                    // Measured with ranks of one process.
                    sharing: Sharing { more_work: 0.05, byte_nanoseconds: 2.0, uneven: 0.03, unevenly_sent: 0.04 },
                    sent_bytes: UPDATES * UPDATE_BYTES + 1.0,
                    supersteps: 40.0,
                },
            },
            OneStage::Sweep => OneStageModel {
                // 17 at 20 and 21 stones, 19.3 at 22 with codec packed, 34 at 30 with zstd.
                rates: Rates { cpu: Ramp::growing(17.0, 20, 1.3), read: NONE, written: NONE },
                waits_for_memory: false,
                // 116 to 130 at 14 to 22 stones, without a trend, in the run by oware that `of_bounds` of `cost.rs`
                // describes: each of about 100 dense passes derives both bounds.
                two_bound_nanoseconds: Some(115.0),
                memory_bytes: sweep_bytes,
                snapshot_bound: Codec::Packed,
                keeps_databases: true,
                counts_choices: true,
                ranks: RankModel::Sweep,
            },
        }
    }
}

/// Arrays of counting. Without other ranks, it reads no smaller databases.
fn counting_bytes(settings: &Settings, stones: u32, cache_bytes: u64) -> u64 {
    let Settings { set, ranks, threads, .. } = *settings;
    let positions = set.positions(stones);
    match ranks {
        1 => 2 * positions + solvers::counting::memory_bytes(stones, set, threads),
        _ => cache_bytes + solvers::counting::ranks::memory_bytes(positions, ranks, threads),
    }
}

/// Arrays of a sweep; on one of several ranks its part of the database and the captures, the rows that it
/// holds of others, and messages.
fn sweep_bytes(settings: &Settings, stones: u32, cache_bytes: u64) -> u64 {
    let positions = settings.set.positions(stones);
    let scores = solvers::sweep::memory_bytes(&settings.set.slabs(stones));
    if settings.ranks == 1 || !settings.rules.has_scores() {
        return cache_bytes + (positions + scores) * settings.values();
    }
    let ranks = settings.ranks as u64;
    // Each score is held at most twice.
    let shares = (HELD_SHARES_MAX * (ranks as f64).sqrt()).min(2.0 * ranks as f64);
    cache_bytes + positions / ranks * 3 + (scores as f64 / ranks as f64 * shares) as u64
}
