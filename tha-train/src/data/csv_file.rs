//! CSV with a header line, read row by row into columns: memory is 8 bytes per chosen value, whatever the text weighs.

use super::{Columns, DataError, Dataset, Record, unusable};
use std::collections::HashSet;
use std::io::Read;

/// Reads CSV text; `path` is for messages.
pub(super) fn read(path: &str, text: impl Read, columns: &Columns) -> Result<Dataset, DataError> {
    let mut reader = csv::ReaderBuilder::new().buffer_capacity(1 << 18).from_reader(text);
    let header = header(path, &mut reader)?;
    let chosen =
        columns.choose(&header).map_err(|finding| DataError::new(format!("{path}, line 1"), finding))?;

    let mut u = vec![Vec::new(); chosen.inputs.len()];
    let mut y = vec![Vec::new(); chosen.outputs.len()];
    let mut records = Records::new(path);
    let mut row = csv::ByteRecord::new();
    // The position before a row may lie before blank lines. The position after it is exact, except that the line feed of a
    // CRLF counts to the next row; the header shows whether the file has these. A row with line breaks inside of quotes is
    // reported by its first line, and a row that ends inside of quotes has no line feed of its own.
    let after_row = (reader.position().line() - 1).min(1);
    let line_of = |before: u64, row: &csv::ByteRecord, reader: &csv::Reader<_>| {
        let own = if row.as_slice().ends_with(b"\n") { 0 } else { after_row };
        before.max(reader.position().line().saturating_sub(own + line_breaks(row.as_slice())))
    };
    loop {
        let read = reader.read_byte_record(&mut row);
        let ragged = match &read {
            Ok(true) => None,
            Ok(false) => break,
            Err(error) => match error.kind() {
                csv::ErrorKind::UnequalLengths { pos, .. } => pos.as_ref(),
                _ => return Err(refused(path, &read.unwrap_err(), 0)),
            },
        };
        let before = ragged.or(row.position()).map_or(0, csv::Position::line);
        let line = line_of(before, &row, &reader);
        if let Err(error) = read {
            return Err(match row.iter().position(|field| field.contains(&b'\n')) {
                Some(column) => open_quote(path, line, header.get(column)),
                None => refused(path, &error, line),
            });
        }
        for (positions, values) in [(&chosen.inputs, &mut u), (&chosen.outputs, &mut y)] {
            for (&column, values) in positions.iter().zip(values.iter_mut()) {
                if row[column].contains(&b'\n') {
                    return Err(open_quote(path, line, header.get(column)));
                }
                let value = number(&row[column]);
                values.push(value.map_err(|finding| at(path, line, header.get(column), finding))?);
            }
        }
        records.push(chosen.record.map_or(&b""[..], |column| row[column].trim_ascii()), line)?;
    }
    let records = records.finish();
    if records.is_empty() {
        return Err(empty(path, "only a header"));
    }
    let names = |positions: &[usize]| positions.iter().map(|&i| header[i].clone()).collect();
    Ok(Dataset {
        origin: path.into(),
        inputs: names(&chosen.inputs),
        outputs: names(&chosen.outputs),
        u,
        y,
        records,
    })
}

fn header(path: &str, reader: &mut csv::Reader<impl Read>) -> Result<Vec<String>, DataError> {
    let header = reader.byte_headers().map_err(|error| refused(path, &error, 1))?;
    if header.is_empty() {
        return Err(empty(path, "an empty file"));
    }
    names(header).map_err(|finding| DataError::new(format!("{path}, line 1"), finding))
}

