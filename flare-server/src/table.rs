//! Takes rows of texts; gives them in columns as wide as they need.

use std::fmt;

/// Rows of cells; a row may have fewer than others.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        // A client's words may hold anything, and a terminal acts on some of it.
        let clean = |text: String| text.replace(char::is_control, " ");
        self.rows.push(cells.into_iter().map(|cell| clean(cell.into())).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_line_up_and_control_characters_are_gone() {
        let mut table = Table::default();
        table.row(["A", "LONGER", "C"]);
        table.row(["wide\u{1b}[2J", "x"]);
        assert_eq!(table.to_string(), "A         LONGER  C\nwide [2J  x\n");
    }
}
