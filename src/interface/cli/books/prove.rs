//! `awari book prove`: proves that a position is a draw, and enters the proof into a book.

use super::databases::DirectoryDatabases;
use super::path;
use super::progress::ProgressLines;
use crate::args::BookProveArgs;
use crate::error::{CliError, Result};
use crate::games::analysis::check_table_fits;
use crate::output::print;
use crate::signals;
use crate::text::quantity::{grouped, plural};
use crate::text::terminal::say;
use book::{
    AwariGame, BookEngine, BookError, BookFile, BookSides, BuildError, DrawProgress, DrawProof, DrawVerdict,
    KeptPosition, ProofRole, Strategy, check_kept, engine_version, enter_proof,
};
use disk::RealDisk;
use game::Board;
use game::notation::PositionText;
use pipeline::Exit;
use search::{ExactScores, SearchStop};
use std::path::Path;
use std::sync::atomic::Ordering;

pub(crate) fn run(args: &BookProveArgs) -> Result<Exit> {
    let DirectoryDatabases { scores: databases, rules, opening } =
        DirectoryDatabases::open(&args.file, &args.databases)?;
    if !rules.has_scores() {
        return Err(BookError::NoScores(rules.name).into());
    }
    let root = match &args.root {
        Some(text) => text.parse::<PositionText>()?.board(),
        None => opening,
    };
    let path = path(&args.file);
    if is_proved(&path, &root)? {
        say(format_args!("{} proves already that {} is a draw", path.display(), text(&root)));
        return Ok(Exit::Done);
    }
    let most = root.stones().saturating_sub(rules.capture_low.into());
    if let Some(missing) = (0..=most).rev().find(|&stones| !databases.knows(stones)) {
        return Err(CliError::ProofDatabases { most, missing });
    }
    let databases = databases.up_to(most);
    check_table_fits(args.hash.bytes(), 0)?;
    let proof = DrawProof::new(rules, &databases, args.nodes, args.hash.bytes());
    let mut proof = proof.map_err(|error| CliError::BookBuild(BuildError::Memory(error)))?;
    let (stop, search_stop) = (signals::stop_flag()?, SearchStop::new());
    let mut lines = ProgressLines::new();
    let mut sets: Vec<Vec<KeptPosition>> = Vec::new();
    for (role, player) in [(ProofRole::Defender, "the player to move"), (ProofRole::Attacker, "the opponent")] {
        let mut progress = |progress: DrawProgress| {
            if stop.load(Ordering::Relaxed) {
                search_stop.stop();
            }
            lines.show(|| line(player, progress));
        };
        let verdict = proof.prove(&root, role, args.positions as usize, &search_stop, &mut progress);
        // A database that cannot be read is the reason for a missing score.
        databases.failure()?;
        match verdict? {
            DrawVerdict::Kept(set) => {
                let looked_up = check_kept(&rules, &set, &databases).map_err(|what| CliError::WrongProof { what })?;
                print(&format!(
                    "{player} gets at least 0: {} that it never has to leave, {} looked up\n",
                    plural(set.len() as u64, "position"),
                    plural(looked_up, "capture")
                ))?;
                sets.push(set);
            }
            DrawVerdict::Refuted => {
                let winner = if role == ProofRole::Defender { "the opponent" } else { "the player to move" };
                return Err(CliError::NoDraw { winner });
            }
            DrawVerdict::Open if search_stop.is_set() => {
                say("stopped; the same command begins the proof again");
                return Ok(Exit::Stopped);
            }
            DrawVerdict::Open => return Err(CliError::OpenProof { positions: args.positions.into() }),
        }
    }
    let limits = format!("nodes={}", args.nodes);
    let version = engine_version(&rules).map_err(BuildError::Memory)?;
    let engine = BookEngine { version, limits, databases: databases.text() };
    let mut file = BookFile::create(&RealDisk::default(), &path, &rules, &engine)?;
    if file.has_root() {
        return Err(CliError::BookExists { path });
    }
    let sets: Vec<&[KeptPosition]> = sets.iter().map(Vec::as_slice).collect();
    enter_proof(&mut file, &rules, &sets, &databases)?;
    databases.failure()?;
    let book = file.load(Strategy::Proof, BookSides::Both)?;
    file.store_values(&book)?;
    let value = book.graph().value(book.roots()[0]);
    if !(value.is_exact() && value.low == 0) {
        return Err(CliError::WrongProof { what: format!("the book of the proof gives {value:?}") });
    }
    let (positions, databases) = (plural(book.graph().len() as u64, "position"), databases.text());
    print(&format!(
        "the value of {} is 0, by databases {databases} and rules; {} has {positions}\n",
        text(&root),
        path.display()
    ))?;
    Ok(Exit::Done)
}

fn text(board: &Board) -> String {
    PositionText::of_board(*board).to_string()
}

/// Whether a book holds the proof already.
fn is_proved(path: &Path, root: &Board) -> Result<bool> {
    let file = match BookFile::open_any(path) {
        Err(BookError::Missing(_)) => return Ok(false),
        file => file?,
    };
    if !file.has_root() {
        // The process that made it was killed before it entered a proof.
        return Ok(false);
    }
    let book = file.load_values()?;
    let begun = book.roots()[0];
    let value = book.graph().value(begun);
    if book.graph().node(begun).key == AwariGame::key(root) && value.is_exact() && value.low == 0 {
        Ok(true)
    } else {
        Err(CliError::BookExists { path: path.to_path_buf() })
    }
}

fn line(player: &str, progress: DrawProgress) -> String {
    let DrawProgress { positions, reached, open, lost, trusts_search } = progress;
    let [positions, reached, open, lost] = [positions, reached, open, lost].map(|count| grouped(count as u64));
    let rest = if trusts_search { "" } else { ", of proofs by search" };
    format!("{player}: {reached} positions in the set, {open} open{rest}; {positions} entered, {lost} refuted")
}
