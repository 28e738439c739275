use sweetspot_units::{Bytes, Duration, Rate};

use super::{Advice, Choice, Cross, Kind, Question, Settings};
use crate::AdviceError;

/// What a simulator found for several windows.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// By window, smallest first.
    pub windows: Vec<SimulatedWindow>,
    /// Which of them to hold.
    pub hold: usize,
    /// Seeds of each.
    pub seeds: u64,
}

/// How a transfer fared with one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedWindow {
    /// The window.
    pub window: Bytes,
    /// Its rate on the bottleneck, headers included.
    pub rate: Rate,
    /// The standard error of that.
    pub rate_error: Rate,
    /// The queueing delay, on average.
    pub delay: Duration,
    /// Packets lost over packets sent.
    pub loss: f64,
}

/// Steps of the windows to try between the ends of the question.
const STEPS: usize = 12;
/// How far beyond the edge of the sweet spot.
const BEYOND: f64 = 1.2;

impl Simulated {
    /// What was found for the window nearest to this one.
    pub fn nearest(&self, window: Bytes) -> Option<&SimulatedWindow> {
        self.windows.iter().min_by_key(|tried| tried.window.get().abs_diff(window.get()))
    }
}

impl Advice {
    /// The windows to ask a simulator about: from half of the smallest that fills the path to beyond the
    /// largest that overflows nothing, in equal ratios. `None` where closed forms are enough (no
    /// cross traffic, or loss decides) or the buffer is not known.
    pub fn windows_to_try(&self) -> Option<Vec<Bytes>> {
        let Question { cross, buffer, .. } = self.question;
        let Cross { kind, .. } = cross?;
        buffer.filter(|_| !self.loss_limited)?;
        let spot = self.sweet_spot;
        // Mice give way to the transfer, so that it may use more than they left.
        let highest = match kind {
            Kind::Mice => spot.high.max(self.bdps.first()?.window?),
            Kind::Udp | Kind::Elephants => spot.high,
        };
        let (from, to) = (spot.low.as_f64() / 2.0, highest.as_f64() * BEYOND);
        let ratio = to / from;
        let at = |i: usize| from * libm::pow(ratio, i as f64 / (STEPS - 1) as f64);
        let least = self.question.mtu * 2;
        Some((0..STEPS).map(|i| Bytes::from_f64(at(i)).max(least)).collect())
    }

    /// This advice with what a simulator found in the place of what closed forms say.
    ///
    /// # Errors
    /// If TCP has no window so large.
    pub fn decided_by(mut self, simulated: Simulated) -> Result<Advice, AdviceError> {
        let Some(hold) = simulated.windows.get(simulated.hold).copied() else { return Ok(self) };
        let choice = |name, rule, tried: SimulatedWindow| Choice {
            name,
            rule,
            window: Some(tried.window),
            rate: Some(tried.rate),
        };
        let half = simulated.nearest(hold.window / 2).copied().unwrap_or(hold);
        let double = simulated.nearest(hold.window * 2).copied().unwrap_or(hold);
        self.recommended = choice("hold", "recommended", hold);
        self.wrong_by_two = [
            choice("half", "about half of it", half),
            choice("double", "about twice of it", double),
        ];
        self.added_delay = [hold.delay, double.delay];
        self.settings = Settings::for_window(hold.window, self.question.kernel)?;
        self.assumptions.push(format!(
            "The windows marked were simulated packet by packet: CUBIC as Linux has it, {} seeds \
             each that did not choose; the closed forms beside them are the papers'.",
            simulated.seeds
        ));
        self.simulated = Some(simulated);
        Ok(self)
    }
}
