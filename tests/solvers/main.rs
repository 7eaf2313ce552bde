//! Solvers against the rules, the slow reference, each other and published counts.

#![allow(clippy::unwrap_used)]

mod checks;
mod engines;
mod fault_planting;
mod growing;
mod guarantees;
mod opening;
mod openspiel;
mod recorded_databases;
mod rule_sets;
mod rules;
mod searches;
mod verify_command;
