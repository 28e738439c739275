use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::EventFd;
use sweetspot_linux::packet::PacketPort;
use sweetspot_path::{PathSpec, Variation};
use sweetspot_units::{Rate, Time};

use crate::certificate::Certificate;
use crate::error::{EmulatorError, NetworkContext, Result};
use crate::host_pair::{self, HostPair};
use crate::middlebox::Middlebox;
use crate::packet_loop::{LoopCommands, PacketLoop, PacketLoopReport};
use crate::path_direction::{Alteration, Altered};
use crate::relay::RelayThreads;
use crate::segmentation;
use crate::series::PathSample;
use crate::side::Side;
use crate::veth::{FAR, LinkDrops, NEAR, NamespaceLink};

/// A running path between two namespaces. It must be started inside [`isolate`](crate::isolate).
///
/// It forwards packets from [`Emulation::start`] to [`Emulation::finish`]. Dropping it ends the emulation without a
/// certificate.
pub struct Emulation {
    hops: Vec<PathSpec>,
    started: Time,
    near: Side,
    far: Side,
    event_fd: Arc<EventFd>,
    up: Sender<Alteration>,
    down: Sender<Alteration>,
    stop: Sender<()>,
    samples: Receiver<PathSample>,
    threads: Option<RelayThreads>,
}

impl Emulation {
    /// Creates the namespaces and starts to forward packets between them. The calling thread must not have
    /// [entered](Side::enter) a side of another emulation.
    pub fn start(spec: &PathSpec) -> Result<Emulation> {
        Emulation::start_with(spec, &[])
    }

    /// Starts an emulation with additional hosts at the addresses [`Side::host_pair`].
    pub fn start_with(spec: &PathSpec, host_pairs: &[HostPair]) -> Result<Emulation> {
        Emulation::start_chain(std::slice::from_ref(spec), host_pairs)
    }

    /// Starts an emulation with a middlebox in front of `up` and another in front of `down`.
    pub fn start_behind(spec: &PathSpec, middleboxes: [Middlebox; 2]) -> Result<Emulation> {
        Emulation::start_all(std::slice::from_ref(spec), &[], middleboxes)
    }

    /// Starts an emulation of one or more links between routers, listed from the near side to the far one. The first link
    /// sets the MTU and the seed.
    pub fn start_chain(hops: &[PathSpec], host_pairs: &[HostPair]) -> Result<Emulation> {
        Emulation::start_all(hops, host_pairs, [Middlebox::default(); 2])
    }

    fn start_all(
        hops: &[PathSpec],
        host_pairs: &[HostPair],
        middleboxes: [Middlebox; 2],
    ) -> Result<Emulation> {
        host_pair::check(host_pairs)?;
        let spec = hops.first().ok_or(EmulatorError::NoHop)?;
        let offload = segmentation::is_needed(hops) && sweetspot_linux::packet::knows_offload();
        let near = NamespaceLink::lay(NEAR, FAR, spec.mtu, host_pairs, offload)?;
        let far = NamespaceLink::lay(FAR, NEAR, spec.mtu, host_pairs, offload)?;
        let ports = (near.port(spec.mtu)?, far.port(spec.mtu)?);
        let event_fd = Arc::new(EventFd::new().doing("make an eventfd")?);
        let (up, up_changes) = mpsc::channel();
        let (down, down_changes) = mpsc::channel();
        let (stop, stop_receiver) = mpsc::channel();
        let commands = LoopCommands { up: up_changes, down: down_changes, stop: stop_receiver };
        let (send_samples, samples) = mpsc::channel();
        let started = clock::now();
        let start = || {
            let ring = |port: &PacketPort| port.as_fd().try_clone_to_owned();
            let rings = [ring(&ports.0)?, ring(&ports.1)?];
            let on_the_way = (host_pairs, middleboxes);
            let packet_loop =
                PacketLoop::new(started, hops, on_the_way, ports, (commands, send_samples));
            RelayThreads::start(packet_loop, rings, event_fd.clone())
        };
        let threads = start().doing("start the threads that carry the packets")?;
        Ok(Emulation {
            hops: hops.to_vec(),
            started,
            near: Side::new(NEAR, near),
            far: Side::new(FAR, far),
            event_fd,
            up,
            down,
            stop,
            samples,
            threads: Some(threads),
        })
    }

    /// The near side, from which `up` begins.
    pub fn near(&self) -> &Side {
        &self.near
    }

    /// The far side.
    pub fn far(&self) -> &Side {
        &self.far
    }

    /// The configured path, hop by hop from the near side.
    pub fn hops(&self) -> &[PathSpec] {
        &self.hops
    }

    /// The time at which the emulation began to forward packets, on the clock of [`clock::now`].
    pub fn started(&self) -> Time {
        self.started
    }

    /// The samples since the last call, one every 10 ms.
    pub fn observe(&self) -> Vec<PathSample> {
        self.samples.try_iter().collect()
    }

    /// Changes the bottleneck's rate from near to far. A rate of zero is ignored.
    pub fn set_rate_up(&self, rate: Rate) {
        self.set_rate(&self.up, rate);
    }

    /// Changes the bottleneck's rate from far to near. A rate of zero is ignored.
    pub fn set_rate_down(&self, rate: Rate) {
        self.set_rate(&self.down, rate);
    }

    /// Varies a path of one hop from now on: from near to far, and from far to near. Time 0 of the variations is `start`, on
    /// the clock of [`clock::now`].
    pub fn vary(&self, start: Time, up: Variation, down: Variation) {
        self.vary_chain(start, vec![up], vec![down]);
    }

    /// Varies each hop; both lists begin at the near side.
    pub fn vary_chain(&self, start: Time, up: Vec<Variation>, mut down: Vec<Variation>) {
        down.reverse();
        self.alter(&self.up, Altered::Varied { start, hops: up });
        self.alter(&self.down, Altered::Varied { start, hops: down });
    }

    /// Stops forwarding packets and returns the certificate. Processes still running on the two sides lose their network.
    pub fn finish(mut self) -> Result<Certificate> {
        let mut report = self.stop()?;
        let (near, far) = (self.near.link.losses()?, self.far.link.losses()?);
        report.up.cable_losses = lost(near, far);
        report.down.cable_losses = lost(far, near);
        Ok(Certificate::new(&self.hops, &report))
    }

    fn set_rate(&self, direction: &Sender<Alteration>, rate: Rate) {
        if rate > Rate::ZERO {
            self.alter(direction, Altered::Rate(rate));
        }
    }

    fn alter(&self, direction: &Sender<Alteration>, change: Altered) {
        // The loop has stopped only if it was asked to, or with an error that `finish` reports.
        let _ = direction.send(Alteration { at: clock::now(), change });
        self.event_fd.signal();
    }

    fn stop(&mut self) -> Result<PacketLoopReport> {
        let _ = self.stop.send(());
        self.event_fd.signal();
        let threads = self.threads.take().ok_or_else(|| std::io::Error::other("it ended before"));
        threads.and_then(RelayThreads::join).map_err(EmulatorError::Loop)
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        if self.threads.is_some() {
            let _ = self.stop();
        }
    }
}

/// Packets lost on the veth links in one direction, between the sides `from` and `to`.
fn lost(from: LinkDrops, to: LinkDrops) -> u64 {
    from.inbound + to.outbound
}
