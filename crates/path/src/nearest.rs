//! Suggestions for misspelt words.

/// The candidate most similar to `word`: one that contains it or is contained in it, or one within
/// a Levenshtein distance of a third of the word. `None` if there is none.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let scored = candidates.into_iter().filter_map(|candidate| {
        let lower = candidate.to_lowercase();
        let distance = distance(&word, &lower);
        let related = word.len() >= 3 && (lower.contains(&word) || word.contains(&lower));
        let close = distance <= word.chars().count().max(lower.chars().count()).div_ceil(3);
        (related || close).then_some((distance, candidate))
    });
    scored.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// The nearest candidate as a question in parentheses, for the end of a message about `word`; empty if
/// there is none.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or(String::new(), |near| format!(" (did you mean {near}?)"))
}

/// Whether `word` differs from `meant` by one letter, or by the order of its letters.
pub fn is_slip_of(word: &str, meant: &str) -> bool {
    let sorted = |word: &str| {
        let mut letters: Vec<char> = word.to_lowercase().chars().collect();
        letters.sort_unstable();
        letters
    };
    distance(word, meant) <= 1 || sorted(word) == sorted(meant)
}

/// Number of letters inserted, deleted or replaced to turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = corner + usize::from(letter != *other);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshtein_distances() {
        // kitten -> sitten -> sittin -> sitting.
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }

    #[test]
    fn a_typo_finds_its_word_and_nonsense_finds_none() {
        let words = ["buffer", "rate", "rtt"];
        assert_eq!(nearest("bufer", words), Some("buffer"));
        assert_eq!(nearest("Rate", words), Some("rate"));
        assert_eq!(nearest("xylophone", words), None);
    }
}
