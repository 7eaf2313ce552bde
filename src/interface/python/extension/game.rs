//! Games and their notation, as objects of Python.

use crate::arguments;
use crate::position::RulePosition;
use awari_db::{Position, Rules};
use game::notation::{MoveText, PositionText, Side};
use game::play::{Game, GameTurn, Situation};
use game::transcript::{Transcript, side_name, variant};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyString};

/// A game: the positions from a start on, with the stores of both players. South begins, unless the start
/// says otherwise.
///
/// position is the start: the opening by default, or what Position() takes; as a text it may have stores and
/// side to move, as in "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S". Moves are pits, "A" to "F" of South and "a" to "f" of
/// North.
///
/// >>> import awari
/// >>> game = awari.Game()
/// >>> game.play("F", "f", "E")
/// >>> game.side, game.moves, game.stores, game.result
/// ('North', ['F', 'f', 'E'], (0, 0), None)
/// >>> print(game)
/// 1. F f 2. E
/// *
///
/// Iterating over a game steps through its moves.
///
/// >>> [(turn.side, turn.move, turn.captured) for turn in game]
/// [('South', 'F', 0), ('North', 'f', 0), ('South', 'E', 0)]
#[pyclass(eq, name = "Game", module = "awari")]
#[derive(PartialEq)]
pub(crate) struct PlayedGame {
    transcript: Transcript,
}

/// A move of a game.
///
/// side is "South" or "North"; move the pit, "A" to "F" of South or "a" to "f" of North; sown and captured
/// are numbers of stones; before and after are the positions, each an awari.Position seen from its player to
/// move; stores what South and North have captured after it.
#[pyclass(frozen, get_all, eq, module = "awari")]
#[derive(PartialEq)]
pub(crate) struct Turn {
    side: &'static str,
    r#move: String,
    sown: u8,
    captured: u8,
    before: RulePosition,
    after: RulePosition,
    stores: (u8, u8),
}

