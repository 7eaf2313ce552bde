//! Bytes that the stages of a job exchange, read and write, of all ranks together.
//!
//! Each rank makes a part of every file. What it makes that from, it computes, reads from files of the run
//! directory, or gets from other ranks. Compressed parts are kept in the rank's own directory until their
//! places in the file are known.

use crate::database::DatabasePlan;
use crate::file_size::{captures_bytes, database_bytes, packed_bits, planes_bytes, seeds_bytes};
use crate::load::Load;
use crate::memory::BLOCK_POSITIONS;
use crate::method::StageClass;
use crate::ramp::Ramp;
use crate::settings::Settings;
use crate::sharing::RankModel;
use disk::Spool;
use store::Codec;

/// Bytes sent while bounds are solved: for each position and each rank that keeps its row besides one.
const WIN_BYTES: f64 = 1.15;

/// Bytes sent when the planes of a bound are collected, for each position of which another rank writes the decision.
const DECISION_BYTES: f64 = 0.62;

/// Bytes of each part of a file that rank 0 writes for other ranks, so that no rank writes a part of a block
/// of the disk: the mean of two edges.
const EDGE_BYTES: f64 = (64 << 10) as f64;

/// Bytes of the index of a file for each block, which rank 0 gets.
const INDEX_BYTES: f64 = 24.0;

/// Bytes that each other rank exchanges with rank 0 in a stage: its task, votes, and what the rank did.
const ORDER_BYTES: f64 = 1500.0;

/// Positions lost, as a share of the files of planes that remain until the merge.
const LOST_SHARE: f64 = 0.385;

/// Times that the merge reads a file of planes: two ranks read what they both need.
const MERGE_READS: f64 = 1.25;

/// Supersteps of the bounds of a database on one machine, and additional ones with each doubling of the ranks
/// as a share.
const SUPERSTEPS: Ramp = Ramp::growing(77.0, 14, 10.5);
const MORE_SUPERSTEPS: f64 = 0.23;

/// Ranks that need rows of the other orientation read a plane several times: as often as the number of ranks
/// to this power.
const MORE_READS: f64 = 0.5;

/// Further factor for the seeds while bounds are solved. Candidates are read three times: when they are
/// added, when the lost ones among them are counted, and after the last bound, when the open ones are
/// counted.
const PROCESS_READS: f64 = 2.65;

/// Times that statistics read the database besides once, with 4 ranks, and its growth with the number of
/// ranks, as a power.
const STATS_READS: f64 = 1.0;
const MORE_STATS_READS: f64 = 0.75;

/// The largest part of the seeds of a rank, by the mean: some rows compress better than others. By 8 ranks, in whole
/// pieces, 36 MiB were kept at 24 stones, and 24 MiB at 23.
const FULLEST_SEEDS: f64 = 1.2;

/// A rank keeps a compressed part in pieces, the last one in memory.
const PIECE_BYTES: f64 = (4 << 20) as f64;

/// Snapshots at a time, if a stage takes longer than their interval: one stays until the next is durable.
const SNAPSHOTS: f64 = 2.0;

/// Bytes that all stages of a class exchange, read and write, of all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct StageTraffic {
    /// Sent to other ranks.
    pub(crate) sent_bytes: f64,
    /// Rounds in which every rank sends to every other one and waits for all.
    pub(crate) supersteps: f64,
    /// Read from the run directory.
    pub(crate) read_bytes: f64,
    /// Written to the run directory.
    pub(crate) written_bytes: f64,
    /// Read from the own directories of the ranks.
    pub(crate) own_read_bytes: f64,
    /// Written to them.
    pub(crate) own_written_bytes: f64,
    /// The most bytes in the own directory of a rank.
    pub(crate) own_bytes: f64,
}

impl StageTraffic {
    /// Returns the traffic of stages that rank 0 runs alone.
    pub(crate) fn of_one(load: &Load) -> StageTraffic {
        StageTraffic {
            read_bytes: load.read_bytes,
            written_bytes: load.written_bytes,
            own_read_bytes: load.scratch_read_bytes,
            own_written_bytes: load.scratch_written_bytes,
            ..StageTraffic::default()
        }
    }
}

