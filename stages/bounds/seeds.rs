//! The stage `seeds:n`: the captures, sorted by the bound at which they begin to matter.
//!
//! A capture of score b > 0 wins from bound b down. A position can be lost at bound b if all its captures
//! score at most -b: from the bound that is its best capture, negated, or from n if it has none. So a
//! position is in one plane of win seeds or of candidate seeds at most, and `preprocess` reads each plane
//! once in all; `process` reads candidate seeds again, to count the losses that captures brought about.

use super::declaration::{self, PLANES};
use super::planes::{PlaneFile, PlanePortion, PlaneWriter, UnitGroup};
use super::team::{PlaneMember, PlaneTask};
use crate::build_context::BuildContext;
use crate::distributed::{RankResult, agree};
use crate::files;
use crate::kind::{Declaration, KindOptions, Phase, StageKind};
use crate::team;
use game::Index;
use messaging::Communicator;
use pipeline::{StageContext, StageReport, StageResult as Result};
use planner::{DatabasePlan, StageClass};
use rayon::prelude::*;
use solvers::bounds::{BitKernel, PlaneLayout, PlaneSlab};
use std::mem::swap;
use std::path::Path;
use store::FileKind;

/// Units of work for each thread in a group.
const UNITS_A_THREAD: usize = 4;

const KIND: &str = "seeds";

/// The kind `seeds:n`.
pub(crate) static SEEDS_OF_BOUNDS: StageKind = StageKind {
    word: KIND,
    phase: Phase::Solving,
    files: Some(&PLANES),
    declare: |kind, build| {
        let declare = |plan: &DatabasePlan| {
            let outputs = [PlaneFile::WinSeeds, PlaneFile::CandidateSeeds];
            let Declaration { mut stage, artifacts } =
                declaration::of_planes(kind, build.settings(), plan, None, Vec::new(), &outputs);
            stage.inputs.push(files::capture(plan.stones()));
            // Their space is reserved before they are written.
            stage.folder = None;
            Declaration { stage, artifacts }
        };
        crate::declaration::plans(kind, build).filter(|plan| plan.stones() > 0).map(declare).collect()
    },
    run: |build, parameters, context| run(build, parameters[0], context),
    options: KindOptions {
        classes: &[StageClass::Seeds],
        follow: |follower, order, communicator| team::follow(follower, order, communicator, sort_captures),
        ..KindOptions::OF_DATABASES
    },
};

/// Runs the stage.
fn run(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
    // Neither this stage nor the bounds need them.
    build.forget_captures();
    let task = PlaneTask::new(context, (stones, 0), [files::capture(stones)], FILES.map(|plane| plane.name(stones)));
    let ((), loads) = team::lead(KIND, build, build.job_that_shares(stones), &task, context, sort_captures)?;
    let positions = Index::new(stones, build.settings().set).positions();
    Ok(team::report(StageReport::new(positions), loads))
}

/// Sorts the captures of the groups of which this rank writes words. A group at the border of two ranks is
/// sorted by both.
fn sort_captures(member: &PlaneMember, communicator: &mut dyn Communicator) -> RankResult<()> {
    let (settings, index) = (member.settings(), &member.index);
    let stones = index.stones();
    let name = files::capture(stones);
    let damaged = |error| files::unreadable(&name, error);
    let open = |path: &Path| files::open_windowed(member.disk, path, settings, FileKind::Capture, index);
    let captures = member.path(&name).and_then(open);
    let captures = agree(communicator, captures)?;
    let none = i32::from(solvers::capture::none(stones));
    // The index of a plane in a group, bounds descending; the number of planes if the position is in no plane.
    let targets = targets(stones, |best| match best {
        best if best == none => (CANDIDATES, 0),
        best if best < 0 => (CANDIDATES, stones as i32 + best),
        best if best > 0 => (WINS, stones as i32 - best),
        _ => (WINS, stones as i32),
    });
    let layout = PlaneLayout::new(index, PlaneFile::WinSeeds.orientation());
    let mut writers = Vec::new();
    for plane in FILES {
        writers.push(member.create(plane, communicator)?);
    }
    let groups = PlaneFile::WinSeeds.groups(index);
    let planes = stones as usize;
    let groups = UnitGroup::overlapping(&groups, &writers[0].words(), planes);
    if let Some(first) = groups.first() {
        writers.iter_mut().for_each(|writer| writer.begin_at(first.words.start * planes));
    }
    let positions = |group: &UnitGroup| group.rows.len() * layout.slabs()[group.slab].columns;
    let read = |group: &UnitGroup, values: &mut Vec<i8>| {
        let (slab, offset) = (&layout.slabs()[group.slab], index.slabs()[group.slab].offset);
        values.resize(positions(group), 0);
        let first = offset + (group.rows.start * slab.columns) as u64;
        captures.read_range(first..first + values.len() as u64, values).map_err(damaged)
    };
    let (mut values, mut next, mut words) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    member.begin_progress(groups.iter().map(|group| positions(group) as u64).sum());
    let mut sort_all = || {
        if let Some(first) = groups.first() {
            read(first, &mut values)?;
        }
        for (at, group) in groups.iter().enumerate() {
            member.stop()?;
            let sort_and_write = || {
                for words in &mut words {
                    words.resize(planes * group.words.len(), 0u64);
                }
                let used = sort(&values, &layout.slabs()[group.slab], &targets, &mut words);
                let both = writers.par_iter_mut().zip(&mut words).zip(used);
                both.try_for_each(|((writer, words), used)| append(writer, words, used, planes))
            };
            let read_next = || groups.get(at + 1).map_or(Ok(()), |group| read(group, &mut next));
            let (written, read) = rayon::join(sort_and_write, read_next);
            written.and(read)?;
            member.advance(values.len() as u64);
            swap(&mut values, &mut next);
            // Sends keep-alive messages. An error is returned again by the next message.
            let _ = communicator.poll();
        }
        Ok(())
    };
    let mut sorted = sort_all();
    for writer in writers {
        writer.finish_with(std::mem::replace(&mut sorted, Ok(())), communicator)?;
    }
    Ok(())
}

