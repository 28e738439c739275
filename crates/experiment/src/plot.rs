//! Plots and tables as data: curves, axes, and the origin of each number. Exporters draw them.

use serde::Serialize;
use sweetspot_statistics::Sorted;

/// The origin of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Published in a paper.
    Published,
    /// Computed by a closed form.
    Theory,
    /// Simulated by this project's simulator.
    Sim,
    /// Measured with this machine's kernel on an emulated path.
    Lab,
    /// Simulated by ns-2.35 with the same workload.
    Ns2,
    /// Recorded during a transfer or a run; the curve's label says which.
    Recorded,
}

impl Origin {
    /// The name in legends and tables.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Published => "published",
            Origin::Theory => "theory",
            Origin::Sim => "sim",
            Origin::Lab => "lab",
            Origin::Ns2 => "ns-2.35",
            Origin::Recorded => "recorded",
        }
    }
}

/// One axis of a [`Plot`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// The quantity and its unit.
    pub label: String,
    /// Whether the axis is logarithmic.
    pub logarithmic: bool,
    /// The minimum and maximum shown; `None`: the range of the data, on a linear axis with zero included.
    pub domain: Option<(f64, f64)>,
    /// Labels at 1, 2, 3 and so on, in place of numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl Axis {
    /// A linear axis over the range of the data.
    pub fn new(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), logarithmic: false, domain: None, names: Vec::new() }
    }

    /// The unit in its label, with a leading space: " kB" for "window, kB"; empty if the label has none.
    pub fn unit(&self) -> &str {
        let unit = self.label.rsplit_once(',').map_or("", |(_, unit)| unit);
        if unit.trim_start().contains(' ') { "" } else { unit }
    }

    /// This axis limited to a domain.
    pub fn between(self, min: f64, max: f64) -> Axis {
        Axis { domain: Some((min, max)), ..self }
    }

    /// An axis of named cases: the first is at 1.
    pub fn named(label: impl Into<String>, names: Vec<String>) -> Axis {
        let domain = Some((0.5, names.len() as f64 + 0.5));
        Axis { domain, names, ..Axis::new(label) }
    }

    /// This axis with a logarithmic scale.
    pub fn logarithmic(self) -> Axis {
        Axis { logarithmic: true, ..self }
    }
}

/// Points joined by a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// The label, e.g. `B_t = 313`.
    pub label: String,
    /// The origin of the numbers, which determines the line style.
    pub origin: Origin,
    /// Index of the colour; curves of one group share a colour.
    pub group: usize,
    /// The points, ordered by x.
    pub points: Vec<(f64, f64)>,
    /// Half-width of each point's confidence interval; empty if there is none.
    pub half_widths: Vec<f64>,
}

/// A published number, drawn as a mark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedMark {
    /// The quantity.
    pub label: String,
    /// Index of the colour, the same as its curves'.
    pub group: usize,
    /// Its position.
    pub place: MarkPosition,
}

/// The published coordinates of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkPosition {
    /// Both coordinates.
    Point(f64, f64),
    /// The y value only: a horizontal line.
    Level(f64),
    /// The x value only, or a range of x.
    Span(f64, f64),
    /// The time of an event.
    Moment(f64),
}

/// The distribution of values: a box from the first to the third quartile with the median marked, and
/// whiskers from the 5th to the 95th percentile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuantileBox {
    /// The sizing that the values belong to.
    pub label: String,
    /// Index of the colour, shared with the group's curves.
    pub group: usize,
    /// Position on the x axis.
    pub x: f64,
    /// The 5th, 25th, 50th, 75th and 95th percentile.
    pub quantiles: [f64; 5],
    /// Number of values.
    pub count: usize,
}

/// The shares of values that define a [`QuantileBox`]'s quantiles.
const BOX_SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

impl QuantileBox {
    /// The box of the finite values in `values`, at `x`; `None` if there are none.
    pub fn of(
        label: impl Into<String>,
        (group, x): (usize, f64),
        values: impl IntoIterator<Item = f64>,
    ) -> Option<QuantileBox> {
        let values: Sorted = values.into_iter().filter(|value| value.is_finite()).collect();
        let quantiles = values.quantiles(BOX_SHARES)?;
        Some(QuantileBox { label: label.into(), group, x, quantiles, count: values.len() })
    }
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plot {
    /// The difference from neighbouring plots in the same figure, e.g. `Q = 500`.
    pub title: String,
    /// The x axis.
    pub x: Axis,
    /// The y axis.
    pub y: Axis,
    /// A target range of x, with its name.
    pub band: Option<(String, f64, f64)>,
    /// The curves.
    pub curves: Vec<Curve>,
    /// The published marks.
    pub marks: Vec<PublishedMark>,
    /// The distributions, side by side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<QuantileBox>,
}

impl Plot {
    /// An empty plot.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Plot {
        let (curves, marks, boxes) = (Vec::new(), Vec::new(), Vec::new());
        Plot { title: title.into(), x, y, band: None, curves, marks, boxes }
    }

    /// Adds a curve, unless it has no points.
    pub fn curve(
        &mut self,
        label: impl Into<String>,
        origin: Origin,
        group: usize,
        points: Vec<(f64, f64)>,
    ) {
        if !points.is_empty() {
            let half_widths = Vec::new();
            self.curves.push(Curve { label: label.into(), origin, group, points, half_widths });
        }
    }

    /// Adds a published number.
    pub fn mark(&mut self, label: impl Into<String>, group: usize, place: MarkPosition) {
        self.marks.push(PublishedMark { label: label.into(), group, place });
    }
}

/// A table of text cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// The columns' names.
    pub heads: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new<S: AsRef<str>>(title: impl Into<String>, heads: &[S]) -> Table {
        let heads = heads.iter().map(|head| head.as_ref().to_owned()).collect();
        Table { title: title.into(), heads, rows: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::QuantileBox;

    /// The values 0, 1, ... 100 are their own percentiles, in any order.
    #[test]
    fn values_0_to_100_are_their_own_percentiles() {
        let values = (0..=100).map(|i| f64::from((i * 37) % 101));
        let found = QuantileBox::of("", (0, 1.0), values).unwrap();
        let differences = found.quantiles.iter().zip([5.0, 25.0, 50.0, 75.0, 95.0]);
        assert!(
            differences.into_iter().all(|(found, due)| (found - due).abs() < 1e-9),
            "{found:?}"
        );
        assert_eq!(found.count, 101);
    }

    #[test]
    fn quantiles_interpolate_and_need_at_least_one_value() {
        let found = QuantileBox::of("", (0, 1.0), [20.0, f64::NAN, 10.0]).unwrap();
        assert_eq!(found.quantiles, [10.5, 12.5, 15.0, 17.5, 19.5]);
        assert_eq!(QuantileBox::of("", (0, 1.0), [f64::NAN]), None);
    }
}
