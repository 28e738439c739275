/// A straight line, fitted to points by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Its value at 0.
    pub intercept: f64,
    /// How much it rises per unit.
    pub slope: f64,
    /// The mean x of the points.
    pub mean_x: f64,
    /// The sum of the squares of the points' distances from that mean, by weight.
    pub squares_x: f64,
}

impl Line {
    /// The line through points (x, y, weight); `None` where they do not lie at two places or more.
    pub fn weighted(points: &[(f64, f64, f64)]) -> Option<Line> {
        let total: f64 = points.iter().map(|(.., w)| w).sum();
        if total <= 0.0 || points.iter().all(|(x, ..)| *x == points[0].0) {
            return None;
        }
        let mean_x = points.iter().map(|(x, _, w)| x * w).sum::<f64>() / total;
        let mean_y = points.iter().map(|(_, y, w)| y * w).sum::<f64>() / total;
        let squares_x: f64 = points.iter().map(|(x, _, w)| w * (x - mean_x) * (x - mean_x)).sum();
        if squares_x <= 0.0 {
            return None;
        }
        let joint: f64 = points.iter().map(|(x, y, w)| w * (x - mean_x) * (y - mean_y)).sum();
        let slope = joint / squares_x;
        Some(Line { intercept: mean_y - slope * mean_x, slope, mean_x, squares_x })
    }

    /// The line through points (x, y) of equal weight; `None` where they do not lie at two places or more.
    pub fn through(points: &[(f64, f64)]) -> Option<Line> {
        Line::weighted(&points.iter().map(|(x, y)| (*x, *y, 1.0)).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_through_points_of_a_line_is_that_line() {
        let points: Vec<_> =
            (0..9).map(|x| (f64::from(x), 3.0 - 0.5 * f64::from(x), 1.0 + f64::from(x))).collect();
        let line = Line::weighted(&points).unwrap();
        assert!((line.intercept - 3.0).abs() < 1e-12 && (line.slope + 0.5).abs() < 1e-12);
        assert_eq!(Line::weighted(&[(1.0, 2.0, 1.0), (1.0, 3.0, 1.0)]), None);
    }

    /// The mean of three equal numbers may differ from them in the last bit, as 0.1's does.
    #[test]
    fn points_above_each_other_have_no_line() {
        assert_eq!(Line::through(&[(0.1, 1.0), (0.1, 2.0), (0.1, 3.0)]), None);
        assert_eq!(Line::through(&[]), None);
    }
}
