//! NumPy arrays: `.npz` with `u` (N x p), `y` (N x l) and optionally `record` (N), or a pair of `.npy` files.
//! Vectors count as one column; integers and 32-bit floats are widened. Channels are named `u1..up`, `y1..yl`, or,
//! when a model asks for its own channels, taken to be in the model's order.

use super::csv_file::Records;
use super::{Columns, DataError, Dataset, unusable};
use ndarray::{Array2, ArrayD, Axis, IxDyn};
use ndarray_npy::{NpzReader, ReadNpyError, ReadNpyExt, ReadNpzError, ReadableElement};
use std::fs::File;
use std::path::Path;

/// Reads `.npz`.
pub(super) fn read_npz(file: &Path, columns: &Columns) -> Result<Dataset, DataError> {
    let path = &*file.display().to_string();
    let unreadable = |error: ReadNpzError| DataError::Unreadable {
        path: path.into(),
        reason: format!("{error}; save it again with numpy.savez"),
    };
    let mut archive = NpzReader::new(open(file)?).map_err(unreadable)?;
    let members = archive.names().map_err(unreadable)?;
    let mut array = |name: &'static str| -> Result<Option<Table>, DataError> {
        if !members.iter().any(|member| member == name) {
            return Ok(None);
        }
        let array = widen(&mut Member { archive: &mut archive, name });
        array.and_then(|array| Table::new(path, name, array)).map(Some).map_err(|finding| DataError::Array {
            path: path.into(),
            finding: format!("array '{name}': {finding}"),
        })
    };
    let (u, y, record) = (array("u")?, array("y")?, array("record")?);
    let u = u.ok_or_else(|| DataError::Array {
        path: path.into(),
        finding: format!("no array 'u' among [{}]; expected u (N x p) and y (N x l)", members.join(", ")),
    })?;
    assemble(u, y, record, columns)
}

/// Reads a pair of `.npy` files; the outputs may be left out when the columns ask for none.
pub(super) fn read_npy(u: &Path, y: Option<&Path>, columns: &Columns) -> Result<Dataset, DataError> {
    let load = |file: &Path, name: &'static str| -> Result<Table, DataError> {
        let path = &*file.display().to_string();
        open(file)?;
        widen(&mut Whole { path: file })
            .and_then(|array| Table::new(path, name, array))
            .map_err(|finding| DataError::Array { path: path.into(), finding })
    };
    let inputs = load(u, "u")?;
    let outputs = y.map(|y| load(y, "y")).transpose()?;
    assemble(inputs, outputs, None, columns)
}

fn open(path: &Path) -> Result<File, DataError> {
    File::open(path).map_err(|error| DataError::Unreadable {
        path: path.display().to_string(),
        reason: crate::host::refusal(&error),
    })
}

/// An array that can be read as any element type.
trait Readable {
    fn read<T: ReadableElement>(&mut self) -> Result<ArrayD<T>, ReadNpyError>;
}

struct Member<'a> {
    archive: &'a mut NpzReader<File>,
    name: &'static str,
}

impl Readable for Member<'_> {
    fn read<T: ReadableElement>(&mut self) -> Result<ArrayD<T>, ReadNpyError> {
        self.archive.by_name::<ndarray::OwnedRepr<T>, IxDyn>(self.name).map_err(|error| match error {
            ReadNpzError::Npy(error) => error,
            ReadNpzError::Zip(error) => ReadNpyError::Io(std::io::Error::other(error)),
        })
    }
}

struct Whole<'a> {
    path: &'a Path,
}

impl Readable for Whole<'_> {
    fn read<T: ReadableElement>(&mut self) -> Result<ArrayD<T>, ReadNpyError> {
        ArrayD::<T>::read_npy(std::io::BufReader::new(File::open(self.path)?))
    }
}

