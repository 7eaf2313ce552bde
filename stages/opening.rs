//! The score of the opening position, the last one of the database of all stones of the game.
//!
//! No move leads to the opening, so no method solves it: its score follows from its moves. The children of moves that
//! capture nothing are in the same database, and their scores are taken from it while it is written. Captures lead to
//! smaller databases, of which one score each is read. The opening of awari has no captures.

use crate::files;
use disk::Disk;
use game::{Index, Orientation, PositionSet, Rules, Score};
use pipeline::ArtifactName;
use pipeline::StageResult as Result;
use planner::Settings;
use solvers::ChoiceCounts;
use std::path::PathBuf;

/// The best captures of the opening, and its other children.
#[derive(Clone, Debug)]
pub(crate) struct OpeningSolver {
    /// Best score of a capture.
    capture: Option<Score>,
    /// Positions of the children of other moves, with their scores once these were seen.
    children: Vec<(u64, Option<Score>)>,
}

/// Captures of the opening: captured stones, and the position of the child in the smaller database.
fn captures(rules: Rules, set: PositionSet, stones: u32) -> Vec<(u32, u64)> {
    let Some(opening) = set.opening(stones) else { return Vec::new() };
    let moves = opening.board().moves(&rules).filter(|(_, played)| played.captured > 0);
    let captures = moves.map(|(_, played)| {
        let captured = u32::from(played.captured);
        let child = Index::new(stones - captured, set).rank(&played.child, Orientation::OpponentMajor);
        (captured, child.expect("the pit that was sown from is empty"))
    });
    captures.collect()
}

/// Returns the databases to which captures of the opening lead, if the database of `stones` has the opening.
pub(crate) fn inputs(settings: &Settings, stones: u32) -> Vec<ArtifactName> {
    let mut inputs: Vec<ArtifactName> = captures(settings.rules, settings.set, stones)
        .into_iter()
        .map(|(captured, _)| files::database(stones - captured))
        .collect();
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}

/// Returns the best score of a capture of the opening, from the smaller databases at `path`; of pairs, by the
/// values of a section.
pub(crate) fn best_capture(
    settings: &Settings,
    stones: u32,
    disk: &dyn Disk,
    path: impl Fn(&ArtifactName) -> PathBuf,
    section: usize,
) -> Result<Option<Score>> {
    let mut best = None;
    let kind = files::database_kind(&settings.rules);
    for (captured, child) in captures(settings.rules, settings.set, stones) {
        let name = files::database(stones - captured);
        let index = Index::new(stones - captured, settings.set);
        let mut score = [0];
        let child = child + section as u64 * index.positions();
        let file = files::open_windowed(disk, &path(&name), settings, kind, &index)?;
        let read = file.read_range(child..child + 1, &mut score);
        read.map_err(|error| files::unreadable(&name, error))?;
        best = best.max(Some(captured as Score - score[0]));
    }
    Ok(best)
}

/// Returns the choice between a capture and another move in the opening, whose score is known.
pub(crate) fn choice(rules: Rules, index: &Index, capture: Option<Score>, score: Score) -> ChoiceCounts {
    let Some((opening, capture)) = index.opening().zip(capture) else { return ChoiceCounts::default() };
    let is_offered = opening.board().moves(&rules).any(|(_, played)| played.captured == 0);
    ChoiceCounts { offered: is_offered.into(), declined: (is_offered && capture < score).into() }
}

impl OpeningSolver {
    /// Prepares to solve the opening, if the index has it.
    pub(crate) fn new(rules: Rules, index: &Index, capture: Option<Score>) -> Option<OpeningSolver> {
        let opening = index.opening()?;
        let quiet = opening.board().moves(&rules).filter(|(_, played)| played.captured == 0);
        let child = |board| index.rank(&board, Orientation::OpponentMajor);
        let children = quiet.map(|(_, played)| child(played.child).expect("the pit that was sown from is empty"));
        Some(OpeningSolver { capture, children: children.map(|child| (child, None)).collect() })
    }

