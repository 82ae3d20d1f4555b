//! Charts as SVG: a curve over simulated time with faults as bands, and the bars of a matrix beside their bound.
//!
//! Every colour stands for one role and is written in its light form, so a picture is right when it stands alone; the page's
//! stylesheet maps the same colours to their dark forms. Unknown samples are gaps, with a mark on the base line, so that
//! "unknown" never looks like "zero".

use crate::record::{Band, Curve};
use crate::show;
use plotters::coord::types::RangedCoordf64;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Roles and their colours, light and dark. Each light colour is used for one role only.
pub(crate) const ROLES: &[(&str, &str)] = &[
    ("#2A78D6", "#3987E5"), // the curve
    ("#EB6834", "#D95926"), // bands
    ("#0B0B0B", "#FFFFFF"), // words
    ("#52514E", "#C3C2B7"), // numbers at the axes
    ("#E1E0D9", "#2C2C2A"), // grid
    ("#C3C2B8", "#383835"), // axes
    ("#898781", "#898782"), // unknown, bounds
];

const CURVE: RGBColor = RGBColor(0x2A, 0x78, 0xD6);
const BAND: RGBColor = RGBColor(0xEB, 0x68, 0x34);
const INK: RGBColor = RGBColor(0x0B, 0x0B, 0x0B);
const MUTED: RGBColor = RGBColor(0x52, 0x51, 0x4E);
const GRID: RGBColor = RGBColor(0xE1, 0xE0, 0xD9);
const AXIS: RGBColor = RGBColor(0xC3, 0xC2, 0xB8);
const UNKNOWN: RGBColor = RGBColor(0x89, 0x87, 0x81);

/// Pixels are whole numbers to the library: drawn at twice its size, a curve is smooth.
const SIZE: (u32, u32) = (1800, 520);
const FONT: f64 = 28.0;
const LABEL_HEIGHT: i32 = 30;
/// Lines of labels above a chart; bands whose label finds no room are drawn without it.
const LABEL_LINES: usize = 4;
/// Bands drawn at most.
pub(crate) const BANDS_MAX: usize = 400;

type Fault = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// How far the axes reach: charts of one page that are compared share it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reach {
    /// Seconds on the time axis.
    pub(crate) time_s: f64,
    /// Largest value.
    pub(crate) value: f64,
}

impl Reach {
    /// The reach of one curve in a run of so many simulated seconds.
    pub(crate) fn of(curve: &Curve, simulated_s: f64) -> Self {
        let last = curve.values.len().saturating_sub(1) as f64;
        let end = (curve.start_ns as f64 + last * curve.interval_ns as f64) / 1e9;
        let known = curve.values.iter().filter_map(|v| finite(*v));
        Self { time_s: finite(Some(simulated_s)).unwrap_or(0.0).max(end), value: known.fold(0.0, f64::max) }
    }

    /// What covers both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { time_s: self.time_s.max(other.time_s), value: self.value.max(other.value) }
    }
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|v| v.is_finite())
}

/// The unit in which a time axis is labelled, and how many seconds it has.
fn time_unit(time_s: f64) -> (&'static str, f64) {
    match time_s {
        t if t <= 600.0 => ("s", 1.0),
        t if t <= 7200.0 => ("min", 60.0),
        t if t <= 48.0 * 3600.0 => ("h", 3600.0),
        _ => ("days", 86_400.0),
    }
}

/// A curve over simulated time with its bands, as an SVG element. `None` if nothing can be drawn.
pub(crate) fn over_time(curve: &Curve, bands: &[Band], reach: Reach) -> Option<String> {
    if curve.values.is_empty() || curve.interval_ns == 0 {
        return None;
    }
    let mut svg = String::new();
    draw_over_time(&mut svg, curve, bands, reach).ok()?;
    Some(element(svg, &format!("{} in {} over simulated time", curve.name, curve.unit)))
}

