//! The arguments of commands that read databases.

use super::DIR_VARIABLE;
use super::book::BookUseArgs;
use super::build::ProgressMode;
use super::search::{SearchArgs, TableArgs};
use super::values::{self, Listen};
use clap::{Args, ValueEnum};
use game::Rules;
use oracle::Level;
use pipeline::Budget;
use planner::Method;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use store::Codec;

/// A selection of databases of a directory.
#[derive(Clone, Debug, Args)]
pub(crate) struct DatabasesArgs {
    /// Run directory
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: PathBuf,
    /// Only the databases of these numbers of stones: a range, both ends included, or one number
    #[arg(long, allow_hyphen_values = true, value_name = "A..B", value_parser = values::stones)]
    pub(crate) stones: Option<RangeInclusive<u32>>,
    /// Number of threads; 0 is one a core
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 0, value_parser = values::number::<u16>(0..=1024))]
    pub(crate) threads: u16,
}

/// The databases of a command that can do without.
#[derive(Debug, Args)]
pub(crate) struct LibraryArgs {
    /// Run directory [default: no databases]
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: Option<PathBuf>,
    /// Rules where there are no databases, by their name in manifests [default: awari]
    #[arg(long, value_name = "RULES", value_parser = values::rules())]
    pub(crate) rules: Option<Rules>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari verify --dir runs/quickstart
  awari verify --dir runs/quickstart --stones 9..12 \\
    --sample 1000
  awari verify --dir runs/quickstart --certify
  awari verify --dir runs/quickstart --stones 0..10 \\
    --against counting
  awari export --dir runs/quickstart --format vu \\
    --out scores
  awari verify --dir runs/quickstart --against-files scores

Checks the databases that exist or are finished according to the journal. Damage is recorded in the journal, so that the next \
`awari run` rebuilds the database.

Always checks every checksum, every score (or a sample) against those of the children, and the published counts, where \
they exist. This alone does not prove the scores: positions that lead to each other can agree on wrong scores. \
--certify proves them, if no database from 0 stones up is missing; published counts prove them for all positions of \
up to 34 stones.

--against uses nothing in the directory: it rebuilds from 0 stones up, in a new directory inside the run directory (or \
inside --scratch), and compares content digests; where they differ, it lists positions with the rebuilt score as the \
expected one. The new directory is removed at the end and on Ctrl-C; after a second Ctrl-C or kill -9 it stays, as \
against-PID-TIME, and may be removed.

--against-files compares every entry of files scores.N, in the format of the files that the Vrije Universiteit \
published in 2002 and that `awari export --format vu` writes, for reachable positions.

With several options, every check must pass. Prints a line for each database, `stones,status`, with the strongest \
result:
  certified  every win and loss is derived: a proof
  rebuilt    another method makes the same scores
  verified   every score follows from those of the children
  sampled    the same for the scores of a sample
  unchecked  smaller databases are missing or damaged
  missing    there is no such database
  damaged    a checksum differs, or the file is unreadable
  wrong      the file is intact, but scores are wrong
  differs    the file of --against-files has other scores

Exits with 16 if a database is damaged, wrong or differs, or is missing although the journal lists it as finished. Of two \
files that differ, either may be right.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// Derive the scores of one position in N, and of at least 100,000 a database
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u64>(1..=u64::MAX))]
    pub(crate) sample: Option<u64>,
    /// Seed of the sample; `awari run` uses seed 0
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 0, requires = "sample",
        value_parser = values::number::<u64>(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Prove the scores: derive every win and loss that the databases claim
    #[arg(long)]
    pub(crate) certify: bool,
    /// Rebuild the databases from scratch by this method, and compare
    #[arg(long, value_name = "METHOD", value_parser = values::methods())]
    pub(crate) against: Option<Method>,
    /// Compare with the files scores.N in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) against_files: Option<PathBuf>,
    /// Directory in which to rebuild, in a new directory that is removed afterwards [default: the run directory]
    #[arg(long, value_name = "DIR", requires = "against")]
    pub(crate) scratch: Option<PathBuf>,
    /// Progress of the rebuild: a bar, plain lines on stderr, or events as JSON lines on stdout [default: a bar on a
    /// terminal, none elsewhere]
    #[arg(long, value_name = "HOW", requires = "against")]
    pub(crate) progress: Option<ProgressMode>,
    /// Memory limit of the rebuild [default: 2 GiB]
    #[arg(long, allow_hyphen_values = true, value_name = "SIZE", requires = "against")]
    pub(crate) memory: Option<Budget>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari stats --dir runs/quickstart
  awari stats --dir runs/quickstart --stones 0..8 \\
    --format csv > scores.csv
  awari stats --dir runs/quickstart --format svg > all.svg")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: StatsFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  awari run manifests/quickstart.toml --dir runs/wari \\
    --set game.rules=wari
  awari compare --dir runs/quickstart --dir runs/wari

Compares the databases that both directories have, for the same positions. A slam is a move that captures all of the \
opponent's stones.")]
pub(crate) struct CompareArgs {
    /// Run directory; give two of them
    #[arg(long = "dir", value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Only the databases of these numbers of stones: a range, both ends included, or one number
    #[arg(long, allow_hyphen_values = true, value_name = "A..B", value_parser = values::stones)]
    pub(crate) stones: Option<RangeInclusive<u32>>,
    /// Number of threads; 0 is one a core
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 0, value_parser = values::number::<u16>(0..=1024))]
    pub(crate) threads: u16,
    /// A list of objects instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// An output format of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    /// A table
    Table,
    /// Bars of text for each database
    Bars,
    /// `stones,score,positions`: a line for each score that occurs
    Csv,
    /// A list of objects
    Json,
    /// A stacked histogram
    Svg,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari probe --dir runs/quickstart 0 0 0 0 0 2  1 0 0 0 0 0
  awari probe --dir runs/quickstart --json \\
    '0 0 0 0 0 2 1 0 0 0 0 0'
  awari probe --dir runs/quickstart \\
    0-0-0-0-0-2-1-0-0-0-0-0-22-23-S
  awari probe --time 200ms 4 4 4 4 4 4  4 4 4 4 4 4

