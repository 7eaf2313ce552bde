//! `awari probe`: shows the score of a position and the value of each move.

use crate::args::ProbeArgs;
use crate::error::Result;
use crate::files::databases::oracle;
use crate::games::analysis::{self, Analyst, proved};
use crate::output::{print_json, print_text};
use crate::text::quantity::{self, plural};
use crate::text::screen::Width;
use crate::text::table::TextTable;
use disk::RealDisk;
use game::notation::{MoveText, PositionText, Side};
use game::transcript::side_name;
use game::{HALF_PITS, Illegal, Pit, RestOwner, Rules};
use oracle::{Answer, AnswerSource, Bounds, LineEnd, Oracle, PrincipalLine};
use pipeline::Exit;
use search::{SearchReport, SearchedMove};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// The most moves of the principal line.
const LINE_MOVES_MAX: usize = 40;

/// The time to search a position, if no limit is given.
const TIME_DEFAULT: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &ProbeArgs) -> Result<Exit> {
    let position: PositionText = args.pits.join(" ").parse()?;
    let oracle = oracle(&RealDisk::default(), &args.library)?;
    let analyst = Analyst::new(oracle, args.library.dir.as_deref(), &args.search, TIME_DEFAULT)?;
    if !analyst.holds(&position.board()) {
        let report = analyst.analyze(position.board(), &[], HALF_PITS)?;
        let rules = analyst.oracle.rules();
        return if args.json {
            print_json(&ProbeReply::of_search(rules, &position, &report))
        } else {
            print_text(&searched_text(rules, &position, &report))
        }
        .map(|()| analyst.exit());
    }
    let oracle = analyst.oracle;
    let answer = oracle.answer(&position.board())?;
    let line = line(&oracle, &position)?;
    if args.json {
        print_json(&ProbeReply::new(&position, &answer, line))?;
    } else {
        print_text(&(text(&position, &answer, oracle.rules().has_scores()) + &format!("\nline   {line}\n")))?;
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
    /// In stones, not proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<SearchEffort>,
}

/// What a search has done.
#[derive(Serialize)]
struct SearchEffort {
    depth: u32,
    nodes: u64,
    probes: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct LegalMove {
    pit: String,
    captures: u8,
    value: PositionValue,
    best: bool,
    /// In stones, not proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<f64>,
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
        let moves = answer.moves.iter().map(|valued| LegalMove {
            pit: name(valued.pit),
            captures: valued.captured,
            value: valued.value.into(),
            best: valued.is_best,
            estimate: None,
        });
        let illegal = answer
            .illegal
            .iter()
            .map(|forbidden| ForbiddenMove { pit: name(forbidden.pit), reason: reason(forbidden.reason) });
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
            estimate: None,
            search: None,
        }
    }

    fn of_search(rules: &Rules, position: &PositionText, report: &SearchReport) -> ProbeReply {
        let stones = |hundredths: i32| Some(f64::from(hundredths) / 100.0);
        let is_best = proved_best(report);
        let mut moves: Vec<(Pit, LegalMove)> = Vec::new();
        for searched in &report.moves {
            let legal = LegalMove {
                pit: pit_name(searched.pit, position.side()),
                captures: searched.captured,
                value: Bounds::new(searched.low, searched.high).into(),
                best: is_best(searched),
                estimate: stones(searched.estimated_hundredths()),
            };
            moves.push((searched.pit, legal));
        }
        moves.sort_by_key(|(pit, _)| pit.number());
        let illegal = illegal_moves(rules, position);
        ProbeReply {
            position: position.to_string(),
            stones: position.board().stones(),
            score: proved(report).into(),
            source: "search",
            moves: moves.into_iter().map(|(_, legal)| legal).collect(),
            illegal: illegal
                .map(|(pit, why)| ForbiddenMove { pit: pit_name(pit, position.side()), reason: reason(why) })
                .collect(),
            line: searched_line(rules, position, report),
            estimate: stones(report.estimate),
            search: Some(SearchEffort {
                depth: report.depth,
                nodes: report.nodes,
                probes: report.probes,
                seconds: report.time.as_secs_f64(),
            }),
        }
    }
}

/// Returns whether no other move of a report can have a higher value.
fn proved_best(report: &SearchReport) -> impl Fn(&SearchedMove) -> bool {
    |searched| report.moves.iter().all(|other| other.pit == searched.pit || searched.low >= other.high)
}

fn illegal_moves(rules: &Rules, position: &PositionText) -> impl Iterator<Item = (Pit, Illegal)> {
    let board = position.board();
    Pit::ALL.into_iter().filter_map(move |pit| Some((pit, board.play(rules, pit).err()?)))
}

