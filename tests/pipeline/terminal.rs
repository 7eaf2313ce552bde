//! What commands show on a terminal of some width.

use tests::directory::TestDirectory;
use tests::needs::Need;

/// Runs the program on a terminal of this width, and returns what it has drawn, a row of the terminal each.
fn rows(place: &TestDirectory, columns: usize, line: &str) -> Vec<String> {
    let script = format!("script -qec \"stty cols {columns} rows 40; $AWARI {line}\" /dev/null");
    let drawn = place.shell(&script).is(0).out;
    let mut rows = vec![Vec::new()];
    let mut characters = drawn.chars();
    while let Some(character) = characters.next() {
        match character {
            // A sequence that moves the cursor, clears, or colours.
            '\u{1b}' => {
                characters.find(|end| end.is_ascii_alphabetic());
                rows.push(Vec::new());
            }
            '\r' | '\n' => rows.push(Vec::new()),
            character => {
                // The terminal wraps.
                if rows.last().is_some_and(|row| row.len() == columns) {
                    rows.push(Vec::new());
                }
                rows.last_mut().unwrap().push(character);
            }
        }
    }
    let rows = rows.into_iter().map(|row| String::from_iter(row).trim_end().to_owned());
    rows.filter(|row| !row.is_empty()).collect()
}

#[test]
fn a_run_shows_a_line_for_the_stage_and_one_for_all() {
    if !Need::Terminal.is_met() {
        return;
    }
    for columns in [80, 120] {
        let place = TestDirectory::new(12);
        let rows = rows(&place, columns, "run m.toml --progress bar");
        let is_whole = |row: &&String| {
            let counts =
                row.matches(" left").count() == 1 && row.ends_with(" s left") && row.matches(" %").count() == 1;
            counts && row.chars().count() < columns
        };
        let lines = |name: &str| rows.iter().filter(|row| row.starts_with(name)).collect::<Vec<_>>();
        let of_run = lines("whole run ");
        assert!(of_run.iter().any(|row| row.contains("stage 51 of 52")), "{columns}: {rows:#?}");
        assert!(of_run.iter().any(|row| row.contains('━')) && of_run.iter().any(is_whole), "{columns}: {of_run:#?}");
        let checks = lines("verify:12 ");
        let known: Vec<&&String> = checks.iter().filter(|row| row.contains("/s ")).collect();
        assert!(
            !known.is_empty() && known.iter().all(|row| is_whole(row) && row.contains(" verifying ")),
            "{checks:#?}"
        );
    }
}
