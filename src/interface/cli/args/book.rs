//! The arguments of `awari book`.

use super::DIR_VARIABLE;
use super::values;
use clap::{Args, Subcommand, ValueEnum};
use pipeline::Budget;
use std::path::PathBuf;

/// Builds opening books, and answers questions from them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari book expand --dir runs/quickstart \\
    --positions 300 --nodes 2000
  awari book show --dir runs/quickstart F4 f4
  awari book stats --dir runs/quickstart

A book is the file books/NAME.sqlite of a run directory, by default books/opening.sqlite.")]
pub(crate) struct BookArgs {
    #[command(subcommand)]
    pub(crate) command: BookCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BookCommand {
    /// Make a book, or expand one
    Expand(BookExpandArgs),
    /// Prove that a position is a draw, and make a book of the proof
    Prove(BookProveArgs),
    /// Show a position of a book, and the value of each move
    Show(BookShowArgs),
    /// Play against a book in the terminal
    Play(BookPlayArgs),
    /// Write all positions of a book as text
    #[command(after_help = "\
Example:
  awari book export --dir runs/quickstart > opening.txt

A line for each position, sorted: the twelve pits, then after a semicolon the proved bounds and the estimate in stones, and \
leaf, interior or closed. Equal books give equal text.")]
    Export(BookFileArgs),
    /// Check that everything in a book follows from its facts
    Verify(BookVerifyArgs),
    /// Show the positions of a book by depth
    #[command(after_help = "\
Example:
  awari book stats --dir runs/quickstart

Depth is the least number of moves from a root, degree the mean number of legal moves, and predecessors are the moves that lead \
to the positions of a depth.")]
    Stats(BookFileArgs),
    /// Draw a book: where an opponent can leave it and at what price, its depths, its first plies, or a cycle
    Diagram(BookDiagramArgs),
}

impl BookCommand {
    /// Returns the selection of the book.
    pub(crate) fn file(&self) -> &BookFileArgs {
        match self {
            BookCommand::Expand(args) => &args.file,
            BookCommand::Prove(args) => &args.file,
            BookCommand::Show(args) => &args.file,
            BookCommand::Play(args) => &args.file,
            BookCommand::Export(args) | BookCommand::Stats(args) => args,
            BookCommand::Verify(args) => &args.file,
            BookCommand::Diagram(args) => &args.file,
        }
    }
}

/// The selection of a book.
#[derive(Clone, Debug, Args)]
pub(crate) struct BookFileArgs {
    /// Run directory
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, hide_env_values = true)]
    pub(crate) dir: PathBuf,
    /// Name of the book: letters, digits and hyphens
    #[arg(long, value_name = "NAME", default_value = "opening", value_parser = values::book_name)]
    pub(crate) name: String,
}

/// The book that a command answers from.
#[derive(Clone, Debug, Args)]
pub(crate) struct BookUseArgs {
    /// Opening book to answer from, or none [default: books/opening.sqlite of the run directory, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) book: Option<PathBuf>,
}

/// The databases that a book uses.
#[derive(Clone, Debug, Args)]
pub(crate) struct BookDatabasesArgs {
    /// Use no database with more stones than this
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u32>(0..=48))]
    pub(crate) databases: Option<u32>,
    /// Memory of the cache of decoded blocks of databases [default: a quarter of the available memory, at most 4 GiB]
    #[arg(long, allow_hyphen_values = true, value_name = "SIZE")]
    pub(crate) cache: Option<Budget>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari book expand --dir runs/quickstart \\
    --positions 300 --nodes 2000
  awari book expand --dir runs/quickstart --name twelve \\
    --root '1 1 1 1 1 1 1 1 1 1 1 1' --strategy proof \\
    --databases 10 --nodes 300 --positions 3000
  awari book expand --dir runs/quickstart \\
    --follow game.ogn --positions 400 --nodes 2000

Expands leaves until the book has the wanted number of positions, or nothing is left to expand. Each new position is \
looked up in the databases of the directory, or searched. The result does not depend on threads and interruptions, so \
that the same command gives the same book.

Strategies:
  drop-out       the leaf where an opponent can leave the book
                 soonest and cheapest
  best-first     the leaf that best moves lead to
  breadth-first  the leaf nearest to the root
  conspiracy     the leaf most likely to change the estimate
                 of the root
  proof          a leaf that the proof of the value of the
                 root needs

