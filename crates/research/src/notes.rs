//! The hand-written part of a page of results, which is kept when the page is regenerated.

const BEGIN: &str = "<!-- written by hand, kept: begin -->";
const END: &str = "<!-- written by hand, kept: end -->";

/// The hand-written section of an `earlier` page, with a blank line before it; empty if it has none.
pub fn kept(earlier: &str) -> String {
    let after = earlier.split_once(BEGIN).map_or("", |(_, after)| after);
    section(after.split_once(END).map_or("", |(notes, _)| notes.trim()))
}

/// A section of these notes, as [`kept`] returns it.
pub fn section(notes: &str) -> String {
    if notes.is_empty() { String::new() } else { format!("\n{BEGIN}\n\n{notes}\n\n{END}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewriting_the_page_keeps_its_notes() {
        let page = |notes: &str| format!("# A page\n{notes}\n## Rows\n");
        assert_eq!(kept(&page("")), "");
        let first = page(&section("Why: because."));
        assert_eq!(first, format!("# A page\n\n{BEGIN}\n\nWhy: because.\n\n{END}\n\n## Rows\n"));
        assert_eq!(page(&kept(&first)), first);
    }
}
