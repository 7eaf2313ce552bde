//! The stage `book:K`: expands the opening book of the manifest until it has K positions.
//!
//! The book is the file `books/NAME.sqlite`, which grows from stage to stage: each expansion is durable, so a
//! stage that was killed goes on where it was. The output of the stage is a report, `books/K.json`, with what
//! the book of K positions knows and a digest of it. It depends on the databases and the settings of the book
//! alone, unless searches are limited by time or the book was begun with fewer databases.

mod databases;
mod ranks;

pub use databases::{BookDatabases, NamedDatabases};

use crate::build_context::BuildContext;
use crate::files;
use crate::kind::{Declaration, FamilyContent, FileFamily, KindOptions, Phase, StageKind, is_numbered};
use book::{
    AwariGame, Book, BookBuilder, BookEngine, BookError, BookFile, BuildError, Hundredths, drop_out_depths,
    engine_version,
};
use disk::Digest;
use game::Board;
use game::notation::PositionText;
use pipeline::{
    ArtifactKind, ArtifactName, ArtifactSpec, StageContext, StageError, StageName, StageReport, StageResult as Result,
    StageSpec,
};
use planner::{BookRequest, BuildPlan, Settings};
use ranks::BookRanks;
use search::SearchStop;
use serde::Serialize;
use std::collections::HashSet;
use std::path::PathBuf;

/// Version of the report, raised when the same inputs give another one.
const VERSION: u32 = 1;

/// What a book of a number of positions knows.
#[derive(Debug, Serialize)]
struct BookMilestone {
    /// Positions, at least those of the milestone: an expansion adds several.
    positions: usize,
    expanded: usize,
    /// Positions of proved value.
    closed: usize,
    /// Lower bound, estimate and upper bound of the root, in hundredths of a stone.
    root: [Hundredths; 3],
    /// The least number of plies after which an opponent leaves the book if it may cost 0, 0.5 or 1 stone, for the
    /// player to move at the root and for the other one; null if it never can.
    left_at_ply: [[Option<u32>; 3]; 2],
    /// Digest of the text of all positions, as `awari book export` writes it.
    digest: String,
}

/// Reports of milestones: `books/K.json`.
static REPORTS: FileFamily = FileFamily {
    folder: "books",
    has: |file| is_numbered(file, "json"),
    // Without the book its report is of no use.
    content: FamilyContent::Report(|artifact, report| Some(path(report.to_path_buf(), artifact.identity.get("name")?))),
};

const KIND: &str = "book";

/// The kind `book:K`.
pub(crate) static BOOK: StageKind = StageKind {
    word: KIND,
    phase: Phase::Book,
    files: Some(&REPORTS),
    declare: |_, build| build.settings().book().map_or_else(Vec::new, |request| declare(build, request)),
    run: |build, parameters, context| {
        build.forget_tables();
        run(build, parameters[0], context)
    },
    options: KindOptions {
        parameters: &["K"],
        stones: |settings, _| settings.stones_max(),
        is_kept: |name| {
            let file = name.as_str().strip_prefix("books/").and_then(|file| file.split_once('.'));
            file.is_some_and(|(_, rest)| {
                matches!(rest, "sqlite" | "sqlite-wal" | "sqlite-shm" | "sqlite-journal" | "lock")
            })
        },
        follow: ranks::follow,
        ..KindOptions::OF_DATABASES
    },
};

/// Returns the name of the report of a book of some positions.
fn report_of(positions: u32) -> ArtifactName {
    files::name(format!("books/{positions}.json"))
}

/// Declares the stages: each reads all databases, and the report of the stage before it.
fn declare(plan: &BuildPlan, request: &BookRequest) -> Vec<Declaration> {
    let settings = plan.settings();
    let mut before = None;
    let declare = |positions: u32| {
        let name = report_of(positions);
        let inputs = settings.stones().map(files::database).chain(before.replace(name.clone())).collect();
        let stage = StageSpec {
            inputs,
            outputs: vec![name.clone()],
            cost: plan.book_cost(positions),
            ..StageSpec::new(StageName::new(KIND, &[positions]))
        };
        let report = ArtifactSpec::new(name, ArtifactKind::Report, KIND)
            .version(VERSION)
            .identity("rules", settings.rules.name)
            .identity("positions", settings.set)
            .identity("name", &request.name)
            .identity("root", PositionText::of_board(root(settings, request)))
            .identity("settings", request.settings.text())
            .identity("ends", positions);
        let report = if request.plies > 0 { report.identity("plies", request.plies) } else { report };
        Declaration { stage, artifacts: vec![report] }
    };
    request.milestones().into_iter().map(declare).collect()
}

fn root(settings: &Settings, request: &BookRequest) -> Board {
    request.root.unwrap_or_else(|| settings.set.start().board())
}

/// Returns the roots: the first position, and those of the moves after it at which games begin.
fn roots(settings: &Settings, request: &BookRequest) -> Vec<Board> {
    let root = root(settings, request);
    let openings = AwariGame::new(settings.rules).openings(&root, request.plies);
    let mut seen = HashSet::new();
    [root].into_iter().chain(openings).filter(|&board| seen.insert(board)).collect()
}

/// Returns the path of the book, beside the report of a stage.
fn path(report: PathBuf, name: &str) -> PathBuf {
    report.with_file_name(format!("{name}.sqlite"))
}

