use std::collections::VecDeque;

use sweetspot_scenario::{Flavour, Transfer};
use sweetspot_sizing::{CongestionChoice, Controller, ControllerConfig, Sizing, SizingEvent};
use sweetspot_units::{Bytes, Deadline, Duration, Rate, Time};

use super::{ControlLoop, Reader, Writer};
use crate::network::{Downlink, Uplink};

/// The state of a measured transfer beyond its flow: its sink behind the last router, and its control loop.
pub(crate) struct Target {
    /// Propagation delay between the last router and its sink.
    pub far_delay: Duration,
    /// The link from its sink to the last router.
    pub uplink: Uplink,
    /// The link from the last router to its sink.
    pub downlink: Downlink,
    /// Start of the transfer.
    pub began: Option<Time>,
    /// Its control loop, once it has begun.
    pub control_loop: Option<ControlLoop>,
    /// The controller's events, for the outcome.
    pub events: Vec<SizingEvent>,
    /// Pause between the end of the preceding transfer and the start of this one, if it follows one.
    pub follows: Option<Duration>,
    /// Time of the control loop's next action, as it reported last.
    pub control_due: Deadline,
    /// Sequence numbers that ACKs requested, with the first time of each: the sink's RTT samples (the timestamps of RFC 7323).
    acked: VecDeque<(u64, Time)>,
    /// The highest of these numbers so far.
    acked_up_to: Option<u64>,
    /// Answers that its source has sent.
    pub answers: u32,
    /// Requests that its source has not granted yet, with their numbers.
    pub requests: Vec<(u64, Request)>,
    /// Numbers of lost requests that must be repeated.
    pub lost_requests: Vec<u64>,
    /// The number of the next request.
    pub next_request: u64,
    /// Bytes to move, if the transfer ends by itself.
    pub size: Option<Bytes>,
    /// How its window is sized after it starts.
    pub sizing: Sizing,
    /// The caller's own controller, which replaces `sizing`.
    pub maker: Option<ControllerMaker>,
    /// Whether its controller may change its sender's congestion control.
    pub may_switch: bool,
    /// The application at its sink, unless it reads at once.
    pub reader: Option<Box<Reader>>,
    /// The application at its source, unless it always has data.
    pub writer: Option<Box<Writer>>,
}

/// Makes a controller when its transfer begins.
pub type ControllerMaker = Box<dyn FnOnce(&ControllerConfig) -> Box<dyn Controller + Send> + Send>;

/// A sink's request to its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Request {
    /// Send `packets` packets of `size` bytes back to back.
    Train { id: u32, packets: u32, size: u16 },
    /// Use this congestion control.
    Congestion(CongestionChoice),
    /// Pace at this rate or slower; `None` lifts the limit.
    Pacing(Option<Rate>),
}

impl Target {
    /// A transfer that has not started. `maker` makes the caller's own controller, if there is one.
    pub(crate) fn new(
        far_delay: Duration,
        transfer: &Transfer,
        maker: Option<ControllerMaker>,
    ) -> Target {
        Target {
            far_delay,
            uplink: Uplink::default(),
            downlink: Downlink::default(),
            began: None,
            control_loop: None,
            events: Vec::new(),
            follows: transfer.follows.then_some(transfer.start),
            control_due: Deadline::NEVER,
            acked: VecDeque::new(),
            acked_up_to: None,
            answers: 0,
            requests: Vec::new(),
            lost_requests: Vec::new(),
            next_request: 0,
            size: transfer.size,
            sizing: transfer.sizing,
            maker,
            // The papers' ns-2 agents keep one congestion control.
            may_switch: transfer.tcp.flavour == Flavour::Linux && !transfer.congestion_fixed,
            reader: None,
            writer: None,
        }
    }

    /// Time of the application's next read, unless it reads at once.
    #[inline]
    pub(crate) fn read_due(&self) -> Deadline {
        self.reader.as_ref().map_or(Deadline::NEVER, |reader| reader.due)
    }

    /// Stores `request` until the source grants it, and returns its number.
    pub(crate) fn push_request(&mut self, request: Request) -> u64 {
        let number = self.next_request;
        self.next_request += 1;
        self.requests.push((number, request));
        number
    }

    pub(crate) fn take_request(&mut self, number: u64) -> Option<Request> {
        let place = self.requests.iter().position(|(n, _)| *n == number)?;
        Some(self.requests.remove(place).1)
    }

    /// Records an ACK that expects number `next`. Only the first of several duplicates counts: the source may not have
    /// received the others when it sends the timed packet, and the RTT would be too short.
    pub(crate) fn note_ack(&mut self, next: u64, at: Time) {
        if self.acked_up_to.is_none_or(|highest| next > highest) {
            self.acked_up_to = Some(next);
            self.acked.push_back((next, at));
        }
    }

    /// The time of the ACK that acknowledged this number of packets, if the sink still has it. Forgets all ACKs up to that
    /// one.
    pub(crate) fn ack_time(&mut self, acknowledged: u32) -> Option<Time> {
        let seen = u64::from(acknowledged) + 1;
        let mut sent = None;
        while let Some((next, at)) = self.acked.front().copied().filter(|acked| acked.0 <= seen) {
            sent = (next == seen).then_some(at);
            self.acked.pop_front();
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_scenario::Scenario;

    use super::*;

    #[test]
    fn duplicate_acks_do_not_shorten_rtt_samples() {
        let text = "duration = '1s'\n[path]\nrate = '1Mbit/s'\nrtt = '10ms'\nbuffer = '9pkt'\n[[transfer]]";
        let scenario = Scenario::parse(text).expect("it is a scenario");
        let mut target = Target::new(Duration::ZERO, &scenario.transfers[0], None);
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        for (next, sent) in [(7, 10), (8, 20), (8, 30)] {
            target.note_ack(next, at(sent));
        }
        assert_eq!(target.ack_time(7), Some(at(20)));
        // A duplicate that arrives after the timed ACK is no newer acknowledgement.
        target.note_ack(8, at(40));
        assert_eq!(target.ack_time(7), None);
        target.note_ack(9, at(50));
        assert_eq!(target.ack_time(8), Some(at(50)));
    }
}
