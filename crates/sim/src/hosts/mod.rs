//! The hosts: endpoints of connections, the applications above them, traffic sources and control loops.

mod application;
mod control_loop;
mod data_sizes;
mod flow;
mod group;
mod server;
mod target;
mod traffic_source;

pub(crate) use application::{Reader, Writer};
pub(crate) use control_loop::{ControlLoop, PROBE};
pub(crate) use data_sizes::DataSizes;
pub(crate) use flow::Flow;
pub(crate) use group::{Application, Group, UNLIMITED};
pub(crate) use server::Server;
pub use target::ControllerMaker;
pub(crate) use target::{Request, Target};
pub(crate) use traffic_source::{Gaps, Sends, TrafficSource};

use sweetspot_sizing::share::max_min;
use sweetspot_sizing::{CongestionState, SenderReport};
use sweetspot_tcp::congestion::Algorithm;
use sweetspot_tcp::{Receiver, RecoveryState, Sender, SenderConfig};
use sweetspot_units::{Bytes, Deadline, Duration, Time};

use crate::network::{Direction, Ecn, Header, Packet};
use crate::random;

/// All hosts.
///
/// Sources (in [`Flow`]) and sinks (receivers) are in separate arrays under the same index, because an event touches only one
/// of them. The measured transfers are the first flows, under the index of their [`Target`].
#[derive(Default)]
pub(crate) struct Hosts {
    pub flows: Vec<Flow>,
    pub receivers: Vec<Receiver>,
    pub targets: Vec<Target>,
    pub groups: Vec<Group>,
    pub traffic_sources: Vec<TrafficSource>,
    pub servers: Vec<Server>,
    /// Bytes of a full packet on the wire.
    pub packet_size: u16,
    pub data_sizes: DataSizes,
    pub seed: u64,
}

impl Hosts {
    pub(crate) fn new((packet_size, packet_spread): (u16, u16), seed: u64) -> Hosts {
        Hosts {
            packet_size,
            data_sizes: DataSizes { mean: packet_size, spread: packet_spread, seed },
            seed,
            ..Hosts::default()
        }
    }

    /// Adds a flow that has not started, and returns its index.
    pub(crate) fn push_flow(
        &mut self,
        group: u32,
        direction: Direction,
        hops: (u16, u16),
        delay: Duration,
    ) -> u32 {
        let Group { sender, receiver, ecn, .. } = &self.groups[group as usize];
        // Until it starts, its connection has nothing to send, not even a paced SYN.
        let idle = SenderConfig { algorithm: Algorithm::Reno, pacing: false, ..*sender };
        let mut flow = Flow::new(Sender::new(&idle, Some(0)), group, direction, hops, delay);
        flow.ecn = if *ecn { Ecn::Capable } else { Ecn::NotCapable };
        self.receivers.push(Receiver::new(receiver));
        self.flows.push(flow);
        (self.flows.len() - 1) as u32
    }

    /// Returns an idle flow with the parameters of flow `like`, or a new one if there is none.
    pub(crate) fn idle_flow(&mut self, like: u32) -> u32 {
        let Flow { group, direction, hops, delay, .. } = self.flows[like as usize];
        match self.groups[group as usize].idle.pop() {
            Some(index) => index,
            None => self.push_flow(group, direction, hops, delay),
        }
    }

    /// Whether a flow is a measured transfer.
    #[inline(always)]
    pub(crate) fn is_target(&self, index: usize) -> bool {
        index < self.targets.len()
    }

    #[inline]
    pub(crate) fn group(&self, index: usize) -> &Group {
        &self.groups[self.flows[index].group as usize]
    }

    /// Payload bytes of a flow's full packet.
    pub(crate) fn payload(&self, index: usize) -> Bytes {
        self.group(index).payload
    }

