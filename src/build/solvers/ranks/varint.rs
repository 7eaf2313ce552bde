//! Variable-length encoding of numbers in messages: seven bits a byte, lowest first.

/// Error of a message that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Appends a number.
#[inline]
pub(crate) fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends the difference of a number from the one before, zigzag-encoded so that small differences are short.
pub(crate) fn push_gap(bytes: &mut Vec<u8>, before: u64, number: u64) {
    let gap = number.wrapping_sub(before) as i64;
    push(bytes, (gap << 1 ^ gap >> 63) as u64);
}

/// Decodes a number that [`push`] appended.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    match **bytes {
        // Most numbers take one byte.
        [byte, ref rest @ ..] if byte < 0x80 => {
            *bytes = rest;
            Ok(byte.into())
        }
        _ => take_long(bytes),
    }
}

fn take_long(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let [byte] = *take_bytes(bytes)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Malformed)
}

/// Decodes a number that [`push_gap`] appended.
pub(crate) fn take_gap(bytes: &mut &[u8], before: u64) -> Result<u64, Malformed> {
    let gap = take(bytes)?;
    Ok(before.wrapping_add(gap >> 1 ^ (gap & 1).wrapping_neg()))
}

/// Takes `N` bytes.
pub(crate) fn take_bytes<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N], Malformed> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
    *bytes = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_numbers_are_taken_back() {
        let numbers = [0, 1, 127, 128, u64::from(u32::MAX), 1 << 62, u64::MAX, u64::MAX - 1, 5];
        let (mut bytes, mut before) = (Vec::new(), 0);
        for number in numbers {
            push(&mut bytes, number);
            push_gap(&mut bytes, before, number);
            before = number;
        }
        let (mut rest, mut before) = (&bytes[..], 0);
        for number in numbers {
            assert_eq!(take(&mut rest), Ok(number));
            before = take_gap(&mut rest, before).unwrap();
            assert_eq!(before, number);
        }
        assert!(rest.is_empty());
        assert_eq!(take(&mut rest), Err(Malformed));
        assert_eq!(take(&mut &[0xff; 11][..]), Err(Malformed));
    }
}
