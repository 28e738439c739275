use sweetspot_units::{Bytes, Duration, Rate};

use super::situation::Situation;
use super::{WindowAdvice, WindowChoice, WindowSettings};
use crate::AdviceError;

/// Results of several windows in the simulator.
#[derive(Debug, Clone, PartialEq)]
pub struct TriedWindows {
    /// The windows, smallest first.
    pub windows: Vec<TriedWindow>,
    /// Number of seeds per window.
    pub seeds: u64,
}

/// Result of a transfer with one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriedWindow {
    /// The window.
    pub window: Bytes,
    /// Its mean rate on the bottleneck, headers included.
    pub rate: Rate,
    /// The standard error of the rate.
    pub rate_error: Rate,
    /// Whether it is as fast as the fastest window, but for chance.
    pub as_fast: bool,
    /// The queueing delay, on average.
    pub delay: Duration,
    /// Packets lost over packets sent.
    pub loss: f64,
}

/// Number of windows to try.
const WINDOW_STEPS: usize = 12;
/// The largest window to try, as a multiple of the largest that overflows nothing.
const BEYOND_EDGE: f64 = 1.2;

impl TriedWindows {
    /// The recommended window, the smallest that is as fast as the fastest: its queue is the shortest. `None` if no window moved data.
    pub fn hold(&self) -> Option<&TriedWindow> {
        self.windows.iter().find(|tried| tried.as_fast)
    }

    /// The result for the window nearest to `window`.
    pub fn nearest(&self, window: Bytes) -> Option<&TriedWindow> {
        self.windows.iter().min_by_key(|tried| tried.window.get().abs_diff(window.get()))
    }
}

impl WindowAdvice {
    /// The windows to try in a simulator, in equal ratios: from half of the smallest that fills the path, or TCP's initial window, to
    /// more than the largest that overflows nothing. `None` if closed forms suffice (no cross traffic, or loss decides), the buffer
    /// is unknown, or several connections share the path.
    pub fn windows_to_try(&self) -> Option<Vec<Bytes>> {
        let q = &self.question;
        q.cross.and(q.buffer).filter(|_| !self.loss_limited && self.connections == 1)?;
        let largest = Situation::new(q).ok()?.largest_to_try();
        let from = (self.sweet_spot.low / 2).max(q.payload(q.initial_window())).as_f64();
        let ratio = q.payload(largest).as_f64() * BEYOND_EDGE / from;
        let at = |i: usize| from * libm::pow(ratio, i as f64 / (WINDOW_STEPS - 1) as f64);
        Some((0..WINDOW_STEPS).map(|i| Bytes::from_f64(at(i))).collect())
    }

    /// This advice with the simulator's results in place of the closed forms'.
    ///
    /// # Errors
    /// If TCP cannot have such a large window.
    pub fn decided_by(mut self, simulated: TriedWindows) -> Result<WindowAdvice, AdviceError> {
        let Some(hold) = simulated.hold().copied() else { return Ok(self) };
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
            "The windows in the simulated table were run packet by packet, with {} as in Linux and {} seeds each. The other rates \
             are closed forms.",
            self.question.congestion, simulated.seeds
        ));
        self.simulated = Some(simulated);
        Ok(self)
    }
}
