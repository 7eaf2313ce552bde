//! Progress of an engine, told to the pipeline; requests to stop, told to the engine.

use pipeline::StageContext;
use std::ops::ControlFlow;

/// Passes on the progress of one engine call, as positions of the database under way.
pub(crate) struct Watch<'a> {
    context: &'a StageContext<'a>,
    positions: u64,
    turn: u64,
    turns: u64,
}

impl<'a> Watch<'a> {
    /// The only call of a stage on so many positions.
    pub(crate) fn new(context: &'a StageContext<'a>, positions: u64) -> Watch<'a> {
        context.progress().begin(positions, "positions");
        Watch { context, positions, turn: 0, turns: 1 }
    }

    /// Call number `turn` of `turns` alike.
    pub(crate) fn turn(context: &'a StageContext<'a>, positions: u64, turn: usize, turns: usize) -> Watch<'a> {
        Watch { turn: turn as u64, turns: turns as u64, ..Watch::new(context, positions) }
    }
}

impl engines::Progress for Watch<'_> {
    fn advance(&self, done: u64, total: u64) -> ControlFlow<()> {
        let share = (self.turn as f64 + done as f64 / total.max(1) as f64) / self.turns as f64;
        self.context.progress().set((share * self.positions as f64) as u64);
        match self.context.stop_requested() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