--follow is for games in which a player was out of the book too soon: the positions of their moves are expanded before all \
others, in order, if the book has them by then. Games that come from no root add nothing.

Ctrl-C ends after the current leaf; the same command goes on. A book that is expanded by one process can be read by \
others.")]
pub(crate) struct BookExpandArgs {
    #[command(flatten)]
    pub(crate) file: BookFileArgs,
    /// Position in which games begin, twelve numbers; repeat it for several. A book that exists gets those that it does not
    /// have [default: the opening of the databases]
    #[arg(long, value_name = "PITS")]
    pub(crate) root: Vec<String>,
    /// Number of moves before games begin: all positions that this number of moves from a root lead to are roots too, as
    /// openings of `awari match --plies`
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 0, value_parser = values::number::<u32>(0..=4))]
    pub(crate) plies: u32,
    /// Games that the book follows, in the Oware Game Notation, as `awari match --out` writes them
    #[arg(long, value_name = "FILE")]
    pub(crate) follow: Option<PathBuf>,
    /// Number of moves of each game that the book follows [default: all]
    #[arg(long, allow_hyphen_values = true, value_name = "N", requires = "follow", value_parser = values::number::<u32>(1..=10_000))]
    pub(crate) follow_moves: Option<u32>,
    /// Number of positions at which to end
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 1_000,
        value_parser = values::number::<u32>(1..=100_000_000))]
    pub(crate) positions: u32,
    /// Which leaf to expand next
    #[arg(long, value_name = "STRATEGY", default_value = "drop-out")]
    pub(crate) strategy: BookStrategy,
    /// Plies that an opponent's loss of a stone counts as, in drop-out expansion
    #[arg(long, allow_hyphen_values = true, value_name = "PLIES", default_value = "1", value_parser = values::omega)]
    pub(crate) omega: u64,
    /// Let a move count as forced if the second best is this many stones worse: forced lines go deeper
    #[arg(long, allow_hyphen_values = true, value_name = "STONES", value_parser = values::number::<i16>(1..=96))]
    pub(crate) forced: Option<i16>,
    /// Players that the book serves
    #[arg(long, value_name = "SIDES", default_value = "both")]
    pub(crate) sides: BookSide,
    /// Depth of a search, in moves of both players
    #[arg(long, allow_hyphen_values = true, value_name = "N", conflicts_with = "nodes",
        value_parser = values::number::<u32>(1..=60))]
    pub(crate) depth: Option<u32>,
    /// Number of positions that a search visits [default: 20,000]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u64>(1..=u64::MAX))]
    pub(crate) nodes: Option<u64>,
    /// Leaves that are chosen ahead: more keep many threads busy, one gives the best order
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 1,
        value_parser = values::number::<u16>(1..=1000))]
    pub(crate) look_ahead: u16,
    #[command(flatten)]
    pub(crate) databases: BookDatabasesArgs,
    /// Number of threads; 0 is one a core
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 0, value_parser = values::number::<u16>(0..=1024))]
    pub(crate) threads: u16,
}

/// Which leaf of a book is expanded next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BookStrategy {
    /// Where an opponent can leave the book soonest and cheapest
    DropOut,
    /// That best moves lead to
    BestFirst,
    /// Nearest to the root
    BreadthFirst,
    /// Most likely to change the estimate of the root
    Conspiracy,
    /// Needed for the proof of the value of the root
    Proof,
}

/// The players that a book serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BookSide {
    /// The player to move at the root
    First,
    /// The other player
    Second,
    /// Both, in turn
    Both,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari book prove --dir runs/quickstart --name twelve \\
    --root '1 1 1 1 1 1 1 1 1 1 1 1' --databases 10
  awari book verify --dir runs/quickstart --name twelve \\
    --certify --databases 10

Looks for two sets of positions: one that the player to move never has to leave, and one that the opponent never has to \
leave. Play in a set goes on for ever, which is worth 0, or ends with a capture into a database. So the directory needs \
the databases of all numbers of stones that a capture can leave: of up to 34 stones for a position of 36.

Both sets are checked by the rules and the databases, and entered into a new book with all moves of their positions. \
`awari book verify --certify` derives the value again from databases and rules alone.

