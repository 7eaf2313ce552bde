//! Archives, exports, and the reader for Python.

#![allow(clippy::unwrap_used)]

mod archive;
mod export;
mod python_reader;
