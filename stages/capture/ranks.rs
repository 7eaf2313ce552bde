//! The stage `capture:n` by all ranks: each computes and writes the captures of a range of positions, in
//! stripes, and reads what these lead to in the smaller databases. Ranks send each other no captures.
//!
//! A machine alone has a driver of its own: it may keep all captures in memory for the solver that follows, read
//! through a cache, or need no memory at all, and none of these serves a rank.

use super::{KIND, SmallerFiles, ended};
use crate::build_context::BuildContext;
use crate::distributed::{JobLeader, RankResult, ReadTask, TeamFile, agree, separately};
use crate::files;
use crate::team::{self, TeamMember};
use game::Index;
use messaging::Communicator;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use planner::CaptureMemory;
use solvers::capture::{capture_in_stripes, capture_parts};
use solvers::{Bytes, DriverObserver};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::BlockCache;

/// Runs the stage, on rank 0.
pub(super) fn run(build: &BuildContext, job: &JobLeader, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let smaller = settings.smaller(stones).map(|stones| context.input(&files::database(stones)));
    let files = smaller.chain([context.output(&files::capture(stones))]).collect();
    let task = ReadTask { stones, threads: context.threads(), files };
    let (done, loads) = team::lead(KIND, build, Some(job), &task, context, capture_part)?;
    let report = StageReport::new(Index::new(stones, settings.set).slab_positions());
    Ok(team::report(report.with("blocks", done.blocks).with("decoded", done.decoded), loads))
}

/// Figures of the stage.
pub(super) struct CaptureOutcome {
    /// Blocks of smaller databases.
    blocks: u64,
    /// Blocks decoded by all ranks.
    decoded: u64,
}

/// Computes and writes the captures of this rank. The files of the task are the smaller databases, then the captures.
pub(super) fn capture_part(
    member: &TeamMember<ReadTask>,
    communicator: &mut dyn Communicator,
) -> RankResult<CaptureOutcome> {
    let TeamMember { build, disk, ref index, task, .. } = *member;
    let (settings, cache) = (member.settings(), BlockCache::new(0));
    let opened = split(&task.files).and_then(|(path, smaller)| {
        Ok((path, SmallerFiles::open(settings, disk, smaller.iter().cloned(), &cache, |_, _| None, 0)?))
    });
    let (path, smaller) = agree(communicator, opened)?;
    let (kind, ranks) = (files::capture_kind(&settings.rules), communicator.size());
    let format = (kind, settings.intermediates.captures_codec());
    let file = TeamFile::of_values((disk, path), settings, index, format, ranks);
    let mut writer = TeamFile { starts: Some(capture_parts(index.slabs(), ranks)), ..file }.begin(communicator)?;
    let range = writer.positions();
    member.begin_progress(range.end - range.start);
    let captured = separately(communicator, |others_go_on| {
        let progress = CaptureProgress { member, others_go_on, done: AtomicU64::new(range.start) };
        let mut append = |best: &[_]| writer.append(best);
        let (tables, wanted) = (build.tables(), (index, &range));
        capture_in_stripes(&tables, wanted, &smaller, &progress, &mut stripe(member)?, &mut append).map_err(ended)
    })?;
    writer.finish(captured, communicator)?;
    let decoded = communicator.sum(&[smaller.decoded.load(Relaxed)])?[0];
    Ok(CaptureOutcome { blocks: smaller.blocks(), decoded })
}

/// Splits the files of the task into the captures and the smaller databases.
fn split(files: &[PathBuf]) -> Result<(&PathBuf, &[PathBuf])> {
    files.split_last().ok_or_else(|| StageError::failed("the order names no file"))
}

/// Returns the memory of a stripe.
fn stripe(member: &TeamMember<ReadTask>) -> Result<Bytes> {
    match member.plan().memory().captures {
        CaptureMemory::Stripes(bytes) => Bytes::zeroed(bytes as usize).map_err(StageError::failed),
        memory => unreachable!("{memory:?} is not for ranks"),
    }
}

/// Progress of a rank over its positions.
struct CaptureProgress<'a> {
    member: &'a TeamMember<'a, ReadTask>,
    others_go_on: &'a (dyn Fn() -> Result<()> + Sync),
    /// The position up to which progress was reported.
    done: AtomicU64,
}

impl DriverObserver for CaptureProgress<'_> {
    fn advance(&self, done: u64, _: u64) -> ControlFlow<()> {
        self.member.advance(done.saturating_sub(self.done.fetch_max(done, Relaxed)));
        let go_on = self.member.stop().and_then(|()| (self.others_go_on)());
        if go_on.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
