//! A transfer limited by random loss: a sufficient window, and ways to fill the path.

use sweetspot_statistics::roots;
use sweetspot_theory::reno::bounded::Bounds;
use sweetspot_theory::reno::pftk::Flow;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::situation::Situation;
use super::{LossResponse, MOST_HELD, WindowQuestion};
use crate::AdviceError;

/// RFC 6298 with Linux's TCP_RTO_MIN: the RTT plus at least 200 ms.
const SMALLEST_VARIANCE: Duration = Duration::from_millis(200);
/// The share of an unlimited window's rate that a window must carry to suffice.
pub(super) const ENOUGH: f64 = 0.99;
/// The ratio to which that window is sought.
const PRECISION: f64 = 1.01;
/// Less loss than any link has.
const LEAST_LOSS: f64 = 1e-18;
/// draft-ietf-ccwg-bbr, section 2.7, BBR.LossThresh: BBR slows down above a loss of 2 % in a round trip.
const TOLERATED_BY_BBR: f64 = 0.02;

/// The ways to fill a path on which loss limits one connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FillsPath {
    /// The largest loss with which one connection fills it.
    pub loss: f64,
    /// Connections that fill it at the present loss.
    pub connections: u64,
    /// Whether BBR, which tolerates some loss, fills it.
    pub bbr: bool,
}

impl Situation {
    /// The rate with `window` under random loss, in the room that other traffic leaves; `None` without loss.
    pub(super) fn bounded_by_loss(&self, window: Bytes) -> Result<Option<Rate>, AdviceError> {
        let q = &self.question;
        let Some(loss) = q.loss.filter(|loss| loss.get() > 0.0) else { return Ok(None) };
        let flow = Flow::new(q.mtu, self.left.minimum_rtt(), first_timeout(q), loss)?;
        // Where loss is the limit, an unknown buffer counts as one that never overflows: the peaks are rare.
        let buffer = match q.buffer {
            None if self.loss_limited() => MOST_HELD,
            _ => self.left.buffer(),
        };
        let capacity = self.left.capacity();
        let bounds = Bounds { capacity, buffer, window };
        Ok(Some(flow.with_segments_per_ack(1)?.bounded(q.congestion, &bounds)))
    }

    /// Whether loss keeps the transfer below its window's rate.
    pub(super) fn loss_limited(&self) -> bool {
        self.lossy.is_some_and(|max| max < self.left.capacity())
    }

    fn under_loss(&self, window: Bytes) -> Rate {
        self.bounded_by_loss(window).ok().flatten().unwrap_or(Rate::ZERO)
    }

    /// Whether a flow that loss limits is faster by a percent if its window never overflows the buffer.
    pub(super) fn peaks_overflow(&self) -> bool {
        let free = self.under_loss(self.above_every_window());
        self.question.buffer.is_some()
            && self.elephants.is_none()
            && self.under_loss(self.sweet_spot().high) > free.scaled(1.01)
    }

    /// The smallest window, to a percent, that carries almost the rate that loss allows an unlimited one.
    pub(super) fn smallest_for_the_loss(&self) -> Bytes {
        let largest = self.above_every_window();
        let enough = self.under_loss(largest).scaled(ENOUGH);
        // Whatever the window, no more than one is in flight per round trip.
        let (mut small, mut large) = ((enough * self.left.minimum_rtt()).min(largest), largest);
        while large > small.scaled(PRECISION).max(small + self.question.mtu) {
            let middle = Bytes::from_f64(libm::sqrt(small.as_f64() * large.as_f64()));
            if self.under_loss(middle) < enough { small = middle } else { large = middle }
        }
        large
    }

    /// The ways to fill the path; `None` if loss does not limit the transfer.
    pub(super) fn fills_path(&self) -> Result<Option<FillsPath>, AdviceError> {
        let q = &self.question;
        let Some(loss) = q.loss.filter(|_| self.loss_limited()) else { return Ok(None) };
        let available = self.left.capacity();
        let fills = |log: f64| {
            let loss = Probability::new(libm::exp(log)).filter(|loss| loss.get() > 0.0);
            let allowed = allowed_by_loss(&WindowQuestion { loss, ..*q }, q.congestion);
            allowed.is_ok_and(|rate| rate.is_none_or(|rate| rate >= available))
        };
        let [none, now] = [LEAST_LOSS, loss.get()].map(libm::log);
        let log = if fills(none) && none < now { roots::between(none, now, fills) } else { none };
        let one = self.under_loss(self.above_every_window()).bits_per_second().max(1);
        Ok(Some(FillsPath {
            loss: libm::exp(log),
            connections: available.bits_per_second().div_ceil(one).max(2),
            bbr: loss.get() <= TOLERATED_BY_BBR,
        }))
    }
}

/// The rate that loss alone allows `congestion`; `None` without loss.
pub(super) fn allowed_by_loss(
    q: &WindowQuestion,
    congestion: LossResponse,
) -> Result<Option<Rate>, AdviceError> {
    let Some(loss) = q.loss.filter(|loss| loss.get() > 0.0) else { return Ok(None) };
    // Linux counts acknowledged segments (tcp_cong_avoid_ai), so a delayed ACK counts twice.
    let flow = Flow::new(q.mtu, q.rtt, first_timeout(q), loss)?.with_segments_per_ack(1)?;
    Ok(Some(match congestion {
        LossResponse::Cubic => flow.cubic(),
        LossResponse::Reno => flow.approximate(),
    }))
}

pub(super) fn first_timeout(q: &WindowQuestion) -> Duration {
    q.rtt + SMALLEST_VARIANCE
}
