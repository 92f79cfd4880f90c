//! Points in panels side by side, both axes logarithmic, as a picture of its own.

use super::chart::{Area, Drawn, SMALL, Series, TEXT, legend, svg, text, tick};
use super::palette::{GRID, INK, MUTED, PAPER, Paint, dark_rules};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

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
    // By itself, not inside a page: the style that turns it dark goes into it.
    match picture.find('>') {
        Some(end) => format!("{}<style>{}</style>{}", &picture[..=end], dark_rules(), &picture[end + 1..]),
        None => picture,
    }
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

/// A power of ten for a reader: two digits where the axis is short.
fn power(v: f64) -> String {
    let value = 10_f64.powf(v);
    let unit = 10_f64.powi(value.log10().floor() as i32 - 2);
    tick((value / unit).round() * unit)
}

fn draw(area: &Area<'_>, panel: &Panel<'_>) -> Drawn {
    let clouds: Vec<(&Cloud, Vec<(f64, f64, &str)>)> = panel
        .clouds
        .iter()
        .map(|cloud| {
            let good = cloud.points.iter().filter(|(x, y, _)| *x > 0.0 && *y > 0.0);
            (cloud, good.map(|(x, y, note)| (x.log10(), y.log10(), note.as_str())).collect())
        })
        .collect();
    let all = || clouds.iter().flat_map(|(_, points)| points);
    let (left, right) = span(all().map(|(x, _, _)| *x));
    let (low, high) = span(all().map(|(_, y, _)| *y));
    let mut chart = ChartBuilder::on(area)
        .margin_right(24)
        .margin_top(4)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(left..right, low..high)?;
    chart
        .configure_mesh()
        .bold_line_style(GRID.light)
        .light_line_style(TRANSPARENT)
        .axis_style(MUTED.light)
        .label_style(text(SMALL, MUTED, HPos::Left, VPos::Top))
        .axis_desc_style(text(TEXT, INK, HPos::Left, VPos::Top))
        .x_desc(panel.x)
        .y_desc(panel.y)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|v| power(*v))
        .y_label_formatter(&|v| power(*v))
        .draw()?;
    for (cloud, points) in &clouds {
        if cloud.joined {
            // Between two points of a front the smaller model is what there is.
            let mut sorted: Vec<(f64, f64)> = points.iter().map(|&(x, y, _)| (x, y)).collect();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut steps: Vec<(f64, f64)> = Vec::new();
            for (x, y) in sorted {
                if let Some(&(_, before)) = steps.last() {
                    steps.push((x, before));
                }
                steps.push((x, y));
            }
            chart.draw_series(LineSeries::new(steps, cloud.paint.light.stroke_width(2)))?;
        }
        let dot =
            |&(x, y, _): &(f64, f64, &str)| Circle::new((x, y), cloud.radius, cloud.paint.light.filled());
        chart.draw_series(points.iter().map(dot))?;
        for &(x, y, note) in points.iter().filter(|(_, _, note)| !note.is_empty()) {
            // To the side where there is more room.
            let (side, shift) = if x > 0.5 * (left + right) { (HPos::Right, -9) } else { (HPos::Left, 9) };
            let style = text(SMALL, INK, side, VPos::Bottom);
            let at = chart.backend_coord(&(x, y));
            let (dx, dy) = area.get_base_pixel();
            area.draw(&Text::new(note.to_owned(), (at.0 - dx + shift, at.1 - dy - 6), style))?;
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
        assert_eq!((power(3.0), power(-1.5), power(3.3)), ("1000".into(), "0.0316".into(), "2000".into()));
        let empty = scatter(&[Panel { x: "bytes", y: "error", clouds: vec![] }]);
        assert!(empty.starts_with("<svg"));
    }
}
