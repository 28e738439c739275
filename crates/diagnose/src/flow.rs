use std::net::SocketAddr;

use serde::Serialize;
use sweetspot_trace::flow::Deliveries;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::capture::classifier::Classifier;
use crate::evidence::Failure;
use crate::joined::Joined;
use crate::limits::rounded;
use crate::live::Sample;
use crate::path::{NoReplay, PathEstimate, Replay, Simulation};
use crate::{Class, Evidence, Facts, LimitVerdict, Limits, SharedPath, in_rate};

/// Table entry if a receiver knows only that the limit is at the sender or on the path.
pub const SENDER_OR_PATH: &str = "sender or path";

/// The name of a limit by a window above TCP, which the receiver's messages grant.
const WINDOW_ABOVE_TCP: &str = "window above TCP";

/// The name of the path's capacity if a pacing sender may have set the rate.
const LINK_OR_PACING: &str = "link or pacing";

/// If the mean over the whole time is at least this share of the rate, only the rate is printed.
const SAME_RATE: f64 = 0.9;

/// The diagnosis of a flow: the data that one end of a connection sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flow {
    /// The sender's address.
    pub source: SocketAddr,
    /// The receiver's address.
    pub destination: SocketAddr,
    /// The limit.
    pub verdict: LimitVerdict,
    /// Each class's share of the time.
    pub limits: Limits,
    /// The parts of the application's share.
    pub application_time: ApplicationTime,
    /// Min RTT.
    pub rtt_min_s: Option<f64>,
    /// Median RTT; for a live connection, of the smoothed RTT while data were in flight.
    pub rtt_median_s: Option<f64>,
    /// The kernel's smoothed RTT at one moment, if no median is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_smoothed_s: Option<f64>,
    /// Payload rate in bits per second while the flow lasted. From [one reading](Evidence::is_one_reading), the rate while data
    /// was in flight.
    pub goodput_bps: f64,
    /// Whether `goodput_bps` is the rate while data was in flight.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub goodput_is_while_sending: bool,
    /// The most in flight where a window above TCP limited it, as of HTTP/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_above_tcp_bytes: Option<u64>,
    /// Payload.
    pub bytes: u64,
    /// Retransmitted segments.
    pub retransmitted_segments: u64,
    /// Whether `retransmitted_segments` is known: a receiver's kernel does not count them.
    #[serde(skip)]
    pub counts_retransmissions: bool,
    /// The maximum gain without the limit. Unknown if the capacity is unknown, or if another limit is below it.
    pub expected_gain_bps: Option<f64>,
    /// The fix.
    pub fix: String,
    /// Further remarks.
    pub remarks: Vec<String>,
    /// Times the receiver closed its window.
    pub zero_windows: u64,
    /// The other connections on its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_path: Option<SharedPath>,
    /// The beginning and end of the time over which the rate is averaged, if known.
    #[serde(skip)]
    pub span: Option<(Time, Time)>,
    #[serde(skip)]
    pub(crate) evidence: Evidence,
    /// The division of its time for the case that it fills the path together with other connections.
    #[serde(skip)]
    pub(crate) on_full_path: Option<OnFullPath>,
    /// The part of the capture that shows it.
    #[serde(skip)]
    pub seen: Option<CaptureExtent>,
    /// Figures that only a capture shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// The path as a capture shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathEstimate>,
    /// How to simulate the transfer with and without its limit, or why that is impossible.
    #[serde(skip)]
    pub replay: Option<Result<Replay, NoReplay>>,
    /// Findings from two captures of the connection together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<Joined>,
    /// The transfer as a simulator ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulation>,
}

/// The part of a capture that shows a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureExtent {
    /// Its first packet.
    pub begun: Time,
    /// Its last packet.
    pub last: Time,
    /// All its packets, copies left out.
    pub packets: u64,
    /// The class of each piece of the sender's time.
    pub(crate) classifier: Classifier,
}

impl CaptureExtent {
    /// The same part for a path that the connection fills together with others.
    pub(crate) fn on_full_path(mut self) -> CaptureExtent {
        self.classifier = self.classifier.on_full_path();
        self
    }
}

