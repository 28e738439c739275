/// Wraps `text` at words into lines of at most `width` characters; a longer word has its own line.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.extend([" ", word]);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn wrapping_loses_no_word_and_keeps_lines_within_the_width() {
        assert_eq!(wrapped("loss for Gamma = 0.1", 10), ["loss for", "Gamma =", "0.1"]);
    }

    #[test]
    fn a_word_longer_than_the_line_gets_its_own_line() {
        assert_eq!(wrapped("a throughput b", 5), ["a", "throughput", "b"]);
    }

    #[test]
    fn an_empty_title_has_no_lines() {
        assert!(wrapped("", 10).is_empty());
    }
}
