//! The path, its cross traffic and its loss, in the terms of the formulas.

use sweetspot_theory::path::elephants::Elephants;
use sweetspot_theory::path::saturation::{self, SweetSpot};
use sweetspot_theory::path::six_bdps::{self, PathState};
use sweetspot_theory::path::{Path, unresponsive};
use sweetspot_theory::reno::bounded::{Overflowing, overflowing};
use sweetspot_units::{Bytes, Duration, Rate};

use super::{CrossKind, CrossShare, LossResponse, WindowQuestion};
use crate::AdviceError;
use crate::limit::{LARGEST_WINDOW, with_margin};

/// The path in bytes of packets: windows here include headers.
pub(super) struct Situation {
    pub question: WindowQuestion,
    /// The path without cross traffic: C, T_m, B.
    pub bare: Path,
    /// The path beside unresponsive cross traffic: A, T_e, and the transfer's share A/C of B.
    pub left: Path,
    pub elephants: Option<Elephants>,
    /// Whether loss limits the transfer, not the window.
    pub loss_limited: bool,
}

impl Situation {
    pub(super) fn new(q: &WindowQuestion) -> Result<Situation, AdviceError> {
        let buffer = q.buffer.unwrap_or(Bytes::ZERO);
        let bare = Path::new(q.rate, q.rtt, buffer)?;
        let available = q.cross.map_or(q.rate, |c| c.available(q.rate));
        // The transfer's share of the queue equals its share of the rate. In a full shared buffer, its window is therefore A (T_e
        // + B/C), not A T_e + B.
        let own = buffer.scaled(available.as_f64() / q.rate.as_f64());
        let left = unresponsive::path(q.rate, q.rate.saturating_sub(available), q.rtt, own)?;
        let elephants = match q.cross {
            Some(CrossShare { kind: CrossKind::Elephants, .. }) => {
                Some(Elephants::new(q.rate, available, q.rtt, q.rtt, buffer)?)
            }
            _ => None,
        };
        let mut new = Situation { question: *q, bare, left, elephants, loss_limited: false };
        new.loss_limited = new.limited_by_loss()?;
        Ok(new)
    }

    /// The expected rate with `window`; `None` where no closed form is known.
    pub(super) fn rate_at(&self, window: Bytes) -> Result<Option<Rate>, AdviceError> {
        let bounded = self.bounded_by_loss(self.question.congestion, window)?;
        if bounded.is_some() && self.loss_limited {
            // Loss keeps the window below the BDP, so there is no queue, with or without cross traffic.
            return Ok(bounded);
        }
        let is_sawtooth = self.elephants.is_none() && window > self.sweet_spot().high;
        if is_sawtooth {
            return Ok(bounded.or_else(|| Some(self.sawtooth())));
        }
        let base = match self.elephants {
            None => Some(saturation::throughput(&self.left, window)?.rate),
            Some(elephants) => {
                elephants.backlog_of_window(window).map(|queue| elephants.rate_at_backlog(queue))
            }
            .map(|rate| rate.min(window / self.left.minimum_rtt())),
        };
        Ok(base.map(|rate| bounded.map_or(rate, |bounded| rate.min(bounded))))
    }

    /// The rate of a window beyond the sweet spot, where the sender's own losses limit it.
    pub(super) fn sawtooth(&self) -> Rate {
        match self.question.congestion {
            LossResponse::Reno => saturation::congestion_limited(&self.left),
            LossResponse::Cubic => self.overflowing_cubic().rate,
        }
    }

    fn overflowing_cubic(&self) -> Overflowing {
        overflowing(LossResponse::Cubic, &self.left, self.question.mtu)
    }

    pub(super) fn sweet_spot(&self) -> SweetSpot {
        match self.elephants {
            None => saturation::sweet_spot(&self.left),
            Some(e) => {
                let low = saturation::sweet_spot(&self.left).low;
                SweetSpot { low, high: e.window_at_backlog(self.bare.buffer()) }
            }
        }
    }

    pub(super) fn recommended(&self) -> Bytes {
        let spot = self.sweet_spot();
        let window = match (self.loss(), self.elephants) {
            // SOBAS §VI: on a path with random loss, a limit on the window can only lower the rate.
            (Some(_), _) if self.loss_limited => self.smallest_for_the_loss(),
            (_, Some(_)) => spot.high,
            (Some(_), None) => {
                self.clear_of_the_edges(spot).max(self.smallest_for_the_loss().min(spot.high))
            }
            (None, None) => self.clear_of_the_edges(spot),
        };
        window.max(self.question.initial_window())
    }

    /// A window with a margin above the one that fills the path: at least one segment that waits for a delayed ACK (RFC 1122,
    /// section 4.2.3.2), and one that is only partly sent. In a shallow buffer, it is halfway between an idle link and an
    /// overflow.
    fn clear_of_the_edges(&self, SweetSpot { low, high }: SweetSpot) -> Bytes {
        let filled = with_margin(low).max(low + self.question.mtu * 2);
        filled.min(low + high.saturating_sub(low) / 2)
    }

