//! Per-flow throughput as a function of the router's buffer: router-buffer eqs (4), (5), (9), (10), (12), (15), (17).

use sweetspot_units::{Bytes, Duration, Rate};

use super::capacity_ratio::Form;
use super::loss_form::LossForm;
use crate::Result;
use crate::error::require;
use crate::packets::Packets;
use crate::reno::l_model;
use crate::reno::s_model::ShortFlow;

/// The output link and its queueing delay, which is linear in the buffer up to a cutoff set by the offered load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RouterLink {
    capacity: Rate,
    propagation: Duration,
    packet: Bytes,
    delay_slope: f64,
    bdp: Packets,
}

impl RouterLink {
    /// A link of `capacity` C. Its flows have the RTT `propagation` T_o without the link's queue, and packets of
    /// `packet` bytes. The `delay_slope` f is the mean share of the buffer that is full.
    ///
    /// # Errors
    /// If a quantity is zero, or f is not between 0 and 1.
    pub fn new(
        capacity: Rate,
        propagation: Duration,
        packet: Bytes,
        delay_slope: f64,
    ) -> Result<RouterLink> {
        require(capacity > Rate::ZERO, "capacity", capacity, "it must be above zero")?;
        require(propagation > Duration::ZERO, "RTT", propagation, "it must be above zero")?;
        require(packet > Bytes::ZERO, "packet size", packet, "it must be 1 B or more")?;
        let share = delay_slope > 0.0 && delay_slope <= 1.0;
        require(share, "f", delay_slope, "above 0 and at most 1: the share of the buffer in use")?;
        let bits = capacity.as_f64() * propagation.as_secs_f64();
        let bdp = Packets::new(bits / (packet.as_f64() * 8.0))?;
        Ok(RouterLink { capacity, propagation, packet, delay_slope, bdp })
    }

    /// The capacity C.
    pub fn capacity(&self) -> Rate {
        self.capacity
    }

    /// The RTT T_o without the link's queue.
    pub fn propagation(&self) -> Duration {
        self.propagation
    }

    /// The packet size.
    pub fn packet(&self) -> Bytes {
        self.packet
    }

    /// The delay slope f: the share of the buffer that is full on average.
    pub fn delay_slope(&self) -> f64 {
        self.delay_slope
    }

    /// C T_o in packets.
    pub fn bdp(&self) -> Packets {
        self.bdp
    }

    // Router-buffer eq. (9): T(B) = T_o + f B / C.
    /// The mean RTT with `buffer`.
    pub fn rtt(&self, buffer: Packets) -> Duration {
        Duration::from_secs_f64(self.rtt_seconds(buffer.get()))
    }

    // Router-buffer §III-A: B / C.
    /// The delay of a full `buffer`.
    pub fn worst_delay(&self, buffer: Packets) -> Duration {
        buffer.in_bytes(self.packet) / self.capacity
    }

    fn rtt_seconds(&self, buffer: f64) -> f64 {
        let queued = self.delay_slope * buffer * self.packet.as_f64() * 8.0;
        self.propagation.as_secs_f64() + queued / self.capacity.as_f64()
    }
}

/// The flows for which the buffer is sized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Favoured {
    /// Flows of limited size, mostly in slow start: the S-model.
    Short(ShortFlow),
    /// Flows in congestion avoidance: the L-model. Their segment size is the link's packet.
    Long,
}

/// A link, its loss as a function of the buffer, and the flows for which the buffer is sized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Router {
    /// The link.
    pub link: RouterLink,
    /// The link's loss.
    pub loss: LossForm,
    /// The favoured flows.
    pub favoured: Favoured,
}

impl Router {
    // Router-buffer eqs (12), (17) for the S-model and (10), (15) for the L-model; (4) and (5)
    // are (12) and (10) with the M/M/1/B's parameters.
    /// The average throughput of a favoured flow with `buffer`.
    ///
    /// # Errors
    /// If the loss form gives more than 1 at this buffer.
    pub fn throughput(&self, buffer: Packets) -> Result<Rate> {
        self.loss.loss(buffer)?;
        Ok(Rate::from_f64(self.raw_throughput(buffer.get())))
    }

