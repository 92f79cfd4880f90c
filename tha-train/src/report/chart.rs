//! Plots as SVG: lines over a grid, horizontal bars, a waterfall that adds up.

use super::palette::{BAND, GRID, INK, MUTED, Paint, dark_rules};
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

const FONT: &str = "sans-serif";
/// Font size of labels. The SVG backend divides it by 1.24.
pub(super) const TEXT: u32 = 16;
/// Font size of the numbers at axes.
pub(super) const SMALL: u32 = 14;

/// One line of a plot.
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// The points, in order.
    pub points: Vec<(f64, f64)>,
    /// Pixels.
    pub width: u32,
    /// Dots at the points too.
    pub dots: bool,
}

impl Series {
    /// A thin line without dots.
    pub fn new(label: impl Into<String>, paint: Paint, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), paint, points, width: 2, dots: false }
    }
}

/// Width and height of a plot in a card, pixels.
const CARD: (u32, u32) = (540, 250);

/// How a plot of lines looks.
pub struct Lines<'a> {
    /// Width and height, pixels.
    pub size: (u32, u32),
    /// What the horizontal axis shows.
    pub x: &'a str,
    /// What the vertical axis shows.
    pub y: &'a str,
    /// The lines.
    pub series: Vec<Series>,
    /// A confidence band for each series, drawn once as the widest.
    pub band: Option<f64>,
    /// Draw stems from zero instead of lines.
    pub stems: bool,
    /// Logarithmic vertical axis.
    pub log: bool,
}

impl<'a> Lines<'a> {
    /// Plain lines at the size of a card.
    pub fn new(x: &'a str, y: &'a str, series: Vec<Series>) -> Self {
        Self { size: CARD, x, y, series, band: None, stems: false, log: false }
    }
}

/// One bar: label, value, colour, and what stands behind it.
pub(crate) struct Bar {
    pub label: String,
    pub from: f64,
    pub to: f64,
    pub paint: Paint,
    pub note: String,
}

impl Bar {
    /// From zero, with its value behind it; a long label is cut so that it leaves room.
    pub(crate) fn new(label: &str, value: f64, paint: Paint) -> Self {
        const LONGEST: usize = 28;
        let mut label = label.to_owned();
        if label.chars().count() > LONGEST {
            label = label.chars().take(LONGEST - 1).chain(['…']).collect();
        }
        let to = if value.is_finite() { value } else { 0.0 };
        Self { label, from: 0.0, to, paint, note: short(value) }
    }
}

/// An SVG for a file of its own: it brings the style that turns it dark.
pub fn standalone(svg: &str) -> String {
    match svg.find('>') {
        Some(end) => format!("{}<style>{}</style>{}", &svg[..=end], dark_rules(), &svg[end + 1..]),
        None => svg.into(),
    }
}

pub(super) fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut text = String::new();
    let result = {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area).and_then(|()| Ok(area.present()?))
    };
    match result {
        Ok(()) => text,
        Err(reason) => {
            format!("<p>This plot could not be drawn: {}</p>", super::page::escape(&reason.to_string()))
        }
    }
}

pub(super) fn text(size: u32, paint: Paint, h: HPos, v: VPos) -> TextStyle<'static> {
    let mut style = TextStyle::from((FONT, size)).pos(Pos::new(h, v));
    style.color = paint.light.to_backend_color();
    style
}

/// The look of axes and grid lines.
pub(super) fn grid<'m, 'a, 'b, X: Ranged, Y: Ranged, B: DrawingBackend>(
    mesh: &'m mut MeshStyle<'a, 'b, X, Y, B>,
) -> &'m mut MeshStyle<'a, 'b, X, Y, B> {
    mesh.bold_line_style(GRID.light)
        .light_line_style(TRANSPARENT)
        .axis_style(MUTED.light)
        .label_style(text(SMALL, MUTED, HPos::Left, VPos::Top))
        .axis_desc_style(text(TEXT, INK, HPos::Left, VPos::Top))
}

/// Pixels that a text takes, about.
pub(super) fn width(text: &str) -> i32 {
    (text.chars().count() as f64 * 0.5 * f64::from(TEXT)) as i32
}

/// A number for a reader: three digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if (1e-3..1e4).contains(&size) => {
            let digits = (2 - size.log10().floor() as i32).clamp(0, 5) as usize;
            format!("{value:.digits$}")
        }
        _ if value.is_finite() => format!("{value:.1e}"),
        _ => "-".into(),
    }
}

/// A number at an axis of this length: as short as it can be, and zero where it is only rounding.
pub(super) fn tick(value: f64, span: f64) -> String {
    let text = short(if value.abs() < 1e-9 * span { 0.0 } else { value });
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text.replace(".0e", "e")
    }
}

pub(super) fn legend(area: &Area<'_>, series: &[Series]) -> Drawn {
    let mut x = 62;
    for line in series.iter().filter(|line| !line.label.is_empty()) {
        area.draw(&Rectangle::new([(x, 11), (x + 18, 14)], line.paint.light.filled()))?;
        area.draw(&Text::new(line.label.clone(), (x + 24, 13), text(TEXT, INK, HPos::Left, VPos::Center)))?;
        x += 24 + width(&line.label) + 22;
    }
    Ok(())
}

/// Smallest and largest, with some air.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        return (-1.0, 1.0);
    }
    let air = if high > low { 0.06 * (high - low) } else { 0.5 * high.abs().max(1e-6) };
    (low - air, high + air)
}

