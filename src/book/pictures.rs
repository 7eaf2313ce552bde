//! Pictures of a whole book: the depth histogram and the table by depth (Lincke 2002, figures and tables 6.1
//! to 6.12), the tree of the first plies (figure 6.4), and a cycle (figure 6.10).

use crate::awari::AwariGame;
use crate::components::components;
use crate::expand::Book;
use crate::game::{BookGame, Hundredths};
use crate::graph::{BookEdge, BookGraph, NodeId};
use crate::report::{DepthRow, stones};
use chart::{Frame, Picture};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const MARGIN: f64 = 48.0;

/// Writes the table by depth: depth, nodes, solved, predecessors, mean number of legal moves, and expanded nodes.
pub fn depth_csv(rows: &[DepthRow]) -> String {
    let mut text = "depth,nodes,solved,predecessors,degree,expanded\n".to_owned();
    for row in rows {
        let DepthRow { depth, nodes, solved, predecessors, expanded, .. } = row;
        let _ = writeln!(text, "{depth},{nodes},{solved},{predecessors},{:.4},{expanded}", row.degree());
    }
    text
}

/// Draws the nodes of each depth as a bar, the solved ones in grey.
pub fn depth_histogram(rows: &[DepthRow]) -> String {
    let frame = Frame { left: MARGIN, right: WIDTH - MARGIN, top: MARGIN, bottom: 320.0 - MARGIN };
    let most = rows.iter().map(|row| row.nodes).max().unwrap_or(0).max(1);
    let step = 1.0 / rows.len().max(1) as f64;
    let mut picture = Picture::new("Nodes by depth", WIDTH, 320.0);
    for (number, row) in rows.iter().enumerate() {
        for (count, color) in [(row.nodes, "#1f6f8b"), (row.solved, "#bbb")] {
            let corner = (frame.x(step * number as f64), frame.y(count as f64 / most as f64));
            let size = ((step * (frame.right - frame.left) * 0.9).max(0.5), frame.bottom - corner.1);
            picture.rect(corner, size, &format!("fill=\"{color}\""), "");
        }
    }
    frame.axes(&mut picture);
    let last = rows.len().saturating_sub(1);
    picture.text((frame.right, frame.bottom + 24.0), "class=\"right\"", format!("depth, plies: 0 to {last}"), "");
    picture.text((frame.left, frame.top - 16.0), "", format!("nodes: 0 to {most} (grey: solved)"), "");
    picture.finish()
}

/// A line of the tree of the first plies: moves from the root, and the position after them.
struct TreeLine {
    moves: Vec<String>,
    /// The value for the player to move at the root, captures included.
    value: Hundredths,
    id: NodeId,
}

/// The moves that the tree shows at each ply, the best first: all first moves, three replies, and the best
/// move after each.
const TREE_WIDTHS: [usize; 3] = [usize::MAX, 3, 1];

/// Returns the lines of the tree, each after that of the position before it.
fn tree_lines(book: &Book<AwariGame>) -> Vec<TreeLine> {
    let graph = book.graph();
    let Some(&root) = book.roots().first() else { return Vec::new() };
    let mut lines = Vec::new();
    let mut stack = vec![TreeLine { moves: Vec::new(), value: graph.value(root).estimate, id: root }];
    while let Some(line) = stack.pop() {
        let ply = line.moves.len();
        let is_first = ply % 2 == 0;
        let width = TREE_WIDTHS.get(ply).copied().unwrap_or(0);
        // What the first player has captured so far less what the second has.
        let sign = if is_first { 1 } else { -1 };
        let gained = line.value - sign * graph.value(line.id).estimate;
        let mut moves: Vec<&BookEdge> = graph.moves(line.id).iter().collect();
        moves.sort_by_key(|edge| Reverse(graph.estimate(edge)));
        for edge in moves.into_iter().take(width).rev() {
            let name = book.game().move_text(edge.number);
            let name = if is_first { name } else { name.to_lowercase() };
            let moves = line.moves.iter().cloned().chain([name]).collect();
            stack.push(TreeLine { moves, value: gained + sign * graph.estimate(edge), id: edge.child });
        }
        lines.push(line);
    }
    lines
}

fn state(graph: &BookGraph, id: NodeId) -> &'static str {
    match () {
        () if graph.is_closed(id) => "closed",
        () if graph.is_interior(id) => "interior",
        () => "leaf",
    }
}

/// Writes the tree of the first plies: `moves,value,state`, values for the first player.
pub fn tree_csv(book: &Book<AwariGame>) -> String {
    let mut text = "moves,value,state\n".to_owned();
    for line in tree_lines(book) {
        let _ = writeln!(text, "{},{},{}", line.moves.concat(), stones(line.value), state(book.graph(), line.id));
    }
    text
}

/// Draws the tree of the first plies, from left to right, with values for the first player; proved ones are grey.
pub fn tree(book: &Book<AwariGame>) -> String {
    const ROW: f64 = 20.0;
    let lines = tree_lines(book);
    // A line has a row of its own, unless it is the first below the position before it.
    let mut rows: HashMap<&[String], f64> = HashMap::new();
    let mut row = MARGIN / 2.0;
    for (number, line) in lines.iter().enumerate() {
        let is_first_below =
            number > 0 && line.moves.split_last().map(|(_, before)| before) == Some(&lines[number - 1].moves);
        if number > 0 && !is_first_below {
            row += ROW;
        }
        rows.insert(&line.moves, row);
    }
    let mut picture = Picture::new("First plies", WIDTH, row + MARGIN / 2.0);
    for line in &lines {
        let (x, y) = (MARGIN / 2.0 + 150.0 * line.moves.len() as f64, rows[&line.moves[..]]);
        if let Some(from) = line.moves.split_last().and_then(|(_, before)| rows.get(before)) {
            let bend = [(x - 30.0, from - 4.0), (x - 30.0, y - 4.0), (x - 4.0, y - 4.0)];
            picture.curve(bend, "fill=\"none\" stroke=\"#999\"");
        }
        let name = line.moves.last().map_or("start", String::as_str);
        let color = if book.graph().is_closed(line.id) { "#777" } else { "#111" };
        picture.text((x, y), &format!("fill=\"{color}\""), format!("{name} {}", stones(line.value)), "");
    }
    picture.finish()
}

