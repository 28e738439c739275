use std::collections::BTreeMap;

use sweetspot_emulator::Emulation;
use sweetspot_linux::diag::{Connection, Detail, Diag, State};
use sweetspot_units::{Bytes, Time};

use super::peers::PORT;

/// What the connections between the two programs did, as both kernels saw it.
pub struct Watch {
    near: Diag,
    far: Diag,
    /// By connection: when, and what had been received by then.
    pub received: BTreeMap<u64, Vec<(Time, Bytes)>>,
    /// By connection: segments retransmitted by the sender.
    pub retransmitted: BTreeMap<u64, u64>,
}

impl Watch {
    /// Opens both sides.
    pub fn start(emulation: &Emulation) -> Result<Watch, String> {
        let open = |side: &sweetspot_emulator::Side| {
            side.run(Diag::open).and_then(|opened| opened).map_err(|e| e.to_string())
        };
        Ok(Watch {
            near: open(emulation.near())?,
            far: open(emulation.far())?,
            received: BTreeMap::new(),
            retransmitted: BTreeMap::new(),
        })
    }

    /// Looks at both sides.
    pub fn look(&mut self, now: Time) -> Result<(), String> {
        let detail = Detail { info: true, ..Detail::NONE };
        let received = &mut self.received;
        let near = |c: Connection| {
            if let Some(info) = c.info.filter(|_| c.remote.port() == PORT) {
                received.entry(c.cookie).or_default().push((now, info.bytes_received));
            }
        };
        self.near.connections(&State::WITH_DATA, detail, near).map_err(|e| e.to_string())?;
        let retransmitted = &mut self.retransmitted;
        let far = |c: Connection| {
            if let Some(info) = c.info.filter(|_| c.local.port() == PORT) {
                retransmitted.insert(c.cookie, info.total_retrans.into());
            }
        };
        self.far.connections(&State::WITH_DATA, detail, far).map_err(|e| e.to_string())
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
