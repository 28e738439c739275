use serde::Serialize;
use sweetspot_experiment::plot::{Plot, Table};
use sweetspot_statistics::Sorted;

/// A part of the page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sheet {
    /// The base name of its files, e.g. `sweep-goodput`.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// The sheet's subject, a line per paragraph.
    pub about: String,
    /// The pictures.
    pub plots: Vec<Plot>,
    /// The tables.
    pub tables: Vec<Table>,
}

/// `plot` with the horizontal axis limited to the range of its curves, because distributions need
/// no zero.
pub fn spread_out(mut plot: Plot) -> Plot {
    let across = plot.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
    let (low, high) =
        across.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if low < high {
        let room = 0.04 * (high - low);
        plot.x = plot.x.between(low - room, high + room);
    }
    plot
}

/// The title of a scenario, or a substitute if it is empty.
pub fn titled(scenario: &str) -> &str {
    if scenario.is_empty() { "Untitled scenario" } else { scenario }
}

/// The cumulative distribution of the finite values among `values`.
pub fn distribution(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    values.into_iter().filter(|value| value.is_finite()).collect::<Sorted>().distribution()
}

/// A picture's title: the quantity of an axis without its unit, and the form of the display.
pub fn picture_title(label: &str, how: &str) -> String {
    let quantity = label.split(',').next().unwrap_or(label);
    let mut letters = quantity.chars();
    let first = letters.next().map_or(String::new(), |letter| letter.to_uppercase().to_string());
    format!("{first}{}{how}", letters.as_str())
}

/// The form of a cumulative distribution, for a title.
pub const DISTRIBUTION: &str = ": share of values below";
