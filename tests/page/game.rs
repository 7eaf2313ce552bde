//! A person plays the computer: from the new game to its analysis.

use crate::browser::{Browser, NINE, browse};
use crate::layout;
use game::Rules;
use game::play::Game;
use serde_json::json;
use tests::Random;
use tests::needs::Need;

/// F captures from two pits.
const CAPTURE: &str = "0-0-0-0-0-2-1-1-0-0-0-1-20-23-S";

/// Asserts that the layout has no faults, and that axe-core finds no violation of level A or AA, if it is here.
async fn is_sound(browser: &Browser<'_>, what: &str) {
    assert_eq!(browser.script(layout::FAULTS).await, json!([]), "{what}");
    if Need::Axe.missing().is_some() {
        return;
    }
    let axe = std::fs::read_to_string(std::env::var_os("AWARI_AXE").unwrap()).unwrap();
    browser.script(&axe).await;
    let levels = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']";
    let violations = browser
        .script_later(&format!(
            "axe.run({{ runOnly: {levels} }}).then((found) =>
                done(found.violations.map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 200))])))"
        ))
        .await;
    assert_eq!(violations, json!([]), "{what}");
}

/// Waits for the end of the analysis of the game.
async fn analysed(browser: &Browser<'_>) {
    browser
        .until("document.getElementById('review-progress').hidden && !document.getElementById('errors').hidden")
        .await;
    browser.settled().await;
}

