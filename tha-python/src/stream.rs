//! A model as a device runs it: the code of tha-core, sample by sample.

use crate::refusal;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat};
use self_cell::self_cell;
use tha_core::build::AlignedBytes;
use tha_core::{ChannelFlags, Flags};
use tha_train::device::{DeviceModel, DeviceState, DeviceStep};

self_cell!(
    /// The bytes of a file, and the model that borrows them.
    struct File {
        owner: AlignedBytes,
        #[covariant]
        dependent: DeviceModel,
    }
);

/// A model and the state of one stream: what a device computes for a sample, to the bit.
#[pyclass(module = "tha._tha")]
pub struct Stream {
    file: File,
    state: DeviceState,
    /// The last sample in f32.
    sample: Vec<f32>,
    remaining: usize,
    flags: Flags,
    channels: Vec<ChannelFlags>,
}

impl Stream {
    /// Switches the device on.
    pub fn new(bytes: &[u8]) -> PyResult<Self> {
        let file = File::try_new(AlignedBytes::new(bytes), |bytes| DeviceModel::parse(bytes));
        let file = file.map_err(refusal)?;
        let state = DeviceState::new(file.borrow_dependent()).map_err(refusal)?;
        let remaining = file.borrow_dependent().settled().saturating_sub(1);
        Ok(Self { file, state, sample: Vec::new(), remaining, flags: Flags::default(), channels: Vec::new() })
    }

    /// The sample in f32; a number where there is one input.
    fn take(&mut self, u: &Bound<'_, PyAny>) -> PyResult<()> {
        self.sample.clear();
        if let Ok(array) = u.cast::<PyArray1<f64>>() {
            let array: PyReadonlyArray1<'_, f64> = array.try_readonly()?;
            self.sample.extend(array.as_array().iter().map(|&value| value as f32));
        } else if let Ok(array) = u.cast::<PyArray1<f32>>() {
            let array: PyReadonlyArray1<'_, f32> = array.try_readonly()?;
            self.sample.extend(array.as_array().iter());
        } else if let Ok(value) = u.cast::<PyFloat>() {
            self.sample.push(value.value() as f32);
        } else {
            let expected = || {
                let inputs = self.file.borrow_dependent().shape().inputs;
                refusal(format!("u: not a sample; expected {inputs} numbers, one per input"))
            };
            match u.try_iter() {
                Ok(values) => {
                    for value in values {
                        let value = value.and_then(|value| value.extract::<f64>()).map_err(|_| expected())?;
                        self.sample.push(value as f32);
                    }
                }
                Err(_) => self.sample.push(u.extract::<f64>().map_err(|_| expected())? as f32),
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Stream {
    /// Takes the next sample, one number per input; gives the outputs in single precision, NaN while the model has not settled.
    ///
    /// What the device says beside them is in `remaining`, `flags` and `channels`.
    fn push<'py>(&mut self, py: Python<'py>, u: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        self.take(u)?;
        let model = self.file.borrow_dependent();
        let remaining = match self.state.push(model, &self.sample) {
            DeviceStep::Ready { y, flags, channels } => {
                (self.remaining, self.flags) = (0, flags);
                self.channels.clear();
                self.channels.extend_from_slice(channels);
                return Ok(PyArray1::from_slice(py, y));
            }
            DeviceStep::Warming(remaining) => remaining,
            DeviceStep::Refused(error) => return Err(refusal(error)),
        };
        (self.remaining, self.flags) = (remaining, Flags::default());
        self.channels.clear();
        Ok(PyArray1::from_iter(py, std::iter::repeat_n(f32::NAN, model.shape().outputs)))
    }

    /// Forgets the history: a new record starts.
    fn reset(&mut self) {
        self.state.reset();
        self.remaining = self.file.borrow_dependent().settled().saturating_sub(1);
        self.flags = Flags::default();
    }

    /// Samples until the first output.
    #[getter]
    fn remaining(&self) -> usize {
        self.remaining
    }

    /// What the device noticed at the last sample: out_of_range, window_out_of_range, held, window_held, overflow.
    #[getter]
    fn flags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Flags { out_of_range, window_out_of_range, held, window_held, overflow } = self.flags;
        let flags = PyDict::new(py);
        flags.set_item("out_of_range", out_of_range)?;
        flags.set_item("window_out_of_range", window_out_of_range)?;
        flags.set_item("held", held)?;
        flags.set_item("window_held", window_held)?;
        flags.set_item("overflow", overflow)?;
        Ok(flags)
    }

    /// Names of the inputs that were below, above or not finite in the last sample, with that word.
    #[getter]
    fn channels(&self) -> Vec<(String, &'static str)> {
        let names = self.file.borrow_dependent().input_names();
        let word = |flags: &ChannelFlags| match flags {
            flags if flags.held() => Some("held"),
            flags if flags.below() => Some("below"),
            flags if flags.above() => Some("above"),
            _ => None,
        };
        names.zip(&self.channels).filter_map(|(name, flags)| Some((name.to_owned(), word(flags)?))).collect()
    }
}
