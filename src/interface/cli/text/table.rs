//! Text tables that fit a width.

use crate::text::screen::Width;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use console::measure_text_width;

/// The blanks around the cells of a column.
const PADDING: usize = 2;

/// The least width of wrapped text while columns can still be left out.
const TEXT_COLUMNS: usize = 28;

/// A table without rules.
pub(crate) struct TextTable {
    headings: Vec<String>,
    /// Columns of numbers: aligned right, never wrapped.
    numbers: Vec<bool>,
    /// Columns that are left out of a table that is too wide, in this order.
    optional: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Creates a table of text columns, without rows.
    pub(crate) fn new(headings: &[&str]) -> TextTable {
        TextTable {
            headings: headings.iter().map(|&heading| heading.to_owned()).collect(),
            numbers: vec![false; headings.len()],
            optional: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Aligns columns right.
    pub(crate) fn numbers(mut self, columns: impl IntoIterator<Item = usize>) -> TextTable {
        columns.into_iter().for_each(|column| self.numbers[column] = true);
        self
    }

    /// Sets the columns to leave out of a table that is too wide, in this order.
    pub(crate) fn optional(mut self, headings: &[&str]) -> TextTable {
        let places =
            headings.iter().filter_map(|optional| self.headings.iter().position(|heading| heading == optional));
        self.optional = places.collect();
        self
    }

    /// Adds a row, with a cell for each heading.
    pub(crate) fn add_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Renders lines without trailing blanks, of at most this width if text is wrapped.
    pub(crate) fn fit(&self, width: Width) -> String {
        let widest: Vec<usize> = (0..self.headings.len())
            .map(|at| {
                let cells = self.rows.iter().map(|row| row[at].as_str()).chain([self.headings[at].as_str()]);
                cells.map(measure_text_width).max().unwrap_or(0)
            })
            .collect();
        let least = |at: &usize| PADDING + if self.numbers[*at] { widest[*at] } else { widest[*at].min(TEXT_COLUMNS) };
        let mut shown: Vec<usize> = (0..self.headings.len()).collect();
        for optional in &self.optional {
            if shown.iter().map(least).sum::<usize>() > width.columns {
                shown.retain(|at| at != optional);
            }
        }
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_header(shown.iter().map(|&at| &self.headings[at]));
        for row in &self.rows {
            table.add_row(shown.iter().map(|&at| &row[at]));
        }
        let is_too_wide = shown.iter().map(|&at| PADDING + widest[at]).sum::<usize>() > width.columns;
        if is_too_wide && width.wraps {
            let columns = u16::try_from(width.columns).unwrap_or(u16::MAX);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        }
        let has_text = shown.iter().any(|&at| !self.numbers[at]);
        for (column, &at) in table.column_iter_mut().zip(&shown) {
            if self.numbers[at] {
                column.set_cell_alignment(CellAlignment::Right);
                if has_text {
                    column.set_constraint(ColumnConstraint::ContentWidth);
                }
            }
        }
        table.trim_fmt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let mut table =
            TextTable::new(&["stage", "positions", "memory", "why"]).numbers([1, 2]).optional(&["memory", "none"]);
        let why = "databases/12.awari is absent, or what is there cannot be read";
        table.add_row(["sweep:12", "1,352,078", "12 MiB", why].map(str::to_owned));
        table.add_row(["stats:12", "1,352,078", "1 MiB", "forced"].map(str::to_owned));
        table
    }

    fn lines(columns: usize, wraps: bool) -> Vec<String> {
        table().fit(Width { columns, wraps }).lines().map(str::to_owned).collect()
    }

    #[test]
    fn tables_fit() {
        for columns in 40..120 {
            let lines = lines(columns, true);
            assert!(lines.iter().all(|line| measure_text_width(line) <= columns), "{columns}: {lines:#?}");
            assert!(lines.iter().all(|line| line.trim_end() == line), "{lines:?}");
            assert!(lines[1].contains("1,352,078"), "{lines:?}");
        }
        assert_eq!(lines(120, true).len(), 3);
        assert!(lines(64, true)[0].contains("memory") && lines(64, true).len() > 3);
        assert!(!lines(50, true)[0].contains("memory"));
    }

    #[test]
    fn unwrapped_rows_stay_on_one_line() {
        assert_eq!(lines(40, false).len(), 3);
        assert!(!lines(40, false)[0].contains("memory"));
    }
}
