use sweetspot_scenario::{Recorder, Sample, Scenario};
use sweetspot_units::{Duration, Rate, Time};

use super::Observers;
use crate::hosts::Hosts;
use crate::network::Network;

/// Passes samples of every measured transfer to a [`Recorder`] at regular intervals.
pub(crate) struct Sampler {
    /// The time between samples; `None` for no samples.
    interval: Option<Duration>,
    samples_taken: u64,
    last: Time,
    /// Bits that the narrow link had sent by the previous sample.
    sent_bits: u64,
}

impl Sampler {
    /// A sampler with the interval that `recorder` requests.
    pub(crate) fn new(recorder: &dyn Recorder) -> Sampler {
        let interval = recorder.interval().map(|interval| interval.max(Duration::from_micros(1)));
        Sampler { interval, samples_taken: 0, last: Time::ZERO, sent_bits: 0 }
    }

    /// The times of all samples up to `end`.
    pub(crate) fn times(&self, end: Time) -> impl Iterator<Item = Time> {
        self.interval.into_iter().flat_map(move |interval| {
            let count = end.as_nanos() / interval.as_nanos();
            (0..=count).map(move |number| Time::ZERO + interval * number)
        })
    }

    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.interval.is_some_and(|interval| now == Time::ZERO + interval * self.samples_taken)
    }

    /// Takes the sample that is due at `now`.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        scenario: &Scenario,
        (network, hosts, observers): (&mut Network, &Hosts, &Observers),
        recorder: &mut dyn Recorder,
    ) {
        let narrow = network.hop(observers.path.narrow());
        let waiting = narrow.waiting(now);
        let totals = narrow.totals(now);
        let rate = mean_rate(scenario, self.last, now);
        let sent = totals.sent_bits - self.sent_bits;
        let used = utilisation(rate, sent, now.since(self.last));
        self.samples_taken += 1;
        (self.last, self.sent_bits) = (now, totals.sent_bits);
        for (transfer, monitor) in observers.monitors.iter().enumerate() {
            let payload = hosts.payload(transfer).get();
            let sender = monitor.sender();
            recorder.record(&Sample {
                at_s: now.as_secs_f64(),
                transfer,
                cwnd_packets: sender.cwnd,
                ssthresh_packets: sender.ssthresh,
                window_bytes: monitor.window() * payload,
                acked_bytes: sender.acknowledged * payload,
                rtt_s: sender.rtt.map(Duration::as_secs_f64),
                queue_packets: waiting,
                dropped_packets: totals.drops,
                utilisation: Some(used),
            });
        }
    }
}

/// The mean rate of the narrow link between two times.
pub(crate) fn mean_rate(scenario: &Scenario, from: Time, until: Time) -> Rate {
    scenario.path.mean_rate(from.since(Time::ZERO), until.since(Time::ZERO))
}

/// The share of a link's capacity that `bits` use in the time `elapsed`, at most 1. Times are whole
/// nanoseconds, so without this bound the quotient could exceed 1 by the bits of one nanosecond.
pub(crate) fn utilisation(rate: Rate, bits: u64, elapsed: Duration) -> f64 {
    let capacity = rate.as_f64() * elapsed.as_secs_f64();
    if capacity > 0.0 { (bits as f64 / capacity).min(1.0) } else { 0.0 }
}
