//! The algorithms that solve a database from its best captures. All make the same bytes.

use std::fmt;

/// How a database is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Decided positions tell their parents, bound by bound (Bal & Allis 1995).
    Counting,
    /// A byte a position, swept until nothing changes.
    Sweep,
    /// Two bits a position in memory, planes on disk (Romein & Bal 2002).
    TwoBit,
    /// One bit a position in memory (Lincke 2002, chapter 2).
    OneBit,
    /// No bit a position in memory: the bits are on disk behind a cache (Lincke 2002, chapter 2).
    OneBitDual,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 5] = [Method::Counting, Method::Sweep, Method::TwoBit, Method::OneBit, Method::OneBitDual];

    /// The method of this name.
    pub fn by_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The word for it in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Counting => "counting",
            Method::Sweep => "sweep",
            Method::TwoBit => "two-bit",
            Method::OneBit => "one-bit",
            Method::OneBitDual => "one-bit-dual",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
