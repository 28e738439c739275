//! The delay by the kernel's timestamps, compared with the configured delay.

use std::net::UdpSocket;

use serde::Serialize;
use sweetspot_linux::clock;
use sweetspot_linux::packet::PacketPort;
use sweetspot_path::PathSpec;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::{DISCARD_PORT, path};
use crate::Lateness;
use crate::error::{NetworkContext, Result};
use crate::serial::seconds;
use crate::{Emulation, Side};

/// Number of probes, and the gap between them.
const PROBE_COUNT: u64 = 2000;
const PROBE_INTERVAL: Duration = Duration::from_millis(1);
/// Position of the timestamp in a probe's frame: after 14 bytes of Ethernet, 20 of IPv4 and 8 of UDP.
const STAMP_OFFSET: usize = 42;
const PROBE_SIZE: Bytes = Bytes::new(20 + 8 + 8);

/// The excess delay of packets on an otherwise empty path. Serialised in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DelayError {
    /// The median.
    #[serde(rename = "median_s", serialize_with = "seconds")]
    pub median: Duration,
    /// The 99th percentile.
    #[serde(rename = "p99_s", serialize_with = "seconds")]
    pub p99: Duration,
    /// The maximum.
    #[serde(rename = "max_s", serialize_with = "seconds")]
    pub max: Duration,
    /// Number of probes that arrived, of 2000 sent.
    pub probes: u64,
    /// Number of probes that arrived too early. Any such probe is an error of the emulator.
    pub early: u64,
}

/// Measures the error on a path of 100 Mbit/s and 20 ms.
pub(super) fn measure() -> Result<DelayError> {
    let path = path(Rate::from_mbit_per_second(100));
    let emulation = Emulation::start(&path)?;
    // The ring of the far device stamps arrivals, whenever they are read.
    let mut arrivals = emulation.far().link.port_inside(path.mtu, PROBE_COUNT as usize)?;
    send(emulation.near(), emulation.far())?;
    clock::sleep_until(clock::now() + path.rtt());
    let error = evaluate(&path, &mut arrivals);
    emulation.finish()?;
    Ok(error)
}

fn send(near: &Side, far: &Side) -> Result<()> {
    let probe = || -> std::io::Result<()> {
        let socket = UdpSocket::bind((near.address(), DISCARD_PORT))?;
        let mut next = clock::now();
        for _ in 0..PROBE_COUNT {
            clock::sleep_until(next);
            next += PROBE_INTERVAL;
            let stamp = clock::wall().as_nanos().to_be_bytes();
            socket.send_to(&stamp, (far.address(), DISCARD_PORT))?;
        }
        Ok(())
    };
    // A socket accepts the packets; otherwise the far side would answer each probe with an ICMP error.
    let _sink = far
        .run(|| UdpSocket::bind((far.address(), DISCARD_PORT)))
        .and_then(|bound| bound)
        .doing("open a UDP socket")?;
    near.run(probe).and_then(|sent| sent).doing("send a probe")
}

fn evaluate(path: &PathSpec, arrivals: &mut PacketPort) -> DelayError {
    let expected = PROBE_SIZE / path.up.rate + path.up.delay;
    let (mut errors, mut early) = (Lateness::default(), 0);
    let mut next = true;
    while next {
        next = arrivals.receive(|frame| {
            let Some(stamp) = frame.bytes.get(STAMP_OFFSET..).and_then(|s| s.first_chunk()) else {
                return;
            };
            let sent = Time::from_nanos(u64::from_be_bytes(*stamp));
            let took = frame.arrived.since(sent);
            early += u64::from(took < expected);
            errors.record(took.saturating_sub(expected));
        });
    }
    DelayError {
        median: errors.quantile(0.5),
        p99: errors.quantile(0.99),
        max: errors.max(),
        probes: errors.total(),
        early,
    }
}
