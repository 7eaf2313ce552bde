//! Text for people and shells: tables, quantities, lines that fit the width of the terminal.

pub(crate) mod diagnostics;
pub(crate) mod lines;
pub(crate) mod quantity;
pub(crate) mod screen;
pub(crate) mod shell;
pub(crate) mod table;
pub(crate) mod terminal;
