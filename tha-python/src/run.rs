//! Long work beside Python: the work has a thread and a pool of its own; the calling thread hands events to Python and looks for
//! Ctrl-C.

use crate::data::Data;
use crate::model::{Model, Story};
use crate::options::Options;
use crate::refusal;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tha_train::report::Convergence;
use tha_train::{AutoOutcome, Dataset, Event, Outcome, Progress};

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long work that was asked to stop is waited for; then it ends behind our back.
const GRACE: Duration = Duration::from_millis(500);

/// What the work says.
enum Message<T> {
    /// What is done of how much, where that is known, and in words.
    Event(Option<(usize, usize)>, String),
    Warning(String),
    Done(T),
}

/// What the work sees of Python.
pub struct Watch<T> {
    stop: AtomicBool,
    to: Sender<Message<T>>,
    /// Whether somebody wants the events.
    heard: bool,
    /// The course of the fit, for its report.
    pub course: Mutex<Convergence>,
}

impl<T: Send> Progress for Watch<T> {
    fn report(&self, event: &Event<'_>) {
        self.course.lock().unwrap_or_else(PoisonError::into_inner).follow(event);
        let done = match event {
            Event::Warning(text) => {
                let _ = self.to.send(Message::Warning(text.clone()));
                return;
            }
            Event::Head { done, of, .. } => Some((*done, *of)),
            _ => None,
        };
        if self.heard {
            let _ = self.to.send(Message::Event(done, event.to_string()));
        }
    }

    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A panic as an error, so that Python sees no exception that it cannot catch as one.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, PyErr> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        PyRuntimeError::new_err(format!("a bug in tha, please report it: {text}"))
    })
}

/// Runs `work` in a thread and a pool of `threads`, all processors where there is no number. `notify(done, total, text)` is
/// called with every event, on the calling thread.
pub fn beside<T: Send + 'static>(
    py: Python<'_>,
    threads: Option<usize>,
    notify: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch<Result<T, PyErr>>) -> Result<T, PyErr> + Send + 'static,
) -> PyResult<T> {
    let (to, mut from) = channel();
    let watch = Watch { stop: AtomicBool::new(false), to, heard: notify.is_some(), course: Mutex::default() };
    let watch = Arc::new(watch);
    let inner = Arc::clone(&watch);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    let pool = pool.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    std::thread::Builder::new()
        .name("tha-fit".into())
        .spawn(move || {
            let result = caught(|| pool.install(|| work(&inner))).and_then(|result| result);
            let _ = inner.to.send(Message::Done(result));
        })
        .map_err(|error| PyRuntimeError::new_err(format!("no thread could be started: {error}")))?;
    match follow(py, &mut from, notify) {
        Ok(result) => result,
        Err(interruption) => {
            watch.stop.store(true, Ordering::Relaxed);
            py.detach(|| wait(&mut from));
            Err(interruption)
        }
    }
}

/// The result; or the exception of a signal handler or of `notify`.
fn follow<T: Send>(
    py: Python<'_>,
    from: &mut Receiver<Message<T>>,
    notify: Option<&Bound<'_, PyAny>>,
) -> PyResult<T> {
    let mut looked = Instant::now();
    loop {
        let message = py.detach(|| next(from, LOOK));
        if looked.elapsed() >= LOOK {
            py.check_signals()?;
            looked = Instant::now();
        }
        match message {
            Ok(Message::Done(result)) => return Ok(result),
            Ok(Message::Event(done, text)) => {
                let (done, of) = done.unzip();
                notify.map_or(Ok(()), |notify| notify.call1((done, of, text)).map(drop))?;
            }
            Ok(Message::Warning(text)) => {
                py.import("warnings")?.call_method1("warn", (text,))?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("a bug in tha, please report it: the fit is gone"));
            }
        }
    }
}

/// The next message. A receiver is for one thread alone: whoever waits has it exclusively.
fn next<T>(from: &mut Receiver<Message<T>>, time: Duration) -> Result<Message<T>, RecvTimeoutError> {
    from.recv_timeout(time)
}

/// Waits for work that was asked to stop.
fn wait<T>(from: &mut Receiver<Message<T>>) {
    let until = Instant::now() + GRACE;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        match from.recv_timeout(left) {
            Ok(Message::Done(_)) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// Fits a model with the keywords of the estimator; gives it and its figures as JSON.
#[pyfunction]
#[pyo3(signature = (data, options, notify=None))]
pub fn fit(
    py: Python<'_>,
    data: &Data,
    options: &Bound<'_, PyDict>,
    notify: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Model, String)> {
    let options = Options(options);
    let data = Arc::clone(&data.set);
    let threads = options.threads()?;
    if options.auto()? {
        let params = options.auto_params()?;
        return beside(py, threads, notify, move |watch| {
            told_of_search(params.fit(&data, watch).map_err(refusal)?, data)
        });
    }
    let params = options.fit_params(&data.inputs)?;
    beside(py, threads, notify, move |watch| {
        let outcome = params.check(&data).and_then(|params| params.fit(&data, watch)).map_err(refusal)?;
        told(outcome, data, watch)
    })
}

/// The model of a finished automatic fit with all there is to tell of it, and its figures as JSON.
pub fn told_of_search(outcome: AutoOutcome, data: Arc<Dataset>) -> PyResult<(Model, String)> {
    let model = outcome.model.clone();
    let nested = &outcome.nested;
    let figures = json!({
        "train": outcome.train,
        "val": nested.metrics,
        "error": nested.error,
        "standard_error": nested.standard_error,
        "blocks": nested.blocks,
        "linear": outcome.linear.as_ref().map(|linear| linear.error),
        "nothing_better_than_linear": outcome.nothing_better,
        "tried": outcome.tried,
        "complete": outcome.complete,
    });
    let story = Story { data, auto: Some(outcome), course: None };
    Ok((Model::new(model, Some(story))?, figures.to_string()))
}

/// The model of a finished fit with all there is to tell of it, and its figures as JSON.
pub fn told<T>(outcome: Outcome, data: Arc<Dataset>, watch: &Watch<T>) -> PyResult<(Model, String)> {
    let figures = json!({
        "train": outcome.train,
        "val": outcome.validation,
        "heads": outcome.heads,
        "ensemble": outcome.ensemble,
    });
    let course = watch.course.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let story = Story { data, auto: None, course: Some(course.with_heads(&outcome.heads)) };
    Ok((Model::new(outcome.model, Some(story))?, figures.to_string()))
}
