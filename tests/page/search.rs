//! The page beyond the databases: what the server finds out while it thinks, moves as they happen, and games from the
//! opening.

use crate::browser::{Browser, NINE, browse};
use game::Rules;
use game::play::Game;
use serde_json::{Value, json};
use tests::Random;

async fn resize(browser: &Browser<'_>, width: u32) {
    let size = json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600 });
    browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
}

/// Waits until the server has ended its search.
async fn thought(browser: &Browser<'_>) {
    browser.until("document.querySelector('#evaluation[aria-busy=false]')").await;
}

#[test]
fn the_server_thinks_aloud() {
    browse(async |browser| {
        browser.visit("/?think=5").await;
        assert!(browser.text("#banner").await.contains("the server is thinking"), "{}", browser.text("#banner").await);
        browser.until("document.querySelector('#lines:not([hidden]) caption')?.textContent").await;
        // The lines grow, and more positions are searched.
        let seen = "const caption = document.querySelector('#lines caption').textContent;
            return [Number(/depth (\\d+)/.exec(caption)[1]), Number(/([\\d,]+) positions/.exec(caption)[1].replaceAll(',', ''))]";
        let before = browser.script(seen).await;
        let more = format!("((found) => found[0] > {} && found[1] > {})((() => {{ {seen} }})())", before[0], before[1]);
        browser.until(&more).await;
        thought(browser).await;
        let banner = browser.text("#banner").await;
        assert_eq!(banner, "South to move.");
        // What is proved and what is estimated differ in words and in type.
        let (proved, estimated) = (browser.text("#proved").await, browser.text("#estimated").await);
        // Nothing is proved that the number of stones does not say.
        assert_eq!(proved, "");
        assert!(!browser.text("main").await.contains("48 to +48"));
        assert!(estimated.starts_with("Estimated: about ") && estimated.ends_with(" stones for South."), "{estimated}");
        let styles = "const style = (css) => getComputedStyle(document.querySelector(css));
            return [style('td.proved').fontStyle, style('td.estimated').fontStyle, style('.pit.best').borderTopStyle]";
        assert_eq!(browser.script(styles).await, json!(["normal", "italic", "dashed"]));
        for (at, (_, value)) in browser.pits().await.into_iter().enumerate() {
            assert_eq!(value.starts_with(['≈', '≤']), at < 6, "{at}: {value}");
        }
        let label = browser.script("return document.querySelector('.pit.best').getAttribute('aria-label')").await;
        assert!(
            label.as_str().unwrap().contains(", estimated, ") && label.as_str().unwrap().ends_with(", best"),
            "{label}"
        );
        let bar = browser.script("return document.querySelector('#bar svg').getAttribute('aria-label')").await;
        assert!(bar.as_str().unwrap().contains("; South is estimated at "), "{bar}");
        // A line is played up to the move that is clicked, and the server thinks about the position after it.
        let line = browser.texts("#lines tbody tr:first-child a:not([hidden])").await;
        browser.click("#lines tbody tr:first-child a:first-child").await;
        assert_eq!(browser.field("moves").await.as_deref(), Some(&*line[0]));
        browser.until("document.querySelector('#estimated').textContent.endsWith(' stones for North.')").await;
        // Hidden values hide the search as well, and end it.
        browser.click("#hide").await;
        assert_eq!(browser.text("#banner").await, "North to move.");
        assert_eq!(browser.script("return document.getElementById('evaluation').checkVisibility()").await, false);
        browser.click("#hide").await;
        // A position of a database is proved at once, and the heading says it once.
        browser.visit(&format!("/?pos={NINE}")).await;
        let words = browser.text("main").await;
        assert_eq!(words.matches("South to move wins by ").count(), 1, "{words}");
        assert_eq!(browser.text("#proved").await, "");
        assert!(words.contains("Gives away") && !words.contains("Loss"), "{words}");
        let hidden =
            "return [document.getElementById('estimated').textContent, document.getElementById('lines').hidden]";
        assert_eq!(browser.script(hidden).await, json!(["", true]));
        browser.visit("/?think=0").await;
        assert!(browser.text("#estimated").await.contains("no 48-stone database here (the largest has 9 stones)"));
    });
}

