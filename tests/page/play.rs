//! Games on the page, from a position to the end, with the mouse and with keys alone.

use crate::browser::{Browser, NINE, STONES_MAX, browse};
use fantoccini::key::Key;
use game::Rules;
use game::play::Game;
use serde_json::json;
use tests::Random;

#[test]
fn positions_are_edited() {
    browse(async |browser| {
        let shows = async |position: &str| assert_eq!(browser.field("pos").await.as_deref(), Some(position));
        browser.visit("/?pos=0-0-0-1-2-3-0-0-0-0-0-0-21-20-S").await;
        browser.click("#edit").await;
        browser.click("[data-place='0']").await;
        shows("1-0-0-1-2-3-0-0-0-0-0-0-21-20-S").await;
        // Now there are 48.
        browser.click("[data-place='7']").await;
        shows("1-0-0-1-2-3-0-0-0-0-0-0-21-20-S").await;
        assert!(browser.text("#banner").await.contains("There are already 48 stones"));
        browser.click_right("[data-place='0']").await;
        browser.click("[data-place='7']").await;
        shows("0-0-0-1-2-3-0-1-0-0-0-0-21-20-S").await;
        browser.click("#editing label:nth-of-type(2)").await;
        browser.click("[data-place='5']").await;
        browser.click("[data-place='12']").await;
        browser.click("[data-place='0']").await;
        assert!(browser.text("#banner").await.contains("There is no stone to remove"));
        shows("0-0-0-1-2-2-0-1-0-0-0-0-20-20-S").await;
        browser.push("Other side to move").await;
        shows("0-0-0-1-2-2-0-1-0-0-0-0-20-20-N").await;
        // Editing is one step in the history of the browser.
        browser.push("Clear").await;
        shows("0-0-0-0-0-0-0-0-0-0-0-0-0-0-S").await;
        browser.back().await;
        shows("0-0-0-1-2-2-0-1-0-0-0-0-20-20-N").await;
        browser.click("#edit").await;
        assert_eq!(browser.field("edit").await, None);
        assert!(browser.pits().await[7].1.ends_with("win") || browser.pits().await[7].1.ends_with("loss"));

        for value in ["0-0-0-0-0-14-1-1-0-0-0-0-16-16-S", "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S"] {
            browser.choose("#preset", value).await;
            shows(value).await;
        }
        for stones in [1, STONES_MAX] {
            browser.choose("#stones", &stones.to_string()).await;
            browser.push("Random position").await;
            // Not what is shown: the only stone may end the game, and then lies in a store.
            let thrown = browser.field("pos").await.unwrap();
            let thrown: u32 = thrown.split('-').take(12).map(|stones| stones.parse::<u32>().unwrap()).sum();
            assert_eq!(thrown, stones);
        }
        browser.fill("#pos", "0 0 1 0 2 1 1 0 2 0 1 1").await;
        browser.push("Set").await;
        shows("0-0-1-0-2-1-1-0-2-0-1-1-0-0-S").await;
        browser.fill("#pos", "0 0 x").await;
        browser.push("Set").await;
        assert!(browser.text("#pos-said").await.starts_with("Invalid position: "));
        let invalid = browser.script("return document.getElementById('pos').getAttribute('aria-invalid')").await;
        assert_eq!(invalid, "true");
        assert_eq!(browser.script("return document.getElementById('pos').value").await, "0 0 x");
    });
}

#[test]
fn games_are_played_to_their_end() {
    browse(async |browser| {
        let mut random = Random::new(2);
        let score = browser.served.json(&format!("/v1/probe?pos={NINE}"))["score"].as_i64().unwrap();
        for level in ["beginner", "strong", "perfect"] {
            browser.visit(&format!("/?pos={NINE}")).await;
            browser.begin_game("N", level, "here").await;
            let start = Game::from(Rules::AWARI, &NINE.parse().unwrap());
            let game = browser.played_game(start, &mut random, level).await;
            let lead = game.outcome().unwrap().lead;
            // South began with a stone less in store.
            assert!(level != "perfect" || i64::from(lead) < score, "perfect play gave away {lead} for {score}");
        }
        // The computer plays both sides.
        browser.visit("/?pos=0-0-0-0-0-2-1-1-0-0-0-1-20-23-S&computer=both&level=perfect").await;
        browser.until("document.getElementById('banner').textContent.startsWith('The game is over')").await;
    });
}

