//! NumPy arrays: `.npz` with `u` (N x p), `y` (N x l) and optionally `record` (N), or a pair of `.npy` files.
//! Vectors count as one column; integers and 32-bit floats are widened. Channels are named `u1..up`, `y1..yl`, or,
//! when a model asks for its own channels, taken to be in the model's order.

use super::csv_file::Records;
use super::source::open;
use super::{Columns, DataError, Dataset, unusable};
use crate::host;
use ndarray::{Array2, ArrayD, Axis};
use ndarray_npy::{ReadDataError, ReadNpyError, ReadNpyExt, ReadableElement};
use py_literal::Value;
use std::io::{BufReader, Read};
use std::path::Path;
use zip::ZipArchive;

/// Reads `.npz`.
pub(super) fn read_npz(file: &Path, columns: &Columns) -> Result<Dataset, DataError> {
    let path = &*file.display().to_string();
    let mut archive = ZipArchive::new(BufReader::new(open(file)?)).map_err(|error| {
        DataError::new(path, format!("cannot be read: {error}; save it again with numpy.savez"))
    })?;
    let members: Vec<String> = archive.file_names().map(String::from).collect();
    let arrays: Vec<&str> = members.iter().map(|name| name.strip_suffix(".npy").unwrap_or(name)).collect();
    let mut array = |name: &'static str| -> Result<Option<Table>, DataError> {
        let like = || arrays.iter().position(|found| found.trim().eq_ignore_ascii_case(name));
        let Some(member) = arrays.iter().position(|found| *found == name).or_else(like) else {
            return Ok(None);
        };
        let array = match archive.by_name(&members[member]) {
            Ok(member) => read(member),
            Err(error) => Err(error.to_string()),
        };
        array
            .and_then(|array| Table::new(path, name, array))
            .map(Some)
            .map_err(|finding| DataError::new(path, format!("array '{name}': {finding}")))
    };
    let (u, y, record) = (array("u")?, array("y")?, array("record")?);
    let u = u.ok_or_else(|| {
        let found = arrays.join(", ");
        DataError::new(path, format!("no array 'u' among [{found}]; expected u (N x p) and y (N x l)"))
    })?;
    assemble(u, y, record, columns)
}

/// Reads a pair of `.npy` files; the outputs may be left out when the columns ask for none.
pub(super) fn read_npy(u: &Path, y: Option<&Path>, columns: &Columns) -> Result<Dataset, DataError> {
    let load = |file: &Path, name: &'static str| -> Result<Table, DataError> {
        let path = &*file.display().to_string();
        read(BufReader::new(open(file)?))
            .and_then(|array| Table::new(path, name, array))
            .map_err(|finding| DataError::new(path, finding))
    };
    let inputs = load(u, "u")?;
    let outputs = y.map(|y| load(y, "y")).transpose()?;
    assemble(inputs, outputs, None, columns)
}

/// Bytes of the longest header that is read; that of an array of numbers has about a hundred.
const HEADER: u32 = 1 << 16;
/// Values that are read at a time: what a header claims is only allocated once it is there.
const CHUNK: usize = 1 << 16;

/// Reads an array; the error is the finding and the remedy.
fn read(mut from: impl Read) -> Result<ArrayD<Real>, String> {
    const AGAIN: &str = "save it again with numpy.save";
    let mut start = Vec::new();
    from.by_ref().take(12).read_to_end(&mut start).map_err(|error| error.to_string())?;
    // From version 2 on the length of the header has four bytes.
    let long = start.len() == 12 && start[6] > 1;
    if long && u32::from_le_bytes([start[8], start[9], start[10], start[11]]) > HEADER {
        return Err(format!("no header of an array of numbers; {AGAIN}"));
    }
    ArrayD::read_npy(start.chain(from)).map_err(|error| match error {
        ReadNpyError::WrongDescriptor(_) => "not an array of real numbers; save it as float64".into(),
        ReadNpyError::ParseHeader(_) => format!("no header of a NumPy array; {AGAIN}"),
        ReadNpyError::ParseData(error) => error.to_string(),
        ReadNpyError::LengthOverflow => format!("its header says more values than can be counted; {AGAIN}"),
        ReadNpyError::MissingData => format!("cut off: fewer values than its header says; {AGAIN}"),
        ReadNpyError::ExtraBytes(_) => format!("more values than its header says; {AGAIN}"),
        error => format!("{error}; {AGAIN}"),
    })
}