    /// Throughput in bits per second without rounding; the loss form may exceed 1.
    pub(crate) fn raw_throughput(&self, buffer: f64) -> f64 {
        let rtt = self.link.rtt_seconds(buffer);
        match self.favoured {
            Favoured::Short(flow) => {
                let lost = flow.rtts_per_loss() * flow.segments() as f64 * self.loss.raw(buffer);
                let rtts = flow.slow_start_rtts() as f64 + lost;
                flow.size().as_f64() * 8.0 / (rtt * rtts)
            }
            Favoured::Long => {
                // 1/sqrt(p) of each form, in a form that does not overflow if p underflows.
                let (a, b) = (self.loss.a(), self.loss.b());
                let root = match self.loss.form() {
                    Form::PowerLaw => libm::pow(buffer, b / 2.0),
                    Form::Exponential => libm::exp(b * buffer / 2.0),
                };
                let window = l_model::K * root / libm::sqrt(a);
                window * self.link.packet().as_f64() * 8.0 / rtt
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reno::l_model::throughput as l_throughput;

    fn link(f: f64) -> RouterLink {
        let rate = Rate::from_mbit_per_second(50);
        RouterLink::new(rate, Duration::from_millis(60), Bytes::new(1500), f).unwrap()
    }

    fn packets(n: f64) -> Packets {
        Packets::new(n).unwrap()
    }

    #[test]
    fn the_rtt_grows_with_the_buffer() {
        // 50 Mbit/s * 60 ms = 375 kB = 250 packets. 250 packets with f = 0.4: 100 packets
        // of 240 us = 24 ms more; the worst case is 250 * 240 us = 60 ms.
        assert_eq!(link(0.4).bdp(), packets(250.0));
        assert_eq!(link(0.4).rtt(packets(250.0)), Duration::from_millis(84));
        assert_eq!(link(0.4).worst_delay(packets(250.0)), Duration::from_millis(60));
    }

    #[test]
    fn throughput_is_the_flow_model_at_the_buffers_loss_and_rtt() {
        let loss = LossForm::power_law(0.2, 0.5).unwrap();
        let buffer = packets(100.0);
        let (p, t) = (loss.loss(buffer).unwrap(), link(0.4).rtt(buffer));

        let long = Router { link: link(0.4), loss, favoured: Favoured::Long };
        let expected = l_throughput(Bytes::new(1500), t, p).unwrap().as_f64();
        assert!((long.throughput(buffer).unwrap().as_f64() / expected - 1.0).abs() < 1e-6);

        let flow = ShortFlow::new(Bytes::new(45_000), Bytes::new(1500)).unwrap();
        let short = Router { link: link(0.4), loss, favoured: Favoured::Short(flow) };
        let expected = flow.throughput(t, p).unwrap().as_f64();
        assert!((short.throughput(buffer).unwrap().as_f64() / expected - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_buffer_below_the_power_laws_range_is_rejected() {
        let loss = LossForm::power_law(1.0, 1.0).unwrap();
        let router = Router { link: link(0.5), loss, favoured: Favoured::Long };
        assert!(router.throughput(packets(0.5)).is_err());
    }

    #[test]
    fn impossible_links_are_rejected() {
        let (c, t, m) = (Rate::from_mbit_per_second(1), Duration::from_millis(1), Bytes::new(1));
        assert!(RouterLink::new(Rate::ZERO, t, m, 0.5).is_err());
        assert!(RouterLink::new(c, Duration::ZERO, m, 0.5).is_err());
        assert!(RouterLink::new(c, t, Bytes::ZERO, 0.5).is_err());
        for f in [0.0, -0.1, 1.1, f64::NAN] {
            assert!(RouterLink::new(c, t, m, f).is_err());
        }
    }
}
