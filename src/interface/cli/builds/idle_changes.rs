//! Changes of a manifest that change nothing of a finished build: another method, another memory limit.
//!
//! Both are no part of a file's identity. A message says so, because a run has nothing to do.

use crate::builds::request::ResolvedBuild;
use crate::builds::summary;
use crate::text::quantity;
use crate::text::shell::{command_line, path_argument};
use pipeline::Budget;
use pipeline::status::Status;
use planner::Settings;
use std::collections::BTreeMap;
use std::path::Path;

/// Describes what the method and the memory limit of `settings` change, if the databases of a directory were
/// built with others. `before` is the manifest of the latest run.
pub(crate) fn idle_changes(
    before: Option<&ResolvedBuild>,
    settings: &Settings,
    status: &Status,
    dir: &Path,
) -> Vec<String> {
    let mut by_method: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for stones in settings.stones() {
        let Some(requested) = settings.asked_method(stones) else { continue };
        let made_by = summary::method_of_database(status, stones);
        if !made_by.is_empty() && made_by != requested.word() {
            by_method.entry(requested.word()).or_default().push(stones);
        }
    }
    let dir = command_line([path_argument(dir)]);
    let of_method = by_method.into_iter().map(|(method, stones)| {
        let stones = quantity::ranges(&stones, |stones| stones + 1);
        format!(
            "the method {method} changes no byte of databases {stones}, which another method has built: all methods make the same \
             files; to compare them: awari verify --dir {dir} --against {method}"
        )
    });
    let of_memory = before.map(|before| before.settings().memory_bytes).filter(|&bytes| bytes != settings.memory_bytes);
    let of_memory = of_memory.map(|bytes| {
        let [limit, before] = [settings.memory_bytes, bytes].map(Budget::show);
        format!(
            "the memory limit of {limit} (before: {before}) changes no finished file: it is for stages that run later"
        )
    });
    of_method.chain(of_memory).collect()
}
