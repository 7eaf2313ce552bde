//! Files that the page loads.

/// The program of the page.
pub(crate) const SCRIPT: &str = include_str!("app.js");

/// The rules and the text of positions, which the program imports.
pub(crate) const GAME: &str = include_str!("game.js");

/// The style sheet.
pub(crate) const STYLE: &str = include_str!("style.css");
