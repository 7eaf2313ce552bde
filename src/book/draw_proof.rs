//! Proof that a position is a draw, where every capture leads to a database.
//!
//! A draw has two claims: the player to move gets at least 0, and so does the opponent. Either claim has a *defender*,
//! the other player *attacks*. The defender keeps a claim if it has a set of positions that it never has to leave: of
//! each position where it is to move, one move stays in the set or captures into a position of a database that is worth
//! enough; of each position where the attacker is to move, all moves do. Play that stays in the set for ever repeats a
//! position, which is worth 0. So both claims are claims of safety, and cycles need no special treatment.
//!
//! The set is built on the fly: the defender follows the move that a search prefers until it is refuted. A
//! refutation is exact: it ends with captures that win by a database. Searches choose moves, and refute; the set rests
//! on none of them, so [`crate::draw_check`] checks it by the rules and databases alone.

use crate::assess::AssessmentError;
use crate::awari::AwariGame;
use game::notation::PositionText;
use game::{Board, Pit, Rules};
use rustc_hash::FxHashMap;
use search::{Evaluation, ExactScores, SearchLimits, SearchRequest, SearchStop, Searcher};
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::io;

/// The player to move at a position of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProofRole {
    /// The player who has to get at least 0.
    Defender,
    /// The other player.
    Attacker,
}

/// A position of a set that keeps a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPosition {
    /// The position, seen from the player to move.
    pub board: Board,
    /// The role of the player to move.
    pub role: ProofRole,
    /// The move of the defender; none of the attacker, whose moves all stay in the set.
    pub pit: Option<Pit>,
}

/// What a proof has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrawVerdict {
    /// The claim holds, by this set. The first position is the root.
    Kept(Vec<KeptPosition>),
    /// The attacker wins.
    Refuted,
    /// The limit of positions was reached, or the search was stopped.
    Open,
}

/// An error that ends a proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawProofError {
    /// No database has a position after a capture.
    #[error("no database has the position {position}, to which a capture leads")]
    Missing {
        /// The position.
        position: String,
    },
    /// A search failed.
    #[error(transparent)]
    Search(#[from] AssessmentError),
}

/// Progress of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawProgress {
    /// The positions that were entered, of both claims.
    pub positions: usize,
    /// The positions that the defender's moves reach.
    pub reached: usize,
    /// Of these, the positions whose moves are still to be followed.
    pub open: usize,
    /// The positions that are refuted.
    pub lost: usize,
    /// Whether positions count as kept that only a search has proved.
    pub trusts_search: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProofState {
    /// Its moves are not followed.
    Open,
    /// As [`Open`](Self::Open), but a search has proved the claim.
    Searched,
    /// The moves of its player are in the proof.
    Followed,
    /// The claim holds without any position that is followed but not safe.
    Safe,
    /// The claim is refuted.
    Lost,
}

/// A position of a proof.
#[derive(Clone, Debug)]
struct ProofNode {
    /// The key of the position, twice, plus 1 if the attacker is to move.
    key: u64,
    /// The positions after the moves without a capture; [`NO_NODE`] where the defender's move was not tried.
    children: [u32; 6],
    /// The pits of the moves, in the order of preference.
    pits: [u8; 6],
    count: u8,
    /// The move that the defender follows.
    choice: u8,
    state: ProofState,
    /// The estimate for the defender, in hundredths of a stone.
    estimate: i16,
    /// Estimates of the defender's moves.
    estimates: [i16; 6],
    /// The last link to a position before it.
    parents: u32,
}

const NO_NODE: u32 = u32::MAX;

/// The estimate of a safe position; its negation is that of a refuted one.
const SAFE: i16 = 9_600;

/// The estimate of what a search has proved.
const SEARCHED: i16 = 4_800;

/// The share of the open positions that is followed before the defender chooses again, and the least number.
const OPEN_SHARE: usize = 8;
const OPEN_MIN: usize = 16;

/// The most positions whose estimates change with that of one position. Estimates in cycles might change for ever.
const ESTIMATES_MAX: usize = 2_000;

/// A proof under construction. Both claims of a draw share what is found.
pub struct DrawProof<'a> {
    rules: Rules,
    databases: &'a dyn ExactScores,
    searcher: Searcher,
    nodes: u64,
    found: Vec<ProofNode>,
    by_key: FxHashMap<u64, u32>,
    /// A position before another one, and the next link.
    links: Vec<(u32, u32)>,
    lost: usize,
    /// The first error. What was derived from it is not returned.
    failure: OnceCell<DrawProofError>,
}

