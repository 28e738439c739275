use super::trial::WindowTrial;

/// An interval that may contain the best window, and how to narrow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bracket {
    /// `middle` did at least as well as `low` and `high`: narrowed by golden section.
    Peak { low: u64, middle: u64, high: u64 },
    /// `low` had no loss, `high` overflows: narrowed by bisection.
    Edge { low: u64, high: u64 },
}

impl Bracket {
    /// The next window to try; `None` once the bracket is as narrow as `tolerance`.
    pub(super) fn next(&self, tolerance: f64) -> Option<u64> {
        match *self {
            Bracket::Peak { low, middle, high } => {
                let (below, above) = (middle - low, high - middle);
                let step = step(middle, tolerance);
                if below.max(above) <= step {
                    return None;
                }
                // Cut the larger part so that the smaller part keeps its golden share, (3 - sqrt 5) / 2, but at
                // least a packet away from either end.
                let share = |part: u64| ((part as f64 * GOLDEN) as u64).clamp(1, part - 1);
                Some(if above >= below { middle + share(above) } else { middle - share(below) })
            }
            Bracket::Edge { low, high } => {
                (high - low > step(low, tolerance)).then(|| low + (high - low) / 2)
            }
        }
    }

    /// The bracket after the `trial` of the window from [`Bracket::next`]; `known` is the trial of the window
    /// [`Bracket::known`].
    pub(super) fn narrowed(
        self,
        trial: &WindowTrial,
        known: &WindowTrial,
        tolerance: f64,
    ) -> Bracket {
        let (window, middle_rate) = (trial.window, known.rate_bps);
        match self {
            // Of two equal windows the smaller is better: it queues less.
            Bracket::Peak { low, middle, high } if window < middle => {
                if trial.rate_bps >= middle_rate {
                    Bracket::Peak { low, middle: window, high: middle }
                } else {
                    Bracket::Peak { low: window, middle, high }
                }
            }
            Bracket::Peak { low, middle, high } => {
                if trial.rate_bps > middle_rate {
                    Bracket::Peak { low: middle, middle: window, high }
                } else {
                    Bracket::Peak { low, middle, high: window }
                }
            }
            Bracket::Edge { low, high } => {
                if !trial.overflows(known, tolerance) {
                    Bracket::Edge { low: window, high }
                } else {
                    Bracket::Edge { low, high: window }
                }
            }
        }
    }

    /// The window to compare the next trial with: the middle of a peak, or the lower end of an edge.
    pub(super) fn known(&self) -> u64 {
        match *self {
            Bracket::Peak { middle, .. } => middle,
            Bracket::Edge { low, .. } => low,
        }
    }
}

const GOLDEN: f64 = 0.381_966_011_250_105_1;

/// The width of a bracket that `tolerance` allows at `window`, at least one packet.
pub(super) fn step(window: u64, tolerance: f64) -> u64 {
    ((window as f64 * tolerance) as u64).max(1)
}
