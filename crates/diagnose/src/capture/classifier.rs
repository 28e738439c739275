//! The class of each part of a captured stream's time.

use sweetspot_trace::flow::{Account, Hold, Stream};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::evidence::QUEUE;
use crate::unscaled::{filled_window, has_room, min_windows, varies};
use crate::{Class, Evidence, Limits};

/// The path counts as full from this share of its capacity on.
pub(super) const FULL_PATH_SHARE: f64 = 0.9;
/// As [`FULL_PATH_SHARE`], while a queue stands and the window does not grow.
const NEARLY_FULL: f64 = 0.7;
/// As [`FULL_PATH_SHARE`], if the rate is the only sign.
const QUITE_FULL: f64 = 0.95;

/// Maps each part of a stream's time to a class, once all of the stream has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classifier {
    pub(super) summary: StreamSummary,
    /// Whether the capture shows enough for a verdict.
    pub(super) known: bool,
}

impl Classifier {
    /// The class of the time of `account`.
    pub(crate) fn class(&self, account: &Account) -> Class {
        let class = class(account, &self.summary);
        let is_reported_at_once = self.known && (shows_at_once(class) || !self.summary.is_brief);
        if is_reported_at_once { class } else { Class::Unknown }
    }

    /// The classifier for a path that the stream fills together with others.
    pub(crate) fn on_full_path(mut self) -> Classifier {
        self.summary.shares_full_path = true;
        self
    }

    /// Divides the time of `stream` among the classes.
    pub(crate) fn limits(&self, stream: &Stream) -> Limits {
        let mut limits = Limits::default();
        for (account, time) in stream.accounts().iter() {
            limits.add(self.class(&account), time);
        }
        limits
    }
}

/// Whether the limit shows as soon as it holds: a closed window, silence or a pause. For other limits, the flights and RTTs of
/// several rounds must be compared.
pub fn shows_at_once(limit: Class) -> bool {
    matches!(
        limit.family(),
        Class::Application | Class::ReceiverApplication | Class::Stalled | Class::NeverEstablished
    )
}

/// Summary of a whole stream, the context for each of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamSummary {
    capacity: Option<Rate>,
    /// Whether the capture lacks the handshake, so that the min RTT may contain a queueing delay.
    begins_midway: bool,
    /// Whether the capture has too few rounds to compare, and lacks the beginning.
    pub is_brief: bool,
    /// Whether at least a tenth of the RTTs exceeded the minimum clearly, so that a queue grew and drained.
    rtt_varies: bool,
    /// Whether a queue may have stood all the time, so that the RTT does not show it.
    never_empty: bool,
    /// Whether the distance from the sender to the capture point is unknown.
    pub blind: bool,
    /// Whether trains show the path's capacity and not the sender's rate.
    trains_show_capacity: bool,
    /// Whether data arrived as evenly as from a link, at a place where a queue before that link cannot be seen.
    evenly: bool,
    /// Whether pieces of different sizes, as captured before segmentation offload, came at the mean rate of all data. A program
    /// does not cause such gaps.
    paced: bool,
    /// The rate from which on the sender's pacing limit, which its kernel reported, is the limit.
    paced_at: Option<Rate>,
    /// The sender's kernel reported that the send buffer stopped the program most of the time.
    stopped_by_buffer: bool,
    /// The sender's kernel reported that data waited to be sent nearly all the time.
    keeps_data_waiting: bool,
    /// The window that flights fill, if the capture lacks the window scale but the flights determine it.
    pub filled: Option<Bytes>,
    /// Whether the receiving program often reads late, and unread data kept the windows that were full far below the largest one.
    pub unread_fills: bool,
    /// Whether fewer bytes are in flight than the smallest send buffer holds.
    small: bool,
    /// Whether flights might fill the window, because its scale is unknown.
    pub may_fill: bool,
    /// Whether in addition the window varies, so that flights might grow with it.
    may_vary: bool,
    /// Whether the stream fills the path together with other connections, so that its own rate does not show the capacity.
    shares_full_path: bool,
}

impl StreamSummary {
    /// Summarizes `stream`. If it `begins_midway`, the capture lacks its handshake.
    pub fn new(
        stream: &Stream,
        evidence: &Evidence,
        begins_midway: bool,
        is_brief: bool,
    ) -> StreamSummary {
        let window_known = stream.counts().window_known;
        let rtt_varies = |(min, long): (Duration, Duration)| long > min.scaled(QUEUE);
        let filled = filled_window(stream);
        // Linux's smallest send buffer holds two packets (SOCK_MIN_SNDBUF).
        let small = stream.flight().is_some_and(|flight| flight < Bytes::new(2 * stream.mss()));
        let may_fill = !window_known && filled.is_none() && !small && !has_room(stream);
        StreamSummary {
            capacity: evidence.capacity,
            begins_midway,
            is_brief,
            rtt_varies: evidence
                .rtt_min
                .zip(stream.round_trips().quantile(0.9))
                .is_some_and(rtt_varies),
            never_empty: evidence.doubts_rtt_min,
            blind: stream.is_blind(),
            // In a smaller flight every train of acknowledgements spans a pause.
            trains_show_capacity: stream.flight().unwrap_or(stream.largest_flight())
                >= Bytes::new(10 * stream.mss()),
            evenly: evidence.even,
            paced: evidence.paced,
            paced_at: stream.reported().pacing_limit.map(|limit| limit.scaled(FULL_PATH_SHARE)),
            stopped_by_buffer: stream.reported().is_stopped_by_buffer,
            keeps_data_waiting: stream.reported().keeps_data_waiting,
            filled,
            unread_fills: false,
            small,
            may_fill,
            may_vary: may_fill && min_windows(stream).is_some_and(varies),
            shares_full_path: false,
        }
    }

