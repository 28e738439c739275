use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command};

use sweetspot_linux::packet::PacketPort;

use crate::error::{EmulatorError, Result};
use crate::veth::{FAR, NEAR, NamespaceLink, SideConfig};

/// The environment variables with the two addresses, for commands.
const ADDRESSES: [(&str, SideConfig); 2] = [("SWEETSPOT_NEAR", NEAR), ("SWEETSPOT_FAR", FAR)];

/// One end of the path: a network namespace with its addresses.
pub struct Side {
    end: SideConfig,
    pub(crate) link: NamespaceLink,
}

impl Side {
    pub(crate) fn new(end: SideConfig, link: NamespaceLink) -> Side {
        Side { end, link }
    }

    /// The side's name, "near" or "far".
    pub fn name(&self) -> &'static str {
        self.end.name
    }

    /// The side's address.
    pub fn address(&self) -> Ipv4Addr {
        self.end.address
    }

    /// The address of this side's host in pair `number`, counted from 0 in the order of
    /// [`Emulation::start_with`](crate::Emulation::start_with).
    pub fn host_pair(&self, number: usize) -> Ipv4Addr {
        self.end.host_pair(number)
    }

    /// Starts `command` on this side. The environment variables SWEETSPOT_NEAR and SWEETSPOT_FAR hold the addresses of
    /// the two sides.
    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        command.envs(ADDRESSES.map(|(name, end)| (name, end.address.to_string())));
        let started = self.link.namespace.enter_on_exec(command).and_then(|()| command.spawn());
        started.map_err(|source| EmulatorError::Command {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
        })
    }

    /// Opens a port that captures the packets of both directions on this side: the first `snap` bytes of each frame. Its ring
    /// holds `slots` frames.
    pub fn watch(&self, snap: usize, slots: usize) -> io::Result<PacketPort> {
        self.link.watch_inside(snap, slots)
    }

    /// Runs `work` on this side in a new thread and waits for it. A socket created there stays on this side, wherever it is
    /// used later.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.link.namespace.run(work)
    }

    /// Moves the calling thread to this side until it ends.
    pub fn enter(&self) -> io::Result<()> {
        self.link.namespace.enter()
    }
}
