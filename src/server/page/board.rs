//! The board: South's pits below, North's above. Legal moves are links.

use super::{PageState, worth};
use crate::probe::category;
use game::Pit;
use game::notation::{MoveText, Seats, Side};
use maud::{Markup, html};
use oracle::Answer;

/// Renders the board of a game, with the values of known moves.
pub(super) fn board(shown: &PageState, known: Option<&Answer>) -> Markup {
    let now = shown.game.now();
    let Seats { south_store, north_store, side } = now.seats;
    let moves = shown.game.moves();
    let pit = |owner: Side, pit: Pit| {
        let half = if owner == side { now.board.mover() } else { now.board.opponent() };
        let label = MoveText { pit, side: owner }.to_string();
        let played = moves.iter().any(|(one, _)| owner == side && *one == pit);
        let value = known.filter(|_| owner == side).and_then(|answer| answer.moves.iter().find(|one| one.pit == pit));
        let inside = html! {
            span.name { (label) }
            span.stones { (half[pit.number()]) }
            span.value { @if let Some(one) = value { (worth(one.value)) } }
        };
        let class = match value {
            Some(one) => format!("pit {}{}", category(one.value), if one.is_best { " best" } else { "" }),
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
            div class={ "store " (class) (moves) } { span.name { (name) } span.stones { (held) } }
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
