use sweetspot_statistics::student_t;
use sweetspot_units::{Bytes, Duration, Rate};

use super::{CrossKind, CrossShare, WindowAdvice, WindowChoice, WindowQuestion, WindowSettings};
use crate::AdviceError;

/// Results of several windows in the simulator.
#[derive(Debug, Clone, PartialEq)]
pub struct TriedWindows {
    /// The windows, smallest first.
    pub windows: Vec<TriedWindow>,
    /// Index of the recommended window.
    pub hold: usize,
    /// The share of the best rate that was given up for a smaller window, at most.
    pub rate_given_up: f64,
    /// Number of seeds per window.
    pub seeds: u64,
}

/// Of a difference between two windows' rates (Welch's t over the seeds).
const SIGNIFICANCE: f64 = 0.05;

/// Result of a transfer with one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriedWindow {
    /// The window.
    pub window: Bytes,
    /// Its rate on the bottleneck, headers included.
    pub rate: Rate,
    /// The standard error of the rate.
    pub rate_error: Rate,
    /// The queueing delay, on average.
    pub delay: Duration,
    /// Packets lost over packets sent.
    pub loss: f64,
}

/// Number of windows to try.
const WINDOW_STEPS: usize = 12;
/// The largest window to try, as a multiple of the sweet spot's upper end.
const BEYOND_EDGE: f64 = 1.2;

impl TriedWindows {
    /// The result for the window nearest to `window`.
    pub fn nearest(&self, window: Bytes) -> Option<&TriedWindow> {
        self.windows.iter().min_by_key(|tried| tried.window.get().abs_diff(window.get()))
    }

    /// The recommended window and its neighbours, if the seeds cannot tell them from the fastest window; empty if the recommended
    /// one is surely slower.
    pub fn equally_good(&self) -> &[TriedWindow] {
        let Some(hold) = self.windows.get(self.hold) else { return &[] };
        let best = self.windows.iter().max_by_key(|tried| tried.rate).unwrap_or(hold);
        let differs = |tried: &TriedWindow| self.differs(best, tried);
        if differs(hold) {
            return &[];
        }
        let from = self.windows[..self.hold].iter().rposition(differs).map_or(0, |last| last + 1);
        let above = self.windows[self.hold..].iter().position(differs);
        &self.windows[from..above.map_or(self.windows.len(), |first| self.hold + first)]
    }

    fn differs(&self, one: &TriedWindow, other: &TriedWindow) -> bool {
        let difference = libm::fabs(one.rate.as_f64() - other.rate.as_f64());
        let squared = [one, other].map(|tried| libm::pow(tried.rate_error.as_f64(), 2.0));
        let of_both: f64 = squared.iter().sum();
        if of_both == 0.0 {
            return difference > 0.0;
        }
        let degrees = self.seeds.saturating_sub(1).max(1) as f64 * of_both * of_both
            / squared.iter().map(|square| square * square).sum::<f64>();
        student_t::two_sided_tail(difference / libm::sqrt(of_both), degrees) < SIGNIFICANCE
    }
}

impl WindowAdvice {
    /// The windows to try in a simulator, in equal ratios: from half of the smallest that fills the
    /// path to more than the largest that overflows nothing. `None` if closed forms suffice (no
    /// cross traffic, or loss decides), the buffer is unknown, or several connections share the path.
    pub fn windows_to_try(&self) -> Option<Vec<Bytes>> {
        let WindowQuestion { cross, buffer, .. } = self.question;
        let CrossShare { kind, .. } = cross?;
        buffer.filter(|_| !self.loss_limited && self.connections == 1)?;
        let spot = self.sweet_spot;
        // Mice give way to the transfer, so that it may use more than they left.
        let highest = match kind {
            CrossKind::Mice => spot.high.max(self.bdps.first()?.window?),
            CrossKind::Udp | CrossKind::Elephants => spot.high,
        };
        let (from, to) = (spot.low.as_f64() / 2.0, highest.as_f64() * BEYOND_EDGE);
        let ratio = to / from;
        let at = |i: usize| from * libm::pow(ratio, i as f64 / (WINDOW_STEPS - 1) as f64);
        let min = self.question.mtu * 2;
        Some((0..WINDOW_STEPS).map(|i| Bytes::from_f64(at(i)).max(min)).collect())
    }

    /// This advice with the simulator's results in place of the closed forms'.
    ///
    /// # Errors
    /// If TCP cannot have such a large window.
    pub fn decided_by(mut self, simulated: TriedWindows) -> Result<WindowAdvice, AdviceError> {
        let Some(hold) = simulated.windows.get(simulated.hold).copied() else { return Ok(self) };
        let choice = |name, rule, tried: Option<TriedWindow>| WindowChoice {
            name,
            rule,
            window: tried.map(|tried| tried.window),
            rate: tried.map(|tried| tried.rate),
        };
        // The smallest and the largest window tried have no neighbour beyond them.
        let other = |window| {
            let nearest = simulated.nearest(window).copied();
            nearest.filter(|tried| tried.window != hold.window)
        };
        let (half, double) = (other(hold.window / 2), other(hold.window * 2));
        self.recommended = choice("hold", "recommended", Some(hold));
        self.wrong_by_two =
            [choice("half", "about half that", half), choice("double", "about twice that", double)];
        self.added_delay = [hold.delay, double.unwrap_or(hold).delay];
        self.settings = WindowSettings::for_window(hold.window, self.question.kernel)?;
        self.assumptions.push(format!(
            "The windows marked were simulated packet by packet: {} as Linux has it, {} seeds \
             each that did not choose; the closed forms beside them are the papers'.",
            self.question.congestion, simulated.seeds
        ));
        self.simulated = Some(simulated);
        Ok(self)
    }
}
