//! Combines network, hosts and observers: events in one affect the others.

mod routing;
mod sink_side;
mod source_side;

use sweetspot_scenario::Scenario;
use sweetspot_sizing::KnownPath;
use sweetspot_units::{Deadline, Duration, Time};

use crate::event::Event;
use crate::event_queue::EventQueue;
use crate::hosts::Hosts;
use crate::network::{BARE_SEGMENT, Network};
use crate::observers::{Observers, PathMonitor};
use crate::scheduler::{Key, Scheduler};

/// The network, the hosts, and the clock that drives them.
///
/// The clock follows the routers. Each host has its own link, so only its own packets and timers reach it, in a known order. A
/// packet for a host is processed as soon as its exit from the last router is known, with its arrival time at the host, after
/// the timers that expire earlier. At a drop-tail queue the exit is known when the packet enters. A packet thus costs one event
/// to reach a router-to-router link, and another to leave it only if another router follows.
pub(crate) struct World<S> {
    pub queue: EventQueue<S>,
    pub network: Network,
    pub hosts: Hosts,
    pub observers: Observers,
}

/// More flows than this do not fit into a core's own cache (one or two megabytes).
const CROWD: usize = 5000;

impl<S: Scheduler> World<S> {
    /// A world without hops and hosts.
    pub(crate) fn new(scheduler: S, scenario: &Scenario, known: KnownPath) -> World<S> {
        let packet_size = scenario.path.packet.get() as u16;
        let all = scenario.transfers.iter().map(|transfer| &transfer.tcp);
        let tcp = all.chain(scenario.cross.iter().map(|cross| &cross.tcp)).next();
        let ack_size = tcp.map_or(BARE_SEGMENT, |tcp| tcp.ack_size().get() as u16);
        World {
            queue: EventQueue::new(scheduler, scenario.ties, scenario.seed),
            network: Network::new(scenario.path.access_rate, packet_size, ack_size),
            hosts: Hosts::new(
                (packet_size, scenario.path.packet_spread.get() as u16),
                scenario.seed,
            ),
            observers: Observers::new(PathMonitor::new(&scenario.path, known)),
        }
    }

    /// Processes events until the next observation and returns its number; `None` at the end.
    pub(crate) fn run(&mut self) -> Option<usize> {
        loop {
            // There are few hops, and each nearly always has an event. They are kept outside of the event queue, which then
            // holds only the hosts' events.
            let next = self.queue.peek();
            let (hop_due, hop) = self.network.next_hop();
            if let Some(at) = hop_due.time()
                && (at < next.at()
                    || (at == next.at() && self.network.hop_key(&self.queue, hop) < next))
            {
                self.queue.happen(at);
                self.leave_hop(hop);
                continue;
            }
            if next == Key::NEVER {
                return None;
            }
            match self.queue.pop(next) {
                Event::Arrival(place) => self.arrive(place),
                Event::Flow(index) => self.wake_flow(index),
                Event::Source(index) => self.wake_source(index),
                Event::Observe(number) => {
                    self.queue.discount();
                    return Some(number as usize);
                }
            }
        }
    }

    /// Ensures that a flow's event is no later than `due`.
    #[inline]
    pub(crate) fn expect(&mut self, index: u32, due: Deadline) {
        let flow = &mut self.hosts.flows[index as usize];
        // An event that comes too early does nothing and schedules itself again. A retransmission timer that every ACK
        // postpones thus costs one event per timeout, not one per ACK.
        if due < flow.pending
            && let Some(at) = due.time()
        {
            flow.pending = due;
            self.queue.schedule(at.max(self.queue.now()), Event::Flow(index));
        }
    }

    fn wake_flow(&mut self, index: u32) {
        let at = index as usize;
        let now = self.queue.now();
        if !self.hosts.flows[at].pending.has_passed(now) {
            // This event was scheduled before a later change.
            return;
        }
        self.run_source_timers(index, Until::Through(now));
        // An ACK sent here may be processed here, although it arrives in the future.
        self.run_sink_timers(index, Until::Through(now));
        self.hosts.flows[at].pending = Deadline::NEVER;
        let due = self.hosts.flows[at].source_due().min(self.hosts.sink_due(at));
        self.expect(index, due);
    }

    /// Samples the hosts that have not passed this time by themselves.
    pub(crate) fn watch_all(&mut self) {
        let just_after = self.queue.now() + Duration::from_nanos(1);
        for index in 0..self.hosts.targets.len() {
            self.observers.watch_source(index, just_after, &self.hosts.flows[index].sender);
            self.observers.watch_sink(index, just_after, &self.hosts.receivers[index]);
        }
    }
}

/// The timers that a host must process.
#[derive(Debug, Clone, Copy)]
enum Until {
    Before(Time),
    /// Timers that expire at this time or before.
    Through(Time),
}

impl Until {
    /// The time of a timer that must be processed.
    #[inline(always)]
    fn admit(self, due: Deadline) -> Option<Time> {
        let admits = match self {
            Until::Before(time) => due.is_before(time),
            Until::Through(time) => due.has_passed(time),
        };
        due.time().filter(|_| admits)
    }
}