/// Describes a position that was searched: what is proved, and what is estimated.
pub(crate) fn searched_text(rules: &Rules, position: &PositionText, report: &SearchReport) -> String {
    let mut text = board(position);
    let stones = plural(u64::from(position.board().stones()), "stone");
    let _ = if report.is_exact() {
        writeln!(text, "\nscore {} of {stones}, proved by a search", proved(report))
    } else {
        let bounds = proved(report);
        let is_proved = analysis::is_something_proved(bounds, position.board().stones());
        let proved = if is_proved { format!(", proved {bounds}") } else { String::new() };
        writeln!(text, "\nestimate {} of {stones}{proved}", analysis::stones(report.estimate))
    };
    let _ = writeln!(
        text,
        "searched {} to depth {} in {}\n",
        plural(report.nodes, "position"),
        report.depth,
        quantity::time(report.time.as_secs_f64())
    );
    let is_proved = |bounds: Bounds| analysis::is_something_proved(bounds, position.board().stones());
    let mut table = TextTable::new(&["move", "captures", "proved", "estimate", ""]).numbers([1, 2, 3]);
    let is_best = proved_best(report);
    let mut moves: Vec<(usize, &SearchedMove)> = report.moves.iter().enumerate().collect();
    moves.sort_by_key(|(_, searched)| searched.pit.number());
    for (place, searched) in moves {
        let bounds = Bounds::new(searched.low, searched.high);
        table.add_row([
            pit_name(searched.pit, position.side()),
            searched.captured.to_string(),
            if is_proved(bounds) { bounds.to_string() } else { String::new() },
            if bounds.score().is_some() { String::new() } else { analysis::stones(searched.estimated_hundredths()) },
            match (is_best(searched), place) {
                (true, _) => "best, proved",
                (false, 0) => "best, estimated",
                _ => "",
            }
            .to_owned(),
        ]);
    }
    let _ = writeln!(text, "{}", table.fit(Width::stdout()));
    for (pit, why) in illegal_moves(rules, position) {
        let _ = writeln!(text, " {}  illegal: {}", pit_name(pit, position.side()), reason(why));
    }
    let _ = writeln!(text, "\nline   {}", searched_line(rules, position, report));
    text
}

/// Formats the expected line of a search: `F4 a1 E5x2 ...`.
pub(crate) fn searched_line(rules: &Rules, position: &PositionText, report: &SearchReport) -> String {
    let (mut side, mut board) = (position.side(), position.board());
    let mut words = Vec::new();
    for &pit in report.moves.first().map_or(&[][..], |best| &best.line) {
        let Ok(played) = board.play(rules, pit) else { break };
        words.push(move_name(pit, side, board.0[pit.number()], played.captured));
        (side, board) = (side.other(), played.child);
    }
    words.push("...".to_owned());
    words.join(" ")
}

/// Formats a move with the stones that it sows and captures: `E5x2`.
fn move_name(pit: Pit, side: Side, sown: u8, captured: u8) -> String {
    let captured = if captured > 0 { format!("x{captured}") } else { String::new() };
    format!("{}{sown}{captured}", pit_name(pit, side))
}

pub(crate) fn text(position: &PositionText, answer: &Answer, has_scores: bool) -> String {
    let mut text = board(position);
    let origin = match answer.source {
        AnswerSource::Database => "",
        AnswerSource::Children => ", derived from its children: the databases hold reachable positions only",
        AnswerSource::Rules => ", by the rules: the player to move has no move",
        AnswerSource::Search => ", bounds found by a search: there is no database for this number of stones",
    };
    let stones = plural(u64::from(answer.board.stones()), "stone");
    let _ = match (has_scores, answer.score.score()) {
        (false, None) if answer.source != AnswerSource::Search => writeln!(
            text,
            "\nbounds {} of {stones}{origin}: the first the player to move can force, to the second the opponent can hold \
             this player\n",
            answer.score
        ),
        _ => writeln!(text, "\nscore {} of {stones}{origin}\n", answer.score),
    };
    let mut table = TextTable::new(&["move", "captures", "value", ""]).numbers([1, 2]);
    for valued in &answer.moves {
        table.add_row([
            pit_name(valued.pit, position.side()),
            valued.captured.to_string(),
            valued.value.to_string(),
            if valued.is_best { "best".to_owned() } else { String::new() },
        ]);
    }
    if !answer.moves.is_empty() {
        let _ = writeln!(text, "{}", table.fit(Width::stdout()));
    }
    for forbidden in &answer.illegal {
        let _ = writeln!(text, " {}  illegal: {}", pit_name(forbidden.pit, position.side()), reason(forbidden.reason));
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
    for valued in &moves {
        words.push(move_name(valued.pit, side, board.0[valued.pit.number()], valued.captured));
        (side, board) = (side.other(), valued.child);
    }
    words.push(match end {
        LineEnd::Over => {
            let rest = match oracle.rules().rest {
                RestOwner::Opponent => format!("the opponent takes {}", board.stones()),
                RestOwner::OwnSide => "each player gets the stones on the own side".to_owned(),
            };
            format!("; {} cannot move, {rest}", side_name(side))
        }
        LineEnd::Repeats { from } => {
            let rest = if oracle.rules().has_scores() {
                "the remaining stones are shared"
            } else {
                "each player gets the stones on the own side"
            };
            format!("; the position before move {} is repeated: {rest}", from + 1)
        }
        LineEnd::CutOff => "...".to_owned(),
        LineEnd::Unknown if oracle.stones().any(|stones| stones == board.stones()) => {
            "; here the board has two bounds".to_owned()
        }
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
        Illegal::Starves(_) => "it would leave the opponent without stones",
        Illegal::Slam(_) => "it would capture all of the opponent's stones",
    }
}
