//! A search for other solutions of the equations of scores: claims that rest on each other.
//!
//! At a bound k, positions can be claimed as lost by k or more if no capture saves them and all their quiet
//! children are claimed as won; as won, if a capture does it or one quiet child is claimed as lost; none as
//! both. From one position claimed as lost though it is not, consequences are followed; where a win could
//! rest on several children, each is tried (Davis, Logemann & Loveland 1962). So the search is complete,
//! unless it gives up: every other solution has such a position at some bound, for a win that is none must
//! rest on a loss that is none.
//!
//! Claims that support each other are where applying the equations only moves scores further from 0, up to a solution.

use crate::equations::{Equations, Extremes};
use game::Score;

/// Outcome of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// A solution with the claim.
    Found(Vec<Score>),
    /// There is none.
    Impossible,
    /// The limit of wrong choices was reached.
    GivenUp,
}

/// Possible and certain claims of a position.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    may_win: bool,
    may_lose: bool,
    must_win: bool,
    must_lose: bool,
}

/// Claims at one bound.
pub struct Claims<'a> {
    equations: &'a Equations,
    least: &'a [Score],
    bound: Score,
    parents: Vec<Vec<u32>>,
    marks: Vec<Mark>,
    /// Quiet children that may be lost.
    support: Vec<u32>,
    /// Former marks, for undoing.
    trail: Vec<(u32, Mark)>,
    /// Consequences to apply.
    waiting: Vec<(u32, ClaimChange)>,
    /// Claimed wins that need a lost child.
    open: Vec<u32>,
}

/// A conclusion about a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimChange {
    NotWon,
    NotLost,
    Won,
    Lost,
}

/// A claim contradicts another.
struct Conflict;

/// A child chosen as lost to support a win, and the state before the choice.
struct ClaimChoice {
    child: u32,
    trail: usize,
    open: usize,
}

