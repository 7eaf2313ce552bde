//! Exit codes. Part of the interface: no code ever changes its meaning.

use std::process::ExitCode;

/// An exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Everything requested is done.
    Done = 0,
    /// A bug of the program.
    Internal = 1,
    /// The command line is invalid.
    Usage = 2,
    /// No database can answer the question.
    NoAnswer = 3,
    /// Work is pending (`plan --check`).
    WorkPending = 10,
    /// The manifest has mistakes.
    ManifestInvalid = 11,
    /// Disk, memory or directory do not allow the run.
    PreflightFailed = 12,
    /// Another process holds the directory.
    Locked = 13,
    /// A stage failed.
    StageFailed = 14,
    /// Something is stale, and rebuilding it is forbidden.
    Frozen = 15,
    /// An artifact is damaged or wrong.
    Integrity = 16,
    /// Stopped on request, or without a rank that was lost; the same command resumes.
    Stopped = 75,
    /// Stopped at once by a second signal.
    SecondSignal = 130,
}

impl Exit {
    /// Returns the number.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
