//! Tables for people. Piped, a table keeps its columns and loses colour and truncation.

use std::io::IsTerminal;

use crate::cli::Color;
use crate::env;
use crate::words::printable;

/// How tables are to look.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub colour: bool,
    /// Width of the terminal; none if there is none.
    pub width: Option<usize>,
}

impl Style {
    pub fn of_stdout(color: Color) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let colour = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !env::no_colour(),
        };
        Self { colour, width: terminal.then(|| crate::sys::terminal_width().unwrap_or(80)) }
    }

    /// Paints a state.
    fn paint(self, text: &str) -> String {
        let code = match text.split(' ').next().unwrap_or_default() {
            "running" | "starting" => "32",
            "paused" | "lingering" => "33",
            "failed" | "interrupted" | "orphaned" | "unknown" => "31",
            "exited" if !text.trim_end().ends_with(" 0") => "31",
            _ => return text.to_owned(),
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Lays rows out under a head. The column named STATE is painted; the last one is cut at the terminal's edge.
pub fn render(head: &[&str], rows: &[Vec<String>], style: Style) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| printable(cell).chars().count());
        cells.chain(head.get(column).map(|cell| cell.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let state = head.iter().position(|name| *name == "STATE");
    let line = |cells: &[String], paint: bool| {
        let mut text = String::new();
        let mut used = 0;
        for (column, cell) in cells.iter().enumerate() {
            let last = column + 1 == cells.len();
            let mut cell = printable(cell).into_owned();
            if last {
                if let Some(limit) = style.width {
                    cell = cut(&cell, limit.saturating_sub(used).max(8));
                }
            } else {
                let pad =
                    widths.get(column).map_or(0, |width| width.saturating_sub(cell.chars().count())) + 2;
                used += cell.chars().count() + pad;
                let painted = if paint && Some(column) == state { style.paint(&cell) } else { cell };
                cell = painted + &" ".repeat(pad);
            }
            text.push_str(&cell);
        }
        text.trim_end().to_owned() + "\n"
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let mut text = line(&head, false);
    rows.iter().for_each(|row| text.push_str(&line(row, true)));
    text
}

fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_only_a_terminal_cuts() {
        let rows = vec![
            vec!["a".to_owned(), "exited 0".to_owned(), "x".repeat(30)],
            vec!["bcd".to_owned(), "running".to_owned(), "y".to_owned()],
        ];
        let plain = render(&["ID", "STATE", "COMMAND"], &rows, Style { colour: false, width: None });
        assert_eq!(
            plain,
            format!("ID   STATE     COMMAND\na    exited 0  {}\nbcd  running   y\n", "x".repeat(30))
        );
        let narrow = render(&["ID", "STATE", "COMMAND"], &rows, Style { colour: true, width: Some(24) });
        assert!(
            narrow.contains("xxxxxxxx…\n") && narrow.contains("\x1b[32mrunning\x1b[0m   y"),
            "{narrow:?}"
        );
    }
}