/// Reads an array of any real element type as f64.
fn widen(source: &mut impl Readable) -> Result<ArrayD<f64>, String> {
    macro_rules! attempt {
        ($($element:ty),*) => {$(
            match source.read::<$element>() {
                Ok(array) => return Ok(array.mapv(|value| value as f64)),
                Err(ReadNpyError::WrongDescriptor(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        )*};
    }
    match source.read::<f64>() {
        Ok(array) => return Ok(array),
        Err(ReadNpyError::WrongDescriptor(_)) => {}
        Err(error) => return Err(error.to_string()),
    }
    attempt!(f32, i64, i32, i16, i8, u64, u32, u16, u8);
    Err("not an array of real numbers; save it as float64".into())
}

/// A two-dimensional array and where it came from.
struct Table {
    path: String,
    name: &'static str,
    values: Array2<f64>,
}

impl Table {
    fn new(path: &str, name: &'static str, array: ArrayD<f64>) -> Result<Self, String> {
        let values = match array.ndim() {
            1 => array.insert_axis(Axis(1)),
            2 => array,
            n => return Err(format!("{n} dimensions; expected samples x channels")),
        };
        let values = values.into_dimensionality().map_err(|error| error.to_string())?;
        Ok(Self { path: path.into(), name, values })
    }

    fn columns(&self, names: &[String]) -> Result<Vec<Vec<f64>>, DataError> {
        let columns: Vec<Vec<f64>> = self.values.columns().into_iter().map(|c| c.to_vec()).collect();
        for (name, column) in names.iter().zip(&columns) {
            let found = column.iter().enumerate().find_map(|(row, &value)| Some((row + 1, unusable(value)?)));
            if let Some((row, (finding, remedy))) = found {
                let finding = format!("array '{}', row {row}, column {name}: {finding}; {remedy}", self.name);
                return Err(DataError::Array { path: self.path.clone(), finding });
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
    let refuse = |finding: String| DataError::Array { path: path.clone(), finding };
    let samples = u.values.nrows();
    if samples == 0 || u.values.ncols() == 0 {
        return Err(refuse("array 'u' is empty; expected samples x inputs".into()));
    }
    let (inputs, outputs) = names(columns, &u, y.as_ref()).map_err(refuse)?;
    let y = y.filter(|_| !outputs.is_empty());
    for table in y.iter().chain(&record) {
        if table.values.nrows() != samples {
            return Err(refuse(format!(
                "array '{}' has {} rows, but 'u' has {samples}; they must be equal",
                table.name,
                table.values.nrows()
            )));
        }
    }
    let mut records = Records::new(&path);
    for row in 0..samples {
        let id = record.as_ref().map_or(String::new(), |record| record.values[[row, 0]].to_string());
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
            "no array 'y'; the outputs are needed here: add it to the archive, or give --y".to_owned()
        })
    };
    match columns {
        Columns::Patterns { .. } if *columns != Columns::default() => {
            Err("arrays have no column names; leave --inputs and --outputs out".into())
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
    use ndarray::{Array1, array};
    use ndarray_npy::{NpzWriter, write_npy};

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
    fn npy_pairs_and_their_refusals() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write_npy(at("u.npy"), &array![[1.0, 2.0], [3.0, 4.0]]).unwrap();
        write_npy(at("y.npy"), &Array1::from(vec![1.0, 2.0])).unwrap();
        write_npy(at("nan.npy"), &Array1::from(vec![1.0, f64::NAN])).unwrap();
        write_npy(at("long.npy"), &Array1::from(vec![1.0, 2.0, 3.0])).unwrap();
        write_npy(at("none.npy"), &Array1::<f64>::from(vec![])).unwrap();
        std::fs::write(at("junk.npy"), b"not numpy at all").unwrap();
        let read = |u: &str, y: &str| read_npy(&at(u), Some(&at(y)), &Columns::default());
        assert_eq!(read("u.npy", "y.npy").unwrap().y, [vec![1.0, 2.0]]);
        for (u, y, expected) in [
            ("u.npy", "nan.npy", "row 2, column y1: NaN;"),
            ("u.npy", "long.npy", "array 'y' has 3 rows, but 'u' has 2"),
            ("none.npy", "y.npy", "array 'u' is empty"),
            ("junk.npy", "y.npy", "junk.npy"),
            ("missing.npy", "y.npy", "cannot be read"),
        ] {
            let message = read(u, y).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
