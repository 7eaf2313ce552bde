//! The methods that solve a database.

use game::Rules;
use std::str::FromStr;

/// Algorithm that solves a database. All algorithms give the same scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Method {
    /// Counts of undecided children (Bal & Allis 1995).
    Counting,
    /// A byte a position, swept until nothing changes.
    Sweep,
    /// Bound after bound, two bits a position in memory (Romein & Bal 2002).
    TwoBit,
    /// Bound after bound, one bit a position in memory (Lincke 2002, section 2.4).
    OneBit,
    /// Bound after bound, a cache of bits in memory (Lincke 2002, section 2.5).
    OneBitDual,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 5] = [Method::Counting, Method::Sweep, Method::TwoBit, Method::OneBit, Method::OneBitDual];

    /// Returns the name in manifests.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Returns why the method cannot solve databases by some rules; `None` if it can.
    pub fn refusal(self, rules: &Rules) -> Option<&'static str> {
        match self {
            _ if rules.has_scores() => None,
            Method::Sweep => None,
            Method::Counting => {
                Some("a count of undecided moves ends at one score, and a board has two bounds by these rules")
            }
            Method::TwoBit | Method::OneBit | Method::OneBitDual => {
                Some("it decides each position at one score, and a board has two bounds by these rules")
            }
        }
    }

    /// Whether the method solves bound after bound, through planes.
    pub const fn has_bounds(self) -> bool {
        matches!(self, Method::TwoBit | Method::OneBit | Method::OneBitDual)
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Method, String> {
        Method::ALL.into_iter().find(|method| method.word() == text).ok_or_else(|| format!("`{text}` is not a method"))
    }
}
