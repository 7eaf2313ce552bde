//! An SVG chart of cache misses, legible on light and dark backgrounds.

use std::fmt::Write;

/// A curve over the percentages of a cache's size.
pub struct Curve<'a> {
    /// What it is.
    pub name: &'a str,
    /// A colour of the palette below, "single" or "dual", and "slabs" for a broken line.
    pub class: &'a str,
    /// Percent of the plane, misses a pass.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 180.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// Blues and oranges of Okabe and Ito, which colour-blind readers can distinguish; the lighter ones are for dark mode.
const STYLE: &str = "text{font:13px sans-serif;fill:#222}.title{font-weight:bold}.axis{stroke:#222}\
    .grid{stroke:#ddd}polyline{fill:none;stroke-width:2}.single{stroke:#d55e00}.dual{stroke:#0072b2}.slabs{stroke-dasharray:6 4}\
    @media(prefers-color-scheme:dark){text{fill:#ddd}.axis{stroke:#ddd}.grid{stroke:#444}\
    .single{stroke:#e69f00}.dual{stroke:#56b4e9}}";

/// The curves, their misses on a logarithmic axis.
pub fn svg(title: &str, curves: &[Curve<'_>]) -> String {
    let misses = || curves.iter().flat_map(|curve| &curve.points).map(|&(_, misses)| misses);
    // Less than one is drawn as one.
    let lowest = misses().fold(f64::INFINITY, f64::min).max(1.0).log10().floor();
    let highest = misses().fold(0.0, f64::max).log10().ceil().max(lowest + 1.0);
    let x = |percent: f64| LEFT + percent / 100.0 * (WIDTH - LEFT - RIGHT);
    let y = |misses: f64| {
        let share = (misses.max(1.0).log10() - lowest) / (highest - lowest);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"20\">{title}</text>\n"
    );
    let mut draw = |element: String| writeln!(svg, "{element}").expect("text takes what is written to it");
    let (left, right, bottom) = (x(0.0), x(100.0), HEIGHT - BOTTOM);
    for power in lowest as i32..=highest as i32 {
        let at = y(10f64.powi(power));
        draw(format!("<path class=\"grid\" d=\"M{left} {at:.1}H{right}\"/>"));
        let (before, after) = (left - 8.0, at + 4.0);
        draw(format!(
            "<text x=\"{before}\" y=\"{after:.1}\" text-anchor=\"end\">10<tspan dy=\"-5\" font-size=\"10\">{power}</tspan></text>"
        ));
    }
    for percent in (0..=100).step_by(10) {
        let (at, below) = (x(f64::from(percent)), bottom + 18.0);
        draw(format!("<path class=\"axis\" d=\"M{at} {bottom}v4\"/>"));
        draw(format!("<text x=\"{at}\" y=\"{below}\" text-anchor=\"middle\">{percent}</text>"));
    }
    draw(format!("<path class=\"axis\" fill=\"none\" d=\"M{left} {TOP}V{bottom}H{right}\"/>"));
    let (middle, lower) = (x(50.0), HEIGHT - 10.0);
    draw(format!("<text x=\"{middle}\" y=\"{lower}\" text-anchor=\"middle\">cache in % of the bits</text>"));
    let middle = (TOP + bottom) / 2.0;
    draw(format!(
        "<text transform=\"translate(18 {middle}) rotate(-90)\" text-anchor=\"middle\">block misses a pass</text>"
    ));
    for (number, Curve { name, class, points }) in curves.iter().enumerate() {
        let points: Vec<_> =
            points.iter().map(|&(percent, misses)| format!("{:.1},{:.1}", x(percent), y(misses))).collect();
        draw(format!("<polyline class=\"{class}\" points=\"{}\"/>", points.join(" ")));
        let (at, text) = (TOP + 14.0 + 20.0 * number as f64, right + 54.0);
        let (line, end, base) = (right + 16.0, right + 46.0, at + 4.0);
        draw(format!("<polyline class=\"{class}\" points=\"{line},{at} {end},{at}\"/>"));
        draw(format!("<text x=\"{text}\" y=\"{base}\">{name}</text>"));
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_descend_within_the_axes() {
        let curve = Curve { name: "a", class: "dual", points: vec![(1.0, 1e6), (50.0, 1000.0), (100.0, 20.0)] };
        let svg = svg("title", &[curve]);
        let line = svg.lines().find(|line| line.starts_with("<polyline")).unwrap();
        assert_eq!(line, "<polyline class=\"dual\" points=\"75.5,40.0 345.0,226.0 620.0,331.3\"/>");
    }
}
