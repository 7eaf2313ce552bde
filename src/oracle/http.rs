//! Questions and answers over HTTP: an API of JSON, and a page that uses it.
//!
//! [`Site`] is everything that is served, [`router`] its routes, [`Server`] the connections. Every number is seen from
//! the player to move in the position that was asked about, and counts stones still on the board: stores take no part.
//!
//! Invariants:
//!
//! * What a client sends is bounded before it is read: see [`ServerLimits`].
//! * A question that memory maps answer at once is answered on the thread that read it. What searches, decodes blocks or
//!   follows a line runs on a thread that may block, and of these there are few.
//! * The same databases give the same bytes, so one tag stands for all answers; only chosen moves without a seed differ.
//!
//! `http/openapi.json` describes the routes; a test holds the two together.

mod batch;
mod body;
mod catalogue;
mod framing;
mod host;
mod limits;
mod metrics;
mod middleware;
mod play;
mod probe;
mod refusal;
mod reply;
mod router;
mod server;
mod site;
mod transcript;

pub use catalogue::Catalogue;
pub use limits::ServerLimits;
pub use router::router;
pub use server::{Server, ServerStop};
pub use site::Site;

pub(crate) use catalogue::ScoreCount;
pub(crate) use probe::{STARVES, ScoreValue, best_first, category, loss};
pub(crate) use refusal::{Refusal, query_mistake};
pub(crate) use reply::not_kept;
pub(crate) use transcript::play_all;
