//! Division of the memory budget among the arrays and caches of the stages.
//!
//! All allocations that depend on `build.memory` go through this module: a stage allocates the sizes in its
//! [`StageMemory`]. Sizes are upper bounds, so that a plan that fits runs within the budget.

use crate::file_size::file_bytes_max;
use crate::method::{Method, PlanesInMemory, StageClass};
use crate::settings::Settings;
use game::Orientation;
use solvers::bounds::ranks::{PlaneShare, keepers_bytes};
use solvers::bounds::{PlaneLayout, PlaneSlab};

/// Memory of the process besides the arrays of a stage: code, staging, batches of positions on their way to or from
/// a file.
const WORKSPACE_BYTES: u64 = 22 << 20;
/// Memory of each thread: staging, decoded blocks, contexts of codecs, free lists of the allocator.
const THREAD_BYTES: u64 = 4 << 20;
/// Bytes of tables for each half of up to n stones, measured.
const TABLE_BYTES: u64 = 75;

/// Memory of the message-passing library of a rank (MPICH).
const MESSAGE_BYTES: u64 = 22 << 20;

/// Copies of the longest block in a writer of the codec rans: appended, being encoded with a class each and a code
/// each, and encoded. Blocks have 16 rows, within these bounds (see `store`).
const BANDS: u64 = 5;
const BAND_ROWS: u64 = 16;
const BAND_BYTES_MIN: u64 = 1 << 20;
const BAND_BYTES_MAX: u64 = 8 << 20;

/// Bounds of the cache of decoded blocks: captures read some hundred streams at a time.
const CACHE_BYTES_MAX: u64 = 1 << 30;
const CACHE_BYTES_MIN: u64 = 8 << 20;
/// The cache takes at most one part in this many of the budget: the allocator may not return it, so all stages count
/// it, and the arrays of solvers need the rest.
const CACHE_SHARE: u64 = 4;

/// Captures that are not kept are made in stripes by ranks, and where the smaller databases are more than 1.5
/// times the cache; a stripe takes half of the budget at most.
const CAPTURE_CACHE_TIMES: f64 = 1.5;
const CAPTURE_STRIPE_SHARE: u64 = 2;

/// Positions of a block of most files.
pub(crate) const BLOCK_POSITIONS: u64 = 64 << 10;

/// The minimum memory of `stats` for scores of a slab, part of [`WORKSPACE_BYTES`].
const STRIPE_BYTES_MIN: u64 = 8 << 20;

/// Positions of a game for each stone of the largest database, at most: 2.9 at 32 stones. Bytes of each, with
/// its place in the database, and in the fit.
const SAMPLES_A_STONE: u64 = 4;
const SAMPLE_BYTES: u64 = 72;
/// Memory of a thread that plays the games: its transposition table.
const SAMPLER_BYTES: u64 = 5 << 20;

/// Memory of the bound methods besides planes: groups of planes, and tables of subscriptions.
const BOUNDS_BYTES: u64 = 6 << 20;
/// Words of a plane in a group of units of a file of seeds, unless one unit has more. A group is held in memory, all
/// its planes.
pub const SEEDS_GROUP_WORDS: usize = 16 << 10;
/// The least rows of a plane in memory while it is transposed, part of [`BOUNDS_BYTES`]. A plane is read once for each
/// portion of rows of a slab that fits.
const TRANSPOSED_BYTES_MIN: u64 = 2 << 20;
/// The part of the memory that one-bit-dual divides between the cache of pages and transposed rows that is
/// left to rows.
const TRANSPOSED_SHARE: u64 = 16;
/// The least cache of pages of one-bit-dual: some blocks for each thread.
const PAGE_CACHE_BYTES_MIN: u64 = 1 << 20;
/// Upper bound on the wins that a rank keeps, in shares of the plane: at most 4.9 (24 stones, 64 ranks).
pub(crate) const KEPT_SHARES_MAX: u64 = 5;
/// Upper bound on the decision log of a rank for a bound, in shares of the plane: at most 2.9 at 12 stones, with 8
/// ranks (10 to 15 stones, 2 to 8 ranks); with fewer stones the log is negligible.
const NOTED_SHARES_MAX: u64 = 3;
/// Memory of a rank for the planes that it merges.
const MERGE_BYTES: u64 = 10 << 20;
/// Decision log of a rank for a bound that decides many positions, in shares of its candidates.
const NOTED_SHARES: f64 = 1.0;
/// Memory of a rank for the band of a plane that it assembles, and for messages.
const ASSEMBLED_BYTES: u64 = 12 << 20;

