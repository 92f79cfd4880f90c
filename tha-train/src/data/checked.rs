//! Data sets from columns in memory, checked as those of a file are.

use super::csv_file::Records;
use super::{DataError, Dataset, Record, unusable};
use std::collections::HashSet;

impl Dataset {
    /// Columns with their names; `records` has an id for every row, or nothing for one record; `places` are what the
    /// tables of inputs and of outputs are called in messages.
    ///
    /// ```
    /// use tha_train::Dataset;
    ///
    /// let columns = |values: &[f64]| vec![("level".to_owned(), values.to_vec())];
    /// let data = Dataset::checked(["U", "Y"], columns(&[1.0, 2.0]), columns(&[3.0, 4.0]), &[]);
    /// assert!(data.unwrap_err().to_string().starts_with("Y: two channels are named 'level'"));
    /// ```
    pub fn checked(
        places: [&str; 2],
        u: Vec<(String, Vec<f64>)>,
        y: Vec<(String, Vec<f64>)>,
        records: &[String],
    ) -> Result<Self, DataError> {
        let [origin, _] = places;
        let refuse = |place: &str, finding: String| Err(DataError::new(place, finding));
        let rows = u.first().map_or(0, |(_, column)| column.len());
        if rows == 0 {
            return refuse(origin, "no samples; expected samples x inputs".into());
        }
        let mut seen = HashSet::new();
        for (place, columns) in places.iter().zip([&u, &y]) {
            for (name, column) in columns {
                if !seen.insert(name) {
                    return refuse(place, format!("two channels are named '{name}'; rename one"));
                }
                if column.len() != rows {
                    let found = column.len();
                    return refuse(
                        place,
                        format!("{found} rows, but {origin} has {rows}; they must be equal"),
                    );
                }
                let unusable = |(row, &value)| Some((row, unusable(value)?));
                if let Some((row, finding)) = column.iter().enumerate().find_map(unusable) {
                    return refuse(&format!("{place}, row {row}, column '{name}'"), finding);
                }
            }
        }
        let records = if records.is_empty() {
            vec![Record { id: String::new(), rows: 0..rows }]
        } else if records.len() == rows {
            let mut all = Records::new(origin);
            for (row, id) in records.iter().enumerate() {
                all.push(id.as_bytes(), row as u64)?;
            }
            all.finish()
        } else {
            let found = records.len();
            let finding = format!("{found} ids, but {origin} has {rows} rows; expected one per row");
            return refuse("records", finding);
        };
        let (inputs, u) = u.into_iter().unzip();
        let (outputs, y) = y.into_iter().unzip();
        Ok(Self { origin: origin.into(), inputs, outputs, u, y, records })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, values: &[f64]) -> Vec<(String, Vec<f64>)> {
        vec![(name.into(), values.to_vec())]
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let good = || column("u1", &[1.0, 2.0, 3.0]);
        let ids = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
        let data =
            Dataset::checked(["U", "Y"], good(), column("y1", &[0.0; 3]), &ids(&["a", "a", "b"])).unwrap();
        assert_eq!((data.len(), data.records.len(), &data.records[1].rows), (3, 2, &(2..3)));
        for (y, records, expected) in [
            (column("y1", &[0.0, f64::NAN, 0.0]), ids(&[]), "Y, row 1, column 'y1': NaN; fill the gap"),
            (column("y1", &[0.0]), ids(&[]), "Y: 1 rows, but U has 3; they must be equal"),
            (column("u1", &[0.0; 3]), ids(&[]), "Y: two channels are named 'u1'"),
            (column("y1", &[0.0; 3]), ids(&["a"]), "records: 1 ids, but U has 3 rows"),
            (
                column("y1", &[0.0; 3]),
                ids(&["a", "b", "a"]),
                "U, line 2, column 'record': record 'a' comes back",
            ),
        ] {
            let refusal = Dataset::checked(["U", "Y"], good(), y, &records).unwrap_err().to_string();
            assert!(refusal.starts_with(expected), "{refusal}");
        }
        let none = Dataset::checked(["U", "Y"], column("u1", &[]), vec![], &[]).unwrap_err();
        assert_eq!(none.to_string(), "U: no samples; expected samples x inputs");
    }
}
