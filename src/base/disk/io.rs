//! The I/O modes that a user may choose.

use std::fmt;
use std::str::FromStr;

/// The system interface of large reads and writes. The bytes of files do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// `io_uring` if the kernel allows it and the feature `build` has it, unless
    /// [`RealDisk::choose`](crate::RealDisk::choose) says otherwise; else positioned reads and writes. Scratch files
    /// use the page cache.
    #[default]
    Auto,
    /// `io_uring`, or an error where the kernel refuses it.
    Uring,
    /// Positioned reads and writes, one at a time for each thread.
    Plain,
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Io::Auto => "auto",
            Io::Uring => "uring",
            Io::Plain => "plain",
        })
    }
}

/// An unknown name of a mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected auto, uring or plain, found {found:?}")]
pub struct IoError {
    found: String,
}

impl FromStr for Io {
    type Err = IoError;

    fn from_str(text: &str) -> Result<Self, IoError> {
        let all = [Io::Auto, Io::Uring, Io::Plain];
        all.into_iter().find(|io| io.to_string() == text).ok_or_else(|| IoError { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for io in [Io::Auto, Io::Uring, Io::Plain] {
            assert_eq!(io.to_string().parse(), Ok(io));
        }
        let error = "Uring".parse::<Io>().unwrap_err();
        assert_eq!(error.to_string(), "expected auto, uring or plain, found \"Uring\"");
    }
}
