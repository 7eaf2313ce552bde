//! The binary `awari`.

use std::process::ExitCode;

/// Says so where memory has run out.
#[global_allocator]
static HEAP: disk::heap::Heap = disk::heap::Heap;

fn main() -> ExitCode {
    awari::main()
}
