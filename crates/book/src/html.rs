//! The parts of a page that are relevant to links. mdBook writes attributes as ` name="value"`, and escapes quotes
//! in text.

/// The values of all attributes with this name, except in scripts.
pub fn attributes<'a>(page: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {name}=\"");
    let outside = page.split("<script").enumerate().map(|(i, part)| match i {
        0 => part,
        _ => part.split_once("</script>").map_or("", |(_, after)| after),
    });
    outside.flat_map(move |part| {
        let values: Vec<&str> = part.split(&start).skip(1).collect();
        values.into_iter().filter_map(|value| value.split('"').next())
    })
}

#[cfg(test)]
mod tests {
    use super::attributes;

    #[test]
    fn links_inside_a_script_are_ignored() {
        let page = r#"<a href="one"></a><script src="s"> x = ' href="two"'</script><a class="c" href="three">"#;
        assert_eq!(attributes(page, "href").collect::<Vec<_>>(), ["one", "three"]);
    }

    #[test]
    fn escaped_markup_in_code_is_not_a_link() {
        let page = "<code>&lt;a href=&quot;one&quot;&gt;</code>";
        assert_eq!(attributes(page, "href").count(), 0);
    }
}
