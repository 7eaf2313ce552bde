//! Tests of books of small games. Random games come from seeds, which a failing test prints.

mod awari;
mod draws;
mod failing_disk;
mod forged;
mod hostile_books;
mod pictures;
mod planted_errors;
mod priorities;
mod proofs;
mod random;
mod scenarios;
mod stored_values;
mod values;
