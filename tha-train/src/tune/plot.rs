//! The fronts as a picture: the error that settings are compared by against flash, and against multiply-accumulates.

use super::{Candidate, Tuning};
use crate::output::MARK;
use crate::report::{BLUE, Cloud, MUTED, ORANGE, Panel, scatter};

/// An SVG of its own.
#[must_use]
pub fn svg(tuning: &Tuning) -> String {
    let panel = |x, size: &dyn Fn(&Candidate) -> usize, front: &dyn Fn(&Candidate) -> bool| {
        let some = |chosen: &dyn Fn(&Candidate) -> bool, named: bool| -> Vec<(f64, f64, String)> {
            let note = |candidate: &Candidate| if named { short(candidate) } else { String::new() };
            let place =
                |candidate: &Candidate| (size(candidate) as f64, candidate.figures.held_out, note(candidate));
            tuning.candidates.iter().filter(|candidate| chosen(candidate)).map(place).collect()
        };
        let clouds = vec![
            Cloud {
                label: "fitted".into(),
                paint: MUTED,
                radius: 3,
                joined: false,
                points: some(&|candidate| !front(candidate), false),
            },
            Cloud { label: "front".into(), paint: BLUE, radius: 4, joined: true, points: some(front, false) },
            Cloud {
                label: "recommended".into(),
                paint: ORANGE,
                radius: 6,
                joined: false,
                points: some(&|candidate| candidate.recommended, true),
            },
        ];
        Panel { x, y: "held-out NRMSE", clouds }
    };
    let picture = scatter(&[
        panel("flash, bytes", &|candidate| candidate.figures.flash_bytes, &|candidate| {
            candidate.on_flash_front
        }),
        panel(
            "multiply-accumulates per sample",
            &|candidate| candidate.figures.macs_per_sample,
            &|candidate| candidate.on_macs_front,
        ),
    ]);
    picture.replacen('>', &format!("><!-- {MARK}train tune` -->"), 1)
}

/// The settings in a few letters.
fn short(candidate: &Candidate) -> String {
    let settings = &candidate.settings;
    let mut text = format!("M {}, d {}", settings.memory, settings.degree);
    if settings.degree > 1 {
        text += &format!(", r {}", candidate.figures.rank());
    }
    if settings.heads.is_some() {
        text += &format!(", {} heads", candidate.figures.heads);
    }
    text
}
