//! The board: South's pits below, North's above. Legal moves are links. `board.js` draws the same.

use super::{PageState, worth_or_estimate};
use crate::probe::{best_first, category};
use game::notation::{MoveText, Seats, Side};
use game::play::Situation;
use game::{Board, HALF_PITS, Pit};
use maud::{Markup, html};
use oracle::Answer;
use std::f64::consts::PI;

/// Renders the board of a game, with the values of known moves; at the end of the game, with the last stones
/// in the stores.
pub(super) fn board(shown: &PageState, known: Option<&Answer>) -> Markup {
    let mut now = shown.game.now();
    let side = now.seats.side;
    let moves = shown.game.moves();
    let first = known.and_then(|answer| best_first(answer).first().map(|valued| valued.pit));
    let stores = match shown.game.final_shares() {
        Some(shares) => {
            now.board = Board([0; 2 * HALF_PITS]);
            shares.map(|share| (share.whole_stones(), share.to_string()))
        }
        None => stores(&now.seats),
    };
    let pit = |owner: Side, pit: Pit| {
        let label = MoveText { pit, side: owner }.to_string();
        let played = moves.iter().any(|(legal, _)| owner == side && *legal == pit);
        let value =
            known.filter(|_| owner == side).and_then(|answer| answer.moves.iter().find(|valued| valued.pit == pit));
        let inside = html! {
            (pit_inside(&now, owner, pit))
            span.value { @if let Some(valued) = value { (worth_or_estimate(valued)) } }
        };
        let class = match value {
            Some(valued) => {
                let estimated = if valued.estimate.is_some() { " estimated" } else { "" };
                let best = if valued.is_best || valued.estimate.is_some() && first == Some(pit) { " best" } else { "" };
                format!("pit {}{best}{estimated}", category(valued.value))
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
    let mover = shown.game.outcome().is_none().then_some(side);
    html! { div.board id="board" { (places(stores, mover, pit)) } }
}

/// Renders a picture of a position, with marks of some pits: their classes.
pub(super) fn picture(now: &Situation, class: impl Fn(Side, Pit) -> &'static str) -> Markup {
    let pit =
        |owner: Side, pit: Pit| html! { div class={ "pit " (class(owner, pit)) } { (pit_inside(now, owner, pit)) } };
    html! { div.board role="img" aria-label=(now.text()) { (places(stores(&now.seats), None, pit)) } }
}

fn stores(seats: &Seats) -> [(u32, String); 2] {
    [seats.south_store, seats.north_store].map(|held| (held.into(), held.to_string()))
}

/// Renders the places of a board: `stores` has the seeds and the text of South's and North's, `mover` the side to move.
fn places(stores: [(u32, String); 2], mover: Option<Side>, pit: impl Fn(Side, Pit) -> Markup) -> Markup {
    let [south, north] = stores;
    let store = |owner: Side, class: &str, name: &str, (held, text): (u32, String)| {
        let moves = if mover == Some(owner) { " moves" } else { "" };
        html! {
            div class={ "store " (class) (moves) } {
                span.name { (name) } span.stones { (text) } (seeds(held, if owner == Side::South { 12 } else { 13 }))
            }
        }
    };
    html! {
        (store(Side::North, "north", "North", north))
        div.row.north { @for at in Pit::ALL.into_iter().rev() { (pit(Side::North, at)) } }
        div.row.south { @for at in Pit::ALL { (pit(Side::South, at)) } }
        (store(Side::South, "south", "South", south))
    }
}

fn pit_inside(now: &Situation, owner: Side, pit: Pit) -> Markup {
    let half = if owner == now.seats.side { now.board.mover() } else { now.board.opponent() };
    let held = half[pit.number()];
    html! {
        span.name { (MoveText { pit, side: owner }) }
        span.stones { (held) }
        (seeds(held.into(), pit.number() + if owner == Side::South { 0 } else { HALF_PITS }))
    }
}

/// Draws seeds in a spiral, each turned by the golden angle against the one before, as in a sunflower: none
/// hides another.
fn seeds(number: u32, turn: usize) -> Markup {
    let golden = PI * (3.0 - 5.0_f64.sqrt());
    let spread = (48.0 / (f64::from(number).sqrt() + 0.8)).min(13.0);
    let place = |seed: u32| {
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
