//! Columns for people: as wide as their widest cell, two spaces apart.
//!
//! Owns alignment. Never colours, so that what is copied from it is plain text.

/// To which side the cells of a column keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Names and words.
    Left,
    /// Numbers, so that their digits stand below each other.
    Right,
}

/// Rows as lines. Missing cells count as empty; no line ends with a space.
pub(super) fn aligned(sides: &[Side], rows: &[Vec<String>]) -> String {
    let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
    let width = |column: usize| rows.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..sides.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let padded = sides.iter().zip(&widths).enumerate().map(|(column, (side, &width))| match side {
            Side::Left => format!("{:<width$}", cell(row, column)),
            Side::Right => format!("{:>width$}", cell(row, column)),
        });
        padded.collect::<Vec<String>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_left_numbers_right_and_no_line_ends_with_a_space() {
        let rows = [["NODE", "JAC", "LINKS"], ["worker-1", "3", ""], ["é", "12", "worker-1"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let expected = "NODE      JAC  LINKS\nworker-1    3\né          12  worker-1";
        assert_eq!(aligned(&[Side::Left, Side::Right, Side::Left], &rows), expected);
    }
}
