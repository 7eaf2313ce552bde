//! Scripts and style sheet of the page.

/// The scripts, by their routes. The page loads the first, which imports the others.
pub(crate) const SCRIPTS: [(&str, &str); 12] = [
    ("/app.js", include_str!("app.js")),
    ("/analysis.js", include_str!("analysis.js")),
    ("/board.js", include_str!("board.js")),
    ("/book.js", include_str!("book.js")),
    ("/format.js", include_str!("format.js")),
    ("/game.js", include_str!("game.js")),
    ("/history.js", include_str!("history.js")),
    ("/library.js", include_str!("library.js")),
    ("/new_game.js", include_str!("new_game.js")),
    ("/requests.js", include_str!("requests.js")),
    ("/review.js", include_str!("review.js")),
    ("/state.js", include_str!("state.js")),
];

/// The style sheet.
pub(crate) const STYLE: &str = include_str!("style.css");
