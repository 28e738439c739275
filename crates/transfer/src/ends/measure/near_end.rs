//! The measuring end: carries out the steps of a measurement together with the far end.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sweetspot_linux::udp::Udp;
use sweetspot_linux::{clock, scheduling, tcp};
use sweetspot_measure::{
    Arrival, Direction, EchoRecord, LoadRecord, Measurement, PAUSE, Plan, Report, Spacing, Step,
    StepResult, StreamRecord, Traces,
};
use sweetspot_protocol::frame::FramePart;
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::record::Record;
use sweetspot_protocol::{MeasureMessage, Message, ProtocolError};
use sweetspot_units::{Bytes, Duration, Time};

use super::datagrams::{Datagrams, Stream, receiving};
use super::fill::{drain, fill};
use super::{WORD_TIMEOUT, next_word, unexpected};
use crate::wire::channel::Channel;
use crate::wire::frame_reader::FrameReader;
use crate::wire::link::{Contact, Link};
use crate::{Result, TransferError};

/// Interval between hole punches until the far end reports that they arrive.
const PUNCH_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between echoes during streams and loads.
const ECHO_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes of an echo on the wire.
const ECHO_SIZE: Bytes = Bytes::new(100);
/// How long to wait for echoes after the last request.
const ECHO_PATIENCE: Duration = Duration::from_secs(2);

/// A measurement of the path to a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The server's address.
    pub peer: SocketAddr,
    /// The results.
    pub report: Report,
    /// The raw samples, for plots.
    pub traces: Traces,
    /// The TCP options that both kernels negotiated.
    pub tcp: TcpFacts,
    /// Duration of the measurement.
    pub took: Duration,
}

/// The options that both kernels negotiated in a connection's handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpFacts {
    /// The path MTU known to the kernel.
    pub path_mtu: Bytes,
    /// The MSS.
    pub segment: Bytes,
    /// Window scale shifts (RFC 7323): the peer's, for data that this end sends, and ours. `None`: not negotiated, or removed on
    /// the path.
    pub window_scale: Option<(u8, u8)>,
    /// Whether SACK was negotiated.
    pub sack: bool,
    /// Whether timestamps were negotiated.
    pub timestamps: bool,
    /// Whether ECN was negotiated.
    pub ecn: bool,
}

/// Bits of `tcpi_options` (include/uapi/linux/tcp.h).
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WINDOW_SCALE: u8 = 4;
const ECN: u8 = 8;
/// Bytes of the timestamp option in each segment.
const TIMESTAMP_BYTES: u64 = 12;
const TCP_HEADER: u64 = 20;

impl TcpFacts {
    /// Reads the options from `info`.
    pub(super) fn of(info: &tcp::Info) -> TcpFacts {
        let has = |bit: u8| info.options & bit != 0;
        TcpFacts {
            path_mtu: info.pmtu,
            segment: info.snd_mss,
            window_scale: has(WINDOW_SCALE).then_some((info.snd_wscale, info.rcv_wscale)),
            sack: has(SACK),
            timestamps: has(TIMESTAMPS),
            ecn: has(ECN),
        }
    }

    /// The largest packet that both ends accept.
    fn packet(&self, is_ipv4: bool) -> Bytes {
        let ip_header = if is_ipv4 { 20 } else { 40 };
        let options = if self.timestamps { TIMESTAMP_BYTES } else { 0 };
        let whole = self.segment + Bytes::new(options + TCP_HEADER + ip_header);
        whole.min(self.path_mtu)
    }
}

/// Measures the path to the other end of `contact` by `plan`. Before each step, `progress` receives its description and
/// direction. [`ControlFlow::Break`] ends the measurement there; it returns the results so far.
pub fn measure(
    contact: &Contact,
    mut plan: Plan,
    progress: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> Result<Measured> {
    let start = clock::now();
    let link = contact.dial_to_measure(false)?;
    let channel = Arc::clone(&link.channel);
    let info = tcp::Info::read(channel.socket()).map_err(TransferError::system("TCP_INFO"))?;
    let facts = TcpFacts::of(&info);
    plan.packet = plan.packet.min(facts.packet(channel.peer().is_ipv4()));
    let open = |authenticator| {
        let udp = Udp::bind_any(channel.peer())?;
        udp.connect(channel.peer())?;
        Datagrams::new(udp, authenticator)
    };
    let prepare = || TransferError::system("preparing datagrams");
    let echoes = open(PacketAuthenticator::new(&link.session)).map_err(prepare())?;
    let streams = open(PacketAuthenticator::of_streams(&link.session)).map_err(prepare())?;
    let mut prober = Prober {
        contact,
        channel: Arc::clone(&channel),
        frames: link.frames,
        echoes: &echoes,
        streams: &streams,
        headers: channel.udp_headers(),
        requested: 0,
    };
    let mut measurement = Measurement::new(plan);
    let waited = scheduling::cpu_waits();
    let done = receiving([&echoes, &streams], || prober.run(&mut measurement, progress));
    // A kernel without these counters reports nothing.
    if let (Ok(before), Ok(now)) = (waited, scheduling::cpu_waits()) {
        measurement.handle_cpu_wait(now.mean_since(&before).unwrap_or_default());
    }
    done.map_err(|error| match error {
        TransferError::PeerGone { peer, .. } | TransferError::Silent { peer, .. } => {
            TransferError::MeasurementCut(peer)
        }
        other => other,
    })?;
    channel.sever();
    let (peer, report, traces) = (channel.peer(), measurement.report(), measurement.traces());
    Ok(Measured { peer, report, traces, tcp: facts, took: clock::now().since(start) })
}

struct Prober<'a> {
    contact: &'a Contact,
    channel: Arc<Channel>,
    frames: FrameReader,
    echoes: &'a Datagrams,
    streams: &'a Datagrams,
    headers: Bytes,
    requested: u32,
}

