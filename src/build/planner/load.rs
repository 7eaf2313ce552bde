//! Work of a stage, independent of the machine.

/// Processor time, sequential traffic and random accesses of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Seconds of one core of the reference machine.
    pub cpu_seconds: f64,
    /// Seconds that a core of the reference machine waits for random memory accesses, in addition.
    pub memory_seconds: f64,
    /// Bytes read sequentially from files.
    pub read_bytes: f64,
    /// Bytes written sequentially to files.
    pub written_bytes: f64,
    /// Bytes read sequentially from scratch files.
    pub scratch_read_bytes: f64,
    /// Bytes written sequentially to scratch files.
    pub scratch_written_bytes: f64,
    /// Blocks of scratch files read at random offsets.
    pub random_reads: f64,
    /// Blocks of scratch files written at random offsets.
    pub random_writes: f64,
}

impl Load {
    /// Returns the load of a machine with enough spare memory to cache all scratch files.
    #[must_use]
    pub fn without_scratch(self) -> Load {
        Load { scratch_read_bytes: 0.0, scratch_written_bytes: 0.0, random_reads: 0.0, random_writes: 0.0, ..self }
    }

    /// Returns a share of the load.
    #[must_use]
    pub fn share(self, share: f64) -> Load {
        self.zip(self, |own, _| own * share)
    }

    fn zip(self, other: Load, combine: impl Fn(f64, f64) -> f64) -> Load {
        Load {
            cpu_seconds: combine(self.cpu_seconds, other.cpu_seconds),
            memory_seconds: combine(self.memory_seconds, other.memory_seconds),
            read_bytes: combine(self.read_bytes, other.read_bytes),
            written_bytes: combine(self.written_bytes, other.written_bytes),
            scratch_read_bytes: combine(self.scratch_read_bytes, other.scratch_read_bytes),
            scratch_written_bytes: combine(self.scratch_written_bytes, other.scratch_written_bytes),
            random_reads: combine(self.random_reads, other.random_reads),
            random_writes: combine(self.random_writes, other.random_writes),
        }
    }
}

impl std::ops::Add for Load {
    type Output = Load;

    fn add(self, other: Load) -> Load {
        self.zip(other, |own, other| own + other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_load_add_up() {
        let load = Load {
            cpu_seconds: 4.0,
            memory_seconds: 2.0,
            read_bytes: 8.0,
            written_bytes: 16.0,
            scratch_read_bytes: 32.0,
            scratch_written_bytes: 64.0,
            random_reads: 128.0,
            random_writes: 256.0,
        };
        assert_eq!(load.share(0.25) + load.share(0.75), load);
    }
}
