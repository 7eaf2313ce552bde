//! The commands that read databases.

use clap::{Args, ValueEnum};
use oracle::Level;
use pipeline::Budget;
use stages::Method;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use store::Codec;

use super::values::{self, Listen};

/// A directory with databases, and which of them.
#[derive(Clone, Debug, Args)]
pub(crate) struct DatabasesArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Only databases of so many stones: a range, both ends included, or one number
    #[arg(long, value_name = "A..B", value_parser = values::stones)]
    pub(crate) stones: Option<RangeInclusive<u32>>,
    /// Threads; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari verify --dir runs/small
  awari verify --dir runs/small --stones 15..18 --sample 1000
  awari verify --dir runs/quickstart --certify
  awari verify --dir runs/small --stones 0..14 --against counting
  awari verify --dir runs/small --against-files scores

Needs nothing but the databases. Damage is recorded in the journal, so that the next `awari run`
rebuilds it.

Always compared are every checksum, every score (or a sample) with those of its children, and the
published counts, where there are some. That alone proves no score: positions can rest their claims
on each other. --certify proves them, in databases from 0 stones up without a gap; so do published
counts, for all positions of up to 16 stones. --against trusts nothing in the directory: it rebuilds
from 0 stones on, in a new directory inside the run directory (or inside --scratch), and compares
content digests; where they differ, positions are named with the rebuilt score as the expected one.
The new directory is removed at the end, and on Ctrl-C; a second one at once and kill -9 leave it,
as against-PID-TIME, which may be removed.
--against-files compares every entry of files scores.N, as the Vrije Universiteit published those of 2002 and
`awari export --format vu` writes them, of reachable positions.
Options add up: whatever is asked for must pass.

A line of stdout for each database, `stones,status`; of what was shown the strongest:
  certified   proved: consistent, and every win and loss derived, as in all that captures lead to
  rebuilt     another method makes the same scores
  verified    every score follows from those of the children
  sampled     the scores of a sample do
  unchecked   smaller databases are missing, damaged or wrong
  missing     there is no such database
  damaged     the file is not what was written
  wrong       it is, but scores are wrong; exit code 16, as for damaged
  differs     the file of --against-files has other scores; exit code 16, though either may be right")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// Derive the score of one position in N only, of at least 100,000 a database
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample: Option<u64>,
    /// Choose other positions for the sample; those of 0 are what runs sample too
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sample")]
    pub(crate) seed: u64,
    /// Prove the scores besides: derive every win and loss that the databases claim from nothing
    #[arg(long)]
    pub(crate) certify: bool,
    /// Rebuild the databases by this method, from nothing, and compare
    #[arg(long, value_name = "METHOD", value_parser = values::methods())]
    pub(crate) against: Option<Method>,
    /// Compare with the files scores.N in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) against_files: Option<PathBuf>,
    /// Where to rebuild: in a new directory inside this one, removed afterwards [default: the run directory]
    #[arg(long, value_name = "DIR", requires = "against")]
    pub(crate) scratch: Option<PathBuf>,
    /// The most memory to rebuild with [default: 2 GiB]
    #[arg(long, value_name = "SIZE", requires = "against")]
    pub(crate) memory: Option<Budget>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari stats --dir runs/small
  awari stats --dir runs/small --stones 0..12 --format csv > scores.csv
  awari stats --dir runs/small --format svg > scores.svg")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: StatsFormat,
}

/// How statistics are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    /// Columns for people
    Table,
    /// `stones,score,positions`, a line for each score that occurs
    Csv,
    /// A list of objects
    Json,
    /// A stacked histogram
    Svg,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari probe --dir runs/small 0 0 0 0 0 2  1 0 0 0 0 0
  awari probe --dir runs/small '0 0 0 0 0 2 1 0 0 0 0 0' --json
  awari probe --dir runs/small 0-0-0-0-0-2-1-0-0-0-0-0-22-23-S

The twelve numbers are the stones from A round to f, those of the player to move first.")]
pub(crate) struct ProbeArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Twelve numbers, or a position string with stores and the side to move
    #[arg(value_name = "PITS", required = true, num_args = 1..)]
    pub(crate) pits: Vec<String>,
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari export --dir runs/small --format raw --out exported
  awari export --dir runs/small --stones 0..6 --format csv --out exported
  awari export --dir runs/small --format vu --out scores

  raw      NN.raw, a signed byte a position in canonical order, and NN.json, which describes it
  csv      NN.csv, `position,score`, a line for each position; for small databases
  parquet  NN.parquet, a table of twelve pits and the score
  vu       scores.N, as the Vrije Universiteit published those of 2002 (doi:10.48338/vu01-11wjke): a
           signed byte for each reachable position, in lexicographic order of the pits f, e, ... a, F, ... A

