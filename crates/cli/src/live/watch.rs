use std::collections::BTreeMap;

use sweetspot_emulator::Emulation;
use sweetspot_linux::diag::{Connection, Detail, Diag, State};
use sweetspot_units::{Bytes, Time};

use super::peers::PORT;

/// What the connections between the two programs did, as both kernels saw it.
pub struct Watch {
    receiver: Diag,
    sender: Diag,
    /// Whether the near side sends: then the server's port is the receiver's.
    sends: bool,
    /// By connection: when, and what had been received by then.
    pub received: BTreeMap<u64, Vec<(Time, Bytes)>>,
    /// By connection: segments retransmitted by the sender.
    pub retransmitted: BTreeMap<u64, u64>,
}

impl Watch {
    /// Opens both sides.
    pub fn start(emulation: &Emulation, sends: bool) -> Result<Watch, String> {
        let open = |side: &sweetspot_emulator::Side| {
            side.run(Diag::open).and_then(|opened| opened).map_err(|e| e.to_string())
        };
        let (near, far) = (open(emulation.near())?, open(emulation.far())?);
        let (receiver, sender) = if sends { (far, near) } else { (near, far) };
        Ok(Watch {
            receiver,
            sender,
            sends,
            received: BTreeMap::new(),
            retransmitted: BTreeMap::new(),
        })
    }

    /// Looks at both sides.
    pub fn look(&mut self, now: Time) -> Result<(), String> {
        let detail = Detail { info: true, ..Detail::NONE };
        let sends = self.sends;
        let is_client = |c: &Connection| c.remote.port() == PORT;
        let is_server = |c: &Connection| c.local.port() == PORT;
        let received = &mut self.received;
        let at_receiver = |c: Connection| {
            if let Some(info) = c.info.filter(|_| if sends { is_server(&c) } else { is_client(&c) })
            {
                received.entry(c.cookie).or_default().push((now, info.bytes_received));
            }
        };
        let read = self.receiver.connections(&State::WITH_DATA, detail, at_receiver);
        read.map_err(|e| e.to_string())?;
        let retransmitted = &mut self.retransmitted;
        let at_sender = |c: Connection| {
            if let Some(info) = c.info.filter(|_| if sends { is_client(&c) } else { is_server(&c) })
            {
                retransmitted.insert(c.cookie, info.total_retrans.into());
            }
        };
        let read = self.sender.connections(&State::WITH_DATA, detail, at_sender);
        read.map_err(|e| e.to_string())
    }

    /// Bytes that each bulk connection received between two times.
    pub fn between(&self, from: Time, to: Time) -> Vec<Bytes> {
        let at = |series: &[(Time, Bytes)], when: Time| {
            series.iter().rev().find(|(t, _)| *t <= when).map_or(Bytes::ZERO, |(_, bytes)| *bytes)
        };
        let bulk = self.received.values().filter(|s| s.last().is_some_and(|(_, n)| *n > BULK));
        bulk.map(|s| at(s, to).saturating_sub(at(s, from))).collect()
    }
}

/// Less is a program's own conversation (iperf3 has a connection for it).
const BULK: Bytes = Bytes::new(100_000);
