//! Binomial coefficients.

/// `n` over `k`; zero where `k > n`.
///
/// # Panics
/// When the result does not fit in 64 bits, which no argument that an index of 48 stones uses reaches.
pub const fn binomial(n: u32, k: u32) -> u64 {
    if k > n {
        return 0;
    }
    let mut result: u128 = 1;
    let mut i = 0;
    while i < k {
        result = result * (n - i) as u128 / (i + 1) as u128;
        i += 1;
    }
    assert!(result <= u64::MAX as u128, "binomial coefficient exceeds 64 bits");
    result as u64
}

#[cfg(test)]
mod tests {
    use super::binomial;

    #[test]
    fn pascal() {
        for n in 1..59 {
            for k in 1..=n.min(11) {
                assert_eq!(binomial(n, k), binomial(n - 1, k - 1) + binomial(n - 1, k));
            }
        }
    }

    #[test]
    fn edges() {
        for n in 0..60 {
            assert_eq!((binomial(n, 0), binomial(n, 1), binomial(n, n + 1)), (1, u64::from(n), 0));
        }
        // Positions with 24 stones, and halves with 48.
        assert_eq!((binomial(35, 11), binomial(53, 5)), (417_225_900, 2_869_685));
    }
}
