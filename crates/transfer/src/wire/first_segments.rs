//! The limit of a connection's first segments, which the kernel does not pace.

use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use sweetspot_linux::tcp::Info;
use sweetspot_units::{Bytes, Rate, Time};

use super::pace::{Allowance, ApplicationPace};
use crate::lock::lock;

/// The segments with payload that leave at once, whatever the pacing rate (net/ipv4/tcp_output.c,
/// `tcp_update_skb_after_send`).
const UNPACED_SEGMENTS: u32 = 10;
/// One write: no more than a packet on most paths.
const WRITE: Bytes = Bytes::new(1500);

/// Holds a connection to a rate until the kernel does.
#[derive(Debug)]
pub(crate) struct FirstSegments {
    rate: Rate,
    /// A duplicate, to count its segments.
    socket: TcpStream,
    /// When what was written so far has had its time.
    due: Mutex<Time>,
    paced_by_kernel: AtomicBool,
}

impl FirstSegments {
    pub fn new(socket: TcpStream, rate: Rate) -> FirstSegments {
        FirstSegments {
            rate,
            socket,
            due: Mutex::new(Time::ZERO),
            paced_by_kernel: AtomicBool::new(false),
        }
    }

    fn is_paced_by_kernel(&self) -> bool {
        if self.paced_by_kernel.load(Ordering::Relaxed) {
            return true;
        }
        let paced =
            Info::read(&self.socket).map_or(true, |info| info.data_segs_out >= UNPACED_SEGMENTS);
        self.paced_by_kernel.store(paced, Ordering::Relaxed);
        paced
    }
}

impl ApplicationPace for FirstSegments {
    fn poll_allowance(&self, now: Time, _idle: bool) -> Allowance {
        if self.is_paced_by_kernel() {
            return Allowance::Bytes(Bytes::new(u64::MAX));
        }
        let mut due = lock(&self.due);
        *due = (*due).max(now);
        match *due > now {
            true => Allowance::Nothing { until: *due },
            false => Allowance::Bytes(WRITE),
        }
    }

    fn handle_moved(&self, bytes: Bytes) {
        if !self.paced_by_kernel.load(Ordering::Relaxed) {
            *lock(&self.due) += bytes / self.rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use sweetspot_units::Duration;

    use super::*;

    #[test]
    fn writes_are_paced_until_kernel_pacing_starts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        client.set_nodelay(true).unwrap();
        // 1500 B at 12 kbit/s take a second.
        let rate = Rate::from_bits_per_second(12_000);
        let pace = FirstSegments::new(client.try_clone().unwrap(), rate);
        let mut now = Time::from_nanos(5_000_000_000);
        for _ in 0..3 {
            assert_eq!(pace.poll_allowance(now, false), Allowance::Bytes(WRITE));
            pace.handle_moved(WRITE);
            let until = now + Duration::from_secs(1);
            assert_eq!(pace.poll_allowance(now, false), Allowance::Nothing { until });
            now = until;
        }
        // Segments of their own, as each is acknowledged before the next.
        while Info::read(&client).unwrap().data_segs_out < UNPACED_SEGMENTS {
            client.write_all(b"x").unwrap();
        }
        let unlimited = Allowance::Bytes(Bytes::new(u64::MAX));
        assert_eq!(pace.poll_allowance(now - Duration::from_secs(1), false), unlimited);
        drop(server);
    }
}
