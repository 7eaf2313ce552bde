//! Names of files that are being written, and of foreign files that are set aside.

use crate::clock::now_seconds;
use crate::error::{DiskError, Operation};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const MARK: &str = ".tmp-";

/// The name under which a file is written before it is renamed to `path`.
pub(crate) fn temporary_of(path: &Path) -> Result<PathBuf, DiskError> {
    let Some(name) = path.file_name() else {
        let source = std::io::Error::other("the path has no file name");
        return Err(DiskError::from_io(Operation::Create, path, source));
    };
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!("{MARK}{}", std::process::id()));
    Ok(path.with_file_name(temporary))
}

/// The same for a file that several processes write. It contains the time as well, so that a suspended process finds no
/// file of another attempt there.
pub(crate) fn temporary_of_many(path: &Path) -> Result<PathBuf, DiskError> {
    let mut temporary = temporary_of(path)?.into_os_string();
    temporary.push(now_seconds().to_string());
    Ok(temporary.into())
}

/// Whether a path is the temporary of a [`Staged`](crate::Staged) file.
pub fn is_leftover(path: &Path) -> bool {
    staged_path(path).is_some()
}

/// The path under which the temporary of a [`Staged`](crate::Staged) file would have been published.
pub fn staged_path(temporary: &Path) -> Option<PathBuf> {
    let name = temporary.file_name()?.to_str()?.strip_prefix('.')?;
    let (name, process) = name.rsplit_once(MARK)?;
    let is_number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !name.is_empty()).then(|| temporary.with_file_name(name))
}

/// Names under which a foreign file is kept when an awari file takes its name: `NAME.kept-N`.
pub(crate) fn kept_names(path: &Path) -> impl Iterator<Item = PathBuf> {
    const NAMES_MAX: usize = 1000;
    (1..=NAMES_MAX).map(|number| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".kept-{number}"));
        path.with_file_name(name)
    })
}