#[test]
fn the_address_holds_the_whole_state() {
    browse(async |browser| {
        browser.visit(&format!("/?pos={NINE}&computer=N&level=strong")).await;
        for _ in 0..2 {
            browser.click("[data-place].pit:not([aria-disabled])").await;
        }
        let played = browser.field("moves").await.unwrap();
        assert_eq!(played.len(), 4);
        let all = browser.snapshot().await;
        browser.reload().await;
        assert_eq!(browser.snapshot().await, all);
        // Undo takes back the moves of the computer and the user, and keeps the later ones.
        browser.push("← Back").await;
        browser.push("← Back").await;
        assert_eq!(browser.field("at").await.as_deref(), Some("2"));
        let before = browser.snapshot().await;
        assert_ne!(before, all);
        browser.reload().await;
        assert_eq!(browser.snapshot().await, before);
        browser.push("Forward →").await;
        browser.push("Forward →").await;
        assert_eq!(browser.snapshot().await, all);
        browser.push("Start").await;
        assert_eq!(browser.field("at").await.as_deref(), Some("0"));
        browser.click("#history [data-step='2']").await;
        assert_eq!(browser.snapshot().await, before);
        // A different move drops the later ones, and the computer answers it.
        let others = browser.playable().await;
        let other = others.iter().find(|&&pit| played[2..3] != "ABCDEF"[pit as usize..][..1]).unwrap();
        browser.click(&format!("[data-place='{other}']")).await;
        let again = browser.field("moves").await.unwrap();
        assert!(again.len() == 4 && again[..2] == played[..2] && again[2..3] != played[2..3], "{played} {again}");
        // A move and its answer are one step in the history of the browser.
        browser.back().await;
        assert_eq!(browser.snapshot().await, before);
        // While a person plays the computer, values are hidden, and appear nowhere.
        let hidden_words = async || {
            let shown = browser
                .script("return document.getElementById('main').innerText + document.getElementById('board').innerHTML")
                .await;
            let shown = shown.as_str().unwrap().to_owned();
            ["win", "loss", "draw", "best\"", "Best play"].iter().all(|word| !shown.contains(word))
        };
        assert!(hidden_words().await);
        for checkbox in ["#hide", "#edit"] {
            browser.click(checkbox).await;
            let all = browser.snapshot().await;
            browser.reload().await;
            assert_eq!(browser.snapshot().await, all);
        }
        assert_eq!(browser.field("hide").await.as_deref(), Some("0"));
        browser.click("#edit").await;
        assert!(!hidden_words().await);
        browser.click("#hide").await;
        assert!(hidden_words().await);
        // A mistyped address shows a page with an error.
        for (address, part) in [
            ("/?pos=1-2-3", "expected 12 or 15 parts"),
            ("/?pos=4-4-4-4-4-4-4-4-4-4-4-4-0-0-S&moves=Fx", "move 2, x"),
            ("/?pos=40-40-4-4-4-4-4-4-4-4-4-4-0-0-S", "at most 48"),
        ] {
            browser.visit(address).await;
            assert!(browser.text("#banner").await.contains(part), "{address}: {}", browser.text("#banner").await);
            browser.click("[data-place='3']").await;
            assert_eq!(browser.field("moves").await.as_deref(), Some("D"));
        }
        // A key held down shows the last position.
        let line = browser.served.json(&format!("/v1/mainline?pos={NINE}"));
        let letters: String =
            line["moves"].as_array().unwrap().iter().map(|valued| valued["pit"].as_str().unwrap()).collect();
        browser.visit(&format!("/?pos={NINE}&moves={letters}")).await;
        let all = browser.snapshot().await;
        browser.press_key(Key::Home).await;
        browser.press(&char::from(Key::Right).to_string().repeat(letters.len())).await;
        assert_eq!(browser.snapshot().await, all);
        browser.back().await;
        assert_eq!(browser.snapshot().await, all);
        browser.visit(&format!("/?pos={NINE}&at=many&computer=everybody&level=9&more=1")).await;
        assert!(browser.text("#banner").await.starts_with("South to move"));
    });
}