/// Memory layout of the stages that make one database by one method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageMemory {
    /// Stones of the database.
    pub stones: u32,
    /// Method that solves it.
    pub method: Method,
    /// Budget of the process.
    pub budget_bytes: u64,
    /// Cache of decoded blocks of the database and of those that captures lead to.
    pub cache_bytes: u64,
    /// Captures in memory while they are computed.
    pub captures: CaptureMemory,
    /// Scores of a slab that `stats` holds at a time.
    pub stats_stripe_bytes: u64,
    /// Files that `verify` may map, all together; `None` if the cache alone exceeds the budget. Maps are faster than
    /// reads, but their pages are memory of the process.
    pub map_bytes_max: Option<u64>,
    /// Cache of pages of one-bit-dual.
    pub page_cache_bytes: u64,
    /// Rows of a plane in memory while it is transposed: the largest slab, where there is room for it.
    pub transposed_bytes: u64,
    /// Whether two-bit keeps copies of both planes from the start of a bound in memory; else they are in scratch files.
    pub previous_in_memory: bool,
    /// Plane of wins, which [`page_cache_bytes`](Self::page_cache_bytes) caches.
    pub wins_plane_bytes: u64,
    /// Memory of the process while bounds are solved; 0 if the method has no bounds.
    pub planes_bytes: u64,
    /// Memory of the process in the largest of the stages from captures to scores.
    pub solving_bytes: u64,
    /// Memory of the process without arrays and caches of the database.
    fixed_bytes: u64,
}

/// Captures in memory while they are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureMemory {
    /// All of them, which the stage that solves the database takes over.
    Whole,
    /// Stripes of this many bytes: the cache is too small for the databases that are read, or each rank
    /// computes a part.
    Stripes(u64),
    /// None: they are written as they are computed.
    Streamed,
}

impl StageMemory {
    /// Divides the budget for the database of `stones`.
    pub fn new(settings: &Settings, stones: u32, method: Method) -> StageMemory {
        let (set, budget_bytes) = (settings.set, settings.memory_bytes);
        let slabs = set.slabs(stones);
        let positions = set.positions(stones);
        let fixed_bytes = fixed_bytes(settings);
        let room = budget_bytes.saturating_sub(fixed_bytes);
        let read: u64 = settings.smaller(stones).map(|stones| set.positions(stones)).sum::<u64>() * settings.values();
        let cache_bytes =
            (read + positions * settings.values()).min((room / CACHE_SHARE).clamp(CACHE_BYTES_MIN, CACHE_BYTES_MAX));
        let planes = Planes::new(settings, stones, fixed_bytes);
        let in_memory = method.planes_in_memory();
        StageMemory {
            stones,
            method,
            budget_bytes,
            cache_bytes,
            captures: if settings.ranks > 1 {
                CaptureMemory::Stripes(stripe_bytes(room).min(part_bytes(&slabs, settings.ranks)).min(positions))
            } else if !method.has_bounds() {
                CaptureMemory::Whole
            } else if read as f64 <= CAPTURE_CACHE_TIMES * cache_bytes as f64 {
                CaptureMemory::Streamed
            } else {
                CaptureMemory::Stripes(stripe_bytes(room).min(positions))
            },
            stats_stripe_bytes: {
                // The largest slab where there is room, so that no row is read in parts.
                let largest = slabs.iter().map(game::Slab::positions).max().unwrap_or(0);
                largest.min(room.saturating_sub(cache_bytes).max(STRIPE_BYTES_MIN))
            },
            map_bytes_max: room.checked_sub(cache_bytes),
            page_cache_bytes: planes.page_cache_bytes,
            transposed_bytes: planes.transposed_bytes(settings, in_memory),
            previous_in_memory: planes.previous_bytes(settings, in_memory) > 0,
            wins_plane_bytes: planes.wins_bytes,
            planes_bytes: planes.memory_bytes(settings, in_memory),
            solving_bytes: match method.one_stage() {
                Some(method) => fixed_bytes + (method.model().memory_bytes)(settings, stones, cache_bytes),
                None => {
                    let seeds = fixed_bytes + BOUNDS_BYTES + seeds_group_bytes(stones);
                    seeds.max(planes.memory_bytes(settings, in_memory))
                }
            },
            fixed_bytes,
        }
    }