#[test]
fn a_game_goes_from_new_game_to_its_analysis_in_every_window() {
    // The summary of the tests names what is skipped without it.
    Need::Axe.is_met();
    browse(async |browser| {
        for (scheme, width, height) in [
            ("light", 1280, 800),
            ("light", 1920, 1080),
            ("light", 390, 844),
            ("dark", 1280, 800),
            ("dark", 1920, 1080),
            ("dark", 390, 844),
        ] {
            let what = format!("{scheme}, {width} x {height}");
            let features = json!({ "features": [
                { "name": "prefers-color-scheme", "value": scheme }, { "name": "prefers-reduced-motion", "value": "reduce" },
            ] });
            browser.devtools("Emulation.setEmulatedMedia", features).await;
            let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
            browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
            browser.visit(&format!("/?pos={NINE}")).await;
            is_sound(browser, &what).await;
            // A new game begins above the fold.
            let place = "return document.getElementById('open-new-game').getBoundingClientRect().bottom";
            assert!(browser.script(place).await.as_f64().unwrap() < 100.0, "{what}");
            browser.click("#open-new-game").await;
            is_sound(browser, &format!("{what}, new game")).await;
            for choice in ["computer][value=N", "level][value=beginner", "from][value=here"] {
                browser.click(&format!("#new-game [name={choice}]")).await;
            }
            browser.click("#begin").await;
            // No value is shown until the end.
            assert!(browser.pits().await.iter().all(|(_, value)| value.is_empty()), "{what}");
            assert_eq!(browser.texts("#line a, #moves td, #histogram rect").await.len(), 0, "{what}");
            assert_eq!(browser.text("#banner").await, "South to move.", "{what}");
            let players = "You (South) against the computer (beginner)";
            assert_eq!(browser.text("#players").await, players, "{what}");
            is_sound(browser, &format!("{what}, a game")).await;
            // The players differ by a stone, so that the game has no draw.
            let start = Game::from(Rules::AWARI, &NINE.parse().unwrap());
            let game = browser.played_game(start, &mut Random::new(7), &what).await;
            browser.click("#analyse").await;
            analysed(browser).await;
            let turns = game.turns().len();
            let rows = browser.texts("#history tbody tr").await;
            assert_eq!(rows.len(), turns.div_ceil(2), "{what}");
            assert!(rows[0].starts_with("1.") && rows.iter().all(|row| row.contains('.')), "{what}: {rows:?}");
            let captures = game.turns().iter().filter(|turn| turn.captured > 0).count();
            let texts = browser.texts("#history button").await;
            assert_eq!(texts.iter().filter(|text| text.contains('×')).count(), captures, "{what}: {texts:?}");
            // The errors are those of the databases.
            let mut marks = [0, 0];
            let mut before = Game::from(Rules::AWARI, &NINE.parse().unwrap());
            for turn in game.turns() {
                let answer = browser.served.json(&format!("/v1/probe?pos={}", before.now().text()));
                let name = turn.text().to_string();
                let moves = answer["moves"].as_array().unwrap();
                match moves.iter().find(|valued| valued["pit"] == name).unwrap()["loss"].as_u64().unwrap() {
                    5.. => marks[1] += 1,
                    2.. => marks[0] += 1,
                    _ => {}
                }
                before.play(turn.pit).unwrap();
            }
            let shown = browser.texts("#history .mark").await;
            let count = |text: &str| shown.iter().filter(|mark| *mark == text).count();
            assert_eq!([count("?"), count("??")], marks, "{what}: {shown:?}");
            let table = browser.texts("#errors tbody td").await;
            let sum = |at: usize| table[at].parse::<usize>().unwrap() + table[at + 4].parse::<usize>().unwrap();
            assert_eq!([sum(0), sum(1), sum(2)], [turns, marks[0], marks[1]], "{what}: {table:?}");
            // A number of errors leads to the next of them, again and again.
            assert!(marks[0] + marks[1] > 0, "{what}");
            for (text, number) in [("?", marks[0]), ("??", marks[1])].into_iter().filter(|(_, number)| *number > 0) {
                let button = browser.texts(&format!("#errors [data-errors='S{text}']")).await;
                let side = if button.is_empty() { 'N' } else { 'S' };
                let mut seen = std::collections::BTreeSet::new();
                for _ in 0..=number {
                    browser.click(&format!("#errors [data-errors='{side}{text}']")).await;
                    browser.settled().await;
                    assert_eq!(browser.text("#history [aria-current] .mark").await, text, "{what}");
                    seen.insert(browser.field("at").await);
                }
                let of_side = browser.text(&format!("#errors [data-errors='{side}{text}']")).await;
                assert_eq!(seen.len().to_string(), of_side, "{what}");
            }
            // A click on the graph goes there, as do the moves.
            let half = "const box = document.querySelector('#graph svg').getBoundingClientRect();
                const at = { clientX: box.left + box.width / 2, clientY: box.top + 5, bubbles: true };
                document.querySelector('#graph svg').dispatchEvent(new MouseEvent('click', at));";
            browser.script(half).await;
            browser.settled().await;
            let at: usize = browser.field("at").await.unwrap().parse().unwrap();
            assert!(at.abs_diff(turns / 2) <= 1, "{what}: {at} of {turns}");
            assert!(browser.text("#banner").await.contains(" to move"), "{what}");
            is_sound(browser, &format!("{what}, analysed")).await;
            if width >= 1000 {
                // The board at the left, the moves at the right, and all that a player needs without scrolling.
                let seen = "const box = (css) => document.querySelector(css).getBoundingClientRect();
                    const needed = ['#board', '#banner', '#controls', '#views', '#bar', '#history', '#graph', '#errors', '#moves'];
                    return [box('#board').right < box('#history').left, ...needed.filter((css) => box(css).bottom > Math.min(innerHeight, 800))]";
                assert_eq!(browser.script(seen).await, json!([true]), "{what}");
            }
        }
    });
}

