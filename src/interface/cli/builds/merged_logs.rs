//! `awari status --logs`: the logs of all ranks of a directory, merged by time.

use crate::builds::logs::RANK_LOG;
use crate::error::{CliError, Result};
use crate::output::print;
use disk::{Disk, DiskError};
use pipeline::Exit;
use pipeline::directory::{RUN_LOG, log_path};
use std::path::Path;

/// The most bytes that are read of each log, from its end.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// Prints the lines of all logs: time, rank, log, and the rest.
pub(crate) fn show(disk: &dyn Disk, dir: &Path) -> Result<Exit> {
    let run = log_path(dir, RUN_LOG);
    let mut lines = Vec::new();
    for path in disk.list(run.parent().unwrap_or(dir))? {
        if let Some(name) = path.file_stem().and_then(|name| name.to_str()).filter(|_| is_log(&path)) {
            lines.extend(lines_of(name, &end_of(disk, &path)?));
        }
    }
    if lines.is_empty() {
        return Err(CliError::NoRunDirectory(dir.to_path_buf()));
    }
    // Stable: lines of the same time stay in the order of their file.
    lines.sort_by(|line, other| line.time.cmp(&other.time));
    let text: String = lines.iter().map(LogLine::shown).collect();
    print(&text)?;
    Ok(Exit::Done)
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

/// Reads the end of a log, from the beginning of a line on.
fn end_of(disk: &dyn Disk, path: &Path) -> Result<String, DiskError> {
    let log = disk.open(path)?;
    let from = log.bytes().saturating_sub(LOG_BYTES_MAX);
    let mut bytes = vec![0; (log.bytes() - from) as usize];
    log.read_at(from, &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, rest)) if from > 0 => rest.to_owned(),
        _ => text,
    })
}

/// A line of a log.
#[derive(Debug, PartialEq, Eq)]
struct LogLine {
    /// UTC as RFC 3339, which sorts as text.
    time: String,
    rank: u64,
    /// The stage, `run`, or the rank again.
    log: String,
    text: String,
}

impl LogLine {
    fn shown(&self) -> String {
        let LogLine { time, rank, log, text } = self;
        format!("{time} {rank} {log}: {text}\n")
    }
}

/// Returns the lines of a log. A line without a time, such as the second of a long message, has that of the
/// line before.
fn lines_of(log: &str, text: &str) -> Vec<LogLine> {
    let rank = log.strip_prefix(RANK_LOG).and_then(|number| number.parse().ok()).unwrap_or(0);
    let mut last = String::new();
    let line = |line: &str| {
        let text = match line.split_once(' ').filter(|(time, _)| is_time(time)) {
            Some((time, rest)) => {
                time.clone_into(&mut last);
                rest.trim_start()
            }
            None => line,
        };
        LogLine { time: last.clone(), rank, log: log.to_owned(), text: text.to_owned() }
    };
    text.lines().map(line).collect()
}

/// Whether a word is a time such as `2026-11-28T03:17:46.123456Z`.
fn is_time(word: &str) -> bool {
    word.len() >= 20 && word.ends_with('Z') && word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('T')
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::MemoryDisk;

    const FIRST: &str =
        "2026-11-28T03:17:46.000001Z  INFO begins\n2026-11-28T03:17:46.000003Z  WARN a message\nof two lines\n";
    const OTHER: &str =
        "2026-11-28T03:17:46.000002Z  INFO sweep:14 begins\n2026-11-28T03:17:47.000000Z ERROR rank 0 died\n";

    #[test]
    fn lines_have_their_rank() {
        let lines = lines_of("rank-0013", OTHER);
        let shown: Vec<String> = lines.iter().map(LogLine::shown).collect();
        assert_eq!(shown[0], "2026-11-28T03:17:46.000002Z 13 rank-0013: INFO sweep:14 begins\n");
        let lines = lines_of("sweep-14", FIRST);
        assert_eq!(
            (lines[2].rank, lines[2].time.as_str(), lines[2].text.as_str()),
            (0, "2026-11-28T03:17:46.000003Z", "of two lines")
        );
        assert!(lines_of("run", "").is_empty());
    }

    #[test]
    fn only_the_end_of_a_long_log_is_read() {
        let (disk, path) = (MemoryDisk::new(), Path::new("/run/logs/run.log"));
        let line = format!("{}\n", "x".repeat(99));
        disk.put(path, line.repeat((LOG_BYTES_MAX / 100) as usize + 50).as_bytes());
        let end = end_of(&disk, path).unwrap();
        assert!(end.len() as u64 <= LOG_BYTES_MAX && end.len() as u64 > LOG_BYTES_MAX - 200 && end.starts_with("xxx"));
        assert_eq!(end.len() % 100, 0, "whole lines");
        disk.put(path, FIRST.as_bytes());
        assert_eq!(end_of(&disk, path).unwrap(), FIRST);
    }
}
