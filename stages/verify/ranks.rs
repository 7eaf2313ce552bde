//! The stage `verify:n` by all ranks: each checks a part of the checksums, counts and hashes the scores there, and
//! derives a part of the positions. Rank 0 combines the results.
//!
//! Positions are derived in rounds, after each of which the ranks agree whether to continue.

use super::{KIND, VerifyInputs, counted, extent, report, with_smaller, wrong};
use crate::build_context::BuildContext;
use crate::distributed::{JobLeader, RankResult, ReadTask, agree, message, separately};
use crate::files;
use crate::team::{self, TeamMember};
use check::{CheckError, DatabasePortion, Extent, Histogram, PortionFindings};
use messaging::Communicator;
use pipeline::{StageContext, StageReport, StageResult as Result};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Approximate number of positions that a thread derives in a round: some seconds of work.
const ROUND_POSITIONS: u64 = 1 << 22;

/// Runs the stage, on rank 0.
pub(crate) fn run(build: &BuildContext, job: &JobLeader, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let paths = with_smaller(settings, stones).map(|stones| context.input(&files::database(stones)));
    let task = ReadTask { stones, threads: context.threads(), files: paths.collect() };
    let (all, loads) = team::lead(KIND, build, Some(job), &task, context, verify_part)?;
    let (opened, AllFindings { hashes, histogram, findings }) = all.expect("rank 0 gathers the results");
    let wrong = |error| wrong(error, stones, &task.files);
    opened.scores().verify_hashes(&hashes).map_err(|error| wrong(error.into()))?;
    let verified = findings.verified(stones, histogram).map_err(wrong)?;
    Ok(team::report(report(build, opened.scores().digest(), &verified)?, loads))
}

/// Results of all ranks.
pub(super) struct AllFindings {
    /// Hashes by rank.
    hashes: Vec<Vec<u8>>,
    histogram: Histogram,
    findings: PortionFindings,
}

/// Verifies a part; rank 0 gets the results of all ranks.
pub(super) fn verify_part(
    member: &TeamMember<ReadTask>,
    communicator: &mut dyn Communicator,
) -> RankResult<Option<(VerifyInputs, AllFindings)>> {
    let (settings, plan) = (member.settings(), member.plan());
    member.begin_progress(extent(settings).count(member.index.positions()));
    let cache_bytes = plan.memory().cache_bytes;
    let opened = VerifyInputs::new(settings, plan, member.disk, &member.task.files, BTreeMap::new(), cache_bytes);
    let opened = agree(communicator, opened)?;
    let part = DatabasePortion { number: communicator.rank() as u64, of: communicator.size() as u64 };
    // Scores are seen one after the other, and their reader cannot be ended.
    let hashed = separately(communicator, |others_go_on| read(member.task, &opened, part, &|| drop(others_go_on())))?;
    let (hashes, histogram) = agree(communicator, hashed)?;
    let findings = derive(member, &opened, communicator)?;
    let hashes = communicator.gather(0, hashes)?;
    let counts = communicator.sum(&histogram.by_score())?;
    let histogram = Histogram::of_counts(counts.try_into().expect("as many sums as counts"));
    let all = communicator.gather(0, message::encode(&findings))?;
    let (Some(hashes), Some(all)) = (hashes, all) else { return Ok(None) };
    let mut findings = PortionFindings::default();
    for (rank, bytes) in all.iter().enumerate() {
        findings.merge(message::decode(bytes, rank, "findings", |_| true)?);
    }
    Ok(Some((opened, AllFindings { hashes, histogram, findings })))
}

/// Checks the checksums of a part, and returns its hashes and counts. Calls `progress` again and again.
fn read(
    task: &ReadTask,
    opened: &VerifyInputs,
    part: DatabasePortion,
    progress: &dyn Fn(),
) -> Result<(Vec<u8>, Histogram)> {
    let mut histogram = Histogram::EMPTY;
    let see = |scores: &[i8]| {
        progress();
        histogram = histogram.plus(&counted(scores));
    };
    let hashes = opened.scores().hash_part(part.number, part.of, see);
    let hashes = hashes.map_err(|error| wrong(error.into(), task.stones, &task.files))?;
    Ok((hashes, histogram))
}

/// Derives a portion in each round.
fn derive(
    member: &TeamMember<ReadTask>,
    opened: &VerifyInputs,
    communicator: &mut dyn Communicator,
) -> RankResult<PortionFindings> {
    let (rank, ranks, task) = (communicator.rank() as u64, communicator.size() as u64, member.task);
    let extent = extent(member.settings());
    let count = extent.count(member.index.positions());
    // The same on all ranks.
    let rounds = count.div_ceil(ranks * task.threads as u64 * ROUND_POSITIONS);
    let mut findings = PortionFindings::default();
    let watch = |more| {
        // All ranks derive about the same number of positions.
        member.advance(more * ranks);
        if member.stop().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    for round in 0..rounds {
        let portion = DatabasePortion { number: round * ranks + rank, of: rounds * ranks };
        let found = derive_portion(opened, task.stones, extent, portion, &watch);
        let found = found.map_err(|error| wrong(error, task.stones, &task.files));
        findings.merge(agree(communicator, found)?);
    }
    Ok(findings)
}

fn derive_portion(
    opened: &VerifyInputs,
    stones: u32,
    extent: Extent,
    portion: DatabasePortion,
    watch: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<PortionFindings, CheckError> {
    let databases = &opened.databases;
    let editions = databases.editions();
    let found = match (opened.round_bytes, extent) {
        (Some(bytes), Extent::Tiles(sample)) => {
            check::verify_portion_in_rounds(databases, stones, sample, bytes, portion, watch)
        }
        _ => check::verify_portion(databases, stones, extent, portion, watch),
    };
    databases.unchanged(&editions).and(found)
}
