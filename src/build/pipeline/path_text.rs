//! Paths as text for JSON.
//!
//! A path may be any bytes, but JSON is Unicode: invalid UTF-8 becomes U+FFFD, as in messages. A reader can show such a
//! path, but not open it. `serde` alone fails on such a path.

use serde::{Serialize, Serializer};
use std::path::Path;

/// A path that serialises as text.
#[derive(Clone, Copy, Debug)]
pub struct PathText<'a>(pub &'a Path);

impl Serialize for PathText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.display())
    }
}

/// Serialises one path, for `serialize_with`.
pub(crate) fn one<S: Serializer>(path: impl AsRef<Path>, serializer: S) -> Result<S::Ok, S::Error> {
    PathText(path.as_ref()).serialize(serializer)
}

/// Serialises a path that may be absent, for `serialize_with`.
pub(crate) fn optional<S: Serializer>(path: &Option<impl AsRef<Path>>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| PathText(path.as_ref())).serialize(serializer)
}

/// Serialises a list of paths, for `serialize_with`.
pub(crate) fn many<S: Serializer>(paths: &[impl AsRef<Path>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| PathText(path.as_ref())))
}
