//! Tables, figures and numbers of things, in words.

/// A table under its head: numbers to the right, words to the left.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let fields = |c: usize| rows.iter().filter_map(move |row| row.get(c));
    let widths: Vec<usize> =
        (0..columns).map(|c| fields(c).map(|f| f.chars().count()).max().unwrap_or(0)).collect();
    let number = |field: &String| field == "-" || field.parse::<f64>().is_ok();
    let numbers: Vec<bool> = (0..columns).map(|c| fields(c).skip(1).all(number)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for ((field, &width), &number) in row.iter().zip(&widths).zip(&numbers) {
            let field = if number { format!("{field:>width$}") } else { format!("{field:<width$}") };
            line.push_str(&field);
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A figure for a table: three to five digits.
pub fn figure(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => "-".into(),
        size if size == 0.0 || (1e-3..1e4).contains(&size) => {
            let before = if size >= 1.0 { size.log10().floor() as usize + 1 } else { 1 };
            format!("{value:.*}", 5_usize.saturating_sub(before))
        }
        _ => format!("{value:.3e}"),
    }
}

/// A number of things, in good grammar.
pub fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        for (value, expected) in [
            (0.0, "0.0000"),
            (0.01234567, "0.0123"),
            (1.234567, "1.2346"),
            (123.4567, "123.46"),
            (1e-9, "1.000e-9"),
            (-2.5e7, "-2.500e7"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(figure(value), expected);
        }
    }

    #[test]
    fn tables_line_up() {
        let rows =
            [["", "a", "b"], ["long", "12", "x"], ["s", "-", "yy"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(table(&rows), "       a  b\nlong  12  x\ns      -  yy\n");
    }
}
