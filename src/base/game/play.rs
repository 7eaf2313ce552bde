//! A game from start to end: the side to move, captured stones, and repetition.
//!
//! A repeated position ends the game, as does a player who cannot move. The rules say who gets the remaining stones. (A
//! capture is irreversible, so only positions since the last one can be
//! repeated.)

use crate::board::{Board, Illegal, Pit, Played};
use crate::notation::{MoveText, PositionText, Seats, Side};
use crate::rules::{Rules, Score};
use std::cmp::Ordering;
use std::{fmt, iter};

/// A game in progress or finished. Moves can be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Game {
    rules: Rules,
    start: Situation,
    /// The moves played, with their results.
    turns: Vec<GameTurn>,
}

/// A position with stores and the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The board, the mover's pits first.
    pub board: Board,
    /// Stores and side to move.
    pub seats: Seats,
}

/// A move that was played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameTurn {
    /// The side that moved.
    pub side: Side,
    /// The pit of the move.
    pub pit: Pit,
    /// Stones sown.
    pub sown: u8,
    /// Stones captured.
    pub captured: u8,
    /// The situation after the move.
    pub after: Situation,
}

/// The result of a finished game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameOutcome {
    /// South's stones minus North's at the end, with the remaining stones.
    pub lead: i8,
    /// The reason why the game is over.
    pub end: GameEnd,
}

/// What a player has at the end of a game. Rules that share the remaining stones may halve one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FinalShare {
    half_stones: u32,
}

/// Why a game is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GameEnd {
    /// The side to move cannot move.
    CannotMove(Side),
    /// The position equals the one before this move, counted from 0.
    Repeats {
        /// The move.
        from: usize,
    },
}

impl FinalShare {
    /// The number of stones, of which one may be half.
    pub fn stones(self) -> f64 {
        f64::from(self.half_stones) / 2.0
    }

    /// The number of whole stones.
    pub fn whole_stones(self) -> u32 {
        self.half_stones / 2
    }
}

impl fmt::Display for FinalShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.whole_stones(), self.half_stones % 2) {
            (whole, 0) => write!(f, "{whole}"),
            (0, _) => f.write_str("½"),
            (whole, _) => write!(f, "{whole}½"),
        }
    }
}

impl Side {
    /// The other player.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::South => Side::North,
            Side::North => Side::South,
        }
    }

    /// Returns South's lead, given the lead of this side.
    fn lead(self, own: Score) -> i16 {
        match self {
            Side::South => own.into(),
            Side::North => -i16::from(own),
        }
    }
}

impl Game {
    /// Begins a game from the opening position.
    pub fn new(rules: Rules) -> Game {
        Game::from(rules, &PositionText::of_board(Board::OPENING))
    }

    /// Begins a game from any position. By default South is to move and both stores are empty.
    pub fn from(rules: Rules, position: &PositionText) -> Game {
        let seats = position.seats().unwrap_or(Seats { south_store: 0, north_store: 0, side: Side::South });
        Game { rules, start: Situation { board: position.board(), seats }, turns: Vec::new() }
    }

    /// The current situation.
    pub fn now(&self) -> Situation {
        self.turns.last().map_or(self.start, |turn| turn.after)
    }

    /// The initial situation.
    pub fn start(&self) -> Situation {
        self.start
    }