#[pymethods]
impl Turn {
    fn __repr__(&self) -> String {
        let Turn { side, r#move, sown, captured, .. } = self;
        format!("Turn(side='{side}', move='{move}', sown={sown}, captured={captured})", r#move = r#move)
    }
}

#[pymethods]
impl PlayedGame {
    #[new]
    #[pyo3(signature = (position=None, rules=None))]
    fn new(position: Option<&Bound<'_, PyAny>>, rules: Option<&str>) -> PyResult<PlayedGame> {
        let rules = rules.map(arguments::rules).transpose()?;
        let (start, rules) = match position {
            None => (PositionText::of_board(game::Board::OPENING), rules.unwrap_or(Rules::AWARI)),
            Some(position) => {
                let own = position.cast::<RulePosition>().ok().map(|position| position.get().rules);
                let rules = rules.or(own).unwrap_or(Rules::AWARI);
                let start = match position.cast::<PyString>() {
                    Ok(text) => text
                        .to_cow()?
                        .parse()
                        .map_err(|error| PyValueError::new_err(format!("invalid position: {error}")))?,
                    Err(_) => PositionText::of_board(board(&arguments::position_by(position, &rules)?)),
                };
                (start, rules)
            }
        };
        Ok(PlayedGame { transcript: Transcript { tags: Vec::new(), game: Game::from(rules, &start) } })
    }

    /// Reads the only game of a text in the Oware Game Notation, or of moves alone. The tag Variant names its rules.
    ///
    /// Raises ValueError with the line and the move if the text is wrong, a move is not legal, or another game follows.
    ///
    /// >>> awari.Game.parse('[White "Ann"] 1. F4 f4 2. E4').tags
    /// {'White': 'Ann'}
    #[staticmethod]
    #[pyo3(signature = (text, /))]
    fn parse(text: &str) -> PyResult<PlayedGame> {
        let mut games = PlayedGame::parse_all(text)?;
        match (games.pop(), games.len()) {
            (Some(game), 0) => Ok(game),
            (None, _) => Err(PyValueError::new_err("expected a game, found a text without moves and tags")),
            (Some(_), more) => {
                Err(PyValueError::new_err(format!("expected one game, found {}; Game.parse_all() reads all", more + 1)))
            }
        }
    }

    /// Reads all games of a text in the Oware Game Notation, such as that of a file. Each ends with its
    /// result, or before the tags of the next.
    ///
    /// >>> len(awari.Game.parse_all("1. F f 1-0  1. A a 2. B *"))
    /// 2
    #[staticmethod]
    #[pyo3(signature = (text, /))]
    fn parse_all(text: &str) -> PyResult<Vec<PlayedGame>> {
        let games = Transcript::games_by_variant(text).map(|read| read.map(|transcript| PlayedGame { transcript }));
        games.collect::<Result<_, _>>().map_err(|bad| PyValueError::new_err(bad.to_string()))
    }

    /// Returns the game in the Oware Game Notation, with its result, which is * while it is not over.
    ///
    /// >>> awari.Game.parse("F f").text()
    /// '1. F f\n*\n'
    fn text(&self) -> String {
        format!("{}{}\n", self.transcript.text(), self.game().result_mark())
    }

    /// Plays moves. Raises ValueError at the first that is not legal, or if the game is over; those before it
    /// stay played. For North "A" to "F" are understood too, as in the line of a search.
    ///
    /// >>> game = awari.Game()
    /// >>> game.play("F", "f")
    /// >>> game.play("f")
    /// Traceback (most recent call last):
    /// ValueError: move 3, f: South is to move, with pits A to F
    #[pyo3(signature = (*moves))]
    fn play(&mut self, moves: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        for argument in moves {
            let Ok(name) = argument.cast::<PyString>() else {
                let found = argument.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "expected a move: a text from A to F or a to f; found {found}"
                )));
            };
            self.play_one(&name.to_cow()?)?;
        }
        Ok(())
    }

    /// Takes the last move back, and returns it. Raises IndexError if there is none.
    ///
    /// >>> game = awari.Game.parse("F f")
    /// >>> game.take_back(), game.moves
    /// ('f', ['F'])
    fn take_back(&mut self) -> PyResult<String> {
        let turn = self.transcript.game.take_back();
        turn.map(|turn| turn.text().to_string())
            .ok_or_else(|| pyo3::exceptions::PyIndexError::new_err("the game has no move to take back"))
    }

    /// Returns the legal moves, "A" to "F" of South or "a" to "f" of North; none once the game is over.
    ///
    /// >>> awari.Game.parse("F").legal_moves()
    /// ['a', 'b', 'c', 'd', 'e', 'f']
    fn legal_moves(&self) -> Vec<String> {
        let side = self.game().now().seats.side;
        self.game().moves().iter().map(|&(pit, _)| MoveText { pit, side }.to_string()).collect()
    }

    /// The name of the rules.
    #[getter]
    fn rules(&self) -> &'static str {
        self.game().rules().name
    }

    /// The tags, a new dict of texts by name. It can be set, except for FEN and Variant, which follow from the game.
    #[getter]
    fn tags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tags = PyDict::new(py);
        self.transcript.tags.iter().try_for_each(|(name, value)| tags.set_item(name, value))?;
        Ok(tags)
    }

    #[setter]
    fn set_tags(&mut self, tags: &Bound<'_, PyDict>) -> PyResult<()> {
        let tags: Vec<(String, String)> =
            tags.iter().map(|(name, value)| Ok((name.extract()?, value.extract()?))).collect::<PyResult<_>>()?;
        let is_name =
            |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        for (name, value) in &tags {
            let is_of_other_rules = name == "Variant" && variant(value).as_ref() != Some(self.game().rules());
            if !is_name(name) || name == "FEN" || is_of_other_rules || value.contains(['\n', '\r']) {
                let expected = "expected names of letters, digits and _, values of one line, no FEN, and no Variant of other rules";
                return Err(PyValueError::new_err(format!("tags: {expected}; found {name:?}: {value:?}")));
            }
        }
        self.transcript.tags = tags;
        Ok(())
    }

    /// The moves, "A" to "F" of South and "a" to "f" of North.
    #[getter]
    fn moves(&self) -> Vec<String> {
        self.game().turns().iter().map(|turn| turn.text().to_string()).collect()
    }

    /// The present position, seen from the player to move.
    #[getter]
    fn position(&self) -> RulePosition {
        self.seen(&self.game().now())
    }

    /// The positions, the start first and the present one last, each seen from its player to move.
    #[getter]
    fn positions(&self) -> Vec<RulePosition> {
        let after = self.game().turns().iter().map(|turn| self.seen(&turn.after));
        std::iter::once(self.seen(&self.game().start())).chain(after).collect()
    }

    /// The player to move, "South" or "North".
    #[getter]
    fn side(&self) -> &'static str {
        side_name(self.game().now().seats.side)
    }

    /// The stones that South and North have captured.
    #[getter]
    fn stores(&self) -> (u8, u8) {
        stores(&self.game().now())
    }

    /// The result in words, such as "South wins 33 to 15"; None while the game is not over. A repeated
    /// position ends the game, as does a player who cannot move.
    ///
    /// >>> awari.Game("0-0-0-0-0-0-1-1-0-0-0-1-20-25-S").result
    /// 'North wins 28 to 20'
    #[getter]
    fn result(&self) -> Option<String> {
        self.game().result_text()
    }

    /// The stones that South and North have at the end, with those that remain on the board; None while the
    /// game is not over.
    #[getter]
    fn final_stores(&self) -> Option<(f64, f64)> {
        let [south, north] = self.game().final_shares()?.map(|share| share.stones());
        Some((south, north))
    }

    /// The number of moves.
    fn __len__(&self) -> usize {
        self.game().turns().len()
    }

    /// Steps through the moves.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let before = std::iter::once(self.game().start()).chain(self.game().turns().iter().map(|turn| turn.after));
        let turns: Vec<Turn> =
            self.game().turns().iter().zip(before).map(|(turn, before)| self.turn(turn, &before)).collect();
        turns.into_pyobject(py)?.try_iter()
    }

    /// A game without moves is one, too.
    fn __bool__(&self) -> bool {
        true
    }

    fn __str__(&self) -> String {
        self.text().trim_end().to_owned()
    }

    fn __repr__(&self) -> String {
        let result = self.result().unwrap_or_else(|| format!("{} to move", self.side()));
        format!("<awari.Game of {} moves by the rules {}: {result}>", self.__len__(), self.rules())
    }

    fn _repr_html_(&self) -> String {
        let (south, north) = self.stores();
        let state = self.result().unwrap_or_else(|| format!("{} to move", self.side()));
        format!("{}<p>South {south}, North {north}; {state}</p>", crate::rules::board_html(&self.position().position))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("_restored")?, (slf.borrow().transcript.text(),)))
    }

    /// Makes a pickled game again.
    #[staticmethod]
    fn _restored(text: &str) -> PyResult<PlayedGame> {
        let mut games = PlayedGame::parse_all(text)?;
        Ok(games.pop().unwrap_or_else(|| PlayedGame { transcript: Transcript::empty(Rules::AWARI) }))
    }
}

