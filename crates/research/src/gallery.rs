//! The page of the papers' figures: published numbers as marks, this project's engines as curves, the differences
//! in tables.

use maud::{Markup, html};
use sweetspot_experiment::plot::Origin;
use sweetspot_report::{Theme, cards, html_document, in_html, table_element};
use sweetspot_statistics::Sorted;

use crate::papers::{Figure, Paper, PublishedComparison};

/// Version, command and date of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageInfo {
    /// The command that reproduces the page.
    pub command: String,
    /// Sweetspot's version.
    pub version: String,
    /// When the page was made, UTC.
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
    let body = html! {
        header {
            p.brand { "sweetspot-research reproduce" }
            h1 { "The papers' figures, reproduced" }
            p {
                "Diamonds and dash-dotted lines are what the papers print in text and tables (their curves were not "
                "digitised), solid lines this project's packet simulator, dashed lines the papers' closed forms, open "
                "marks ns-2.35 on the same work. Colours and the marks' shapes tell the cases of one picture apart."
            }
            nav { @for figure in figures { a href={ "#" (figure.name) } { (figure.name) } " " } }
        }
        @for paper in papers {
            section {
                h2 { (paper.title()) }
                @for figure in figures.iter().filter(|figure| figure.paper == paper) { (figure_element(figure)) }
            }
        }
        section #about {
            h2 { "Reproduce" }
            pre { (page_info.command) }
            p.note {
                "Sweetspot " (page_info.version) ", " (page_info.date) "; " (page_info.took) ". Where many points share "
                "one pixel, the first, lowest, highest and last are drawn, so no peak is lost; arrows say how far "
                "values lie beyond a frame."
            }
        }
    };
    html_document("Sweetspot: the papers' figures, reproduced", &body, page_info.theme)
}

fn figure_element(figure: &Figure) -> Markup {
    let is_empty =
        figure.plots.is_empty() && figure.comparisons.is_empty() && figure.tables.is_empty();
    let is_open = figure.plots.is_empty() || figure.name.contains("table");
    html! {
        article id=(figure.name) {
            h3 { (figure.title) (agreement(&figure.comparisons)) }
            p { (in_html(&figure.about)) }
            @if is_empty {
                p { "Nothing to draw of it with this engine: leave --engine out, and the simulator runs it." }
            } @else {
                (cards(&figure.plots))
            }
            @if !figure.comparisons.is_empty() { (comparison_table(&figure.comparisons)) }
            @if !figure.tables.is_empty() {
                details open[is_open] {
                    summary { "The numbers" }
                    @for table in &figure.tables { (table_element(table)) }
                }
            }
        }
    }
}

/// The agreement of a figure with its paper as one number: the median distance from the printed values.
fn agreement(comparisons: &[PublishedComparison]) -> Markup {
    let distances: Sorted = comparisons.iter().filter_map(PublishedComparison::distance).collect();
    let Some(median) = distances.quantile(0.5) else { return Markup::default() };
    let median = format!("{:.1} %", median * 100.0);
    html! {
        " "
        span.by {
            @match distances.len() {
                1 => { (median) " from the one number printed" },
                count => { (median) " from " (count) " printed numbers, median" },
            }
        }
    }
}

fn comparison_table(comparisons: &[PublishedComparison]) -> Markup {
    let mut origins: Vec<Origin> = Vec::new();
    for ours in comparisons.iter().flat_map(|comparison| &comparison.ours) {
        if !origins.contains(&ours.origin) {
            origins.push(ours.origin);
        }
    }
    let cells = |comparison: &PublishedComparison, origin: &Origin| {
        let ours = comparison.ours.iter().find(|ours| ours.origin == *origin);
        let (value, deviation) =
            ours.map_or(("–", ""), |ours| (ours.value.as_str(), ours.deviation.as_str()));
        html! { td { (value) } td.by { (deviation) } }
    };
    html! {
        div.wide {
            table {
                thead {
                    tr {
                        th scope="col" { "published number" }
                        th scope="col" { "published" }
                        @for origin in &origins { th scope="col" { (origin.name()) } th scope="col" {} }
                    }
                }
                tbody {
                    @for comparison in comparisons {
                        tr {
                            th scope="row" { (comparison.what) ", " (comparison.unit) }
                            td { (comparison.published) }
                            @for origin in &origins { (cells(comparison, origin)) }
                        }
                    }
                }
            }
        }
    }
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

    /// From the simulator if it has a number, otherwise from theory; the median of 2, 4 and 10 % is 4.
    #[test]
    fn a_figures_agreement_is_the_median_deviation_of_its_numbers() {
        let some = [
            comparison(&[(Origin::Theory, "+50.0 %"), (Origin::Sim, "-2.0 %")]),
            comparison(&[(Origin::Theory, "+4.0 %"), (Origin::Sim, "")]),
            comparison(&[(Origin::Sim, "+10.0 %")]),
            comparison(&[(Origin::Sim, "")]),
        ];
        assert!(agreement(&some).0.contains(">4.0 % from 3 printed numbers, median<"));
        assert!(agreement(&some[..2]).0.contains(">3.0 % from 2"));
        assert!(agreement(&some[..1]).0.contains(">2.0 % from the one"));
        assert_eq!(agreement(&some[3..]).0, "");
    }
}
