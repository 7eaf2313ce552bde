//! `awari gc`: lists and deletes unneeded files of a run directory.

use crate::args::GcArgs;
use crate::builds::request::ResolvedBuild;
use crate::error::{CliError, Result};
use crate::output::{print_json, print_text};
use crate::text::quantity;
use crate::text::terminal::say;
use disk::RealDisk;
use pipeline::orchestrator::{GarbageItem, GarbageReason};
use pipeline::{Budget, Exit, Orchestrator};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The maximum number of files listed for one reason.
const LISTED_MAX: usize = 8;

pub(crate) fn run(args: &GcArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let dir = &args.dir;
    let request = ResolvedBuild::of_directory(&disk, dir)?.ok_or_else(|| CliError::NoManifest(dir.clone()))?;
    let orchestrator = Orchestrator::new(&disk, dir, request.work(), request.options(None));
    let mut reasons = BTreeSet::from([GarbageReason::Leftover, GarbageReason::Snapshot, GarbageReason::Unread]);
    if args.kept {
        reasons.insert(GarbageReason::Kept);
    }
    if args.unasked {
        reasons.insert(GarbageReason::Unasked);
    }
    if args.delete {
        let removed = orchestrator.remove_garbage(&reasons)?;
        if args.json {
            print_json(&removed)?;
        }
        let bytes = removed.iter().map(|item| item.bytes).sum();
        if removed.is_empty() {
            say("nothing to remove");
        } else {
            let files = quantity::plural(removed.len() as u64, "file");
            say(format_args!("{files} removed, {}", Budget::show(bytes)));
        }
        return Ok(Exit::Done);
    }
    let garbage = orchestrator.garbage()?;
    if args.json {
        print_json(&garbage)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for (why, what) in REASONS {
        let items: Vec<&GarbageItem> = garbage.items.iter().filter(|item| item.why == why).collect();
        if items.is_empty() {
            continue;
        }
        let bytes = items.iter().map(|item| item.bytes).sum();
        let files = quantity::plural(items.len() as u64, "file");
        let _ = writeln!(text, "{files}, {}: {what}", Budget::show(bytes));
        for item in items.iter().take(LISTED_MAX) {
            let _ = writeln!(text, "  {}  {}", item.path.display(), Budget::show(item.bytes));
        }
        if items.len() > LISTED_MAX {
            let _ = writeln!(text, "  and {} more", items.len() - LISTED_MAX);
        }
    }
    if !garbage.strange.is_empty() {
        let files = quantity::plural(garbage.strange.len() as u64, "file");
        let _ = writeln!(
            text,
            "{files} that neither the manifest nor the journal names; remove by hand those that you do not need:"
        );
        for path in garbage.strange.iter().take(LISTED_MAX) {
            let _ = writeln!(text, "  {}", path.display());
        }
        if garbage.strange.len() > LISTED_MAX {
            let _ = writeln!(text, "  and {} more", garbage.strange.len() - LISTED_MAX);
        }
    }
    if let Some(holder) = &garbage.holder {
        let _ = writeln!(text, "{} is in use ({holder}): temporary files and snapshots are not listed", dir.display());
    }
    if text.is_empty() {
        text.push_str("nothing to remove\n");
    } else {
        text.push_str("nothing was removed\n");
    }
    print_text(&text)?;
    Ok(Exit::Done)
}

/// Describes a reason, with the options that delete such files.
const REASONS: [(GarbageReason, &str); 5] = [
    (GarbageReason::Leftover, "temporary files of a dead run; --delete removes them, as does the next run"),
    (GarbageReason::Snapshot, "snapshots of stages that are up to date; --delete removes them"),
    (GarbageReason::Unread, "intermediate files that no stage will read; --delete removes them, as does the next run"),
    (
        GarbageReason::Kept,
        "intermediate files kept by store.keep = \"all\"; --kept --delete removes them, and the next run rebuilds \
         them",
    ),
    (GarbageReason::Unasked, "not requested by the manifest; --unasked --delete removes them"),
];
