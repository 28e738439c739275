//! The page of the papers' figures: published numbers as marks, our engines as curves, the differences in tables.

use sweetspot_experiment::plot::Origin;
use sweetspot_report::{Theme, cards, escape, html_document, in_html, table_element};
use sweetspot_statistics::Sorted;

use crate::papers::{Figure, Paper, PublishedComparison};

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
    /// The theme of the picture.
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
<p class="brand">sweetspot-research reproduce</p>
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
    html_document("Sweetspot: the papers' figures, played again", &body, page_info.theme)
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

/// The agreement of a figure with its paper in one number: the median distance from the printed values.
fn agreement(comparisons: &[PublishedComparison]) -> String {
    let distances: Sorted = comparisons.iter().filter_map(PublishedComparison::distance).collect();
    let Some(median) = distances.quantile(0.5) else { return String::new() };
    let median = median * 100.0;
    match distances.len() {
        1 => format!(r#" <span class="by">{median:.1} % from the one number printed</span>"#),
        count => {
            format!(
                r#" <span class="by">{median:.1} % from {count} printed numbers, median</span>"#
            )
        }
    }
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

#[cfg(test)]
mod tests {
    use crate::papers::EngineValue;

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
