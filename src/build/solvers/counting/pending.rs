//! Set of places, removed 64 at a time in ascending order, cyclically.

/// Two-level bit set: words, and a bit for each nonzero word.
#[derive(Default)]
pub(crate) struct Pending {
    words: Vec<u64>,
    any: Vec<u64>,
    count: u64,
    /// First word to test next.
    next: usize,
}

impl Pending {
    /// Creates an empty set of places below `places`.
    pub(crate) fn new(places: usize) -> Pending {
        let words = places.div_ceil(64);
        Pending { words: vec![0; words], any: vec![0; words.div_ceil(64)], count: 0, next: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Inserts a place that is not in the set.
    #[inline]
    pub(crate) fn insert(&mut self, place: u32) {
        self.insert_all(place as usize / 64, 1 << (place % 64));
    }

    /// Inserts places of one word, none of which is in the set.
    pub(crate) fn insert_all(&mut self, word: usize, places: u64) {
        debug_assert_eq!(self.words[word] & places, 0);
        if places != 0 {
            self.words[word] |= places;
            self.any[word / 64] |= 1 << (word % 64);
            self.count += u64::from(places.count_ones());
        }
    }

    /// Removes the places of the next nonzero word, and returns the number of the word and its bits.
    pub(crate) fn take(&mut self) -> Option<(usize, u64)> {
        if self.count == 0 {
            return None;
        }
        let mut at = self.next / 64 % self.any.len();
        let mut found = self.any[at] & (u64::MAX << (self.next % 64));
        while found == 0 {
            at = (at + 1) % self.any.len();
            found = self.any[at];
        }
        let word = at * 64 + found.trailing_zeros() as usize;
        self.any[at] &= !(1 << (word % 64));
        self.next = word + 1;
        let places = std::mem::take(&mut self.words[word]);
        self.count -= u64::from(places.count_ones());
        Some((word, places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_inserted_place_is_taken_once() {
        let mut pending = Pending::new(64 * 64 * 3 + 1);
        let places = [0, 5, 63, 64, 4095, 4096, 9000, 64 * 64 * 3];
        for round in 0..3 {
            for &place in &places {
                pending.insert(place);
            }
            let mut out = Vec::new();
            while let Some((word, bits)) = pending.take() {
                out.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| word as u32 * 64 + bit));
                if word == 0 && round == 1 {
                    pending.insert_all(0, 1 << 9);
                    assert_eq!(pending.words[0], 1 << 9);
                    let before = std::mem::replace(&mut pending.next, 0);
                    assert_eq!(pending.take(), Some((0, 1 << 9)));
                    pending.next = before;
                }
            }
            out.sort_unstable();
            assert!(pending.is_empty() && out == places);
        }
    }
}
