//! The equations that the scores of a database satisfy, and their solutions besides the right one.
//!
//! `score(p) = max over moves of (captured - score(child))`, with the scores of smaller databases given: a database that
//! satisfies all of them is *consistent*. The right scores are the least solution in the order in which 0 is least and
//! magnitudes grow outward; others come of moves in a circle, where positions can rest their claims on each other.
//!
//! How far solutions can differ is found with two numbers a position, what it is worth if going round for ever wins
//! everything for the player to move, and if it loses everything:
//!
//! ```text
//! high(p) = max(capture(p), max over quiet moves of -low(child))      from the stones downward
//! low(p)  = max(capture(p), max over quiet moves of -high(child))     from minus the stones upward
//! ```
//!
//! Every solution lies between the two (induction over rounds), so where they agree everywhere there is only one.
//! Where they do not, [`Claims`](crate::claims::Claims) look for another.
//!
//! Written from the plain rules, for databases in memory of up to a dozen stones.

use game::{Board, Index, Orientation, Played, PositionSet, Rules, Score};

/// No capture.
const NONE: Score = Score::MIN;

/// The equations of one database.
#[derive(Debug)]
pub struct Equations {
    stones: u32,
    /// The best capture of each position; what it scores where there is no move at all.
    captures: Vec<Score>,
    /// Where the quiet moves of each position begin in `children`, and where the last one's end.
    starts: Vec<u32>,
    children: Vec<u32>,
}

/// What each position is worth at most and at least, in any solution.
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

    /// As [`new`](Equations::new), of another game: the moves of a position are as `moves` says, and who has none scores
    /// `stuck`.
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

    /// The best capture of a position, far below any score if there is none; what it scores if there is no move at all.
    pub fn capture(&self, position: usize) -> Score {
        self.captures[position]
    }

    /// What a position scores by its children.
    pub fn best(&self, position: usize, scores: &[Score]) -> Score {
        let quiet = self.children(position).iter().map(|&child| -scores[child as usize]);
        quiet.fold(self.captures[position], Score::max)
    }

    /// The positions that do not score what their children say.
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

    /// What each position is worth at most and at least.
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

    /// Applies each equation once, in place, but for one position that keeps its score; says how many scores changed.
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