    /// The largest window that overflows nothing. Mice yield to the transfer, so it may use more than they leave.
    pub(super) fn largest_to_try(&self) -> Bytes {
        let high = self.sweet_spot().high;
        match self.question.cross {
            Some(CrossShare { kind: CrossKind::Mice, .. }) => {
                high.max(saturation::sweet_spot(&self.bare).low)
            }
            _ => high,
        }
    }

    /// The six products in the paper's order; `None` where no closed form is known.
    pub(super) fn six_bdps(&self) -> Result<[Option<Bytes>; 6], AdviceError> {
        let state = self.state()?;
        let known = self.elephants.is_none()
            && !matches!(self.question.cross, Some(CrossShare { kind: CrossKind::Mice, .. }));
        let mut all = six_bdps::six_bdps(&state)?.all().map(Some);
        if !known && !self.loss_limited {
            // No closed form gives the BTC against reactive traffic.
            all[4] = None;
        }
        Ok(all)
    }

    fn state(&self) -> Result<PathState, AdviceError> {
        let mut state = six_bdps::alone(&self.left, self.question.mtu)?;
        state.capacity = self.bare.capacity();
        if self.question.congestion == LossResponse::Cubic {
            let cubic = self.overflowing_cubic();
            state.bulk_transfer_capacity = cubic.rate;
            state.average_rtt = cubic.mean_rtt;
        }
        state.largest_window = self.above_every_window() - self.question.mtu;
        let max = self.bounded_by_loss(self.question.congestion, self.above_every_window())?;
        if let Some(max) = max.filter(|max| *max < state.bulk_transfer_capacity) {
            // Loss keeps the rate too low for a queue.
            state.bulk_transfer_capacity = max;
            state.average_rtt = self.left.minimum_rtt();
        }
        Ok(state)
    }

    /// A window above the capacity of path and buffer, so that no congestion window exceeds it.
    pub(super) fn above_every_window(&self) -> Bytes {
        saturation::sweet_spot(&self.bare).high + self.question.mtu * 2
    }

    /// The queueing delay that `window` adds: its excess over the BDP, up to the buffer.
    pub(super) fn added_delay(&self, window: Bytes) -> Duration {
        if self.loss_limited {
            return Duration::ZERO;
        }
        let full = self.bare.buffer() / self.bare.capacity();
        if let Some(elephants) = self.elephants {
            let queue = elephants.backlog_of_window(window);
            return queue.map_or(full, |queue| queue / self.bare.capacity());
        }
        let above = window.saturating_sub(saturation::sweet_spot(&self.left).low);
        (above / self.left.capacity()).min(full)
    }

    pub(super) fn assumptions(&self, connections: u64) -> Vec<String> {
        let mut all = vec![
            "Windows count payload; rates count whole packets at the bottleneck, in steady state."
                .to_owned(),
        ];
        // Beside elephants, no closed form gives these rates.
        if self.elephants.is_none() {
            all.push(format!(
                "Beyond the sweet spot, rates are those of one {} flow that loses single packets and recovers without a timeout.",
                self.question.congestion
            ));
        }
        if connections > 1 {
            all.push(format!(
                "TCP has no window above {LARGEST_WINDOW} (RFC 7323), so {connections} equal \
                 connections share the path. Every number is for one of them, with its share of \
                 rate and buffer."
            ));
        }
        if self.question.buffer.is_none() {
            all.push(
                "The bottleneck's buffer is unknown and assumed to be zero, the worst case. A stated buffer gives the sweet spot its upper end."
                    .to_owned(),
            );
        }
        match self.question.cross.map(|c| c.kind) {
            None if self.question.buffer.is_some() && !self.loss_limited => all.push(
                "The margin above rate x RTT keeps the link busy while a segment waits for a delayed ACK (RFC 1122): 5 %, two packets, \
                 or half of a shallow buffer."
                    .to_owned(),
            ),
            None => {}
            Some(CrossKind::Udp) => all.push(
                "Cross traffic is a fluid: T_e = T_m, and the whole buffer is free. With bursts, the best window lies near the \
                 low end."
                    .to_owned(),
            ),
            Some(CrossKind::Elephants) => all.push(
                "The elephants have the same RTT and are limited by their windows; beyond the sweet spot no closed form is known. \
                 If the buffer counts packets, ACKs of reverse traffic occupy it as well."
                    .to_owned(),
            ),
            Some(CrossKind::Mice) => all.push(
                "Mice count as unresponsive, as no closed form is known. In a deep buffer they give way, and the rate is up to a \
                 quarter higher (SOBAS Fig. 5); in a shallow one their bursts lower it."
                    .to_owned(),
            ),
        }
        if self.loss().is_some() {
            all.push(format!(
                "Losses are random. The response is that of {} ({}), in a window bounded by path, buffer and hosts, with PFTK's \
                 timeouts, the first after {}. The window grows per acknowledged segment, as in Linux, not per ACK. A sender \
                 without pacing sends a burst after each recovery. A buffer of less than 0.7 windows may lose some of it, \
                 which lowers the rate; only a simulation shows that.",
                self.question.congestion,
                self.question.congestion.standard(),
                self.question.first_timeout()
            ));
        }
        all
    }
}
