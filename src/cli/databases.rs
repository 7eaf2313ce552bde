//! todo
use crate::error::CliError;
use pipeline::Exit;