The proof is kept in memory until it is complete: some 200 bytes a position. Ctrl-C ends the search; the same command begins again.")]
pub(crate) struct BookProveArgs {
    #[command(flatten)]
    pub(crate) file: BookFileArgs,
    /// The position: twelve numbers [default: the opening of the databases]
    #[arg(long, value_name = "PITS")]
    pub(crate) root: Option<String>,
    /// Number of positions that a search visits
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 300,
        value_parser = values::number::<u64>(1..=u64::MAX))]
    pub(crate) nodes: u64,
    /// Number of positions of the proof at which to give up
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 10_000_000,
        value_parser = values::number::<u32>(1..=1_000_000_000))]
    pub(crate) positions: u32,
    #[command(flatten)]
    pub(crate) databases: BookDatabasesArgs,
    /// Memory of the table of searched positions, at least 4 MiB
    #[arg(long, allow_hyphen_values = true, value_name = "SIZE", default_value = "256 MiB", value_parser = values::table_size())]
    pub(crate) hash: Budget,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari book show --dir runs/quickstart
  awari book show --dir runs/quickstart F4 f4

Moves lead from the root: A to F, or a to f for the other player, with or without the number of stones.")]
pub(crate) struct BookShowArgs {
    #[command(flatten)]
    pub(crate) file: BookFileArgs,
    /// Moves from the root
    #[arg(value_name = "MOVES")]
    pub(crate) moves: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  printf 'F4\\n' | awari book play --dir runs/quickstart \\
    --side south

You enter moves, the book answers with its best move until it ends.")]
pub(crate) struct BookPlayArgs {
    #[command(flatten)]
    pub(crate) file: BookFileArgs,
    /// Side that you play; South begins
    #[arg(long, value_name = "SIDE", default_value = "south")]
    pub(crate) side: BookSeat,
}

/// A side of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BookSeat {
    /// The side that begins
    South,
    /// The other side
    North,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari book verify --dir runs/quickstart
  awari book verify --dir runs/quickstart --certify
  awari book verify --dir runs/quickstart --searches 1000

Derives all values again by a slow method, and compares the scores of all databases with the book. \
--certify trusts no search: it derives bounds from databases and rules alone. --searches repeats searches, which must give what \
the book has: those of programs that search as this one does, with the same databases and a limit other than time. Ctrl-C ends it \
early.")]
pub(crate) struct BookVerifyArgs {
    #[command(flatten)]
    pub(crate) file: BookFileArgs,
    #[command(flatten)]
    pub(crate) databases: BookDatabasesArgs,
    /// Derive bounds from databases and rules alone
    #[arg(long)]
    pub(crate) certify: bool,
    /// Repeat the searches of this number of positions, spread over the book; a large number repeats all
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 0, value_parser = values::number::<u64>(0..=u64::MAX))]
    pub(crate) searches: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  awari book diagram --dir runs/quickstart > drop-out.svg
  awari book diagram --dir runs/quickstart --format csv \\
    --sides second > drop-out.csv
  awari book diagram --dir runs/quickstart \\
    --picture tree > first-plies.svg

Pictures:
  drop-out  a dot for each end of the book: the price for the
            opponent to the right, the depth downwards
  depths    the positions of each depth, proved ones in grey
  tree      all first moves, three replies to each and the best
            move after these, with values for the first player
  cycle     a shortest cycle, with the best move that leaves it
            from each position")]
pub(crate) struct BookDiagramArgs {
    #[command(flatten)]
    pub(crate) file: BookFileArgs,
    /// What to draw
    #[arg(long, value_name = "PICTURE", default_value = "drop-out")]
    pub(crate) picture: BookPicture,
    /// Player that plays from the book; the other may play any move
    #[arg(long, value_name = "SIDES", default_value = "first")]
    pub(crate) sides: BookSide,
    /// Slope of the frontier of expansion, in plies a stone
    #[arg(long, allow_hyphen_values = true, value_name = "PLIES", default_value = "1", value_parser = values::omega)]
    pub(crate) omega: u64,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "svg")]
    pub(crate) format: DiagramFormat,
}

/// A picture of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BookPicture {
    /// The ends of the book, by price and depth
    DropOut,
    /// The positions by depth
    Depths,
    /// The first plies with values
    Tree,
    /// A cycle with the moves that leave it
    Cycle,
}

/// An output format of a diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiagramFormat {
    /// A picture
    Svg,
    /// Lines of numbers
    Csv,
}
