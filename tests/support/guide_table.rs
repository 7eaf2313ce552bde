//! Tables of the guide that the program renders.

use crate::root;
use std::fs;

/// The line after each table.
const END: &str = "<!-- end of the table -->";

/// Returns a table in Markdown.
pub fn markdown(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()));
    for row in rows {
        assert_eq!(row.len(), columns.len());
        let cells: Vec<String> = row.iter().map(|cell| cell.trim().replace('|', "\\|").replace('\n', " ")).collect();
        table += &format!("| {} |\n", cells.join(" | "));
    }
    table
}

/// Compares tables with those of a chapter, each after a line with its name and the test that keeps it.
/// `AWARI_GOLDEN=write` writes them into the chapter instead.
///
/// # Panics
/// If a table differs, or the chapter has no place for it.
pub fn check(chapter: &str, test: &str, tables: &[(&str, String)]) {
    let path = root().join(chapter);
    let mut text = fs::read_to_string(&path).unwrap();
    let is_written = std::env::var_os("AWARI_GOLDEN").is_some_and(|value| value == "write");
    for (name, expected) in tables {
        let beginning = format!("<!-- table: {name}; AWARI_GOLDEN=write cargo test -p tests --test {test} -->");
        let (before, rest) = text.split_once(&beginning).unwrap_or_else(|| panic!("{chapter} has no line {beginning}"));
        let (found, after) = rest.split_once(END).unwrap_or_else(|| panic!("the table of {name} has no end"));
        let expected = format!("\n\n{expected}\n");
        if is_written {
            text = format!("{before}{beginning}{expected}{END}{after}");
        } else {
            let differs = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
            assert!(found == expected, "the table of {name} is stale, (program, guide): {differs:?}; see {beginning}");
        }
    }
    if is_written {
        fs::write(&path, text).unwrap();
    }
}
