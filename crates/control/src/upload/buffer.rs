use sweetspot_units::{Bytes, Duration, Rate, Time};

/// The time for which an upload is observed before its buffer is judged.
const OBSERVATION_TIME: Duration = Duration::from_secs(3);

/// An upload must have at least this much payload acknowledged in that time.
const MIN_SENT: Bytes = Bytes::new(1_000_000);

/// A send buffer is reported if it limited the connection for more than this share of its busy time. The counter runs only
/// while all data have been sent: a program that writes more than the buffer holds waits for space at other times, too.
const LIMITED_SHARE: f64 = 0.05;

/// Send buffer per byte of window: the kernel also counts its bookkeeping (SKB_TRUESIZE).
const BUFFER_PER_WINDOW: u64 = 2;

/// A sample of a connection's send buffer (`TCP_INFO`). Counters start when the connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendBufferSample {
    /// Payload acknowledged.
    pub acked: Bytes,
    /// The latest delivery rate.
    pub delivery_rate: Rate,
    /// Whether the application limited the delivery rate.
    pub app_limited: bool,
    /// The time in which the send buffer limited the connection.
    pub sndbuf_limited: Duration,
    /// The time in which the connection had data to send.
    pub busy: Duration,
    /// The min RTT, if known.
    pub minimum_rtt: Option<Duration>,
}

/// Gives advice, once, if the send buffer of a connection is too small.
///
/// The advice does not change the buffer, because SO_SNDBUF turns the kernel's autotuning off for good.
#[derive(Debug, Default)]
pub struct BufferAdvice {
    first: Option<(Time, Bytes)>,
    fastest: Rate,
    is_reported: bool,
}

/// The share of `busy` time in which the send buffer limited a connection; `None` if that is too short to report.
pub fn send_buffer_share(limited: Duration, busy: Duration) -> Option<f64> {
    // The share is NaN if the connection was never busy.
    let share = limited.as_secs_f64() / busy.as_secs_f64();
    (share > LIMITED_SHARE).then_some(share)
}

impl BufferAdvice {
    /// Handles a sample of the connection. Returns the advice once.
    pub fn handle_sample(&mut self, now: Time, sample: &SendBufferSample) -> Option<String> {
        let (since, before) = *self.first.get_or_insert((now, sample.acked));
        if !sample.app_limited {
            self.fastest = self.fastest.max(sample.delivery_rate);
        }
        let sent = sample.acked.saturating_sub(before);
        let minimum_rtt = sample.minimum_rtt?;
        if self.is_reported || now.since(since) < OBSERVATION_TIME || sent < MIN_SENT {
            return None;
        }
        self.is_reported = true;
        let rate = sent / now.since(since);
        send_buffer_share(sample.sndbuf_limited, sample.busy).map(|share| {
            // In the rest of the time, it sent this fast.
            let without_waits = rate.scaled((1.0 - share).recip());
            let possible = self.fastest.max(without_waits);
            let buffer = buffer_for(possible, minimum_rtt);
            format!(
                "the send buffer holds it back at {rate} for {:.0} % of the time; SO_SNDBUF of at least {buffer} lets \
                 {possible} through, or leave SO_SNDBUF unset",
                100.0 * share
            )
        })
    }
}

/// The send buffer that carries `rate` over round trips of `rtt`, as SO_SNDBUF counts it.
fn buffer_for(rate: Rate, rtt: Duration) -> Bytes {
    rate * rtt * BUFFER_PER_WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The advice for a connection that sends 2 MB/s at 40 ms, if its buffer limits it for `share` of the time, and the kernel
    /// measures at most `fastest` Mbit/s.
    fn advice(share: f64, fastest: u64) -> Option<String> {
        let mut advice = BufferAdvice::default();
        let sample = |seconds: u64| SendBufferSample {
            acked: Bytes::new(seconds * 2_000_000),
            delivery_rate: Rate::from_mbit_per_second(fastest),
            app_limited: false,
            sndbuf_limited: Duration::from_secs(seconds).scaled(share),
            busy: Duration::from_secs(seconds),
            minimum_rtt: Some(Duration::from_millis(40)),
        };
        (0..10).find_map(|s| advice.handle_sample(Time::from_nanos(s * 1_000_000_000), &sample(s)))
    }

    #[test]
    fn a_buffer_that_costs_rate_draws_advice() {
        // 2 MB/s in three quarters of the time are 2.667 MB/s without waits. That rate x 40 ms is 106.7 kB; the kernel's
        // bookkeeping doubles it.
        let words = advice(0.25, 16).unwrap();
        assert!(
            words.contains("at 16 Mbit/s for 25 % of the time; SO_SNDBUF of at least 213.3 kB"),
            "{words}"
        );
        // A measured 4 MB/s needs 2 x 160 kB.
        assert!(advice(0.25, 32).unwrap().contains("SO_SNDBUF of at least 320 kB"));
        assert_eq!(advice(0.05, 32), None);
    }
}
