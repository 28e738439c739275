//! A page of pictures and tables: one file, no network, readable on a phone and in dark mode.

use sweetspot_experiment::plot::{Plot, Table};

use crate::chart;
use crate::svg::{escape, subscripts};
use crate::theme::Theme;

/// Colours of a page on a dark screen.
const DARK: &str = "@media(prefers-color-scheme:dark){:root{--paper:#16171a;--card:#16171a;\
    --ink:#ecece8;--muted:#a2a29c;--grid:#2e3036;--link:#6cb8ea}}";

/// A page with its styles, and nothing from elsewhere.
pub fn document(title: &str, body: &str, theme: Theme) -> String {
    let (scheme, dark) = match theme {
        Theme::Screen => ("light dark", DARK),
        Theme::Print => ("light", ""),
    };
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="{scheme}">
<title>{title}</title>
<style>{style}{dark}{charts}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"#,
        title = escape(title),
        style = include_str!("style.css"),
        charts = chart::page_style(theme),
    )
}

/// Pictures side by side, as many as there is room for.
pub fn cards(plots: &[Plot]) -> String {
    if plots.is_empty() {
        return String::new();
    }
    let card = |plot: &Plot| format!(r#"<div class="card">{}</div>"#, chart::element(plot));
    format!(r#"<div class="cards">{}</div>"#, plots.iter().map(card).collect::<String>())
}

/// A text with `code` and *emphasis* as Markdown writes them.
pub fn in_html(text: &str) -> String {
    let outside_code = |(i, part): (usize, &str)| match i % 2 {
        0 => subscripts(part, |base, below| format!("{base}<sub>{below}</sub>")),
        _ => part.to_owned(),
    };
    let escaped = escape(text);
    let parts: Vec<String> = escaped.split('`').enumerate().map(outside_code).collect();
    let mut html = parts.join("`");
    for (mark, element) in [("`", "code"), ("*", "em")] {
        let mut marked = String::new();
        for (i, part) in html.split(mark).enumerate() {
            if i % 2 == 1 {
                marked += &format!("<{element}>{part}</{element}>");
            } else {
                marked += part;
            }
        }
        html = marked;
    }
    html
}

/// A table that scrolls within the page where it is wider.
pub fn table_element(table: &Table) -> String {
    let cell = |(place, text): (usize, &String), tag: &str| {
        let class = if is_prose(table, place) { r#" class="prose""# } else { "" };
        let name = tag.split(' ').next().unwrap_or(tag);
        format!("<{tag}{class}>{}</{name}>", escape(text))
    };
    let row = |cells: &[String], tag: &str| -> String {
        cells.iter().enumerate().map(|at| cell(at, tag)).collect()
    };
    let heads = row(&table.heads, r#"th scope="col""#);
    let rows: String =
        table.rows.iter().map(|cells| format!("<tr>{}</tr>", row(cells, "td"))).collect();
    let title = match table.title.as_str() {
        "" => String::new(),
        title => format!("<p>{}</p>", escape(title)),
    };
    format!(
        r#"{title}<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"#
    )
}

/// Whether sentences stand in a column: they begin at the left and may be broken, where numbers stand at the right on one
/// line.
fn is_prose(table: &Table, column: usize) -> bool {
    const FEW_WORDS: usize = 32;
    let mut cells = table.rows.iter().filter_map(|row| row.get(column));
    column > 0 && cells.any(|cell| cell.chars().count() > FEW_WORDS && cell.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_in_a_table_may_be_broken_and_numbers_may_not() {
        let mut table = Table::new("", &["", "value", "how"]);
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        table.rows = vec![
            row(["rate", "49.8 Mbit/s to 50.2 Mbit/s", "by streams"]),
            row(["rtt", "40 ms", "dispersion of 13 streams sent faster than the link"]),
        ];
        let html = table_element(&table);
        assert!(html.contains("<td>49.8 Mbit/s to 50.2 Mbit/s</td>"), "{html}");
        assert!(html.contains(r#"<td class="prose">by streams</td>"#), "{html}");
        assert!(html.contains(r#"<th scope="col" class="prose">how</th>"#), "{html}");
    }
}
