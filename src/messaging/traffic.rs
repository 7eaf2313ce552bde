//! What went through a communicator.

/// Messages of the program that went through one rank's end so far, those of collective calls among them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MessageTraffic {
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

impl MessageTraffic {
    /// What went through since `before`.
    pub fn since(&self, before: &MessageTraffic) -> MessageTraffic {
        MessageTraffic {
            messages_sent: self.messages_sent - before.messages_sent,
            bytes_sent: self.bytes_sent - before.bytes_sent,
            messages_received: self.messages_received - before.messages_received,
            bytes_received: self.bytes_received - before.bytes_received,
            seconds_waited: self.seconds_waited - before.seconds_waited,
        }
    }

    /// Adds a message that was sent, of so many bytes.
    pub fn sent(&mut self, bytes: usize) {
        self.messages_sent += 1;
        self.bytes_sent += bytes as u64;
    }

    /// Adds a message that was received, after so much waiting.
    pub fn received(&mut self, bytes: usize, seconds: f64) {
        self.messages_received += 1;
        self.bytes_received += bytes as u64;
        self.seconds_waited += seconds;
    }
}
