use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::EventFd;
use sweetspot_linux::packet::PacketPort;
use sweetspot_path::PathSpec;
use sweetspot_units::{Rate, Time};

use crate::certificate::Certificate;
use crate::engine::{Command, Engine, EngineReport};
use crate::error::{Doing, EmulatorError};
use crate::host_pair::{self, HostPair};
use crate::relay::RelayThreads;
use crate::series::Sample;
use crate::side::Side;
use crate::veth::{FAR, LinkDrops, NEAR, NamespaceLink};

/// A running path between two namespaces. Needs what [`isolate`](crate::isolate) gives.
///
/// It carries packets from [`Emulation::start`] to [`Emulation::finish`]; dropping it ends it
/// without a certificate.
pub struct Emulation {
    spec: PathSpec,
    started: Time,
    near: Side,
    far: Side,
    event_fd: Arc<EventFd>,
    orders: Sender<Command>,
    samples: Receiver<Sample>,
    threads: Option<RelayThreads>,
}

impl Emulation {
    /// Makes the namespaces and starts to carry packets between them. The calling thread must
    /// not have [entered](Side::enter) a side of another emulation.
    pub fn start(spec: &PathSpec) -> Result<Emulation, EmulatorError> {
        Emulation::start_with(spec, &[])
    }

    /// The same with further hosts, which find one another at [`Side::host_pair`].
    pub fn start_with(
        spec: &PathSpec,
        host_pairs: &[HostPair],
    ) -> Result<Emulation, EmulatorError> {
        host_pair::check(host_pairs)?;
        let near = NamespaceLink::lay(NEAR, FAR, spec.mtu, host_pairs)?;
        let far = NamespaceLink::lay(FAR, NEAR, spec.mtu, host_pairs)?;
        let ports = (near.port(spec.mtu)?, far.port(spec.mtu)?);
        let event_fd = Arc::new(EventFd::new().doing("make an eventfd")?);
        let (orders, receive_orders) = mpsc::channel();
        let (send_samples, samples) = mpsc::channel();
        let started = clock::now();
        let start = || {
            let ring = |port: &PacketPort| port.as_fd().try_clone_to_owned();
            let rings = [ring(&ports.0)?, ring(&ports.1)?];
            let engine =
                Engine::new(started, spec, host_pairs, ports, (receive_orders, send_samples));
            RelayThreads::start(engine, rings, event_fd.clone())
        };
        let threads = start().doing("start the threads that carry the packets")?;
        Ok(Emulation {
            spec: spec.clone(),
            started,
            near: Side::new(NEAR, near),
            far: Side::new(FAR, far),
            event_fd,
            orders,
            samples,
            threads: Some(threads),
        })
    }

    /// The near side, from which `up` leads away.
    pub fn near(&self) -> &Side {
        &self.near
    }

    /// The far side.
    pub fn far(&self) -> &Side {
        &self.far
    }

    /// The path as it was asked for.
    pub fn spec(&self) -> &PathSpec {
        &self.spec
    }

    /// When it began to carry packets, on the clock of [`clock::now`].
    pub fn started(&self) -> Time {
        self.started
    }

    /// The samples taken since the last call, every 10 ms.
    pub fn observe(&self) -> Vec<Sample> {
        self.samples.try_iter().collect()
    }

    /// Changes the bottleneck's rate near to far. A rate of zero is not a rate and is ignored.
    pub fn set_rate_up(&self, rate: Rate) {
        self.order(Command::RateUp(rate));
    }

    /// Changes the bottleneck's rate far to near. A rate of zero is not a rate and is ignored.
    pub fn set_rate_down(&self, rate: Rate) {
        self.order(Command::RateDown(rate));
    }

    /// Stops carrying packets and certifies what was carried. Processes that still run on the
    /// two sides find their network gone.
    pub fn finish(mut self) -> Result<Certificate, EmulatorError> {
        let mut report = self.stop()?;
        let (near, far) = (self.near.link.losses()?, self.far.link.losses()?);
        report.up.cable_losses = lost(near, far);
        report.down.cable_losses = lost(far, near);
        Ok(Certificate::new(&self.spec, &report))
    }

    fn order(&self, order: Command) {
        if matches!(order, Command::RateUp(Rate::ZERO) | Command::RateDown(Rate::ZERO)) {
            return;
        }
        // The loop only stops when told to, or by an error that `finish` reports.
        let _ = self.orders.send(order);
        self.event_fd.signal();
    }

    fn stop(&mut self) -> Result<EngineReport, EmulatorError> {
        self.order(Command::Stop);
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

/// What the veth links lost of the direction `from` one side to the other.
fn lost(from: LinkDrops, to: LinkDrops) -> u64 {
    from.inbound + to.outbound
}
