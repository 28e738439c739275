use std::collections::BTreeMap;

use sweetspot_emulator::Emulation;
use sweetspot_linux::diag::{Detail, Diag, DiagConnection, TcpState};
use sweetspot_units::{Bytes, Time};

use super::peers::{PORT, RIVAL_PORT};

/// Counters of the connections between both programs, from both kernels.
pub struct ConnectionWatch {
    receiver: Diag,
    sender: Diag,
    /// Whether the near side sends; the server's port is then the receiver's.
    sends: bool,
    /// For each connection, times and the bytes that the receiving program had read by then,
    /// excluding unread bytes in its socket's buffer.
    pub received: BTreeMap<u64, Vec<(Time, Bytes)>>,
    /// The same for the competing download, which is not measured.
    rival: BTreeMap<u64, Vec<(Time, Bytes)>>,
    /// For each connection, segments retransmitted by the sender.
    pub retransmitted: BTreeMap<u64, u64>,
}

impl ConnectionWatch {
    /// Starts watching both sides.
    pub fn start(emulation: &Emulation, sends: bool) -> Result<ConnectionWatch, String> {
        let open = |side: &sweetspot_emulator::Side| {
            side.run(Diag::open).and_then(|opened| opened).map_err(|e| e.to_string())
        };
        let (near, far) = (open(emulation.near())?, open(emulation.far())?);
        let (receiver, sender) = if sends { (far, near) } else { (near, far) };
        Ok(ConnectionWatch {
            receiver,
            sender,
            sends,
            received: BTreeMap::new(),
            rival: BTreeMap::new(),
            retransmitted: BTreeMap::new(),
        })
    }

    /// Reads the counters of both sides.
    pub fn sample(&mut self, now: Time) -> Result<(), String> {
        let detail = Detail { info: true, ..Detail::NONE };
        let sends = self.sends;
        let is_client = |c: &DiagConnection| c.remote.port() == PORT;
        let is_server = |c: &DiagConnection| c.local.port() == PORT;
        let is_measured = |c: &DiagConnection| if sends { is_server(c) } else { is_client(c) };
        let (received, rival) = (&mut self.received, &mut self.rival);
        let at_receiver = |c: DiagConnection| {
            let Some(info) = &c.info else { return };
            let series = if c.remote.port() == RIVAL_PORT {
                &mut *rival
            } else if is_measured(&c) {
                &mut *received
            } else {
                return;
            };
            let got = info.bytes_received.saturating_sub(c.unread);
            series.entry(c.cookie).or_default().push((now, got));
        };
        let read = self.receiver.connections(&TcpState::WITH_DATA, detail, at_receiver);
        read.map_err(|e| e.to_string())?;
        let retransmitted = &mut self.retransmitted;
        let at_sender = |c: DiagConnection| {
            if let Some(info) = c.info.filter(|_| if sends { is_client(&c) } else { is_server(&c) })
            {
                retransmitted.insert(c.cookie, info.total_retrans.into());
            }
        };
        let read = self.sender.connections(&TcpState::WITH_DATA, detail, at_sender);
        read.map_err(|e| e.to_string())
    }

    /// Bytes received by the program on each bulk connection between two times.
    pub fn between(&self, from: Time, to: Time) -> Vec<Bytes> {
        between(&self.received, from, to)
    }

    /// When the second bulk connection was first seen, if any.
    pub fn second_began(&self) -> Option<Time> {
        let bulk = self.received.values().filter(|s| is_bulk(s));
        let mut began: Vec<Time> = bulk.filter_map(|s| Some(s.first()?.0)).collect();
        began.sort_unstable();
        began.get(1).copied()
    }

    /// The measured connections' share of all bytes between two times, when a competing flow is
    /// present; otherwise `None`.
    pub fn share_beside_rival(&self, from: Time, to: Time) -> Option<f64> {
        let sum = |all: Vec<Bytes>| all.into_iter().sum::<Bytes>().as_f64();
        let (ours, rival) = (sum(self.between(from, to)), sum(between(&self.rival, from, to)));
        (!self.rival.is_empty()).then(|| ours / (ours + rival).max(1.0))
    }
}

/// Bytes received on each of these bulk connections between two times.
fn between(all: &BTreeMap<u64, Vec<(Time, Bytes)>>, from: Time, to: Time) -> Vec<Bytes> {
    let at = |series: &[(Time, Bytes)], when: Time| {
        series.iter().rev().find(|(t, _)| *t <= when).map_or(Bytes::ZERO, |(_, bytes)| *bytes)
    };
    let bulk = all.values().filter(|s| is_bulk(s));
    bulk.map(|s| at(s, to).saturating_sub(at(s, from))).collect()
}

fn is_bulk(series: &[(Time, Bytes)]) -> bool {
    series.last().is_some_and(|(_, bytes)| *bytes > MIN_BULK_BYTES)
}

/// Connections with less data only carry control messages (iperf3 has one).
const MIN_BULK_BYTES: Bytes = Bytes::new(100_000);
