use std::collections::VecDeque;

use sweetspot_scenario::{Flavour, Transfer};
use sweetspot_sizing::{CongestionChoice, Controller, ControllerConfig, Sizing};
use sweetspot_tcp::Statistics;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::control_loop::ControlLoop;
use crate::histogram::Histogram;
use crate::uplink::{Downlink, Uplink};

/// What a transfer that is measured by itself has besides its flow: a sink that is not at the
/// router, a control loop, and somebody who watches.
pub(crate) struct Target {
    /// Propagation between the last router and its sink.
    pub far_delay: Duration,
    /// What its sink has sent and the router has not received yet.
    pub uplink: Uplink,
    pub downlink: Downlink,
    pub control_loop: Option<ControlLoop>,
    /// When that wants to act, as it said last; [`Time::MAX`]: it does not.
    pub control_due: Time,
    /// Numbers that ACKs said are expected next, and when they were sent: what the sink times
    /// round trips by (the timestamps of RFC 7323).
    pub acked: VecDeque<(u64, Time)>,
    /// Answers its source has sent.
    pub answers: u64,
    /// Requests that its source has not granted yet, under their numbers.
    pub requests: Vec<(u64, Request)>,
    /// Requests that were lost on the way and are to be repeated.
    pub lost_requests: Vec<u64>,
    pub next_request: u64,
    /// Bytes that it will move, if it ends by itself.
    pub size: Option<Bytes>,
    /// How its window will be sized once it begins.
    pub sizing: Sizing,
    /// The caller's own controller, which then takes the place of `sizing`.
    pub maker: Option<ControllerMaker>,
    /// Whether its controller has a say in its sender's congestion control.
    pub may_switch: bool,
    pub monitor: HostMonitor,
}

/// Makes a controller when its transfer begins.
pub type ControllerMaker = Box<dyn FnOnce(&ControllerConfig) -> Box<dyn Controller + Send> + Send>;

/// What a sink asks of its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Request {
    /// So many packets of so many bytes back to back.
    Train { id: u32, packets: u32, size: u16 },
    /// This congestion control.
    Congestion(CongestionChoice),
    /// This pace.
    Pacing(Option<Rate>),
}

/// Looks at source and sink at given times.
///
/// Hosts run ahead of the routers by the propagation between them: what reaches a host is worked
/// off when it leaves the router, at the time at which it arrives. So a host is looked at when
/// it is about to pass the time, and what was seen waits until the routers are there.
#[derive(Debug, Default)]
pub(crate) struct HostMonitor {
    /// Round trips of its packets from the first to before the second time.
    pub rtt: Histogram,
    pub measured: (Time, Time),
    pub last_rtt: Option<Duration>,
    pub sources: VecDeque<SourceView>,
    pub windows: VecDeque<u64>,
    /// Which time the source, and the sink, will pass next.
    pub next_source: usize,
    pub next_sink: usize,
}

/// What is seen of a source.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SourceView {
    pub acknowledged: u64,
    pub statistics: Statistics,
    pub cwnd: f64,
    pub ssthresh: f64,
    /// Round trip of the packet acknowledged last.
    pub rtt: Option<Duration>,
}

impl HostMonitor {
    /// The source's packet that is acknowledged at `at` took so long.
    #[inline]
    pub(crate) fn note_round_trip(&mut self, at: Time, rtt: Duration) {
        self.last_rtt = Some(rtt);
        if at > self.measured.0 && at <= self.measured.1 {
            self.rtt.add(rtt);
        }
    }
}

impl Target {
    pub(crate) fn new(
        far_delay: Duration,
        transfer: &Transfer,
        maker: Option<ControllerMaker>,
        measured: (Time, Time),
    ) -> Target {
        Target {
            far_delay,
            uplink: Uplink::default(),
            downlink: Downlink::default(),
            control_loop: None,
            control_due: Time::MAX,
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
            monitor: HostMonitor { measured, ..HostMonitor::default() },
        }
    }
}
