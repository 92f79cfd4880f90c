//! The fronts as a picture: the error that settings are compared by against flash, and against multiply-accumulates.

use super::{Point, Tuning};
use crate::output::MARK;
use crate::report::{BLUE, Cloud, MUTED, ORANGE, Panel, scatter};

/// An SVG of its own.
#[must_use]
pub fn svg(tuning: &Tuning) -> String {
    let panel = |x, size: &dyn Fn(&Point) -> usize, front: &dyn Fn(&Point) -> bool| {
        let some = |chosen: &dyn Fn(&Point) -> bool, named: bool| -> Vec<(f64, f64, String)> {
            let note = |point: &Point| if named { short(point) } else { String::new() };
            let place = |point: &Point| (size(point) as f64, point.trial.held_out, note(point));
            tuning.points.iter().filter(|point| chosen(point)).map(place).collect()
        };
        let clouds = vec![
            Cloud {
                label: "fitted".into(),
                paint: MUTED,
                radius: 3,
                joined: false,
                points: some(&|point| !front(point), false),
            },
            Cloud { label: "front".into(), paint: BLUE, radius: 4, joined: true, points: some(front, false) },
            Cloud {
                label: "recommended".into(),
                paint: ORANGE,
                radius: 6,
                joined: false,
                points: some(&|point| point.recommended, true),
            },
        ];
        Panel { x, y: "held-out NRMSE", clouds }
    };
    let picture = scatter(&[
        panel("flash, bytes", &|point| point.trial.flash_bytes, &|point| point.on_flash_front),
        panel("multiply-accumulates per sample", &|point| point.trial.macs_per_sample, &|point| {
            point.on_macs_front
        }),
    ]);
    picture.replacen('>', &format!("><!-- {MARK}train tune` -->"), 1)
}

/// The setting in a few letters.
fn short(point: &Point) -> String {
    let setting = &point.setting;
    let mut text = format!("M {}, d {}", setting.memory, setting.degree);
    if setting.degree > 1 {
        text += &format!(", r {}", point.trial.rank());
    }
    if setting.heads.is_some() {
        text += &format!(", {} heads", point.trial.heads);
    }
    text
}
