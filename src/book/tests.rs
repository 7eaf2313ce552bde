//! Tests of books of small games. Random games come from seeds, which a failing test prints.

mod awari;
mod failing_disk;
mod draws;
mod pictures;
mod priorities;
mod proofs;
mod random;
mod scenarios;
mod stored_values;
mod values;
