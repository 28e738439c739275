use std::net::SocketAddr;

use serde::Serialize;
use sweetspot_diagnose::live::Side;
use sweetspot_diagnose::{Class, Limits};
use sweetspot_linux::clock;
use sweetspot_protocol::clients::rfc3339;
use sweetspot_units::{Bytes, Duration};

use sweetspot_watch::{ConnectionRow, limited_by};

/// One reading.
#[derive(Debug, Serialize)]
pub struct TopDocument {
    /// The time of the reading.
    time: Option<String>,
    /// Number of connections that match, printed or not.
    connections_total: usize,
    connections: Vec<ConnectionJson>,
}

#[derive(Debug, Serialize)]
struct ConnectionJson {
    local: SocketAddr,
    remote: SocketAddr,
    pid: Option<u32>,
    program: Option<String>,
    uid: u32,
    state: String,
    /// Role of this host for most of the data.
    side: &'static str,
    goodput_bps: f64,
    rtt_s: Option<f64>,
    rtt_min_s: Option<f64>,
    congestion: Option<String>,
    window_bytes: Option<u64>,
    cwnd_bytes: Option<u64>,
    retransmitted_segments: u64,
    bytes: u64,
    limited_by: Class,
    limited_by_words: String,
    limits: Limits,
    sweet_spot_bytes: Option<u64>,
}

/// The content of the table.
pub fn document(rows: &[&ConnectionRow], all: usize) -> TopDocument {
    let connections = rows.iter().map(|row| entry(row)).collect();
    TopDocument { time: rfc3339(clock::wall()), connections_total: all, connections }
}

fn entry(row: &ConnectionRow) -> ConnectionJson {
    let (c, period) = (&row.connection, row.period());
    let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
    let count = |bytes: Option<Bytes>| bytes.map(Bytes::get);
    ConnectionJson {
        local: c.local,
        remote: c.remote,
        pid: row.owner.as_ref().map(|owner| owner.pid),
        program: row.owner.as_ref().map(|owner| owner.name.clone()),
        uid: c.uid,
        state: format!("{:?}", c.state),
        side: match row.side() {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        },
        goodput_bps: row.rate().as_f64(),
        rtt_s: seconds(row.rtt()),
        rtt_min_s: seconds(row.live().rtt_min()),
        congestion: c.congestion.clone(),
        window_bytes: count(row.window()),
        cwnd_bytes: count(row.congestion_window()),
        retransmitted_segments: row.retransmitted(),
        bytes: row.bytes().get(),
        limited_by: period.named().class,
        limited_by_words: limited_by(&period),
        limits: period.limits,
        sweet_spot_bytes: count(row.sweet_spot()),
    }
}
