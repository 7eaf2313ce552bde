//! The destination of an exported file.
//!
//! Unless files may be replaced, an existing file is compared with the bytes that would be written, as they arrive, so
//! that the first difference ends the export and an identical file is kept.

use crate::error::ExchangeError;
use disk::{Disk, InputFile, Staged};
use std::path::{Path, PathBuf};

/// Bytes compared at a time.
const COMPARED_BYTES: usize = 1 << 20;

/// A file being written, or an existing one being compared.
pub(crate) struct ExportSink<'d> {
    path: PathBuf,
    bytes: u64,
    route: ExportRoute<'d>,
}

enum ExportRoute<'d> {
    Write(Staged<'d>),
    Compare { file: Box<dyn InputFile>, buffer: Vec<u8> },
}

impl<'d> ExportSink<'d> {
    /// Begins a file. `expected_bytes` are reserved for it; 0 reserves nothing.
    pub(crate) fn begin(
        disk: &'d dyn Disk,
        path: &Path,
        replace: bool,
        expected_bytes: u64,
    ) -> Result<ExportSink<'d>, ExchangeError> {
        disk.check_replaceable(path)?;
        let is_there = !replace && disk.bytes(path)?.is_some();
        let route = if is_there {
            ExportRoute::Compare { file: disk.open(path)?, buffer: Vec::new() }
        } else {
            ExportRoute::Write(Staged::create(disk, path, expected_bytes)?)
        };
        Ok(ExportSink { path: path.to_path_buf(), bytes: 0, route })
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), ExchangeError> {
        match &mut self.route {
            ExportRoute::Write(staged) => staged.write(bytes)?,
            ExportRoute::Compare { file, buffer } => {
                for piece in bytes.chunks(COMPARED_BYTES) {
                    let differs = |offset| Err(ExchangeError::Exists { path: self.path.clone(), offset });
                    let there = file.bytes().saturating_sub(self.bytes).min(piece.len() as u64) as usize;
                    buffer.resize(there, 0);
                    file.read_at(self.bytes, buffer)?;
                    if let Some(at) = buffer.iter().zip(piece).position(|(old, new)| old != new) {
                        return differs(self.bytes + at as u64);
                    }
                    if there < piece.len() {
                        return differs(self.bytes + there as u64);
                    }
                    self.bytes += piece.len() as u64;
                }
                return Ok(());
            }
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Completes the file. Returns its length, and whether it is new.
    pub(crate) fn finish(self) -> Result<(u64, bool), ExchangeError> {
        match self.route {
            ExportRoute::Write(staged) => Ok((staged.publish()?, true)),
            ExportRoute::Compare { file, .. } if file.bytes() == self.bytes => Ok((self.bytes, false)),
            ExportRoute::Compare { .. } => Err(ExchangeError::Exists { path: self.path, offset: self.bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::MemoryDisk;

    fn write(disk: &MemoryDisk, replace: bool, portions: &[&str]) -> Result<(u64, bool), ExchangeError> {
        let mut sink = ExportSink::begin(disk, Path::new("a/b"), replace, 0)?;
        for portion in portions {
            sink.write(portion.as_bytes())?;
        }
        sink.finish()
    }

    #[test]
    fn other_existing_files_are_kept_unless_replaced() {
        let disk = MemoryDisk::new();
        assert_eq!(write(&disk, false, &["ab", "cd"]).unwrap(), (4, true));
        assert_eq!(write(&disk, false, &["a", "bc", "d"]).unwrap(), (4, false));
        let offset = |result| match result {
            Err(ExchangeError::Exists { offset, .. }) => offset,
            other => panic!("{other:?}"),
        };
        assert_eq!(offset(write(&disk, false, &["ab", "xd"])), 2);
        assert_eq!(offset(write(&disk, false, &["ab"])), 2);
        assert_eq!(offset(write(&disk, false, &["abc", "def"])), 4);
        assert_eq!(disk.peek(Path::new("a/b")).unwrap(), b"abcd");
        assert_eq!(write(&disk, true, &["xy"]).unwrap(), (2, true));
        assert_eq!(disk.peek(Path::new("a/b")).unwrap(), b"xy");
    }
}