    /// Returns the most bytes of files that `verify` maps: those of the database and of the smaller ones that
    /// its captures lead to, or none.
    pub(crate) fn mapped_bytes(&self, settings: &Settings) -> u64 {
        let databases = settings.smaller(self.stones).chain([self.stones]);
        let files = databases.map(|stones| file_bytes_max(settings, settings.codec, stones)).sum();
        if self.maps(files) { files } else { 0 }
    }

    /// Whether `verify` maps files of these bytes.
    pub fn maps(&self, bytes: u64) -> bool {
        self.map_bytes_max.is_some_and(|most| bytes <= most)
    }

    /// Returns an upper bound on the memory of the process in a stage, files that `verify` maps left out.
    pub(crate) fn peak_bytes(&self, settings: &Settings, class: StageClass) -> u64 {
        let cached = self.fixed_bytes + self.cache_bytes;
        match class {
            StageClass::Capture => match self.captures {
                CaptureMemory::Whole => cached + settings.set.positions(self.stones),
                // Replaces the cache, which is not used in that case.
                CaptureMemory::Stripes(bytes) => cached.max(self.fixed_bytes + bytes + bytes / 4),
                CaptureMemory::Streamed => cached,
            },
            StageClass::Verify => cached,
            StageClass::Stats => cached + self.stats_stripe_bytes.saturating_sub(STRIPE_BYTES_MIN),
            StageClass::Evaluation => {
                let games = settings.evaluation.map_or(0, |fit| fit.games);
                let sampled = games * u64::from(self.stones) * SAMPLES_A_STONE * SAMPLE_BYTES;
                cached + settings.threads as u64 * SAMPLER_BYTES + sampled
            }
            StageClass::OneStage(_)
            | StageClass::Seeds
            | StageClass::PreprocessTwoBit
            | StageClass::PreprocessOneBit
            | StageClass::ProcessTwoBit
            | StageClass::ProcessOneBit
            | StageClass::ProcessOneBitDual
            | StageClass::Postprocess
            | StageClass::Merge => self.solving_bytes,
        }
    }
}

/// Returns the bytes of a stripe of captures; a further quarter holds the scores that it leads to.
fn stripe_bytes(room: u64) -> u64 {
    (room / CAPTURE_STRIPE_SHARE).max(CACHE_BYTES_MIN) * 4 / 5
}

/// Returns the positions of the largest part of the captures that a rank computes.
fn largest_part(slabs: &[game::Slab], ranks: usize) -> u64 {
    let end = slabs.iter().map(game::Slab::positions).sum();
    let starts = solvers::capture::capture_parts(slabs, ranks);
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts.iter().zip(ends).map(|(start, end)| end - start).max().unwrap_or(end)
}

/// Returns the bytes of a stripe for all captures of a rank, with a row, and a block of the file, more at either end.
fn part_bytes(slabs: &[game::Slab], ranks: usize) -> u64 {
    let row = slabs.iter().map(|slab| u64::from(slab.opponent_halves)).max().unwrap_or(0);
    largest_part(slabs, ranks) + 2 * (row + BLOCK_POSITIONS)
}

