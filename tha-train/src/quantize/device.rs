//! An integer model on the host: what the device gives, sample by sample.

use crate::data::Dataset;
use nalgebra::DMatrix;
use tha_core::ParseError;
use tha_core::build::AlignedBytes;
use tha_core::integer::{Model, State, Step, push};

/// Room for every model that a microcontroller could hold.
type Room = State<4096, { 1 << 16 }, { 1 << 16 }>;

/// A `.tha` file of integers that has been checked, at an aligned address.
#[derive(Clone, Debug)]
pub struct Integers(AlignedBytes);

/// The outputs of a device, N x l, and the rows of them whose vectors were limited to 16 bits.
#[derive(Clone, Debug)]
pub struct DeviceOutputs {
    /// Physical units.
    pub y: DMatrix<f64>,
    /// Rows.
    pub limited: usize,
}

impl Integers {
    /// Copies the bytes of a file to an aligned place and checks them.
    ///
    /// # Errors
    /// What the decoder found.
    pub fn new(bytes: &[u8]) -> Result<Self, ParseError> {
        let file = Self(AlignedBytes::new(bytes));
        // Far larger than any microcontroller.
        let mut room = Box::new(Room::empty());
        room.init(&Model::parse(file.bytes())?).map_err(|_| ParseError::SizeOverflow)?;
        Ok(file)
    }

    /// The bytes of the file, at a multiple of four.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The model as the device sees it.
    pub fn model(&self) -> Model<'_> {
        Model::parse(self.bytes()).expect("checked by Integers::new")
    }

    /// The outputs at some rows, which must increase and have settled, as the device gives them.
    pub fn outputs(&self, data: &Dataset, rows: &[usize]) -> DeviceOutputs {
        let model = self.model();
        let mut state = Box::new(Room::new(&model).expect("checked by Integers::new"));
        let (mut y, mut limited) = (DMatrix::zeros(rows.len(), model.shape().outputs), 0);
        let mut wanted = rows.iter().copied().enumerate().peekable();
        let mut sample = vec![0.0f32; data.u.len()];
        for record in &data.records {
            state.reset();
            for t in record.rows.clone() {
                let Some(&(k, row)) = wanted.peek() else { return DeviceOutputs { y, limited } };
                if row >= record.rows.end {
                    break;
                }
                sample.iter_mut().zip(&data.u).for_each(|(place, column)| *place = column[t] as f32);
                let step = push(&model, &mut state, &sample);
                if t < row {
                    continue;
                }
                wanted.next();
                match step {
                    Step::Ready(output) => {
                        output.values().enumerate().for_each(|(j, value)| y[(k, j)] = value.into());
                        limited += usize::from(output.flags.overflow);
                    }
                    _ => y.row_mut(k).fill(f64::NAN),
                }
            }
        }
        DeviceOutputs { y, limited }
    }
}
