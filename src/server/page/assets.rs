//! Scripts and style sheet of the page.

/// The scripts, by their routes. The page loads the first, which imports the others.
pub(crate) const SCRIPTS: [(&str, &str); 2] = [
    ("/app.js", include_str!("app.js")),
    ("/game.js", include_str!("game.js")),
];

/// The style sheet.
pub(crate) const STYLE: &str = include_str!("style.css");