impl Prober<'_> {
    fn run(
        &mut self,
        measurement: &mut Measurement,
        progress: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<()> {
        self.wait_ready()?;
        while let Some(step) = measurement.poll_step() {
            if progress(&measurement.progress()).is_break() {
                measurement.end_early("the measurement was interrupted");
                break;
            }
            measurement.handle(self.carry_out(&step)?);
            clock::sleep_until(clock::now() + PAUSE);
        }
        Ok(())
    }

    /// Sends hole punches until the far end reports that they arrive.
    fn wait_ready(&mut self) -> Result<()> {
        let ready = AtomicBool::new(false);
        let payload = ECHO_SIZE.saturating_sub(self.headers);
        let (echoes, streams, frames) = (self.echoes, self.streams, &mut self.frames);
        let word = thread::scope(|scope| {
            scope.spawn(|| {
                let mut sequence = 0;
                while !ready.load(Ordering::Acquire) {
                    sequence += 1;
                    echoes.punch(sequence, payload);
                    streams.punch(sequence, payload);
                    clock::sleep_until(clock::now() + PUNCH_INTERVAL);
                }
            });
            let word = next_word(frames, clock::now() + WORD_TIMEOUT);
            ready.store(true, Ordering::Release);
            word
        })?;
        match word {
            MeasureMessage::Ready { datagrams: true } => Ok(()),
            MeasureMessage::Ready { datagrams: false } => {
                Err(TransferError::NoDatagrams(self.channel.peer().to_string()))
            }
            _ => Err(out_of_order()),
        }
    }

    fn carry_out(&mut self, step: &Step) -> Result<StepResult> {
        match *step {
            Step::Echo { packets, interval, size } => {
                let payload = size.saturating_sub(self.headers);
                let requested =
                    self.echoes.request_while(payload, interval, |requested| requested < packets);
                let echoes = self.echoes.take_echoes(requested, ECHO_PATIENCE);
                Ok(StepResult::Echo(EchoRecord { sent: requested, size, echoes }))
            }
            Step::Stream { direction, packets, size, gap, spacing, echoes } => {
                self.requested += 1;
                let stream = Stream { number: self.requested, packets, gap, spacing };
                let payload = size.saturating_sub(self.headers);
                let (mut arrivals, with_echoes) =
                    self.with_echoes(echoes, |prober| match direction {
                        Direction::Down => prober.stream_down(stream, payload),
                        Direction::Up => prober.stream_up(stream, payload),
                    })?;
                // The far end may report only packets that this end sent.
                arrivals.retain(|arrival| arrival.index < packets);
                Ok(StepResult::Stream(StreamRecord { sent: packets, size, arrivals }, with_echoes))
            }
            Step::Load { direction, duration, max } => {
                let dialed = self.contact.dial_to_measure(true);
                // The path is already measured by streams, so a rejected second connection fails only this step.
                let Ok(link) = dialed else {
                    let why = "cannot open a second connection for the load";
                    return Ok(StepResult::Failed(why.into()));
                };
                let (mut load, with_echoes) = self.with_echoes(true, |_| match direction {
                    Direction::Down => load_down(link, duration, max),
                    Direction::Up => load_up(link, duration, max),
                })?;
                load.echoes = with_echoes;
                Ok(StepResult::Load(load))
            }
        }
    }

    /// Runs `work`, and requests echoes meanwhile if they are `enabled`.
    fn with_echoes<T>(
        &mut self,
        enabled: bool,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, EchoRecord)> {
        let payload = ECHO_SIZE.saturating_sub(self.headers);
        let (datagrams, finished) = (self.echoes, AtomicBool::new(!enabled));
        thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let going = |_| !finished.load(Ordering::Acquire);
                datagrams.request_while(payload, ECHO_INTERVAL, going)
            });
            let done = work(self);
            finished.store(true, Ordering::Release);
            let sent = asking.join().unwrap_or(0);
            let echoes = if sent > 0 {
                datagrams.take_echoes(sent, Duration::from_millis(500))
            } else {
                Vec::new()
            };
            done.map(|done| (done, EchoRecord { sent, size: ECHO_SIZE, echoes }))
        })
    }

    fn stream_down(&mut self, stream: Stream, payload: Bytes) -> Result<Vec<Arrival>> {
        let (random, pair_ns) = match stream.spacing {
            Spacing::Even => (false, 0),
            Spacing::Poisson => (true, 0),
            Spacing::PoissonPairs(apart) => (true, apart.as_nanos()),
        };
        self.channel.send_message(&Message::Measure(MeasureMessage::Send {
            stream: stream.number,
            packets: stream.packets,
            payload_bytes: payload.get() as u32,
            gap_ns: stream.gap.as_nanos(),
            random,
            pair_ns,
        }))?;
        match next_word(&mut self.frames, deadline(stream))? {
            MeasureMessage::Sent { stream: sent, .. } if sent == stream.number => {
                Ok(self.streams.take_arrivals(stream.number, stream.packets, WORD_TIMEOUT))
            }
            _ => Err(out_of_order()),
        }
    }

    fn stream_up(&mut self, stream: Stream, payload: Bytes) -> Result<Vec<Arrival>> {
        self.streams.send_stream(stream, payload);
        self.channel.send_message(&Message::Measure(MeasureMessage::Report {
            stream: stream.number,
            packets: stream.packets,
        }))?;
        let (mut arrivals, max) = (Vec::new(), 2 * stream.packets as usize);
        self.frames.wait_for(deadline(stream), |part| match part {
            FramePart::Record(body) => {
                let record = Record::read(&body).map_err(ProtocolError::from)?;
                let Record::Arrivals(batch) = record else { return Err(out_of_order()) };
                // A packet arrives once, or twice if the network duplicates it.
                if arrivals.len() + batch.len() > max {
                    return Err(out_of_order());
                }
                arrivals.extend(batch.iter().map(|arrival| Arrival {
                    index: arrival.index,
                    sent: Time::from_nanos(arrival.sent_ns),
                    received: Time::from_nanos(arrival.received_ns),
                }));
                Ok(None)
            }
            FramePart::Message(body) => match Message::read(&body).map_err(ProtocolError::from)? {
                Message::Measure(MeasureMessage::Reported { stream: reported })
                    if reported == stream.number =>
                {
                    Ok(Some(()))
                }
                other => Err(unexpected(other)),
            },
            _ => Err(out_of_order()),
        })?;
        Ok(arrivals)
    }
}

