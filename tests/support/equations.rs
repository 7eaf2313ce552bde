//! The equations that the scores of a database satisfy, and their solutions.
//!
//! `score(p) = max over moves of (captured - score(child))`, with the scores of smaller databases given: a
//! database that satisfies all of them is *consistent*. The right scores are the least solution in the order
//! in which 0 is least and magnitudes grow outward; others exist where moves form cycles, in which positions
//! support each other.
//!
//! Two numbers a position bound all solutions: its value if endless play wins everything for the player to
//! move, and if it loses everything:
//!
//! ```text
//! high(p) = max(capture(p), max over quiet moves of -low(child))      from the stones downward
//! low(p)  = max(capture(p), max over quiet moves of -high(child))     from minus the stones upward
//! ```
//!
//! Every solution lies between the two (induction over rounds), so where they agree everywhere there is only one.
//! Where they differ, [`Claims`](crate::claims::Claims) search for another one.
//!
//! Written from the plain rules, for databases in memory of up to a dozen stones.

use game::{Board, Index, Orientation, Played, PositionSet, Rules, Score};

/// No capture.
const NONE: Score = Score::MIN;

/// The equations of one database.
#[derive(Debug)]
pub struct Equations {
    stones: u32,
    /// The best capture of each position, or its score if it has no move.
    captures: Vec<Score>,
    /// Where the quiet moves of each position begin in `children`, and where the last one's end.
    starts: Vec<u32>,
    children: Vec<u32>,
}

/// Bounds on the score of each position in any solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extremes {
    /// The values if an endless game is a win for the player to move.
    pub high: Vec<Score>,
    /// If it loses.
    pub low: Vec<Score>,
}

impl Equations {
    /// The equations of the `stones`-stone database, in canonical order. `smaller[k]` are the scores with k stones.
    ///
    /// # Panics
    /// When a smaller database is missing.
    pub fn new(set: PositionSet, stones: u32, smaller: &[Vec<Score>]) -> Equations {
        let moves = |board: &Board| board.moves(&Rules::AWARI).map(|(_, played)| played).collect();
        Equations::of(&moves, -(stones as Score), set, stones, smaller)
    }

    /// As [`new`](Equations::new), for other rules: `moves` returns the moves of a position, and a position
    /// without moves scores `stuck`.
    pub fn of(
        moves: &dyn Fn(&Board) -> Vec<Played>,
        stuck: Score,
        set: PositionSet,
        stones: u32,
        smaller: &[Vec<Score>],
    ) -> Equations {
        const ORDER: Orientation = Orientation::OpponentMajor;
        let index = Index::new(stones, set);
        let indices: Vec<Index> = (0..=stones).map(|stones| Index::new(stones, set)).collect();
        let rank = |index: &Index, board: &Board| index.rank(board, ORDER).expect("a move leads into the set");
        let mut equations = Equations { stones, captures: Vec::new(), starts: vec![0], children: Vec::new() };
        for position in 0..index.positions() {
            let board = index.unrank(position, ORDER);
            let mut capture = NONE;
            let moves = moves(&board);
            for played in &moves {
                if played.captured == 0 {
                    equations.children.push(rank(&index, &played.child) as u32);
                    continue;
                }
                let left = (stones - u32::from(played.captured)) as usize;
                let child = smaller[left][rank(&indices[left], &played.child) as usize];
                capture = capture.max(played.captured as Score - child);
            }
            equations.captures.push(if moves.is_empty() { stuck } else { capture });
            equations.starts.push(equations.children.len() as u32);
        }
        equations
    }

    /// Positions.
    pub fn positions(&self) -> usize {
        self.captures.len()
    }

    /// The positions that quiet moves lead to.
    pub fn children(&self, position: usize) -> &[u32] {
        &self.children[self.starts[position] as usize..self.starts[position + 1] as usize]
    }

    /// The best capture of a position, or a value below any score; the score of a position without moves.
    pub fn capture(&self, position: usize) -> Score {
        self.captures[position]
    }

    /// The score of a position by its children.
    pub fn best(&self, position: usize, scores: &[Score]) -> Score {
        let quiet = self.children(position).iter().map(|&child| -scores[child as usize]);
        quiet.fold(self.captures[position], Score::max)
    }

    /// The positions whose score contradicts their children.
    pub fn violations<'a>(&'a self, scores: &'a [Score]) -> impl Iterator<Item = usize> + 'a {
        (0..self.positions()).filter(|&position| self.best(position, scores) != scores[position])
    }

    /// Whether all equations hold.
    pub fn hold(&self, scores: &[Score]) -> bool {
        self.violations(scores).next().is_none()
    }

    /// The least solution: the right scores if the smaller databases are right.
    pub fn least(&self) -> Vec<Score> {
        let mut scores = vec![0; self.positions()];
        self.settle(&mut scores);
        scores
    }

    /// Computes the bounds of all solutions.
    pub fn extremes(&self) -> Extremes {
        let mut extremes = Extremes {
            high: vec![self.stones as Score; self.positions()],
            low: vec![-(self.stones as Score); self.positions()],
        };
        loop {
            let mut changed = false;
            for position in 0..self.positions() {
                let (high, low) = (self.best(position, &extremes.low), self.best(position, &extremes.high));
                changed |= (high, low) != (extremes.high[position], extremes.low[position]);
                (extremes.high[position], extremes.low[position]) = (high, low);
            }
            if !changed {
                return extremes;
            }
        }
    }

    /// Applies the equations until they hold.
    pub fn settle(&self, scores: &mut [Score]) {
        while self.pass(scores, None) > 0 {}
    }

    /// Applies each equation once, in place, except for the position `held`. Returns the number of changed scores.
    pub fn pass(&self, scores: &mut [Score], held: Option<usize>) -> usize {
        let mut changed = 0;
        for position in (0..self.positions()).filter(|&position| Some(position) != held) {
            let best = self.best(position, scores);
            changed += usize::from(best != scores[position]);
            scores[position] = best;
        }
        changed
    }
}
