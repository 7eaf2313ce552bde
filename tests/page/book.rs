//! The opening book on the page.

use crate::browser::{Browser, browse_prepared};
use crate::layout;
use serde_json::json;
use tests::directory::TestDirectory;

/// Expands a book of the opening.
fn expand(place: &TestDirectory) {
    place.awari("book expand --dir run --positions 150 --nodes 100 --sides both").is(0);
}

async fn resize(browser: &Browser<'_>, width: u32) {
    let size = json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600 });
    browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
}

#[test]
fn the_page_shows_the_tree_of_the_book() {
    browse_prepared(expand, async |browser| {
        let found = browser.served.json("/v1/book?pos=4-4-4-4-4-4-4-4-4-4-4-4-0-0-S&depth=3");
        let best = found["moves"][0]["pit"].as_str().unwrap().to_owned();
        for width in [390, 900] {
            resize(browser, width).await;
            browser.visit("/?think=0").await;
            let tree = browser.texts("#book-tree > li").await;
            assert_eq!(tree.len(), 6);
            assert!(tree[0].starts_with(&best) && tree[0].contains(", best"), "{tree:?}");
            // The line of best moves names all of them and the end of the book.
            let line = browser.texts("#book-line a").await;
            let expected: Vec<&str> =
                found["line"].as_array().unwrap().iter().map(|pit| pit.as_str().unwrap()).collect();
            assert_eq!(line, expected);
            let said = browser.text("#book-line").await;
            assert!(said.ends_with("move") || said.ends_with("moves"), "{said}");
            assert_eq!(browser.script(layout::FAULTS).await, json!([]), "{width} pixels");
            // A move of the tree is played, and the tree is that of the position after it.
            browser.click("#book-tree > li a").await;
            assert_eq!(browser.field("moves").await.as_deref(), Some(&*best));
            browser.until("[...document.querySelectorAll('#book-tree > li > a, #book-tree > li > details > summary > a')].every((one) => 'abcdef'.includes(one.textContent[0]))").await;
            // At the end of the line, the page says that the book ends.
            let letters = expected.join("");
            browser.visit(&format!("/?think=0&pos=4-4-4-4-4-4-4-4-4-4-4-4-0-0-S&moves={letters}")).await;
            let value = browser.text("#book-value").await;
            assert!(value.contains("the book ends here"), "{value}");
            assert_eq!(browser.texts("#book-tree > li").await.len(), 0);
            // The computer plays by the book.
            browser.visit("/?think=0&level=perfect").await;
            browser.begin_game("S", "perfect", "opening").await;
            browser.until("document.querySelector('#banner').textContent.includes('is a move of the book')").await;
            assert_eq!(browser.field("moves").await.as_deref(), Some(&*best));
            // The book is hidden with the values, as they are against the computer.
            browser.until("document.getElementById('book').hidden").await;
            browser.click("#hide").await;
            browser.until("!document.getElementById('book').hidden").await;
        }
    });
}
