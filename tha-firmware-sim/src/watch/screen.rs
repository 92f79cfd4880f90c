//! The view in the terminal.

use super::Playback;
use super::ending::Ending;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Bar, BarChart, BarGroup, Block, Chart, Dataset, GraphType, Paragraph};
use ratatui::{DefaultTerminal, Frame};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// Between two pictures.
const FRAME: Duration = Duration::from_millis(50);
const SLOWEST: f64 = 1.0;
const FASTEST: f64 = 1e6;

/// What the person in front of it has chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Samples per second.
    pub speed: f64,
    /// Stands still.
    pub paused: bool,
    /// The output that is shown.
    pub output: usize,
    /// Has had enough.
    pub quit: bool,
}

impl View {
    /// Runs at `speed` samples per second.
    pub fn new(speed: f64) -> Self {
        Self { speed: speed.clamp(SLOWEST, FASTEST), paused: false, output: 0, quit: false }
    }

    /// A key.
    pub fn key(&mut self, key: KeyEvent, outputs: usize) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => self.quit = true,
            KeyCode::Char('q') | KeyCode::Esc => self.quit = true,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('+' | '=') | KeyCode::Up => self.speed = (self.speed * 2.0).min(FASTEST),
            KeyCode::Char('-') | KeyCode::Down => self.speed = (self.speed / 2.0).max(SLOWEST),
            KeyCode::Tab | KeyCode::Right => self.output = (self.output + 1) % outputs.max(1),
            KeyCode::Left => self.output = (self.output + outputs.max(1) - 1) % outputs.max(1),
            _ => {}
        }
    }
}

/// Plays until the person quits. The terminal is as before in the end, after a panic or a signal too.
pub fn show(playback: &mut Playback<'_>, speed: f64) -> std::io::Result<()> {
    let ending = Ending::keep()?;
    let result = ratatui::try_init().and_then(|terminal| {
        // Dropped, it would show the cursor too, and panic where the terminal and standard error are gone.
        let mut terminal = ManuallyDrop::new(terminal);
        let played = play(&mut terminal, playback, speed, &ending);
        played.and(terminal.show_cursor())
    });
    // Also when it was begun and not finished. Where there is no terminal there is nothing to give back.
    let _ = ratatui::try_restore();
    ending.release();
    result
}

fn play(
    terminal: &mut DefaultTerminal,
    playback: &mut Playback<'_>,
    speed: f64,
    ending: &Ending,
) -> std::io::Result<()> {
    let mut view = View::new(speed);
    let outputs = playback.points.len();
    while !view.quit {
        terminal.draw(|frame| draw(frame, playback, &view))?;
        let began = Instant::now();
        keys(&mut view, outputs, ending)?;
        if !view.paused && !view.quit {
            // At least one, so that a slow speed is a slow picture.
            let steps = (view.speed * FRAME.as_secs_f64()).round().max(1.0) as usize;
            for _ in 0..steps {
                playback.step();
            }
            if view.speed * FRAME.as_secs_f64() < 1.0 {
                let rest = Duration::from_secs_f64(1.0 / view.speed).saturating_sub(began.elapsed());
                let until = Instant::now() + rest;
                while !view.quit && Instant::now() < until {
                    keys(&mut view, outputs, ending)?;
                }
            }
        }
    }
    Ok(())
}

/// Waits for keys for the length of a frame; a signal is as good as q.
fn keys(view: &mut View, outputs: usize, ending: &Ending) -> std::io::Result<()> {
    let until = Instant::now() + FRAME;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|_| !view.quit) {
        if event::poll(left)?
            && let Event::Key(key) = event::read()?
        {
            view.key(key, outputs);
        }
        view.quit |= ending.came();
    }
    Ok(())
}

