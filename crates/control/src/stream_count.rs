use sweetspot_protocol::MAX_STREAMS;
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// The number of connections is doubled again only if the last doubling raised the rate by this factor. If a limit of each
/// connection was the cause, the rate doubles; on a full path it does not rise.
const MIN_GAIN: f64 = 1.25;
/// A gain that is clear after only [`CLEAR_ROUND_TRIPS`]: closer to double than to no gain.
const CLEAR_GAIN: f64 = 1.5;
const CLEAR_ROUND_TRIPS: u64 = 2;

/// The number of connections that a transfer uses.
///
/// One connection fills a path unless something limits each connection: its window, at the host's maximum, or random losses
/// under a loss-based congestion control. Then twice as many connections carry twice as much, until the path is full. If the
/// rate of one connection and the path's capacity are known, so is the number. Otherwise it is doubled while the cause lasts
/// and the last doubling paid off. After each doubling that did not, the wait before the next attempt grows.
///
/// ```
/// use sweetspot_control::{HeldDown, StreamCount};
/// use sweetspot_units::{Bytes, Duration, Time};
///
/// let mut streams = StreamCount::new(None);
/// let rtt = Duration::from_millis(100);
/// // The path carries 10 Mbit/s with any number of connections. For ten seconds something seems to limit each of them.
/// let mut at = |second: u64| {
///     let content = Bytes::new(1_250_000 * second);
///     let held_down = (second < 10).then_some(HeldDown { each: None });
///     streams.update(Time::ZERO + Duration::from_secs(second), rtt, content, held_down, None)
/// };
/// let changes: Vec<_> = (1..100).filter_map(&mut at).collect();
/// assert_eq!(changes, [2], "two connections carry no more than one, so the number stays");
/// ```
#[derive(Debug, Clone)]
pub struct StreamCount {
    count: u32,
    fixed: bool,
    greedy: bool,
    /// When the current number came into use.
    since: Option<Time>,
    /// Two marks of time and content; the older one is one to two settling times old. The recent rate is measured since that
    /// mark.
    marks: Option<[(Time, Bytes); 2]>,
    /// The rate before the last doubling.
    before: Option<Rate>,
    /// The number of doublings that did not pay off; no other is tried before `idle_until`.
    failures: u32,
    idle_until: Time,
}

/// Something limits each connection separately.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldDown {
    /// The rate of one connection under this limit, if known.
    pub each: Option<Rate>,
}

impl StreamCount {
    /// Starts with one connection, or with a fixed number `chosen` by the user.
    pub fn new(chosen: Option<u32>) -> StreamCount {
        StreamCount {
            count: chosen.unwrap_or(1).clamp(1, MAX_STREAMS),
            fixed: chosen.is_some(),
            greedy: false,
            since: None,
            marks: None,
            before: None,
            failures: 0,
            idle_until: Time::ZERO,
        }
    }

    /// Doubles the number while that pays off, even if nothing limits each connection. Together they may then take more than
    /// one flow's fair share.
    pub fn greedy(self, greedy: bool) -> StreamCount {
        StreamCount { greedy, ..self }
    }

