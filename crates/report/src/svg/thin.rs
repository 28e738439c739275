use super::LinearScale;

/// Thins points without changing the picture: from each pixel column it keeps the first, lowest,
/// highest and last point, in their order. No peak is lost.
pub fn thin(points: &[(f64, f64)], x: &LinearScale) -> Vec<(f64, f64)> {
    thin_by(points, |t| x.at(t))
}

/// Thins points with any map from a value to its position.
pub fn thin_by(points: &[(f64, f64)], place: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let column = |&(t, _): &(f64, f64)| place(t).floor() as i64;
    points
        .chunk_by(|a, b| column(a) == column(b))
        .flat_map(|same| {
            let by_value = |a: &usize, b: &usize| same[*a].1.total_cmp(&same[*b].1);
            let lowest = (0..same.len()).min_by(by_value).unwrap_or(0);
            let highest = (0..same.len()).max_by(by_value).unwrap_or(0);
            let mut kept = vec![0, lowest, highest, same.len() - 1];
            kept.sort_unstable();
            kept.dedup();
            kept.into_iter().map(|i| same[i])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_a_single_peak() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), 1.0)).collect();
        points[5_432].1 = 9.0;
        let thinned = thin(&points, &LinearScale::new((0.0, 10_000.0), (0.0, 100.0)));
        assert!(thinned.contains(&(5_432.0, 9.0)));
        // 100 columns of at most 4 points each.
        assert!(thinned.len() <= 400);
    }

    #[test]
    fn few_points_are_not_thinned() {
        let points = [(0.0, 1.0), (5.0, 3.0), (10.0, 2.0)];
        assert_eq!(thin(&points, &LinearScale::new((0.0, 10.0), (0.0, 100.0))), points);
    }
}
