//! Writes CSV.

use super::Dataset;
use std::io::Write;

/// The shortest decimal number that reads back as the same value, without hundreds of zeros.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-5..1e16).contains(&size) { format!("{value}") } else { format!("{value:e}") }
}

/// Writes columns of equal length; NaN stands for an empty field. `row_done` is asked after each row and may stop the
/// writing with an error.
pub fn write_csv(
    to: impl Write,
    names: &[String],
    columns: &[&[f64]],
    mut row_done: impl FnMut() -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(names)?;
    for row in 0..columns.first().map_or(0, |column| column.len()) {
        let field = |column: &&[f64]| if column[row].is_nan() { String::new() } else { number(column[row]) };
        writer.write_record(columns.iter().map(field))?;
        row_done()?;
    }
    writer.flush()
}

impl Dataset {
    /// Writes all channels, with a `record` column when there is more than one record.
    pub fn write_csv(&self, to: impl Write) -> std::io::Result<()> {
        let mut names: Vec<String> = self.inputs.iter().chain(&self.outputs).cloned().collect();
        let mut columns: Vec<&[f64]> = self.u.iter().chain(&self.y).map(Vec::as_slice).collect();
        let mut record = Vec::new();
        if self.records.len() > 1 {
            for (id, stretch) in self.records.iter().enumerate() {
                record.resize(stretch.rows.end, id as f64);
            }
            names.insert(0, "record".into());
            columns.insert(0, &record);
        }
        write_csv(to, &names, &columns, || Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::csv_file;
    use super::super::tests::counting;
    use super::*;

    #[test]
    fn numbers_read_back_the_same() {
        for value in [0.0, -0.1, 1.0 / 3.0, 1e-323, 123456.789, -1e300, 5e-6] {
            let text = number(value);
            assert_eq!(text.parse::<f64>().unwrap(), value);
            assert!(text.len() < 25, "{text}");
        }
    }

    #[test]
    fn a_data_set_reads_back_the_same() {
        let mut data = counting(&[3, 2]);
        data.u[0][1] = 1.0 / 3.0;
        let mut text = Vec::new();
        data.write_csv(&mut text).unwrap();
        let again = csv_file::read("counting", text.as_slice(), &Default::default()).unwrap();
        assert_eq!(again, data);
    }

    #[test]
    fn an_empty_field_in_a_single_column_is_no_blank_line() {
        let mut text = Vec::new();
        write_csv(&mut text, &["yhat_y".into()], &[&[f64::NAN, 1.5]], || Ok(())).unwrap();
        assert_eq!(text, b"yhat_y\n\"\"\n1.5\n");
    }
}
