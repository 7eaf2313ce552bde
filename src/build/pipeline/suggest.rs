//! Suggestions of a similar name.

/// Returns the candidate nearest to `word`, if it is near enough to be a typing error.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Truncates the word, since the cost is the product of both lengths.
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
    fn typing_errors_are_recognised_and_other_words_are_not() {
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