/// The view of a flow that fills its path together with others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OnFullPath {
    /// The division of its time.
    pub limits: Limits,
    /// Its deliveries over time. Their sum with those from the other flows shows whether the path is full.
    pub deliveries: Deliveries,
}

/// Shares of the time in which the sender had nothing to send.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ApplicationTime {
    /// The sender was due to send.
    pub own: f64,
    /// The receiver was due to send.
    pub waiting_for_peer: f64,
    /// Neither end had anything to send.
    pub idle: f64,
}

impl ApplicationTime {
    fn of(limits: &Limits) -> ApplicationTime {
        let share = |class| rounded(limits.share(class));
        ApplicationTime {
            own: share(Class::Application),
            waiting_for_peer: share(Class::WaitingForPeer),
            idle: share(Class::Idle),
        }
    }
}

impl Flow {
    /// The rate in words. In a capture it covers the time from the first data to the last. If handshake or idle time at an end
    /// changes the mean noticeably, that is printed, too.
    pub fn rate(&self) -> String {
        let goodput = Rate::from_f64(self.goodput_bps);
        let rate = in_rate(goodput);
        let Evidence { bytes, lasted, .. } = self.evidence;
        let whole = (lasted > Duration::ZERO && !self.evidence.is_sampled).then(|| bytes / lasted);
        match whole.filter(|whole| *whole < goodput.scaled(SAME_RATE)) {
            _ if self.goodput_is_while_sending => format!("{rate} while it was sending"),
            _ if self.evidence.is_unacknowledged && self.bytes > 0 => {
                format!("{rate} sent, none of it acknowledged")
            }
            None if goodput == Rate::ZERO && lasted == Duration::ZERO && bytes > Bytes::ZERO => {
                format!("{bytes} in all")
            }
            Some(whole) => format!(
                "{rate} from the first data to the last, {} over all {lasted}",
                in_rate(whole)
            ),
            None => rate,
        }
    }

    /// The evidence for its verdict.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The shares of its time in words. For a live connection's receiver, unknown time is called the sender's or the path's.
    pub fn time(&self) -> String {
        self.limits.words_as(|class| match class {
            Class::Unknown if self.evidence.is_beyond_receiver() => SENDER_OR_PATH,
            Class::WaitingForPeer if self.evidence.granted.is_some() => WINDOW_ABOVE_TCP,
            Class::Bandwidth if self.evidence.may_be_paced() => LINK_OR_PACING,
            class => class.words(),
        })
    }

