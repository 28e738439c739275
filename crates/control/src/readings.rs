//! Rates and RTTs of a connection, read at regular times.

use sweetspot_units::{Duration, Rate};

/// Measurements at regular times: all of them at first, then every second, every fourth and so on.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Readings {
    kept: Vec<Measured>,
    seen: usize,
    /// Of 2^`halvings` measurements, one is kept.
    halvings: u32,
}

/// The most measurements kept for each connection.
const MAX_KEPT: usize = 64;

impl Readings {
    pub fn add(&mut self, measured: Measured) {
        if self.seen.is_multiple_of(1 << self.halvings) {
            self.kept.push(measured);
        }
        self.seen += 1;
        if self.kept.len() > MAX_KEPT {
            let mut is_kept = false;
            self.kept.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.halvings += 1;
        }
    }

    /// The medians. A transfer that drains at its end hardly changes them.
    pub fn typical(&self) -> Option<Measured> {
        let middle = self.kept.len() / 2;
        let mut rates: Vec<Rate> = self.kept.iter().map(|each| each.rate).collect();
        let mut rtts: Vec<Duration> = self.kept.iter().map(|each| each.rtt).collect();
        rates.sort_unstable();
        rtts.sort_unstable();
        Some(Measured { rate: *rates.get(middle)?, rtt: *rtts.get(middle)? })
    }
}

/// A rate and an RTT, or the medians of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub rate: Rate,
    pub rtt: Duration,
}

impl Measured {
    /// `None` before the first measurement, or while nothing moves.
    pub fn of(rate: Rate, rtt: Duration) -> Option<Measured> {
        (rate > Rate::ZERO && rtt > Duration::ZERO).then_some(Measured { rate, rtt })
    }
}
