//! The binary `awari`.

use std::process::ExitCode;

fn main() -> ExitCode {
    awari::main()
}