/// Runs the stage.
fn run(build: &BuildContext, positions: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let request = settings.book().expect("a build with the stage has a book");
    // The settings have the threads of the manifest, the context those of this run.
    let of_book = book::BookSettings { threads: context.threads(), ..request.settings };
    let databases = BookDatabases::of_build(settings, context.disk(), |name| context.input(name))?;
    let report = context.output(&report_of(positions));
    let path = path(report.clone(), &request.name);
    let limits = of_book.limits.to_string();
    let version = engine_version(&settings.rules).map_err(|error| failed_build(BuildError::Memory(error)))?;
    let engine = BookEngine { version, limits, databases: databases.text() };
    if let Some(folder) = path.parent() {
        context.disk().create_dir_all(folder)?;
    }
    let mut file = BookFile::create(context.disk(), &path, &settings.rules, &engine).map_err(failed)?;
    if !file.has_settings(&of_book.text()).map_err(failed)? {
        return Err(StageError::failed(format!(
            "{} was not made with the settings of this manifest ({}): choose another book.name, or remove the file",
            path.display(),
            of_book.text()
        )));
    }
    let roots = roots(settings, request);
    let stop = SearchStop::new();
    let mut builder = BookBuilder::new(file, &roots[0], &of_book, &databases, &stop).map_err(failed_build)?;
    if builder.book().expansions() == 0 {
        builder.add_roots(&roots).map_err(failed_build)?;
    }
    let begun: Vec<Board> = {
        let book = builder.book();
        book.roots().iter().map(|&id| AwariGame::board(book.graph().node(id).key)).collect()
    };
    if begun != roots {
        let text = |boards: &[Board]| match boards.len() {
            1 => PositionText::of_board(boards[0]).to_string(),
            count => format!("{} and {} other positions", PositionText::of_board(boards[0]), count - 1),
        };
        return Err(StageError::failed(format!(
            "{} begins at {}, and the book of this manifest at {}: choose another book.name, or remove the file",
            path.display(),
            text(&begun),
            text(&roots)
        )));
    }
    let closed = builder.look_up().map_err(failed_build)?;
    databases.failure().map_err(StageError::failed)?;
    if closed > 0 {
        tracing::info!("{closed} positions found in databases that the book did not have");
    }
    let (wanted, had) = (positions as usize, builder.book().graph().len());
    context.progress().begin(positions.into(), "positions");
    context.progress().advance(had.min(wanted) as u64);
    let mut ranks = match build.job() {
        Some(job) if had < wanted => Some(BookRanks::new(settings, of_book.limits, job, context)?),
        _ => None,
    };
    let mut is_whole = false;
    while builder.book().graph().len() < wanted && !is_whole {
        if context.stop_requested() {
            builder.store_values().map_err(failed_build)?;
            return Err(StageError::Stopped);
        }
        let before = builder.book().graph().len();
        let expanded: Result<bool, BookStageError> = match &mut ranks {
            Some(ranks) => builder.expand_by(|builder, keys| {
                ranks.assess(keys, builder.assessors(), &stop).map_err(BookStageError::Stage)
            }),
            None => builder.expand().map_err(BookStageError::Build),
        };
        is_whole = !expanded.map_err(StageError::from)?;
        databases.failure().map_err(StageError::failed)?;
        let now = builder.book().graph().len();
        context.progress().advance((now.min(wanted) - before.min(wanted)) as u64);
    }
    builder.store_values().map_err(failed_build)?;
    let milestone =
        if had > wanted { describe(&builder.first(wanted).map_err(failed_build)?) } else { describe(builder.book()) };
    let report = publish(positions, &milestone, context)?;
    Ok(match ranks {
        Some(ranks) => report.with("ranks", ranks.count() as u64).with("assessed_twice", ranks.repeated()),
        None => report,
    })
}

/// Describes a book.
fn describe(book: &Book<AwariGame>) -> BookMilestone {
    let (graph, root, totals) = (book.graph(), book.roots()[0], book.totals());
    let value = graph.value(root);
    let depths = |is_book| drop_out_depths(graph, root, is_book);
    BookMilestone {
        positions: totals.positions,
        expanded: totals.interior,
        closed: totals.closed,
        root: [value.low, value.estimate, value.high],
        left_at_ply: [depths(true), depths(false)],
        digest: Digest::of(book.export().as_bytes()).to_string(),
    }
}

fn publish(positions: u32, milestone: &BookMilestone, context: &StageContext) -> Result<StageReport> {
    let text = serde_json::to_string_pretty(milestone).map_err(StageError::failed)? + "\n";
    let stones = |value: Hundredths| f64::from(value) / 100.0;
    let left = milestone.left_at_ply.map(|plies| plies[0]);
    let by = ["left_at_ply_by_second", "left_at_ply_by_first"].into_iter().zip(left);
    let report = StageReport::new(milestone.positions as u64)
        .with("expanded", milestone.expanded as u64)
        .with("closed", milestone.closed as u64)
        .with("root_at_least", stones(milestone.root[0]))
        .with("root_estimate", stones(milestone.root[1]))
        .with("root_at_most", stones(milestone.root[2]));
    let with_ply = |report: StageReport, (name, ply): (&str, Option<u32>)| match ply {
        Some(ply) => report.with(name, u64::from(ply)),
        None => report,
    };
    let report = by.fold(report, with_ply);
    files::publish(context, report, report_of(positions), text.as_bytes())
}

/// An error of an expansion.
enum BookStageError {
    Build(BuildError),
    Stage(StageError),
}

impl From<BuildError> for BookStageError {
    fn from(error: BuildError) -> BookStageError {
        BookStageError::Build(error)
    }
}

impl From<BookStageError> for StageError {
    fn from(error: BookStageError) -> StageError {
        match error {
            BookStageError::Build(error) => failed_build(error),
            BookStageError::Stage(error) => error,
        }
    }
}

fn failed(error: BookError) -> StageError {
    match error {
        BookError::Disk(error) => StageError::Disk(error),
        error => StageError::failed(error),
    }
}

fn failed_build(error: BuildError) -> StageError {
    match error {
        BuildError::File(error) => failed(error),
        error => StageError::failed(error),
    }
}
