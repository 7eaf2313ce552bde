//! What is written for others to read, and read from others: archives, exports, the reader for Python.

#![allow(clippy::unwrap_used)]

mod archive;
mod export;
mod python_reader;
