//! The order of stages that run side by side, decided by a seed.
//!
//! One stage goes on at a time. Before it opens, creates, renames or measures a file, another one may have
//! its turn instead. Threads of a stage are known by their label. The thread of the run goes on when a stage
//! has ended, while no stage does.

use crate::Random;
use disk::{Disk, DiskAccess, DiskError, DiskGuard};
use pipeline::{StageName, Turns, thread_label};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Turns of stages, drawn from a seed.
pub(crate) struct SeededTurns {
    drawing: Mutex<Drawing>,
    changed: Condvar,
}

struct Drawing {
    random: Random,
    /// The stages that run.
    running: Vec<String>,
    /// The one that goes on.
    turn: String,
}

impl Drawing {
    fn draw(&mut self) {
        self.turn.clone_from(self.random.pick(&self.running));
    }
}

impl SeededTurns {
    pub(crate) fn new(seed: u64) -> SeededTurns {
        let drawing = Drawing { random: Random::of(&[seed]), running: Vec::new(), turn: String::new() };
        SeededTurns { drawing: Mutex::new(drawing), changed: Condvar::new() }
    }

    fn drawing(&self) -> MutexGuard<'_, Drawing> {
        self.drawing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until it is the turn of a stage.
    fn wait_for(&self, drawing: MutexGuard<'_, Drawing>, stage: &str) {
        let waited = self.changed.wait_while(drawing, |drawing| drawing.turn != stage);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Turns for SeededTurns {
    fn pass(&self, running: &[StageName]) {
        let mut drawing = self.drawing();
        drawing.running = running.iter().map(ToString::to_string).collect();
        drawing.draw();
        self.changed.notify_all();
    }

    fn wait(&self, stage: &StageName) {
        self.wait_for(self.drawing(), &stage.to_string());
    }
}

impl DiskGuard for SeededTurns {
    fn check_access(&self, _: &dyn Disk, _: DiskAccess, path: &Path) -> Result<(), DiskError> {
        // While a stage checks the end of the journal, no other one may: it would block on that lock in its turn.
        let stage = thread_label::label().filter(|_| !path.ends_with("journal"));
        let Some(stage) = stage else { return Ok(()) };
        let mut drawing = self.drawing();
        if drawing.running.iter().any(|running| **running == *stage) {
            drawing.draw();
            self.changed.notify_all();
            self.wait_for(drawing, &stage);
        }
        Ok(())
    }
}
