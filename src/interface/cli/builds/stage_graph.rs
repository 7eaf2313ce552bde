//! The graph of the stages of a build, in the language of Graphviz.

use pipeline::{Graph, Plan, Standing};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Returns a graph with a node for each stage, coloured by its state, and an edge to each stage that reads
/// what another makes or comes after it.
pub(crate) fn dot(graph: &Graph, plan: &Plan) -> String {
    let mut text = "digraph stages {\n    rankdir = LR;\n    node [shape = box, style = filled];\n".to_owned();
    for stage in graph.stages() {
        let standing = plan.standing(&stage.name);
        let colour = match standing {
            Standing::ToRun => "gold",
            Standing::UpToDate => "palegreen",
            Standing::NotNeeded | Standing::NotRequested => "gray90",
        };
        let _ = writeln!(text, "    \"{}\" [fillcolor = {colour}, tooltip = \"{standing}\"];", stage.name);
    }
    for stage in graph.stages() {
        let makers: BTreeSet<usize> = stage.inputs.iter().filter_map(|input| graph.maker(input)).collect();
        for maker in makers {
            let _ = writeln!(text, "    \"{}\" -> \"{}\";", graph.stages()[maker].name, stage.name);
        }
        for before in &stage.after {
            let _ = writeln!(text, "    \"{before}\" -> \"{}\" [style = dashed];", stage.name);
        }
    }
    text + "}\n"
}