/// A value of any real element type, widened.
#[derive(Clone, Copy)]
struct Real(f64);

impl ReadableElement for Real {
    fn read_to_end_exact_vec<R: Read>(
        mut reader: R,
        element: &Value,
        count: usize,
    ) -> Result<Vec<Self>, ReadDataError> {
        let unknown = || ReadDataError::WrongDescriptor(element.clone());
        let name = element.as_string().ok_or_else(unknown)?;
        let (size, widen) = decoder(name.trim_start_matches(['<', '>', '|'])).ok_or_else(unknown)?;
        // The array, and its columns while they are made from it.
        let bytes = 2.0 * 8.0 * count as f64;
        host::check_room("the array that its header describes", bytes, "use fewer samples or channels")
            .map_err(|error| ReadDataError::ParseData(error.into()))?;
        let mut values = Vec::new();
        let mut buffer = vec![0; size * CHUNK.min(count)];
        while values.len() < count {
            let part = &mut buffer[..size * CHUNK.min(count - values.len())];
            reader.read_exact(part)?;
            values.extend(part.chunks_exact_mut(size).map(|bytes| {
                if name.starts_with('>') {
                    bytes.reverse();
                }
                Self(widen(bytes))
            }));
        }
        match reader.read(&mut [0])? {
            0 => Ok(values),
            more => Err(ReadDataError::ExtraBytes(more)),
        }
    }
}

/// The size of an element, and what makes a number of its bytes, least significant first.
type Decoder = (usize, fn(&[u8]) -> f64);

/// How elements of this NumPy type are read.
fn decoder(name: &str) -> Option<Decoder> {
    macro_rules! elements {
        ($($name:literal $element:ty),*) => {
            match name {
                $($name => Some((size_of::<$element>(), |bytes| {
                    bytes.try_into().map_or(f64::NAN, |bytes| <$element>::from_le_bytes(bytes) as f64)
                })),)*
                _ => None,
            }
        };
    }
    elements!("f8" f64, "f4" f32, "i8" i64, "i4" i32, "i2" i16, "i1" i8, "u8" u64, "u4" u32, "u2" u16, "u1" u8)
}

/// A two-dimensional array and where it came from.
struct Table {
    path: String,
    name: &'static str,
    values: Array2<Real>,
}

impl Table {
    fn new(path: &str, name: &'static str, array: ArrayD<Real>) -> Result<Self, String> {
        let values = match array.ndim() {
            1 => array.insert_axis(Axis(1)),
            2 => array,
            n => return Err(format!("{n} dimensions; expected samples x channels")),
        };
        let values = values.into_dimensionality().map_err(|error| error.to_string())?;
        Ok(Self { path: path.into(), name, values })
    }

    fn columns(&self, names: &[String]) -> Result<Vec<Vec<f64>>, DataError> {
        let columns: Vec<Vec<f64>> =
            self.values.columns().into_iter().map(|c| c.iter().map(|value| value.0).collect()).collect();
        for (name, column) in names.iter().zip(&columns) {
            let found = column.iter().enumerate().find_map(|(row, &value)| Some((row + 1, unusable(value)?)));
            if let Some((row, finding)) = found {
                let finding = format!("array '{}', row {row}, column {name}: {finding}", self.name);
                return Err(DataError::new(&self.path, finding));
            }
        }
        Ok(columns)
    }
}

