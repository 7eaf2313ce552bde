//! An SVG chart of cache misses.

use chart::{Frame, Picture};

/// A curve over the percentages of a cache's size.
pub struct Curve<'a> {
    /// What it is.
    pub name: &'a str,
    /// Attributes of its line.
    pub look: &'a str,
    /// Percent of the plane, misses a pass.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 400.0;
const FRAME: Frame = Frame { left: 70.0, right: 620.0, top: 40.0, bottom: 350.0 };

/// The curves, their misses on a logarithmic axis.
pub fn svg(title: &str, curves: &[Curve<'_>]) -> String {
    let misses = || curves.iter().flat_map(|curve| &curve.points).map(|&(_, misses)| misses);
    // Less than one is drawn as one.
    let lowest = misses().fold(f64::INFINITY, f64::min).max(1.0).log10().floor();
    let highest = misses().fold(0.0, f64::max).log10().ceil().max(lowest + 1.0);
    let height = |misses: f64| (misses.max(1.0).log10() - lowest) / (highest - lowest);
    let mut picture = Picture::new(title, WIDTH, HEIGHT);
    picture.text((FRAME.left, 20.0), "font-weight=\"bold\"", title, "");
    let powers = (lowest as i32..=highest as i32).map(|power| 10f64.powi(power));
    FRAME.grid(&mut picture, powers.map(|misses| (height(misses), misses)));
    FRAME.labels(&mut picture, (0..=100).step_by(10).map(|percent| (f64::from(percent) / 100.0, percent)));
    FRAME.axes(&mut picture);
    FRAME.name_axes(&mut picture, "cache in % of the bits", "block misses a pass");
    for (number, Curve { name, look, points }) in curves.iter().enumerate() {
        let look = format!("fill=\"none\" stroke-width=\"2\" {look}");
        picture.curve(points.iter().map(|&(x, misses)| (FRAME.x(x / 100.0), FRAME.y(height(misses)))), &look);
        let y = FRAME.top + 14.0 + 20.0 * number as f64;
        picture.curve([(FRAME.right + 16.0, y), (FRAME.right + 46.0, y)], &look);
        picture.text((FRAME.right + 54.0, y + 4.0), "", name, "");
    }
    picture.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_descend_within_the_axes() {
        let curve =
            Curve { name: "a", look: "stroke=\"red\"", points: vec![(1.0, 1e6), (50.0, 1000.0), (100.0, 20.0)] };
        let svg = svg("title", &[curve]);
        assert!(
            svg.contains(
                "<polyline points=\"75.5,40 345,226 620,331.34\" fill=\"none\" stroke-width=\"2\" stroke=\"red\"/>"
            ),
            "{svg}"
        );
    }
}
