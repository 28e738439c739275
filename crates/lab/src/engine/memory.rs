//! Kernel memory used by the sockets of the measured transfers.

use std::io;
use std::net::IpAddr;

use sweetspot_emulator::Emulation;
use sweetspot_linux::diag::{Detail, Diag, SocketMemory, TcpState};
use sweetspot_scenario::SocketMemoryOutcome;
use sweetspot_units::{Bytes, Duration};

use crate::plan::LabPlan;

/// Samples the sockets' buffered data, summed over the transfers at each end.
pub(super) struct MemoryWatch {
    near: Diag,
    far: Diag,
    /// The receivers' addresses, which no other flow uses.
    receivers: Vec<IpAddr>,
    samples: Vec<(Duration, MemorySample)>,
}

/// The sums over all transfers at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct MemorySample {
    receive_buffer: Bytes,
    received: Bytes,
    send_buffer: Bytes,
    queued: Bytes,
}

impl MemoryWatch {
    /// Opens a watch of the transfers in `plan`.
    pub fn open(emulation: &Emulation, plan: &LabPlan) -> io::Result<MemoryWatch> {
        let receivers = plan.targets.iter();
        let receivers =
            receivers.map(|target| IpAddr::V4(emulation.far().host_pair(target.host_pair)));
        Ok(MemoryWatch {
            near: emulation.near().run(Diag::open)??,
            far: emulation.far().run(Diag::open)??,
            receivers: receivers.collect(),
            samples: Vec::new(),
        })
    }

    /// Takes a sample, `at` after the start of the run.
    pub fn sample(&mut self, at: Duration) -> io::Result<()> {
        let MemoryWatch { near, far, receivers, samples } = self;
        let mut sum = MemorySample::default();
        let detail = Detail { memory: true, ..Detail::NONE };
        far.connections(&[TcpState::Established], detail, |connection| {
            let memory = connection.memory.filter(|_| receivers.contains(&connection.local.ip()));
            sum.add_receiver(memory);
        })?;
        near.connections(&[TcpState::Established], detail, |connection| {
            let memory = connection.memory.filter(|_| receivers.contains(&connection.remote.ip()));
            sum.add_sender(memory);
        })?;
        samples.push((at, sum));
        Ok(())
    }

    /// Means between `begin` and `end`.
    pub fn outcome(&self, (begin, end): (Duration, Duration)) -> Option<SocketMemoryOutcome> {
        let within: Vec<&MemorySample> = self
            .samples
            .iter()
            .filter(|(at, _)| (begin..=end).contains(at))
            .map(|(_, sample)| sample)
            .collect();
        let mean = |of: fn(&MemorySample) -> Bytes| {
            within.iter().map(|sample| of(sample).as_f64()).sum::<f64>() / within.len() as f64
        };
        (!within.is_empty()).then(|| SocketMemoryOutcome {
            receive_buffer_bytes: mean(|sample| sample.receive_buffer),
            received_bytes: mean(|sample| sample.received),
            send_buffer_bytes: mean(|sample| sample.send_buffer),
            queued_bytes: mean(|sample| sample.queued),
        })
    }
}

impl MemorySample {
    fn add_receiver(&mut self, memory: Option<SocketMemory>) {
        if let Some(memory) = memory {
            self.receive_buffer += memory.receive_buffer;
            self.received += memory.received + memory.backlog;
        }
    }

    fn add_sender(&mut self, memory: Option<SocketMemory>) {
        if let Some(memory) = memory {
            self.send_buffer += memory.send_buffer;
            self.queued += memory.queued;
        }
    }
}
