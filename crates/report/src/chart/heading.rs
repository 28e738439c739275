use std::fmt::Write;

use sweetspot_experiment::plot::Plot;

use crate::svg::typeset;

/// The text above the frame, and its height.
pub struct Heading {
    /// The elements.
    pub svg: String,
    /// SVG units, down to the frame.
    pub height: f64,
}

const HEADING_LINE_HEIGHT: f64 = 14.0;
/// Width of an average bold letter of 11 units, with some room to spare.
const HEADING_CHAR_WIDTH: f64 = 6.6;
const LEFT: f64 = 4.0;

/// The title, in as many rows as it needs, and below it the name of the axis upwards.
pub fn draw(plot: &Plot, width: f64) -> Heading {
    let mut svg = String::new();
    let mut y = 2.0;
    let mut row = |class: &str, words: &str| {
        y += HEADING_LINE_HEIGHT;
        let _ =
            write!(svg, r#"<text class="{class}" x="{LEFT}" y="{y:.1}">{}</text>"#, typeset(words));
    };
    for line in wrapped(&plot.title, ((width - 2.0 * LEFT) / HEADING_CHAR_WIDTH) as usize) {
        row("title", &line);
    }
    row("num", &plot.y.label);
    Heading { svg, height: y + 8.0 }
}

/// `text` in lines of at most `letters`, broken between words; a longer word has a line of its own.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
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
    fn no_word_is_lost_and_no_line_is_too_long() {
        assert_eq!(wrapped("loss for Gamma = 0.1", 10), ["loss for", "Gamma =", "0.1"]);
    }

    #[test]
    fn a_word_longer_than_the_line_stands_alone() {
        assert_eq!(wrapped("a throughput b", 5), ["a", "throughput", "b"]);
    }

    #[test]
    fn no_title_needs_no_line() {
        assert!(wrapped("", 10).is_empty());
    }
}
