//! Strongly connected components of a graph.

/// Returns the strongly connected components, successors before predecessors (Tarjan 1972, without recursion).
/// `successors` appends those of a node.
pub(crate) fn components(count: usize, mut successors: impl FnMut(usize, &mut Vec<usize>)) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let mut number = vec![UNSEEN; count];
    let mut lowest = vec![0; count];
    let mut is_open = vec![false; count];
    let (mut open, mut found) = (Vec::new(), Vec::new());
    let mut next = 0;
    // The path of the search: a node, and its successors that are not yet looked at.
    let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
    for start in 0..count {
        if number[start] != UNSEEN {
            continue;
        }
        let mut entering = Some(start);
        loop {
            if let Some(node) = entering.take() {
                (number[node], lowest[node], is_open[node]) = (next, next, true);
                next += 1;
                open.push(node);
                let mut rest = Vec::new();
                successors(node, &mut rest);
                path.push((node, rest));
            }
            let Some((node, rest)) = path.last_mut() else { break };
            let node = *node;
            match rest.pop() {
                Some(to) if number[to] == UNSEEN => entering = Some(to),
                Some(to) if is_open[to] => lowest[node] = lowest[node].min(number[to]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some((before, _)) = path.last() {
                        lowest[*before] = lowest[*before].min(lowest[node]);
                    }
                    if lowest[node] == number[node] {
                        let from = open.iter().rposition(|&member| member == node).unwrap_or(0);
                        let component = open.split_off(from);
                        component.iter().for_each(|&member| is_open[member] = false);
                        found.push(component);
                    }
                }
            }
        }
    }
    found
}
