use sweetspot_units::{Duration, Time};

/// Delivery rate estimation (draft-cheng-iccrg-delivery-rate-estimation-00), in packets.
///
/// For every packet sent, [`DeliveryRate::handle_sent`] returns a stamp to keep with the packet. When an ACK arrives, pass
/// the stamp of each newly acknowledged packet to [`DeliveryRate::handle_delivered`]. Then [`DeliveryRate::poll_sample`]
/// returns the rate at which the path delivered. Only some congestion controls need it
/// ([`super::Algorithm::needs_delivery_rate`]).
#[derive(Debug, Clone, Default)]
pub struct DeliveryRate {
    /// C.delivered.
    delivered: u64,
    /// C.delivered_time.
    delivered_time: Time,
    /// C.first_sent_time.
    first_sent: Time,
    /// C.app_limited: samples are application-limited until this many packets are delivered.
    starved_until: Option<u64>,
    /// The newest stamp that the current ACK delivered.
    newest: Option<SentStamp>,
}

/// The state of a packet from its sending to its delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentStamp {
    sent: Time,
    first_sent: Time,
    delivered_time: Time,
    delivered: u64,
    app_limited: bool,
}

/// A sample of the rate at which the path delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// Packets delivered within [`RateSample::interval`].
    pub delivered: u64,
    /// The longer of the sending time and the acknowledgement time of these packets.
    pub interval: Duration,
    /// Packets delivered on the connection when the sampled packet was sent.
    pub prior_delivered: u64,
    /// Packets delivered on the connection now.
    pub total_delivered: u64,
    /// Whether the sender had nothing to send meanwhile. The path may be faster than the sample.
    pub app_limited: bool,
}

impl RateSample {
    /// Packets per second.
    pub fn packets_per_second(&self) -> f64 {
        self.delivered as f64 / self.interval.as_secs_f64()
    }
}

impl DeliveryRate {
    /// A packet is sent while `in_flight` other packets are in flight (section 3.2). Returns its stamp.
    pub fn handle_sent(&mut self, now: Time, in_flight: u32) -> SentStamp {
        if in_flight == 0 {
            self.first_sent = now;
            self.delivered_time = now;
        }
        SentStamp {
            sent: now,
            first_sent: self.first_sent,
            delivered_time: self.delivered_time,
            delivered: self.delivered,
            app_limited: self.starved_until.is_some(),
        }
    }

    /// A packet with this stamp is newly acknowledged, cumulatively or selectively
    /// (section 3.3, UpdateRateSample).
    pub fn handle_delivered(&mut self, now: Time, stamp: &SentStamp) {
        self.delivered += 1;
        self.delivered_time = now;
        let newer =
            |newest: SentStamp| (stamp.delivered, stamp.sent) > (newest.delivered, newest.sent);
        if self.newest.is_none_or(newer) {
            self.newest = Some(*stamp);
            self.first_sent = stamp.sent;
        }
    }

    /// The rate sample of the current ACK, after its packets were passed to [`DeliveryRate::handle_delivered`]. Call this
    /// once per ACK. Returns `None` if the ACK delivered nothing, or if the sample spans less than `min_rtt`, because an ACK
    /// was reordered or lost (section 3.3, GenerateRateSample).
    pub fn poll_sample(&mut self, now: Time, min_rtt: Duration) -> Option<RateSample> {
        self.starved_until = self.starved_until.filter(|until| self.delivered <= *until);
        let stamp = self.newest.take()?;
        let send_elapsed = stamp.sent.since(stamp.first_sent);
        let ack_elapsed = now.since(stamp.delivered_time);
        let interval = send_elapsed.max(ack_elapsed);
        (interval >= min_rtt && interval > Duration::ZERO).then(|| RateSample {
            delivered: self.delivered - stamp.delivered,
            interval,
            prior_delivered: stamp.delivered,
            total_delivered: self.delivered,
            app_limited: stamp.app_limited,
        })
    }

    /// The sender has nothing to send although the window is not full, with `in_flight` packets in flight (section 3.4).
    pub fn handle_starved(&mut self, in_flight: u32) {
        self.starved_until = Some((self.delivered + u64::from(in_flight)).max(1));
    }
}
