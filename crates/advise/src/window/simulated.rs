use sweetspot_statistics::student_t;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::situation::Situation;
use super::{CrossKind, WindowAdvice, WindowChoice, WindowQuestion, WindowSettings, explain};
use crate::AdviceError;
use crate::limit::LARGEST_WINDOW;

/// Simulation results for several windows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TriedWindows {
    /// The windows, smallest first.
    pub windows: Vec<TriedWindow>,
    /// The number of seeds per window.
    pub seeds: u64,
    /// The time before the measurement, for slow start and the losses that it causes.
    pub settling: Duration,
    /// The measured time of each run.
    pub measured: Duration,
    /// The rate of the access links.
    pub access_rate: Rate,
    /// The simulated cross traffic, in words: the number and sizes of its flows.
    pub cross: Option<String>,
}

/// The result of a transfer with one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriedWindow {
    /// The window.
    pub window: Bytes,
    /// The mean rate on the bottleneck, headers included.
    pub rate: Rate,
    /// The standard error of the rate.
    pub rate_error: Rate,
    /// Whether the window is as fast as the fastest, apart from chance.
    pub as_fast: bool,
    /// Whether the window is slower, but perhaps by chance.
    pub is_unsure: bool,
    /// The mean queueing delay.
    pub delay: Duration,
    /// Packets lost over packets sent.
    pub loss: f64,
}

/// Minimum number of losses in a run for the rate of the steady state. With fewer, the start decides, which all seeds share.
pub const STEADY_LOSSES: f64 = 4.0;

/// Number of windows to try.
const WINDOW_STEPS: usize = 12;
/// Windows within this distance of half or twice the size count as "about" that size, in doublings.
const SAME_SIZE_DISTANCE: f64 = 0.5;

/// The largest window to try beside reactive flows, as a multiple of the largest that overflows nothing.
const EDGE_MARGIN: f64 = 1.2;

impl TriedWindows {
    /// The recommended window: the smallest that is as fast as the fastest, because its queue is the shortest. `None` if no
    /// window qualifies.
    pub fn hold(&self) -> Option<&TriedWindow> {
        self.windows.iter().find(|tried| tried.as_fast)
    }

    /// The result for the window nearest to `window`.
    pub fn nearest(&self, window: Bytes) -> Option<&TriedWindow> {
        self.windows.iter().min_by_key(|tried| tried.window.get().abs_diff(window.get()))
    }

    /// Half the width of the 95 % interval of the rate of `tried`, by Student's t over the seeds; `None` with fewer than two.
    pub fn interval(&self, tried: &TriedWindow) -> Option<Rate> {
        let degrees = self.seeds.checked_sub(1).filter(|degrees| *degrees > 0)?;
        let t = student_t::two_sided_quantile(0.05, degrees as f64);
        Some(tried.rate_error.scaled(t))
    }

    /// The random losses in a run of `tried`, on average.
    fn losses_in_a_run(&self, tried: &TriedWindow, q: &WindowQuestion) -> f64 {
        let packets = tried.rate.as_f64() / 8.0 / q.mtu.as_f64() * self.measured.as_secs_f64();
        packets * q.random_loss().map_or(0.0, Probability::get)
    }

    /// Whether no window tried was small enough to lower the rate.
    pub(super) fn none_bound(&self) -> bool {
        self.windows.iter().all(|tried| tried.as_fast)
    }

    /// The window nearest to half of the recommended one, if a smaller one was tried.
    pub(super) fn near_half(&self) -> Option<&TriedWindow> {
        let hold = self.hold()?.window;
        let nearest = self.nearest(hold / 2)?;
        (nearest.window < hold).then_some(nearest)
    }

    /// The result for exactly `window`.
    pub(super) fn exactly(&self, window: Bytes) -> Option<&TriedWindow> {
        self.windows.iter().find(|tried| tried.window == window)
    }
}

