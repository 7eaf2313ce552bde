//! The page that explains the game by the rules of the site. Its pictures are positions and moves of those rules.

use super::board::picture;
use super::{POLICY, document};
use crate::site::Site;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use game::notation::{MoveText, PositionText};
use game::play::Game;
use game::quantity::plural;
use game::{Pit, RepetitionRule, RestOwner, Rules, Slam};
use maud::{Markup, html};
use std::sync::Arc;

/// F captures from two pits.
const CAPTURE: &str = "0-0-2-0-0-2-1-1-0-0-0-4-18-20-S";

/// A lap of twelve stones passes its own pit.
const LAP: &str = "0-1-0-0-0-12-2-2-0-0-1-0-15-15-S";

/// F captures all of the opponent's stones.
const SLAM: &str = "0-0-0-0-1-1-1-0-0-0-0-0-20-25-S";

/// Only F reaches the opponent, who has no stones.
const FEED: &str = "0-0-0-1-1-3-0-0-0-0-0-0-21-22-S";

/// `GET /how-to-play`.
pub(crate) async fn show(State(site): State<Arc<Site>>) -> impl IntoResponse {
    let rules = site.oracle.rules();
    let text = document(rules, None, &explained(rules)).into_string();
    let html = header::HeaderValue::from_static("text/html; charset=utf-8");
    ([(header::CONTENT_TYPE, html), (header::CONTENT_SECURITY_POLICY, POLICY)], text)
}

fn explained(rules: &Rules) -> Markup {
    let opening = Game::new(*rules).start().text().to_string();
    html! {
        article.how {
            p { a href="./" { "← To the game" } }
            h2 { "How to play " (rules.name) }
            p {
                "Two players, South below and North above, have six pits each, with four stones in every pit. They move in turn. "
                "Captured stones go to the player's store and stay there. The player with more stones at the end wins; 25 are enough."
            }
            h2 { "Sow" }
            p {
                "Choose one of your pits. Its stones are sown one by one into the pits that follow, counter-clockwise: "
                "along your row from left to right, then along the opponent's, and so round. Stones are never sown into a store."
            }
            (example(rules, &opening, 'F', "F sows its four stones into the opponent's pits a to d."))
            p { "A pit of twelve or more stones goes round the board. The pit that it began from is left out, and stays empty." }
            (example(rules, LAP, 'F', "F sows twelve stones: one into each of the eleven other pits, and the last into a again."))
            h2 { "Capture" }
            p {
                "If the last stone falls into a pit of the opponent, and makes two or three stones there, you capture them. "
                "If the pit before it, on the opponent's side, has two or three as well, you capture these too, and so on."
            }
            (example(rules, CAPTURE, 'F', "F sows into a and b. Each then has two stones, and South captures all four."))
            h2 { "All stones of the opponent" }
            p { (slam(rules)) }
            (slam_example(rules))
            h2 { "Feed" }
            p { (feed(rules)) }
            (example(rules, FEED, 'F', "D and E do not reach the opponent, who has no stones: South must play F."))
            h2 { "The end" }
            p {
                @match rules.rest {
                    RestOwner::Opponent => "The game ends when a player cannot move: the opponent gets all stones that remain.",
                    RestOwner::OwnSide => "The game ends when a player cannot move, or cannot feed an opponent without stones: \
                        each player gets the stones of the own row.",
                }
                " "
                @match rules.repetition {
                    RepetitionRule::Split => "It ends, too, when a position comes again: the players share the stones that remain.",
                    RepetitionRule::OwnSide => "It ends, too, when a position comes again: each player gets the stones of the own row.",
                }
            }
            p { "All of it in one sentence: " (rules.text()) "." }
            p { a href="./" { "← To the game" } }
        }
    }
}

fn slam(rules: &Rules) -> &'static str {
    match rules.slam {
        Slam::IllegalUnlessAll => {
            "A move that leaves the opponent no stones, with a capture or without, is not allowed, unless every move does."
        }
        Slam::NoCapture => "A move that would capture all stones of the opponent may be played, but captures nothing.",
        Slam::Capture => "A move may capture all stones of the opponent.",
        Slam::Illegal => "A move that would capture all stones of the opponent is not allowed.",
        Slam::LeaveFirst => {
            "A move that would capture all stones of the opponent leaves those of the pit in which the last stone fell."
        }
        Slam::LeaveLast => {
            "A move that would capture all stones of the opponent leaves those of the pit captured last."
        }
    }
}

fn feed(rules: &Rules) -> &'static str {
    match rules.rest {
        RestOwner::Opponent => "If the opponent has no stones, you must play a move that gives some, if there is one.",
        RestOwner::OwnSide => {
            "If the opponent has no stones, you must play a move that gives some. If there is none, the game is over."
        }
    }
}

fn slam_example(rules: &Rules) -> Markup {
    let game = game(rules, SLAM);
    let pit = pit('F');
    match game.now().board.play(rules, pit) {
        Err(_) => html! {
            figure.example {
                (picture(&game.now(), |side, at| if at == pit && side == game.now().seats.side { "sown" } else { "" }))
                figcaption { "F would make two stones in a, capture them, and leave North none: it is not allowed." }
            }
        },
        Ok(played) => {
            let taken = if played.captured == 0 {
                "captures nothing".to_owned()
            } else {
                format!("captures {}", plural(played.captured.into(), "stone"))
            };
            example(rules, SLAM, 'F', &format!("F makes two stones in a, the only ones of North, and {taken}."))
        }
    }
}

/// Renders a position, and that after a move.
fn example(rules: &Rules, position: &str, name: char, words: &str) -> Markup {
    let mut game = game(rules, position);
    let before = game.now();
    let played = pit(name);
    game.play(played).expect("the moves of the examples are legal by all rules");
    let changed = |place: usize| {
        // South is to move before, North after.
        game.now().board.turned().0[place] != before.board.0[place]
    };
    let sown = |side, at: Pit| if side == before.seats.side && at == played { "sown" } else { "" };
    let changes = |side, at: Pit| {
        let place = at.number() + if side == before.seats.side { 0 } else { game::HALF_PITS };
        if changed(place) { "sown" } else { "" }
    };
    html! {
        figure.example {
            (picture(&before, sown))
            figcaption { (words) }
            (picture(&game.now(), changes))
        }
    }
}

fn game(rules: &Rules, position: &str) -> Game {
    let position: PositionText = position.parse().expect("the positions of the examples are written right");
    Game::from(*rules, &position)
}

fn pit(name: char) -> Pit {
    let text: MoveText = name.to_string().parse().expect("the names of the examples are those of pits");
    text.pit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the page says of its examples is so by all rules.
    #[test]
    fn the_examples_are_right() {
        for rules in Rules::KNOWN {
            let moves = |position| -> Vec<(Pit, u8)> {
                game(&rules, position).moves().into_iter().map(|(pit, played)| (pit, played.captured)).collect()
            };
            assert_eq!(moves(FEED), [(pit('F'), 0)]);
            assert!(moves(CAPTURE).contains(&(pit('F'), 4)) && moves(LAP).contains(&(pit('F'), 0)));
            let slam = game(&rules, SLAM).now().board.play(&rules, pit('F'));
            assert_eq!(slam.is_err(), matches!(rules.slam, Slam::IllegalUnlessAll | Slam::Illegal), "{}", rules.name);
        }
    }
}
