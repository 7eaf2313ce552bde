//! The binary `awari`.

use std::process::ExitCode;

/// Allocator that reports exhausted memory and exits.
#[global_allocator]
static HEAP: disk::heap::Heap = disk::heap::Heap;

fn main() -> ExitCode {
    awari::main()
}
