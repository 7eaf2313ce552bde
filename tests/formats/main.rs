//! Archives, exports, the library for other programs, the Python package, and the independent reader in Python.

#![allow(clippy::unwrap_used)]

mod archive;
mod bounds;
mod export;
mod python_package;
mod python_reader;
