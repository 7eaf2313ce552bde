//! Messages between the ranks of a job, as JSON. All ranks run the same program, so the format is not versioned.

use messaging::CommunicationError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Encodes a message without paths.
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("numbers, text and lists of them are JSON")
}

/// Decodes the message of a rank.
pub(crate) fn decode<T: DeserializeOwned>(
    bytes: &[u8],
    rank: usize,
    expected: &str,
    is_valid: impl Fn(&T) -> bool,
) -> messaging::Result<T> {
    let message = serde_json::from_slice(bytes).ok().filter(is_valid);
    message.ok_or_else(|| {
        let found = format!("{:?}", String::from_utf8_lossy(bytes));
        CommunicationError::Unexpected { rank, expected: expected.to_owned(), found }
    })
}
