//! S: the window of each sizing.

use sweetspot_scenario::{EngineError, Transfer};
use sweetspot_sizing::{BdpDefinition, Sizing};
use sweetspot_units::{Bytes, Duration, Volume};

use super::not_covered;
use super::terms::Terms;
use crate::path::sawtooth::sawtooth;
use crate::path::six_bdps;
use crate::path::{Path, saturation};

/// S on the wire, and a description of its origin.
pub(super) struct Window {
    pub wire: Bytes,
    pub rule: String,
}

impl Terms<'_> {
    /// The window that limits `transfer`, apart from the congestion window.
    pub(super) fn window(&self, transfer: &Transfer) -> Result<Window, EngineError> {
        let payload = self.payload(transfer);
        let wire = |volume: Volume| self.packet * volume.in_packets(payload).max(1);
        let hosts = match transfer.tcp.send_buffer {
            Some(send) => wire(send).min(wire(transfer.tcp.max_window)),
            None => wire(transfer.tcp.max_window),
        };
        let (requested, rule) = match transfer.sizing {
            Sizing::Fixed(volume) => (wire(volume), "fixed".to_owned()),
            Sizing::Max => (hosts, "the largest that the hosts allow".to_owned()),
            Sizing::Kernel | Sizing::Linux(_) => (hosts, self.autotuned(hosts)?),
            Sizing::Bdp => (self.path.bdp(), "C T_m".to_owned()),
            Sizing::BdpBy(definition) => match self.product(definition)? {
                // Windows are whole numbers of packets, rounded down.
                Some(bytes) => {
                    let packets = (bytes.get() / self.packet.get()).max(1);
                    (self.packet * packets, definition.name().to_owned())
                }
                None => (hosts, "bdp6: never the limit".to_owned()),
            },
            _ => {
                return Err(not_covered(format!(
                    "sizing \"{}\" finds its window by measuring, and no closed form predicts \
                     where a control loop settles",
                    transfer.sizing
                )));
            }
        };
        let wire = requested.min(hosts);
        if transfer.tcp.delayed_ack && wire < self.packet * 4 {
            return Err(not_covered(
                "a window of less than four packets behind delayed ACKs waits for the ACK timer",
            ));
        }
        Ok(Window { wire, rule })
    }

    /// Autotuning advertises twice the arrivals of an RTT. It never limits as long as the host allows more than the
    /// path holds.
    fn autotuned(&self, hosts: Bytes) -> Result<String, EngineError> {
        if hosts > saturation::sweet_spot(&self.path).high {
            return Ok("autotuning, which offers twice the data that arrives per round trip and \
                       so never limits"
                .to_owned());
        }
        Err(not_covered(
            "tcp.max_window cuts the kernel's autotuning below what the path holds, and its \
             growth depends on its start",
        ))
    }

    // SOBAS §II, in fluid terms: T_e = T_m.
    fn product(&self, definition: BdpDefinition) -> Result<Option<Bytes>, EngineError> {
        let left = self.left()?;
        let (c, a, t) = (self.path.capacity(), left.capacity(), self.path.minimum_rtt());
        Ok(Some(match definition {
            BdpDefinition::Bdp1 | BdpDefinition::Bdp2 => c * t,
            BdpDefinition::Bdp3 | BdpDefinition::Bdp4 => a * t,
            BdpDefinition::Bdp5 => {
                let state = six_bdps::alone(&left, self.packet)?;
                state.bulk_transfer_capacity * mean_rtt(&left, self.packet)?
            }
            BdpDefinition::Bdp6 => return Ok(None),
        }))
    }

    // Of a shared backlog, the target's own packets are the share A/C.
    /// The path that remains beside unresponsive traffic: A, T_e, and the target's share of the buffer.
    pub(super) fn left(&self) -> Result<Path, EngineError> {
        let available = self.path.capacity() - self.used;
        let share = available.as_f64() / self.path.capacity().as_f64();
        Ok(Path::new(available, self.path.minimum_rtt(), self.path.buffer().scaled(share))?)
    }
}

fn mean_rtt(path: &Path, packet: Bytes) -> Result<Duration, EngineError> {
    Ok(sawtooth(path, packet)?.mean_rtt)
}