    /// Whether the rate of `account` is at least this share of the path's capacity.
    fn reaches(&self, account: &Account, share: f64) -> bool {
        self.capacity.is_some_and(|capacity| account.rate as f64 >= capacity.as_f64() * share)
    }
}

/// The rules, from the sender's limit and the circumstances to a class.
pub(super) fn class(account: &Account, summary: &StreamSummary) -> Class {
    let reaches = |share: f64| summary.reaches(account, share);
    let full = account.queue && reaches(FULL_PATH_SHARE);
    // At the capacity a growing window gains nothing more, with or without a queue.
    let has_grown =
        full || (summary.never_empty && summary.trains_show_capacity && reaches(FULL_PATH_SHARE));
    let fills_with_others = summary.shares_full_path && (account.queue || summary.begins_midway);
    match account.hold {
        Hold::Opening => Class::Opportunity,
        Hold::Idle | Hold::IdleOrFull | Hold::Pausing | Hold::Growing | Hold::Flat
            if summary.paced_at.is_some_and(|rate| account.rate >= rate.bits_per_second()) =>
        {
            Class::Pacing
        }
        // The flights determine the window's scale.
        Hold::Flat if summary.filled.is_some() && !full => Class::ReceiverWindow,
        Hold::Pausing | Hold::Growing | Hold::Flat
            if summary.evenly && reaches(FULL_PATH_SHARE) =>
        {
            Class::Bandwidth
        }
        Hold::Idle | Hold::IdleOrFull | Hold::Pausing | Hold::Growing | Hold::Flat
            if summary.paced =>
        {
            Class::Bandwidth
        }
        // A slow bottleneck spaces segments as far apart as pauses do, but it has a queue.
        Hold::Pausing if full && summary.trains_show_capacity => Class::Bandwidth,
        // Far from the sender, waiting for acknowledgements and having nothing to send look the same.
        Hold::Unseen => Class::Unknown,
        Hold::Pausing | Hold::Doubling | Hold::Growing | Hold::Flat if summary.blind => {
            Class::Unknown
        }
        // A pacing sender pauses between segments, too, and the edge of the window may cut one short.
        Hold::IdleOrFull | Hold::Pausing if summary.may_fill => Class::Unknown,
        Hold::Idle if summary.may_vary => Class::Unknown,
        Hold::Idle | Hold::IdleOrFull | Hold::Pausing if summary.stopped_by_buffer => {
            Class::SenderWindow
        }
        // The congestion window left data waiting, and the host was slow to send after acknowledgements.
        Hold::Idle | Hold::IdleOrFull | Hold::Pausing if summary.keeps_data_waiting => {
            class(&Account { hold: Hold::Growing, ..*account }, summary)
        }
        Hold::Idle | Hold::IdleOrFull | Hold::Pausing => Class::Application,
        Hold::Waiting => Class::WaitingForPeer,
        Hold::Granted if full => Class::Bandwidth,
        Hold::Granted => Class::WaitingForPeer,
        Hold::Quiet => Class::Idle,
        Hold::Silent => Class::Stalled,
        Hold::WindowShut => Class::ReceiverApplication,
        Hold::WindowFull if full => Class::Bandwidth,
        Hold::WindowFull if summary.unread_fills => Class::ReceiverApplication,
        Hold::WindowFull => Class::ReceiverWindow,
        Hold::Doubling | Hold::Growing if summary.may_vary && !has_grown => Class::Unknown,
        Hold::Doubling if has_grown => Class::Bandwidth,
        Hold::Doubling => Class::Opportunity,
        Hold::AfterLoss | Hold::TakenBack if full || reaches(QUITE_FULL) => Class::Bandwidth,
        // While the kernel counts a full send buffer, the congestion window is not full, whatever was lost before.
        Hold::AfterLoss if summary.stopped_by_buffer => Class::SenderWindow,
        Hold::AfterLoss | Hold::Growing if fills_with_others => Class::Bandwidth,
        Hold::AfterLoss => Class::Congestion,
        Hold::TakenBack => Class::ReceiverApplication,
        Hold::Growing if has_grown => Class::Bandwidth,
        Hold::Growing if summary.stopped_by_buffer => Class::SenderWindow,
        Hold::Growing => Class::Transport,
        // If the flight fills the window, the window sets the rate, and unread data delay acknowledgements as a queue does.
        Hold::Flat if summary.may_fill => Class::Unknown,
        Hold::Flat if fills_with_others => Class::Bandwidth,
        // A paced sender at capacity has no queue. A sender held by its buffer sends bursts faster than its mean rate.
        Hold::Flat if summary.trains_show_capacity && reaches(FULL_PATH_SHARE) => Class::Bandwidth,
        Hold::Flat if account.queue && reaches(NEARLY_FULL) => Class::Bandwidth,
        Hold::Flat if summary.stopped_by_buffer => Class::SenderWindow,
        Hold::Flat if summary.small => Class::Application,
        // Under a constant window or buffer the RTT is constant. Here losses before the capture may have set the window.
        Hold::Flat if summary.begins_midway && summary.rtt_varies => Class::Unknown,
        Hold::Flat => Class::SenderWindow,
    }
}
