//! The details below the board: principal line, table of moves and histogram of scores. Each is an element with an id,
//! which the script copies.

use super::{PageState, estimated, is_something_proved, signed, stones, worth};
use crate::catalogue::ScoreCount;
use crate::probe::{SLAM, STARVES, ScoreValue, best_first, category, loss};
use crate::site::Site;
use game::notation::{MoveText, Side};
use game::quantity::plural;
use game::{Illegal, Score};
use maud::{Markup, html};
use oracle::{Answer, LineEnd, PrincipalLine, ValuedMove};
use std::sync::Arc;

/// The largest number of moves of a line.
const LINE_MOVES_MAX: usize = 40;

/// Width of a bar with its margin, and height of the longest bar, in drawing units.
const BAR: usize = 10;
const HEIGHT: f64 = 100.0;

/// The details of a position.
#[derive(Debug)]
pub(super) struct Details<'a> {
    pub(super) answer: &'a Answer,
    line: Option<PrincipalLine>,
    histogram: &'a [ScoreCount],
}

impl Details<'_> {
    /// Loads the details of an answer.
    pub(super) async fn of<'a>(site: &'a Arc<Site>, answer: &'a Answer) -> Details<'a> {
        let line = if has_line(answer) { site.line(answer.board, LINE_MOVES_MAX).await } else { None };
        Details { answer, line, histogram: site.histogram(answer.board.stones()).unwrap_or_default() }
    }

    /// Whether all details are present; some are omitted if they take too long.
    pub(super) fn is_whole(&self) -> bool {
        self.line.is_some() || !has_line(self.answer)
    }

    /// Renders the principal line, each move a link to the position after it.
    pub(super) fn line(&self, shown: &PageState) -> Markup {
        let Some(line) = self.line.as_ref().filter(|line| !line.moves.is_empty()) else { return html! {} };
        let mut side = shown.game.now().seats.side;
        let mut letters = String::new();
        let steps = line.moves.iter().map(|valued| {
            let name = MoveText { pit: valued.pit, side };
            side = side.other();
            letters += &name.to_string();
            (name, valued.captured, letters.clone())
        });
        html! {
            p.line id="line" {
                "Best play: "
                @for (name, captured, letters) in steps {
                    a href=(shown.address_after(&letters)) data-moves=(letters) {
                        (name) @if captured > 0 { "×" (captured) }
                    }
                    " "
                }
                @match line.end {
                    LineEnd::Over => "and the game is over",
                    LineEnd::Repeats { .. } => "and round again",
                    LineEnd::CutOff | LineEnd::Unknown => "…",
                }
            }
        }
    }

    /// Renders the table of moves, best first, and the illegal moves of pits with stones.
    pub(super) fn moves(&self, shown: &PageState) -> Markup {
        let answer = self.answer;
        let side = shown.game.now().seats.side;
        if answer.moves.is_empty() {
            return html! {};
        }
        let has_estimates = answer.moves.iter().any(|valued| valued.estimate.is_some());
        let is_proved = |valued: &&ValuedMove| is_something_proved(valued.value, answer.board.stones());
        let has_proofs = !has_estimates || answer.moves.iter().any(|valued| is_proved(&valued));
        let lost = |value: ScoreValue| match value {
            ScoreValue::Exact(value) => value.to_string(),
            ScoreValue::Between { lo, hi } => format!("{lo} to {hi}"),
        };
        html! {
            table id="moves" {
                caption { "Moves, the best first" }
                thead {
                    tr {
                        th scope="col" { "Pit" }
                        @if has_proofs { th scope="col" { @if has_estimates { "Proved" } @else { "Value" } } }
                        @if has_estimates { th scope="col" { "Estimated" } }
                        th scope="col" { "Captures" }
                        // Of estimated moves, hardly anything is proved.
                        @if !has_estimates { th scope="col" { "Gives away" } }
                    }
                }
                tbody {
                    @for valued in best_first(answer) {
                        tr {
                            th scope="row" { (MoveText { pit: valued.pit, side }) }
                            @if has_proofs {
                                td class=(category(valued.value)) {
                                    @if !has_estimates || is_proved(&valued) { (worth(valued.value)) }
                                }
                            }
                            @if has_estimates {
                                td.estimated {
                                    @if let Some(hundredths) = valued.estimate { "≈ " (estimated(hundredths)) }
                                }
                            }
                            td { (valued.captured) }
                            @if !has_estimates { td { (lost(loss(answer.score, valued))) } }
                        }
                    }
                }
                (forbidden(answer, side))
            }
        }
    }

    /// Renders the histogram of scores for the number of stones, with the score of this position outlined.
    pub(super) fn histogram(&self) -> Markup {
        let most = self.histogram.iter().map(|count| count.positions).max().unwrap_or_default();
        let stones_here = self.answer.board.stones();
        // Without stones there is only one position.
        let Some(outer) = Score::try_from(stones_here).ok().filter(|&outer| outer > 0 && most > 0) else {
            return html! {};
        };
        let score = self.answer.score.score();
        let bar = |count: &ScoreCount| {
            let height = (count.positions as f64 / most as f64 * (HEIGHT - 4.0)).max(1.0);
            let left = usize::try_from(i16::from(count.score) + i16::from(outer)).unwrap_or(0) * BAR;
            let tone = match count.score {
                1.. => "win",
                0 => "draw",
                ..0 => "loss",
            };
            html! {
                rect class={ (tone) @if score == Some(count.score) { " now" } } x=(left + 1) width=(BAR - 2)
                    y=(format!("{:.2}", HEIGHT - height)) height=(format!("{height:.2}")) {
                    title { (signed(count.score)) ": " (plural(count.positions, "position")) }
                }
            }
        };
        let all: u64 = self.histogram.iter().map(|count| count.positions).sum();
        let share = |fits: &dyn Fn(Score) -> bool| {
            let fitting: u64 =
                self.histogram.iter().filter(|count| fits(count.score)).map(|count| count.positions).sum();
            format!("{:.1}\u{a0}%", 100.0 * fitting as f64 / all as f64)
        };
        let positions = format!("{} of {}", plural(all, "position"), stones(outer));
        html! {
            figure id="histogram" {
                svg viewBox={ "0 0 " ((2 * usize::from(outer.unsigned_abs()) + 1) * BAR) " " (HEIGHT) }
                    preserveAspectRatio="none" role="img" aria-label={ "How often each score occurs in " (positions) } {
                    @for count in self.histogram { (bar(count)) }
                }
                figcaption {
                    "All " (positions) " by score, " (signed(-outer)) " to " (signed(outer))
                    @if let Some(score) = score {
                        "; " (share(&|other| other == score)) " score " (signed(score)) " like this one (outlined), "
                        (share(&|other| other < score)) " score less"
                    }
                    "."
                }
            }
        }
    }
}

/// Whether there are best moves, and they are known.
fn has_line(answer: &Answer) -> bool {
    answer.score.score().is_some() && !answer.moves.is_empty()
}

fn forbidden(answer: &Answer, side: Side) -> Markup {
    let names = |is_for: fn(&Illegal) -> bool| {
        let moves = answer.illegal.iter().filter(|illegal| is_for(&illegal.reason));
        moves.map(|illegal| MoveText { pit: illegal.pit, side }.to_string()).collect::<Vec<_>>().join(", ")
    };
    let starving = names(|reason| matches!(reason, Illegal::Starves(_)));
    let slams = names(|reason| matches!(reason, Illegal::Slam(_)));
    html! {
        @for (names, reason) in [(starving, STARVES), (slams, SLAM)] {
            @if !names.is_empty() {
                tfoot { tr { td colspan="4" { (names) ": " (reason) } } }
            }
        }
    }
}
