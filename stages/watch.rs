//! Progress of an engine, told to the pipeline; requests to stop, told to the engine.

use pipeline::StageContext;
use std::ops::ControlFlow;

/// Passes on the progress of one engine call, as positions of the database under way.
pub(crate) struct Watch<'a> {
    context: &'a StageContext<'a>,
    positions: u64,
}

impl<'a> Watch<'a> {
    /// The only call of a stage on so many positions.
    pub(crate) fn new(context: &'a StageContext<'a>, positions: u64) -> Watch<'a> {
        context.progress().begin(positions, "positions");
        Watch { context, positions }
    }
}

impl engines::Progress for Watch<'_> {
    fn advance(&self, done: u64, total: u64) -> ControlFlow<()> {
        let share = done as f64 / total.max(1) as f64;
        self.context.progress().set((share * self.positions as f64) as u64);
        match self.context.stop_requested() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