The twelve numbers are the stones in pits A to F of the player to move, then in a to f of the opponent.

A position that no database holds is searched, for one second unless a limit is given. What the search proves are bounds of \
the score; what it estimates is printed beside them and may be wrong. Without --dir there are no databases.")]
pub(crate) struct ProbeArgs {
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
    /// Twelve numbers, or a position with stores and the side to move
    #[arg(value_name = "PITS", required = true, num_args = 1..)]
    pub(crate) pits: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari export --dir runs/quickstart --format raw --out raw
  awari export --dir runs/quickstart --stones 0..6 \\
    --format csv --out exported
  awari export --dir runs/quickstart --format vu \\
    --out scores

Formats:
  raw      NN.raw, a signed byte a position, and NN.json
  csv      NN.csv, `position,score`; for small databases
  parquet  NN.parquet, a table of twelve pits and the score;
           needs a program built with --features parquet
  vu       scores.N, as the Vrije Universiteit published it

The positions of NN.raw are in canonical order; NN.json describes the file. scores.N is the format of 2002 \
(doi:10.48338/vu01-11wjke): a signed byte for each reachable position, in lexicographic order of the pits from f back \
to a, then from F back to A.

By rules where a position has two bounds, such as oware, raw writes NN.low.raw and NN.high.raw, csv has lines \
`position,low,high,score`, and parquet columns low and high. Their score is empty where the bounds differ. vu is refused.

Prints a line for each file: its path, written or identical, and its size in bytes. An existing file with the same \
bytes is kept; one with other bytes is an error, unless --force is given. Ctrl-C keeps the completed files.")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// Output format
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,
    /// Directory to write into
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace existing files; write csv of any size
    #[arg(long)]
    pub(crate) force: bool,
    /// Memory limit for reordering scores
    #[arg(long, allow_hyphen_values = true, value_name = "SIZE", default_value = "512 MiB")]
    pub(crate) memory: Budget,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari archive --dir runs/quickstart --out archives
  awari archive --dir runs/quickstart --stones 11..12 \\
    --out archives

NN.archive holds the scores of NN.awari in about two thirds of the space: each is coded given the best score that a \
capture reaches, which follows from the databases of fewer stones. Both this command and `awari restore` need these.

Prints a line for each file, like `awari export`. Needs one byte of memory per position.")]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    pub(crate) databases: DatabasesArgs,
    /// Directory to write into
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari restore --from archives --dir runs/again
  awari restore --from archives --dir runs/third \\
    --stones 0..8 --codec packed

Writes databases/NN.awari for each NN.archive, from the fewest stones up, after comparing the digest of its scores. An \
existing database with the same scores is kept; one with other scores is an error. Ctrl-C keeps the databases that are \
complete; `awari run MANIFEST --dir DIR` adopts them.")]
pub(crate) struct RestoreArgs {
    /// Directory of the archives
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Run directory, which is created if it does not exist
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: PathBuf,
    /// Only the databases of these numbers of stones: a range, both ends included, or one number
    #[arg(long, allow_hyphen_values = true, value_name = "A..B", value_parser = values::stones)]
    pub(crate) stones: Option<RangeInclusive<u32>>,
    /// Codec of the databases that are written [default: zstd]
    #[arg(long, value_name = "CODEC", value_parser = values::codecs())]
    pub(crate) codec: Option<Codec>,
    /// Number of threads; 0 is one a core
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 0, value_parser = values::number::<u16>(0..=1024))]
    pub(crate) threads: u16,
}