/// The names of the columns; the error is the finding and the remedy.
fn names(header: &csv::ByteRecord) -> Result<Vec<String>, String> {
    let bytes = header.as_slice();
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") || is_wide(bytes) {
        return Err("not UTF-8 but UTF-16; save the file as 'CSV UTF-8'".into());
    }
    let binary = |byte: &u8| byte.is_ascii_control() && !b"\t\r\n".contains(byte);
    if let Some(byte) = bytes.iter().find(|byte| binary(byte)) {
        return Err(format!(
            "not text: byte {byte:#04x} in the header; expected comma-separated values with a header line"
        ));
    }
    let name = |(i, field): (usize, &[u8])| {
        let name = std::str::from_utf8(field).map_err(|_| {
            format!(
                "the name of column {}, '{}', is not UTF-8 but perhaps Latin-1; save the file as 'CSV UTF-8', \
                 or rename the column",
                i + 1,
                shown(field)
            )
        })?;
        Ok(name.trim().to_owned())
    };
    let names: Vec<String> = header.iter().enumerate().map(name).collect::<Result<_, String>>()?;
    if let [only] = &names[..]
        && let Some(separator) = only.chars().find(|c| "\t;|".contains(*c))
    {
        let (kind, comma) = match separator {
            '\t' => ("tabs", ""),
            ';' => ("semicolons", ", and write decimals with a point"),
            _ => ("bars", ""),
        };
        return Err(format!("one column only, with {kind} in it; separate the fields with commas{comma}"));
    }
    match names.iter().find(|name| name.contains(char::is_control)) {
        Some(name) if name.contains('\t') => {
            Err(format!("a tab in the name '{}'; separate the fields with commas", name.escape_debug()))
        }
        Some(name) => Err(format!(
            "a line break in the name '{}'; write it on one line, and close its quotes",
            shown(name.as_bytes())
        )),
        None => Ok(names),
    }
}

/// The beginning of a field, for a message.
fn shown(field: &[u8]) -> String {
    let start: String = String::from_utf8_lossy(field).chars().take(24).collect();
    start.escape_debug().to_string()
}

/// ASCII text in two bytes per character, without a byte order mark.
fn is_wide(bytes: &[u8]) -> bool {
    let zeros = bytes.iter().filter(|byte| **byte == 0).count();
    let plain = bytes.iter().all(|byte| *byte == 0 || byte.is_ascii_graphic() || *byte == b' ');
    plain && 3 * zeros > bytes.len()
}

fn line_breaks(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// A field of numbers that has a line break in it.
fn open_quote(path: &str, line: u64, column: Option<&String>) -> DataError {
    at(path, line, column, "a quote that is not closed on this line; close or remove it".into())
}

/// A finding in a field.
fn at(path: &str, line: u64, column: Option<&String>, finding: String) -> DataError {
    DataError::new(format!("{path}, line {line}, column '{}'", column.map_or("", |name| name)), finding)
}

fn empty(path: &str, found: &str) -> DataError {
    DataError::new(path, format!("no samples ({found}); expected a header line and one line per sample"))
}

fn refused(path: &str, error: &csv::Error, line: u64) -> DataError {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => DataError::new(
            format!("{path}, line {line}"),
            format!("{len} fields, but the header has {expected_len}; complete or remove the line"),
        ),
        csv::ErrorKind::Io(reason) => DataError::unreadable(path, reason),
        _ => DataError::new(path, format!("cannot be read: {error}")),
    }
}

/// A usable number, or what was found instead and the remedy.
fn number(field: &[u8]) -> Result<f64, String> {
    let field = field.trim_ascii();
    if field.is_empty() {
        return Err("an empty field; fill the gap or start a new record after it".into());
    }
    let Some(value) = std::str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok()) else {
        return Err(format!("'{}' is not a number; expected a decimal number", shown(field)));
    };
    unusable(value).map_or(Ok(value), Err)
}

/// Collects contiguous runs of record ids.
pub(super) struct Records<'a> {
    path: &'a str,
    records: Vec<Record>,
    seen: HashSet<String>,
}

impl<'a> Records<'a> {
    pub(super) fn new(path: &'a str) -> Self {
        Self { path, records: Vec::new(), seen: HashSet::new() }
    }

