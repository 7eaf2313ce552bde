//! The commands that plan, run and show a build.

#![allow(clippy::unwrap_used)]

mod books;
mod commands;
mod evaluation;
mod foreign_plans;
mod golden;
mod guide_commands;
mod help_examples;
mod inspection;
mod job_plans;
mod manual_tables;
mod puzzles;
mod refusals;
mod share;
mod sizing;
mod slurm_script;
mod whole_game;