    /// The moves so far.
    pub fn turns(&self) -> &[GameTurn] {
        &self.turns
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The legal moves, A to F of the side to move; none once the game is over.
    pub fn moves(&self) -> Vec<(Pit, Played)> {
        if self.outcome().is_some() { Vec::new() } else { self.now().board.moves(&self.rules).collect() }
    }

    /// Returns the positions since the last capture, without the present one. A move back to one of them ends the game.
    pub fn positions_since_capture(&self) -> Vec<Board> {
        let last_capture = self.turns.iter().rposition(|turn| turn.captured > 0);
        let kept = &self.turns[last_capture.map_or(0, |at| at + 1)..];
        let first = last_capture.map_or(self.start, |at| self.turns[at].after);
        let after = kept.iter().map(|turn| turn.after);
        iter::once(first).chain(after).take(kept.len()).map(|situation| situation.board).collect()
    }

    /// Plays a move of the side to move. The caller checks whether the game is over.
    ///
    /// # Errors
    /// The reason why the move is illegal. The game is then unchanged.
    pub fn play(&mut self, pit: Pit) -> Result<GameTurn, Illegal> {
        let Situation { board, seats } = self.now();
        let Played { child, captured } = board.play(&self.rules, pit)?;
        let mut after = Situation { board: child, seats: Seats { side: seats.side.other(), ..seats } };
        match seats.side {
            Side::South => after.seats.south_store = after.seats.south_store.saturating_add(captured),
            Side::North => after.seats.north_store = after.seats.north_store.saturating_add(captured),
        }
        let turn = GameTurn { side: seats.side, pit, sown: board.0[pit.number()], captured, after };
        self.turns.push(turn);
        Ok(turn)
    }

    /// Takes the last move back.
    pub fn take_back(&mut self) -> Option<GameTurn> {
        self.turns.pop()
    }

    /// The result of the game; `None` while it is not over.
    pub fn outcome(&self) -> Option<GameOutcome> {
        let now = self.now();
        let lead = i16::from(now.seats.south_store) - i16::from(now.seats.north_store);
        let outcome = |lead: i16, end| {
            // A lead fits `i8` in any real game.
            Some(GameOutcome { lead: lead.clamp(i8::MIN.into(), i8::MAX.into()) as i8, end })
        };
        if now.board.moves(&self.rules).next().is_none() {
            let rest = self.rules.terminal_score(&now.board);
            return outcome(lead + now.seats.side.lead(rest), GameEnd::CannotMove(now.seats.side));
        }
        let from = self.repeated()?;
        let rest = self.rules.repetition_score(&now.board);
        outcome(lead + now.seats.side.lead(rest), GameEnd::Repeats { from })
    }

    /// Describes the result of the game with the stones of both players: `South wins 33 to 15`,
    /// `a draw, 24 to 24`; `None` while it is not over.
    pub fn result_text(&self) -> Option<String> {
        let shares = self.final_shares()?;
        let [most, least] =
            if shares[0] < shares[1] { [shares[1], shares[0]] } else { shares }.map(|share| share.to_string());
        let how = match shares[0].cmp(&shares[1]) {
            Ordering::Greater => "South wins",
            Ordering::Less => "North wins",
            Ordering::Equal => "a draw,",
        };
        Some(format!("{how} {most} to {least}"))
    }

    /// Returns the result as transcripts write it, South first: `1-0`, `0-1`, `1/2-1/2`, or `*` while the
    /// game is not over.
    pub fn result_mark(&self) -> &'static str {
        match self.outcome().map(|outcome| outcome.lead.cmp(&0)) {
            None => "*",
            Some(Ordering::Greater) => "1-0",
            Some(Ordering::Equal) => "1/2-1/2",
            Some(Ordering::Less) => "0-1",
        }
    }

    /// Returns what South and North have at the end, with the stones that remain on the board; `None` while
    /// the game is not over.
    pub fn final_shares(&self) -> Option<[FinalShare; 2]> {
        let Seats { south_store, north_store, .. } = self.now().seats;
        let all = i32::from(south_store) + i32::from(north_store) + self.now().board.stones() as i32;
        let lead = i32::from(self.outcome()?.lead);
        Some([all + lead, all - lead].map(|halves| FinalShare { half_stones: halves.max(0).unsigned_abs() }))
    }

    /// The move before which the position was the current one.
    fn repeated(&self) -> Option<usize> {
        let now = self.now();
        let same = |then: &Situation| then.board == now.board && then.seats.side == now.seats.side;
        for (number, turn) in self.turns.iter().enumerate().rev() {
            if turn.captured > 0 {
                return None;
            }
            let before = if number == 0 { &self.start } else { &self.turns[number - 1].after };
            if same(before) {
                return Some(number);
            }
        }
        None
    }
}

impl Situation {
    /// The position in the long form.
    pub fn text(&self) -> PositionText {
        PositionText::of_game(self.board, self.seats)
    }
}