impl StageTraffic {
    /// Returns the traffic of all stages of a class that all ranks share, given their load on one machine.
    /// `kept_shares` is how many ranks keep a row of wins, on average.
    pub(crate) fn of_ranks(
        settings: &Settings,
        plan: &DatabasePlan,
        (class, load): (StageClass, &Load),
        kept_shares: f64,
    ) -> StageTraffic {
        let (stones, method) = (plan.stones(), plan.method());
        let ranks = settings.ranks as f64;
        let far = (ranks - 1.0) / ranks;
        let more_reads = ranks.powf(MORE_READS);
        let positions = settings.set.positions(stones) as f64;
        let [database, captures, seeds, planes] =
            [database_bytes, captures_bytes, seeds_bytes, planes_bytes].map(|bytes| bytes(settings, stones) as f64);
        let codec = settings.codec;
        let planes_codec = settings.intermediates.planes_codec();
        // Bits of a plane in the own directories, read or written once in each bound.
        let plane = positions / 8.0;
        let bounds = f64::from(stones);
        let share =
            SharedFiles { ranks, bytes: 0.0, values: 0.0, files: 1.0, at_once: 1.0, fullest: 1.0, codec: planes_codec };
        let traffic = match class {
            StageClass::Capture => {
                let codec = settings.intermediates.captures_codec();
                let files = SharedFiles { bytes: captures, values: positions, codec, ..share };
                StageTraffic::reading(load.read_bytes).with_files(&files)
            }
            StageClass::OneStage(method) => {
                let model = method.model();
                let (sent_bytes, supersteps) = match model.ranks {
                    // See `SweepJob`.
                    RankModel::Sweep => (0.0, 0.0),
                    RankModel::Messages { sent_bytes, supersteps, .. } => (sent_bytes, supersteps),
                };
                let snapshot_bits = f64::from(model.snapshot_bound.bits_max(packed_bits(stones)));
                StageTraffic {
                    sent_bytes: positions * far * sent_bytes,
                    supersteps: supersteps * bounds,
                    own_bytes: SNAPSHOTS * positions * snapshot_bits / 8.0 / ranks,
                    ..StageTraffic::reading(captures)
                }
                .with_files(&SharedFiles { bytes: database, values: positions, codec, ..share })
            }
            StageClass::Seeds => StageTraffic::reading(captures).with_files(&SharedFiles {
                bytes: seeds,
                values: 2.0 * bounds * plane,
                files: 2.0,
                at_once: 2.0,
                fullest: FULLEST_SEEDS,
                ..share
            }),
            // Half of the seeds are wins.
            StageClass::PreprocessTwoBit | StageClass::PreprocessOneBit => {
                let (own_read_bytes, own_bytes) = (bounds * plane, plane / ranks);
                StageTraffic { own_read_bytes, own_bytes, ..StageTraffic::reading(seeds / 2.0 * more_reads) }
                    .with_files(&SharedFiles { bytes: seeds / 2.0, values: bounds * plane, files: bounds, ..share })
            }
            StageClass::ProcessTwoBit | StageClass::ProcessOneBit | StageClass::ProcessOneBitDual => {
                let in_memory = method.planes_in_memory().expect("only bound methods process bounds");
                let [read_in_passes, written_in_passes] = if in_memory.has_candidates() {
                    [0.0; 2]
                } else {
                    [load.scratch_read_bytes, load.scratch_written_bytes]
                };
                let files = SharedFiles { bytes: planes, values: 2.0 * bounds * plane, files: 2.0 * bounds, ..share };
                StageTraffic {
                    sent_bytes: positions * (WIN_BYTES * (kept_shares - 1.0) + DECISION_BYTES * far),
                    supersteps: SUPERSTEPS.at(stones) * (1.0 + MORE_SUPERSTEPS * ranks.log2()),
                    own_read_bytes: bounds * plane + read_in_passes,
                    own_written_bytes: bounds * plane + written_in_passes,
                    own_bytes: in_memory.on_disks_of_ranks(kept_shares) * plane / ranks,
                    ..StageTraffic::reading(seeds * PROCESS_READS * more_reads)
                }
                .with_files(&files)
            }
            StageClass::Postprocess => {
                let bytes = planes * LOST_SHARE;
                StageTraffic { own_bytes: plane / ranks, ..StageTraffic::reading(bytes * more_reads) }
                    .with_files(&SharedFiles { bytes, values: bounds * plane, files: bounds, ..share })
            }
            StageClass::Merge => StageTraffic::reading(planes * MERGE_READS).with_files(&SharedFiles {
                bytes: database,
                values: positions,
                codec,
                ..share
            }),
            StageClass::Stats if !method.bounds_count_choices(settings.ranks) => {
                let reads = 1.0 + STATS_READS * (ranks / 4.0).powf(MORE_STATS_READS);
                StageTraffic::reading(database * reads + captures)
            }
            StageClass::Stats | StageClass::Verify | StageClass::Evaluation => StageTraffic::reading(load.read_bytes),
        };
        let stages = if class.is_repeated() { bounds } else { 1.0 };
        StageTraffic { sent_bytes: traffic.sent_bytes + stages * (ranks - 1.0) * ORDER_BYTES, ..traffic }
    }

    fn reading(read_bytes: f64) -> StageTraffic {
        StageTraffic { read_bytes, ..StageTraffic::default() }
    }

    /// Adds that files are written.
    fn with_files(mut self, files: &SharedFiles) -> StageTraffic {
        let SharedFiles { ranks, bytes, values, files, at_once, fullest, codec } = *files;
        self.written_bytes += bytes;
        // The part of rank 0 is not sent.
        let edges = (bytes / ranks).min(files * EDGE_BYTES);
        self.sent_bytes += (ranks - 1.0) * (edges + values / BLOCK_POSITIONS as f64 * INDEX_BYTES / ranks);
        if codec.is_compressed() {
            let part = bytes / files / ranks;
            // Of a last piece, half on average.
            let kept = files * ranks * (part - PIECE_BYTES / 2.0).max(0.0);
            self.own_written_bytes += kept;
            self.own_read_bytes += kept;
            self.own_bytes += at_once * Spool::space((part * fullest) as u64) as f64;
        }
        self
    }
}

/// Files of which each rank writes a part, all of a class of stages together.
#[derive(Clone, Copy)]
struct SharedFiles {
    ranks: f64,
    bytes: f64,
    /// Values, each in a byte before it is encoded.
    values: f64,
    files: f64,
    /// Files that are written at the same time.
    at_once: f64,
    /// The largest part of a rank, by the mean.
    fullest: f64,
    codec: Codec,
}
