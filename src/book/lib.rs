//! Opening books: positions and moves from a start, with proved bounds and estimates of their values.
//!
//! A [`Book`] is a graph of positions that share transpositions. A strategy chooses a leaf, an engine assesses its
//! successors, and bounds, estimates and priorities of all positions follow. After T. R. Lincke, *Exploring the
//! Computational Limits of Large Exhaustive Search Problems* (2002), chapters 3 to 5.
//!
//! Invariants:
//!
//! * A position is a leaf, or has all its legal moves, whose successors are all assessed.
//! * Proved bounds contain the value of a position, and are the best that follow from the leaves.
//! * All derived numbers are a function of the facts: roots, assessments, expanded positions. What an expansion repairs
//!   is what deriving everything again gives (see [`refresh`]).

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod assess;
mod assessor_pool;
mod awari;
mod builder;
mod check;
mod components;
mod conspiracy;
mod draw_check;
mod draw_proof;
mod drop_outs;
mod expand;
mod fixpoint;
mod game;
mod graph;
mod hex;
mod opening_book;
mod partial_values;
mod pictures;
mod priorities;
mod proof;
pub mod refresh;
mod report;
mod storage;
mod strategy;
mod table_game;
#[cfg(test)]
mod tests;
mod values;

pub use assess::{Assessed, AssessmentError, AssessmentLimits, Assessor};
pub use assessor_pool::AssessorPool;
pub use awari::AwariGame;
pub use builder::{BookBuilder, BookSettings, BuildError};
pub use check::{BookCertificate, BookCheck, check_book, check_results};
pub use draw_check::{check_kept, enter_proof};
pub use draw_proof::{DrawProgress, DrawProof, DrawProofError, DrawVerdict, KeptPosition, ProofRole};
pub use drop_outs::{BookEnd, book_ends, drop_out_depth, least_cost};
pub use expand::Book;
pub use game::{Assessment, BookGame, BookMove, Hundredths};
pub use graph::{BookEdge, BookGraph, BookNode, NodeId};
pub use hex::HexGame;
pub use opening_book::{BookPosition, BookReply, OpeningBook};
pub use partial_values::{PartialValue, partial_values};
pub use pictures::{cycle, cycle_csv, depth_csv, depth_histogram, tree, tree_csv};
pub use priorities::{DropOut, Priorities, Priority};
pub use report::{BookTotals, DepthRow, diagram, diagram_csv, drop_out_depths, stones};
pub use storage::{BOOK_VERSION, BookEngine, BookError, BookFile, EngineResults, SCHEMA, engine_version};
pub use strategy::{BookSides, Strategy};
pub use table_game::{TableError, TableGame, TableMove};