impl GameTurn {
    /// The name of the move: A to F for South, a to f for North.
    pub fn text(&self) -> MoveText {
        MoveText { pit: self.pit, side: self.side }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RestOwner;

    fn game(position: &str) -> Game {
        Game::from(Rules::AWARI, &position.parse().unwrap())
    }

    fn pit(name: char) -> Pit {
        name.to_string().parse::<MoveText>().unwrap().pit
    }

    #[test]
    fn results_are_those_of_the_last_stones() {
        let result = |rules: Rules, position: &str, moves: &str| {
            let mut game = Game::from(rules, &position.parse().unwrap());
            for name in moves.chars() {
                game.play(pit(name)).unwrap();
            }
            game.result_text()
        };
        // North cannot move: South gets the rest by awari, as by oware.
        let last = "0-0-0-0-0-5-0-0-0-0-0-0-28-15-N";
        assert_eq!(result(Rules::AWARI, last, "").unwrap(), "South wins 33 to 15");
        assert_eq!(result(Rules::OWARE, last, "").unwrap(), "South wins 33 to 15");
        assert_eq!(
            result(Rules::AWARI, "1-0-0-0-0-0-1-0-0-0-0-0-23-23-S", "AaBbCcDdEeFf").unwrap(),
            "a draw, 24 to 24"
        );
        // A repetition shares an odd number of stones.
        let odd = result(Rules::AWARI, "1-0-0-0-0-0-1-0-0-0-0-0-20-23-S", "AaBbCcDdEeFf").unwrap();
        assert_eq!(odd, "North wins 24 to 21");
        assert_eq!(FinalShare { half_stones: 43 }.to_string(), "21½");
        assert_eq!(FinalShare { half_stones: 1 }.to_string(), "½");
        assert_eq!(result(Rules::AWARI, last.replace('N', "S").as_str(), ""), None);
        let mark = |position: &str| game(position).result_mark();
        assert_eq!([mark(last), mark(&last.replace('N', "S"))], ["1-0", "*"]);
        assert_eq!(mark("0-0-0-0-0-0-1-1-0-0-0-1-20-25-S"), "0-1");
        assert_eq!(mark("0-0-0-0-0-0-0-0-0-0-0-0-24-24-S"), "1/2-1/2");
    }

    #[test]
    fn positions_before_a_capture_do_not_count() {
        let mut game = game("0-1-0-2-0-1-1-0-2-0-1-0-20-20-S");
        let mut since = |name| {
            game.play(pit(name)).unwrap();
            let mut found = game.positions_since_capture();
            let count = found.len();
            found.push(game.now().board);
            let all: Vec<Board> =
                iter::once(game.start()).chain(game.turns().iter().map(|turn| turn.after)).map(|at| at.board).collect();
            assert_eq!(found, all[all.len() - found.len()..]);
            count
        };
        // The third move captures.
        assert_eq!(['D', 'a', 'F', 'c'].map(&mut since), [1, 2, 0, 1]);
        assert_eq!(self::game("0-1-0-2-0-1-1-0-2-0-1-0-20-20-S").positions_since_capture(), []);
    }

    #[test]
    fn captures_go_to_the_mover_and_are_taken_back() {
        let mut game = game("0-0-0-0-0-2-1-1-0-0-0-1-20-23-S");
        let before = game.clone();
        let turn = game.play(pit('F')).unwrap();
        assert_eq!((turn.side, turn.sown, turn.captured), (Side::South, 2, 4));
        let after = game.now().seats;
        assert_eq!((after.south_store, after.north_store, after.side), (24, 23, Side::North));
        assert_eq!(game.take_back(), Some(turn));
        assert_eq!(game, before);
        assert_eq!(game.take_back(), None);
    }

    #[test]
    fn a_side_without_a_move_loses_the_rest() {
        let game = game("0-0-0-0-0-0-1-1-0-0-0-1-20-25-S");
        assert_eq!(game.outcome(), Some(GameOutcome { lead: -8, end: GameEnd::CannotMove(Side::South) }));
        assert!(game.moves().is_empty());
        let game = self::game("1-1-0-0-0-2-0-0-0-0-0-0-25-19-N");
        assert_eq!(game.outcome(), Some(GameOutcome { lead: 10, end: GameEnd::CannotMove(Side::North) }));
    }

    /// North has no stones, and no move of South gives it any. South keeps its row by all rules: where the
    /// stones go to the opponent of a player who cannot move, by one more move.
    #[test]
    fn a_side_that_cannot_feed_keeps_its_row() {
        for (position, side) in
            [("1-2-0-0-1-0-0-0-0-0-0-0-22-22-S", Side::South), ("0-0-0-0-0-0-0-2-0-0-0-0-23-23-N", Side::North)]
        {
            for rules in Rules::KNOWN {
                let mut game = Game::from(rules, &position.parse().unwrap());
                let rest = game.now().board.stones() as i8;
                let lead = if side == Side::South { rest } else { -rest };
                let end = match rules.rest {
                    RestOwner::OwnSide => side,
                    RestOwner::Opponent => {
                        assert_eq!(game.outcome(), None, "{}", rules.name);
                        game.play(game.moves()[0].0).unwrap();
                        side.other()
                    }
                };
                assert_eq!(game.outcome(), Some(GameOutcome { lead, end: GameEnd::CannotMove(end) }), "{}", rules.name);
                assert!(game.moves().is_empty());
            }
        }
        // A move feeds North: it is the only legal one.
        let game = Game::from(Rules::OWARE, &"1-2-0-0-1-1-0-0-0-0-0-0-22-21-S".parse().unwrap());
        assert_eq!((game.outcome(), game.moves().len()), (None, 1));
    }

    #[test]
    fn a_repeated_position_ends_the_game() {
        // Each side has a stone that moves along its own side, and then crosses to the other.
        let mut game = game("1-0-0-0-0-0-1-0-0-0-0-0-23-23-S");
        let mut moves = 0;
        while game.outcome().is_none() {
            let (pit, _) = game.moves()[0];
            game.play(pit).unwrap();
            moves += 1;
            assert!(moves < 100);
        }
        let outcome = game.outcome().unwrap();
        let GameEnd::Repeats { from } = outcome.end else { panic!("{outcome:?}") };
        let then = if from == 0 { game.start() } else { game.turns()[from - 1].after };
        assert_eq!((then, outcome.lead), (game.now(), 0));
        assert!(game.moves().is_empty());
        game.take_back();
        assert_eq!(game.outcome(), None);
    }

    #[test]
    fn a_repetition_may_leave_each_side_its_stones() {
        let lead = |rules| {
            // South walks round the board while North waits with one stone in each of two pits.
            let mut game = Game::from(rules, &"1-0-0-0-0-0-1-0-1-0-0-0-22-23-S".parse().unwrap());
            while game.outcome().is_none() {
                let (pit, _) = *game.moves().last().unwrap();
                game.play(pit).unwrap();
            }
            let board = game.now().board;
            let own = |half: [u8; 6]| half.iter().sum::<u8>() as i8;
            let GameOutcome { lead, end } = game.outcome().unwrap();
            let rows = own(board.mover()) - own(board.opponent());
            let Seats { south_store, north_store, side } = game.now().seats;
            let rest = lead - (south_store as i8 - north_store as i8);
            (matches!(end, GameEnd::Repeats { .. }), rest, if side == Side::South { rows } else { -rows })
        };
        let (repeats, split, _) = lead(Rules::WARI);
        assert!(repeats && split == 0);
        let (repeats, own, rows) = lead(Rules::OWARE);
        assert!(repeats && own == rows && own != 0, "{repeats} {own} {rows}");
    }

    #[test]
    fn forbidden_moves_change_nothing() {
        let mut game = Game::new(Rules::AWARI);
        game.play(pit('C')).unwrap();
        game.play(pit('a')).unwrap();
        let before = game.clone();
        assert!(matches!(game.play(pit('C')), Err(Illegal::Empty(_))));
        assert_eq!(game, before);
        assert_eq!(game.turns()[0].text().to_string() + &game.turns()[1].text().to_string(), "Ca");
    }
}