impl WindowAdvice {
    /// The reason why a simulator would not help, if there is one.
    pub fn untried(&self) -> Option<&'static str> {
        let q = &self.question;
        if q.cross.is_none() && q.random_loss().is_none() {
            return Some(
                "without cross traffic or random loss, the closed form gives the best window",
            );
        }
        if self.connections > 1 {
            return Some(
                "it takes several connections to fill the path, and the simulation has one",
            );
        }
        q.buffer.is_none().then_some("the buffer of the path is unknown; give --buffer")
    }

    /// The windows to try in a simulator, smallest first. They start at half of the smallest window that fills the path, or
    /// suffices under its loss, but not below TCP's initial window. They end above the capacity of path and buffer or, beside
    /// reactive flows, above the largest window that overflows nothing. The named windows in this range are among them; the
    /// others are spaced in about equal ratios. `None` if [`WindowAdvice::untried`] has a reason.
    pub fn windows_to_try(&self) -> Option<Vec<Bytes>> {
        let q = &self.question;
        if self.untried().is_some() {
            return None;
        }
        let is_lossy = q.random_loss().is_some();
        let suffices = self.recommended.window?.min(self.sweet_spot.low);
        let from = (suffices / 2).max(q.payload(q.initial_window())).as_f64();
        // During a recovery, segments after a lost one also occupy receive window. Twice the largest flight never limits the
        // transfer.
        let flights = if is_lossy { 2 } else { 1 };
        let unlimited = self.bdps.last()?.window? * flights;
        // Elephants and mice yield to larger windows, at their own cost.
        let polite = match q.cross.map(|cross| cross.kind) {
            None | Some(CrossKind::Udp) => unlimited,
            Some(CrossKind::Elephants) => self.sweet_spot.high.scaled(EDGE_MARGIN),
            Some(CrossKind::Mice) => {
                self.sweet_spot.high.max(self.bdps.first()?.window?).scaled(EDGE_MARGIN)
            }
        };
        let largest = unlimited.min(polite).min(LARGEST_WINDOW);
        let ratio = largest.as_f64() / from;
        let at = |i: usize| from * libm::pow(ratio, i as f64 / (WINDOW_STEPS - 1) as f64);
        let mut grid: Vec<Bytes> = (0..WINDOW_STEPS).map(|i| Bytes::from_f64(at(i))).collect();
        let (first, last) = (*grid.first()?, *grid.last()?);
        let named = self.named().filter_map(|choice| choice.window);
        let mut windows: Vec<Bytes> = named.filter(|w| *w > first && *w < last).collect();
        windows.extend([first, last]);
        // Each named window replaces a neighbour in the grid: the grid windows farthest from all names stay.
        let distance = |window: &Bytes| {
            let ratios = windows.iter().map(|near| libm::log(near.as_f64() / window.as_f64()));
            ratios.map(libm::fabs).fold(f64::INFINITY, f64::min)
        };
        grid.sort_by(|one, other| distance(other).total_cmp(&distance(one)));
        windows.sort_unstable();
        windows.dedup();
        let missing = WINDOW_STEPS.saturating_sub(windows.len());
        windows.extend(grid.into_iter().take(missing));
        windows.sort_unstable();
        windows.dedup();
        Some(windows)
    }

    /// The named windows: the recommended one, the ends of the sweet spot and the six products.
    fn named(&self) -> impl Iterator<Item = &WindowChoice> {
        [&self.recommended].into_iter().chain(&self.ends).chain(&self.bdps)
    }

    /// This advice with the simulator's results in place of the closed forms'.
    ///
    /// # Errors
    /// If TCP cannot have such a large window.
    pub fn decided_by(mut self, simulated: TriedWindows) -> Result<WindowAdvice, AdviceError> {
        let Some(hold) = simulated.hold().copied() else { return Ok(self) };
        let losses = simulated.losses_in_a_run(&hold, &self.question);
        if self.loss_limited && losses < STEADY_LOSSES {
            self.warnings.push(format!(
                "closed form only: the simulated runs had {losses:.1} random losses each on average, too few for a steady state"
            ));
            return Ok(self);
        }
        let choice = |name, rule, tried: Option<TriedWindow>| WindowChoice {
            name,
            rule,
            window: tried.map(|tried| tried.window),
            rate: tried.map(|tried| tried.rate),
            is_simulated: tried.is_some(),
        };
        // Some windows have no tried neighbour of about half or twice the size.
        let other = |window: Bytes| {
            let nearest = simulated.nearest(window).copied();
            nearest.filter(|tried| {
                libm::fabs(libm::log2(tried.window.as_f64() / window.as_f64()))
                    <= SAME_SIZE_DISTANCE
            })
        };
        let (half, double) = (other(hold.window / 2), other(hold.window * 2));
        self.recommended = choice("hold", "recommended", Some(hold));
        self.wrong_by_two =
            [choice("half", "about half that", half), choice("double", "about twice that", double)];
        self.added_delay = [Some(hold.delay), double.map(|double| double.delay)];
        let q = &self.question;
        let situation = Situation::new(q)?;
        // Beside cross traffic, a lower rate may have another cause than loss.
        let lossy = situation.loss().filter(|_| q.cross.is_none() || self.loss_limited);
        self.fills_path = match lossy {
            Some(loss) => situation.fills_path(hold.rate, situation.best_under(loss)?)?,
            None => None,
        };
        self.closed_form = match q.cross {
            None => self.unlike(&simulated, &hold, &situation)?,
            Some(_) => None,
        };
        self.loss_limited = self.fills_path.is_some();
        self.peaks_overflow = false;
        self.formulas = explain::formulas(&situation, None)?;
        self.settings = WindowSettings::for_window(hold.window, q.mss(), q.kernel)?;
        for named in self.ends.iter_mut().chain(&mut self.bdps) {
            if let Some(tried) = named.window.and_then(|window| simulated.exactly(window)) {
                (named.rate, named.is_simulated) = (Some(tried.rate), true);
            }
        }
        self.assumptions.extend(
            simulated
                .cross
                .as_ref()
                .map(|cross| format!("The simulated cross traffic is {cross}.")),
        );
        self.assumptions.push(format!(
            "The windows in the simulated table were run packet by packet, with {} as in Linux and {} seeds each: {} after {} to settle, \
             with access links of {}. The other rates are closed forms.",
            self.question.congestion,
            simulated.seeds,
            simulated.measured,
            simulated.settling,
            simulated.access_rate
        ));
        self.simulated = Some(simulated);
        Ok(self)
    }

    /// The closed form's rate with the window of `hold`, if it lies outside of the simulated rate's 95 % interval.
    fn unlike(
        &self,
        simulated: &TriedWindows,
        hold: &TriedWindow,
        situation: &Situation,
    ) -> Result<Option<Rate>, AdviceError> {
        let q = &self.question;
        let packets = hold.window.scaled(1.0 / q.payload_share());
        let closed = situation.bounded_by_loss(q.congestion, packets)?;
        Ok(closed.zip(simulated.interval(hold)).and_then(|(closed, half)| {
            let difference = (closed.as_f64() - hold.rate.as_f64()).abs();
            (difference > half.as_f64()).then_some(closed)
        }))
    }
}
