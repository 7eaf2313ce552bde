//! Proofs that positions are draws, from databases with two stones fewer.
//!
//! Without a directory, databases of up to seven stones are made by the rule text.

use book::{BookEngine, BookFile, DrawProof, DrawVerdict, KeptPosition, ProofRole, check_kept, enter_proof};
use clap::Parser;
use disk::RealDisk;
use disk::clock::cpu_seconds;
use game::notation::PositionText;
use game::{Board, Rules, Score};
use oracle::SearchProbes;
use search::{ExactScores, SearchStop};
use std::path::PathBuf;

/// Proves that a position is a draw.
#[derive(Parser)]
struct DrawArguments {
    /// Run directory with databases.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The position: twelve numbers.
    #[arg(long, default_value = "2 2 2 2 2 2 2 2 2 2 2 2")]
    root: PositionText,
    /// Positions that a search visits.
    #[arg(long, default_value_t = 300)]
    nodes: u64,
    /// Memory of the table that the searches share, in MiB.
    #[arg(long, default_value_t = 256)]
    table: u64,
    /// Memory of the cache of decoded blocks, in MiB.
    #[arg(long, default_value_t = 1024)]
    cache: u64,
    /// Positions of the proof at which to give up.
    #[arg(long, default_value_t = 50_000_000)]
    positions: usize,
    /// Only this claim: 1 for the player to move, 2 for the opponent.
    #[arg(long)]
    claim: Option<u8>,
    /// Writes the sets as a new book, which `awari book verify --certify` derives again.
    #[arg(long)]
    book: Option<PathBuf>,
}

/// Looks every position up, so that results do not depend on a cache.
struct AllProbes<'a>(SearchProbes<'a>);

impl ExactScores for AllProbes<'_> {
    fn knows(&self, stones: u32) -> bool {
        self.0.knows(stones)
    }

    fn score(&self, board: &Board) -> Option<Score> {
        self.0.score(board)
    }
}

fn main() {
    let arguments = bench::arguments(|tiny: &mut DrawArguments| {
        (tiny.dir, tiny.root) = (None, "1 1 1 1 0 0 1 1 1 1 0 0".parse().expect("a position"));
        tiny.nodes = 10;
    });
    let stones = arguments.root.board().stones();
    match &arguments.dir {
        Some(dir) => {
            let oracle = bench::oracle(dir, arguments.cache << 20);
            draw(&arguments, &AllProbes(SearchProbes::new(&oracle, stones - 1)));
        }
        None => draw(&arguments, &bench::ReferenceDatabases::up_to(7)),
    }
}

fn draw(arguments: &DrawArguments, databases: &dyn ExactScores) {
    let root = arguments.root.board();
    let begun = cpu_seconds();
    let mut proof = DrawProof::new(Rules::AWARI, databases, arguments.nodes, arguments.table << 20)
        .expect("there is memory for the table");
    let mut sets = Vec::new();
    for (number, role) in [(1, ProofRole::Defender), (2, ProofRole::Attacker)] {
        if arguments.claim.is_some_and(|claim| claim != number) {
            continue;
        }
        let mut shown = cpu_seconds();
        let verdict = proof.prove(&root, role, arguments.positions, &SearchStop::new(), &mut |progress| {
            if cpu_seconds() - shown > 5.0 {
                shown = cpu_seconds();
                eprintln!("{:.0} s: {progress:?}", shown - begun);
            }
        });
        let seconds = cpu_seconds() - begun;
        match verdict {
            DrawVerdict::Kept(set) => {
                let looked_up = check_kept(&Rules::AWARI, &set, databases).expect("the set keeps the claim");
                println!(
                    "claim {number}: kept by {} positions, {looked_up} captures looked up; {seconds:.1} s",
                    set.len()
                );
                sets.push(set);
            }
            DrawVerdict::Refuted => println!("claim {number}: refuted; {seconds:.1} s"),
            DrawVerdict::Open => println!("claim {number}: open; {seconds:.1} s"),
        }
    }
    if let Some(path) = arguments.book.as_ref().filter(|_| sets.len() == 2) {
        let (databases_text, limits) = (format!("0..{}", root.stones() - 1), format!("nodes={}", arguments.nodes));
        let engine = BookEngine { version: env!("CARGO_PKG_VERSION").to_owned(), limits, databases: databases_text };
        assert!(!path.exists(), "{} exists; remove it or choose another name", path.display());
        let mut file =
            BookFile::create(&RealDisk::default(), path, &Rules::AWARI, &engine).expect("a book can be made");
        let sets: Vec<&[KeptPosition]> = sets.iter().map(Vec::as_slice).collect();
        let expansions = enter_proof(&mut file, &Rules::AWARI, &sets, databases).expect("the book can be written");
        println!("book of {expansions} expansions: {}", path.display());
    }
}