    /// Its limit in 14 characters at most, for a table.
    pub fn brief(&self) -> &'static str {
        match self.verdict.cause {
            Class::Unknown if self.evidence.is_beyond_receiver() => SENDER_OR_PATH,
            cause => brief(cause, Traits::of(&self.evidence)),
        }
    }

    /// Adds a live connection's deliveries over time. A receiver knows neither the sender nor the path: if the path turns out to
    /// be full, its unknown time and its losses are attributed to the path's capacity.
    #[must_use]
    pub fn with_deliveries(mut self, deliveries: &Deliveries) -> Flow {
        let mut limits = self.limits;
        if self.evidence.is_by_receiver() {
            limits.reassign(Class::Unknown, Class::Bandwidth);
            limits.reassign(Class::Congestion, Class::Bandwidth);
        }
        self.on_full_path = Some(OnFullPath { limits, deliveries: deliveries.clone() });
        self
    }

    /// Takes the counters of the only reading of a sender that is idle now, and its rate over the time with data in flight.
    pub(crate) fn take_totals(&mut self, totals: &Sample) {
        self.retransmitted_segments = totals.retransmitted;
        if totals.busy > Duration::ZERO {
            self.bytes = totals.acked.get();
            self.goodput_bps = (totals.acked / totals.busy).as_f64();
            self.goodput_is_while_sending = true;
        }
    }

    /// The flows of opening connections with repeated, unanswered SYNs, by their ends and retransmissions, and the ends of
    /// the others: after a single SYN, the answer may still come.
    pub fn unanswered(
        opening: impl Iterator<Item = ([SocketAddr; 2], u64)>,
    ) -> (Vec<Flow>, Vec<[SocketAddr; 2]>) {
        let (silent, others): (Vec<_>, Vec<_>) = opening.partition(|(_, again)| *again > 0);
        let flow = |([from, to], again): ([SocketAddr; 2], u64)| {
            Flow::never_established(from, to, 1 + again)
        };
        (silent.into_iter().map(flow).collect(), others.into_iter().map(|(ends, _)| ends).collect())
    }

    /// A connection with `syns` unanswered SYNs so far, according to the kernel.
    fn never_established(source: SocketAddr, destination: SocketAddr, syns: u64) -> Flow {
        let evidence = Evidence {
            segments: syns,
            retransmitted: Some(syns.saturating_sub(1)),
            failure: Some(Failure::Unanswered),
            is_sampled: true,
            ..Evidence::default()
        };
        let limits = Limits::only(Class::NeverEstablished, Duration::from_nanos(1));
        Flow::new(source, destination, limits, &evidence)
    }

    /// Whether its median RTT is a receiver's estimate, and so far above the minimum that it may contain the sender's pauses.
    pub fn may_time_pauses(&self) -> bool {
        let is_queue = self.verdict.class == Class::Bandwidth;
        self.evidence.is_by_receiver() && !is_queue && self.evidence.standing_queue().is_some()
    }

    /// Updates the verdict and the figures derived from limits and evidence.
    pub(crate) fn conclude(&mut self) {
        self.verdict = LimitVerdict::new(&self.limits, &self.evidence);
        self.application_time = ApplicationTime::of(&self.limits);
        self.expected_gain_bps = self.verdict.gain.map(Rate::as_f64);
        self.fix.clone_from(&self.verdict.fix);
        self.replay();
    }

    /// Sets the field `replay`, if the path is known.
    pub(crate) fn replay(&mut self) {
        let programs = self.limits.family_share(Class::Application);
        let held = [self.verdict.share_of_time, programs];
        let replay = |path| Replay::new(self.verdict.cause, held, &self.evidence, path);
        self.replay = self.path.as_ref().map(replay);
    }

    /// Takes the fix from `other`, the opposite direction, if this flow waits for messages that Nagle's algorithm delays there.
    pub(crate) fn answers_late_messages(&mut self, other: &Flow) {
        let answers =
            self.verdict.cause == Class::WaitingForPeer && self.evidence.granted.is_none();
        if answers && other.verdict.cause == Class::Application && other.evidence.has_nagle() {
            self.fix = "Nagle's algorithm holds the messages that this data answers: see the other direction."
                .to_owned();
            self.verdict.fix.clone_from(&self.fix);
        }
    }

    /// The diagnosis of the data from `source` to `destination`.
    pub fn new(
        source: SocketAddr,
        destination: SocketAddr,
        limits: Limits,
        evidence: &Evidence,
    ) -> Flow {
        let verdict = LimitVerdict::new(&limits, evidence);
        let rtt = evidence.rtt.map(Duration::as_secs_f64);
        Flow {
            source,
            destination,
            limits,
            application_time: ApplicationTime::of(&limits),
            rtt_min_s: evidence.rtt_min.map(Duration::as_secs_f64),
            rtt_median_s: rtt.filter(|_| !evidence.rtt_is_smoothed),
            rtt_smoothed_s: rtt.filter(|_| evidence.rtt_is_smoothed),
            goodput_bps: evidence.goodput.as_f64(),
            goodput_is_while_sending: evidence.is_one_reading,
            window_above_tcp_bytes: evidence.granted.map(Bytes::get),
            bytes: evidence.bytes.get(),
            retransmitted_segments: evidence.retransmitted.unwrap_or(0),
            counts_retransmissions: evidence.retransmitted.is_some(),
            expected_gain_bps: verdict.gain.map(Rate::as_f64),
            fix: verdict.fix.clone(),
            remarks: Vec::new(),
            zero_windows: evidence.zero_windows,
            shared_path: None,
            span: None,
            evidence: *evidence,
            on_full_path: None,
            seen: None,
            facts: None,
            path: None,
            replay: None,
            joined: None,
            simulated: None,
            verdict,
        }
    }
}