/// An export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One signed byte per position
    Raw,
    /// Text, one line per position
    Csv,
    /// A table
    Parquet,
    /// The format published by the Vrije Universiteit in 2002
    Vu,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari serve --dir runs/quickstart
  awari serve --dir runs/quickstart --listen localhost:8081
  awari serve --dir runs/quickstart --hash 512MiB
  curl -G http://127.0.0.1:8080/v1/probe \\
    -d pos=0+0+0+0+0+2+1+0+0+0+0+0

Prints the address of the page when ready to answer; /v1/openapi.json describes the API. Ctrl-C finishes the requests \
under way and exits. Only this machine can connect, unless --listen names another address, such as 0.0.0.0:8080. The server speaks plain HTTP; put a proxy in front of it for encryption.")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
    #[command(flatten)]
    pub(crate) book: BookUseArgs,
    /// Address to listen on: HOST:PORT, HOST or :PORT (this machine only); port 0 takes any free port
    #[arg(long, value_name = "HOST:PORT", default_value_t)]
    pub(crate) listen: Listen,
    /// Analyses at once, and as many searches for moves; others wait [default: one less than there are cores, at least 1]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u16>(1..=1024))]
    pub(crate) analyses: Option<u16>,
    /// Address of a proxy whose requests name their client in X-Forwarded-For; each client has a share of the server
    #[arg(long, value_name = "IP")]
    pub(crate) proxy: Option<IpAddr>,
    /// Memory of the table that all analyses share, at least 4 MiB
    #[arg(long, allow_hyphen_values = true, value_name = "SIZE", default_value = "256 MiB", value_parser = values::table_size())]
    pub(crate) hash: Budget,
}

/// The player whose stones count in values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnalysisView {
    /// Player who moves
    Mover,
    /// South, throughout the game
    South,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari analyze --dir runs/quickstart game.ogn
  awari analyze --dir runs/quickstart \\
    '[FEN \"0-1-0-2-0-1-1-0-2-0-1-0-20-20-S\"] D2 a1 F2'
  awari analyze --dir runs/quickstart --json - < game.ogn
  awari analyze --nodes 10000 F4 f4 B5 d5
  awari analyze --ogn --view south F4 f4 B5 d5

A game is a list of moves such as F4 f4 B5 d5 E5x2, or a file in the Oware Game Notation. A move names its pit, A to F \
for South and a to f for North; the number of stones in the pit, the captures and move numbers may be left out.

