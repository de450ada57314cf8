//! Tables: columns as wide as they need to be, the last one cut at a terminal's edge.

use std::io::{self, Write};

use crate::cli::show::printable;

/// Rows under a head.
#[derive(Debug)]
pub(super) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    nothing: &'static str,
}

impl Table {
    /// An empty one; `nothing` is what is said if it stays so.
    pub(super) fn new(head: &[&'static str], nothing: &'static str) -> Self {
        Self { head: head.to_vec(), rows: Vec::new(), nothing }
    }

    /// Adds a row, with a cell for each column.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| cell_text(cell)).collect());
    }

    /// Prints it. At a terminal no line is wider than that.
    pub(super) fn print(&self, out: &mut dyn Write, terminal: bool) -> io::Result<()> {
        let width = terminal.then(|| size().0).flatten();
        for line in self.lines(width) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Its lines, cut to `width` characters.
    pub(super) fn lines(&self, width: Option<usize>) -> Vec<String> {
        if self.rows.is_empty() {
            return vec![self.nothing.to_owned()];
        }
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
                cells.chain([self.head[column].len()]).max().unwrap_or(0)
            })
            .collect();
        let head: Vec<String> = self.head.iter().map(|title| (*title).to_owned()).collect();
        let line = |cells: &Vec<String>| {
            let padded: Vec<String> =
                cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            let line = padded.join("  ");
            let line = line.trim_end();
            match width {
                Some(width) if line.chars().count() > width && width > 1 => {
                    line.chars().take(width - 1).chain(['…']).collect()
                }
                _ => line.to_owned(),
            }
        };
        std::iter::once(&head).chain(&self.rows).map(line).collect()
    }
}

/// Columns and rows of the terminal.
pub(super) fn size() -> (Option<usize>, Option<usize>) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) => {
            let known = |n: u16| (n > 0).then_some(usize::from(n));
            (known(size.ws_col), known(size.ws_row))
        }
        Err(_) => (None, None),
    }
}

/// One line, without what would move the cursor.
pub(super) fn cell_text(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_at_the_edge() {
        let mut table = Table::new(&["ID", "MESSAGE"], "nothing");
        assert_eq!(table.lines(None), ["nothing"]);
        table.row(vec!["a".to_owned(), "one\ntwo".to_owned()]);
        table.row(vec!["long-id".to_owned(), "\u{1b}[2J".to_owned()]);
        assert_eq!(table.lines(None), ["ID       MESSAGE", "a        one two", "long-id  \u{fffd}[2J"]);
        assert_eq!(table.lines(Some(11))[1], "a        o…");
    }
}
