//! `awari explain`: explains why a stage is or is not up to date.

use crate::args::ExplainArgs;
use crate::builds::request::ResolvedBuild;
use crate::error::Result;
use crate::text::output::{print_json, print_text};
use crate::text::quantity;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use disk::{RealDisk, clock};
use pipeline::orchestrator::{ComparedField, ExplainedArtifact, Explanation};
use pipeline::{Exit, Orchestrator};
use std::fmt::Write;

pub(crate) fn run(args: &ExplainArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let request = ResolvedBuild::read(&disk, &args.manifest)?;
    let dir = request.dir();
    let options = request.options(Some(&args.selection));
    let orchestrator = Orchestrator::new(&disk, &dir, request.work(), options);
    let explanation = orchestrator.explain(&args.stage)?;
    if args.json {
        print_json(&explanation)?;
    } else {
        print_text(&text(&explanation))?;
    }
    Ok(Exit::Done)
}

fn text(explanation: &Explanation) -> String {
    let Explanation { stage, standing, counts, why, outputs, .. } = explanation;
    let mut text = format!("{stage} is {standing}: {why}\n");
    for output in outputs {
        let _ = write!(text, "\n{}", artifact(output));
    }
    let _ = write!(text, "\n{}: {counts}\n", quantity::plural(counts.stages() as u64, "stage"));
    text
}

fn artifact(output: &ExplainedArtifact) -> String {
    let ExplainedArtifact { artifact, made_by, made_at, fields, .. } = output;
    let made = match (made_by, made_at) {
        (Some(stage), Some(at)) => format!("made by {stage} at {}", clock::utc(*at)),
        (None, Some(at)) => format!("adopted (header checked) at {}", clock::utc(*at)),
        _ => "not in the journal".to_owned(),
    };
    let mut table = TextTable::new(&["", "recorded", "on disk", "requested", ""]);
    for ComparedField { field, recorded, on_disk, asked, agrees } in fields {
        let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let mark = if *agrees { "" } else { "<- differs" };
        table.add_row([field.clone(), cell(recorded), cell(on_disk), cell(asked), mark.to_owned()]);
    }
    format!("{artifact}: {made}\n{}\n", table.fit(Width::stdout()))
}