    /// Adds one row with this id.
    pub(super) fn push(&mut self, id: &[u8], line: u64) -> Result<(), DataError> {
        if let Some(last) = self.records.last_mut()
            && last.id.as_bytes() == id
        {
            last.rows.end += 1;
            return Ok(());
        }
        let id = String::from_utf8_lossy(id).into_owned();
        if !self.seen.insert(id.clone()) {
            let finding = format!(
                "record '{id}' comes back after another one; keep the lines of a record together or give the second \
                 stretch its own id"
            );
            return Err(at(self.path, line, Some(&"record".into()), finding));
        }
        let start = self.records.last().map_or(0, |record| record.rows.end);
        self.records.push(Record { id, rows: start..start + 1 });
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<Record> {
        self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Dataset, DataError> {
        read("x.csv", text.as_bytes(), &Columns::default())
    }

    #[test]
    fn columns_and_records() {
        let data = parse("record,u1,t,y1,u2\na,1,x,2,3\na, 4 ,x,5,-6e-1\n b ,7,x,8,9\n").unwrap();
        assert_eq!(data.inputs, ["u1", "u2"]);
        assert_eq!(data.u, [vec![1.0, 4.0, 7.0], vec![3.0, -0.6, 9.0]]);
        assert_eq!(data.y, [vec![2.0, 5.0, 8.0]]);
        assert_eq!(data.records[0], Record { id: "a".into(), rows: 0..2 });
        assert_eq!(data.records[1], Record { id: "b".into(), rows: 2..3 });
    }

    #[test]
    fn a_byte_order_mark_quotes_and_carriage_returns_are_fine() {
        let data = parse("\u{feff}\"u1\",y1\r\n1,2\r\n3,4\r\n").unwrap();
        assert_eq!(data.u, [vec![1.0, 3.0]]);
        assert_eq!(data.records.len(), 1);
    }

    #[test]
    fn other_encodings_are_named() {
        let refuse = |bytes: &[u8]| read("x.csv", bytes, &Columns::default()).unwrap_err().to_string();
        let latin = refuse(b"u1,y_\xb0C\n1,2\n");
        assert!(latin.contains("line 1: the name of column 2") && latin.contains("Latin-1"), "{latin}");
        let little: Vec<u8> = "u1,y1\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "u1,y1\n1,2\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (mark, text) in [(&b""[..], &little), (b"", &big), (b"\xff\xfe", &little), (b"\xfe\xff", &big)] {
            let wide = refuse(&[mark, text].concat());
            assert!(wide.contains("line 1: not UTF-8 but UTF-16; save"), "{wide}");
        }
    }

    #[test]
    fn denormals_are_numbers() {
        assert_eq!(parse("u1,y1\n1.5e-323,2\n").unwrap().u[0][0], 1.5e-323);
    }

    /// Beside those that the tests of the command line try with every command.
    #[test]
    fn every_refusal_names_the_place() {
        for (text, expected) in [
            ("\n\n", "x.csv: no samples (an empty file)"),
            ("u1,y1\n1e999,1\n", "x.csv, line 2, column 'u1': an infinite value;"),
            ("u1,y1\n1,2\n\n3,four\n", "x.csv, line 4, column 'y1': 'four' is not a number;"),
            ("u1,y1\r\n1,2\r\n\r\n3,four\r\n", "x.csv, line 4, column 'y1'"),
            ("u1,y1\n1,2\n3,four", "x.csv, line 3, column 'y1'"),
            ("u1,y1\n1,2\n\n\n3\n4,5\n", "x.csv, line 5: 1 fields"),
            ("a,b\n1,2\n", "x.csv, line 1: no input column"),
            ("u1,b\n1,2\n", "x.csv, line 1: no output column"),
            ("u1\tu2,y1\n1\t2,3\n", "x.csv, line 1: a tab in the name 'u1\\tu2'"),
            ("u1,y1\n1,2\n3,\"4\n5,6\n7,8\n", "x.csv, line 3, column 'y1': a quote that is not closed"),
            ("u1,y1\n1,2\n\n\n\"3,4\n5,6\n7,8\n", "x.csv, line 5, column 'u1': a quote that is not closed"),
            ("u1,y1\r\n1,2\r\n\"3,4\r\n5,6\r\n7,8", "x.csv, line 3, column 'u1': a quote that is not closed"),
            ("u1,t,y1\n1,\"a\nb\",2\n3,c,four\n", "x.csv, line 4, column 'y1': 'four'"),
            ("u1,t,y1\n3,\"a\nb\",four\n", "x.csv, line 2, column 'y1': 'four'"),
            ("\u{1}\u{2},x\n", "x.csv, line 1: not text: byte 0x01"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{text:?}: {message}");
            assert!(!message.contains('\n'));
        }
    }
}
