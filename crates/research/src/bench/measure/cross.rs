//! Cross traffic from the far end to the near end.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sweetspot_emulator::Side;
use sweetspot_linux::{clock, scheduling, tcp};
use sweetspot_path::Random;
use sweetspot_units::{Bytes, Duration};

use super::plan::{CrossKind, CrossPlan};

/// Length of a datagram on the wire, and its payload.
const DATAGRAM: Bytes = Bytes::new(1000);
const DATAGRAM_PAYLOAD: usize = 1000 - 28;
/// The share of a full segment that is payload.
const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;

/// Runs cross traffic while `work` runs.
pub fn beside<T>(
    plan: Option<CrossPlan>,
    near: &Side,
    far: &Side,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let Some(plan) = plan else { return Ok(work()) };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        match plan.kind {
            CrossKind::Tcp => {
                let listener = near.run(|| TcpListener::bind((near.address(), 0)))??;
                let address = listener.local_addr()?;
                let stream = far.run(|| TcpStream::connect(address))??;
                let (mut reader, _) = listener.accept()?;
                scope.spawn(move || {
                    let mut scratch = [0; 1 << 16];
                    while reader.read(&mut scratch).is_ok_and(|n| n > 0) {}
                });
                let (stop, wait) = (&stop, std::time::Duration::from_millis(200));
                stream.set_write_timeout(Some(wait))?;
                let pace = plan.rate.scaled(PAYLOAD_SHARE);
                tcp::options::set_max_pacing_rate(&stream, Some(pace))?;
                scope.spawn(move || write(stream, stop));
            }
            CrossKind::Poisson | CrossKind::Pareto => {
                // Nothing reads this socket: excess packets are dropped after the path.
                let sink = near.run(|| UdpSocket::bind((near.address(), 0)))??;
                let source = far.run(|| UdpSocket::bind((far.address(), 0)))??;
                source.connect(sink.local_addr()?)?;
                let stop = &stop;
                scope.spawn(move || {
                    send(&source, plan, stop);
                    drop(sink);
                });
            }
        }
        let done = work();
        stop.store(true, Ordering::Relaxed);
        Ok(done)
    })
}

fn write(mut stream: TcpStream, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        // A write that times out is retried.
        let _ = stream.write(&[0; 1 << 14]);
    }
}

fn send(source: &UdpSocket, plan: CrossPlan, stop: &AtomicBool) {
    let _ = scheduling::drop_timer_slack();
    let mut random = Random::new(plan.seed + 77);
    let mean = (DATAGRAM / plan.rate).as_secs_f64();
    let mut due = clock::now();
    while !stop.load(Ordering::Relaxed) {
        let u = random.unit().max(1e-12);
        let gap = match plan.kind {
            // The mean of a Pareto distribution of shape 1.5 is three times its minimum.
            CrossKind::Pareto => mean / 3.0 * u.powf(-1.0 / 1.5),
            _ => -mean * u.ln(),
        };
        due += Duration::from_secs_f64(gap.min(1.0));
        if clock::now() < due {
            clock::sleep_until(due);
        }
        let _ = source.send(&[0; DATAGRAM_PAYLOAD]);
    }
}