#[test]
fn keys_alone_suffice() {
    browse(async |browser| {
        browser.visit(&format!("/?pos={NINE}")).await;
        // The Tab key reaches every control, with a visible focus.
        let all = browser
            .script(
                "return [...document.querySelectorAll('a[href], button:not(:disabled), input, select, summary, textarea')]
                    .filter((one) => one.checkVisibility() && !(one.type === 'radio' && !one.checked)).length",
            )
            .await;
        let focused = "const one = document.activeElement;
            one.dataset.met = 1;
            return [one.matches(':focus-visible'), getComputedStyle(one).outlineStyle, one.outerHTML]";
        for _ in 0..all.as_u64().unwrap() {
            browser.press_key(Key::Tab).await;
            let seen = browser.script(focused).await;
            assert!(seen[0] == true && seen[1] != "none", "{seen}");
        }
        let met = browser.script("return document.querySelectorAll('[data-met]').length").await;
        assert_eq!(met, all);

        browser.visit(&format!("/?pos={NINE}")).await;
        browser.press("3").await;
        assert_eq!(browser.field("moves").await.as_deref(), Some("C"));
        browser.press(" ").await;
        assert_eq!(browser.field("moves").await.unwrap().len(), 2);
        browser.press_key(Key::Left).await;
        assert_eq!(browser.field("at").await.as_deref(), Some("1"));
        browser.press_key(Key::Right).await;
        assert_eq!(browser.field("at").await, None);
        browser.press_key(Key::Home).await;
        assert_eq!(browser.field("at").await.as_deref(), Some("0"));
        browser.press("2").await;
        assert!(browser.text("#banner").await.starts_with("B is empty."));
        browser.press("h").await;
        assert_eq!(browser.field("hide").await.as_deref(), Some("1"));
        browser.press("he").await;
        assert_eq!(browser.field("edit").await.as_deref(), Some("1"));
        browser.press("11").await;
        assert_eq!(browser.field("pos").await.as_deref(), Some(NINE));
        assert!(browser.text("#banner").await.contains("There are already 48 stones"));
        // The pit with the focus takes and gives.
        reach(browser, "document.activeElement.dataset.place === '2'").await;
        browser.press("-").await;
        assert_eq!(browser.field("pos").await.as_deref(), Some("2-0-0-1-2-0-1-0-0-0-1-1-19-20-S"));
        browser.press("1e").await;
        assert_eq!(browser.field("pos").await.as_deref(), Some("3-0-0-1-2-0-1-0-0-0-1-1-19-20-S"));
        // A pit is a button, and keeps the focus.
        reach(browser, "document.activeElement.dataset.place === '4'").await;
        browser.press_key(Key::Enter).await;
        assert_eq!(browser.field("moves").await.as_deref(), Some("E"));
        assert_eq!(browser.script("return document.activeElement.dataset.place").await, "4");

        // A game against the computer: the person plays North, one above both sides.
        reach(browser, "document.activeElement.id === 'open-new-game'").await;
        browser.press_key(Key::Enter).await;
        browser.press_key(Key::Up).await;
        browser.press_key(Key::Tab).await;
        browser.press_key(Key::Down).await;
        browser.press_key(Key::Enter).await;
        browser.until("location.search.includes('moves=')").await;
        browser.settled().await;
        assert_eq!(browser.field("computer").await.as_deref(), Some("S"));
        assert_eq!(browser.field("level").await.as_deref(), Some("strong"));
        assert_eq!(browser.field("turned").await.as_deref(), Some("1"));
        assert_eq!(browser.field("moves").await.unwrap().len(), 1);
        browser.press("t").await;
        assert_eq!(browser.field("turned").await, None);

        // A game is typed in.
        reach(browser, "document.activeElement.textContent === 'Import and export'").await;
        browser.press_key(Key::Enter).await;
        browser.press_key(Key::Tab).await;
        browser.press("F4 f4 B5").await;
        browser.press_key(Key::Tab).await;
        browser.press_key(Key::Enter).await;
        browser.until("new URLSearchParams(location.search).get('moves') === 'FfB'").await;
        browser.settled().await;
    });
}

