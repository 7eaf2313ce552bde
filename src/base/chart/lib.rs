//! Charts and diagrams as SVG.
//!
//! A [`Picture`] is text that grows by elements. A [`Frame`] is the area of a chart in it, with its axes.
//! Elements take attributes, such as `class="grid"`; the classes `right` and `middle` (anchors of text),
//! `grid` and `axis` have a look of their own, which a page may replace.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::fmt::Display;

/// A point: pixels from the left and from the top.
pub type Point = (f64, f64);

/// A picture under construction.
#[derive(Clone, Debug)]
pub struct Picture(String);

const STYLE: &str = ".right{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#ddd}.axis{fill:none;stroke:#333}";

impl Picture {
    /// Begins a picture that stands alone, on white.
    pub fn new(title: &str, width: f64, height: f64) -> Picture {
        let title = escaped(title);
        Picture(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        ))
    }

    /// Begins a picture of a page, whose style sheet it uses.
    pub fn of_page(title: &str, width: f64, height: f64) -> Picture {
        let title = escaped(title);
        Picture(format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n"))
    }

    /// Draws a line.
    pub fn line(&mut self, from: Point, to: Point, attributes: &str) {
        self.add("line", &[("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)], attributes, "");
    }

    /// Draws a line through points.
    pub fn curve(&mut self, points: impl IntoIterator<Item = Point>, attributes: &str) {
        let points: Vec<_> = points.into_iter().map(|(x, y)| format!("{},{}", rounded(x), rounded(y))).collect();
        self.add("polyline", &[], &format!("points=\"{}\" {attributes}", points.join(" ")), "");
    }

    /// Draws a rectangle, with a text for the pointer if that is not empty.
    pub fn rect(&mut self, corner: Point, size: Point, attributes: &str, tip: &str) {
        let numbers = [("x", corner.0), ("y", corner.1), ("width", size.0), ("height", size.1)];
        self.add("rect", &numbers, attributes, &title(tip));
    }

    /// Draws a circle, with a text for the pointer if that is not empty.
    pub fn circle(&mut self, center: Point, radius: f64, attributes: &str, tip: &str) {
        self.add("circle", &[("cx", center.0), ("cy", center.1), ("r", radius)], attributes, &title(tip));
    }

    /// Writes a text, with another one for the pointer if that is not empty.
    pub fn text(&mut self, at: Point, attributes: &str, text: impl Display, tip: &str) {
        self.add("text", &[("x", at.0), ("y", at.1)], attributes, &(escaped(text) + &title(tip)));
    }

    /// Adds definitions as they are.
    pub fn define(&mut self, definitions: &str) {
        self.add("defs", &[], "", definitions);
    }

    /// Ends the picture.
    pub fn finish(self) -> String {
        self.0 + "</svg>\n"
    }

    fn add(&mut self, name: &str, numbers: &[(&str, f64)], attributes: &str, content: &str) {
        let numbers: String = numbers.iter().map(|(key, value)| format!(" {key}=\"{}\"", rounded(*value))).collect();
        let attributes = if attributes.is_empty() { String::new() } else { format!(" {attributes}") };
        self.0 += &match content {
            "" => format!("<{name}{numbers}{attributes}/>\n"),
            _ => format!("<{name}{numbers}{attributes}>{content}</{name}>\n"),
        };
    }
}

/// The area of a chart. Positions in it are shares of its width and height, from the lower left corner.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "they are what their names say")]
pub struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    /// Returns the coordinate of a share of the width.
    pub fn x(&self, share: f64) -> f64 {
        self.left + (self.right - self.left) * share
    }

    /// Returns the coordinate of a share of the height.
    pub fn y(&self, share: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * share
    }

    /// Draws the axes.
    pub fn axes(&self, picture: &mut Picture) {
        let corners = [(self.left, self.top), (self.left, self.bottom), (self.right, self.bottom)];
        picture.curve(corners, "class=\"axis\"");
    }

    /// Draws grid lines at shares of the height, with their labels.
    pub fn grid(&self, picture: &mut Picture, ticks: impl IntoIterator<Item = (f64, impl Display)>) {
        for (share, label) in ticks {
            let y = self.y(share);
            picture.line((self.left, y), (self.right, y), "class=\"grid\"");
            picture.text((self.left - 7.0, y + 4.0), "class=\"right\"", label, "");
        }
    }

    /// Writes labels below the frame, at shares of the width.
    pub fn labels(&self, picture: &mut Picture, ticks: impl IntoIterator<Item = (f64, impl Display)>) {
        for (share, label) in ticks {
            picture.text((self.x(share), self.bottom + 17.0), "class=\"middle\"", label, "");
        }
    }

    /// Writes the names of both axes.
    pub fn name_axes(&self, picture: &mut Picture, horizontal: &str, vertical: &str) {
        picture.text((self.x(0.5), self.bottom + 42.0), "class=\"middle\"", horizontal, "");
        let turned = format!("class=\"middle\" transform=\"rotate(-90 18 {})\"", self.y(0.5));
        picture.text((18.0, self.y(0.5)), &turned, vertical, "");
    }
}

/// Returns the distance of at most `count` round marks up to `most`: 1, 2 or 5 times a power of ten.
pub fn round_step(most: f64, count: f64) -> f64 {
    let power = 10f64.powf((most / count).log10().floor());
    [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|step| most / step <= count).unwrap_or(10.0 * power)
}

/// Rounds a coordinate to a hundredth.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Returns the element of a text for the pointer; nothing if it is empty.
fn title(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(tip)) }
}

/// Returns text for the place between tags, or for an attribute.
fn escaped(text: impl Display) -> String {
    text.to_string().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_maps_shares_and_draws_its_axes() {
        let frame = Frame { left: 10.0, right: 110.0, top: 5.0, bottom: 55.0 };
        let mut picture = Picture::of_page("a \"<b>\"", 120.0, 70.0);
        frame.axes(&mut picture);
        frame.grid(&mut picture, [(0.5, "1 < 2")]);
        frame.labels(&mut picture, [(1.0 / 3.0, 7)]);
        picture.rect((1.0, 2.0), (3.0, 4.0), "class=\"bar\"", "a & b");
        picture.circle((1.0, 2.0), 0.5, "", "");
        let expected = "<svg viewBox=\"0 0 120 70\" role=\"img\" aria-label=\"a &quot;&lt;b&gt;&quot;\">\n\
            <polyline points=\"10,5 10,55 110,55\" class=\"axis\"/>\n\
            <line x1=\"10\" y1=\"30\" x2=\"110\" y2=\"30\" class=\"grid\"/>\n\
            <text x=\"3\" y=\"34\" class=\"right\">1 &lt; 2</text>\n\
            <text x=\"43.33\" y=\"72\" class=\"middle\">7</text>\n\
            <rect x=\"1\" y=\"2\" width=\"3\" height=\"4\" class=\"bar\"><title>a &amp; b</title></rect>\n\
            <circle cx=\"1\" cy=\"2\" r=\"0.5\"/>\n</svg>\n";
        assert_eq!(picture.finish(), expected);
    }

    #[test]
    fn steps_are_round_and_few() {
        for most in [0.003, 1.0, 7.0, 12.0, 49.9, 1e9] {
            let step = round_step(most, 5.0);
            assert!((1.0..=5.0).contains(&(most / step)), "{most} {step}");
        }
        assert_eq!([0.9, 4.0, 8.0].map(|most| round_step(most, 8.0)), [0.2, 0.5, 1.0]);
    }
}
