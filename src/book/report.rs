//! What a book says about itself: totals, a table by depth, and text of all positions.

use crate::drop_outs::{BookEnd, book_ends, drop_out_depth, least_cost};
use crate::expand::Book;
use crate::game::{BookGame, Hundredths};
use crate::graph::{BookGraph, NodeId};
use chart::{Frame, Picture};
use std::collections::VecDeque;
use std::fmt::Write;

/// Totals of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookTotals {
    /// Positions.
    pub positions: usize,
    /// Positions with moves.
    pub interior: usize,
    /// Positions of proved value.
    pub closed: usize,
    /// Moves.
    pub moves: usize,
    /// Positions to which no play leads any more, since a proved value closed what was above them.
    pub detached: usize,
}

/// The positions of one depth (Lincke 2002, tables 6.1 to 6.12).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DepthRow {
    /// The least number of moves from a root.
    pub depth: u32,
    /// Positions.
    pub nodes: u64,
    /// Positions of proved value.
    pub solved: u64,
    /// Moves that lead to them.
    pub predecessors: u64,
    /// Legal moves, of leaves too.
    pub legal_moves: u64,
    /// Positions with moves in the book.
    pub expanded: u64,
}

impl DepthRow {
    /// Returns the mean number of legal moves.
    pub fn degree(&self) -> f64 {
        self.legal_moves as f64 / self.nodes.max(1) as f64
    }
}

impl<G: BookGame> Book<G> {
    /// Returns the least number of moves from a root to each position; `None` below positions whose value is given.
    pub fn depths(&self) -> Vec<Option<u32>> {
        let graph = self.graph();
        let mut depths = vec![None; graph.len()];
        let mut queue: VecDeque<NodeId> = self.roots().iter().copied().collect();
        queue.iter().for_each(|root| depths[root.index()] = Some(0));
        while let Some(id) = queue.pop_front() {
            if graph.node(id).assessment.is_exact() {
                continue;
            }
            for edge in graph.moves(id) {
                if depths[edge.child.index()].is_none() {
                    depths[edge.child.index()] = depths[id.index()].map(|depth| depth + 1);
                    queue.push_back(edge.child);
                }
            }
        }
        depths
    }

    /// Returns the totals.
    pub fn totals(&self) -> BookTotals {
        let graph = self.graph();
        BookTotals {
            positions: graph.len(),
            interior: graph.interior_count(),
            closed: graph.ids().filter(|&id| graph.is_closed(id)).count(),
            moves: graph.edge_count(),
            detached: self.depths().iter().filter(|depth| depth.is_none()).count(),
        }
    }

    /// Returns a row for each depth.
    pub fn depth_table(&self) -> Vec<DepthRow> {
        let (graph, depths) = (self.graph(), self.depths());
        let mut rows: Vec<DepthRow> = Vec::new();
        let mut moves = Vec::new();
        for id in graph.ids() {
            let Some(depth) = depths[id.index()] else { continue };
            while rows.len() <= depth as usize {
                rows.push(DepthRow { depth: rows.len() as u32, ..DepthRow::default() });
            }
            moves.clear();
            self.game().moves(graph.node(id).key, &mut moves);
            let row = &mut rows[depth as usize];
            row.nodes += 1;
            row.solved += u64::from(graph.is_closed(id));
            row.predecessors += graph.moves_to(id).count() as u64;
            row.legal_moves += moves.len() as u64;
            row.expanded += u64::from(graph.is_interior(id));
        }
        rows
    }

    /// Writes a line for each position, sorted: the position, the bounds and the estimate in stones, and `leaf`,
    /// `interior` or `closed`. Equal books give equal text.
    pub fn export(&self) -> String {
        let graph = self.graph();
        let line = |id: NodeId| {
            let value = graph.value(id);
            let state = match () {
                () if graph.is_closed(id) => "closed",
                () if graph.is_interior(id) => "interior",
                () => "leaf",
            };
            let [low, high, estimate] = [value.low, value.high, value.estimate].map(stones);
            format!("{}; {low} {high} {estimate} {state}", self.game().text(graph.node(id).key))
        };
        let mut order: Vec<NodeId> = graph.ids().collect();
        order.sort_unstable_by_key(|&id| graph.node(id).key);
        let mut text = String::new();
        order.into_iter().for_each(|id| _ = writeln!(text, "{}", line(id)));
        text
    }
}

