//! The M/M/1/B queue: router-buffer §V, and any textbook (e.g. Bolch et al., "Queueing Networks
//! and Markov Chains").

use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::loss_form::LossForm;
use super::per_flow::RouterLink;
use crate::Result;
use crate::error::{probability, require};

/// Poisson arrivals, exponential service times, and a capacity of B packets including the one in
/// service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mm1b {
    load: f64,
    places: u64,
    loss: Probability,
}

impl Mm1b {
    /// A queue with the offered `load` rho (1 is the link's rate; larger values are allowed) and
    /// `places` B.
    ///
    /// # Errors
    /// If `load` is not a finite number above zero, or `places` is zero.
    pub fn new(load: f64, places: u64) -> Result<Mm1b> {
        require(load.is_finite() && load > 0.0, "load", load, "a finite number above zero")?;
        require(places > 0, "places", places, "1 or more")?;
        let loss = probability("loss", loss(load, places as f64).clamp(0.0, 1.0))?;
        Ok(Mm1b { load, places, loss })
    }

    /// The share of packets that find the buffer full.
    pub fn loss(&self) -> Probability {
        self.loss
    }

    // L = rho/(1 - rho) - (B+1) rho^(B+1) / (1 - rho^(B+1)); B/2 at rho = 1.
    /// The mean number of packets in the system.
    pub fn mean_packets(&self) -> f64 {
        let log = libm::log(self.load);
        let n = self.places as f64 + 1.0;
        if (log * n).abs() < 1e-4 {
            // The two terms cancel near rho = 1. There, the result is the mean of a uniform
            // distribution on 0..B, plus its variance times ln rho.
            return (n - 1.0) / 2.0 + log * (n * n - 1.0) / 12.0;
        }
        // 1/(e^-x - 1) - n/(e^-nx - 1), x = ln rho, for either sign of x.
        1.0 / libm::expm1(-log) - n / libm::expm1(-log * n)
    }

    // Little's law for the accepted packets: W = L / (lambda (1 - p)).
    /// The mean time from arrival to the end of service, for packets of mean size `packet` served
    /// at `rate`.
    ///
    /// # Errors
    /// If `packet` or `rate` is zero.
    pub fn mean_delay(&self, packet: Bytes, rate: Rate) -> Result<Duration> {
        require(packet > Bytes::ZERO, "packet size", packet, "it must be 1 B or more")?;
        require(rate > Rate::ZERO, "rate", rate, "it must be above zero")?;
        let service = packet.as_f64() * 8.0 / rate.as_f64();
        let admitted = self.load * (1.0 - self.loss.get());
        Ok(Duration::from_secs_f64(self.mean_packets() / admitted * service))
    }

    /// The share of time during which the link is busy.
    pub fn utilisation(&self) -> f64 {
        (self.load * (1.0 - self.loss.get())).min(1.0)
    }
}

// Router-buffer §V: p = (1 - rho) rho^B / (1 - rho^(B+1)); 1/(B+1) at rho = 1.
fn loss(load: f64, places: f64) -> f64 {
    let log = libm::log(load);
    if log == 0.0 {
        1.0 / (places + 1.0)
    } else if log < 0.0 {
        libm::exp(places * log) * libm::expm1(log) / libm::expm1((places + 1.0) * log)
    } else {
        // Divided by rho^(B+1), which would overflow.
        libm::expm1(-log) / libm::expm1(-(places + 1.0) * log)
    }
}

