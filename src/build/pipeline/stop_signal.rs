//! The flags that make a running stage stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop, from either of two sources: the caller of the run, and the run itself, once another
/// stage has failed.
#[derive(Clone, Copy, Debug)]
pub struct StopSignal<'a> {
    flags: [&'a AtomicBool; 2],
}

impl<'a> StopSignal<'a> {
    /// Makes the signal of one flag.
    pub fn new(flag: &'a AtomicBool) -> StopSignal<'a> {
        StopSignal { flags: [flag, flag] }
    }

    /// Makes the signal that either of two flags raises.
    pub(crate) fn either(first: &'a AtomicBool, second: &'a AtomicBool) -> StopSignal<'a> {
        StopSignal { flags: [first, second] }
    }

    /// Whether a flag is raised. Costs two atomic loads.
    pub fn is_raised(self) -> bool {
        self.flags.iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}
