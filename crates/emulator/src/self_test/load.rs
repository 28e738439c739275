//! A load that keeps the bottleneck backlogged: full-size datagrams in one direction, small ones in the other.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sweetspot_linux::clock;
use sweetspot_linux::datagrams::{Datagrams, MAX_SEGMENTS};
use sweetspot_path::PathSpec;
use sweetspot_units::{Bytes, Duration, Rate};

use super::DISCARD_PORT;
use crate::error::{NetworkContext, Result};
use crate::{Certificate, Emulation, Side};

/// IPv4 and UDP headers.
const UDP_IP_HEADERS: Bytes = Bytes::new(28);
/// An IPv4 packet with a TCP ACK and the timestamp option (RFC 7323).
const ACKNOWLEDGEMENT: Bytes = Bytes::new(52);
/// Ratio of the load to the rate, so that the bottleneck stays backlogged.
const LOAD_FACTOR: f64 = 1.05;
/// Interval between bunches of datagrams.
const BUNCH_INTERVAL: Duration = Duration::from_micros(500);

/// Loads `path` for `span`, and returns the emulation's certificate.
pub(super) fn carry(path: &PathSpec, span: Duration) -> Result<Certificate> {
    let emulation = Emulation::start(path)?;
    let (near, far) = (emulation.near(), emulation.far());
    let (near_end, far_end) = (end(near, far)?, end(far, near)?);
    let finished = AtomicBool::new(false);
    let packets = path.up.rate.scaled(LOAD_FACTOR).as_f64() / (8.0 * path.mtu.as_f64());
    // TCP acknowledges every second packet (RFC 9293, section 3.8.6.3).
    let ack_rate = Rate::from_f64(packets / 2.0 * 8.0 * ACKNOWLEDGEMENT.as_f64());
    thread::scope(|scope| {
        scope.spawn(|| send(&near_end, path.up.rate.scaled(LOAD_FACTOR), path.mtu, &finished));
        scope.spawn(|| send(&far_end, ack_rate, ACKNOWLEDGEMENT, &finished));
        clock::sleep_until(clock::now() + span);
        finished.store(true, Ordering::Relaxed);
    });
    emulation.finish()
}

/// A socket on `side` that sends to `other`. Nobody reads from it, so packets beyond its buffer are dropped at little cost, and
/// the CPU is left to the emulator.
fn end(side: &Side, other: &Side) -> Result<Datagrams> {
    let open = || -> io::Result<Datagrams> {
        let socket = Datagrams::bind((side.address(), DISCARD_PORT).into())?;
        socket.connect((other.address(), DISCARD_PORT).into())?;
        // Otherwise merged packets would be split again, only to be dropped. Before Linux 5.0 they are.
        let _ = socket.leave_merged();
        Ok(socket)
    };
    side.run(open).and_then(|opened| opened).doing("open a UDP socket")
}

/// Sends packets of `size` at `rate` until `finished`.
fn send(socket: &Datagrams, rate: Rate, size: Bytes, finished: &AtomicBool) {
    let payload = size.saturating_sub(UDP_IP_HEADERS);
    // One system call for many packets; otherwise the generator would limit the rate.
    let mut at_once = if socket.cut_into(payload).is_ok() { MAX_SEGMENTS } else { 1 };
    let started = clock::now();
    let (mut sent, mut next) = (Bytes::ZERO, started);
    while !finished.load(Ordering::Relaxed) {
        let due = rate * clock::now().since(started);
        while sent < due && !finished.load(Ordering::Relaxed) {
            let packets = (due - sent).get().div_ceil(size.get()).min(at_once);
            // The certificate will show that a rejected datagram is missing, so just continue.
            if socket.send(payload * packets).is_err() && at_once > 1 {
                // Before Linux 6.11, packets are split only if the device computes the checksum.
                at_once = 1;
                continue;
            }
            sent += size * packets;
        }
        next += BUNCH_INTERVAL;
        clock::sleep_until(next);
    }
}
