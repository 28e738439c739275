//! The relative error of a rate over an epoch, from which every comparison of two rates follows.

/// The smallest relative difference that matters. A queue of this share of a round trip keeps the bottleneck busy. A rate lower
/// by more is a cost; a rate that varies by less is constant. The first step up is this large
/// (`a_hold_allows_q_plus_two_segments_and_paces_one_percent_above`).
pub(crate) const RESOLUTION: f64 = 0.03;

/// Two measurements of the same rate, each with an error of [`RESOLUTION`], differ by no more.
pub(crate) const AGREEMENT: f64 = 2.0 * RESOLUTION;

/// A larger difference than [`AGREEMENT`]: the measured quantity has changed.
pub(crate) const CHANGE: f64 = 3.0 * RESOLUTION;