impl PlayedGame {
    fn game(&self) -> &Game {
        &self.transcript.game
    }

    fn play_one(&mut self, name: &str) -> PyResult<()> {
        let refused =
            |why: String| PyValueError::new_err(format!("move {}, {name}: {why}", self.game().turns().len() + 1));
        if let Some(result) = self.result() {
            return Err(refused(format!("the game is over: {result}")));
        }
        let side = self.game().now().seats.side;
        let found: MoveText = name.parse().map_err(|error| refused(format!("{error}")))?;
        if side == Side::South && found.side == Side::North {
            return Err(refused("South is to move, with pits A to F".to_owned()));
        }
        let played = self.transcript.game.clone().play(found.pit);
        played.map_err(|illegal| refused(illegal.to_string()))?;
        let _ = self.transcript.game.play(found.pit);
        Ok(())
    }

    /// Returns the present position and those before it since the last capture, for a search by some rules.
    pub(crate) fn searched(&self, rules: &Rules) -> PyResult<(Position, Vec<Position>)> {
        arguments::check_rules(self.game().rules(), rules)?;
        let before = self.game().positions_since_capture();
        Ok((position(&self.game().now().board), before.iter().map(position).collect()))
    }

    fn seen(&self, situation: &Situation) -> RulePosition {
        RulePosition { position: position(&situation.board), rules: *self.game().rules() }
    }

    fn turn(&self, turn: &GameTurn, before: &Situation) -> Turn {
        Turn {
            side: side_name(turn.side),
            r#move: turn.text().to_string(),
            sown: turn.sown,
            captured: turn.captured,
            before: self.seen(before),
            after: self.seen(&turn.after),
            stores: stores(&turn.after),
        }
    }
}

fn stores(situation: &Situation) -> (u8, u8) {
    (situation.seats.south_store, situation.seats.north_store)
}

/// Returns a board as a position.
pub(crate) fn position(board: &game::Board) -> Position {
    Position::new(board.0).expect("a board has at most as many stones as a position")
}

/// Returns a position as a board.
pub(crate) fn board(position: &Position) -> game::Board {
    game::Board(position.pits())
}
