//! Lines of text of bounded length.

use std::io::{self, BufRead, Read};

/// The longest line without its end: ten times a game of a thousand moves.
const BYTES_MAX: usize = 64 << 10;

/// Reads lines, with at most [`BYTES_MAX`] bytes in memory.
pub(crate) struct Lines<R>(R);

/// The reason for skipping a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RejectedLine {
    /// Longer than [`BYTES_MAX`].
    #[error("the line has more than {BYTES_MAX} bytes and was ignored")]
    TooLong,
    /// Not UTF-8.
    #[error("the line is not UTF-8 and was ignored")]
    NotText,
}

impl<R: BufRead> Lines<R> {
    /// Reads the lines of a reader.
    pub(crate) fn new(reader: R) -> Lines<R> {
        Lines(reader)
    }

    /// Returns the next line, trimmed; `None` at the end of the input.
    pub(crate) fn next(&mut self) -> io::Result<Option<Result<String, RejectedLine>>> {
        let mut line = Vec::new();
        let taken = BYTES_MAX as u64 + 1;
        if self.0.by_ref().take(taken).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.len() > BYTES_MAX && !line.ends_with(b"\n") {
            self.0.skip_until(b'\n')?;
            return Ok(Some(Err(RejectedLine::TooLong)));
        }
        let text = std::str::from_utf8(&line).map(|text| text.trim().to_owned());
        Ok(Some(text.map_err(|_| RejectedLine::NotText)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_largest_length() {
        let most = "x".repeat(BYTES_MAX);
        let text = [b" a b\r\n\n", most.as_bytes(), b"\nx", most.as_bytes(), b"\n\xff\nlast"].concat();
        let mut lines = Lines::new(&text[..]);
        let expected =
            [Ok("a b"), Ok(""), Ok(&most), Err(RejectedLine::TooLong), Err(RejectedLine::NotText), Ok("last")];
        for expected in expected {
            assert_eq!(lines.next().unwrap(), Some(expected.map(str::to_owned)));
        }
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn long_lines_are_not_kept_in_memory() {
        let endless = io::BufReader::new(io::repeat(b'a').take(1 << 28));
        let mut lines = Lines::new(endless);
        assert_eq!(lines.next().unwrap(), Some(Err(RejectedLine::TooLong)));
        assert_eq!(lines.next().unwrap(), None);
    }
}
