use sweetspot_units::{Duration, Rate, Time};

use super::epoch::Epoch;

/// The share of goodput that losses may cost before the window is let go, half of what tuning may, and
/// over which time.
const SHARE: f64 = 0.01;
const LASTS: Duration = Duration::from_secs(10);

/// Round trips in which what overflowed has been sent again.
const REPAIRED: u64 = 8;

/// What random losses cost a transfer that keeps no queue: its window falls below what fills the
/// path, and comes back slowly. One that is left alone has a queue to live on meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Toll {
    /// Time lost, of late.
    lost: f64,
    /// When the last loss was.
    last_loss: Option<Time>,
    /// Until when losses are those of an overflow.
    excused: Time,
}

impl Toll {
    /// A window too large has overflowed the buffer of a path of round trip `base`: what is missing
    /// from now on was not lost at random, and what it costs no queue would have saved.
    pub(super) fn excuse(&mut self, now: Time, base: Duration) {
        (self.last_loss, self.excused) = (None, now + base * REPAIRED);
    }

    /// An epoch of a path that carries `best`, `bound` if the window held it back and not
    /// congestion control; whether losses cost too much.
    pub(super) fn is_too_high(
        &mut self,
        now: Time,
        epoch: &Epoch,
        bound: bool,
        best: Rate,
    ) -> bool {
        let span = epoch.span.as_secs_f64();
        // A leaky sum: what is older than that counts less and less.
        self.lost /= 1.0 + span / LASTS.as_secs_f64();
        if epoch.losses > 0 && now >= self.excused {
            self.last_loss = Some(now);
        }
        let lately = self.last_loss.is_some_and(|last| now.since(last) < LASTS);
        if lately && !bound && !epoch.stalled {
            self.lost += span * (1.0 - epoch.rate.as_f64() / best.as_f64()).max(0.0);
        }
        self.lost > LASTS.as_secs_f64() * SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of 100 Mbit/s that carries 70 for 2 s, epoch by epoch of 40 ms, after losses in the first
    /// eight of them: 0.6 s are lost, six times what is put up with in ten.
    fn is_too_high(mut toll: Toll) -> bool {
        let ms = Duration::from_millis;
        (0..50).any(|n: u64| {
            let losses = if n < 8 { 10 } else { 0 };
            let rate = Rate::from_mbit_per_second(70);
            let (span, rtt, highest_rtt) = (ms(40), ms(40), ms(40));
            let epoch = Epoch { rate, span, rtt, highest_rtt, stalled: false, losses, cwnd: None };
            let now = Time::from_nanos(n * 40_000_000);
            toll.is_too_high(now, &epoch, false, Rate::from_mbit_per_second(100))
        })
    }

    #[test]
    fn what_an_overflow_costs_is_not_charged_to_chance() {
        assert!(is_too_high(Toll::default()));
        let mut toll = Toll::default();
        toll.excuse(Time::ZERO, Duration::from_millis(40));
        assert!(!is_too_high(toll));
    }
}