/// Formats hundredths of a stone: `3`, `-0.25`.
pub fn stones(value: Hundredths) -> String {
    match value % 100 {
        0 => (value / 100).to_string(),
        _ => format!("{}{}.{:02}", if value < 0 { "-" } else { "" }, (value / 100).abs(), (value % 100).abs()),
    }
}

/// Draws the drop-out diagram as SVG: the price of each end of the book to the right, its depth downwards
/// (Lincke 2002, figures 3.2 and 6.3). The line is the frontier of expansion: where it crosses the left edge
/// is the priority of the root.
pub fn diagram(graph: &BookGraph, root: NodeId, is_book: bool, omega: u64) -> String {
    const WIDTH: f64 = 640.0;
    const HEIGHT: f64 = 480.0;
    const MARGIN: f64 = 48.0;
    let ends = book_ends(graph, root, is_book);
    let price_max = ends.iter().map(|end| end.price).max().unwrap_or(0).clamp(100, 600);
    let depth_max = ends.iter().map(|end| end.depth).max().unwrap_or(0).max(4);
    let frame = Frame { left: MARGIN, right: WIDTH - MARGIN, top: MARGIN, bottom: HEIGHT - MARGIN };
    // Depth goes downwards.
    let place =
        |price: f64, depth: f64| (frame.x(price / f64::from(price_max)), frame.y(1.0 - depth / f64::from(depth_max)));
    let mut picture = Picture::new("Drop-out diagram", WIDTH, HEIGHT);
    frame.axes(&mut picture);
    let prices = format!("price, stones: 0 to {}", stones(price_max));
    picture.text((frame.right, frame.bottom + 24.0), "class=\"right\"", prices, "");
    picture.text((frame.left, frame.top - 16.0), "", format!("depth, plies: 0 to {depth_max}"), "");
    let mut dots: std::collections::BTreeMap<(u32, Hundredths, bool), u32> = std::collections::BTreeMap::new();
    for end in ends.iter().filter(|end| end.price <= price_max) {
        *dots.entry((end.depth, end.price, end.is_closed)).or_default() += 1;
    }
    for ((depth, price, is_closed), count) in dots {
        let radius = 1.5 + f64::from(count).ln() * 0.8;
        let color = if is_closed { "#bbb" } else { "#1f6f8b" };
        picture.circle(place(price.into(), depth.into()), radius, &format!("fill=\"{color}\""), "");
    }
    let frontier = least_cost(&ends, omega).plies();
    if frontier.is_finite() {
        let slope = omega as f64 / 100.0;
        // Down to depth 0, or to the right edge.
        let price = if slope > 0.0 { (frontier / slope * 100.0).min(price_max.into()) } else { price_max.into() };
        let depth = |price: f64| (frontier - slope * price / 100.0).clamp(0.0, depth_max.into());
        let (from, to) = (place(0.0, depth(0.0)), place(price, depth(price)));
        picture.line(from, to, "stroke=\"#c33\" stroke-dasharray=\"5 4\"");
    }
    picture.finish()
}

/// Writes the drop-out diagram as lines `depth,price,state`.
pub fn diagram_csv(ends: &[BookEnd]) -> String {
    let mut text = "depth,price,state\n".to_owned();
    for end in ends {
        let _ = writeln!(text, "{},{},{}", end.depth, stones(end.price), if end.is_closed { "closed" } else { "leaf" });
    }
    text
}

/// Returns how early an opponent can leave the book for nothing, half a stone and a stone, on one side.
pub fn drop_out_depths(graph: &BookGraph, root: NodeId, is_book: bool) -> [Option<u32>; 3] {
    let ends = book_ends(graph, root, is_book);
    [0, 50, 100].map(|price| drop_out_depth(&ends, price))
}