    /// Takes the scores of children from those of consecutive positions from `first` on.
    pub(crate) fn see(&mut self, first: u64, scores: &[Score]) {
        for (child, score) in &mut self.children {
            let at = child.checked_sub(first).and_then(|at| scores.get(at as usize));
            *score = at.copied().or(*score);
        }
    }

    /// Returns a number for each child: 0 if its score was not seen. Each child is seen by one rank.
    pub(crate) fn seen(&self) -> Vec<u64> {
        self.children.iter().map(|(_, score)| score.map_or(0, |score| u64::from(score.cast_unsigned()) + 1)).collect()
    }

    /// Takes the sums of the numbers of all ranks.
    pub(crate) fn combine(&mut self, sums: &[u64]) {
        for ((_, score), &sum) in self.children.iter_mut().zip(sums) {
            *score = sum.checked_sub(1).map(|score| (score as u8).cast_signed());
        }
    }

    /// Returns the score of the opening.
    ///
    /// # Panics
    /// If a child was not seen.
    pub(crate) fn score(&self) -> Score {
        let quiet =
            self.children.iter().map(|(_, score)| -score.expect("a database has the children of its positions"));
        quiet.chain(self.capture).max().expect("the opening has moves")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::Opening;

    #[test]
    fn awari_opens_without_captures() {
        let captured = |stones| {
            let set = PositionSet::Reachable { opening: Opening::with_stones(stones).unwrap() };
            captures(Rules::AWARI, set, stones).into_iter().map(|(captured, _)| captured).collect::<Vec<_>>()
        };
        assert_eq!(captured(12), [2]);
        assert_eq!(captured(24), [3, 6]);
        assert!(captured(36).is_empty() && captured(48).is_empty());
        assert!(captures(Rules::AWARI, PositionSet::All, 12).is_empty());
    }

    #[test]
    fn the_score_follows_from_children_in_any_runs() {
        let index = Index::new(12, PositionSet::Reachable { opening: Opening::new(1).unwrap() });
        let score = |position: u64| (position % 25) as Score - 12;
        let expect = |capture: Option<Score>| {
            let board = index.opening().unwrap().board();
            let moves = board.moves(&Rules::AWARI).filter(|(_, played)| played.captured == 0);
            let ranked = moves.map(|(_, played)| index.rank(&played.child, Orientation::OpponentMajor).unwrap());
            ranked.map(|child| -score(child)).chain(capture).max().unwrap()
        };
        let scores: Vec<Score> = (0..index.slab_positions()).map(score).collect();
        for capture in [None, Some(-12), Some(12)] {
            for run in [1_000, 65_536, usize::MAX] {
                let mut alone = OpeningSolver::new(Rules::AWARI, &index, capture).unwrap();
                let mut ranks = vec![alone.clone(); 3];
                let mut first = 0;
                for (at, run) in scores.chunks(run).enumerate() {
                    alone.see(first, run);
                    ranks[at % 3].see(first, run);
                    first += run.len() as u64;
                }
                let seen: Vec<_> = ranks.iter().map(OpeningSolver::seen).collect();
                let sums: Vec<u64> =
                    (0..seen[0].len()).map(|child| seen.iter().map(|seen| seen[child]).sum()).collect();
                ranks[0].combine(&sums);
                assert_eq!([alone.score(), ranks[0].score()], [expect(capture); 2]);
            }
        }
        assert!(OpeningSolver::new(Rules::AWARI, &Index::new(11, index.set()), None).is_none());
    }

    #[test]
    fn a_capture_may_be_declined() {
        let index = Index::new(12, PositionSet::Reachable { opening: Opening::new(1).unwrap() });
        let count = |capture, score| choice(Rules::AWARI, &index, capture, score);
        assert_eq!(count(Some(2), 2), ChoiceCounts { offered: 1, declined: 0 });
        assert_eq!(count(Some(1), 2), ChoiceCounts { offered: 1, declined: 1 });
        assert_eq!(count(None, 2), ChoiceCounts::default());
    }
}
