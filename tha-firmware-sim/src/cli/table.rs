//! Tables in words.

/// A table in words under its head: numbers to the right, words to the left.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let fields = |c: usize| rows.iter().filter_map(move |row| row.get(c));
    let widths: Vec<usize> =
        (0..columns).map(|c| fields(c).map(|f| f.chars().count()).max().unwrap_or(0)).collect();
    let numbers: Vec<bool> =
        (0..columns).map(|c| fields(c).skip(1).all(|field| field.parse::<f64>().is_ok())).collect();
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
