//! `awari probe`: shows the score of a position and the value of each move.

use crate::args::ProbeArgs;
use crate::databases::library;
use crate::error::Result;
use crate::output::{print_json, print_text};
use crate::quantity::plural;
use crate::screen::Width;
use crate::table::TextTable;
use disk::RealDisk;
use game::notation::{MoveText, PositionText, Side};
use game::transcript::side_name;
use game::{Illegal, Pit};
use oracle::{Answer, AnswerSource, Bounds, LineEnd, Oracle, PrincipalLine};
use pipeline::Exit;
use serde::Serialize;
use std::fmt::Write;

/// The cache of decoded blocks; an answer reads a dozen at most.
const CACHE_BYTES_MAX: u64 = 1 << 20;

/// The most moves of the principal line.
const LINE_MOVES_MAX: usize = 40;

pub(crate) fn run(args: &ProbeArgs) -> Result<Exit> {
    let position: PositionText = args.pits.join(" ").parse()?;
    let library = library(&RealDisk::default(), &args.dir)?;
    let oracle = Oracle::new(library, CACHE_BYTES_MAX);
    let answer = oracle.answer(&position.board())?;
    let line = line(&oracle, &position)?;
    if args.json {
        print_json(&ProbeReply::new(&position, &answer, line))?;
    } else {
        print_text(&(text(&position, &answer) + &format!("\nline   {line}\n")))?;
    }
    Ok(Exit::Done)
}

/// The answer as JSON. Fields may be added but never changed.
#[derive(Serialize)]
struct ProbeReply {
    position: String,
    stones: u32,
    score: PositionValue,
    source: &'static str,
    moves: Vec<LegalMove>,
    illegal: Vec<ForbiddenMove>,
    line: String,
}

#[derive(Serialize)]
struct LegalMove {
    pit: String,
    captures: u8,
    value: PositionValue,
    best: bool,
}

#[derive(Serialize)]
struct ForbiddenMove {
    pit: String,
    reason: &'static str,
}

/// A score or its bounds.
#[derive(Serialize)]
#[serde(untagged)]
enum PositionValue {
    Exact(i8),
    Between { lo: i8, hi: i8 },
}

impl From<Bounds> for PositionValue {
    fn from(bounds: Bounds) -> PositionValue {
        match bounds.score() {
            Some(score) => PositionValue::Exact(score),
            None => PositionValue::Between { lo: bounds.low(), hi: bounds.high() },
        }
    }
}

impl ProbeReply {
    fn new(position: &PositionText, answer: &Answer, line: String) -> ProbeReply {
        let name = |pit| pit_name(pit, position.side());
        let moves = answer.moves.iter().map(|one| LegalMove {
            pit: name(one.pit),
            captures: one.captured,
            value: one.value.into(),
            best: one.is_best,
        });
        let illegal = answer.illegal.iter().map(|one| ForbiddenMove { pit: name(one.pit), reason: reason(one.reason) });
        ProbeReply {
            position: position.to_string(),
            stones: answer.board.stones(),
            score: answer.score.into(),
            source: match answer.source {
                AnswerSource::Database => "database",
                AnswerSource::Children => "children",
                AnswerSource::Rules => "rules",
                AnswerSource::Search => "search",
            },
            moves: moves.collect(),
            illegal: illegal.collect(),
            line,
        }
    }
}

pub(crate) fn text(position: &PositionText, answer: &Answer) -> String {
    let mut text = board(position);
    let origin = match answer.source {
        AnswerSource::Database => "",
        AnswerSource::Children => ", derived from its children: the databases hold reachable positions only",
        AnswerSource::Rules => ", by the rules: the player to move has no move",
        AnswerSource::Search => ", bounds found by a search: there is no database for this number of stones",
    };
    let stones = plural(u64::from(answer.board.stones()), "stone");
    let _ = writeln!(text, "\nscore {} of {stones}{origin}\n", answer.score);
    let mut table = TextTable::new(&["move", "captures", "value", ""]).numbers([1, 2]);
    for one in &answer.moves {
        table.add_row([
            pit_name(one.pit, position.side()),
            one.captured.to_string(),
            one.value.to_string(),
            if one.is_best { "best".to_owned() } else { String::new() },
        ]);
    }
    if !answer.moves.is_empty() {
        let _ = writeln!(text, "{}", table.fit(Width::stdout()));
    }
    for one in &answer.illegal {
        let _ = writeln!(text, " {}  illegal: {}", pit_name(one.pit, position.side()), reason(one.reason));
    }
    text
}

/// Draws the board from the side of the player to move.
pub(crate) fn board(position: &PositionText) -> String {
    let board = position.board();
    let (mover, opponent) = (position.side(), position.side().other());
    let row = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>3}")).collect();
        format!("{}\n", cells.concat())
    };
    let names = |side| Pit::ALL.map(|pit| pit_name(pit, side)).to_vec();
    let stones = |half: [u8; 6]| half.map(|stones| stones.to_string()).to_vec();
    let turned = |mut cells: Vec<String>| {
        cells.reverse();
        cells
    };
    [row(turned(names(opponent))), row(turned(stones(board.opponent()))), row(stones(board.mover())), row(names(mover))]
        .concat()
}

/// Formats the principal line and its end: `F4 a1 E5x2 ...`.
pub(crate) fn line(oracle: &Oracle, position: &PositionText) -> Result<String> {
    let PrincipalLine { moves, end } = oracle.line(&position.board(), LINE_MOVES_MAX)?;
    let (mut side, mut board) = (position.side(), position.board());
    let mut words = Vec::new();
    for one in &moves {
        let captured = if one.captured > 0 { format!("x{}", one.captured) } else { String::new() };
        words.push(format!("{}{}{captured}", pit_name(one.pit, side), board.0[one.pit.number()]));
        (side, board) = (side.other(), one.child);
    }
    words.push(match end {
        LineEnd::Over => format!("; {} cannot move, the opponent takes {}", side_name(side), board.stones()),
        LineEnd::Repeats { from } => {
            format!("; the position before move {} is repeated: the remaining stones are shared", from + 1)
        }
        LineEnd::CutOff => "...".to_owned(),
        LineEnd::Unknown => "; here the line leaves the databases".to_owned(),
    });
    Ok(words.join(" ").replace(" ;", ";").trim_start_matches("; ").to_owned())
}

/// Returns the name of a pit: A to F for South, a to f for North.
pub(crate) fn pit_name(pit: Pit, side: Side) -> String {
    MoveText { pit, side }.to_string()
}

fn reason(reason: Illegal) -> &'static str {
    match reason {
        Illegal::Empty(_) => "the pit is empty",
        Illegal::Starves(_) => "it would leave the opponent without stones, and another move does not",
    }
}
