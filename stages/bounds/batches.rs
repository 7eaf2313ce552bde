//! Parallel work on portions of a plane that are read and written in order.

use super::planes::{PlanePortion, UnitGroup};
use pipeline::StageResult as Result;
use rayon::prelude::*;
use std::mem::swap;
use std::ops::Range;

/// Words that each thread computes at a time.
const WORDS_A_THREAD: usize = 32 << 10;

/// Consecutive groups, which are computed in parallel.
#[derive(Default)]
struct Batch {
    groups: Range<usize>,
    words: Vec<u64>,
    /// By group, whether it is computed; the words of others are zero.
    is_computed: Vec<bool>,
}

/// Visits the words of all groups of a plane. `prepare` is called for one batch of groups after the other; it
/// reads their words, and returns for each group whether it must be computed. `compute` is called for several
/// groups at a time. `consume` gets the words of all groups in order; zeros for those that are not computed.
/// One batch is prepared while another is computed and consumed. `stop` returns an error to stop between
/// batches.
pub(super) fn in_batches(
    groups: &[UnitGroup],
    stop: impl Fn() -> Result<()>,
    mut prepare: impl FnMut(&[UnitGroup], &mut [u64]) -> Result<Vec<bool>> + Send,
    compute: impl Fn(&UnitGroup, &mut [u64]) -> Result<()> + Sync,
    mut consume: impl FnMut(PlanePortion<'_>) -> Result<()> + Send,
) -> Result<()> {
    let (mut now, mut next) = (Batch::default(), Batch::default());
    now.prepare(groups, 0, &mut prepare)?;
    while !now.groups.is_empty() {
        stop()?;
        let end = now.groups.end;
        let (prepared, computed) =
            rayon::join(|| next.prepare(groups, end, &mut prepare), || now.finish(groups, &compute, &mut consume));
        computed.and(prepared)?;
        swap(&mut now, &mut next);
    }
    Ok(())
}

/// Returns a function for [`in_batches`] that prepares one group after the other.
pub(super) fn one_by_one(
    mut prepare: impl FnMut(&UnitGroup, &mut [u64]) -> Result<bool> + Send,
) -> impl FnMut(&[UnitGroup], &mut [u64]) -> Result<Vec<bool>> + Send {
    move |groups, mut words| {
        let prepared = groups.iter().map(|group| {
            let (now, rest) = std::mem::take(&mut words).split_at_mut(group.words.len());
            words = rest;
            prepare(group, now)
        });
        prepared.collect()
    }
}

impl Batch {
    /// Prepares the groups from `first` on, at least one if there is any.
    fn prepare(
        &mut self,
        groups: &[UnitGroup],
        first: usize,
        prepare: &mut impl FnMut(&[UnitGroup], &mut [u64]) -> Result<Vec<bool>>,
    ) -> Result<()> {
        let words_max = WORDS_A_THREAD * rayon::current_num_threads();
        let mut words = 0;
        let count = groups[first..].iter().take_while(|group| {
            let is_first = words == 0;
            words += group.words.len();
            is_first || words <= words_max
        });
        self.groups = first..first + count.count();
        let groups = &groups[self.groups.clone()];
        self.words.resize(groups.iter().map(|group| group.words.len()).sum(), 0);
        self.is_computed = prepare(groups, &mut self.words)?;
        Ok(())
    }

    /// Computes and consumes all groups.
    fn finish(
        &mut self,
        groups: &[UnitGroup],
        compute: &(impl Fn(&UnitGroup, &mut [u64]) -> Result<()> + Sync),
        consume: &mut impl FnMut(PlanePortion<'_>) -> Result<()>,
    ) -> Result<()> {
        let groups = &groups[self.groups.clone()];
        let mut rest = &mut self.words[..];
        let mut computed = Vec::with_capacity(groups.len());
        for (group, &is_computed) in groups.iter().zip(&self.is_computed) {
            let (words, after) = rest.split_at_mut(group.words.len());
            if is_computed {
                computed.push((group, words));
            }
            rest = after;
        }
        computed.into_par_iter().try_for_each(|(group, words)| compute(group, words))?;
        // Neighbours are passed on together.
        let mut rest = &mut self.words[..];
        let counted = groups.iter().zip(&self.is_computed);
        let counted = counted.map(|(group, &is_computed)| (is_computed, group.words.len())).collect::<Vec<_>>();
        for neighbours in counted.chunk_by(|group, next| group.0 == next.0) {
            let (words, after) = rest.split_at_mut(neighbours.iter().map(|&(_, words)| words).sum());
            rest = after;
            consume(if neighbours[0].0 { PlanePortion::Words(words) } else { PlanePortion::Zeros(words.len()) })?;
        }
        Ok(())
    }
}