fn draw_over_time(svg: &mut String, curve: &Curve, bands: &[Band], reach: Reach) -> Result<(), Fault> {
    let (unit, per) = time_unit(reach.time_s);
    let time_max = if reach.time_s > 0.0 { reach.time_s / per } else { 1.0 };
    let value_max = if reach.value > 0.0 { reach.value * 1.05 } else { 1.0 };
    let plot_width = f64::from(SIZE.0) - 190.0;
    let labels = place_labels(bands, per, time_max, plot_width);
    let lines = labels.iter().map(|l| l.line + 1).max().unwrap_or(0);
    let root = SVGBackend::with_string(svg, (SIZE.0, SIZE.1 + lines as u32 * LABEL_HEIGHT as u32)).into_drawing_area();
    let top = lines as i32 * LABEL_HEIGHT;
    let (head, body) = root.split_vertically(top);
    let mut chart = ChartBuilder::on(&body)
        .margin_top(14)
        .margin_right(30)
        .x_label_area_size(70)
        .y_label_area_size(160)
        .build_cartesian_2d(0.0..time_max, 0.0..value_max)?;
    draw_bands(&mut chart, bands, per, time_max, value_max)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(2))
        .axis_style(AXIS.stroke_width(2))
        .label_style(("sans-serif", FONT).into_font().color(&MUTED))
        .x_labels(12)
        .y_labels(5)
        .x_label_formatter(&|t| format!("{} {unit}", show::number(round(*t))))
        .y_label_formatter(&|v| show::number(round(*v)))
        .draw()?;
    draw_curve(&mut chart, curve, per, value_max)?;
    draw_labels(&head, &labels)?;
    drop(chart);
    root.present()?;
    Ok(())
}

/// Ticks of an axis are sums of a step: 0.30000000000000004 is 0.3.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn draw_bands(chart: &mut Chart<'_, '_>, bands: &[Band], per: f64, time_max: f64, value_max: f64) -> Result<(), Fault> {
    for band in bands.iter().take(BANDS_MAX) {
        let (from, to) = span(band, per, time_max);
        // An instant, a power loss for example, is a line: a rectangle without width would be invisible.
        if (to - from) / time_max < 0.001 {
            let line = PathElement::new(vec![(from, 0.0), (from, value_max)], BAND.stroke_width(3));
            chart.draw_series(std::iter::once(line))?;
        } else {
            let area = Rectangle::new([(from, 0.0), (to, value_max)], BAND.mix(0.16).filled());
            chart.draw_series(std::iter::once(area))?;
        }
    }
    Ok(())
}

fn span(band: &Band, per: f64, time_max: f64) -> (f64, f64) {
    let at = |ns: u64| (ns as f64 / 1e9 / per).min(time_max);
    (at(band.from_ns), at(band.to_ns.max(band.from_ns)))
}

fn draw_curve(chart: &mut Chart<'_, '_>, curve: &Curve, per: f64, value_max: f64) -> Result<(), Fault> {
    let at = |n: usize| (curve.start_ns as f64 + n as f64 * curve.interval_ns as f64) / 1e9 / per;
    let half = curve.interval_ns as f64 / 2e9 / per;
    let style = CURVE.stroke_width(4);
    for (first, run) in runs(&curve.values) {
        match run {
            Run::Known(values) if values.len() == 1 => {
                chart.draw_series(std::iter::once(Circle::new((at(first), values[0]), 4, CURVE.filled())))?;
            }
            Run::Known(values) => {
                let points = values.iter().enumerate().map(|(n, v)| (at(first + n), *v));
                chart.draw_series(LineSeries::new(points, style))?;
            }
            Run::Unknown(count) => {
                let (from, to) = ((at(first) - half).max(0.0), at(first + count - 1) + half);
                let mark = Rectangle::new([(from, 0.0), (to, value_max * 0.03)], UNKNOWN.mix(0.7).filled());
                chart.draw_series(std::iter::once(mark))?;
            }
        }
    }
    Ok(())
}

/// A stretch of samples that are all known, or all unknown.
#[derive(Clone, Debug, PartialEq)]
enum Run {
    Known(Vec<f64>),
    Unknown(usize),
}

/// Cuts samples where knowledge begins and ends; each stretch with the index of its first sample.
fn runs(values: &[Option<f64>]) -> Vec<(usize, Run)> {
    let mut out: Vec<(usize, Run)> = Vec::new();
    for (n, value) in values.iter().enumerate() {
        match (finite(*value), out.last_mut()) {
            (Some(v), Some((_, Run::Known(known)))) => known.push(v),
            (None, Some((_, Run::Unknown(count)))) => *count += 1,
            (Some(v), _) => out.push((n, Run::Known(vec![v]))),
            (None, _) => out.push((n, Run::Unknown(1))),
        }
    }
    out
}

/// A band's label in one of the lines above the chart.
#[derive(Clone, Debug, PartialEq)]
struct Label {
    x: i32,
    line: usize,
    text: String,
}

