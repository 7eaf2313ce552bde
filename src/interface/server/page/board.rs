//! The board: South's pits below, North's above. Legal moves are links. `board.js` draws the same.

use super::{PageState, worth_or_estimate};
use crate::probe::{best_first, category};
use game::notation::{MoveText, Seats, Side};
use game::{HALF_PITS, Pit};
use maud::{Markup, html};
use oracle::Answer;
use std::f64::consts::PI;

/// Renders the board of a game, with the values of known moves.
pub(super) fn board(shown: &PageState, known: Option<&Answer>) -> Markup {
    let now = shown.game.now();
    let Seats { south_store, north_store, side } = now.seats;
    let moves = shown.game.moves();
    let first = known.and_then(|answer| best_first(answer).first().map(|one| one.pit));
    let pit = |owner: Side, pit: Pit| {
        let half = if owner == side { now.board.mover() } else { now.board.opponent() };
        let label = MoveText { pit, side: owner }.to_string();
        let played = moves.iter().any(|(one, _)| owner == side && *one == pit);
        let value = known.filter(|_| owner == side).and_then(|answer| answer.moves.iter().find(|one| one.pit == pit));
        let inside = html! {
            span.name { (label) }
            span.stones { (half[pit.number()]) }
            (seeds(half[pit.number()], pit.number() + if owner == Side::South { 0 } else { HALF_PITS }))
            span.value { @if let Some(one) = value { (worth_or_estimate(one)) } }
        };
        let class = match value {
            Some(one) => {
                let estimated = if one.estimate.is_some() { " estimated" } else { "" };
                let best = if one.is_best || one.estimate.is_some() && first == Some(pit) { " best" } else { "" };
                format!("pit {}{best}{estimated}", category(one.value))
            }
            None => "pit".to_owned(),
        };
        html! {
            @if played {
                a class=(class) href=(shown.address_after(&label)) { (inside) }
            } @else {
                div class=(class) { (inside) }
            }
        }
    };
    let store = |owner: Side, class: &str, name: &str, held: u8| {
        let moves = if owner == side && shown.game.outcome().is_none() { " moves" } else { "" };
        html! {
            div class={ "store " (class) (moves) } {
                span.name { (name) } span.stones { (held) } (seeds(held, if owner == Side::South { 12 } else { 13 }))
            }
        }
    };
    html! {
        div.board id="board" {
            (store(Side::North, "north", "North", north_store))
            div.row.north { @for at in Pit::ALL.into_iter().rev() { (pit(Side::North, at)) } }
            div.row.south { @for at in Pit::ALL { (pit(Side::South, at)) } }
            (store(Side::South, "south", "South", south_store))
        }
    }
}

/// Draws seeds in a spiral, each turned by the golden angle against the one before, as in a sunflower: none hides another.
fn seeds(number: u8, turn: usize) -> Markup {
    let golden = PI * (3.0 - 5.0_f64.sqrt());
    let spread = (48.0 / (f64::from(number).sqrt() + 0.8)).min(13.0);
    let place = |seed: u8| {
        let distance = if number == 1 { 0.0 } else { spread * (f64::from(seed) + 0.5).sqrt() };
        let angle = turn as f64 + f64::from(seed) * golden;
        (distance * angle.cos(), distance * angle.sin())
    };
    html! {
        svg.seeds viewBox="-50 -50 100 100" aria-hidden="true" {
            @for (x, y) in (0..number).map(place) {
                circle cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r=(format!("{:.1}", 0.8 * spread)) {}
            }
        }
    }
}