/// When to give up waiting for a stream's end. Exponential gaps may take twice their expected total.
fn deadline(stream: Stream) -> Time {
    clock::now() + stream.gap * (2 * u64::from(stream.packets)) + WORD_TIMEOUT
}

fn load_down(mut link: Link, duration: Duration, max: Bytes) -> Result<LoadRecord> {
    link.channel.send_message(&Message::Measure(MeasureMessage::Fill {
        duration_ms: duration.as_nanos() / 1_000_000,
        max_bytes: max.get(),
    }))?;
    let drained = drain(&mut link.frames, duration)?;
    link.channel.sever();
    record(drained.last, drained.content, drained.elapsed)
}

fn load_up(mut link: Link, duration: Duration, max: Bytes) -> Result<LoadRecord> {
    link.channel.send_message(&Message::Measure(MeasureMessage::Drain))?;
    let filled = fill(&link.channel, duration, max)?;
    link.channel.send_message(&Message::Measure(filled.clone()))?;
    match next_word(&mut link.frames, clock::now() + duration + WORD_TIMEOUT)? {
        MeasureMessage::Drained { content_bytes, elapsed_us } => {
            link.channel.sever();
            record(filled, Bytes::new(content_bytes), Duration::from_micros(elapsed_us))
        }
        _ => Err(out_of_order()),
    }
}

fn record(filled: MeasureMessage, content: Bytes, elapsed: Duration) -> Result<LoadRecord> {
    let MeasureMessage::Filled { round_trips_us, retransmitted, congestion, .. } = filled else {
        return Err(out_of_order());
    };
    let round_trips =
        round_trips_us.into_iter().map(|us| Duration::from_micros(us.into())).collect();
    let echoes = EchoRecord::default();
    let congestion = congestion.to_string();
    Ok(LoadRecord { content, elapsed, round_trips, retransmitted, congestion, echoes })
}

fn out_of_order() -> TransferError {
    let (what, when) = ("an answer", "to another question");
    ProtocolError::OutOfOrder { what, when }.into()
}
