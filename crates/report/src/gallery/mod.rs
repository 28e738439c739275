//! The page of the papers' figures: published numbers as marks, our engines as curves, the
//! differences in tables. One file, no network, readable on a phone and in dark mode.

use sweetspot_study::papers::{Figure, Paper, PublishedComparison};
use sweetspot_study::plot::{Origin, Plot, Table};

use crate::chart;
use crate::svg::{escape, subscripts};
use crate::theme::Theme;

/// Version, command and date of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageInfo {
    /// The command that repeats this.
    pub command: String,
    /// Sweetspot's version.
    pub version: String,
    /// When it was made, UTC.
    pub date: String,
    /// How long the runs took, in words.
    pub took: String,
    /// What it is made for.
    pub theme: Theme,
}

/// The whole page.
pub fn gallery(figures: &[Figure], page_info: &PageInfo) -> String {
    let mut papers: Vec<Paper> = Vec::new();
    for figure in figures {
        if !papers.contains(&figure.paper) {
            papers.push(figure.paper);
        }
    }
    let sections: String = papers.iter().map(|paper| section(*paper, figures)).collect();
    let contents: String =
        figures.iter().map(|figure| format!("<a href=\"#{0}\">{0}</a> ", figure.name)).collect();
    let body = format!(
        r#"<header>
<p class="brand">sweetspot reproduce</p>
<h1>The papers' figures, played again</h1>
<p>Diamonds and dash-dotted lines are what the papers print in text and tables (their curves were not
digitised), solid lines this project's packet simulator, dashed lines the papers' closed forms, open
marks ns-2.35 on the same work. Colours and the marks' shapes tell the cases of one picture apart.</p>
<nav>{contents}</nav>
</header>
{sections}
<section id="about">
<h2>Do it again</h2>
<pre>{command}</pre>
<p class="note">Sweetspot {version}, {date}; {took}. Of all points in one unit's width of a picture the
first, lowest, highest and last are drawn, so no peak is lost; arrows say how far values lie beyond a
frame.</p>
</section>"#,
        command = escape(&page_info.command),
        version = escape(&page_info.version),
        date = escape(&page_info.date),
        took = escape(&page_info.took),
    );
    document("Sweetspot: the papers' figures, played again", &body, page_info.theme)
}

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

fn section(paper: Paper, figures: &[Figure]) -> String {
    let figures: String =
        figures.iter().filter(|figure| figure.paper == paper).map(figure_element).collect();
    format!("<section><h2>{}</h2>{figures}</section>", escape(paper.title()))
}

fn figure_element(figure: &Figure) -> String {
    let mut charts = cards(&figure.plots);
    if figure.plots.is_empty() && figure.comparisons.is_empty() && figure.tables.is_empty() {
        charts = "<p>Nothing to draw of it with this engine: leave --engine out, and the simulator plays it.</p>".to_owned();
    }
    let compared = match figure.comparisons.as_slice() {
        [] => String::new(),
        comparisons => comparison_table(comparisons),
    };
    let tables: String = figure.tables.iter().map(table_element).collect();
    let folded = if tables.is_empty() {
        String::new()
    } else {
        let open =
            if figure.plots.is_empty() || figure.name.contains("table") { " open" } else { "" };
        format!("<details{open}><summary>The numbers</summary>{tables}</details>")
    };
    format!(
        r#"<article id="{}"><h3>{}{}</h3><p>{}</p>{charts}{compared}{folded}</article>"#,
        figure.name,
        escape(figure.title),
        agreement(&figure.comparisons),
        in_html(&figure.about),
    )
}

/// The agreement of a figure with its paper in one number: the median distance from what is printed.
fn agreement(comparisons: &[PublishedComparison]) -> String {
    let mut distances: Vec<f64> =
        comparisons.iter().filter_map(PublishedComparison::distance).collect();
    distances.sort_by(f64::total_cmp);
    let (Some(lower), Some(upper)) =
        (distances.get(distances.len().saturating_sub(1) / 2), distances.get(distances.len() / 2))
    else {
        return String::new();
    };
    let median = f64::midpoint(*lower, *upper) * 100.0;
    match distances.len() {
        1 => format!(r#" <span class="by">{median:.1} % from the one number printed</span>"#),
        count => {
            format!(
                r#" <span class="by">{median:.1} % from {count} printed numbers, median</span>"#
            )
        }
    }
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

fn comparison_table(comparisons: &[PublishedComparison]) -> String {
    let mut origins: Vec<Origin> = Vec::new();
    for ours in comparisons.iter().flat_map(|comparison| &comparison.ours) {
        if !origins.contains(&ours.origin) {
            origins.push(ours.origin);
        }
    }
    let heads: String = origins
        .iter()
        .map(|origin| format!("<th scope=\"col\">{}</th><th scope=\"col\"></th>", origin.name()))
        .collect();
    let mut rows = String::new();
    for comparison in comparisons {
        let mut cells = String::new();
        for origin in &origins {
            let ours = comparison.ours.iter().find(|ours| ours.origin == *origin);
            let (value, deviation) =
                ours.map_or(("–", ""), |ours| (ours.value.as_str(), ours.deviation.as_str()));
            cells +=
                &format!("<td>{}</td><td class=\"by\">{}</td>", escape(value), escape(deviation));
        }
        rows += &format!(
            "<tr><th scope=\"row\">{}, {}</th><td>{}</td>{cells}</tr>",
            escape(&comparison.what),
            escape(comparison.unit),
            escape(comparison.published),
        );
    }
    format!(
        r#"<div class="wide"><table><thead><tr><th scope="col">published number</th><th scope="col">published</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"#
    )
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
    use sweetspot_study::papers::EngineValue;

    use super::*;

    fn comparison(deviations: &[(Origin, &str)]) -> PublishedComparison {
        let value = |(origin, deviation): &(Origin, &str)| EngineValue {
            origin: *origin,
            value: String::new(),
            deviation: (*deviation).to_owned(),
        };
        PublishedComparison {
            what: String::new(),
            unit: "",
            published: "",
            ours: deviations.iter().map(value).collect(),
        }
    }

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

    /// By the simulator where it has a number, else by theory; 2, 4 and 10 % have 4 in their middle.
    #[test]
    fn a_figures_agreement_is_the_median_distance_of_its_numbers() {
        let some = [
            comparison(&[(Origin::Theory, "+50.0 %"), (Origin::Sim, "-2.0 %")]),
            comparison(&[(Origin::Theory, "+4.0 %"), (Origin::Sim, "")]),
            comparison(&[(Origin::Sim, "+10.0 %")]),
            comparison(&[(Origin::Sim, "")]),
        ];
        assert!(agreement(&some).contains(">4.0 % from 3 printed numbers, median<"));
        assert!(agreement(&some[..2]).contains(">3.0 % from 2"));
        assert!(agreement(&some[..1]).contains(">2.0 % from the one"));
        assert_eq!(agreement(&some[3..]), "");
    }
}
