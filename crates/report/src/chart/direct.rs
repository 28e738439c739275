use std::fmt::Write;

use sweetspot_experiment::plot::{Curve, Origin, Plot};

use super::axes::PlotFrame;
use super::curves::has_lines;
use super::legend::named_curves;
use super::tone::tone;
use crate::svg::typeset;

/// With more lines than colours, names would not identify the lines.
const MAX: usize = 7;
/// Longer names leave too little space for the frame.
const LONGEST: usize = 18;
const LINE_HEIGHT: f64 = 11.5;
/// Width of the leader line between the frame and a name.
const LEAD: f64 = 12.0;
/// Width of a letter in a short name, where wide letters do not average out, in a wide typeface.
const LETTER: f64 = 6.8;
/// The largest distance between a curve's end and its name.
const MAX_LABEL_SHIFT: f64 = 24.0;
/// The smallest distance at which two ends can be distinguished.
const MIN_DISTANCE: f64 = 2.5;
/// Curves that end before this share of the frame are not named at its edge.
const EDGE_SHARE: f64 = 0.85;

/// The width that names need beside the frame, if all curves have ends and names that fit there.
pub fn room(plot: &Plot) -> Option<f64> {
    if !has_lines(plot) {
        return None;
    }
    let curves = named_curves(plot);
    let longest = curves.iter().map(|curve| curve.label.chars().count()).max()?;
    let fit = (2..=MAX).contains(&curves.len()) && longest <= LONGEST;
    fit.then_some(LEAD + longest as f64 * LETTER)
}

/// Draws the names of the curves of `plot` at their ends, right of the frame. `None` if a legend is clearer,
/// because curves end elsewhere or all at one place.
pub fn draw(plot: &Plot, frame: &PlotFrame) -> Option<String> {
    let mut names: Vec<(f64, f64, &Curve)> = Vec::new();
    for curve in named_curves(plot) {
        let (x, y) = end(plot, curve, frame)?;
        names.push((x, y, curve));
    }
    names.sort_by(|a, b| a.1.total_cmp(&b.1));
    let desired: Vec<f64> = names.iter().map(|name| name.1).collect();
    let places = apart(&desired);
    let mixed = desired.windows(2).any(|pair| pair[1] - pair[0] < MIN_DISTANCE);
    let far = desired
        .iter()
        .zip(&places)
        .any(|(desired, place)| (desired - place).abs() > MAX_LABEL_SHIFT);
    if mixed || far {
        return None;
    }
    let left = frame.right() + LEAD;
    let mut svg = String::new();
    for ((x, y, curve), place) in names.iter().zip(places) {
        let _ = write!(
            svg,
            r#"<path class="leader {}" d="M{x:.1} {y:.1}L{:.1} {place:.1}"/><text class="num" x="{left:.1}" y="{:.1}">{}</text>"#,
            tone(curve),
            left - 2.0,
            place + 3.5,
            typeset(&curve.label),
        );
    }
    Some(svg)
}

/// The end of the curve with the name and group of `curve`; with several such curves, of one that is not theory.
fn end(plot: &Plot, curve: &Curve, frame: &PlotFrame) -> Option<(f64, f64)> {
    let same = |other: &&Curve| (other.group, &other.label) == (curve.group, &curve.label);
    let all = || plot.curves.iter().filter(same);
    let drawn = all().find(|curve| curve.origin != Origin::Theory).or_else(|| all().next())?;
    let inside = |point: &&(f64, f64)| frame.x.holds(point.0) && point.1.is_finite();
    let (x, y) = *drawn.points.iter().rfind(inside)?;
    let at = frame.x.at(x);
    let share = (at - frame.left()) / (frame.right() - frame.left());
    (share >= EDGE_SHARE).then(|| (at, frame.y.clamped(y)))
}

/// Moves lines of text at least a line height apart, in the order of `desired` and as close as possible by least
/// squares (pool adjacent violators).
fn apart(desired: &[f64]) -> Vec<f64> {
    // With the lines' heights subtracted, positions only need not decrease.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (i, place) in desired.iter().enumerate() {
        let mut pool = (place - i as f64 * LINE_HEIGHT, 1);
        while let Some((mean, count)) = pools.pop_if(|before| before.0 > pool.0) {
            let sum = mean * count as f64 + pool.0 * pool.1 as f64;
            pool = (sum / (count + pool.1) as f64, count + pool.1);
        }
        pools.push(pool);
    }
    let flat = pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count));
    flat.enumerate().map(|(i, place)| place + i as f64 * LINE_HEIGHT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_enough_space_stay_in_place() {
        assert_eq!(apart(&[0.0, 20.0, 40.0]), [0.0, 20.0, 40.0]);
    }

    #[test]
    fn coinciding_names_spread_around_their_position_in_order() {
        let places = apart(&[10.0, 10.0, 10.0, 100.0]);
        let due = [10.0 - LINE_HEIGHT, 10.0, 10.0 + LINE_HEIGHT, 100.0];
        assert!(places.iter().zip(due).all(|(a, b)| (a - b).abs() < 1e-9), "{places:?}");
    }

    proptest::proptest! {
        #[test]
        fn no_two_names_overlap(mut desired in proptest::collection::vec(0.0..200.0_f64, 0..8)) {
            desired.sort_by(f64::total_cmp);
            let places = apart(&desired);
            proptest::prop_assert_eq!(places.len(), desired.len());
            proptest::prop_assert!(places.windows(2).all(|pair| pair[1] - pair[0] > LINE_HEIGHT - 1e-6));
        }
    }
}
