//! The colour of a curve.

use sweetspot_experiment::plot::{Curve, Origin};

use crate::colour;

/// Whether a curve shows Sweetspot's own controller: `sobas` or `sobas:live`, with any congestion control, or as a file name.
pub fn is_own(curve: &Curve) -> bool {
    names_own(&curve.label) && curve.origin != Origin::Theory
}

/// Whether a label names Sweetspot's own controller.
pub fn names_own(label: &str) -> bool {
    label.split(['+', ' ', ',', '.']).any(colour::is_own)
}

/// The CSS class of a curve's colour.
pub fn tone(curve: &Curve) -> String {
    if is_own(curve) { "own".to_owned() } else { colour::class(curve.group) }
}
