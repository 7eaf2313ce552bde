//! Games read from a table: the graphs of examples, figures and random tests.

use crate::game::{Assessment, BookGame, BookMove, Hundredths};

/// A game given by the successors of each position. Keys are the numbers of positions.
#[derive(Clone, Debug, Default)]
pub struct TableGame {
    successors: Vec<Vec<TableMove>>,
    levels: Vec<u16>,
    value_max: Hundredths,
}

/// A move of a [`TableGame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMove {
    /// The number of the position after the move.
    pub successor: usize,
    /// The gain of the move, 0 in a cycle.
    pub gain: Hundredths,
}

/// A mistake in the table of a game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A line has something else than a position, a colon, and successors.
    #[error("line {line}: expected `position: successor successor+gain ...`, found `{found}`")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The text.
        found: String,
    },
    /// A move of a cycle gains something.
    #[error("the move from {from} to {to} is part of a cycle, and gains {gain}; such moves must gain 0")]
    GainInCycle {
        /// The position of the move.
        from: usize,
        /// Its successor.
        to: usize,
        /// The gain.
        gain: Hundredths,
    },
    /// A successor does not exist, or there are too many positions or moves.
    #[error("position {from}: there is no position {to}; at most 65,535 positions with 255 moves each are possible")]
    Successor {
        /// The position of the move.
        from: usize,
        /// Its successor.
        to: usize,
    },
}

impl TableGame {
    /// Makes a game. No value exceeds `value_max`.
    ///
    /// # Errors
    /// [`TableError`] if a successor does not exist or a move of a cycle gains something.
    pub fn new(successors: Vec<Vec<TableMove>>, value_max: Hundredths) -> Result<TableGame, TableError> {
        let count = successors.len();
        for (from, moves) in successors.iter().enumerate() {
            let missing = moves.iter().find(|table_move| table_move.successor >= count);
            let to = missing.map(|table_move| table_move.successor);
            if let Some(to) = to.or((moves.len() > 255 || count > 65_535).then_some(count)) {
                return Err(TableError::Successor { from, to });
            }
        }
        let levels = levels(&successors);
        for (from, moves) in successors.iter().enumerate() {
            if let Some(table_move) =
                moves.iter().find(|table_move| table_move.gain != 0 && levels[table_move.successor] == levels[from])
            {
                return Err(TableError::GainInCycle { from, to: table_move.successor, gain: table_move.gain });
            }
        }
        Ok(TableGame { successors, levels, value_max })
    }

    /// Reads a game from lines `position: successor successor+gain`. Text after `#` is a comment.
    ///
    /// # Errors
    /// [`TableError`] with the line.
    pub fn parse(text: &str, value_max: Hundredths) -> Result<TableGame, TableError> {
        let mut successors: Vec<Vec<TableMove>> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let parsed = parse_line(line);
            let (from, moves) = parsed.ok_or_else(|| TableError::Line { line: number + 1, found: line.to_owned() })?;
            if from > usize::from(u16::MAX) {
                return Err(TableError::Successor { from, to: from });
            }
            if successors.len() <= from {
                successors.resize(from + 1, Vec::new());
            }
            successors[from] = moves;
        }
        let last = successors.iter().flatten().map(|table_move| table_move.successor).max().unwrap_or(0);
        if last <= usize::from(u16::MAX) && successors.len() <= last {
            successors.resize(last + 1, Vec::new());
        }
        TableGame::new(successors, value_max)
    }

    /// Returns the number of positions.
    pub fn positions(&self) -> usize {
        self.successors.len()
    }

    /// Returns the assessment of a position of which nothing is known but an estimate.
    pub fn unknown(&self, estimate: Hundredths) -> Assessment {
        Assessment { low: -self.value_max, high: self.value_max, estimate }
    }
}

fn parse_line(line: &str) -> Option<(usize, Vec<TableMove>)> {
    let (from, moves) = line.split_once(':')?;
    let parse_move = |word: &str| {
        let (successor, gain) = word.split_once('+').unwrap_or((word, "0"));
        Some(TableMove { successor: successor.parse().ok()?, gain: gain.parse().ok()? })
    };
    Some((from.trim().parse().ok()?, moves.split_whitespace().map(parse_move).collect::<Option<_>>()?))
}

/// Numbers the strongly connected components from the ends of the game upwards (Tarjan 1972, without recursion).
fn levels(successors: &[Vec<TableMove>]) -> Vec<u16> {
    let components = crate::components::components(successors.len(), |node, found| {
        found.extend(successors[node].iter().map(|table_move| table_move.successor));
    });
    let mut levels = vec![0; successors.len()];
    for (number, component) in components.iter().enumerate() {
        component.iter().for_each(|&node| levels[node] = number as u16);
    }
    levels
}

impl BookGame for TableGame {
    fn moves(&self, position: u64, found: &mut Vec<BookMove>) {
        let Some(moves) = self.successors.get(position as usize) else { return };
        let numbered = moves.iter().enumerate();
        found.extend(numbered.map(|(number, table_move)| BookMove {
            number: number as u8,
            gain: table_move.gain,
            successor: table_move.successor as u64,
        }));
    }

    fn level(&self, position: u64) -> u16 {
        self.levels.get(position as usize).copied().unwrap_or(0)
    }

    fn value_max(&self, _: u64) -> Hundredths {
        self.value_max
    }

    fn text(&self, position: u64) -> String {
        position.to_string()
    }

    fn move_text(&self, number: u8) -> String {
        number.to_string()
    }
}
