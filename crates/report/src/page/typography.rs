//! Typography of a page, which terminals and data files do without.

/// Elements with verbatim text.
const VERBATIM: [&str; 4] = ["script", "style", "code", "pre"];

/// Units that follow a number.
const UNITS: [&str; 24] = [
    "%", "s", "ms", "us", "ns", "min", "h", "B", "kB", "MB", "GB", "TB", "bit/s", "kbit/s",
    "Mbit/s", "Gbit/s", "Tbit/s", "pkt", "packet", "packets", "segments", "seeds", "BDP", "times",
];

/// `html` with no-break spaces between numbers and units, true minus signs, and "µs".
pub fn typographic(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((text, after)) = rest.split_once('<') {
        out += &of_text(text);
        let name = after.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
        let end = match VERBATIM.contains(&name) {
            true => after.find(&format!("</{name}")).unwrap_or(after.len()),
            false => after.find('>').map_or(after.len(), |end| end + 1),
        };
        out.push('<');
        out += &after[..end];
        rest = &after[end..];
    }
    out + &of_text(rest)
}

fn of_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, word) in text.split(' ').enumerate() {
        let unit = word.split(|c: char| !(c.is_alphanumeric() || "/%".contains(c))).next();
        let unit = unit.filter(|unit| i > 0 && UNITS.contains(unit) && out.ends_with(is_digit));
        if i > 0 {
            out.push(if unit.is_some() { '\u{a0}' } else { ' ' });
        }
        let number =
            word.trim_start_matches('(').strip_prefix('-').filter(|n| n.starts_with(is_digit));
        match (unit, number) {
            (Some("us"), _) => out += &word.replacen("us", "µs", 1),
            (_, Some(_)) => out += &word.replacen('-', "−", 1),
            _ => out += word,
        }
    }
    out
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_stays_with_its_number() {
        let set = typographic("<h1>96 % at 4.82 MB, 30 us; 5 seconds (20 ms)</h1>");
        assert_eq!(set, "<h1>96\u{a0}% at 4.82\u{a0}MB, 30\u{a0}µs; 5 seconds (20\u{a0}ms)</h1>");
    }

    #[test]
    fn a_minus_sign_differs_from_a_hyphen() {
        let set = typographic("<td>-3.44</td><p>(-9 ms) low-rate 2026-12-01 -x</p>");
        assert_eq!(set, "<td>−3.44</td><p>(−9\u{a0}ms) low-rate 2026-12-01 -x</p>");
    }

    #[test]
    fn attributes_commands_and_scripts_stay_unchanged() {
        let html = r#"<a title="5 ms"></a><code>head -5 <b>5 ms</b></code><script>if (a<b) f(-1, "5 ms")</script>"#;
        assert_eq!(typographic(html), html);
        assert_eq!(typographic(&format!("{html}5 ms")), format!("{html}5\u{a0}ms"));
    }
}
