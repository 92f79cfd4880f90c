//! From the keywords of the estimator to the parameters of the library. Names are those of the library, and so are their ranges:
//! here only types are checked.

use crate::refusal;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use tha_train::{AutoParams, Basis, Decay, FitParams, Ridge, Strategy, Validation};

/// Minutes of an automatic fit where nobody says, as on the command line.
const MINUTES: f64 = 3.0;

/// The keywords of a call, as the estimator keeps them.
pub struct Options<'a, 'py>(pub &'a Bound<'py, PyDict>);

/// One of some values by its name.
fn named<T: Clone>(option: &str, choices: &[(&str, T)], name: &str) -> PyResult<T> {
    let found = choices.iter().find(|(other, _)| *other == name);
    found.map(|(_, value)| value.clone()).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        refusal(format!("`{option}`: there is no '{name}'; expected {}", names.join(", ")))
    })
}

impl<'py> Options<'_, 'py> {
    /// A value that is there and not None.
    fn get(&self, option: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(option)?.filter(|value| !value.is_none()))
    }

    /// A value of some type; anything else is refused with what is expected.
    fn value<T: for<'a> FromPyObject<'a, 'py>>(&self, option: &str, expected: &str) -> PyResult<Option<T>> {
        let Some(value) = self.get(option)? else { return Ok(None) };
        value.extract().map(Some).map_err(|_| {
            let found = value.repr().map_or_else(|_| "an object".into(), |text| text.to_string());
            let found: String = found.chars().take(60).collect();
            refusal(format!("`{option}`: {found} is out of range; expected {expected}"))
        })
    }

    fn count(&self, option: &str) -> PyResult<Option<usize>> {
        self.value(option, "an integer from 0")
    }

    fn number(&self, option: &str) -> PyResult<Option<f64>> {
        self.value(option, "a number")
    }

    fn flag(&self, option: &str) -> PyResult<bool> {
        Ok(self.value(option, "True or False")?.unwrap_or(false))
    }

    fn chosen<T: Clone>(&self, option: &str, choices: &[(&str, T)]) -> PyResult<Option<T>> {
        let name: Option<String> = self.value(option, "a name")?;
        name.map(|name| named(option, choices, &name)).transpose()
    }

    /// A number, or nothing where one of some words stands in its place.
    fn number_or(&self, option: &str, word: &str) -> PyResult<Option<f64>> {
        match self.get(option)? {
            Some(value) if value.extract::<&str>().is_ok_and(|text| text == word) => Ok(None),
            _ => self.value(option, &format!("'{word}' or a number")),
        }
    }

    /// Threads of the fit.
    pub fn threads(&self) -> PyResult<Option<usize>> {
        match self.count("threads")? {
            Some(found) if !(1..=1024).contains(&found) => {
                Err(refusal(format!("`threads`: {found} is out of range; expected 1 to 1024")))
            }
            threads => Ok(threads),
        }
    }

    /// Whether everything is to be chosen.
    pub fn auto(&self) -> PyResult<bool> {
        self.flag("auto")
    }

    fn seed(&self) -> PyResult<u64> {
        Ok(self.value("seed", "an integer from 0")?.unwrap_or(0))
    }

    fn checkpoint(&self) -> PyResult<Option<PathBuf>> {
        self.value("checkpoint", "the path of a folder")
    }

    /// The parameters of an automatic fit.
    pub fn auto_params(&self) -> PyResult<AutoParams> {
        let (minutes, trials) = (self.number("minutes")?, self.count("trials")?);
        let flash = self.count("budget_flash")?.unwrap_or(AutoParams::BUDGET_FLASH);
        Ok(AutoParams::new()
            .minutes(minutes.or(trials.is_none().then_some(MINUTES)))
            .trials(trials)
            .heads(self.count("heads")?)
            .single(self.flag("single")?)
            .budget_flash(flash)
            .coverage(self.number("coverage")?.unwrap_or(FitParams::COVERAGE))
            .budget_macs(self.count("budget_macs")?)
            .checkpoint(self.checkpoint()?)
            .seed(self.seed()?)
            .portable(self.flag("portable")?))
    }

    /// The parameters of a fit to data with these inputs.
    pub fn fit_params(&self, inputs: &[String]) -> PyResult<FitParams<'static>> {
        let memory = self.count("memory")?.unwrap_or(FitParams::MEMORY);
        let basis: Option<String> = self.value("basis", "text such as lags:5 or levels:64")?;
        let basis = match basis {
            None => Basis::Lags(memory),
            Some(text) => text.parse().map_err(|error| refusal(format!("`basis`: {error}")))?,
        };
        let decay = match self.get("decay")? {
            None => Decay::Auto,
            Some(value) => match value.extract::<&str>() {
                Ok("auto") => Decay::Auto,
                Ok("none") => Decay::None,
                _ => self
                    .value("decay", "'auto', 'none' or a number of samples")?
                    .map_or(Decay::Auto, Decay::Fixed),
            },
        };
        let validation = match (self.number("val_fraction")?, self.count("folds")?) {
            (Some(_), Some(_)) => {
                return Err(refusal("`folds` and `val_fraction` exclude each other; leave one out"));
            }
            (None, Some(folds)) => Validation::Folds(folds),
            (fraction, None) => fraction.map_or_else(Validation::default, Validation::End),
        };
        Ok(FitParams::new()
            .basis(basis)
            .maps(self.count("maps")?)
            .degree(self.count("degree")?.unwrap_or(FitParams::DEGREE))
            .max_rank(self.count("max_rank")?.unwrap_or(FitParams::MAX_RANK))
            .tolerance(self.number("tolerance")?.unwrap_or(1e-6))
            .solver(self.chosen("solver", &FitParams::SOLVERS)?.unwrap_or_default())
            .ridge(self.number_or("ridge", "auto")?.map_or(Ridge::Auto, Ridge::Fixed))
            .decay(decay)
            .gamma(self.number_or("gamma", "auto")?)
            .restarts(self.count("restarts")?)
            .validation(validation)
            .refit(self.value("refit", "True or False")?.unwrap_or(true))
            .coverage(self.number("coverage")?.unwrap_or(FitParams::COVERAGE))
            .range(self.chosen("range", &FitParams::RANGES)?)
            .seed(self.seed()?)
            .heads(self.count("heads")?)
            .subset_size(self.count("subset_size")?)
            .subsets(self.subsets(inputs)?)
            .combine(self.chosen("combine", &FitParams::COMBINATIONS)?)
            .checkpoint(self.checkpoint()?)
            .budget_flash(self.count("budget_flash")?)
            .budget_macs(self.count("budget_macs")?)
            .portable(self.flag("portable")?))
    }

    /// A strategy by its name, or lists of names or indices.
    fn subsets(&self, inputs: &[String]) -> PyResult<Option<Strategy>> {
        let Some(value) = self.get("subsets")? else { return Ok(None) };
        if value.extract::<&str>().is_ok() {
            return self.chosen("subsets", &FitParams::STRATEGIES);
        }
        let lists: Vec<Vec<Bound<'py, PyAny>>> = self
            .value("subsets", "the name of a strategy, or lists of names or indices of inputs")?
            .unwrap_or_default();
        let index = |k: usize, item: &Bound<'py, PyAny>| {
            let by_name = |name: &str| inputs.iter().position(|input| input == name);
            let found = match item.extract::<&str>() {
                Ok(name) => by_name(name),
                Err(_) => item.extract().ok().filter(|&index: &usize| index < inputs.len()),
            };
            found.ok_or_else(|| {
                let (names, last) = (inputs.join(", "), inputs.len() - 1);
                refusal(format!(
                    "`subsets`: list {}: {item} is not an input; the inputs are {names}, or 0 to {last}",
                    k + 1
                ))
            })
        };
        let mut subsets = Vec::new();
        for (k, list) in lists.iter().enumerate() {
            let mut subset = list.iter().map(|item| index(k, item)).collect::<PyResult<Vec<_>>>()?;
            subset.sort_unstable();
            subset.dedup();
            if subset.len() < list.len() {
                let finding = "names an input twice; name each input once";
                return Err(refusal(format!("`subsets`: list {} {finding}", k + 1)));
            }
            subsets.push(subset);
        }
        Ok(Some(Strategy::Given(subsets)))
    }
}
