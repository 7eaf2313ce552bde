//! Finished databases with another codec than the manifest requests.
//!
//! A codec does not change scores, so a database with another codec is not stale. A message lists these databases.

use crate::files::databases::{artifact, solved};
use crate::text::quantity;
use crate::text::shell::{command_line, path_argument};
use disk::Disk;
use pipeline::Plan;
use planner::Settings;
use std::collections::BTreeMap;
use std::path::Path;
use store::Scores;

/// Describes the databases that keep another codec, if there are any.
pub(crate) fn kept(disk: &dyn Disk, settings: &Settings, dir: &Path, plan: &Plan) -> Option<String> {
    let mut others: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let solved = solved(plan);
    for stones in settings.stones().filter(|stones| !solved.contains(stones)) {
        let Ok(file) = Scores::open_windowed(disk, &artifact(stones).below(dir)) else { continue };
        // A database of other positions will be replaced.
        if file.codec() != settings.codec && file.identity().positions == settings.set.to_string() {
            others.entry(file.codec().to_string()).or_default().push(stones);
        }
    }
    let asked = settings.codec;
    let describe =
        |(codec, stones): (&String, &Vec<u32>)| format!("{} (codec {codec})", quantity::ranges(stones, |n| n + 1));
    let kept: Vec<String> = others.iter().map(describe).collect();
    (!kept.is_empty()).then(|| {
        let dir = command_line([path_argument(dir)]);
        let is_one = others.values().map(Vec::len).sum::<usize>() == 1;
        let (databases, stay, are, them) =
            if is_one { ("database", "stays", "it is", "it") } else { ("databases", "stay", "they are", "them") };
        format!(
            "{databases} {} {stay} as {are}, because the codec {asked} applies to new databases only; to convert {them}:\n  \
             awari archive --dir {dir} --out ARCHIVES && awari restore --from ARCHIVES --dir NEW --codec {asked} && \
             awari run MANIFEST --dir NEW",
            kept.join(", ")
        )
    })
}
