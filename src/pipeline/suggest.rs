//! "Did you mean": the nearest of the names that would have been right.

/// The candidate nearest to `word`, if one is near enough to be a slip of the finger.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A hostile word costs its length times that of each candidate.
    let word: String = word.chars().take(100).flat_map(char::to_lowercase).collect();
    let distance_max = (word.chars().count() / 3).clamp(1, 3);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let names = ["stones", "method", "memory", "threads"];
        let check = |word, expect| assert_eq!(nearest(word, names.into_iter()), expect, "{word}");
        check("stone", Some("stones"));
        check("Stones", Some("stones"));
        check("metohd", Some("method"));
        check("treads", Some("threads"));
        check("codec", None);
        check("", None);
    }
}
