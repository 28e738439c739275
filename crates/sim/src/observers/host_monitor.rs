use std::collections::VecDeque;

use sweetspot_statistics::Histogram;
use sweetspot_tcp::{Receiver, Sender, Statistics};
use sweetspot_units::{Duration, Time};

/// Observes source and sink of a measured transfer at given times.
///
/// Hosts run ahead of the routers by the propagation delay between them: a packet for a host is processed when it leaves the
/// router, with its arrival time at the host. A host is therefore sampled just before it passes the sample time, and the
/// sample is kept until the routers reach that time.
#[derive(Debug, Default)]
pub(crate) struct HostMonitor {
    /// RTTs of packets acknowledged after the first of the measured times and up to the second, in nanoseconds with an error
    /// below 1 %.
    pub rtt: Histogram<7>,
    measured: (Time, Time),
    last_rtt: Option<Duration>,
    /// Data packets that routers dropped.
    pub dropped: u64,
    /// Pending samples of the source, the oldest first.
    senders: VecDeque<SenderView>,
    /// Pending samples of the advertised window in packets, the oldest first.
    windows: VecDeque<u64>,
    /// Index of the sample time that the source passes next.
    next_source: usize,
    /// Index of the sample time that the sink passes next.
    next_sink: usize,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SenderView {
    /// Packets of payload acknowledged.
    pub acknowledged: u64,
    pub statistics: Statistics,
    /// The congestion window, packets.
    pub cwnd: f64,
    /// The slow-start threshold, packets.
    pub ssthresh: f64,
    /// RTT of the packet acknowledged last.
    pub rtt: Option<Duration>,
}

impl HostMonitor {
    /// Measures RTTs from the first time to the second.
    pub(crate) fn new(measured: (Time, Time)) -> HostMonitor {
        HostMonitor { measured, ..HostMonitor::default() }
    }

    /// Records the RTT of the source's packet acknowledged at `at`.
    #[inline]
    pub(crate) fn note_round_trip(&mut self, at: Time, rtt: Duration) {
        self.last_rtt = Some(rtt);
        if at > self.measured.0 && at <= self.measured.1 {
            self.rtt.add(rtt.as_nanos(), 1);
        }
    }

    /// Samples the source for all of `times` before `at`.
    #[inline]
    pub(super) fn watch_source(&mut self, times: &[Time], at: Time, sender: &Sender) {
        while times.get(self.next_source).is_some_and(|time| *time < at) {
            self.next_source += 1;
            self.senders.push_back(SenderView {
                acknowledged: sender.acknowledged(),
                statistics: sender.statistics(),
                cwnd: sender.cwnd(),
                ssthresh: sender.ssthresh(),
                rtt: self.last_rtt,
            });
        }
    }

    /// Samples the sink for all of `times` before `at`.
    #[inline]
    pub(super) fn watch_sink(&mut self, times: &[Time], at: Time, receiver: &Receiver) {
        while times.get(self.next_sink).is_some_and(|time| *time < at) {
            self.next_sink += 1;
            self.windows.push_back(receiver.advertised());
        }
    }

    /// The oldest sample of the source.
    pub(crate) fn sender(&self) -> SenderView {
        self.senders.front().copied().unwrap_or_default()
    }

    /// The oldest sample of the advertised window, packets.
    pub(crate) fn window(&self) -> u64 {
        self.windows.front().copied().unwrap_or(0)
    }

    pub(super) fn clear_samples(&mut self) {
        self.senders.pop_front();
        self.windows.pop_front();
    }
}