/// The two files, by their indices.
const FILES: [PlaneFile; 2] = [PlaneFile::CandidateSeeds, PlaneFile::WinSeeds];

/// Indices of the two files.
const CANDIDATES: usize = 0;
const WINS: usize = 1;

/// Returns the file and the index of the plane there, by best capture as a byte.
fn targets(stones: u32, target: impl Fn(i32) -> (usize, i32)) -> [(usize, usize); 256] {
    let mut targets = [(0, 0); 256];
    for best in i8::MIN..=i8::MAX {
        let (file, at) = target(i32::from(best));
        targets[usize::from(best as u8)] = (file, at.clamp(0, stones as i32) as usize);
    }
    targets
}

/// Appends planes of a group, of which those in the mask `used` may have a bit.
fn append(writer: &mut PlaneWriter, words: &mut [u64], used: u64, planes: usize) -> Result<()> {
    let plane_words = words.len() / planes;
    let is_used = |plane: &usize| used >> plane & 1 != 0;
    let (mut rest, planes) = (words, (0..planes).collect::<Vec<_>>());
    for run in planes.chunk_by(|plane, next| is_used(plane) == is_used(next)) {
        let (words, after) = rest.split_at_mut(run.len() * plane_words);
        rest = after;
        let portion = if is_used(&run[0]) { PlanePortion::Words(words) } else { PlanePortion::Zeros(words.len()) };
        writer.append(portion)?;
    }
    Ok(())
}

/// Sorts the best captures of rows of a slab into planes, which are concatenated in each file. Returns for
/// each file the mask of the planes that have a bit.
fn sort(values: &[i8], slab: &PlaneSlab, targets: &[(usize, usize); 256], words: &mut [Vec<u64>; 2]) -> [u64; 2] {
    let row_words = slab.row_words;
    let rows = values.len() / slab.columns;
    let unit_rows = rows.div_ceil(UNITS_A_THREAD * rayon::current_num_threads());
    // A unit of rows writes one piece of each plane.
    let mut planes = words.each_mut().map(|words| {
        let planes = words.chunks_mut(rows * row_words);
        planes.map(|plane| plane.chunks_mut(unit_rows * row_words)).collect::<Vec<_>>()
    });
    let pieces: Vec<[Vec<&mut [u64]>; 2]> = (0..rows.div_ceil(unit_rows))
        .map(|_| planes.each_mut().map(|planes| planes.iter_mut().filter_map(Iterator::next).collect()))
        .collect();
    let kernel = BitKernel::detect();
    let sort = |(mut planes, values): ([Vec<&mut [u64]>; 2], &[i8])| {
        planes.iter_mut().flatten().for_each(|plane| plane.fill(0));
        let mut used = [0u64; 2];
        for (row, values) in values.chunks(slab.columns).enumerate() {
            for (word, values) in values.chunks(64).enumerate() {
                kernel.by_value(values, |best, bits| {
                    let (file, target) = targets[usize::from(best as u8)];
                    if let Some(plane) = planes[file].get_mut(target) {
                        plane[row * row_words + word] |= bits;
                        used[file] |= 1 << target;
                    }
                });
            }
        }
        used
    };
    let sorted = pieces.into_par_iter().zip(values.par_chunks(unit_rows * slab.columns)).map(sort);
    sorted.reduce(|| [0; 2], |used, more| [used[0] | more[0], used[1] | more[1]])
}