/// Lines over time, lag, step or whatever the horizontal axis is.
pub fn lines(mut plot: Lines<'_>) -> String {
    if plot.log {
        for series in &mut plot.series {
            series.points.retain(|(_, y)| *y > 0.0);
            series.points.iter_mut().for_each(|(_, y)| *y = y.log10());
        }
    }
    let all = || plot.series.iter().flat_map(|series| &series.points);
    let (left, right) =
        all().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (x, _)| (a.min(*x), b.max(*x)));
    let (left, right) = match left < right {
        true => (left, right),
        false if left.is_finite() => (left - 1.0, left + 1.0),
        false => (0.0, 1.0),
    };
    let zero = plot.stems.then_some(0.0);
    let bands = plot.band.into_iter().flat_map(|band| [band, -band]);
    let (low, high) = range(all().map(|(_, y)| *y).chain(zero).chain(bands));
    let (log, stems) = (plot.log, plot.stems);
    svg(plot.size, |area| {
        let labelled = plot.series.iter().any(|series| !series.label.is_empty());
        let (top, body) = area.split_vertically(if labelled { 28 } else { 6 });
        if labelled {
            legend(&top, &plot.series)?;
        }
        let mut chart = ChartBuilder::on(&body)
            .margin_right(14)
            .margin_top(4)
            .x_label_area_size(42)
            .y_label_area_size(62)
            .build_cartesian_2d(left..right, low..high)?;
        if let Some(band) = plot.band {
            chart.draw_series([Rectangle::new([(left, -band), (right, band)], BAND.light.filled())])?;
        }
        let number = |v: &f64| {
            if !log {
                return tick(*v, high - low);
            }
            // Half decades: two digits are enough.
            let power = 10_f64.powf(*v);
            let digits = (1.0 - v.floor()).max(0.0) as usize;
            tick(format!("{power:.digits$}").parse().unwrap_or(power), power)
        };
        grid(&mut chart.configure_mesh())
            .disable_x_mesh()
            .x_desc(plot.x)
            .y_desc(plot.y)
            .x_labels(8)
            .y_labels(6)
            .x_label_formatter(&|v| tick(*v, right - left))
            .y_label_formatter(&number)
            .draw()?;
        for series in &plot.series {
            let style = series.paint.light.stroke_width(series.width);
            if stems {
                let stem = |&(x, y): &(f64, f64)| PathElement::new(vec![(x, 0.0), (x, y)], style);
                chart.draw_series(series.points.iter().map(stem))?;
            } else {
                chart.draw_series(LineSeries::new(series.points.iter().copied(), style))?;
            }
            if series.dots || stems {
                let dot = |&point: &(f64, f64)| Circle::new(point, 3, series.paint.light.filled());
                chart.draw_series(series.points.iter().map(dot))?;
            }
        }
        Ok(())
    })
}

/// Horizontal bars from a common zero, or from where the one before ended (`from`).
pub(crate) fn bars(bars: &[Bar], join: bool) -> String {
    let total = CARD.0;
    let (row, top) = (if bars.len() > 16 { 20 } else { 30 }, 8);
    let height = top + row * bars.len() as i32 + 8;
    let margin = bars.iter().map(|bar| width(&bar.label)).max().unwrap_or(0) + 14;
    let notes = bars.iter().map(|bar| width(&bar.note)).max().unwrap_or(0) + 16;
    let ends = || bars.iter().flat_map(|bar| [bar.from, bar.to]).filter(|v| v.is_finite());
    let (low, high) = (ends().fold(0.0, f64::min), ends().fold(0.0, f64::max));
    let room = f64::from((total as i32 - margin - notes).max(60));
    let span = if high > low { high - low } else { 1.0 };
    let at = |value: f64| margin + ((value - low) / span * room).round() as i32;
    svg((total, height as u32), |area| {
        area.draw(&PathElement::new(vec![(at(0.0), 2), (at(0.0), height - 4)], MUTED.light.stroke_width(1)))?;
        for (k, bar) in bars.iter().enumerate() {
            let y = top + row * k as i32;
            let a = at(bar.from.min(bar.to));
            let b = at(bar.from.max(bar.to)).max(a + 1);
            area.draw(&Rectangle::new([(a, y + 3), (b, y + row - 5)], bar.paint.light.filled()))?;
            if join && k + 1 < bars.len() {
                // Where this bar ends the next begins.
                let step = vec![(at(bar.to), y + row - 5), (at(bar.to), y + row + 3)];
                area.draw(&PathElement::new(step, MUTED.light.stroke_width(1)))?;
            }
            let middle = y + row / 2 - 1;
            let label = text(TEXT, INK, HPos::Right, VPos::Center);
            area.draw(&Text::new(bar.label.clone(), (margin - 8, middle), label))?;
            let note = text(TEXT, MUTED, HPos::Left, VPos::Center);
            area.draw(&Text::new(bar.note.clone(), (b + 8, middle), note))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_at_a_logarithmic_axis_are_not_zero() {
        let points = vec![(0.0, 1.0), (1.0, 1e-15), (2.0, 1e-300)];
        let svg = lines(Lines { log: true, ..Lines::new("x", "y", vec![Series::new("", INK, points)]) });
        let labels: Vec<&str> = svg.lines().map(str::trim).filter(|line| line.starts_with("1e-")).collect();
        assert_eq!(labels, ["1e-300", "1e-200", "1e-100"]);
    }
}
