//! The task to solve one bound of a database.

use crate::bounds::PlaneFile;
use std::path::PathBuf;

/// A bound to solve, and the planes that it starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundTask {
    pub(super) stones: u32,
    pub(super) bound: u32,
    /// Files, in the order of [`BoundTask::planes`].
    pub(super) paths: Vec<PathBuf>,
}

impl BoundTask {
    pub(super) fn new(stones: u32, bound: u32, path: impl Fn(PlaneFile) -> PathBuf) -> BoundTask {
        BoundTask { stones, bound, paths: BoundTask::planes(stones, bound).map(path).collect() }
    }

    /// Returns the planes that a bound starts from: its seeds, and the planes of the bounds above.
    pub(super) fn planes(stones: u32, bound: u32) -> impl Iterator<Item = PlaneFile> {
        let above = (bound + 1..=stones).rev().flat_map(|above| [PlaneFile::Won(above), PlaneFile::Lost(above)]);
        [PlaneFile::CandidateSeeds, PlaneFile::Seed(bound)].into_iter().chain(above)
    }

    /// Encodes the task as lines: stones, bound, paths.
    pub(crate) fn lines(&self) -> Vec<String> {
        let paths = self.paths.iter().map(|path| path.display().to_string());
        [self.stones.to_string(), self.bound.to_string()].into_iter().chain(paths).collect()
    }

    pub(crate) fn of_lines(lines: &[&str]) -> Option<BoundTask> {
        let [stones, bound, paths @ ..] = lines else { return None };
        let (stones, bound) = (stones.parse().ok()?, bound.parse().ok()?);
        let is_bound = stones <= game::STONES_MAX && (1..=stones).contains(&bound);
        let is_whole = is_bound && BoundTask::planes(stones, bound).count() == paths.len();
        is_whole.then(|| BoundTask { stones, bound, paths: paths.iter().map(PathBuf::from).collect() })
    }

    /// Whether this is the last bound of the database.
    pub(crate) fn is_last(&self) -> bool {
        self.bound == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_decoded() {
        let task = BoundTask::new(7, 5, |plane| PathBuf::from(format!("/runs/a b/{}", plane.name(7))));
        assert_eq!(task.paths.len(), 6);
        let lines = task.lines();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(BoundTask::of_lines(&lines), Some(task));
        assert_eq!(BoundTask::of_lines(&lines[..lines.len() - 1]), None);
        for lines in [&["7"][..], &["7", "8"], &["7", "0", "a", "b"], &["x", "7", "a", "b"], &["4000000000", "1"]] {
            assert_eq!(BoundTask::of_lines(lines), None, "{lines:?}");
        }
    }
}
