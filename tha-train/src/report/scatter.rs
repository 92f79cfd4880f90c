//! Points in panels side by side, both axes logarithmic, as a picture of its own.

use super::chart::{Area, Drawn, SMALL, Series, grid, legend, standalone, svg, text, tick};
use super::palette::{INK, PAPER, Paint};
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::ops::Range;

/// Points of one kind.
pub(crate) struct Cloud {
    pub label: String,
    pub paint: Paint,
    /// Radius of the dots.
    pub radius: u32,
    /// Joined by steps: a front.
    pub joined: bool,
    /// Horizontal, vertical, and what stands beside it.
    pub points: Vec<(f64, f64, String)>,
}

impl Cloud {
    pub(crate) fn new(
        label: &str,
        paint: Paint,
        radius: u32,
        joined: bool,
        points: Vec<(f64, f64, String)>,
    ) -> Self {
        Self { label: label.into(), paint, radius, joined, points }
    }
}

/// One of the panels.
pub(crate) struct Panel<'a> {
    pub x: &'a str,
    pub y: &'a str,
    pub clouds: Vec<Cloud>,
}

const PANEL: (u32, u32) = (560, 400);
const LEGEND: u32 = 32;

/// The whole picture. The first panel's clouds make the legend.
pub(crate) fn scatter(panels: &[Panel<'_>]) -> String {
    let size = (PANEL.0 * panels.len().max(1) as u32, PANEL.1 + LEGEND);
    let picture = svg(size, |area| {
        area.fill(&PAPER.light)?;
        let (top, body) = area.split_vertically(LEGEND);
        let entries = panels.first().map_or(&[][..], |panel| &panel.clouds);
        let entries: Vec<Series> =
            entries.iter().map(|cloud| Series::new(&cloud.label, cloud.paint, Vec::new())).collect();
        legend(&top, &entries)?;
        for (area, panel) in body.split_evenly((1, panels.len().max(1))).iter().zip(panels) {
            draw(area, panel)?;
        }
        Ok(())
    });
    standalone(&picture)
}

/// From a little below the least to a little above the greatest, as powers of ten.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        return (0.0, 1.0);
    }
    let air = (0.08 * (high - low)).max(0.05);
    (low - air, high + air)
}

/// Round numbers within a span, as powers of ten: as many digits of a decade as there is room for.
fn round_numbers(low: f64, high: f64) -> Vec<f64> {
    let digits: &[f64] = match high - low {
        span if span > 3.0 => &[1.0],
        span if span > 1.0 => &[1.0, 2.0, 5.0],
        span if span > 0.4 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        _ => &[
            1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0, 2.2, 2.5, 2.7, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0,
            9.0,
        ],
    };
    let decades = low.floor() as i32..=high.ceil() as i32;
    let marks = decades.flat_map(|decade| digits.iter().map(move |digit| digit.log10() + f64::from(decade)));
    marks.filter(|mark| (low..=high).contains(mark)).collect()
}

/// An axis of powers of ten with marks at round numbers.
struct Decades(f64, f64);

impl Ranged for Decades {
    type ValueType = f64;
    type FormatOption = DefaultFormatting;

    fn range(&self) -> Range<f64> {
        self.0..self.1
    }

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        first + (f64::from(last - first) * (value - self.0) / (self.1 - self.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { round_numbers(self.0, self.1) }
    }
}

/// The number at a mark.
fn power(v: f64) -> String {
    let value = 10_f64.powf(v);
    let unit = 10_f64.powi(v.floor() as i32 - 2);
    tick((value / unit).round() * unit, value)
}

fn draw(area: &Area<'_>, panel: &Panel<'_>) -> Drawn {
    let points = |cloud: &Cloud| -> Vec<(f64, f64)> {
        let good = cloud.points.iter().filter(|(x, y, _)| *x > 0.0 && *y > 0.0);
        good.map(|(x, y, _)| (x.log10(), y.log10())).collect()
    };
    let all: Vec<(f64, f64)> = panel.clouds.iter().flat_map(points).collect();
    let (left, right) = span(all.iter().map(|(x, _)| *x));
    let (low, high) = span(all.iter().map(|(_, y)| *y));
    let mut chart = ChartBuilder::on(area)
        .margin_right(24)
        .margin_left(8)
        .margin_top(4)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(Decades(left, right), Decades(low, high))?;
    grid(&mut chart.configure_mesh())
        .x_desc(panel.x)
        .y_desc(panel.y)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|v| power(*v))
        .y_label_formatter(&|v| power(*v))
        .draw()?;
    for cloud in &panel.clouds {
        if cloud.joined {
            // Between two points of a front the smaller model is what there is.
            let mut sorted = points(cloud);
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut steps: Vec<(f64, f64)> = Vec::new();
            for (x, y) in sorted {
                steps.extend(steps.last().map(|&(_, before)| (x, before)));
                steps.push((x, y));
            }
            chart.draw_series(LineSeries::new(steps, cloud.paint.light.stroke_width(2)))?;
        }
        let dot = |point| Circle::new(point, cloud.radius, cloud.paint.light.filled());
        chart.draw_series(points(cloud).into_iter().map(dot))?;
        for (x, y, note) in
            cloud.points.iter().filter(|(x, y, note)| *x > 0.0 && *y > 0.0 && !note.is_empty())
        {
            // Below: there a front has nothing. To the side where there is more room.
            let side = if x.log10() > 0.5 * (left + right) { HPos::Right } else { HPos::Left };
            let style = text(SMALL, INK, side, VPos::Top);
            let at = chart.backend_coord(&(x.log10(), y.log10()));
            let (dx, dy) = area.get_base_pixel();
            area.draw(&Text::new(note.clone(), (at.0 - dx - 4, at.1 - dy + 9), style))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::BLUE;

    #[test]
    fn every_point_is_drawn_and_labels_are_powers() {
        let cloud = |points| Cloud { label: "front".into(), paint: BLUE, radius: 4, joined: true, points };
        let points =
            vec![(100.0, 0.5, String::new()), (1000.0, 0.05, "M4 d2".into()), (10.0, -1.0, String::new())];
        let picture = scatter(&[Panel { x: "bytes", y: "error", clouds: vec![cloud(points)] }]);
        assert_eq!(picture.matches("<circle").count(), 2, "what has no logarithm is left out");
        assert!(picture.contains("M4 d2") && picture.contains("bytes") && picture.contains("<style>"));
        assert_eq!((power(3.0), power(-1.5), power(3.301)), ("1000".into(), "0.0316".into(), "2000".into()));
        let marks: Vec<String> = round_numbers(-1.1, 0.4).into_iter().map(power).collect();
        assert_eq!(marks, ["0.1", "0.2", "0.5", "1", "2"]);
        let empty = scatter(&[Panel { x: "bytes", y: "error", clouds: vec![] }]);
        assert!(empty.starts_with("<svg"));
    }
}