    /// The number of connections to use.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Handles the total `content` over all connections so far, the limit on each connection, if any, and the path's
    /// `capacity`, if known. Returns the new number when it changes.
    pub fn update(
        &mut self,
        now: Time,
        rtt: Duration,
        content: Bytes,
        held_down: Option<HeldDown>,
        capacity: Option<Rate>,
    ) -> Option<u32> {
        let since = *self.since.get_or_insert(now);
        if self.fixed || now < since + settling(rtt) {
            return None;
        }
        let each = held_down.and_then(|held_down| held_down.each);
        if let Some((each, capacity)) = each.zip(capacity) {
            let needed = (capacity.as_f64() / each.as_f64()).ceil().min(MAX_STREAMS.into());
            if needed >= f64::from(self.count) * MIN_GAIN {
                return self.become_count(now, needed as u32);
            }
        }
        if now < self.idle_until {
            return None;
        }
        let marks = self.marks.get_or_insert([(now, content); 2]);
        let (from, before) = marks[0];
        if now >= marks[1].0 + settling(rtt) {
            *marks = [marks[1], (now, content)];
        }
        if now < from + rtt * CLEAR_ROUND_TRIPS || !(held_down.is_some() || self.greedy) {
            return None;
        }
        let rate = content.saturating_sub(before) / now.since(from);
        if capacity.is_some_and(|capacity| rate.scaled(MIN_GAIN) > capacity) {
            // The path has too little capacity left for such a gain.
            return None;
        }
        let gain = self.before.map(|before| rate.as_f64() / before.as_f64());
        if now < from + settling(rtt) && gain.is_none_or(|gain| gain < CLEAR_GAIN) {
            return None;
        }
        if gain.is_some_and(|gain| gain * MIN_GAIN < 1.0) {
            // More connections do not carry less: the earlier rate came from an unusual moment, such as the end of slow start,
            // and shows nothing.
            (self.before, self.marks) = (None, None);
            return None;
        }
        if gain.is_some_and(|gain| gain < MIN_GAIN) {
            // This rate may be from an unusual moment, too: doubling is tried again, after ever longer waits.
            self.failures += 1;
            self.idle_until = now + settling(rtt) * (4 << self.failures.min(6));
            (self.before, self.marks) = (None, None);
            return None;
        }
        if self.count >= MAX_STREAMS {
            return None;
        }
        let doubled = self.become_count(now, (self.count * 2).min(MAX_STREAMS));
        self.before = Some(rate);
        doubled
    }

    fn become_count(&mut self, now: Time, count: u32) -> Option<u32> {
        self.count = count;
        (self.since, self.marks, self.before) = (Some(now), None, None);
        Some(count)
    }
}

/// The rate of one connection with a loss-based congestion control and a random `loss` rate of its segments: the mean
/// window of Reno or, unless the sender uses Reno, of CUBIC if that is larger (RFC 9438, sections 5.1 and 5.2:
/// 1.2 / p^0.5, and 1.054 RTT^0.75 / p^0.75 segments), divided by the RTT.
///
/// ```
/// use sweetspot_control::loss_limited_rate;
/// use sweetspot_units::{Bytes, Duration, Rate};
///
/// // RFC 9438, table 1: CUBIC at a RTT of 100 ms and a loss of 10^-4: 187 segments of 1500 bytes.
/// let rate = loss_limited_rate(Bytes::new(1500), Duration::from_millis(100), 1e-4, false);
/// assert!((rate.as_f64() / (187.0 * 1500.0 * 8.0 / 0.1) - 1.0).abs() < 0.01);
/// ```
pub fn loss_limited_rate(mss: Bytes, rtt: Duration, loss: f64, is_reno: bool) -> Rate {
    let reno = 1.2 / loss.sqrt();
    let cubic = 1.054 * (rtt.as_secs_f64() / loss).powf(0.75);
    let window = if is_reno { reno } else { reno.max(cubic) };
    mss.scaled(window) / rtt
}

/// The time in which a connection reaches its rate: slow start grows from ten segments to a thousand in seven RTTs. The rate is
/// then measured over the same time again.
fn settling(rtt: Duration) -> Duration {
    (rtt * 8).clamp(Duration::from_millis(250), Duration::from_secs(10))
}

/// Detects whether random losses limit a sender: losses occur without a queue, cwnd is the limit, and more connections do not
/// raise the loss rate. Losses at a full queue come with a longer RTT; losses at a short queue or a policer increase with the
/// sending rate.
///
/// ```
/// use sweetspot_control::{LossWatch, SenderSample};
/// use sweetspot_units::{Duration, Time};
///
/// let mut losses = LossWatch::default();
/// let mut sample = SenderSample {
///     rtt: Duration::from_millis(51),
///     minimum_rtt: Duration::from_millis(50),
///     segments: 0,
///     retransmitted: 0,
///     cwnd_limited: true,
///     streams: 1,
/// };
/// assert!(!losses.update(Time::ZERO, &sample));
/// (sample.segments, sample.retransmitted) = (5000, 5);
/// assert!(losses.update(Time::ZERO + Duration::from_secs(3), &sample));
/// ```
#[derive(Debug, Clone, Default)]
pub struct LossWatch {
    stage: Option<Stage>,
    /// The number of connections and the loss rate when random losses were first found.
    first: Option<(u32, f64)>,
    /// The last conclusion, in force until there are enough losses for a new one.
    random: bool,
    share: Option<f64>,
}