#[test]
fn moves_are_taken_back_and_games_resigned() {
    browse(async |browser| {
        browser.visit(&format!("/?pos={NINE}")).await;
        browser.begin_game("N", "strong", "here").await;
        browser.click("[data-place='2']").await;
        let first = browser.field("moves").await.unwrap();
        assert_eq!(first.len(), 2);
        // The pit of the last move is marked.
        let marked =
            "return [...document.querySelectorAll('#board .pit.sown')].map((pit) => pit.getAttribute('aria-label'))";
        let marked_pit = browser.script(marked).await;
        let label = marked_pit[0].as_str().unwrap();
        assert!(label.starts_with(&first[1..]) && label.ends_with(", just sown"), "{marked_pit}");
        assert_eq!(marked_pit.as_array().unwrap().len(), 1);
        browser.click(".pit[data-place]:not([aria-disabled])").await;
        assert_eq!(browser.field("moves").await.unwrap().len(), 4);
        // The answer of the computer goes with the move.
        browser.push("Take back").await;
        assert_eq!(browser.field("moves").await.as_deref(), Some(&*first));
        browser.push("Take back").await;
        assert_eq!(browser.field("moves").await, None);
        assert_eq!(browser.script(marked).await, json!([]));
        browser.push("Take back").await;
        assert!(browser.text("#banner").await.starts_with("There is no move to take back."));
        browser.push("Resign").await;
        assert_eq!(browser.text("#banner").await, "The game is over: South resigns; North wins.");
        assert_eq!(browser.playable().await.len(), 0);
        browser.reload().await;
        assert_eq!(browser.text("#banner").await, "The game is over: South resigns; North wins.");
        browser.push("Take back").await;
        assert_eq!(browser.field("resigned").await, None);
        assert_eq!(browser.text("#banner").await, "South to move.");
        // The result is exported.
        browser.click("[data-place='2']").await;
        browser.push("Resign").await;
        browser.click("details:nth-of-type(2) summary").await;
        browser.push("Export").await;
        browser.until("document.getElementById('ogn').value.trim().endsWith('0-1')").await;
        // North sits below for a person who plays North, and the computer begins.
        browser.begin_game("S", "strong", "opening").await;
        assert_eq!(browser.field("moves").await.unwrap().len(), 1);
        let below = "const top = (css) => document.querySelector(css).getBoundingClientRect().top;
            return [top('.row.north') > top('.row.south'), [...document.querySelectorAll('.pit .name')].map((one) => one.textContent).join('')]";
        assert_eq!(browser.script(below).await, json!([true, "FEDCBAabcdef"]));
        browser.push("Turn").await;
        assert_eq!(browser.script(below).await, json!([false, "fedcbaABCDEF"]));
        // A game that is not over is analysed as well, and the shown position keeps what describes it.
        browser.visit(&format!("/?pos={NINE}&moves={first}&at=1&computer=N&hide=1")).await;
        browser.click("#analyse").await;
        analysed(browser).await;
        assert_eq!(browser.field("computer").await, None);
        browser.until("document.querySelector('#moves:not(.stale) td')").await;
        assert_eq!(browser.texts("#errors tbody td").await.len(), 8);
    });
}

#[test]
fn what_describes_a_position_changes_when_it_is_sown() {
    browse(async |browser| {
        let features = json!({ "features": [{ "name": "prefers-reduced-motion", "value": "no-preference" }] });
        browser.devtools("Emulation.setEmulatedMedia", features).await;
        browser.visit(&format!("/?pos={CAPTURE}&computer=S&level=perfect&hide=0&edit=1")).await;
        // The heading and the moves at each change of the board.
        browser
            .script(
                "window.seen = [];
                const look = () => window.seen.push([
                    [...document.querySelectorAll('#board [data-place=\"5\"] .stones, #board .store.south .stones')].map((one) => one.textContent).join(' '),
                    document.getElementById('banner').textContent, document.querySelectorAll('#history button').length]);
                new MutationObserver(look).observe(document.getElementById('main'), { childList: true, subtree: true, characterData: true });",
            )
            .await;
        browser.press("e").await;
        browser.until("location.search.includes('moves=F')").await;
        browser.settled().await;
        let seen = browser.script("return window.seen").await;
        let seen = seen.as_array().unwrap();
        let sowing: Vec<_> =
            seen.iter().filter(|frame| frame[0] == "1 20" || frame[0] == "0 20" || frame[0] == "0 22").collect();
        assert!(sowing.len() > 2, "{seen:?}");
        for frame in sowing {
            assert!(frame[1].as_str().unwrap().starts_with("South to move") && frame[2] == 0, "{frame}");
        }
        assert!(browser.text("#banner").await.starts_with("North to move"));
    });
}
