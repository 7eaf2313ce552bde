//! The arguments of commands that search positions beyond the databases.

use super::values;
use clap::Args;
use disk::clock;
use pipeline::Budget;
use search::SearchLimits;
use std::time::Duration;

/// Threads and memory of a search.
#[derive(Clone, Debug, Args)]
pub(crate) struct TableArgs {
    /// Number of threads that search; 0 is one a core
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value_t = 1, value_parser = values::number::<u16>(0..=1024))]
    pub(crate) threads: u16,
    /// Memory of the table of searched positions, at least 4 MiB
    #[arg(long, allow_hyphen_values = true, value_name = "SIZE", default_value = "64 MiB", value_parser = values::table_size())]
    pub(crate) hash: Budget,
}

impl TableArgs {
    /// Returns the number of threads.
    pub(crate) fn threads(&self) -> usize {
        if self.threads == 0 { clock::cores() } else { usize::from(self.threads) }
    }
}

/// Limits of the search of a position that no database holds.
#[derive(Clone, Debug, Args)]
pub(crate) struct SearchArgs {
    /// Time to search a position: 500ms, 10s, 2min
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", value_parser = values::duration)]
    time: Option<Duration>,
    /// Number of positions to search
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u64>(1..=u64::MAX))]
    nodes: Option<u64>,
    /// Depth to search, in moves of both players
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = values::number::<u32>(1..=63))]
    depth: Option<u32>,
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

impl SearchArgs {
    /// Returns the limits; without any, a time.
    pub(crate) fn limits(&self, otherwise: Duration) -> SearchLimits {
        let SearchArgs { time, nodes, depth, .. } = *self;
        let is_limited = time.is_some() || nodes.is_some() || depth.is_some();
        SearchLimits { time: if is_limited { time } else { Some(otherwise) }, nodes, depth, iteration_time: None }
    }
}