/// A period with a constant number of connections, with the counts at its start.
#[derive(Debug, Clone, Copy)]
struct Stage {
    streams: u32,
    segments: u64,
    retransmitted: u64,
    /// When a queue was last seen.
    queued: Option<Time>,
}

/// The sender kernel's totals over all connections.
#[derive(Debug, Clone, Copy)]
pub struct SenderSample {
    /// The current RTT.
    pub rtt: Duration,
    /// The min RTT so far.
    pub minimum_rtt: Duration,
    /// Segments sent so far, including retransmissions.
    pub segments: u64,
    /// Retransmitted segments so far.
    pub retransmitted: u64,
    /// Whether cwnd is smaller than the advertised window.
    pub cwnd_limited: bool,
    /// The number of connections.
    pub streams: u32,
}

/// The minimum number of losses for a conclusion, and the time without a queue that must precede it.
const MIN_LOSSES: u64 = 3;
const QUIET_TIME: Duration = Duration::from_secs(2);
/// An RTT that exceeds the minimum by this fraction, and by at least [`MIN_QUEUE`], shows a queue.
const QUEUE_SHARE: f64 = 0.15;
const MIN_QUEUE: Duration = Duration::from_millis(2);
/// On a full path, doubling the connections raises the loss rate by at least this factor.
const FULL_PATH_LOSS_GROWTH: f64 = 2.0;

impl LossWatch {
    /// The fraction of segments lost at random, if random losses limit the sender.
    pub fn share(&self) -> Option<f64> {
        self.share
    }

