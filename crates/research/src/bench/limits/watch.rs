use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use sweetspot_emulator::Side;
use sweetspot_linux::clock;
use sweetspot_linux::packet::PacketPort;
use sweetspot_trace::file;
use sweetspot_units::Duration;

/// Bytes kept of each packet: Ethernet, IPv4, and TCP with all its options.
pub const SNAP_BYTES: usize = 14 + 20 + 60;
/// The index of the loopback device in every namespace.
const LOOPBACK: u32 = 1;
/// Frames in the ring: more than a second of full packets at 100 Mbit/s in both directions.
const RING_FRAMES: usize = 16_384;
/// Interval between two readings of the ring.
const RING_READ_INTERVAL: Duration = Duration::from_millis(20);

/// Captures the packets of one side of an emulated path.
pub struct PacketCapture {
    finished: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<u8>>>,
}

impl PacketCapture {
    /// Starts capturing on loopback if `loopback`, otherwise on the device of the path.
    pub fn start(side: &Side, loopback: bool) -> io::Result<PacketCapture> {
        let mut port = if loopback {
            // On loopback every packet is both sent and received; one copy is enough.
            side.run(|| PacketPort::open(LOOPBACK, SNAP_BYTES, RING_FRAMES))??
        } else {
            side.watch(SNAP_BYTES, RING_FRAMES)?
        };
        let finished = Arc::new(AtomicBool::new(false));
        let finished_seen = finished.clone();
        let life = move || {
            let mut capture = file::file_header(SNAP_BYTES as u32).to_vec();
            while !finished_seen.load(Ordering::Acquire) {
                take(&mut port, &mut capture);
                clock::sleep_until(clock::now() + RING_READ_INTERVAL);
            }
            take(&mut port, &mut capture);
            match port.lost()? {
                0 => Ok(capture),
                n => Err(io::Error::other(format!("the ring of the capture lost {n} packets"))),
            }
        };
        Ok(PacketCapture {
            finished,
            thread: thread::Builder::new().name("watch".into()).spawn(life)?,
        })
    }

    /// Stops capturing; returns the capture as a pcap file.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        self.finished.store(true, Ordering::Release);
        self.thread.join().map_err(|_| io::Error::other("the capture panicked"))?
    }
}

fn take(port: &mut PacketPort, capture: &mut Vec<u8>) {
    while port.receive(|frame| {
        let kept = &frame.bytes[..frame.bytes.len().min(SNAP_BYTES)];
        capture.extend(file::record_header(frame.arrived, kept.len(), frame.length));
        capture.extend(kept);
    }) {}
}
