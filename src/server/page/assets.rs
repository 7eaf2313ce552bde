//! Scripts and style sheet of the page.

/// The main script.
pub(crate) const SCRIPT: &str = include_str!("app.js");

/// The rules and the text of positions, which the program imports.
pub(crate) const GAME: &str = include_str!("game.js");

/// The style sheet.
pub(crate) const STYLE: &str = include_str!("style.css");
