//! How plans are stored. In a folder, `plan.kept` has all but the columns of the inputs and `inputs.kept` has these, one after the
//! other, each with a checksum: a head reads its own alone, however many there are. As bytes, a plan or a part of it is one piece, for
//! those who have no folder in common.

use super::{Plan, Work, refuse};
use crate::checkpoint;
use crate::data::Dataset;
use crate::fit::FitError;
use crate::host::refusal;
use crate::output::Staging;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The first bytes of a plan.
const MAGIC: [u8; 8] = *b"THA-PLAN";
const FILE: &str = "plan.kept";
const COLUMNS: &str = "inputs.kept";

impl Plan {
    /// Puts the plan into its folder, for machines that see it; it is there when all of it is.
    pub fn write(&self, folder: &Path) -> Result<(), FitError> {
        let bytes = self.part(&[]).to_bytes()?;
        let mut columns =
            [Some(&self.data), self.other.as_ref()].into_iter().flatten().flat_map(|set| &set.u);
        let mut staging = Staging::new();
        staging
            .write(&folder.join(COLUMNS), |to| columns.try_for_each(|column| to.write_all(&stored(column))))
            .and_then(|()| staging.write(&folder.join(FILE), |to| to.write_all(&bytes)))
            .and_then(|()| staging.commit())
            .map_err(|error| refuse(folder, error.to_string()))
    }

    /// The plan in a folder: all of it, or the part that some heads need.
    pub fn read(folder: &Path, heads: Option<&[usize]>) -> Result<Self, FitError> {
        let unreadable = |file: &str, error: std::io::Error| {
            let reason = refusal(&error);
            refuse(folder, format!("no plan: {file} cannot be read: {reason}; make it with tha-train plan"))
        };
        let damaged = |place: String, reason| {
            refuse(folder, format!("{place}: {reason}; plan again, into another folder"))
        };
        let bytes = std::fs::read(folder.join(FILE)).map_err(|error| unreadable(FILE, error))?;
        let mut plan = Self::from_bytes(&bytes).map_err(|reason| damaged(FILE.into(), reason))?;
        let needed = plan.needed(heads);
        let mut file = File::open(folder.join(COLUMNS)).map_err(|error| unreadable(COLUMNS, error))?;
        let mut start = 0;
        for (set, needed) in [Some(&mut plan.data), plan.other.as_mut()].into_iter().flatten().zip(needed) {
            let size = 8 * (set.len() + 1);
            for ((column, name), needed) in set.u.iter_mut().zip(&set.inputs).zip(needed) {
                if needed {
                    let mut bytes = vec![0; size];
                    file.seek(SeekFrom::Start(start))
                        .and_then(|_| file.read_exact(&mut bytes))
                        .map_err(|error| unreadable(COLUMNS, error))?;
                    let values = checkpoint::whole(&bytes);
                    let values =
                        values.map_err(|reason| damaged(format!("{COLUMNS}: {name}"), reason.to_owned()))?;
                    *column = values.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect();
                }
                start += size as u64;
            }
        }
        Ok(plan)
    }

    /// What some heads need of the plan: the columns of other inputs are left out.
    pub fn part(&self, heads: &[usize]) -> Self {
        let [data, other] = self.needed(Some(heads));
        let other = self.other.as_ref().map(|set| only(set, &other));
        let (work, identity) = (self.work.clone(), self.identity.clone());
        Self { data: only(&self.data, &data), other, work, identity }
    }

    /// A later plan for the same data, of which there is only a part.
    pub fn renewed(&self, later: &Self) -> Self {
        let (data, other) = (self.data.clone(), self.other.clone());
        Self { data, other, work: later.work.clone(), identity: later.identity.clone() }
    }

    /// Whether each input, of the data and of the validation data, is needed for some heads, or for the merge.
    fn needed(&self, heads: Option<&[usize]>) -> [Vec<bool>; 2] {
        let count = self.data.inputs.len();
        let all = |needed: bool| vec![needed; count];
        match (heads, &self.work) {
            (None, _) => [all(true), all(true)],
            (Some([]), _) => [all(false), all(false)],
            (Some(_), Work::Settings { .. }) => [all(true), all(true)],
            (Some(_), Work::Heads(work)) if !work.divided => [all(true), all(true)],
            (Some(heads), Work::Heads(work)) => match &work.subsets {
                None => [all(true), all(false)],
                Some(subsets) => {
                    let mut needed = all(false);
                    let looked_at = heads.iter().filter_map(|&k| subsets.get(k)).flatten();
                    looked_at.for_each(|&input| needed[input] = true);
                    [needed, all(false)]
                }
            },
        }
    }

    /// The bytes of the plan.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FitError> {
        let content = postcard::to_allocvec(&(checkpoint::program(), self))
            .map_err(|error| FitError::Combination(error.to_string()))?;
        Ok(checkpoint::sealed([&MAGIC[..], &content].concat()))
    }

    /// The plan in its bytes; the error is the finding.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let content = checkpoint::whole(bytes)?.strip_prefix(&MAGIC[..]).ok_or("it is not a plan")?;
        let foreign = |program: &str| {
            format!(
                "it was made by program {program}, this one is {}; use the same everywhere",
                checkpoint::program()
            )
        };
        // Another program may store its parameters in another way: its name comes first.
        let (program, content): (String, _) =
            postcard::take_from_bytes(content).map_err(|_| "it is not a plan".to_owned())?;
        if program != checkpoint::program() {
            return Err(foreign(&program));
        }
        postcard::from_bytes(content).map_err(|_| "it is not a plan".to_owned())
    }
}

/// The data with some of its columns, the others empty.
fn only(data: &Dataset, needed: &[bool]) -> Dataset {
    let column = |(column, &needed): (&Vec<f64>, &bool)| if needed { column.clone() } else { Vec::new() };
    Dataset {
        origin: data.origin.clone(),
        inputs: data.inputs.clone(),
        outputs: data.outputs.clone(),
        u: data.u.iter().zip(needed).map(column).collect(),
        y: data.y.clone(),
        records: data.records.clone(),
    }
}

fn stored(column: &[f64]) -> Vec<u8> {
    checkpoint::sealed(column.iter().flat_map(|value| value.to_le_bytes()).collect())
}
