//! What the page shows: its values, its layout, and its use without scripts.

use crate::browser::{NINE, STONES_MAX, browse};
use crate::layout;
use game::notation::{PositionText, Seats, Side};
use serde_json::{Value, json};
use tests::Random;

/// The value shown in a pit.
pub(crate) fn worth(valued: &Value) -> String {
    let signed = |score: &Value| match score.as_i64().unwrap() {
        0 => "0".to_owned(),
        score if score > 0 => format!("+{score}"),
        score => format!("−{}", -score),
    };
    if let Some(hundredths) = valued["estimate"].as_i64() {
        let tenths = (hundredths.abs() as f64 / 10.0).round();
        let sign = match hundredths > 0 {
            _ if tenths == 0.0 => "",
            true => "+",
            false => "−",
        };
        return format!("≈ {sign}{:.1}", tenths / 10.0);
    }
    match &valued["value"] {
        value if value.is_i64() => format!("{} {}", signed(value), valued["category"].as_str().unwrap()),
        bounds => format!("{} to {}", signed(&bounds["lo"]), signed(&bounds["hi"])),
    }
}

#[test]
fn values_are_those_of_the_api() {
    browse(async |browser| {
        let mut random = Random::new(1);
        let mut positions: Vec<String> = [
            NINE,
            // A starving move; a lap; no legal move; more stones than the databases have.
            "0-0-0-1-2-3-0-0-0-0-0-0-21-21-S",
            "0-0-0-0-0-9-0-0-0-0-0-0-20-19-S",
            "0-0-0-0-0-0-1-0-0-0-0-0-20-27-S",
            "0-0-1-2-1-2-1-0-2-1-1-1-18-18-N",
            "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S",
        ]
        .map(str::to_owned)
        .to_vec();
        for side in [Side::South, Side::North].into_iter().cycle().take(16) {
            let stones = 1 + random.below(u64::from(STONES_MAX)) as u32;
            let seats = Seats { south_store: 3, north_store: 4, side };
            positions.push(PositionText::of_game(random.board(stones), seats).to_string());
        }
        for position in positions {
            browser.visit(&format!("/?pos={position}&think=0")).await;
            let batch = format!("fetch('v1/probe', {{ method: 'POST', body: '{{\"positions\": [\"{position}\"]}}' }})");
            let api = browser.script_later(&format!("{batch}.then((found) => found.json()).then(done)")).await;
            let api = &api["answers"][0];
            let none = Vec::new();
            let moves = api["moves"].as_array().unwrap_or(&none);
            for (at, (_, value)) in browser.pits().await.into_iter().enumerate() {
                let name = &"ABCDEFabcdef"[at..=at];
                let expected = moves.iter().find(|valued| valued["pit"] == name).map(worth);
                assert_eq!(value, expected.unwrap_or_default(), "{position}, {name}: {api}");
            }
            let named = browser.playable().await;
            let mut legal: Vec<u64> = moves
                .iter()
                .map(|valued| "ABCDEFabcdef".find(valued["pit"].as_str().unwrap()).unwrap() as u64)
                .collect();
            legal.sort_unstable();
            assert!(named == legal || api["error"].is_object(), "{position}: {named:?} {legal:?}");
            // The table, the line and the marked score are those of the API.
            let names: Vec<String> = moves.iter().map(|valued| valued["pit"].as_str().unwrap().to_owned()).collect();
            assert_eq!(browser.texts("#moves tbody th").await, names, "{position}");
            if api["score"].is_i64() && !moves.is_empty() {
                let line = browser.served.json(&format!("/v1/mainline?pos={position}&moves=40"));
                let steps =
                    line["moves"].as_array().unwrap().iter().map(|valued| match valued["captures"].as_u64().unwrap() {
                        0 => valued["pit"].as_str().unwrap().to_owned(),
                        captures => format!("{}×{captures}", valued["pit"].as_str().unwrap()),
                    });
                assert_eq!(browser.texts("#line a").await, steps.collect::<Vec<_>>(), "{position}");
                let marked = browser.texts("#histogram rect.now title").await;
                let signed = worth(&json!({ "value": api["score"], "category": "" }));
                assert!(
                    marked.len() == 1 && marked[0].starts_with(&format!("{}:", signed.trim())),
                    "{position}: {marked:?}"
                );
            } else if let Some(message) = api["error"]["message"].as_str() {
                assert!(browser.text("#banner").await.contains(message), "{position}");
            }
        }
    });
}

