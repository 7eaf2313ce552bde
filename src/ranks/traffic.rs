//! What went through a communicator.

/// Messages of the program that went through one rank's end so far, those of collective calls among them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Messages handed over for sending.
    pub messages_sent: u64,
    /// The bytes of these.
    pub bytes_sent: u64,
    /// Messages that the program has received.
    pub messages_received: u64,
    /// The bytes of these.
    pub bytes_received: u64,
    /// How long the program was in `receive`, in seconds.
    pub seconds_waited: f64,
}

impl Traffic {
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.messages_sent += 1;
        self.bytes_sent += bytes as u64;
    }

    pub(crate) fn received(&mut self, bytes: usize, seconds: f64) {
        self.messages_received += 1;
        self.bytes_received += bytes as u64;
        self.seconds_waited += seconds;
    }
}
