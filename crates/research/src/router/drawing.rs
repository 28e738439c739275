/// The data of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureData {
    /// The figure's name, such as `router-fig13`.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The x axis.
    pub x: FigureAxis,
    /// The y axis.
    pub y: FigureAxis,
    /// The curves.
    pub curves: Vec<FigureCurve>,
    /// Numbers printed in the paper.
    pub published: Vec<PublishedNumber>,
}

/// An axis of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FigureAxis {
    /// The quantity and its unit.
    pub label: &'static str,
    /// Whether the axis is logarithmic.
    pub logarithmic: bool,
}

/// Points joined by a line, sorted by x.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureCurve {
    /// Its label.
    pub label: String,
    /// Whether it was simulated rather than computed by a formula.
    pub simulated: bool,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// A number printed in the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedNumber {
    /// Its label.
    pub label: String,
    /// Its x value, if the paper gives one.
    pub x: Option<f64>,
    /// Its y value, if the paper gives one.
    pub y: Option<f64>,
}

impl FigureData {
    pub(super) fn new(
        name: &'static str,
        title: &'static str,
        x: FigureAxis,
        y: FigureAxis,
    ) -> FigureData {
        FigureData { name, title, x, y, curves: Vec::new(), published: Vec::new() }
    }

    pub(super) fn simulated(&mut self, label: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        self.add(label, true, points);
    }

    pub(super) fn formula(&mut self, label: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        self.add(label, false, points);
    }

    fn add(&mut self, label: &str, simulated: bool, points: impl IntoIterator<Item = (f64, f64)>) {
        let points: Vec<(f64, f64)> =
            points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        self.curves.push(FigureCurve { label: label.to_owned(), simulated, points });
    }

    pub(super) fn mark(&mut self, label: &str, x: Option<f64>, y: Option<f64>) {
        self.published.push(PublishedNumber { label: label.to_owned(), x, y });
    }
}

/// A linear axis.
pub(super) const fn straight(label: &'static str) -> FigureAxis {
    FigureAxis { label, logarithmic: false }
}

/// A logarithmic axis.
pub(super) const fn logarithmic(label: &'static str) -> FigureAxis {
    FigureAxis { label, logarithmic: true }
}
