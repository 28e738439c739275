use std::os::fd::AsFd;
use sweetspot_emulator::{Emulation, Side};
use sweetspot_linux::clock;
use sweetspot_linux::epoll::Epoll;
use sweetspot_linux::event_fd::wait_readable;
use sweetspot_linux::tcp::{Flow, FlowOptions, Info, Listener, options};
use sweetspot_path::{DirectionSpec, PathSpec};
use sweetspot_theory::host::frame::Framing;
use sweetspot_units::{Bytes, Duration, Time, Volume};

use super::{BlogRow, Expectation, LINK, MTU, RTT};
use sweetspot_lab::Doing;
use sweetspot_lab::{Certificate, LabError, settings};

/// iperf's default port.
const IPERF_PORT: u16 = 5001;
/// netem's buffer: 1000 packets, more than any of the windows.
const PATH_BUFFER: Volume = Volume::Packets(1000);
/// Interval between two readings of the sender's window.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
/// Bytes per write.
const WRITE_BYTES: Bytes = Bytes::new(1 << 20);
/// Epoll tokens of the two ends.
const NEAR: u64 = 0;
const FAR: u64 = 1;

/// Measures one receive buffer on a fresh path.
pub(super) fn row(
    requested: Bytes,
    expected: &Expectation,
    each: Duration,
) -> Result<BlogRow, LabError> {
    let emulation = Emulation::start(&path()?)?;
    settings::set(emulation.far(), "tcp_moderate_rcvbuf", "0")?;
    let seen = BlogTestbed::new(&emulation, requested)?.run(each)?;
    let certificate = Certificate::from(&emulation.finish()?);
    let measured = (seen.received / seen.lasted).as_f64();
    Ok(BlogRow {
        asked_bytes: requested.get(),
        buffer_bytes: seen.buffer.get(),
        window_expected_bytes: expected.window.get(),
        window_advertised_bytes: seen.window.get(),
        expected_bps: expected.rate.as_f64(),
        expected_with_headers_bps: expected.with_headers.as_f64(),
        measured_bps: measured,
        accuracy: measured / expected.rate.as_f64(),
        rtt_min_s: seen.rtt_min.as_secs_f64(),
        retransmitted: seen.retransmitted,
        certificate,
    })
}

/// Fast Ethernet for the emulator, which counts IP packets: at this rate a full packet takes as
/// long as its frame does on the wire.
fn path() -> Result<PathSpec, LabError> {
    let full = Framing::COMMON.payload(MTU).and_then(|p| Framing::COMMON.on_the_wire(p));
    let frame = full.map_err(|error| LabError::Inside(format!("lab: {error}")))?;
    let rate = LINK.scaled(MTU.as_f64() / frame.as_f64());
    let direction = DirectionSpec::new(rate, RTT / 2, PATH_BUFFER);
    Ok(PathSpec { up: direction, down: direction, mtu: MTU, seed: 1 })
}

/// The measurements of a run.
struct BlogMeasurement {
    received: Bytes,
    lasted: Duration,
    buffer: Bytes,
    window: Bytes,
    rtt_min: Duration,
    retransmitted: u64,
}

/// A sender and a receiver, with their readings.
struct BlogTestbed {
    started: Time,
    epoll: Epoll,
    listener: Listener,
    near: Flow,
    far: Option<Flow>,
    received: Bytes,
    window: Bytes,
}

impl BlogTestbed {
    fn new(emulation: &Emulation, requested: Bytes) -> Result<BlogTestbed, LabError> {
        let (near, far) = (emulation.near(), emulation.far());
        let buffer = FlowOptions { receive_buffer: Some(requested), ..FlowOptions::default() };
        let at = (far.address(), IPERF_PORT).into();
        let listener = on(far, || Listener::open(at, &buffer)).doing("listen")?;
        let reno = FlowOptions { congestion: Some("reno".into()), ..FlowOptions::default() };
        let epoll = Epoll::new().doing("make an epoll set")?;
        let started = clock::now();
        let near = on(near, || Flow::connect(at, &reno)).doing("connect")?;
        epoll.watch(&near, NEAR).doing("watch a socket")?;
        let (received, window) = (Bytes::ZERO, Bytes::ZERO);
        Ok(BlogTestbed { started, epoll, listener, near, far: None, received, window })
    }

    /// Sends at full rate for `each`, or a little longer if this process was delayed at the end.
    fn run(mut self, each: Duration) -> Result<BlogMeasurement, LabError> {
        let end = self.started + each;
        let (mut ready, mut next_sample) = (Vec::new(), self.started + SAMPLE_INTERVAL);
        while clock::now() < end {
            let due = next_sample.min(end);
            wait_readable(&[self.epoll.as_fd(), self.listener.as_fd()], due).doing("wait")?;
            self.work(&mut ready).doing("move data")?;
            if clock::now() >= next_sample {
                let window = Info::read(&self.near).doing("read TCP_INFO")?.snd_wnd;
                self.window = self.window.max(window.unwrap_or_default());
                next_sample += SAMPLE_INTERVAL;
            }
        }
        let lasted = clock::now().since(self.started);
        let info = Info::read(&self.near).doing("read TCP_INFO")?;
        let Some(far) = &self.far else {
            return Err(LabError::Inside("lab: the connection was not established".into()));
        };
        Ok(BlogMeasurement {
            received: self.received,
            lasted,
            buffer: options::receive_buffer(far).doing("read SO_RCVBUF")?,
            window: self.window,
            rtt_min: info.min_rtt,
            retransmitted: info.total_retrans.into(),
        })
    }

    fn work(&mut self, ready: &mut Vec<sweetspot_linux::epoll::Readiness>) -> std::io::Result<()> {
        if self.far.is_none()
            && let Some(far) = self.listener.accept()?
        {
            self.epoll.watch(&far, FAR)?;
            self.far = Some(far);
        }
        ready.clear();
        self.epoll.take(ready)?;
        for one in ready {
            if one.number == NEAR && one.writable {
                while self.near.send(WRITE_BYTES)? > Bytes::ZERO {}
            }
            if let (FAR, true, Some(far)) = (one.number, one.readable, &self.far) {
                while let Some(bytes) = far.discard(WRITE_BYTES)?.filter(|n| *n > Bytes::ZERO) {
                    self.received += bytes;
                }
            }
        }
        Ok(())
    }
}

fn on<T: Send>(
    side: &Side,
    work: impl FnOnce() -> std::io::Result<T> + Send,
) -> std::io::Result<T> {
    side.run(work).and_then(|done| done)
}