/// Returns the memory of one of several ranks in a stage of a class, expected rather than at most. `share` is
/// what it owns and keeps of planes.
pub(crate) fn rank_bytes(settings: &Settings, memory: &StageMemory, class: StageClass, share: &PlaneShare) -> u64 {
    let StageMemory { stones, fixed_bytes, cache_bytes, .. } = *memory;
    let ranks = settings.ranks as u64;
    let positions = settings.set.positions(stones);
    match class {
        StageClass::Capture => {
            let stripe = match memory.captures {
                CaptureMemory::Stripes(bytes) => bytes.min(largest_part(&settings.set.slabs(stones), settings.ranks)),
                CaptureMemory::Whole | CaptureMemory::Streamed => 0,
            };
            // Two batches of scores: see `solvers::capture`.
            let batches = (stripe / 4).min(2 * (4 << 20).max((settings.threads as u64) << 20));
            fixed_bytes + stripe + batches
        }
        StageClass::Seeds => fixed_bytes + BOUNDS_BYTES + seeds_group_bytes(stones),
        StageClass::Merge => fixed_bytes + MERGE_BYTES,
        StageClass::Verify => fixed_bytes + cache_bytes.min(positions / ranks),
        StageClass::Stats => {
            // If the bounds have counted the choices, nothing is read through the cache.
            let cache_bytes = if memory.method.bounds_count_choices(settings.ranks) { 0 } else { cache_bytes };
            fixed_bytes + cache_bytes.min(positions / ranks) + memory.stats_stripe_bytes.min(positions / ranks)
        }
        _ if class.is_repeated() => rank_planes_bytes(settings, memory, share),
        _ => memory.peak_bytes(settings, class),
    }
}

/// Returns the memory of one of several ranks that solves bounds.
fn rank_planes_bytes(settings: &Settings, memory: &StageMemory, share: &PlaneShare) -> u64 {
    let layouts = [Orientation::MoverMajor, Orientation::OpponentMajor]
        .map(|orientation| PlaneLayout::of_slabs(&settings.set.slabs(memory.stones), orientation));
    let noted_bytes = (share.candidates_bytes as f64 * NOTED_SHARES) as u64;
    let rows_bytes = layouts[0].rows() as u64 * 8 + keepers_bytes(&layouts[1], settings.ranks);
    // Of the rows that it writes.
    let transposed_bytes = memory.transposed_bytes.min(memory.wins_plane_bytes / settings.ranks as u64);
    let planes_bytes = memory.method.planes_in_memory().map_or(0, |planes| {
        let wins_bytes = share.wins_bytes.min(if planes.has_wins() { u64::MAX } else { memory.page_cache_bytes });
        wins_bytes + if planes.has_candidates() { share.candidates_bytes } else { 0 }
    });
    let workspace_bytes = memory.fixed_bytes + BOUNDS_BYTES + ASSEMBLED_BYTES + noted_bytes + rows_bytes;
    workspace_bytes + transposed_bytes + planes_bytes
}

/// Memory that does not depend on the current database.
pub(crate) fn fixed_bytes(settings: &Settings) -> u64 {
    let tables = game::binomial(settings.stones_max() + 6, 6) * TABLE_BYTES;
    let band = (BAND_ROWS * game::binomial(settings.stones_max() + 5, 5)).clamp(BAND_BYTES_MIN, BAND_BYTES_MAX);
    let block = if settings.codec.has_bands() { band } else { 0 };
    let messages = if settings.ranks > 1 { MESSAGE_BYTES } else { 0 };
    tables + WORKSPACE_BYTES + BANDS * block + settings.threads as u64 * THREAD_BYTES + messages
}

/// Memory of the planes of a bound method.
struct Planes {
    /// Memory of the process besides its planes; of one of several ranks with the decisions of a bound.
    workspace_bytes: u64,
    wins_bytes: u64,
    candidates_bytes: u64,
    page_cache_bytes: u64,
    /// Rows of the largest slab, in the orientation of the wins.
    slab_bytes: u64,
}