// Router-buffer §V and §VII-A-3: as rho tends to 1, p = 1/B and d = B / 2C, which is the power
// law with a = b = 1 and f = 1/2.
/// The heavy-load limit as a loss form and queueing slope, for the other formulas of this module.
/// It neglects one packet compared with B: the exact limit is 1/(B+1).
///
/// # Errors
/// If the link is impossible; see [`RouterLink::new`].
pub fn heavy_load(
    capacity: Rate,
    propagation: Duration,
    packet: Bytes,
) -> Result<(LossForm, RouterLink)> {
    Ok((LossForm::power_law(1.0, 1.0)?, RouterLink::new(capacity, propagation, packet, 0.5)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(load: f64, places: u64) -> Mm1b {
        Mm1b::new(load, places).unwrap()
    }

    /// The distribution summed term by term, as an independent reference.
    fn by_summation(load: f64, places: u64) -> (f64, f64) {
        let weights: Vec<f64> = (0..=places).map(|n| libm::pow(load, n as f64)).collect();
        let all: f64 = weights.iter().sum();
        let mean = weights.iter().enumerate().map(|(n, w)| n as f64 * w).sum::<f64>() / all;
        (weights[places as usize] / all, mean)
    }

    #[test]
    fn three_places_at_half_load_match_a_hand_calculation() {
        // Weights 1, 1/2, 1/4, 1/8: p = 1/15; L = (1/2 + 2/4 + 3/8) / (15/8) = 11/15.
        let q = queue(0.5, 3);
        assert!((q.loss().get() - 1.0 / 15.0).abs() < 1e-15);
        assert!((q.mean_packets() - 11.0 / 15.0).abs() < 1e-14);
        // W = (11/15) / (0.5 * 14/15) = 11/7 services of 120 us = 188.571 us.
        let w = q.mean_delay(Bytes::new(1500), Rate::from_mbit_per_second(100)).unwrap();
        assert_eq!(w, Duration::from_nanos(188_571));
    }

    #[test]
    fn closed_forms_equal_the_sum_at_any_load() {
        for load in [0.1, 0.5, 0.9, 0.999, 0.999_999, 1.0, 1.000_001, 1.001, 1.1, 2.0] {
            for places in [1, 2, 10, 100, 300] {
                let (loss, mean) = by_summation(load, places);
                let q = queue(load, places);
                assert!((q.loss().get() - loss).abs() < 1e-9 * loss.max(1e-12), "{load} {places}");
                assert!((q.mean_packets() / mean - 1.0).abs() < 1e-7, "{load} {places}");
            }
        }
    }

    #[test]
    fn at_full_load_the_loss_is_the_papers_one_over_b() {
        // 1/(B+1) against 1/B: at 1000 places a tenth of a percent.
        let p = queue(1.0, 1000).loss().get();
        assert!((p * 1000.0 - 1.0).abs() < 0.0011);
        // d = L / lambda_in = (B/2) / (B/(B+1)) = (B+1)/2 services, the paper's B/2C.
        let d = queue(1.0, 1000).mean_delay(Bytes::new(1500), Rate::from_mbit_per_second(1000));
        assert_eq!(d, Ok(Duration::from_nanos(500 * 12_000 + 6_000)));
    }

    #[test]
    fn overload_drops_the_excess_over_the_link_rate() {
        // rho = 2: half of it.
        assert!((queue(2.0, 10_000).loss().get() - 0.5).abs() < 1e-12);
        assert!((queue(2.0, 10_000).utilisation() - 1.0).abs() < 1e-12);
        assert!((queue(2.0, 10_000).mean_packets() - 9_999.0).abs() < 1e-6);
    }

    #[test]
    fn more_places_reduce_loss_and_add_delay() {
        for load in [0.5, 1.0, 1.5] {
            for places in 1..50 {
                let (a, b) = (queue(load, places), queue(load, places + 1));
                assert!(a.loss() > b.loss() && a.mean_packets() < b.mean_packets());
            }
        }
    }

    #[test]
    fn impossible_queues_are_rejected() {
        assert!(Mm1b::new(0.0, 1).is_err());
        assert!(Mm1b::new(f64::NAN, 1).is_err());
        assert!(Mm1b::new(0.5, 0).is_err());
        assert!(queue(0.5, 1).mean_delay(Bytes::new(1), Rate::ZERO).is_err());
    }
}