/// Records the numbers on the board whenever it changes.
const RECORD: &str = "window.seen = [];
    const look = () => {
        const numbers = [...document.querySelectorAll('#board [data-place], #board [data-store]')]
            .sort((a, b) => (a.dataset.place ?? a.dataset.store) - (b.dataset.place ?? b.dataset.store))
            .map((one) => Number(one.querySelector('.stones').textContent));
        const seeds = [...document.querySelectorAll('#board .seeds')].map((one) => one.children.length).reduce((a, b) => a + b, 0);
        const text = JSON.stringify([numbers, seeds]);
        if (window.seen.at(-1) !== text) window.seen.push(text);
    };
    look();
    new MutationObserver(look).observe(document.getElementById('board'), { childList: true, subtree: true, characterData: true });";

#[test]
fn moves_are_shown_as_they_happen_unless_motion_is_unwanted() {
    browse(async |browser| {
        // F sows two and captures both twos.
        let start = "0-0-0-0-0-2-1-1-0-0-0-1-20-23-S";
        for (preference, moves) in [("no-preference", true), ("reduce", false)] {
            let features = json!({ "features": [{ "name": "prefers-reduced-motion", "value": preference }] });
            browser.devtools("Emulation.setEmulatedMedia", features).await;
            browser.visit(&format!("/?pos={start}")).await;
            browser.script(RECORD).await;
            browser.click("[data-place='5']").await;
            let seen = browser.script("return window.seen.map((one) => JSON.parse(one))").await;
            let seen: Vec<Value> = seen.as_array().unwrap().clone();
            let numbers: Vec<Vec<u64>> =
                seen.iter().map(|frame| serde_json::from_value(frame[0].clone()).unwrap()).collect();
            assert_eq!(numbers[0], [0, 0, 0, 0, 0, 2, 1, 1, 0, 0, 0, 1, 20, 23]);
            assert_eq!(numbers.last().unwrap()[..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 24, 23]);
            let has = |pits: [u64; 14]| numbers.iter().any(|counts| counts[..] == pits);
            for (between, what) in [
                ([0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 20, 23], "a seed on its way"),
                ([0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 1, 20, 23], "one seed sown, another on its way"),
                ([0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 1, 20, 23], "both sown"),
                ([0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 22, 23], "one pit captured"),
            ] {
                assert_eq!(has(between), moves, "{preference}: {what}: {numbers:?}");
            }
            // As many seeds are drawn as the numbers say.
            for frame in &seen {
                let held: u64 = frame[0].as_array().unwrap().iter().map(|pit| pit.as_u64().unwrap()).sum();
                assert!(!moves || held.abs_diff(frame[1].as_u64().unwrap()) <= 2, "{frame}");
            }
            let (last, held) = (&seen.last().unwrap()[1], numbers.last().unwrap().iter().sum::<u64>());
            assert_eq!(last, held);
            browser.until("!document.querySelector('.flying')").await;
        }
        // Two moves in quick succession end at the position after both.
        let features = json!({ "features": [{ "name": "prefers-reduced-motion", "value": "no-preference" }] });
        browser.devtools("Emulation.setEmulatedMedia", features).await;
        browser.visit("/?think=0").await;
        browser.press("66").await;
        browser.until("document.querySelector(\"#main[aria-busy=false]\")").await;
        assert_eq!(browser.field("moves").await.as_deref(), Some("Ff"));
        let held: Vec<String> = browser.pits().await.into_iter().map(|(stones, _)| stones).collect();
        assert_eq!(held.join("-"), "5-5-5-5-4-0-5-5-5-5-4-0");
    });
}

/// Plays a game that begins with 48 stones, with databases of nine, in a window of some width.
fn play_from_the_opening(width: u32, level: &str, seed: u64) {
    browse(async |browser| {
        resize(browser, width).await;
        browser.visit("/?think=1").await;
        browser.begin_game("N", level, "opening").await;
        let what = format!("{level}, {width} pixels");
        let game = browser.played_game(Game::new(Rules::AWARI), &mut Random::new(seed), &what).await;
        println!("{level}: {} moves, South's lead {}", game.turns().len(), game.outcome().unwrap().lead);
    });
}

#[test]
fn a_whole_game_is_played_on_a_phone() {
    play_from_the_opening(390, "beginner", 4);
}

#[test]
fn a_whole_game_is_played_on_a_desktop() {
    play_from_the_opening(900, "perfect", 5);
}
