//! Sizes of memory and disk.

use std::fmt;
use std::str::FromStr;

/// A limit in bytes.
///
/// Parses `512 MiB`, `2GiB`, `1.5 GiB`, `2 GB` (decimal) or a bare number of bytes. Displays as text that parses to the
/// same value, in the largest binary unit in which it is a whole number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Budget(u64);

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// The number is missing, or the unit is unknown.
    #[error("{0:?} is not a size; write \"512 MiB\" or \"2 GiB\", for example")]
    Syntax(String),
    /// The size exceeds 64 bits.
    #[error("{0:?} exceeds the largest supported size (64 bits)")]
    TooLarge(String),
}

const UNITS: [(&str, u64); 13] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
];

impl Budget {
    /// Makes a budget.
    pub fn new(bytes: u64) -> Self {
        Budget(bytes)
    }

    /// Returns the limit in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// Whether `bytes` are within the limit.
    pub fn fits(self, bytes: u64) -> bool {
        bytes <= self.0
    }

    /// Formats a size for people: three digits and a unit.
    pub fn show(bytes: u64) -> String {
        let Some((unit, size)) = UNITS[..4].iter().find(|(_, size)| bytes >= *size) else {
            return format!("{bytes} B");
        };
        let value = bytes as f64 / *size as f64;
        match value {
            v if bytes.is_multiple_of(*size) => format!("{v:.0} {unit}"),
            v if v < 9.995 => format!("{v:.2} {unit}"),
            v if v < 99.95 => format!("{v:.1} {unit}"),
            v => format!("{v:.0} {unit}"),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) =
            UNITS[..4].iter().find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size)).unwrap_or(&("B", 1));
        f.pad(&format!("{} {unit}", self.0 / size))
    }
}

impl FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let shown = || text.chars().take(60).collect::<String>();
        let syntax = || BudgetError::Syntax(shown());
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let number = number.replace('_', "");
        let unit = unit.trim_start();
        let size = if unit.is_empty() {
            1
        } else {
            let known = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
            known.ok_or_else(syntax)?.1
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        let is_number = !whole.is_empty()
            && whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
            && (fraction.is_empty() != number.contains('.'))
            && (fraction.is_empty() || size > 1)
            && fraction.len() <= 9;
        if !is_number {
            return Err(syntax());
        }
        // Integers throughout: a float would lose bytes above 2^53.
        let too_large = || BudgetError::TooLarge(shown());
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let bytes = whole.checked_mul(size).ok_or_else(too_large)?;
        let part = match fraction.parse::<u64>() {
            Ok(value) => {
                let scale = 10u128.pow(fraction.len() as u32);
                (u128::from(value) * u128::from(size) / scale) as u64 // below `size`
            }
            Err(_) => 0, // no fraction
        };
        bytes.checked_add(part).map(Budget).ok_or_else(too_large)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let check = |text: &str, bytes: u64| {
            assert_eq!(text.parse::<Budget>().unwrap(), Budget(bytes), "{text}");
        };
        check("512 MiB", 512 << 20);
        check("2GiB", 2 << 30);
        check("1.5 GiB", 3 << 29);
        check(" 2 gib ", 2 << 30);
        check("2 GB", 2_000_000_000);
        check("3M", 3 << 20);
        check("1_000", 1000);
        check("0", 0);
        check("18446744073709551615", u64::MAX);
        check("16383.5 TiB", (16383 << 40) + (1 << 39));
        for bad in [
            "",
            " ",
            "MiB",
            "2 XiB",
            "1.5",
            "1.",
            ".5 GiB",
            "1.2.3 GiB",
            "-1",
            "2 GiB 3",
            "1e9",
            "0.1234567890 GiB",
            "two",
        ] {
            let error = bad.parse::<Budget>().unwrap_err();
            assert!(matches!(error, BudgetError::Syntax(_)), "{bad}");
        }
        for large in ["18446744073709551616", "16777216 TiB", "99999999999999 TiB"] {
            let error = large.parse::<Budget>().unwrap_err();
            assert!(matches!(error, BudgetError::TooLarge(_)), "{large}");
        }
    }

    #[test]
    fn printing_is_exact_and_parses_back() {
        let check = |bytes: u64, expect: &str| {
            assert_eq!(Budget(bytes).to_string(), expect);
            assert_eq!(expect.parse::<Budget>().unwrap(), Budget(bytes));
        };
        check(2 << 30, "2 GiB");
        check(3 << 29, "1536 MiB");
        check(1, "1 B");
        check(0, "0 B");
        check(1025, "1025 B");
        check(u64::MAX, "18446744073709551615 B");
    }

    #[test]
    fn showing_is_short() {
        let check = |bytes: u64, expect: &str| assert_eq!(Budget::show(bytes), expect);
        check(0, "0 B");
        check(1023, "1023 B");
        check(1024, "1 KiB");
        check(1234, "1.21 KiB");
        check(3 << 29, "1.50 GiB");
        check(123_456_789, "118 MiB");
        check(u64::MAX, "16777216 TiB");
    }
}