/// One picture.
pub fn draw(frame: &mut Frame<'_>, playback: &Playback<'_>, view: &View) {
    let [top, middle, bottom, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(6),
        Constraint::Length(9.min(frame.area().height / 3)),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    title(frame, top, playback, view);
    curves(frame, middle, playback, view);
    let [heads, device] =
        Layout::horizontal([Constraint::Percentage(60), Constraint::Percentage(40)]).areas(bottom);
    shares(frame, heads, playback, view);
    report(frame, device, playback, view);
    frame.render_widget(Line::from("q quit   space pause   + - speed   tab next output".dark_gray()), keys);
}

fn title(frame: &mut Frame<'_>, area: Rect, playback: &Playback<'_>, view: &View) {
    let state = match (playback.next >= playback.len(), view.paused) {
        (true, _) => "end of the recording".to_owned(),
        (_, true) => "paused".to_owned(),
        _ => format!("{:.0} samples/s", view.speed),
    };
    let text = format!("sample {} of {}   {state}", playback.next, playback.len());
    frame.render_widget(Line::from(vec![" tha-firmware-sim   ".bold(), Span::raw(text)]), area);
}

fn curves(frame: &mut Frame<'_>, area: Rect, playback: &Playback<'_>, view: &View) {
    let name = playback.output_names().get(view.output).copied().unwrap_or_default().to_owned();
    let points = playback.points.get(view.output);
    let curve = |of: fn(&super::Point) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = points.into_iter().flatten();
        points.filter_map(|point| Some((point.t as f64, of(point)?))).filter(|(_, y)| y.is_finite()).collect()
    };
    let (measured, predicted) = (curve(|point| point.measured), curve(|point| point.predicted));
    let values = || measured.iter().chain(&predicted).map(|(_, y)| *y);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let (low, high) = if low < high { (low, high) } else { (-1.0, 1.0) };
    let ends = points.and_then(|points| Some((points.front()?.t as f64, points.back()?.t as f64 + 1.0)));
    let (first, last) = ends.unwrap_or((0.0, 1.0));
    let line = |name: &'static str, color: Color| {
        Dataset::default().name(name).marker(Marker::Braille).graph_type(GraphType::Line).style(color)
    };
    let label = |value: f64| Span::raw(format!("{value:.4}"));
    let chart = Chart::new(vec![
        line("measured", Color::Gray).data(&measured),
        line("predicted", Color::Cyan).data(&predicted),
    ])
    .block(Block::bordered().title(format!(" {name} ")))
    .x_axis(Axis::default().bounds([first, last]).labels([format!("{first:.0}"), format!("{last:.0}")]))
    .y_axis(Axis::default().bounds([low, high]).labels([
        label(low),
        label(0.5 * (low + high)),
        label(high),
    ]));
    frame.render_widget(chart, area);
}

fn shares(frame: &mut Frame<'_>, area: Rect, playback: &Playback<'_>, view: &View) {
    let shares = playback.shares.get(view.output).map_or(&[][..], Vec::as_slice);
    let largest = shares.iter().fold(f64::MIN_POSITIVE, |most, share| most.max(share.abs()));
    let bar = |(k, share): (usize, &f64)| {
        let color = if *share < 0.0 { Color::Red } else { Color::Green };
        Bar::default()
            .value((100.0 * share.abs() / largest) as u64)
            .text_value(format!("{share:.2}"))
            .label(format!("{}", k + 1).into())
            .style(Style::from(color))
    };
    let bars: Vec<Bar<'_>> = shares.iter().enumerate().map(bar).collect();
    let chart = BarChart::default()
        .block(Block::bordered().title(" shares of the heads (red: negative) "))
        .data(BarGroup::default().bars(&bars))
        .bar_width(6)
        .max(100);
    frame.render_widget(chart, area);
}

fn report(frame: &mut Frame<'_>, area: Rect, playback: &Playback<'_>, view: &View) {
    let says = playback.says();
    let color = if says == "ok" { Color::Green } else { Color::Yellow };
    let error = playback.errors.get(view.output).copied().unwrap_or_default();
    let last = playback.points.get(view.output).and_then(|points| points.back());
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.5}"));
    let lines = vec![
        Line::from(vec!["device     ".into(), Span::styled(says, color)]),
        Line::from(format!("flagged    {}", playback.flagged)),
        Line::from(format!("measured   {}", number(last.and_then(|point| point.measured)))),
        Line::from(format!("predicted  {}", number(last.and_then(|point| point.predicted)))),
        Line::from(format!("RMSE       {:.3e}", error.rmse())),
        Line::from(format!("NRMSE      {:.3e}", error.nrmse())),
    ];
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" device ")), area);
}
