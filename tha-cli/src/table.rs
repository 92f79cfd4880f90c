//! Tables, figures and numbers of things, in words.

/// A table under its head, whose fields commas divide: numbers to the right, words to the left.
pub fn table(head: &str, rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.split(", ").map(String::from).collect();
    let with_head = || std::iter::once(&head).filter(|head| head.len() > 1).chain(rows);
    let columns = with_head().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| with_head().filter_map(|row| row.get(c)).map(|field| field.chars().count()).max();
    let is_number = |field: &String| field == "-" || field.parse::<f64>().is_ok();
    let numbers = |c: usize| rows.iter().filter_map(|row| row.get(c)).all(is_number);
    let shape: Vec<(usize, bool)> = (0..columns).map(|c| (width(c).unwrap_or(0), numbers(c))).collect();
    let mut text = String::new();
    for row in with_head() {
        let field = |(field, &(width, number)): (&String, &(usize, bool))| {
            if number { format!("{field:>width$}") } else { format!("{field:<width$}") }
        };
        let line = row.iter().zip(&shape).map(field).collect::<Vec<_>>().join("  ");
        text += &format!("{}\n", line.trim_end());
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
        let rows = [["long", "12", "x"], ["s", "-", "yy"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(table(", a, b", &rows), "       a  b\nlong  12  x\ns      -  yy\n");
        assert_eq!(table("", &rows), "long  12  x\ns      -  yy\n");
    }
}
