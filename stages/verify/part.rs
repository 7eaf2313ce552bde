//! What each rank of the team does of the stage `verify:n`: it checks a part of the checksums, counts and hashes the
//! scores there, and derives a part of the positions. Rank 0 combines the results.
//!
//! Positions are derived in rounds, after each of which the ranks agree whether to continue. A machine alone reads a
//! compressed database once, for its digest and for the look-ups in it.

use super::{VerifyInputs, counted, extent, wrong};
use crate::distributed::{RankResult, ReadTask, agree, message, separately};
use crate::team::TeamMember;
use check::{CheckError, DatabasePortion, Extent, Histogram, PortionFindings, Sample, ScoreReceiver};
use game::Score;
use messaging::Communicator;
use pipeline::StageResult as Result;
use std::ops::ControlFlow;

/// Approximate number of positions that a thread derives in a round: some seconds of work.
const ROUND_POSITIONS: u64 = 1 << 22;

/// Results of all ranks.
pub(super) struct AllFindings {
    /// Hashes by rank.
    pub(super) hashes: Vec<Vec<u8>>,
    pub(super) histogram: Histogram,
    pub(super) findings: PortionFindings,
}

/// Verifies a part; rank 0 gets the results of all ranks.
pub(super) fn verify_part(
    member: &TeamMember<ReadTask>,
    communicator: &mut dyn Communicator,
) -> RankResult<Option<(VerifyInputs, AllFindings)>> {
    let (ranks, extent) = (communicator.size(), extent(member.settings()));
    member.begin_progress(extent.count(member.index.positions()));
    let opened = agree(communicator, VerifyInputs::open(member))?;
    if let (1, Some(bytes), Extent::Tiles(sample)) = (ranks, opened.round_bytes, extent) {
        let streamed = stream(member, &opened, sample, bytes);
        let ((hash, histogram), findings) = agree(communicator, streamed)?;
        return Ok(Some((opened, AllFindings { hashes: vec![hash], histogram, findings })));
    }
    let part = DatabasePortion { number: communicator.rank() as u64, of: ranks as u64 };
    // Scores are seen one after the other, and their reader cannot be ended.
    let hashed = separately(communicator, |others_go_on| {
        let hashed = hash(&opened, part, |_| drop(others_go_on()));
        hashed.map_err(|error| wrong(error, member.task.stones, &member.task.files))
    })?;
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

/// Checks the checksums of a part, passes its scores on to `see`, and returns its hashes and counts.
fn hash(
    opened: &VerifyInputs,
    part: DatabasePortion,
    mut see: impl FnMut(&[Score]) + Send,
) -> Result<(Vec<u8>, Histogram), CheckError> {
    let mut histogram = Histogram::EMPTY;
    let hashes = opened.scores().hash_part(part.number, part.of, |scores| {
        histogram = histogram.plus(&counted(scores));
        see(scores);
    })?;
    Ok((hashes, histogram))
}

/// Hashes all scores and derives the positions of a sample. Look-ups among them are answered meanwhile.
fn stream(
    member: &TeamMember<ReadTask>,
    opened: &VerifyInputs,
    sample: Sample,
    round_bytes: u64,
) -> Result<((Vec<u8>, Histogram), PortionFindings)> {
    let (databases, stones) = (&opened.databases, member.task.stones);
    let editions = databases.editions();
    let hash = |see: ScoreReceiver| hash(opened, DatabasePortion::WHOLE, see);
    let found = check::verify_streamed(databases, stones, sample, round_bytes, hash, &|more| watch(member, more));
    databases.unchanged(&editions).and(found).map_err(|error| wrong(error, stones, &member.task.files))
}

/// Adds derived positions to the progress, and ends the work if the stage is to stop.
fn watch(member: &TeamMember<ReadTask>, more: u64) -> ControlFlow<()> {
    member.advance(more);
    if member.stop().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Derives a portion in each round.
fn derive(
    member: &TeamMember<ReadTask>,
    opened: &VerifyInputs,
    communicator: &mut dyn Communicator,
) -> RankResult<PortionFindings> {
    let (rank, ranks, task) = (communicator.rank() as u64, communicator.size() as u64, member.task);
    let (databases, stones, extent) = (&opened.databases, task.stones, extent(member.settings()));
    let count = extent.count(member.index.positions());
    // All ranks make the same number of rounds. A machine alone needs no agreement and makes one.
    let rounds = if ranks == 1 { 1 } else { count.div_ceil(ranks * task.threads as u64 * ROUND_POSITIONS) };
    let mut findings = PortionFindings::default();
    // All ranks derive about the same number of positions.
    let watch = |more| watch(member, more * ranks);
    for round in 0..rounds {
        let portion = DatabasePortion { number: round * ranks + rank, of: rounds * ranks };
        let editions = databases.editions();
        let found = match (opened.round_bytes, extent) {
            (Some(bytes), Extent::Tiles(sample)) => {
                check::verify_portion_in_rounds(databases, stones, sample, bytes, portion, &watch)
            }
            _ => check::verify_portion(databases, stones, extent, portion, &watch),
        };
        let found = databases.unchanged(&editions).and(found).map_err(|error| wrong(error, stones, &task.files));
        findings.merge(agree(communicator, found)?);
    }
    Ok(findings)
}