    /// Handles a sample; returns whether random losses limit the sender.
    pub fn update(&mut self, now: Time, sample: &SenderSample) -> bool {
        let fresh = Stage {
            streams: sample.streams,
            segments: sample.segments,
            retransmitted: sample.retransmitted,
            queued: None,
        };
        let stage = self.stage.get_or_insert(fresh);
        if stage.streams != sample.streams {
            *stage = fresh;
        }
        let queue = sample.rtt.saturating_sub(sample.minimum_rtt);
        if queue > sample.minimum_rtt.scaled(QUEUE_SHARE).max(MIN_QUEUE) {
            stage.queued = Some(now);
        }
        let quiet = stage.queued.is_none_or(|queued| now.since(queued) >= QUIET_TIME);
        if !sample.cwnd_limited || !quiet {
            return false;
        }
        let losses = sample.retransmitted.saturating_sub(stage.retransmitted);
        if losses >= MIN_LOSSES {
            let segments = sample.segments.saturating_sub(stage.segments).max(1);
            let share = losses as f64 / segments as f64;
            if self.first.is_none_or(|(streams, _)| streams == stage.streams) {
                self.first = Some((stage.streams, share));
            }
            self.random =
                self.first.is_some_and(|(_, first)| share <= first * FULL_PATH_LOSS_GROWTH);
            // Counting stopped because of the last loss; leaving it out makes the estimate unbiased.
            self.share = self.random.then_some((losses - 1) as f64 / segments as f64);
        }
        self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Simulates connections that each carry `each` on a path of `full`; returns the final number.
    fn simulate(each: f64, full: f64, held_down: impl Fn(f64) -> bool) -> u32 {
        let mut streams = StreamCount::new(None);
        let mut content = 0.0;
        for tick in 0..600 {
            let rate = (each * f64::from(streams.count())).min(full);
            content += rate / 8.0 / 10.0;
            let now = Time::ZERO + Duration::from_millis(100) * (tick + 1);
            let held_down = held_down(rate).then_some(HeldDown { each: None });
            streams.update(now, RTT, Bytes::new(content as u64), held_down, None);
        }
        streams.count()
    }

    #[test]
    fn the_count_grows_just_enough_to_fill_the_path() {
        // A window of 4 MiB at 200 ms carries some 90 of 300 Mbit/s, so four connections are enough.
        assert_eq!(simulate(90e6, 300e6, |rate| rate < 300e6), 4);
        assert_eq!(simulate(20e6, 90e6, |rate| rate < 90e6), 8);
    }

    /// Each connection carries 30 Mbit/s at first, at the end of slow start, and then 9 Mbit/s.
    #[test]
    fn a_momentary_rate_does_not_end_the_search() {
        let mut streams = StreamCount::new(None);
        let (mut content, mut reached) = (0.0, None);
        for tick in 1..600u32 {
            let seconds = f64::from(tick) / 10.0;
            let now = Time::ZERO + Duration::from_millis(100) * tick.into();
            let each = if seconds < 1.6 { 30e6 } else { 9e6 };
            let rate = f64::min(each * f64::from(streams.count()), 96e6);
            content += rate / 8.0 / 10.0;
            let held_down = (rate < 96e6).then_some(HeldDown { each: None });
            streams.update(now, RTT, Bytes::new(content as u64), held_down, None);
            if rate >= 72e6 {
                reached.get_or_insert(seconds);
            }
        }
        // Three doublings of two settling times each, one more for the unusual rate, and slow start before them.
        let settled = settling(RTT).as_secs_f64();
        assert!(reached.unwrap() < 9.0 * settled + 1.0, "{reached:?}");
    }

    #[test]
    fn a_known_stream_count_is_reached_in_one_step() {
        let mut streams = StreamCount::new(None);
        let (each, capacity) = (9e6, 96e6);
        let (mut content, mut numbers) = (0.0, Vec::new());
        for tick in 1..600u32 {
            let rate = f64::min(each * f64::from(streams.count()), capacity);
            content += rate / 8.0 / 10.0;
            let now = Time::ZERO + Duration::from_millis(100) * tick.into();
            let held_down = Some(HeldDown { each: Some(Rate::from_f64(each)) });
            let known = Some(Rate::from_f64(capacity));
            let content = Bytes::new(content as u64);
            numbers.extend(streams.update(now, RTT, content, held_down, known));
        }
        // 96 / 9 = 10.7, rounded up.
        assert_eq!(numbers, [11]);
    }

    #[test]
    fn the_count_stays_one_if_nothing_limits_the_connection() {
        assert_eq!(simulate(50e6, 100e6, |_| false), 1);
    }

    #[test]
    fn a_configured_stream_count_never_changes() {
        let mut streams = StreamCount::new(Some(3));
        let late = Time::ZERO + Duration::from_secs(100);
        let held_down = Some(HeldDown { each: None });
        assert_eq!(streams.update(late, RTT, Bytes::new(1), held_down, None), None);
        assert_eq!(streams.count(), 3);
    }

    fn sample(rtt_ms: u64, segments: u64, retransmitted: u64, streams: u32) -> SenderSample {
        SenderSample {
            rtt: Duration::from_millis(rtt_ms),
            minimum_rtt: Duration::from_millis(50),
            segments,
            retransmitted,
            cwnd_limited: true,
            streams,
        }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn losses_with_a_queue_are_not_random() {
        let mut losses = LossWatch::default();
        losses.update(at(0), &sample(50, 0, 0, 1));
        assert!(!losses.update(at(3), &sample(90, 5000, 9, 1)));
        assert!(!losses.update(at(4), &sample(50, 6000, 9, 1)), "a queue was seen a second ago");
        assert!(losses.update(at(6), &sample(50, 8000, 9, 1)));
    }

    #[test]
    fn a_loss_rate_that_rises_with_the_stream_count_is_not_random() {
        let mut losses = LossWatch::default();
        losses.update(at(0), &sample(50, 0, 0, 1));
        assert!(losses.update(at(5), &sample(50, 10_000, 10, 1)));
        losses.update(at(5), &sample(50, 10_000, 10, 2));
        assert!(losses.update(at(8), &sample(50, 20_000, 25, 2)));
        assert!(!losses.update(at(9), &sample(50, 22_000, 70, 2)));
    }

    #[test]
    fn a_receive_window_limited_sender_is_not_loss_limited() {
        let mut losses = LossWatch::default();
        let limited = |n| SenderSample { cwnd_limited: false, ..sample(50, n, n / 100, 1) };
        losses.update(at(0), &limited(0));
        assert!(!losses.update(at(5), &limited(10_000)));
    }
}
