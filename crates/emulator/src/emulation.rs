use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use sweetspot_linux::clock;
use sweetspot_linux::packet::PacketPort;
use sweetspot_linux::wake::Bell;
use sweetspot_path::PathSpec;
use sweetspot_units::{Rate, Time};

use crate::certificate::Certificate;
use crate::engine::{Books, Engine, Order};
use crate::error::{Doing, EmulatorError};
use crate::leaf::{self, Leaf};
use crate::relay::Carriers;
use crate::series::Sample;
use crate::side::Side;
use crate::wires::{Cable, CableLosses, FAR, NEAR};

/// A running path between two namespaces. Needs what [`isolate`](crate::isolate) gives.
///
/// It carries packets from [`Emulation::start`] to [`Emulation::finish`]; dropping it ends it
/// without a certificate.
pub struct Emulation {
    spec: PathSpec,
    started: Time,
    near: Side,
    far: Side,
    bell: Arc<Bell>,
    orders: Sender<Order>,
    samples: Receiver<Sample>,
    carriers: Option<Carriers>,
}

impl Emulation {
    /// Makes the namespaces and starts to carry packets between them. The calling thread must
    /// not have [entered](Side::enter) a side of another emulation.
    pub fn start(spec: &PathSpec) -> Result<Emulation, EmulatorError> {
        Emulation::start_with(spec, &[])
    }

    /// The same with further hosts, which find one another at [`Side::leaf`].
    pub fn start_with(spec: &PathSpec, leaves: &[Leaf]) -> Result<Emulation, EmulatorError> {
        leaf::check(leaves)?;
        let near = Cable::lay(NEAR, FAR, spec.mtu, leaves)?;
        let far = Cable::lay(FAR, NEAR, spec.mtu, leaves)?;
        let ports = (near.port(spec.mtu)?, far.port(spec.mtu)?);
        let bell = Arc::new(Bell::new().doing("make an eventfd")?);
        let (orders, receive_orders) = mpsc::channel();
        let (send_samples, samples) = mpsc::channel();
        let started = clock::now();
        let start = || {
            let ring = |port: &PacketPort| port.as_fd().try_clone_to_owned();
            let rings = [ring(&ports.0)?, ring(&ports.1)?];
            let engine = Engine::new(started, spec, leaves, ports, (receive_orders, send_samples));
            Carriers::start(engine, rings, bell.clone())
        };
        let carriers = start().doing("start the threads that carry the packets")?;
        Ok(Emulation {
            spec: spec.clone(),
            started,
            near: Side::new(NEAR, near),
            far: Side::new(FAR, far),
            bell,
            orders,
            samples,
            carriers: Some(carriers),
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
        self.order(Order::RateUp(rate));
    }

    /// Changes the bottleneck's rate far to near. A rate of zero is not a rate and is ignored.
    pub fn set_rate_down(&self, rate: Rate) {
        self.order(Order::RateDown(rate));
    }

    /// Stops carrying packets and certifies what was carried. Processes that still run on the
    /// two sides find their network gone.
    pub fn finish(mut self) -> Result<Certificate, EmulatorError> {
        let mut books = self.stop()?;
        let (near, far) = (self.near.cable.losses()?, self.far.cable.losses()?);
        books.up.cable_losses = lost(near, far);
        books.down.cable_losses = lost(far, near);
        Ok(Certificate::new(&self.spec, &books))
    }

    fn order(&self, order: Order) {
        if matches!(order, Order::RateUp(Rate::ZERO) | Order::RateDown(Rate::ZERO)) {
            return;
        }
        // The loop only stops when told to, or by an error that `finish` reports.
        let _ = self.orders.send(order);
        self.bell.ring();
    }

    fn stop(&mut self) -> Result<Books, EmulatorError> {
        self.order(Order::Stop);
        let carriers = self.carriers.take().ok_or_else(|| std::io::Error::other("it ended before"));
        carriers.and_then(Carriers::join).map_err(EmulatorError::Loop)
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        if self.carriers.is_some() {
            let _ = self.stop();
        }
    }
}

/// What the cables lost of the direction `from` one side to the other.
fn lost(from: CableLosses, to: CableLosses) -> u64 {
    from.inbound + to.outbound
}