A position that no database holds is searched, for a tenth of a second unless a limit is given. Losses that follow from \
estimates are counted apart from those that are proved. With an opening book, moves are compared with it up to its end, and \
the first player who does not play a best move of the book leaves it; where book and search disagree, both are named with their \
depths. Without --dir there are no databases.")]
pub(crate) struct AnalyzeArgs {
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
    #[command(flatten)]
    pub(crate) book: BookUseArgs,
    /// File of games, the moves of one, or - for stdin
    #[arg(value_name = "GAME", required = true, num_args = 1..)]
    pub(crate) text: Vec<String>,
    /// Number of the game in the file, from 1 [default: all games]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u32>(1..=u32::MAX.into()))]
    pub(crate) game: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the games in the Oware Game Notation, with values and marks of errors: ? gives away 2 stones or more, ?? 5 or more
    #[arg(long, conflicts_with = "json")]
    pub(crate) ogn: bool,
    /// Point of view of the values
    #[arg(long, value_name = "VIEW", default_value = "mover")]
    pub(crate) view: AnalysisView,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari play --dir runs/quickstart \\
    --position '0 1 0 2 0 1  1 0 2 0 1 0'
  awari play --dir runs/quickstart --level strong \\
    --side north --position random:12
  awari play --level casual --nodes 10000

A move is its pit: 1 to 6 for the player to move, or F or F4 for South and f or f4 for North. Other commands: values, best, line, book, undo, board, save FILE, help, quit.

Levels, and the stones that each gives away in a move, on average, in positions of ten stones: beginner 1, casual 0.6, strong 0.2, \
expert 0.03, perfect 0.

Positions that no database holds are searched, for one second a move unless a limit is given. With --side none the program says when \
its move rests on an estimate; to a person it shows values only when asked. At level perfect it plays the best moves of an opening book first, and says when it leaves the book; book \
shows what the book has. Without --dir there are no databases.")]
pub(crate) struct PlayArgs {
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
    #[command(flatten)]
    pub(crate) book: BookUseArgs,
    /// Playing strength of the program
    #[arg(long, value_name = "LEVEL", default_value_t = Level::Perfect, value_parser = values::levels())]
    pub(crate) level: Level,
    /// Side that you play; with none the program plays against itself
    #[arg(long, value_name = "SIDE", default_value = "south")]
    pub(crate) side: PlaySide,
    /// First position: twelve numbers, the form with stores, or random:STONES [default: the opening]
    #[arg(long, value_name = "POSITION")]
    pub(crate) position: Option<String>,
    /// Seed of the random choices [default: the time]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u64>(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
}

/// The side that the user plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlaySide {
    /// A to F, the side that begins
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
Examples:
  printf 'position fen %s\\ngo\\n' \\
    0-0-0-0-0-2-1-1-0-0-0-1-20-23-S |
    awari engine --dir runs/quickstart
  printf 'position startpos moves Ff\\ngo movetime 100\\n' |
    awari engine

Commands: uci, ugi, isready, ucinewgame, uginewgame, setoption name NAME value VALUE, position startpos|fen POS [moves \
FfBd], go, stop, ponderhit, d, eval, bench, help, quit. Limits of go: depth, nodes, movetime, wtime, btime, winc, binc, movestogo, infinite and \
ponder; without any the engine thinks for a second. White is South. Options: Hash, Threads, MultiPV, Level, Ponder, OwnBook and BookFile.

Scores count stones for the player to move, in hundredths (cp). They are estimates; what is proved follows in lines `info \
string proved LOW HIGH`. At level perfect, go without infinite or ponder is answered from the opening book, if it has the \
position; OwnBook turns that off, and BookFile opens another book. Without --dir there are no databases.")]
pub(crate) struct EngineArgs {
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
    #[command(flatten)]
    pub(crate) book: BookUseArgs,
    /// Playing strength of the program
    #[arg(long, value_name = "LEVEL", default_value_t = Level::Perfect, value_parser = values::levels())]
    pub(crate) level: Level,
    #[command(flatten)]
    pub(crate) table: TableArgs,
}