/// Gives each band's label the first line in which it overlaps none; labels that find no room are left out.
fn place_labels(bands: &[Band], per: f64, time_max: f64, plot_width: f64) -> Vec<Label> {
    let mut free = [0.0_f64; LABEL_LINES];
    let mut out = Vec::new();
    for band in bands.iter().take(BANDS_MAX) {
        let text = show::clip(&show::clean(&band.label), 48);
        let width = text.chars().count() as f64 * FONT * 0.47;
        let x = (span(band, per, time_max).0 / time_max * plot_width).min((plot_width - width).max(0.0));
        if let Some(line) = free.iter().position(|end| *end <= x) {
            free[line] = x + width + 16.0;
            out.push(Label { x: 160 + x as i32, line, text });
        }
    }
    out
}

fn draw_labels(head: &Area<'_>, labels: &[Label]) -> Result<(), Fault> {
    let style = ("sans-serif", FONT).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Top));
    for label in labels {
        head.draw(&Text::new(label.text.clone(), (label.x, label.line as i32 * LABEL_HEIGHT + 4), style.clone()))?;
    }
    Ok(())
}

/// One bar of a matrix: what was carried, and the bound beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    /// The row.
    pub(crate) name: String,
    /// MB per second that were mirrored.
    pub(crate) value: Option<f64>,
    /// MB per second that fetching could carry.
    pub(crate) bound: Option<f64>,
}

const BAR_HEIGHT: i32 = 56;
const BAR_NAMES: i32 = 560;

/// Bars side by side; a bound that lies beyond the axis is written, not drawn.
pub(crate) fn bars(bars: &[Bar]) -> Option<String> {
    let largest = bars.iter().filter_map(|b| finite(b.value)).fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let mut svg = String::new();
    draw_bars(&mut svg, bars, largest).ok()?;
    Some(element(svg, "mirrored MB per simulated second of each row, beside its fetch bound"))
}

fn draw_bars(svg: &mut String, bars: &[Bar], largest: f64) -> Result<(), Fault> {
    // Bounds up to four times the largest bar are drawn true to scale: then the bars still can be told apart.
    let bound = bars.iter().filter_map(|b| finite(b.bound)).filter(|b| *b <= largest * 4.0).fold(0.0, f64::max);
    let right = f64::from(SIZE.0 as i32 - BAR_NAMES - 430);
    let axis_max = largest.max(bound);
    let scale = right / axis_max;
    let root = SVGBackend::with_string(svg, (SIZE.0, bars.len() as u32 * BAR_HEIGHT as u32 + 8)).into_drawing_area();
    let text = |color: &RGBColor, h: HPos| ("sans-serif", FONT).into_font().color(color).pos(Pos::new(h, VPos::Center));
    for (n, bar) in bars.iter().enumerate() {
        let (top, middle) = (n as i32 * BAR_HEIGHT + 10, n as i32 * BAR_HEIGHT + 4 + BAR_HEIGHT / 2);
        root.draw(&Text::new(show::clip(&bar.name, 40), (BAR_NAMES - 20, middle), text(&INK, HPos::Right)))?;
        let value = finite(bar.value).unwrap_or(0.0).max(0.0);
        let end = BAR_NAMES + (value * scale) as i32;
        root.draw(&Rectangle::new([(BAR_NAMES, top), (end, top + BAR_HEIGHT - 12)], CURVE.filled()))?;
        let mut words = end;
        let mut beside = String::new();
        if let Some(bound) = finite(bar.bound) {
            let beyond = bound > axis_max;
            beside = format!(" of {}{}", show::number(bound), if beyond { " →" } else { "" });
            if !beyond {
                let x = BAR_NAMES + (bound * scale) as i32;
                root.draw(&Rectangle::new([(x - 2, top - 6), (x + 2, top + BAR_HEIGHT - 6)], MUTED.filled()))?;
                words = words.max(x);
            }
        }
        let said = format!("{}{beside}", show::number_or_none(finite(bar.value)));
        root.draw(&Text::new(said, (words + 16, middle), text(&MUTED, HPos::Left)))?;
    }
    let axis =
        PathElement::new(vec![(BAR_NAMES, 0), (BAR_NAMES, bars.len() as i32 * BAR_HEIGHT + 8)], AXIS.stroke_width(2));
    root.draw(&axis)?;
    root.present()?;
    Ok(())
}

/// The picture as an element of a page: it has a name, and the page gives it its size.
fn element(svg: String, name: &str) -> String {
    let mut label = String::new();
    for c in show::clean(name).chars() {
        match c {
            '<' => label.push_str("&lt;"),
            '&' => label.push_str("&amp;"),
            '"' => label.push_str("&quot;"),
            c => label.push(c),
        }
    }
    let body = svg.find("viewBox").map_or("", |at| &svg[at..]);
    format!("<svg role=\"img\" aria-label=\"{label}\" {body}")
}

#[cfg(test)]
#[path = "charts_tests.rs"]
mod tests;
