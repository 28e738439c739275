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
const SNAP_BYTES: usize = 14 + 20 + 60;
/// At 100 Mbit/s of full packets, both ways, more than a second.
const RING_FRAMES: usize = 16_384;
/// Often enough for the ring, rarely enough for the machine.
const RING_READ_INTERVAL: Duration = Duration::from_millis(20);

/// Captures what comes and goes on one side of an emulated path.
pub struct PacketCapture {
    over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<u8>>>,
}

impl PacketCapture {
    /// Begins to capture.
    pub fn start(side: &Side) -> io::Result<PacketCapture> {
        let mut port = side.watch(SNAP_BYTES, RING_FRAMES)?;
        let over = Arc::new(AtomicBool::new(false));
        let over_seen = over.clone();
        let life = move || {
            let mut capture = file::file_header(SNAP_BYTES as u32).to_vec();
            while !over_seen.load(Ordering::Acquire) {
                take(&mut port, &mut capture);
                clock::sleep_until(clock::now() + RING_READ_INTERVAL);
            }
            take(&mut port, &mut capture);
            match port.lost()? {
                0 => Ok(capture),
                n => Err(io::Error::other(format!("the ring of the capture lost {n} packets"))),
            }
        };
        Ok(PacketCapture { over, thread: thread::Builder::new().name("watch".into()).spawn(life)? })
    }

    /// Ends the capture; what was captured is as a pcap file has it.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        self.over.store(true, Ordering::Release);
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
