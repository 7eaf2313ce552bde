//! Counters of messages.

/// Messages sent and received by one communicator, including those of collective calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MessageTraffic {
    /// Messages sent.
    pub messages_sent: u64,
    /// Bytes of these messages.
    pub bytes_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Bytes of these messages.
    pub bytes_received: u64,
    /// Seconds spent in `receive`.
    pub seconds_waited: f64,
}

impl MessageTraffic {
    /// Returns the traffic since `before`.
    pub fn since(&self, before: &MessageTraffic) -> MessageTraffic {
        MessageTraffic {
            messages_sent: self.messages_sent - before.messages_sent,
            bytes_sent: self.bytes_sent - before.bytes_sent,
            messages_received: self.messages_received - before.messages_received,
            bytes_received: self.bytes_received - before.bytes_received,
            seconds_waited: self.seconds_waited - before.seconds_waited,
        }
    }

    /// Counts a sent message.
    pub fn sent(&mut self, bytes: usize) {
        self.messages_sent += 1;
        self.bytes_sent += bytes as u64;
    }

    /// Counts a received message.
    pub fn received(&mut self, bytes: usize, seconds: f64) {
        self.messages_received += 1;
        self.bytes_received += bytes as u64;
        self.seconds_waited += seconds;
    }
}
