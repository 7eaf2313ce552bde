//! The page on databases of awari, wari and oware: what it says of the rules, and that its moves and ends follow them.

use crate::browser::{Browser, browse_by};
use crate::layout;
use crate::views::worth;
use game::Rules;
use game::notation::{MoveText, PositionText, Seats, Side};
use game::play::{Game, GameEnd};
use serde_json::json;
use tests::Random;

/// Databases of this many stones are served.
const STONES_MAX: u32 = 6;

/// F would capture all of the opponent's stones.
const SLAM: &str = "0-0-0-0-1-1-1-0-0-0-0-0-20-25-S";

/// By oware, moves of this board have two bounds.
const WIDE: &str = "0-0-1-0-0-0-1-0-0-1-0-1-22-22-S";

/// Returns a game of oware that a repetition ends with a winner. No rules but those of ends matter in it.
fn repeated_game() -> Game {
    let mut random = Random::new(5);
    loop {
        let seats = Seats { south_store: 22, north_store: 22, side: Side::South };
        let mut game = Game::from(Rules::OWARE, &PositionText::of_game(random.board(4), seats));
        while game.outcome().is_none() {
            game.play(random.pick(&game.moves()).0).unwrap();
        }
        let outcome = game.outcome().unwrap();
        let is_quiet = game.turns().iter().all(|turn| turn.captured == 0);
        let repeats = |game: &Game| matches!(game.outcome().unwrap().end, GameEnd::Repeats { .. });
        if repeats(&game) && is_quiet && outcome.lead != 0 && game.turns().len() > 4 {
            let others = [Rules::AWARI, Rules::WARI].map(|rules| {
                let mut other = Game::from(rules, &game.start().text());
                game.turns().iter().all(|turn| other.play(turn.pit).is_ok()) && repeats(&other)
            });
            if others == [true; 2] {
                return game;
            }
        }
    }
}

#[test]
fn the_script_follows_all_rules() {
    for rules in &Rules::KNOWN {
        browse_by(rules, 1, follows_the_rules);
    }
}

/// Compares random games, played by the script of the page, with the answers of the server.
async fn follows_the_rules(browser: &Browser<'_>) {
    let mut random = Random::new(3);
    let seats = Seats { south_store: 0, north_store: 0, side: Side::South };
    let starts: Vec<String> = (0..60)
        .map(|number| PositionText::of_game(random.board(1 + number % 48), seats).to_string())
        .chain(["0-0-0-0-0-14-1-1-0-0-0-0-16-16-S".to_owned(), "1-2-3-4-5-24-0-0-0-0-0-9-0-0-N".to_owned()])
        // Some of them are over where the players keep their rows, since no move feeds North.
        .chain(["1-2-0-0-1-0", "1-0-0-0-0-0", "0-1-2-0-0-1"].map(|row| format!("{row}-0-0-0-0-0-0-20-20-S")))
        .collect();
    browser.visit("/").await;
    let found = browser
        .script_later(&format!(
            "(async () => {{
                const rules = await import('/game.js');
                const odd = [];
                let seed = 1, ended = 0;
                for (const start of {}) {{
                    let letters = '', game;
                    while (!(game = rules.replay(rules.read(start), letters)).outcome && letters.length < 80) {{
                        const all = rules.moves(game.positions.at(-1));
                        seed = (seed * 48271) % 2147483647;
                        letters += rules.pitName(all[seed % all.length].pit);
                    }}
                    const body = `[FEN \"${{start}}\"] ${{letters}}`;
                    const read = await (await fetch('/v1/transcript', {{ method: 'POST', body }})).json();
                    const ours = [rules.written(game.positions.at(-1)), game.outcome?.lead, game.outcome && letters.length];
                    const theirs = [read.position, read.over?.lead, read.over && read.over.after];
                    if (String(ours) !== String(theirs)) odd.push([body, ours, theirs, read.message]);
                    if (game.outcome) ended += 1;
                }}
                return [odd, ended];
            }})().then(done)",
            json!(starts)
        ))
        .await;
    assert_eq!(found[0], json!([]));
    assert!(found[1].as_u64().unwrap() > 20, "{found}");
}

