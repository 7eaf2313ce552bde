//! Pictures of a whole book: the depth histogram and the table by depth (Lincke 2002, figures and tables 6.1 to 6.12), the tree of the first
//! plies (figure 6.4), and a cycle (figure 6.10).

use crate::components::components;
use crate::{AwariGame, Book, BookEdge, BookGame, BookGraph, DepthRow, Hundredths, NodeId, stones};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const MARGIN: f64 = 48.0;

/// Opens a picture with a white ground.
fn begin(title: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    )
}

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
    const HEIGHT: f64 = 320.0;
    let most = rows.iter().map(|row| row.nodes).max().unwrap_or(0).max(1);
    let (bottom, step) = (HEIGHT - MARGIN, (WIDTH - 2.0 * MARGIN) / rows.len().max(1) as f64);
    let height = |count: u64| (HEIGHT - 2.0 * MARGIN) * count as f64 / most as f64;
    let mut text = begin("Nodes by depth", WIDTH, HEIGHT);
    for (at, row) in rows.iter().enumerate() {
        let x = MARGIN + step * at as f64;
        for (count, color) in [(row.nodes, "#1f6f8b"), (row.solved, "#bbb")] {
            let _ = writeln!(
                text,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{color}\"/>",
                bottom - height(count),
                (step * 0.9).max(0.5),
                height(count)
            );
        }
    }
    let last = rows.len().saturating_sub(1);
    let right = WIDTH - MARGIN;
    let _ = writeln!(
        text,
        "<path d=\"M{MARGIN} {MARGIN}V{bottom}H{right}\" fill=\"none\" stroke=\"#333\"/>\n\
         <text x=\"{right}\" y=\"{}\" text-anchor=\"end\">depth, plies: 0 to {last}</text>\n\
         <text x=\"{MARGIN}\" y=\"{}\">nodes: 0 to {most} (grey: solved)</text>",
        bottom + 24.0,
        MARGIN - 16.0
    );
    text + "</svg>\n"
}

/// A line of the tree of the first plies: moves from the root, and the position after them.
struct TreeLine {
    moves: Vec<String>,
    /// The value for the player to move at the root, captures included.
    value: Hundredths,
    id: NodeId,
}

/// The moves that the tree shows at each ply, the best first: all first moves, three replies, and the best move after each.
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
    let column = |ply: usize| MARGIN / 2.0 + 150.0 * ply as f64;
    // A line has a row of its own, unless it is the first below the position before it.
    let mut rows: HashMap<Vec<String>, f64> = HashMap::new();
    let mut next = 0.0;
    let mut body = String::new();
    for (at, line) in lines.iter().enumerate() {
        let before = line.moves.split_last().map(|(_, before)| before.to_vec());
        let is_first_below = at > 0 && before.as_ref() == Some(&lines[at - 1].moves);
        if at > 0 && !is_first_below {
            next += ROW;
        }
        rows.insert(line.moves.clone(), next);
        let (x, y) = (column(line.moves.len()), MARGIN / 2.0 + next);
        if let Some(row) = before.and_then(|before| rows.get(&before)) {
            let from = MARGIN / 2.0 + row;
            let _ = writeln!(
                body,
                "<path d=\"M{:.0} {:.0}V{:.0}H{:.0}\" fill=\"none\" stroke=\"#999\"/>",
                x - 30.0,
                from - 4.0,
                y - 4.0,
                x - 4.0
            );
        }
        let name = line.moves.last().map_or("start", String::as_str);
        let color = if book.graph().is_closed(line.id) { "#777" } else { "#111" };
        let _ = writeln!(body, "<text x=\"{x:.0}\" y=\"{y:.0}\" fill=\"{color}\">{name} {}</text>", stones(line.value));
    }
    begin("First plies", WIDTH, next + MARGIN) + &body + "</svg>\n"
}

/// A position of a cycle, the move that stays in it, and the best move that leaves it.
struct CycleStep<'a> {
    id: NodeId,
    stays: &'a BookEdge,
    leaves: Option<&'a BookEdge>,
}

/// The positions of a component whose cycles are compared.
const STARTS_MAX: usize = 200;

/// Returns a shortest cycle of the largest component of positions that lead to each other; none if the book has no cycle.
fn shortest_cycle(graph: &BookGraph) -> Vec<CycleStep<'_>> {
    let children = |node: usize, found: &mut Vec<usize>| {
        found.extend(graph.moves(NodeId(node as u32)).iter().map(|edge| edge.child.index()));
    };
    let largest = components(graph.len(), children).into_iter().filter(|one| one.len() > 1).max_by_key(Vec::len);
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
    let mut text = begin("A cycle", SIZE, SIZE);
    text += "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
        orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n";
    if steps.is_empty() {
        text += "<text x=\"48\" y=\"48\">the book has no cycle</text>\n";
    }
    for (at, CycleStep { id, stays, leaves }) in steps.iter().enumerate() {
        let ((x, y), (to_x, to_y), (out_x, out_y)) = (place(at, 160.0), place(at + 1, 160.0), place(at, 235.0));
        // Arrows end at the edge of the circle that they point to.
        let length = (to_x - x).hypot(to_y - y).max(1.0);
        let (end_x, end_y) = (to_x - (to_x - x) / length * 20.0, to_y - (to_y - y) / length * 20.0);
        let value = stones(graph.value(*id).estimate);
        let _ = writeln!(
            text,
            "<path d=\"M{x:.1} {y:.1}L{end_x:.1} {end_y:.1}\" stroke=\"#333\" marker-end=\"url(#head)\"/>\n\
             <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"20\" fill=\"#fff\" stroke=\"#1f6f8b\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}<title>{}</title></text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            y + 4.0,
            game.text(graph.node(*id).key),
            f64::midpoint(x, to_x),
            f64::midpoint(y, to_y) - 4.0,
            game.move_text(stays.number)
        );
        if let Some(edge) = leaves {
            let _ = writeln!(
                text,
                "<text x=\"{out_x:.1}\" y=\"{out_y:.1}\" text-anchor=\"middle\" fill=\"#c33\">{} {}</text>",
                game.move_text(edge.number),
                stones(graph.estimate(edge))
            );
        }
    }
    text + "</svg>\n"
}
