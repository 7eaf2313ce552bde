//! Scripts and style sheet of the page.

/// The scripts, by their routes. The page loads the first, which imports the others.
pub(crate) const SCRIPTS: [(&str, &str); 12] = [
    ("/app.js", include_str!("page/app.js")),
    ("/analysis.js", include_str!("page/analysis.js")),
    ("/board.js", include_str!("page/board.js")),
    ("/book.js", include_str!("page/book.js")),
    ("/format.js", include_str!("page/format.js")),
    ("/game.js", include_str!("page/game.js")),
    ("/history.js", include_str!("page/history.js")),
    ("/library.js", include_str!("page/library.js")),
    ("/new_game.js", include_str!("page/new_game.js")),
    ("/requests.js", include_str!("page/requests.js")),
    ("/review.js", include_str!("page/review.js")),
    ("/state.js", include_str!("page/state.js")),
];

/// The style sheet.
pub(crate) const STYLE: &str = include_str!("page/style.css");