impl<'a> Claims<'a> {
    /// The claims that the extremes allow at `bound`.
    pub fn new(equations: &'a Equations, extremes: &Extremes, least: &'a [Score], bound: Score) -> Claims<'a> {
        let positions = equations.positions();
        let mut parents = vec![Vec::new(); positions];
        for position in 0..positions {
            for &child in equations.children(position) {
                parents[child as usize].push(position as u32);
            }
        }
        let marks: Vec<Mark> = (0..positions)
            .map(|at| Mark {
                may_win: extremes.high[at] >= bound && least[at] >= 0,
                may_lose: extremes.low[at] <= -bound && least[at] <= 0,
                ..Mark::default()
            })
            .collect();
        let support = (0..positions)
            .map(|at| equations.children(at).iter().filter(|&&child| marks[child as usize].may_lose).count() as u32)
            .collect();
        let mut claims = Claims {
            equations,
            least,
            bound,
            parents,
            marks,
            support,
            trail: Vec::new(),
            waiting: Vec::new(),
            open: Vec::new(),
        };
        for at in 0..positions {
            let mark = claims.marks[at];
            if mark.may_win && !claims.wins_outright(at) && claims.support[at] == 0 {
                claims.waiting.push((at as u32, ClaimChange::NotWon));
            }
            let saved = equations.capture(at) > -bound;
            if mark.may_lose
                && (saved || !equations.children(at).iter().all(|&child| claims.marks[child as usize].may_win))
            {
                claims.waiting.push((at as u32, ClaimChange::NotLost));
            }
        }
        assert!(claims.follow().is_ok(), "nothing must be yet");
        claims.trail.clear();
        claims
    }

    /// Positions that may be claimed as lost though they are not.
    pub fn seeds(&self) -> Vec<u32> {
        (0..self.marks.len() as u32)
            .filter(|&at| self.marks[at as usize].may_lose && self.least[at as usize] > -self.bound)
            .collect()
    }

    fn wins_outright(&self, at: usize) -> bool {
        self.equations.capture(at) >= self.bound || self.least[at] >= self.bound
    }

    /// Looks for a solution in which a position is lost by the bound or more. Gives up after `conflicts_max`
    /// choices that were wrong.
    pub fn search(&mut self, seed: u32, conflicts_max: usize) -> ClaimOutcome {
        let mut conflicts = 0;
        let mut choices: Vec<ClaimChoice> = Vec::new();
        let mut next = (seed, ClaimChange::Lost);
        let outcome = loop {
            self.waiting.push(next);
            next = match self.follow() {
                Ok(()) => {
                    let Some(child) = self.choice() else { break ClaimOutcome::Found(self.solution()) };
                    choices.push(ClaimChoice { child, trail: self.trail.len(), open: self.open.len() });
                    (child, ClaimChange::Lost)
                }
                Err(Conflict) => {
                    let Some(last) = choices.pop() else { break ClaimOutcome::Impossible };
                    if conflicts == conflicts_max {
                        break ClaimOutcome::GivenUp;
                    }
                    conflicts += 1;
                    self.undo(last.trail);
                    self.open.truncate(last.open);
                    (last.child, ClaimChange::NotLost)
                }
            };
        };
        self.undo(0);
        self.open.clear();
        if outcome == ClaimOutcome::Impossible {
            // Later searches skip it.
            self.waiting.push((seed, ClaimChange::NotLost));
            assert!(self.follow().is_ok(), "nothing must be yet");
            self.trail.clear();
        }
        outcome
    }

    /// The child with the fewest consequences that could support an unsupported win.
    fn choice(&self) -> Option<u32> {
        self.open.iter().rev().find_map(|&at| {
            let children = self.equations.children(at as usize);
            if self.wins_outright(at as usize) || children.iter().any(|&child| self.is_lost(child)) {
                return None;
            }
            let may = children.iter().copied().filter(|&child| self.marks[child as usize].may_lose);
            may.min_by_key(|&child| {
                let children = self.equations.children(child as usize);
                children.iter().filter(|&&child| !self.marks[child as usize].must_win).count()
            })
        })
    }

    fn is_lost(&self, at: u32) -> bool {
        self.marks[at as usize].must_lose || self.least[at as usize] <= -self.bound
    }

    fn follow(&mut self) -> Result<(), Conflict> {
        while let Some((at, change)) = self.waiting.pop() {
            if self.apply(at, change).is_err() {
                self.waiting.clear();
                return Err(Conflict);
            }
        }
        Ok(())
    }

    fn set(&mut self, at: u32, mark: Mark) {
        let before = std::mem::replace(&mut self.marks[at as usize], mark);
        self.trail.push((at, before));
        if before.may_lose && !mark.may_lose {
            for &parent in &self.parents[at as usize] {
                self.support[parent as usize] -= 1;
            }
        }
    }

    fn undo(&mut self, length: usize) {
        while self.trail.len() > length {
            let (at, before) = self.trail.pop().expect("it is longer");
            let after = std::mem::replace(&mut self.marks[at as usize], before);
            if before.may_lose && !after.may_lose {
                for &parent in &self.parents[at as usize] {
                    self.support[parent as usize] += 1;
                }
            }
        }
    }

    fn apply(&mut self, at: u32, change: ClaimChange) -> Result<(), Conflict> {
        let mark = self.marks[at as usize];
        match change {
            ClaimChange::NotWon if mark.must_win => return Err(Conflict),
            ClaimChange::NotWon if mark.may_win => {
                self.set(at, Mark { may_win: false, ..mark });
                for &parent in &self.parents[at as usize] {
                    if self.marks[parent as usize].may_lose {
                        self.waiting.push((parent, ClaimChange::NotLost));
                    }
                }
            }
            ClaimChange::NotLost if mark.must_lose => return Err(Conflict),
            ClaimChange::NotLost if mark.may_lose => {
                self.set(at, Mark { may_lose: false, ..mark });
                for index in 0..self.parents[at as usize].len() {
                    let parent = self.parents[at as usize][index];
                    let parent_mark = self.marks[parent as usize];
                    if !parent_mark.may_win || self.wins_outright(parent as usize) {
                        continue;
                    }
                    match self.support[parent as usize] {
                        0 => self.waiting.push((parent, ClaimChange::NotWon)),
                        1 if parent_mark.must_win => self.rest_on_the_only_one(parent),
                        _ => {}
                    }
                }
            }
            ClaimChange::Won if !mark.may_win => return Err(Conflict),
            ClaimChange::Won if !mark.must_win => {
                self.set(at, Mark { must_win: true, ..mark });
                if mark.may_lose {
                    self.waiting.push((at, ClaimChange::NotLost));
                }
                if !self.wins_outright(at as usize) {
                    self.open.push(at);
                    if self.support[at as usize] == 1 {
                        self.rest_on_the_only_one(at);
                    }
                }
            }
            ClaimChange::Lost if !mark.may_lose => return Err(Conflict),
            ClaimChange::Lost if !mark.must_lose => {
                self.set(at, Mark { must_lose: true, ..mark });
                if mark.may_win {
                    self.waiting.push((at, ClaimChange::NotWon));
                }
                if self.least[at as usize] > -self.bound {
                    self.waiting
                        .extend(self.equations.children(at as usize).iter().map(|&child| (child, ClaimChange::Won)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rest_on_the_only_one(&mut self, at: u32) {
        let children = self.equations.children(at as usize).iter();
        let only = children.copied().find(|&child| self.marks[child as usize].may_lose);
        self.waiting.extend(only.map(|child| (child, ClaimChange::Lost)));
    }

    fn solution(&self) -> Vec<Score> {
        let mut scores = self.least.to_vec();
        for (score, mark) in scores.iter_mut().zip(&self.marks) {
            if mark.must_win {
                *score = self.bound.max(*score);
            }
            if mark.must_lose {
                *score = (-self.bound).min(*score);
            }
        }
        self.equations.settle(&mut scores);
        scores
    }
}
