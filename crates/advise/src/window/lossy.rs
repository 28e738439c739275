//! A transfer limited by random loss: a sufficient window, and ways to fill the path.

use sweetspot_theory::reno::bounded::Bounds;
use sweetspot_theory::reno::pftk::Flow;
use sweetspot_units::{Bytes, Probability, Rate};

use super::situation::Situation;
use super::{LossResponse, MAX_HELD};
use crate::AdviceError;

/// A window suffices if it carries this share of the rate of an unlimited window.
pub(super) const SUFFICIENT_RATE_SHARE: f64 = 0.99;
/// Ratio at which the bisection for a window or a loss ends.
const PRECISION: f64 = 1.01;
/// A lower loss than any link has, where the search for a loss starts.
const MIN_LOSS: f64 = 1e-18;
/// BBR slows down above a loss of 2 % per round trip (draft-ietf-ccwg-bbr, section 2.7, BBR.LossThresh).
const BBR_LOSS_TOLERANCE: f64 = 0.02;

/// Loss limits a transfer if its rate is below this share of the free rate; the remedies restore this share.
pub(super) const FILLED_SHARE: f64 = 0.95;

/// The ways to fill 95 % of a path on which loss limits a single connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FillsPath {
    /// The largest loss with which one connection fills the path; `None` if unknown.
    pub loss: Option<f64>,
    /// The number of connections that fill the path at the present loss.
    pub connections: u64,
    /// Whether BBR, which tolerates some loss, fills the path.
    pub bbr: bool,
}

impl Situation {
    /// The rate with `window` under random loss, in the bandwidth that other traffic leaves; `None` without loss.
    pub(super) fn bounded_by_loss(
        &self,
        congestion: LossResponse,
        window: Bytes,
    ) -> Result<Option<Rate>, AdviceError> {
        let Some(loss) = self.loss() else { return Ok(None) };
        // If loss is the limit, peaks are rare, so an unknown buffer is assumed never to overflow.
        let buffer = match self.question.buffer {
            None if self.loss_limited => MAX_HELD,
            _ => self.left.buffer(),
        };
        self.bounded(congestion, loss, buffer, window).map(Some)
    }

    /// The random loss, if there is any.
    pub(super) fn loss(&self) -> Option<Probability> {
        self.question.random_loss()
    }

    fn bounded(
        &self,
        congestion: LossResponse,
        loss: Probability,
        buffer: Bytes,
        window: Bytes,
    ) -> Result<Rate, AdviceError> {
        let q = &self.question;
        let flow = Flow::new(q.mtu, self.left.minimum_rtt(), q.first_timeout(), loss)?;
        let bounds = Bounds { capacity: self.left.capacity(), buffer, window };
        // Linux counts acknowledged segments (tcp_cong_avoid_ai), so a delayed ACK for two segments counts as two.
        Ok(flow.with_segments_per_ack(1)?.bounded(congestion, &bounds))
    }

    /// The rate that the best window carries under `loss`. An unknown buffer is assumed never to overflow.
    pub(super) fn best_under(&self, loss: Probability) -> Result<Rate, AdviceError> {
        let congestion = self.question.congestion;
        let above = self.above_every_window();
        if self.question.buffer.is_none() {
            return self.bounded(congestion, loss, MAX_HELD, above);
        }
        let rate = |window| self.bounded(congestion, loss, self.left.buffer(), window);
        Ok(rate(self.sweet_spot().high)?.max(rate(above)?))
    }

    /// Whether loss keeps even the best window below `FILLED_SHARE` of the free rate.
    pub(super) fn limited_by_loss(&self) -> Result<bool, AdviceError> {
        let Some(loss) = self.loss() else { return Ok(false) };
        Ok(self.best_under(loss)? < self.left.capacity().scaled(FILLED_SHARE))
    }

    fn under_loss(&self, window: Bytes) -> Rate {
        let rate = self.bounded_by_loss(self.question.congestion, window);
        rate.ok().flatten().unwrap_or(Rate::ZERO)
    }

    /// Whether a flow limited by loss is faster by more than 1 % if its window never overflows the buffer.
    pub(super) fn peaks_overflow(&self) -> bool {
        let free = self.under_loss(self.above_every_window());
        self.question.buffer.is_some()
            && self.elephants.is_none()
            && self.under_loss(self.sweet_spot().high) > free.scaled(1.01)
    }

    /// The smallest window, to 1 %, that carries almost the rate that loss allows the best window.
    pub(super) fn smallest_for_the_loss(&self) -> Bytes {
        let [high, above] = [self.sweet_spot().high, self.above_every_window()];
        let [at_high, at_above] = [high, above].map(|window| self.under_loss(window));
        let largest = if at_high > at_above { high } else { above };
        let enough = at_high.max(at_above).scaled(SUFFICIENT_RATE_SHARE);
        // A lower bound: at most one window is in flight per RTT, and at least one packet.
        let least = (enough * self.left.minimum_rtt()).max(self.question.mtu);
        let (mut small, mut large) = (least.min(largest), largest);
        while large > small.scaled(PRECISION).max(small + self.question.mtu) {
            let middle = Bytes::from_f64(libm::sqrt(small.as_f64() * large.as_f64()));
            if self.under_loss(middle) < enough { small = middle } else { large = middle }
        }
        large
    }

    /// The ways to fill the path if one connection carries `one`; `None` if that suffices, or without loss.
    ///
    /// The closed form gives the loss at which its own rate, `now`, would rise by the ratio of the target rate to
    /// `one`.
    pub(super) fn fills_path(
        &self,
        one: Rate,
        now: Rate,
    ) -> Result<Option<FillsPath>, AdviceError> {
        let Some(loss) = self.loss() else { return Ok(None) };
        let target = self.left.capacity().scaled(FILLED_SHARE);
        if one >= target {
            return Ok(None);
        }
        let wanted = now.scaled(target.as_f64() / one.as_f64().max(1.0));
        let fills = |log: f64| {
            let loss = Probability::new(libm::exp(log)).filter(|loss| loss.get() > 0.0);
            loss.is_none_or(|loss| self.best_under(loss).is_ok_and(|rate| rate >= wanted))
        };
        let [mut small, mut large] = [MIN_LOSS, loss.get()].map(libm::log);
        let is_known = small < large && fills(small);
        while is_known && large - small > libm::log(PRECISION) {
            let middle = f64::midpoint(small, large);
            if fills(middle) { small = middle } else { large = middle }
        }
        Ok(Some(FillsPath {
            loss: is_known.then(|| libm::exp(small)),
            connections: target.bits_per_second().div_ceil(one.bits_per_second().max(1)).max(2),
            bbr: loss.get() <= BBR_LOSS_TOLERANCE,
        }))
    }
}