impl Planes {
    fn new(settings: &Settings, stones: u32, fixed_bytes: u64) -> Planes {
        let slabs = settings.set.slabs(stones);
        let candidates = PlaneLayout::of_slabs(&slabs, Orientation::MoverMajor);
        let wins = PlaneLayout::of_slabs(&slabs, Orientation::OpponentMajor);
        let wins_bytes = wins.words() as u64 * 8;
        let slab_bytes = |slab: &PlaneSlab| slab.rows.next_multiple_of(64) as u64 * slab.row_words as u64 * 8;
        let candidates_bytes = candidates.words() as u64 * 8;
        let noted_bytes = match settings.ranks as u64 {
            1 => 0,
            ranks => {
                let keepers_bytes = keepers_bytes(&wins, settings.ranks);
                ASSEMBLED_BYTES + keepers_bytes + candidates_bytes / ranks * NOTED_SHARES_MAX
            }
        };
        let workspace_bytes = fixed_bytes + BOUNDS_BYTES + noted_bytes + candidates.rows() as u64 * 8;
        let left = settings.memory_bytes.saturating_sub(workspace_bytes);
        let left = (left - left / TRANSPOSED_SHARE).max(PAGE_CACHE_BYTES_MIN);
        Planes {
            workspace_bytes,
            wins_bytes,
            candidates_bytes,
            page_cache_bytes: settings.dual.cache_bytes.unwrap_or(left).min(wins_bytes),
            slab_bytes: wins.slabs().iter().map(slab_bytes).max().unwrap_or(0),
        }
    }

    /// Rows that are kept while a plane is transposed: as many as fit beside the planes.
    fn transposed_bytes(&self, settings: &Settings, in_memory: Option<PlanesInMemory>) -> u64 {
        let left = settings.memory_bytes.saturating_sub(self.resident_bytes(settings, in_memory));
        self.slab_bytes.min(left).max(TRANSPOSED_BYTES_MIN)
    }

    /// Memory of the process while bounds are solved; 0 if there are none.
    fn memory_bytes(&self, settings: &Settings, in_memory: Option<PlanesInMemory>) -> u64 {
        if in_memory.is_none() {
            return 0;
        }
        self.transposing_bytes(settings, in_memory) + self.previous_bytes(settings, in_memory)
    }

    /// Copies of both planes from the start of a bound, if there is room for them; else 0.
    fn previous_bytes(&self, settings: &Settings, in_memory: Option<PlanesInMemory>) -> u64 {
        let bytes = self.wins_bytes + self.candidates_bytes;
        let has_copies = in_memory.is_some_and(PlanesInMemory::has_candidates) && settings.ranks == 1;
        let has_room = has_copies && self.transposing_bytes(settings, in_memory) + bytes <= settings.memory_bytes;
        if has_room { bytes } else { 0 }
    }

    /// Memory of the process while bounds are solved, without these copies.
    fn transposing_bytes(&self, settings: &Settings, in_memory: Option<PlanesInMemory>) -> u64 {
        let rows = self.transposed_bytes(settings, in_memory) - TRANSPOSED_BYTES_MIN;
        self.resident_bytes(settings, in_memory) + rows
    }

    /// The same with the least memory for transposed rows.
    fn resident_bytes(&self, settings: &Settings, in_memory: Option<PlanesInMemory>) -> u64 {
        let Some(in_memory) = in_memory else { return 0 };
        let ranks = settings.ranks as u64;
        let kept =
            if ranks == 1 { self.wins_bytes } else { self.wins_bytes.min(self.wins_bytes / ranks * KEPT_SHARES_MAX) };
        let wins_bytes = if in_memory.has_wins() { kept } else { self.page_cache_bytes };
        let candidates_bytes = if in_memory.has_candidates() { self.candidates_bytes / ranks } else { 0 };
        self.workspace_bytes + wins_bytes + candidates_bytes
    }
}

/// Bytes of a group of seeds, its captures and all its planes of both files.
fn seeds_group_bytes(stones: u32) -> u64 {
    (SEEDS_GROUP_WORDS * (64 + 2 * 8 * stones as usize)) as u64
}
