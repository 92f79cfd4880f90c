//! A heat map as SVG: a square of cells, coloured by value.

use super::chart::{SMALL, svg, text, tick, width};
use super::palette::{HEAT, INK, MUTED, PAPER};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Cells coloured by value from 0 to `most`, with names where there is room; at its own size, not that of its card.
pub(crate) fn heat(values: &nalgebra::DMatrix<f64>, names: &[String], most: f64, total: u32) -> String {
    let count = values.nrows().max(1) as i32;
    let named = count <= 32 && names.len() == values.nrows();
    let margin = if named { names.iter().map(|n| width(n)).max().unwrap_or(0) + 12 } else { 12 };
    let cell = ((total as i32 - margin - 12) / count).clamp(4, 46);
    let top = if named { 26 } else { 8 };
    let side = cell * count;
    let step =
        |value: f64| ((value / most.max(1e-300)).clamp(0.0, 1.0) * (HEAT.len() - 1) as f64).round() as usize;
    let size = ((margin + side + 12).max(margin + 230) as u32, (top + side + 44) as u32);
    let picture = svg(size, |area| {
        for i in 0..count {
            for j in 0..count {
                let value = values[(i as usize, j as usize)];
                let (x, y) = (margin + j * cell, top + i * cell);
                let paint = HEAT[step(value)];
                let gap = i32::from(cell > 8);
                area.draw(&Rectangle::new([(x, y), (x + cell - gap, y + cell - gap)], paint.light.filled()))?;
                if cell >= 30 {
                    let paint = if step(value) >= 5 { PAPER } else { INK };
                    let style = text(13, paint, HPos::Center, VPos::Center);
                    area.draw(&Text::new(format!("{value:.2}"), (x + cell / 2, y + cell / 2), style))?;
                }
            }
        }
        if named {
            for (k, name) in names.iter().enumerate() {
                let middle = k as i32 * cell + cell / 2;
                let row = text(SMALL, INK, HPos::Right, VPos::Center);
                area.draw(&Text::new(name.clone(), (margin - 6, top + middle), row))?;
                if cell >= 24 && width(name) <= cell + 6 {
                    let column = text(SMALL, INK, HPos::Center, VPos::Bottom);
                    area.draw(&Text::new(name.clone(), (margin + middle, top - 5), column))?;
                }
            }
        }
        let (y, step) = (top + side + 14, 18);
        for (k, paint) in HEAT.iter().enumerate() {
            let x = margin + k as i32 * step;
            area.draw(&Rectangle::new([(x, y), (x + step, y + 10)], paint.light.filled()))?;
        }
        let label = text(SMALL, MUTED, HPos::Left, VPos::Top);
        area.draw(&Text::new("0".to_owned(), (margin, y + 14), label.clone()))?;
        area.draw(&Text::new(tick(most, most), (margin + step * 9 - 12, y + 14), label))?;
        Ok(())
    });
    picture.replacen("<svg ", "<svg class=\"natural\" ", 1)
}