/// Properties of a flow on which the short name of its limit depends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traits {
    /// A window above TCP makes it wait for its peer.
    is_granted: bool,
    /// Its segments are evenly spaced, by a link or by its sender.
    may_be_paced: bool,
}

impl Traits {
    pub fn of(e: &Evidence) -> Traits {
        Traits { is_granted: e.granted.is_some(), may_be_paced: e.may_be_paced() }
    }
}

/// The name of a limit in 14 characters at most.
pub(crate) fn brief(cause: Class, traits: Traits) -> &'static str {
    match cause {
        Class::WaitingForPeer if traits.is_granted => "wnd above TCP",
        Class::Bandwidth if traits.may_be_paced => LINK_OR_PACING,
        cause => cause.brief(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(class: Class, evidence: &Evidence) -> Flow {
        let [from, to] = [1, 2].map(|n| SocketAddr::from(([192, 0, 2, n], 5000)));
        Flow::new(from, to, Limits::only(class, Duration::from_secs(1)), evidence)
    }

    /// 1 MB in 400 ms is 20 Mbit/s; with the handshake it took 550 ms, 14.5 Mbit/s.
    #[test]
    fn a_rate_states_its_interval_if_the_whole_lifetime_gives_another() {
        let goodput = Rate::from_mbit_per_second(20);
        let of = |ms, is_sampled| {
            let (bytes, lasted) = (Bytes::new(1_000_000), Duration::from_millis(ms));
            let evidence = Evidence { goodput, bytes, lasted, is_sampled, ..Evidence::default() };
            flow(Class::Opportunity, &evidence).rate()
        };
        assert_eq!(
            of(550, false),
            "20.0 Mbit/s from the first data to the last, 14.5 Mbit/s over all 550 ms"
        );
        assert_eq!([of(420, false), of(550, true)], ["20.0 Mbit/s"; 2]);
    }

    #[test]
    fn unexplained_time_at_a_receiver_is_blamed_on_sender_or_path() {
        let blind = Evidence { is_sampled: true, ..Evidence::default() };
        let receiver = Evidence { window: Some(Bytes::new(3_000_000)), ..blind };
        assert_eq!(flow(Class::Unknown, &receiver).time(), "sender or path 100 %");
        // If the receiver's window is unknown, it may be the limit.
        let blind = flow(Class::Unknown, &blind);
        assert_eq!(blind.time(), "unknown 100 %");
        assert!(blind.verdict.words.contains("this receiver's window, which"), "{blind:?}");
        let sender = Evidence { retransmitted: Some(0), ..receiver };
        assert_eq!(flow(Class::Unknown, &sender).time(), "unknown 100 %");
    }

    #[test]
    fn a_receivers_rtt_far_above_the_minimum_may_measure_sender_pauses() {
        let [min, rtt] = [40, 141].map(|ms| Some(Duration::from_millis(ms)));
        let receiver = Evidence { is_sampled: true, rtt_min: min, rtt, ..Evidence::default() };
        let of = |class, e: &Evidence| flow(class, e).may_time_pauses();
        assert!(of(Class::Application, &receiver));
        assert!(
            !of(Class::Bandwidth, &receiver)
                && !of(Class::Idle, &Evidence { rtt: min, ..receiver })
        );
        assert!(!of(Class::Application, &Evidence { retransmitted: Some(0), ..receiver }));
    }

    #[test]
    fn a_flow_that_answers_late_messages_points_to_the_other_direction() {
        let nagle = Some(crate::Nagle { waits: 9, time: Duration::from_millis(360), leads: true });
        let messages = flow(Class::Application, &Evidence { nagle, ..Evidence::default() });
        let mut answers = flow(Class::WaitingForPeer, &Evidence::default());
        answers.answers_late_messages(&messages);
        assert!(answers.fix.contains("see the other direction"), "{}", answers.fix);
        assert_eq!(answers.fix, answers.verdict.fix);
    }
}
