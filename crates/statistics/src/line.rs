use crate::student_t;

/// A straight line, fitted to points by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// The line's value at x = 0.
    pub intercept: f64,
    /// The slope: increase per unit of x.
    pub slope: f64,
    /// The mean x of the points.
    pub mean_x: f64,
    /// The weighted sum of squared distances of the points' x from that mean.
    pub squares_x: f64,
}

impl Line {
    /// The line through weighted points (x, y, weight); `None` unless they have at least two different x.
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

    /// Half the 95 % interval (Student's t) of the intercept of this line, fitted to these weighted points; `None` for fewer than
    /// three points, which leave no residuals.
    pub fn intercept_half(&self, points: &[(f64, f64, f64)]) -> Option<f64> {
        let degrees = points.len().checked_sub(2).filter(|degrees| *degrees > 0)? as f64;
        let total: f64 = points.iter().map(|(.., w)| w).sum();
        let residual = |x: f64, y: f64| y - self.intercept - self.slope * x;
        let squares: f64 = points.iter().map(|(x, y, w)| w * residual(*x, *y).powi(2)).sum();
        let t = student_t::two_sided_quantile(0.05, degrees);
        Some(t * self.intercept_error(squares / degrees, total))
    }

    /// The standard error of the intercept, if y has this `variance` per unit of weight and the points this total `weight`.
    pub fn intercept_error(&self, variance: f64, weight: f64) -> f64 {
        libm::sqrt(variance * (1.0 / weight + self.mean_x * self.mean_x / self.squares_x))
    }

    /// The line through points (x, y) of equal weight; `None` unless they have at least two different x.
    pub fn through(points: &[(f64, f64)]) -> Option<Line> {
        Line::weighted(&points.iter().map(|(x, y)| (*x, *y, 1.0)).collect::<Vec<_>>())
    }
}

/// Sums over points, from which their line follows. The difference of two sums describes the points in between, so the lines of
/// all parts of a series need only one pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct LineSums {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl LineSums {
    /// The sums with one more point.
    pub fn and(mut self, x: f64, y: f64) -> LineSums {
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
        self
    }

    /// The sums without the points of `other`.
    pub fn without(&self, other: &LineSums) -> LineSums {
        LineSums {
            n: self.n - other.n,
            x: self.x - other.x,
            y: self.y - other.y,
            xx: self.xx - other.xx,
            xy: self.xy - other.xy,
            yy: self.yy - other.yy,
        }
    }

    /// The slope of the least-squares line, and the sum of squared residuals; NaN if all points have the same x.
    pub fn fit(&self) -> (f64, f64) {
        let (xx, xy) = (self.xx - self.x * self.x / self.n, self.xy - self.x * self.y / self.n);
        let slope = xy / xx;
        (slope, self.yy - self.y * self.y / self.n - slope * xy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// y = x^2 at x = 2 to 5: slope 7, residuals 1, -1, -1, 1.
    #[test]
    fn partial_sums_give_the_line_through_their_points() {
        let upto = |end: i32| {
            let xs = (0..end).map(f64::from);
            xs.fold(LineSums::default(), |sums, x| sums.and(x, x * x))
        };
        let part = upto(6).without(&upto(2));
        let (slope, left) = part.fit();
        assert!((slope - 7.0).abs() < 1e-12 && (left - 4.0).abs() < 1e-9, "{slope} {left}");
        let points: Vec<_> = (2..6).map(f64::from).map(|x| (x, x * x)).collect();
        assert!((Line::through(&points).unwrap().slope - slope).abs() < 1e-12);
    }

    /// (1, 1), (2, 2), (3, 2), (4, 3): mean 2.5, squares 5, residuals -0.1, 0.3, -0.3, 0.1. Their squares are 0.2, of two degrees
    /// of freedom; 0.1 (1/4 + 2.5^2 / 5) = 0.15 is the variance, and t is 4.303.
    #[test]
    fn the_intercepts_interval_uses_students_t() {
        let points = [(1.0, 1.0, 2.0), (2.0, 2.0, 2.0), (3.0, 2.0, 2.0), (4.0, 3.0, 2.0)];
        let half = |points: &[_]| Line::weighted(points).unwrap().intercept_half(points);
        let due = 4.303 * libm::sqrt(0.15);
        assert!((half(&points).unwrap() - due).abs() < 1e-3, "{:?} for {due}", half(&points));
        assert_eq!(half(&points[..2]), None);
    }

    #[test]
    fn a_fit_through_collinear_points_recovers_their_line() {
        let points: Vec<_> =
            (0..9).map(|x| (f64::from(x), 3.0 - 0.5 * f64::from(x), 1.0 + f64::from(x))).collect();
        let line = Line::weighted(&points).unwrap();
        assert!((line.intercept - 3.0).abs() < 1e-12 && (line.slope + 0.5).abs() < 1e-12);
        assert_eq!(Line::weighted(&[(1.0, 2.0, 1.0), (1.0, 3.0, 1.0)]), None);
    }

    /// The mean of three equal numbers may differ from them in the last bit, as for 0.1.
    #[test]
    fn points_with_equal_x_have_no_line() {
        assert_eq!(Line::through(&[(0.1, 1.0), (0.1, 2.0), (0.1, 3.0)]), None);
        assert_eq!(Line::through(&[]), None);
    }
}
