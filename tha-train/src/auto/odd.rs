//! What is odd about a recording: said before the search, so that nobody wonders afterwards.

use crate::data::{Dataset, Record, listed};

/// Distances from the median, in units of what half of the values keep within, that are outliers.
const FAR: f64 = 30.0;
/// Records of so many samples in which an input never moves have a stuck sensor.
const STUCK: usize = 20;
/// Rows that are named.
const NAMED: usize = 5;

/// One line for each finding.
pub(super) fn odd(data: &Dataset, history: usize) -> Vec<String> {
    let mut found = Vec::new();
    let short = data.records.iter().map(|record| record.rows.len()).filter(|length| *length <= history);
    let short: Vec<usize> = short.collect();
    if !short.is_empty() {
        let rows: usize = short.iter().sum();
        found.push(format!(
            "{}: {} of {} records ({rows} samples) are no longer than the {history} samples of history that settings are compared with, \
             and are left out",
            data.origin,
            short.len(),
            data.records.len()
        ));
    }
    for (name, column) in data.inputs.iter().zip(&data.u).chain(data.outputs.iter().zip(&data.y)) {
        let rows = outliers(column);
        if !rows.is_empty() {
            let named: Vec<String> = rows.iter().take(NAMED).map(|row| (row + 1).to_string()).collect();
            let more = if rows.len() > NAMED { ", ..." } else { "" };
            found.push(format!(
                "{}: '{name}' lies far from all other values in {} (sample {}{more}); if these are faults, remove them",
                data.origin,
                if rows.len() == 1 { "one sample".into() } else { format!("{} samples", rows.len()) },
                named.join(", ")
            ));
        }
    }
    for (name, column) in data.inputs.iter().zip(&data.u) {
        let still = |values: &[f64]| values.iter().all(|value| *value == values[0]);
        let stuck = |record: &&Record| record.rows.len() >= STUCK && still(&column[record.rows.clone()]);
        let records: Vec<String> =
            data.records.iter().filter(stuck).map(|record| record.id.clone()).collect();
        if !records.is_empty() && records.len() < data.records.len() {
            found.push(format!("{}: input '{name}' never moves in record {}", data.origin, listed(&records)));
        }
    }
    for (k, column) in data.u.iter().enumerate() {
        if let Some(first) = data.u[..k].iter().position(|other| other == column) {
            let (a, b) = (&data.inputs[first], &data.inputs[k]);
            found
                .push(format!("{}: inputs '{a}' and '{b}' are the same; one of them is enough", data.origin));
        }
    }
    found
}

/// Rows far from the median.
fn outliers(column: &[f64]) -> Vec<usize> {
    let mut sorted = column.to_vec();
    sorted.sort_by(f64::total_cmp);
    let part = |part: f64| sorted[((sorted.len() - 1) as f64 * part) as usize];
    let (middle, width) = (part(0.5), part(0.75) - part(0.25));
    // A signal that rests most of the time has no width to compare with.
    if width <= 0.0 {
        return Vec::new();
    }
    (0..column.len()).filter(|&row| (column[row] - middle).abs() > FAR * width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    #[test]
    fn each_oddity_is_one_line_and_good_data_have_none() {
        let mut normal = Normal::new(1);
        let mut column = || (0..200).map(|_| normal.draw()).collect::<Vec<f64>>();
        let mut data = Dataset::new("x.csv", vec![column(), column()], vec![column()]);
        assert_eq!(odd(&data, 10), Vec::<String>::new());
        data.records = [("a", 0..5), ("b", 5..100), ("c", 100..200)]
            .map(|(id, rows)| Record { id: id.into(), rows })
            .to_vec();
        data.y[0][7] = 1e3;
        data.u[0][100..].fill(0.5);
        data.u.push(data.u[1].clone());
        data.inputs.push("twin".into());
        let said = odd(&data, 10);
        assert_eq!(said.len(), 4, "{said:?}");
        for (line, words) in said.iter().zip([
            "1 of 3 records (5 samples)",
            "(sample 8)",
            "never moves in record 'c'",
            "'twin' are the same",
        ]) {
            assert!(line.contains(words) && line.starts_with("x.csv: "), "{line}");
        }
    }
}