/// A position of a cycle, the move that stays in it, and the best move that leaves it.
struct CycleStep<'a> {
    id: NodeId,
    stays: &'a BookEdge,
    leaves: Option<&'a BookEdge>,
}

/// The positions of a component whose cycles are compared.
const STARTS_MAX: usize = 200;

/// Returns a shortest cycle of the largest component of positions that lead to each other; none if the book
/// has no cycle.
fn shortest_cycle(graph: &BookGraph) -> Vec<CycleStep<'_>> {
    let children = |node: usize, found: &mut Vec<usize>| {
        found.extend(graph.moves(NodeId(node as u32)).iter().map(|edge| edge.child.index()));
    };
    let largest =
        components(graph.len(), children).into_iter().filter(|component| component.len() > 1).max_by_key(Vec::len);
    let mut inside = largest.unwrap_or_default();
    inside.sort_unstable();
    let mut best: Vec<&BookEdge> = Vec::new();
    for &start in inside.iter().take(STARTS_MAX) {
        let start = NodeId(start as u32);
        let mut reached: HashMap<NodeId, &BookEdge> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(id) = queue.pop_front().filter(|_| !reached.contains_key(&start)) {
            for edge in graph.moves(id).iter().filter(|edge| inside.binary_search(&edge.child.index()).is_ok()) {
                if let Entry::Vacant(place) = reached.entry(edge.child) {
                    place.insert(edge);
                    queue.push_back(edge.child);
                }
            }
        }
        let mut path = Vec::new();
        let mut at = start;
        while let Some(&edge) = reached.get(&at) {
            path.push(edge);
            at = edge.parent;
            if at == start {
                break;
            }
        }
        if best.is_empty() || path.len() < best.len() {
            best = path;
        }
    }
    best.reverse();
    let step = |stays: &&'_ BookEdge| {
        let leaving = graph.moves(stays.parent).iter().filter(|edge| edge.child != stays.child);
        (stays.parent, leaving.max_by_key(|edge| graph.estimate(edge)))
    };
    let steps: Vec<_> = best.iter().map(step).collect();
    best.into_iter().zip(steps).map(|(stays, (id, leaves))| CycleStep { id, stays, leaves }).collect()
}

/// Writes a shortest cycle: `position,value,move,leaving,leaving_value`, values for the player to move.
pub fn cycle_csv(book: &Book<AwariGame>) -> String {
    let (graph, game) = (book.graph(), book.game());
    let mut text = "position,value,move,leaving,leaving_value\n".to_owned();
    for CycleStep { id, stays, leaves } in shortest_cycle(graph) {
        let exit = leaves.map_or_else(
            || ",".to_owned(),
            |edge| format!("{},{}", game.move_text(edge.number), stones(graph.estimate(edge))),
        );
        let value = stones(graph.value(id).estimate);
        let _ = writeln!(text, "{},{value},{},{exit}", game.text(graph.node(id).key), game.move_text(stays.number));
    }
    text
}

/// Draws a shortest cycle of the book: positions with their values in a ring, each with the best move that leaves it.
pub fn cycle(book: &Book<AwariGame>) -> String {
    const SIZE: f64 = 560.0;
    let (graph, game) = (book.graph(), book.game());
    let steps = shortest_cycle(graph);
    let place = |at: usize, radius: f64| {
        let angle = std::f64::consts::TAU * at as f64 / steps.len().max(1) as f64;
        (SIZE / 2.0 + radius * angle.sin(), SIZE / 2.0 - radius * angle.cos())
    };
    let mut picture = Picture::new("A cycle", SIZE, SIZE);
    picture.define(
        "<marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker>",
    );
    if steps.is_empty() {
        picture.text((MARGIN, MARGIN), "", "the book has no cycle", "");
    }
    for (number, CycleStep { id, stays, leaves }) in steps.iter().enumerate() {
        let ((x, y), (to_x, to_y)) = (place(number, 160.0), place(number + 1, 160.0));
        // Arrows end at the edge of the circle that they point to.
        let length = (to_x - x).hypot(to_y - y).max(1.0);
        let end = (to_x - (to_x - x) / length * 20.0, to_y - (to_y - y) / length * 20.0);
        picture.line((x, y), end, "stroke=\"#333\" marker-end=\"url(#head)\"");
        picture.circle((x, y), 20.0, "fill=\"#fff\" stroke=\"#1f6f8b\"", "");
        let (value, tip) = (stones(graph.value(*id).estimate), game.text(graph.node(*id).key));
        picture.text((x, y + 4.0), "class=\"middle\"", value, &tip);
        let middle = (f64::midpoint(x, to_x), f64::midpoint(y, to_y) - 4.0);
        picture.text(middle, "class=\"middle\"", game.move_text(stays.number), "");
        if let Some(edge) = leaves {
            let text = format!("{} {}", game.move_text(edge.number), stones(graph.estimate(edge)));
            picture.text(place(number, 235.0), "class=\"middle\" fill=\"#c33\"", text, "");
        }
    }
    picture.finish()
}