fn node_key(board: &Board, role: ProofRole) -> u64 {
    AwariGame::key(board) << 1 | u64::from(role == ProofRole::Attacker)
}

fn text(board: &Board) -> String {
    PositionText::of_board(*board).to_string()
}

impl ProofNode {
    fn role(&self) -> ProofRole {
        if self.key & 1 == 0 { ProofRole::Defender } else { ProofRole::Attacker }
    }

    fn board(&self) -> Board {
        AwariGame::board(self.key >> 1)
    }

    fn set(&mut self, state: ProofState, estimate: i16) {
        self.state = state;
        self.estimate = match state {
            ProofState::Safe => SAFE,
            ProofState::Lost => -SAFE,
            _ => estimate,
        };
    }
}

impl<'a> DrawProof<'a> {
    /// Makes an empty proof. `nodes` limits the positions of a search, `table_bytes` the memory of what searches share.
    ///
    /// # Errors
    /// If the system refuses the memory of the table.
    pub fn new(
        rules: Rules,
        databases: &'a dyn ExactScores,
        nodes: u64,
        table_bytes: u64,
    ) -> io::Result<DrawProof<'a>> {
        let searcher = Searcher::by(rules, table_bytes, Evaluation::default())?;
        let (found, by_key, links) = (Vec::new(), FxHashMap::default(), Vec::new());
        let failure = OnceCell::new();
        Ok(DrawProof { rules, databases, searcher, nodes, found, by_key, links, lost: 0, failure })
    }

    /// Looks for a set that keeps the claim of a position, until the proof has a number of positions.
    ///
    /// # Errors
    /// [`DrawProofError`]; the proof cannot be used any more then.
    pub fn prove(
        &mut self,
        root: &Board,
        role: ProofRole,
        positions_max: usize,
        stop: &SearchStop,
        progress: &mut dyn FnMut(DrawProgress),
    ) -> Result<DrawVerdict, DrawProofError> {
        let root = self.enter(root, role);
        let mut trusts_search = true;
        loop {
            if let Some(failure) = self.failure.get() {
                return Err(failure.clone());
            }
            if self.found[root as usize].state == ProofState::Lost {
                return Ok(DrawVerdict::Refuted);
            }
            let (reached, mut open) = self.reached(root, trusts_search);
            let (positions, lost) = (self.found.len(), self.lost);
            progress(DrawProgress { positions, reached: reached.len(), open: open.len(), lost, trusts_search });
            if open.is_empty() && trusts_search {
                trusts_search = false;
                continue;
            }
            if open.is_empty() {
                return Ok(DrawVerdict::Kept(reached.into_iter().map(|at| self.kept(at)).collect()));
            }
            if self.found.len() >= positions_max || stop.is_set() {
                return Ok(DrawVerdict::Open);
            }
            // The most dangerous positions first: they decide whether the followed moves are right.
            open.sort_by_key(|&at| self.found[at as usize].estimate);
            open.truncate((open.len() / OPEN_SHARE).max(OPEN_MIN));
            for at in open {
                if self.is_open(at, trusts_search) {
                    self.follow(at);
                }
            }
        }
    }

    fn kept(&self, at: u32) -> KeptPosition {
        let node = &self.found[at as usize];
        let has_move = node.role() == ProofRole::Defender && node.count > 0;
        let pit = has_move.then(|| Pit::new(node.pits[usize::from(node.choice)])).flatten();
        KeptPosition { board: node.board(), role: node.role(), pit }
    }

    fn is_open(&self, at: u32, trusts_search: bool) -> bool {
        match self.found[at as usize].state {
            ProofState::Open => true,
            ProofState::Searched => !trusts_search,
            ProofState::Followed | ProofState::Safe | ProofState::Lost => false,
        }
    }

    /// Returns the positions that the followed moves reach, and of these the open ones.
    fn reached(&self, root: u32, trusts_search: bool) -> (Vec<u32>, Vec<u32>) {
        let mut is_seen = vec![false; self.found.len()];
        let (mut reached, mut open, mut path) = (Vec::new(), Vec::new(), vec![root]);
        while let Some(at) = path.pop() {
            let node = &self.found[at as usize];
            if std::mem::replace(&mut is_seen[at as usize], true) {
                continue;
            }
            reached.push(at);
            if self.is_open(at, trusts_search) {
                open.push(at);
                continue;
            }
            if trusts_search && matches!(node.state, ProofState::Searched | ProofState::Safe) {
                continue;
            }
            match node.role() {
                ProofRole::Defender => {
                    let next = node.children[usize::from(node.choice)];
                    path.extend(Some(next).filter(|&next| next != NO_NODE));
                }
                ProofRole::Attacker => path.extend(&node.children[..usize::from(node.count)]),
            }
        }
        (reached, open)
    }

    /// Follows the moves of an open position.
    fn follow(&mut self, at: u32) {
        let node = &mut self.found[at as usize];
        node.state = ProofState::Followed;
        if node.role() == ProofRole::Attacker {
            let moves = node.board().moves(&self.rules).filter(|(_, played)| played.captured == 0);
            let quiet: Vec<Board> = moves.map(|(_, played)| played.child).collect();
            self.found[at as usize].count = quiet.len() as u8;
            for (number, child) in quiet.iter().enumerate() {
                let child = self.enter(child, ProofRole::Defender);
                self.link(child, at);
                self.found[at as usize].children[number] = child;
            }
        }
        self.settle(at);
    }

    /// Derives the states and estimates that follow from a position.
    fn settle(&mut self, at: u32) {
        let mut estimates_left = ESTIMATES_MAX;
        let mut queue = VecDeque::from([at]);
        while let Some(at) = queue.pop_front() {
            let node = &self.found[at as usize];
            if node.state != ProofState::Followed {
                continue;
            }
            let before = node.estimate;
            match node.role() {
                ProofRole::Defender => self.choose(at),
                ProofRole::Attacker => self.settle_attacker(at),
            }
            let node = &self.found[at as usize];
            let is_settled = node.state != ProofState::Followed;
            self.lost += usize::from(node.state == ProofState::Lost);
            if is_settled || node.estimate != before && estimates_left > 0 {
                estimates_left -= usize::from(!is_settled);
                self.push_parents(at, &mut queue);
            }
        }
    }

    fn settle_attacker(&mut self, at: u32) {
        let node = &self.found[at as usize];
        let children = node.children[..usize::from(node.count)].iter().map(|&child| &self.found[child as usize]);
        let estimate = children.clone().map(|child| child.estimate).min().unwrap_or(SAFE);
        let state = match () {
            () if children.clone().any(|child| child.state == ProofState::Lost) => ProofState::Lost,
            () if children.clone().all(|child| child.state == ProofState::Safe) => ProofState::Safe,
            () => ProofState::Followed,
        };
        self.found[at as usize].set(state, estimate);
    }

    /// Chooses the defender's move with the best estimate that is not refuted.
    fn choose(&mut self, at: u32) {
        loop {
            let node = &self.found[at as usize];
            let of_move = |number: usize| match node.children[number] {
                NO_NODE => (ProofState::Open, node.estimates[number]),
                child => (self.found[child as usize].state, self.found[child as usize].estimate),
            };
            let moves = (0..usize::from(node.count)).map(|number| (number, of_move(number)));
            let open = moves.filter(|(_, (state, _))| *state != ProofState::Lost);
            let Some((number, (state, estimate))) =
                open.max_by_key(|&(number, (state, estimate))| (state == ProofState::Safe, estimate, 6 - number))
            else {
                return self.found[at as usize].set(ProofState::Lost, -SAFE);
            };
            if node.children[number] == NO_NODE {
                let pit = Pit::new(node.pits[number]).expect("a pit of a legal move");
                let after = node.board().play_unchecked(&self.rules, pit).child;
                let guess = node.estimates[number];
                let child = self.enter(&after, ProofRole::Attacker);
                self.link(child, at);
                self.found[at as usize].children[number] = child;
                let child = &mut self.found[child as usize];
                if child.state == ProofState::Open {
                    child.estimate = guess;
                }
                continue;
            }
            let state = if state == ProofState::Safe { state } else { ProofState::Followed };
            let node = &mut self.found[at as usize];
            node.choice = number as u8;
            return node.set(state, estimate);
        }
    }

    fn link(&mut self, child: u32, parent: u32) {
        let child = &mut self.found[child as usize];
        self.links.push((parent, child.parents));
        child.parents = self.links.len() as u32 - 1;
    }

    fn push_parents(&self, at: u32, queue: &mut VecDeque<u32>) {
        let mut link = self.found[at as usize].parents;
        while link != NO_NODE {
            let (parent, next) = self.links[link as usize];
            queue.push_back(parent);
            link = next;
        }
    }

    /// Enters a position, unless it is there.
    fn enter(&mut self, board: &Board, role: ProofRole) -> u32 {
        let key = node_key(board, role);
        if let Some(&at) = self.by_key.get(&key) {
            return at;
        }
        let mut node = ProofNode {
            key,
            children: [NO_NODE; 6],
            pits: [0; 6],
            count: 0,
            choice: 0,
            state: ProofState::Open,
            estimate: 0,
            estimates: [0; 6],
            parents: NO_NODE,
        };
        match role {
            ProofRole::Defender => self.assess_defender(board, &mut node),
            ProofRole::Attacker => node.state = self.attacker_state(board),
        }
        node.set(node.state, node.estimate);
        self.lost += usize::from(node.state == ProofState::Lost);
        let at = self.found.len() as u32;
        assert!(at < NO_NODE, "a proof has at most 2^32 - 1 positions");
        self.found.push(node);
        self.by_key.insert(key, at);
        at
    }

    /// Returns the value of a capture for the player who makes it; 0, and a failure, if no database has the position.
    fn capture_value(&self, captured: u8, child: &Board) -> i32 {
        match self.databases.score(child) {
            Some(score) => i32::from(captured) - i32::from(score),
            None => {
                self.fail(DrawProofError::Missing { position: text(child) });
                0
            }
        }
    }

    fn fail(&self, failure: DrawProofError) {
        // The first failure is kept.
        let _ = self.failure.set(failure);
    }

    fn attacker_state(&self, board: &Board) -> ProofState {
        let (mut has_move, mut is_quiet) = (false, false);
        for (_, played) in board.moves(&self.rules) {
            has_move = true;
            if played.captured == 0 {
                is_quiet = true;
            } else if self.capture_value(played.captured, &played.child) > 0 {
                return ProofState::Lost;
            }
        }
        match (has_move, is_quiet) {
            (false, _) if self.rules.terminal_score(board) > 0 => ProofState::Lost,
            (_, false) => ProofState::Safe,
            (_, true) => ProofState::Open,
        }
    }

    fn assess_defender(&self, board: &Board, node: &mut ProofNode) {
        let mut quiet = Vec::new();
        let mut has_move = false;
        for (pit, played) in board.moves(&self.rules) {
            has_move = true;
            if played.captured == 0 {
                quiet.push(pit.number() as u8);
            } else if self.capture_value(played.captured, &played.child) >= 0 {
                (node.pits[0], node.count, node.state) = (pit.number() as u8, 1, ProofState::Safe);
                return;
            }
        }
        if quiet.is_empty() {
            let is_kept = !has_move && self.rules.terminal_score(board) >= 0;
            node.state = if is_kept { ProofState::Safe } else { ProofState::Lost };
            return;
        }
        let limits = SearchLimits { nodes: Some(self.nodes), ..SearchLimits::default() };
        let stop = SearchStop::new();
        let report = self.searcher.search(&SearchRequest::new(*board, limits), self.databases, &stop, &mut |report| {
            if report.low >= 0 || report.high < 0 {
                stop.stop();
            }
        });
        if let Some(wrong) = report.contradiction {
            self.fail(AssessmentError::Contradiction { position: text(&wrong) }.into());
        }
        let (state, estimate) = match () {
            () if report.high < 0 => (ProofState::Lost, -SAFE),
            () if report.low >= 0 => (ProofState::Searched, SEARCHED),
            () => (ProofState::Open, report.estimate as i16),
        };
        (node.state, node.estimate) = (state, estimate);
        let ordered = report.moves.iter().filter(|candidate| quiet.contains(&(candidate.pit.number() as u8)));
        for (number, candidate) in ordered.enumerate() {
            node.pits[number] = candidate.pit.number() as u8;
            node.estimates[number] = if candidate.low >= 0 { SEARCHED } else { candidate.estimate.hundredths() as i16 };
            node.count = number as u8 + 1;
        }
    }
}
