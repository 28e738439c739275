//! Laws of the right-sizing receivers, on scripted receptions.

mod drs;
mod every_receiver;
mod heffner;
mod linux;

use sweetspot_sizing::{Controller, ControllerConfig, Input, Output, Sizing};
use sweetspot_units::{Bytes, Duration, Time};

const MSS: u64 = 1000;
const MAX: u64 = 32_000_000;
const RTT: Duration = Duration::from_millis(100);

/// A receiver driven by hand, and the window that it last requested.
struct Script {
    controller: Box<dyn Controller + Send>,
    now: Time,
    window: u64,
}

impl Script {
    /// `sizing` at the first byte of a connection, with its receiver's RTT known.
    fn new(sizing: &str) -> Script {
        let mut script = Script::unmeasured(sizing);
        script.rtt(RTT);
        script
    }

    /// As [`Script::new`], before the receiver has measured an RTT.
    fn unmeasured(sizing: &str) -> Script {
        let config = ControllerConfig {
            mss: Bytes::new(MSS),
            packet: Bytes::new(MSS + 52),
            max_window: Bytes::new(MAX),
            size: None,
            path: None,
        };
        let controller = sizing.parse::<Sizing>().unwrap().controller(&config).unwrap();
        let mut script = Script { controller, now: Time::ZERO, window: MAX };
        script.controller.handle(script.now, &Input::Timeout);
        script.read_outputs();
        script
    }

    fn rtt(&mut self, rtt: Duration) {
        self.controller.handle(self.now, &Input::KernelRtt(rtt));
        self.read_outputs();
    }

    /// `bytes` arrive in segments, evenly over `lasting`, and are read at once.
    fn receive(&mut self, bytes: u64, lasting: Duration) {
        self.receive_leaving(bytes, lasting, 0);
    }

    /// As [`Script::receive`], but each read leaves `unread` bytes.
    fn receive_leaving(&mut self, bytes: u64, lasting: Duration, unread: u64) {
        let segments = bytes / MSS;
        let start = self.now;
        for i in 1..=segments {
            self.now = start + lasting.scaled(i as f64 / segments as f64);
            self.controller.handle(
                self.now,
                &Input::Data { bytes: Bytes::new(MSS), unread: Bytes::new(unread) },
            );
            self.read_outputs();
        }
        self.now = start + lasting;
    }

    fn read_outputs(&mut self) {
        while let Some(output) = self.controller.poll_output() {
            if let Output::Window(window) = output {
                self.window = window.map_or(MAX, Bytes::get);
            }
        }
    }
}