fn check_page(rules: &Rules) {
    browse_by(rules, STONES_MAX, async |browser| {
        browser.visit("/").await;
        assert_eq!(browser.text(".badge").await, format!("rules: {}", rules.name));
        let words = browser.text("footer").await;
        assert!(words.contains(&rules.text()), "{words}");
        assert_eq!(words.contains("a board has two numbers"), *rules == Rules::OWARE, "{words}");

        browser.visit(&format!("/?pos={SLAM}")).await;
        assert_eq!(browser.playable().await.contains(&5), *rules != Rules::AWARI);
        if *rules != Rules::AWARI {
            browser.click("[data-place='5']").await;
            let stones: Vec<String> = browser.pits().await.into_iter().map(|(stones, _)| stones).collect();
            assert_eq!(stones.join("-"), "0-0-0-0-1-0-2-0-0-0-0-0");
            assert_eq!(browser.field("moves").await.as_deref(), Some("F"));
        }

        browser.visit(&format!("/?pos={WIDE}")).await;
        let answer = browser.served.json(&format!("/v1/probe?pos={WIDE}"));
        let shown = browser.pits().await;
        for valued in answer["moves"].as_array().unwrap() {
            let place = "ABCDEF".find(valued["pit"].as_str().unwrap()).unwrap();
            assert_eq!(shown[place].1, worth(valued), "{answer}");
        }
        let is_wide = shown.iter().any(|(_, value)| value.contains(" to "));
        assert_eq!(is_wide, *rules == Rules::OWARE, "{shown:?}");

        // The last move of a game, by a click: the scripts of the page find its end.
        let game = repeated_game();
        let letters: String =
            game.turns().iter().map(|turn| MoveText { pit: turn.pit, side: turn.side }.to_string()).collect();
        let (before, last) = letters.split_at(letters.len() - 1);
        browser.visit(&format!("/?pos={}&moves={before}", game.start().text())).await;
        browser.click(&format!("[data-place='{}']", "ABCDEFabcdef".find(last).unwrap())).await;
        let expected = match *rules {
            Rules::OWARE => format!("{}.", game.result_text().unwrap()),
            _ => "a draw, 24 to 24.".to_owned(),
        };
        let shown = browser.text("#banner").await;
        assert!(shown.starts_with("The game is over") && shown.ends_with(&expected), "{shown} {letters}");
        // The server renders the same end.
        let stores = browser.texts(".store .stones").await;
        assert!(
            shown.contains(" to ") && stores.iter().all(|held| shown.contains(held.as_str())),
            "{shown} {stores:?}"
        );
        let page = browser.served.get(&format!("/?pos={}&moves={letters}", game.start().text()));
        assert!(page.contains(&shown) && stores.iter().all(|held| page.contains(held.as_str())), "{shown} {stores:?}");
        browser.reload().await;
        assert_eq!(browser.text("#banner").await, shown);

        // The game is explained by these rules.
        browser.visit_without_scripts("/how-to-play").await;
        let words = browser.text("main").await;
        let sentence = match *rules {
            Rules::AWARI => "leave North none: it is not allowed",
            _ => "the only ones of North, and captures nothing",
        };
        assert!(words.contains(sentence) && words.contains(&rules.text()), "{words}");
        let end =
            if *rules == Rules::OWARE { "each player gets the stones of the own row" } else { "the players share" };
        assert!(words.contains(end), "{words}");
        for width in [320, 1280] {
            let size = json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600 });
            browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
            assert_eq!(browser.script(layout::FAULTS).await, json!([]), "{width} pixels");
        }
    });
}

#[test]
fn awari_is_shown_and_played() {
    check_page(&Rules::AWARI);
}

#[test]
fn wari_is_shown_and_played() {
    check_page(&Rules::WARI);
}

#[test]
fn oware_is_shown_and_played() {
    check_page(&Rules::OWARE);
}