#[test]
fn games_are_exported_and_imported_as_text() {
    browse(async |browser| {
        let origin = format!("http://{}", browser.served.address);
        let permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"];
        browser.devtools("Browser.grantPermissions", json!({ "origin": origin, "permissions": permissions })).await;
        browser.visit("/").await;
        browser.click("details:nth-of-type(2) summary").await;
        // What the server thinks would move the fields.
        let import = async |text: &str| {
            browser.visit("/?think=0").await;
            browser.click("details:nth-of-type(2) summary").await;
            browser.fill("#ogn", text).await;
            browser.push("Import").await;
            browser.until("document.getElementById('ogn-said').textContent").await;
            browser.settled().await;
            browser.field("moves").await
        };
        for text in [
            "F4 f4 B5 d5",
            "1. F f 2. B d",
            "FfBd",
            "[Event \"a game\"]\n\n1.F4 f4 {good (so far)} (1... a4 (a)) 2. B5x0 ; a remark\nd5 25-23",
        ] {
            assert_eq!(import(text).await.as_deref(), Some("FfBd"), "{text}");
        }
        // The text of the game is parsed again.
        browser.push("Export").await;
        // The loaded game is kept, and begins with a tag as well.
        browser.until("document.getElementById('ogn').value.startsWith('[Game')").await;
        let written = browser.script("return document.getElementById('ogn').value").await;
        assert_eq!(written, "[Game \"Awari\"]\n\n1. F f 2. B d\n*\n");
        assert_eq!(import(written.as_str().unwrap()).await.as_deref(), Some("FfBd"));
        let round = "[FEN \"1-0-0-0-0-0-1-0-0-0-0-0-23-23-S\"] AaBbCcDdEeFf AaB";
        assert_eq!(import(round).await.as_deref(), Some("AaBbCcDdEeFf"));
        let said = browser.text("#ogn-said").await;
        assert!(said.contains("over after move 12; later moves were ignored"), "{said}");
        let banner = browser.text("#banner").await;
        assert!(banner.contains("is repeated; a draw, 24 to 24."), "{banner}");
        for (text, part) in [
            ("F4 f4 B4", "move 3: B4 says 4 stones, pit B holds 5"),
            ("1. F what", "move 2: expected a move"),
            ("[FEN \"4-4\"] F", "the tag FEN"),
        ] {
            assert_eq!(import(text).await, None);
            let said = browser.text("#ogn-said").await;
            assert!(said.starts_with("Invalid game: ") && said.contains(part), "{text}: {said}");
            // It is said where one looks: below the field and its buttons, within the window.
            let place = "const [said, field] = ['ogn-said', 'ogn'].map((id) => document.getElementById(id).getBoundingClientRect());
                return said.top - field.bottom < 80 && said.bottom <= innerHeight";
            assert_eq!(browser.script(place).await, true, "{text}");
        }

        browser.visit(&format!("/?pos={NINE}&moves=C&computer=S&hide=0")).await;
        browser.push("Copy link").await;
        browser.until("document.getElementById('pos-said').textContent.startsWith('The link is copied')").await;
        let copied = browser.script_later("navigator.clipboard.readText().then(done)").await;
        assert_eq!(copied, browser.script("return location.href").await);
        // A click plays the line of best moves up to a move.
        let third = browser.texts("#line a").await[..3].iter().map(|label| label[..1].to_owned()).collect::<String>();
        browser.click("#line a:nth-of-type(3)").await;
        let moves = browser.field("moves").await.unwrap();
        assert!(moves.starts_with(&format!("C{third}")), "{moves} {third}");
    });
}

/// Presses Tab until an element has the focus.
async fn reach(browser: &Browser<'_>, condition: &str) {
    for _ in 0..100 {
        browser.press_key(Key::Tab).await;
        if browser.script(&format!("return {condition}")).await == true {
            return;
        }
    }
    panic!("{condition}: no Tab leads there");
}
