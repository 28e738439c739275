//! A page of pictures and tables: one file, no network, readable on a phone and in dark mode.

mod typography;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sweetspot_diagnose::page::STACKS;
use sweetspot_experiment::plot::{Plot, Table};

use crate::chart;
use crate::svg::{escape, subscripts};
use crate::theme::Theme;
use typography::typographic;

/// Colours of a page on a dark screen.
const DARK: &str = "@media(prefers-color-scheme:dark){:root{--paper:#16171a;--card:#16171a;\
    --ink:#ecece8;--muted:#a2a29c;--grid:#2e3036;--link:#6cb8ea}}";

/// A self-contained page with its styles.
pub fn document(title: &str, body: &Markup, theme: Theme) -> String {
    let (scheme, dark) = match theme {
        Theme::Screen => ("light dark", DARK),
        Theme::Print => ("light", ""),
    };
    let styles = [include_str!("style.css"), STACKS, dark, &chart::page_style(theme)].concat();
    whole(title, scheme, styles, &html! { main { (body) } })
}

/// The HTML file of a page with its styles, for these colour schemes.
pub fn whole(title: &str, schemes: &str, styles: String, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content=(schemes);
                title { (title) }
                style { (PreEscaped(styles)) }
            }
            body { (body) }
        }
    };
    typographic(&page.into_string())
}

/// Pictures side by side, as many as fit.
pub fn cards(plots: &[Plot]) -> Markup {
    html! {
        @if !plots.is_empty() {
            div.cards { @for plot in plots { div.card { (PreEscaped(chart::element(plot))) } } }
        }
    }
}

/// Text with Markdown's `code` and *emphasis*, as HTML.
pub fn in_html(text: &str) -> Markup {
    let outside_code = |(i, part): (usize, &str)| match i % 2 {
        0 => subscripts(part, |base, below| format!("{base}<sub>{below}</sub>")),
        _ => part.to_owned(),
    };
    let escaped = escape(text);
    let parts: Vec<String> = escaped.split('`').enumerate().map(outside_code).collect();
    let mut html = parts.join("`");
    type Inside = fn(&str) -> String;
    let marks: [(&str, &str, Inside); 2] =
        [("`", "code", arguments_of), ("*", "em", str::to_owned)];
    for (mark, element, inside) in marks {
        let mut marked = String::new();
        for (i, part) in html.split(mark).enumerate() {
            if i % 2 == 1 {
                marked += &format!("<{element}>{}</{element}>", inside(part));
            } else {
                marked += part;
            }
        }
        html = marked;
    }
    PreEscaped(html)
}

/// A command that wraps between its arguments; one that is longer than a line wraps after commas.
pub fn command(text: &str) -> Markup {
    PreEscaped(arguments_of(&escape(text)))
}

fn arguments_of(escaped: &str) -> String {
    let argument = |word: &str| match word.contains(['-', ',', '/']) {
        true => format!("<span>{}</span>", word.replace(',', ",<wbr>")),
        false => word.to_owned(),
    };
    escaped.split(' ').map(argument).collect::<Vec<_>>().join(" ")
}

/// A table. On a phone, a row of many columns, or of columns with sentences, becomes a block, where each cell is beside its
/// heading. A table that is too wide scrolls.
pub fn table_element(table: &Table) -> Markup {
    const MAX_PHONE_COLUMNS: usize = 4;
    let class = |column| match column {
        0 => None,
        _ if is_prose(table, column) => Some("prose"),
        _ => is_words(table, column).then_some("words"),
    };
    let has_prose = (0..table.heads.len()).any(|column| is_prose(table, column));
    let stacks =
        (table.heads.len() + usize::from(has_prose) > MAX_PHONE_COLUMNS).then_some("stacks");
    let head = |column| table.heads.get(column).map_or("", String::as_str);
    html! {
        @if !table.title.is_empty() { p { (table.title) } }
        div.wide {
            table class=[stacks] {
                thead {
                    tr { @for (i, head) in table.heads.iter().enumerate() { th scope="col" class=[class(i)] { (head) } } }
                }
                tbody {
                    @for row in &table.rows {
                        tr { @for (i, cell) in row.iter().enumerate() { td class=[class(i)] data-label=[stacks.map(|_| head(i))] { (cell) } } }
                    }
                }
            }
        }
    }
}

/// Whether a column has sentences. They are left-aligned and may wrap; numbers are right-aligned on one line.
fn is_prose(table: &Table, column: usize) -> bool {
    const FEW_WORDS: usize = 32;
    let mut cells = table.rows.iter().filter_map(|row| row.get(column));
    column > 0 && cells.any(|cell| cell.chars().count() > FEW_WORDS && cell.contains(' '))
}

/// Whether a column has names and no numbers, and is therefore left-aligned.
fn is_words(table: &Table, column: usize) -> bool {
    let mut cells = table.rows.iter().filter_map(|row| row.get(column));
    cells.all(|cell| cell.starts_with(char::is_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_wraps_between_its_arguments() {
        let html = in_html("run `sweep @x --over a=1,2`").into_string();
        let expected = "run <code>sweep @x <span>--over</span> <span>a=1,<wbr>2</span></code>";
        assert_eq!(html, expected);
    }

    #[test]
    fn table_sentences_may_wrap_and_numbers_may_not() {
        let mut table = Table::new("", &["", "value", "how"]);
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        table.rows = vec![
            row(["rate", "49.8 Mbit/s to 50.2 Mbit/s", "by streams"]),
            row(["rtt", "40 ms", "dispersion of 13 streams sent faster than the link"]),
        ];
        let html = table_element(&table).into_string();
        assert!(html.contains("<td>49.8 Mbit/s to 50.2 Mbit/s</td>"), "{html}");
        assert!(html.contains(r#"<td class="prose">by streams</td>"#), "{html}");
        assert!(html.contains(r#"<th scope="col" class="prose">how</th>"#), "{html}");
    }

    #[test]
    fn a_four_column_table_stacks_on_a_phone_only_with_sentences() {
        let table = |how: &str| {
            let mut table = Table::new("", &["", "value", "bounds", "how"]);
            table.rows.push(["rate", "9", "8 to 10", how].map(str::to_owned).to_vec());
            table_element(&table).into_string()
        };
        assert!(!table("by streams").contains("stacks"));
        assert!(table("the fastest stream whose delays did not grow").contains("class=\"stacks\""));
    }

    #[test]
    fn names_are_left_aligned_and_numbers_right_aligned() {
        let mut table = Table::new("", &["buffer", "sizing", "rate"]);
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        table.rows = vec![row(["100pkt", "sobas", "9.5"]), row(["200pkt", "kernel", "–"])];
        let html = table_element(&table).into_string();
        assert!(html.contains(r#"<td class="words">sobas</td><td>9.5</td>"#), "{html}");
    }
}
