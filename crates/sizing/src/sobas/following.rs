use sweetspot_units::{Bytes, Duration, Rate};

use super::adaptive::EPOCHS_PER_STEP;
use super::average::Average;
use super::epoch::Epoch;

/// Epochs over which a rate is averaged.
const AVERAGED: u32 = 4;

/// Growth of the window from which on the rate's answer is more than what it errs by.
const TOLD: f64 = 1.1;

/// Share of the window's growth that the rate must have grown by: all but what it errs by. Where
/// others yield to a queue about a half of it is.
const FOLLOWED: f64 = 0.8;

/// Watches whether the rate grows as the window does. Then the window is all that limits it, and what
/// the round trip is above its lowest is no queue of ours: that would have grown, R = W / T.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Following {
    /// Where the growth began.
    from: Option<(Bytes, Rate)>,
    window: Bytes,
    /// Epochs under this window that are to pass before its effect shows.
    settling: u32,
    average: Average,
}

impl Following {
    /// Judges an epoch that was spent under `window` with the window as the limit: the lowest and the
    /// highest round trip of late, where the window has grown and the rate has followed.
    pub(super) fn handle_epoch(
        &mut self,
        epoch: &Epoch,
        window: Bytes,
    ) -> Option<(Duration, Duration)> {
        if window != self.window {
            let from = self.from.filter(|_| window > self.window);
            let (settling, average) = (EPOCHS_PER_STEP, Average::default());
            *self = Following { from, window, settling, average };
        }
        if self.settling > 0 {
            self.settling -= 1;
            return None;
        }
        self.average.add(epoch);
        let rate = self.average.rate(AVERAGED)?;
        let (from, before) = *self.from.get_or_insert((window, rate));
        let grown = window.as_f64() / from.as_f64();
        let followed = rate.as_f64() / before.as_f64() - 1.0;
        let follows = grown >= TOLD && followed >= FOLLOWED * (grown - 1.0);
        self.average.range().filter(|_| follows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);
    const HIGHEST: Duration = Duration::from_millis(43);

    /// What is told after each of these, window and rate, stood for so many epochs.
    fn told(stays: &[(u64, u64, u32)]) -> Vec<bool> {
        let mut following = Following::default();
        let mut stay = |(kilobytes, mbit, epochs)| {
            let epoch = Epoch {
                rate: Rate::from_mbit_per_second(mbit),
                span: RTT,
                rtt: RTT,
                highest_rtt: HIGHEST,
                stalled: false,
                losses: 0,
                cwnd: None,
            };
            let window = Bytes::new(kilobytes * 1000);
            let each: Vec<_> =
                (0..epochs).map(|_| following.handle_epoch(&epoch, window)).collect();
            each.last() == Some(&Some((RTT, HIGHEST)))
        };
        stays.iter().map(|each| stay(*each)).collect()
    }

    #[test]
    fn a_rate_that_grows_as_the_window_does_is_told() {
        // 100 kB per 40 ms are 20 Mbit/s.
        assert_eq!(told(&[(100, 20, 6), (105, 21, 6), (120, 24, 6)]), [false, false, true]);
        // Two epochs to settle and four to average: not sooner.
        assert_eq!(told(&[(100, 20, 6), (120, 24, 5)]), [false, false]);
    }

    #[test]
    fn a_full_path_and_one_that_others_yield_on_are_not() {
        assert_eq!(told(&[(100, 20, 6), (120, 20, 6)]), [false, false]);
        // Half of it, as of window-limited transfers that share a queue, eq. (8).
        assert_eq!(told(&[(100, 20, 6), (120, 22, 6)]), [false, false]);
    }

    #[test]
    fn what_came_before_a_smaller_window_is_forgotten() {
        // From 100 kB the rate has grown by 30 % at 112; from 90, which carried as much, not at all.
        assert_eq!(told(&[(100, 20, 6), (90, 26, 6), (112, 26, 6)]), [false, false, false]);
    }
}
