use std::collections::VecDeque;

use sweetspot_scenario::{Flavour, Transfer};
use sweetspot_sizing::{CongestionChoice, Controller, ControllerConfig, Sizing};
use sweetspot_units::{Bytes, Deadline, Duration, Rate, Time};

use super::ControlLoop;
use crate::network::{Downlink, Uplink};

/// What a measured transfer has besides its flow: a sink that is not at the router, and a control
/// loop.
pub(crate) struct Target {
    /// Propagation between the last router and its sink.
    pub far_delay: Duration,
    /// The link from its sink to the last router.
    pub uplink: Uplink,
    /// The link from the last router to its sink.
    pub downlink: Downlink,
    /// Its control loop, once it has begun.
    pub control_loop: Option<ControlLoop>,
    /// When the control loop wants to act, as it said last.
    pub control_due: Deadline,
    /// Numbers that ACKs said are expected next, and when they were sent: what the sink times
    /// round trips by (the timestamps of RFC 7323).
    pub acked: VecDeque<(u64, Time)>,
    /// Answers that its source has sent.
    pub answers: u32,
    /// Requests that its source has not granted yet, under their numbers.
    pub requests: Vec<(u64, Request)>,
    /// Requests that were lost on the way and are to be repeated.
    pub lost_requests: Vec<u64>,
    /// The number of the next request.
    pub next_request: u64,
    /// Bytes that it moves, if it ends by itself.
    pub size: Option<Bytes>,
    /// How its window is sized once it begins.
    pub sizing: Sizing,
    /// The caller's own controller, which takes the place of `sizing`.
    pub maker: Option<ControllerMaker>,
    /// Whether its controller may change its sender's congestion control.
    pub may_switch: bool,
}

/// Makes a controller when its transfer begins.
pub type ControllerMaker = Box<dyn FnOnce(&ControllerConfig) -> Box<dyn Controller + Send> + Send>;

/// What a sink asks of its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Request {
    /// Send `packets` packets of `size` bytes back to back.
    Train { id: u32, packets: u32, size: u16 },
    /// Use this congestion control.
    Congestion(CongestionChoice),
    /// Send at this pace or slower; `None` lifts the limit.
    Pacing(Option<Rate>),
}

impl Target {
    /// A transfer that has not begun, with a controller of the caller's if there is a `maker`.
    pub(crate) fn new(
        far_delay: Duration,
        transfer: &Transfer,
        maker: Option<ControllerMaker>,
    ) -> Target {
        Target {
            far_delay,
            uplink: Uplink::default(),
            downlink: Downlink::default(),
            control_loop: None,
            control_due: Deadline::NEVER,
            acked: VecDeque::new(),
            answers: 0,
            requests: Vec::new(),
            lost_requests: Vec::new(),
            next_request: 0,
            size: transfer.size,
            sizing: transfer.sizing,
            maker,
            // ns-2's agents, the papers', have one congestion control for good.
            may_switch: transfer.tcp.flavour == Flavour::Linux && !transfer.congestion_fixed,
        }
    }

    /// Keeps `request` until the source grants it, and gives back its number.
    pub(crate) fn push_request(&mut self, request: Request) -> u64 {
        let number = self.next_request;
        self.next_request += 1;
        self.requests.push((number, request));
        number
    }

    /// Takes out the request with this number.
    pub(crate) fn take_request(&mut self, number: u64) -> Option<Request> {
        let place = self.requests.iter().position(|(n, _)| *n == number)?;
        Some(self.requests.remove(place).1)
    }

    /// When the ACK was sent that told the source of `acknowledged` packets, if the sink still knows.
    /// It forgets all ACKs up to that one.
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
