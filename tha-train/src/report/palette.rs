//! Colours, light and dark. Plots are drawn in the light colours; style rules that match those very values put the
//! dark ones in their place, so that one SVG serves both.

use plotters::style::RGBColor;

/// A colour as drawn, and what it becomes on a dark page.
#[derive(Clone, Copy)]
pub struct Paint {
    /// The colour on white.
    pub light: RGBColor,
    dark: &'static str,
}

const fn paint(r: u8, g: u8, b: u8, dark: &'static str) -> Paint {
    Paint { light: RGBColor(r, g, b), dark }
}

/// Text.
pub(crate) const INK: Paint = paint(0x1f, 0x29, 0x33, "#e6eaee");
/// Axes and secondary text.
pub(crate) const MUTED: Paint = paint(0x68, 0x75, 0x82, "#9aa7b4");
/// Grid lines.
pub(crate) const GRID: Paint = paint(0xe3, 0xe8, 0xed, "#2b3641");
/// First series.
pub(crate) const BLUE: Paint = paint(0x25, 0x63, 0xeb, "#6aa6ff");
/// Second series.
pub(crate) const ORANGE: Paint = paint(0xe0, 0x6c, 0x10, "#ffa24d");
/// Third series, and what is good.
pub(crate) const GREEN: Paint = paint(0x15, 0x8f, 0x4f, "#4cd58a");
/// What is bad.
pub(crate) const RED: Paint = paint(0xd1, 0x2f, 0x2f, "#ff7b76");
/// Fifth series.
pub(crate) const PURPLE: Paint = paint(0x7a, 0x3f, 0xd8, "#b795ff");
/// Sixth series.
pub(crate) const TEAL: Paint = paint(0x0e, 0x8a, 0x9a, "#4fd0de");
/// Confidence bands.
pub(crate) const BAND: Paint = paint(0xdc, 0xe8, 0xfb, "#1f3350");
/// Light text in dark cells of a heat map.
pub(crate) const PAPER: Paint = paint(0xff, 0xff, 0xfe, "#0c1116");

/// Series in the order they are used.
pub const SERIES: [Paint; 6] = [BLUE, ORANGE, GREEN, PURPLE, TEAL, RED];

/// From nothing to much.
pub(crate) const HEAT: [Paint; 9] = [
    paint(0xf1, 0xf4, 0xf8, "#1a222b"),
    paint(0xdd, 0xe8, 0xf8, "#1c2d42"),
    paint(0xc2, 0xd8, 0xf6, "#1e3a5c"),
    paint(0xa0, 0xc3, 0xf2, "#214878"),
    paint(0x7a, 0xa9, 0xec, "#265a99"),
    paint(0x55, 0x8d, 0xe4, "#2f6fbd"),
    paint(0x38, 0x71, 0xd6, "#4587da"),
    paint(0x27, 0x57, 0xb8, "#69a3ee"),
    paint(0x1b, 0x40, 0x8f, "#9cc6ff"),
];

/// Style rules that turn every plot dark where the reader's system is.
pub(super) fn dark_rules() -> String {
    let base = [INK, MUTED, GRID, BLUE, ORANGE, GREEN, RED, PURPLE, TEAL, BAND, PAPER];
    let rule = |paint: &Paint| {
        let RGBColor(r, g, b) = paint.light;
        let light = format!("#{r:02X}{g:02X}{b:02X}");
        format!(
            "svg [fill=\"{light}\"]{{fill:{dark}}}svg [stroke=\"{light}\"]{{stroke:{dark}}}",
            dark = paint.dark
        )
    };
    let rules: String = base.iter().chain(&HEAT).map(rule).collect();
    format!("@media (prefers-color-scheme:dark){{{rules}}}")
}
