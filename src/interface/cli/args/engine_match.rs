//! The arguments of `awari match`.

use super::values::{self, ClockControl, Sprt};
use clap::{ArgGroup, Args};
use game::Rules;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("limit").args(["time", "movetime", "nodes", "depth"]).required(true).multiple(true)),
    after_help = "\
Examples:
  awari match --engine 'awari engine --level beginner' \\
    --engine 'awari engine' --name beginner --name perfect \\
    --nodes 200 --games 8 --out games.ogn
  awari match --engine 'awari engine' --name few \\
    --engine 'awari engine' --name many --nodes 500 \\
    --nodes 2000 --games 4
  awari match --engine 'awari engine --threads 2' \\
    --engine 'awari engine' --name two --name one \\
    --time 0.3+0.01 --margin 2s --games 4 --sprt 0,20

Engines are commands that speak the protocol of `awari engine`: ours, an older release, or another program. Each opening is \
played twice, with exchanged sides. A limit that is given twice has a value for each engine. The openings are all sequences of --plies moves, or the lines of a file: moves such as \
FfBd, or a position. They are taken in random order, from the first again if there are more games.

An engine that crashes, stalls, exceeds its time by more than --margin, or plays an illegal move loses the game, is named, and \
is started again if need be. What is legal is a matter of --rules; an engine that names its rules by an option is set to them. A game \
ends by the rules, when a side has more than half of the stones, or after 500 moves.

Prints a table, the difference in Elo with its confidence interval of 95 %, from pairs of games, and the state of the \
sequential test of --sprt, which ends the match when it is decided, with errors of 5 %. Ctrl-C ends the match with the table \
so far and exit code 75. Results of games go to stderr.

Each game is appended to the file of --out when it ends. The same command goes on with the match of that file after a stop, a \
kill or a full disk; a file with anything else is refused. Processes that an engine leaves behind are ended with it."
)]
pub(crate) struct MatchArgs {
    /// Command of an engine; given twice
    #[arg(long = "engine", value_name = "CMD", required = true)]
    pub(crate) engines: Vec<String>,
    /// Name of an engine, in the order of the commands [default: what it calls itself; its command, if both call themselves the same]
    #[arg(long = "name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// File of openings, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "plies")]
    pub(crate) openings: Option<PathBuf>,
    /// Number of moves of the openings
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 2, value_parser = values::number::<u32>(0..=6))]
    pub(crate) plies: u32,
    /// Rules of the games, by their name in manifests
    #[arg(long, value_name = "RULES", default_value = Rules::AWARI.name, value_parser = values::rules())]
    pub(crate) rules: Rules,
    /// Number of games, rounded up to pairs [default: two for each opening]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u32>(1..=1_000_000))]
    pub(crate) games: Option<u32>,
    /// Clock of each side: seconds for the game, and seconds added after each move
    #[arg(long, allow_hyphen_values = true, value_name = "BASE+INC", value_parser = values::clock)]
    pub(crate) time: Vec<ClockControl>,
    /// Time of each move: 100ms, 2s
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", value_parser = values::duration_with_unit)]
    pub(crate) movetime: Vec<Duration>,
    /// Positions to search for each move
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u64>(1..=u64::MAX))]
    pub(crate) nodes: Vec<u64>,
    /// Depth to search for each move
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u32>(1..=63))]
    pub(crate) depth: Vec<u32>,
    /// Number of games at a time
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 1, value_parser = values::number::<usize>(1..=256))]
    pub(crate) concurrency: usize,
    /// Sequential test of two differences in Elo of the first engine, such as 0,10
    #[arg(long, allow_hyphen_values = true, value_name = "ELO0,ELO1", value_parser = values::sprt)]
    pub(crate) sprt: Option<Sprt>,
    /// File for the games, in the Oware Game Notation; a match that it records goes on
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Seed of the order of the openings
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 0, value_parser = values::number::<u64>(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Time by which an engine may exceed its time
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", default_value = "50ms", value_parser = values::duration_with_unit)]
    pub(crate) margin: Duration,
    /// Time after which an engine that does not reply has stalled
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", default_value = "30s", value_parser = values::duration_with_unit)]
    pub(crate) stall: Duration,
}