    /// Starts a new connection of a flow at both ends.
    pub(crate) fn begin_connection(&mut self, index: u32, at: Time) {
        let flow = &mut self.flows[index as usize];
        let group = &self.groups[flow.group as usize];
        flow.began = Some(at);
        if let Some(target) = self.targets.get_mut(index as usize) {
            target.began = Some(at);
        }
        let mut rng = random::stream(self.seed, 1, u64::from(index), u64::from(flow.round));
        let mut config = group.sender;
        config.clock_phase = config.clock.scaled(rng.unit());
        config.seed = rng.bits();
        flow.sender = Sender::new(&config, group.size(&mut rng));
        server::choose_server(flow, group, &self.servers, &mut rng);
        self.receivers[index as usize] = Receiver::new(&group.receiver);
    }

    /// Ends a flow's connection: its application pauses or leaves the flow idle.
    pub(crate) fn end_connection(&mut self, index: u32, at: Time) {
        let flow = &mut self.flows[index as usize];
        let group = &mut self.groups[flow.group as usize];
        flow.began = None;
        let mut rng = random::stream(self.seed, 2, u64::from(index), u64::from(flow.round));
        match group.pause(&mut rng) {
            Some(pause) => flow.wake = Deadline::at(at + pause),
            None => group.idle.push(index),
        }
    }

    #[inline]
    pub(crate) fn sink_due(&self, index: usize) -> Deadline {
        let receiver = Deadline::from(self.receivers[index].poll_timeout());
        match self.targets.get(index) {
            Some(target) => receiver.min(target.control_due).min(target.read_due()),
            None => receiver,
        }
    }

    /// Whether a control loop receives the arrivals at a measured transfer's sink.
    #[inline]
    pub(crate) fn is_controlled(&self, index: usize) -> bool {
        self.targets[index].control_loop.as_ref().is_some_and(ControlLoop::listens)
    }

    /// A packet of a flow's current connection that routers must not mark.
    #[inline(always)]
    pub(crate) fn packet(&self, index: u32, size: u16, header: Header) -> Packet {
        let flow = &self.flows[index as usize];
        Packet::new((index, flow.direction, flow.epoch()), size, Ecn::NotCapable, header)
    }

    pub(crate) fn report(&self, index: usize) -> SenderReport {
        let sender = &self.flows[index].sender;
        let payload = self.payload(index);
        let ssthresh = Some(sender.ssthresh()).filter(|packets| packets.is_finite());
        SenderReport {
            retransmitted: sender.statistics().retransmitted,
            cwnd: payload.scaled(sender.cwnd()),
            ssthresh: ssthresh.map(|packets| payload.scaled(packets)),
            in_flight: payload * sender.outstanding(),
            state: match sender.state() {
                RecoveryState::SynSent | RecoveryState::Open => CongestionState::Open,
                RecoveryState::Recovery => CongestionState::Recovery,
                RecoveryState::Loss => CongestionState::Loss,
            },
            ..SenderReport::default()
        }
    }

    /// Automatic buffer tuning (Semke, Mahdavi, Mathis 1998, section 3): a sender wants twice its congestion window. The pool
    /// is divided into max-min fair shares, and the unclaimed rest lets all senders grow. ns-2's congestion window continues
    /// to grow while the receiver's window is the limit, but no sender uses, or wants, more than that window.
    pub(crate) fn share_pool(&mut self, pool: Bytes) {
        let wanted = |index: usize| {
            let advertised = self.receivers[index].advertised() as f64;
            self.payload(index).scaled(2.0 * self.flows[index].sender.cwnd().min(advertised))
        };
        let demands: Vec<Bytes> = (0..self.targets.len()).map(wanted).collect();
        let shares = max_min(pool, &demands);
        let spent = shares.iter().fold(Bytes::ZERO, |sum, share| sum + *share);
        let spare = pool.saturating_sub(spent) / (shares.len() as u64).max(1);
        for (index, share) in shares.into_iter().enumerate() {
            let packets = (share + spare).get() / self.payload(index).get().max(1);
            self.flows[index].sender.set_send_buffer(packets.max(1));
        }
    }

    /// Prefetches the fields that the next packet of a flow needs, at either end.
    #[inline]
    pub(crate) fn read_ahead(&self, flow: u32) {
        self.receivers[flow as usize].read_ahead();
        self.flows[flow as usize].read_ahead();
    }
}