#[test]
fn the_layout_has_no_faults_at_any_width() {
    browse(async |browser| {
        let long = browser.served.json("/v1/mainline?pos=0-0-2-0-2-1-1-0-1-0-1-1-19-20-S");
        let letters: String =
            long["moves"].as_array().unwrap().iter().map(|valued| valued["pit"].as_str().unwrap()).collect();
        for scheme in ["light", "dark"] {
            let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
            browser.devtools("Emulation.setEmulatedMedia", features).await;
            for width in [390, 320, 900, 1280] {
                let size = json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600 });
                browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
                for address in [
                    format!("/?pos={NINE}"),
                    format!("/?pos={NINE}&edit=1"),
                    format!("/?pos=0-0-2-0-2-1-1-0-1-0-1-1-19-20-S&moves={letters}&at=2&computer=N&level=perfect"),
                    // Bounds, which are wider than scores; unknown positions; a mistake.
                    "/?pos=0-0-1-2-1-2-1-0-2-1-1-1-18-18-S&think=1".to_owned(),
                    "/?pos=4-4-4-4-4-4-4-4-4-4-4-4-0-0-S&moves=FfBd&think=1".to_owned(),
                    "/?pos=0-0-0-0-0-40-0-0-0-0-0-0-4-4-S&think=1".to_owned(),
                    "/?think=1".to_owned(),
                    "/?pos=1&think=1".to_owned(),
                ] {
                    browser.visit(&address).await;
                    browser.until("document.querySelector('#evaluation[aria-busy=false]')").await;
                    browser.script("document.querySelectorAll('details').forEach((one) => { one.open = true; })").await;
                    let faults = browser.script(layout::FAULTS).await;
                    assert_eq!(faults, json!([]), "{scheme}, {width} pixels, {address}");
                    let ground = browser.script("return getComputedStyle(document.body).backgroundColor").await;
                    assert_eq!(ground, if scheme == "dark" { "rgb(23, 22, 20)" } else { "rgb(251, 250, 247)" });
                }
            }
        }
    });
}

#[test]
fn links_and_a_form_suffice_without_scripts() {
    browse(async |browser| {
        browser.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
        browser.visit_without_scripts(&format!("/?pos={NINE}")).await;
        assert!(browser.text("#banner").await.starts_with("South to move"));
        assert_eq!(browser.script("return document.querySelectorAll('button').length").await, 1);
        let line = browser.served.json(&format!("/v1/mainline?pos={NINE}&moves=40"));
        assert_eq!(browser.texts("#line a").await.len(), line["moves"].as_array().unwrap().len());
        assert_eq!(browser.texts("#histogram rect.now").await.len(), 1);
        let first = browser.text("#board").await;
        // Two moves, one back, and forward again.
        let play = async |at: &str| {
            let places = "return [...document.querySelectorAll('a.pit')].map((pit) => pit.getAttribute('href'))";
            let links: Vec<String> = serde_json::from_value(browser.script(places).await).unwrap();
            assert!(!links.is_empty());
            browser.visit_without_scripts(&links[0].replacen('.', "", 1)).await;
            assert!(browser.text("#banner").await.starts_with(at));
        };
        play("North to move").await;
        play("South to move").await;
        assert_eq!(browser.field("moves").await.unwrap().len(), 2);
        let second = browser.text("#board").await;
        browser.follow("← Back").await;
        assert!(browser.text("#banner").await.starts_with("North to move"));
        browser.follow("Start").await;
        assert_eq!(browser.text("#board").await, first);
        browser.follow("Forward →").await;
        browser.follow("Forward →").await;
        assert_eq!(browser.text("#board").await, second);
        browser.follow("Hide values").await;
        assert_eq!(browser.text("#banner").await, "South to move.");
        assert_eq!(browser.texts("#line, #moves, #histogram").await.len(), 0);
        browser.follow("Show values").await;
        for width in [390, 320, 900] {
            let size = json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600 });
            browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
            for address in [&format!("/?pos={NINE}&moves=CaEb&at=2"), "/", "/?pos=1"] {
                browser.visit_without_scripts(address).await;
                assert_eq!(browser.script(layout::FAULTS).await, json!([]), "{width} pixels, {address}");
            }
        }
        browser.visit_without_scripts("/").await;
        browser.follow("A position of 9 stones").await;
        assert!(!browser.text("#banner").await.contains("-stone database here"));
        // Follows the links of the line to its end.
        browser.visit_without_scripts("/?pos=0-0-0-0-0-2-1-1-0-0-0-1-20-23-S").await;
        let last = browser.texts("#line a").await.pop().unwrap();
        let link = browser.script("return [...document.querySelectorAll('#line a')].at(-1).getAttribute('href')").await;
        assert!(link.as_str().unwrap().ends_with(&last[..1]));
        browser.visit_without_scripts(&link.as_str().unwrap().replacen('.', "", 1)).await;
        assert!(browser.text("#banner").await.starts_with("The game is over"));
        // The form.
        browser.fill("[name=pos]", "0 0 0 0 0 1 0 0 0 0 0 0").await;
        browser.submit().await;
        assert_eq!(browser.text("#banner").await, "South to move loses by 1 stone.");
        browser.fill("[name=pos]", "one").await;
        browser.submit().await;
        assert!(browser.text("[role=alert]").await.contains("found 1 separated"));
        assert_eq!(browser.address().await, "/?pos=one");
    });
}