fn assemble(
    u: Table,
    y: Option<Table>,
    record: Option<Table>,
    columns: &Columns,
) -> Result<Dataset, DataError> {
    let path = u.path.clone();
    let refuse = |finding: String| DataError::new(&path, finding);
    let samples = u.values.nrows();
    if samples == 0 || u.values.ncols() == 0 {
        return Err(refuse("array 'u' is empty; expected samples x inputs".into()));
    }
    let y = y.filter(|_| !matches!(columns, Columns::Named { outputs, .. } if outputs.is_empty()));
    for table in y.iter().chain(&record) {
        if table.values.nrows() != samples {
            return Err(refuse(format!(
                "array '{}' has {} rows, but 'u' has {samples}; they must be equal",
                table.name,
                table.values.nrows()
            )));
        }
    }
    if record.as_ref().is_some_and(|record| record.values.ncols() != 1) {
        return Err(refuse("array 'record' has not one column; expected one number per sample".into()));
    }
    let (inputs, outputs) = names(columns, &u, y.as_ref()).map_err(refuse)?;
    let mut records = Records::new(&path);
    for row in 0..samples {
        let id = record.as_ref().map_or(String::new(), |record| record.values[[row, 0]].0.to_string());
        records.push(id.as_bytes(), row as u64 + 1)?;
    }
    let records = records.finish();
    Ok(Dataset {
        u: u.columns(&inputs)?,
        y: y.map_or(Ok(Vec::new()), |y| y.columns(&outputs))?,
        origin: path.clone(),
        inputs,
        outputs,
        records,
    })
}

/// Channel names: numbered, or the model's when there are as many.
fn names(columns: &Columns, u: &Table, y: Option<&Table>) -> Result<(Vec<String>, Vec<String>), String> {
    let numbered = |table: &Table| (1..=table.values.ncols()).map(|i| format!("{}{i}", table.name)).collect();
    let fitting = |table: &Table, names: &[String]| {
        let found = table.values.ncols();
        if found == names.len() {
            return Ok(names.to_vec());
        }
        Err(format!(
            "array '{}' has {found} columns, but the model has {} channels; give those, in the model's order",
            table.name,
            names.len()
        ))
    };
    let outputs = || {
        y.ok_or_else(|| {
            "no array 'y'; the outputs are needed here: add it to the archive, or give `y`".to_owned()
        })
    };
    match columns {
        Columns::Patterns { .. } if *columns != Columns::default() => {
            Err("arrays have no column names; leave `inputs` and `outputs` out".into())
        }
        Columns::Patterns { .. } => match outputs()? {
            y if y.values.ncols() == 0 => Err("array 'y' is empty; expected samples x outputs".into()),
            y => Ok((numbered(u), numbered(y))),
        },
        Columns::Named { inputs, outputs: none } if none.is_empty() => Ok((fitting(u, inputs)?, Vec::new())),
        Columns::Named { inputs, outputs: names } => Ok((fitting(u, inputs)?, fitting(outputs()?, names)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;
    use ndarray_npy::{NpzWriter, write_npy};
    use std::fs::File;

    #[test]
    fn npz_with_records_and_mixed_types() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.npz");
        let mut archive = NpzWriter::new_compressed(File::create(&path).unwrap());
        archive.add_array("u", &array![[1.0_f32, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap();
        archive.add_array("y", &array![10_i64, 20, 30]).unwrap();
        archive.add_array("record", &array![0_i32, 0, 1]).unwrap();
        archive.finish().unwrap();
        let data = read_npz(&path, &Columns::default()).unwrap();
        assert_eq!(data.inputs, ["u1", "u2"]);
        assert_eq!(data.u, [vec![1.0, 3.0, 5.0], vec![2.0, 4.0, 6.0]]);
        assert_eq!(data.y, [vec![10.0, 20.0, 30.0]]);
        assert_eq!(data.records.len(), 2);

        let named = |inputs: &[&str]| Columns::Named {
            inputs: inputs.iter().map(|&name| name.into()).collect(),
            outputs: vec![],
        };
        assert_eq!(read_npz(&path, &named(&["a", "b"])).unwrap().inputs, ["a", "b"]);
        let message = read_npz(&path, &named(&["a"])).unwrap_err().to_string();
        assert!(message.contains("has 2 columns, but the model has 1 channels"), "{message}");
    }

    #[test]
    fn npy_pairs() {
        let folder = tempfile::tempdir().unwrap();
        let [u, y] = ["u.npy", "y.npy"].map(|name| folder.path().join(name));
        write_npy(&u, &array![[1.0, 2.0], [3.0, 4.0]]).unwrap();
        write_npy(&y, &array![1.0, 2.0]).unwrap();
        assert_eq!(read_npy(&u, Some(&y), &Columns::default()).unwrap().y, [vec![1.0, 2.0]]);
    }
}