A line of stdout for each file: its path, written or identical, and its bytes. A file that is there already stays if it
has the same bytes; if not, that is an error, unless --force is given. Ctrl-C leaves the files that are complete.")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// The layout
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,
    /// The directory to write into
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace other files of the same name; write csv of any size
    #[arg(long)]
    pub(crate) force: bool,
    /// The most scores held in memory to bring them into another order
    #[arg(long, value_name = "SIZE", default_value = "512 MiB")]
    pub(crate) memory: Budget,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari archive --dir runs/small --out archives
  awari archive --dir runs/small --stones 17..18 --out archives

NN.archive holds the scores of NN.awari in about two thirds of the space: each is coded with the best that a capture
reaches at hand, which follows from the databases of fewer stones. So these are needed here and by `awari restore`.

A line of stdout for each file, as of `awari export`. Takes a byte of memory a position.")]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// The directory to write into
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace other files of the same name
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari restore --from archives --dir runs/again
  awari restore --from archives --dir runs/again --stones 0..12 --codec packed

Writes databases/NN.awari for each NN.archive, from the fewest stones up, once the digest of its scores is right. One
that is there already stays if it has the same scores, else that is an error. Ctrl-C leaves those that are complete;
`awari run --dir` takes them as they are.")]
pub(crate) struct RestoreArgs {
    /// The directory of the archives
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// The run directory, made if it is absent
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Only databases of so many stones: a range, both ends included, or one number
    #[arg(long, value_name = "A..B", value_parser = values::stones)]
    pub(crate) stones: Option<RangeInclusive<u32>>,
    /// How they are stored: raw, packed, zstd or rans
    #[arg(long, value_name = "CODEC", default_value_t = Codec::Zstd)]
    pub(crate) codec: Codec,
    /// Threads; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
}

/// A layout that other programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Bare bytes
    Raw,
    /// Text
    Csv,
    /// A table
    Parquet,
    /// As the Vrije Universiteit published its scores
    Vu,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari serve --dir runs/small
  curl 'http://127.0.0.1:8080/v1/probe?pos=0+0+0+0+0+2+1+0+0+0+0+0'

Prints the address of the page once it listens; /v1/openapi.json describes the API. Ctrl-C answers what
was asked and ends. Nobody but this machine can ask unless --listen says so, as 0.0.0.0:8080; it speaks
plain HTTP, so put a proxy in front of it for encryption.")]
pub(crate) struct ServeArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Where to listen: HOST:PORT, HOST, or :PORT of this machine only; port 0 is any that is free
    #[arg(long, value_name = "HOST:PORT", default_value_t)]
    pub(crate) listen: Listen,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari analyze --dir runs/small game.ogn
  awari analyze --dir runs/small 'F4 f4 B5 d5 E6'
  awari analyze --dir runs/small --json - < game.ogn

A game is moves by their pits, A to F for South and a to f for North, with or without move numbers, stones sown (B5) and
captures (B5x2), or a file in the Oware Game Notation. Positions with more stones than the databases have are judged as
far as a search finds out.")]
pub(crate) struct AnalyzeArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// A file, the moves themselves, or - for stdin
    #[arg(value_name = "GAME", required = true, num_args = 1..)]
    pub(crate) game: Vec<String>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari play --dir runs/small --position '0 1 0 2 0 1  1 0 2 0 1 0'
  awari play --dir runs/small --level strong --side north --position random:12

Moves are pits: A to F for South, a to f for North. Other words: values, best, line, undo, board, save FILE, quit.")]
pub(crate) struct PlayArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// How well the program plays: fair, good, strong, expert or perfect
    #[arg(long, value_name = "LEVEL", default_value_t = Level::Perfect)]
    pub(crate) level: Level,
    /// Which side you play; none is the program against itself
    #[arg(long, value_name = "SIDE", default_value = "south")]
    pub(crate) side: PlaySide,
    /// Where to begin: twelve numbers, the long form, or random:STONES [default: the opening]
    #[arg(long, value_name = "POSITION")]
    pub(crate) position: Option<String>,
    /// The seed of chance [default: the time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// The side that a person plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlaySide {
    /// A to F, who begins
    South,
    /// a to f
    North,
    /// Both
    Both,
    /// None
    None,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  printf 'uci\\nposition fen 0-0-0-0-0-2-1-1-0-0-0-1-20-23-S\\ngo\\nquit\\n' | awari engine --dir runs/small

Commands: uci, ugi, isready, ucinewgame, uginewgame, setoption name Level value LEVEL, position startpos|fen POS
[moves FfBd], go, stop, quit. Scores are stones for who is to move, in hundredths (cp).")]
pub(crate) struct EngineArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
}
