use serde::{Deserialize, Serialize};
use sweetspot_diagnose::Class;
use sweetspot_emulator::Middlebox;
use sweetspot_path::{DirectionSpec, PathSpec, Random};
use sweetspot_units::{Bytes, Duration, Probability, Rate, Volume};

use super::field::{self, Meddling, Said, Talk};

/// The cause that limits a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The receiver sets a small SO_RCVBUF before it listens.
    SmallReceiveBuffer,
    /// The sender sets a small SO_SNDBUF before it connects.
    SmallSendBuffer,
    /// The receiver reads at a quarter of the path's rate.
    SlowReader,
    /// The sender writes at a fifth of the path's rate.
    SlowWriter,
    /// Packets are lost at random.
    RandomLoss,
    /// The router holds a few packets.
    SmallRouterBuffer,
    /// Only the path limits.
    CleanPath,
    /// The flow ends after a few segments.
    ShortFlow,
    /// The receiving host is gone from one moment on.
    PeerGone,
    /// It is away for some seconds.
    Outage,
    /// The receiver's acknowledgements pass it and do not reach the sender any more.
    LostAcks,
    /// A request, its answer, the next request.
    PingPong,
    /// A proxy ends the connection and hands the data on to a slow reader.
    Proxy,
    /// A slow reader on the sender's own host, so that a segment holds more than half of a window.
    LoopbackReader,
    /// Requests and answers within a host.
    LoopbackRequests,
    /// Some of the causes above, captured where the network card has not cut segments up yet or has put them together
    /// already.
    Offload,
    /// A shaper on the sender's own device.
    Shaper,
    /// The protocol above TCP has a window of its own.
    WindowAbove,
    /// Two small writes, and a read: the second waits for a delayed acknowledgement.
    Nagle,
    /// Full segments vanish, small ones pass.
    BlackHole,
    /// A slow reader gives buffer back, and its kernel takes back a part of the window.
    ShrunkWindow,
    /// A device changes sequence numbers or strips options; losses limit, or the window that it leaves.
    Middlebox,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 22] = [
        Cause::SmallReceiveBuffer,
        Cause::SmallSendBuffer,
        Cause::SlowReader,
        Cause::SlowWriter,
        Cause::RandomLoss,
        Cause::SmallRouterBuffer,
        Cause::CleanPath,
        Cause::ShortFlow,
        Cause::PeerGone,
        Cause::Outage,
        Cause::LostAcks,
        Cause::PingPong,
        Cause::Proxy,
        Cause::LoopbackReader,
        Cause::LoopbackRequests,
        Cause::Offload,
        Cause::Shaper,
        Cause::WindowAbove,
        Cause::Nagle,
        Cause::BlackHole,
        Cause::ShrunkWindow,
        Cause::Middlebox,
    ];

    /// The correct class; behind offloads, the class of the captured segments.
    pub fn class(self) -> Class {
        match self {
            Cause::SmallReceiveBuffer | Cause::Middlebox => Class::ReceiverWindow,
            Cause::SmallSendBuffer => Class::SenderWindow,
            Cause::SlowReader | Cause::Proxy | Cause::LoopbackReader | Cause::ShrunkWindow => {
                Class::ReceiverApplication
            }
            Cause::SlowWriter
            | Cause::PingPong
            | Cause::LoopbackRequests
            | Cause::WindowAbove
            | Cause::Nagle => Class::Application,
            Cause::RandomLoss | Cause::SmallRouterBuffer => Class::Congestion,
            Cause::CleanPath | Cause::Shaper => Class::Bandwidth,
            Cause::ShortFlow => Class::Opportunity,
            Cause::PeerGone | Cause::Outage | Cause::LostAcks | Cause::BlackHole => Class::Stalled,
            Cause::Offload => Class::Unknown,
        }
    }

    /// Its name in the document and for `--only`.
    pub fn name(self) -> &'static str {
        match self {
            Cause::SmallReceiveBuffer => "small-receive-buffer",
            Cause::SmallSendBuffer => "small-send-buffer",
            Cause::SlowReader => "slow-reader",
            Cause::SlowWriter => "slow-writer",
            Cause::RandomLoss => "random-loss",
            Cause::SmallRouterBuffer => "small-router-buffer",
            Cause::CleanPath => "clean-path",
            Cause::ShortFlow => "short-flow",
            Cause::PeerGone => "peer-gone",
            Cause::Outage => "outage",
            Cause::LostAcks => "lost-acks",
            Cause::PingPong => "ping-pong",
            Cause::Proxy => "proxy",
            Cause::LoopbackReader => "loopback-reader",
            Cause::LoopbackRequests => "loopback-requests",
            Cause::Offload => "offload",
            Cause::Shaper => "shaper",
            Cause::WindowAbove => "window-above",
            Cause::Nagle => "nagle",
            Cause::BlackHole => "black-hole",
            Cause::ShrunkWindow => "shrunk-window",
            Cause::Middlebox => "middlebox",
        }
    }
}

/// The plan of one flow.
#[derive(Debug, Clone)]
pub struct FlowPlan {
    pub name: String,
    pub cause: Cause,
    /// The correct class.
    pub right: Class,
    pub path: PathSpec,
    pub congestion: &'static str,
    pub receive_buffer: Option<Bytes>,
    pub send_buffer: Option<Bytes>,
    /// The receiver reads at this rate at most.
    pub read_at: Option<Rate>,
    /// The sender's pause after each write.
    pub pause: Option<Duration>,
    /// Size of one write.
    pub piece: Bytes,
    /// An end hears nothing for a while.
    pub fault: Option<Fault>,
    /// The receiver's answer to each piece; the sender waits for it.
    pub answer: Option<Bytes>,
    /// The receiver hands the data on to another program of its host, which is the one that reads.
    pub proxy: bool,
    /// The sender switches Nagle's algorithm off.
    pub no_delay: bool,
    /// The sender ends after this many bytes; `None`: when `lasts` is over.
    pub size: Option<Bytes>,
    pub lasts: Duration,
    /// Both ends are on the sender's host.
    pub loopback: bool,
    /// Runs of segments are put together in the captures, as a network card does it.
    pub offload: bool,
    /// The sender's own device sends at this rate at most.
    pub shaped: Option<Rate>,
    /// Both ends offer timestamps.
    pub timestamps: bool,
    /// How the programs talk.
    pub talk: Talk,
    /// The devices in front of the path there and back.
    pub middleboxes: [Middlebox; 2],
    /// The receiving program makes its buffer this small at times, and its kernel takes the window back.
    pub shrinks: Option<Bytes>,
    /// The words that a capture's report must have beside the class.
    pub said: Option<Said>,
}

/// An end of a connection to which no segment comes through.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Since when, from the beginning.
    pub after: Duration,
    /// How long; `None`: to the end.
    pub lasts: Option<Duration>,
    /// The sender hears nothing, or the receiver.
    pub at_sender: bool,
}

/// The causes that are captured behind offloads.
const OFFLOADED: [Cause; 5] = [
    Cause::SmallReceiveBuffer,
    Cause::SmallSendBuffer,
    Cause::SlowReader,
    Cause::RandomLoss,
    Cause::CleanPath,
];

/// The first `flows` of each cause, with the paths and the strengths that follow from `seed`.
pub fn plans(seed: u64, flows: u64) -> Vec<FlowPlan> {
    let all = Cause::ALL.into_iter().flat_map(|cause| (0..flows).map(move |n| (cause, n)));
    all.map(|(cause, n)| plan(cause, n, seed)).collect()
}

/// Flow number `n` of `cause`.
fn plan(cause: Cause, n: u64, seed: u64) -> FlowPlan {
    let mut random = Random::new(seed * 1_000_003 + cause as u64 * 1009 + n);
    let mut plan = drawn(cause, n, &mut random);
    shape(&mut plan, finished(cause, n), &mut random);
    field::shape(&mut plan, cause, n, &mut random);
    plan
}

/// The actual cause simulated for flow number `n` of `cause`.
fn finished(cause: Cause, n: u64) -> Cause {
    match cause {
        Cause::Offload => OFFLOADED[n as usize % OFFLOADED.len()],
        Cause::Middlebox if Meddling::of(n) != Meddling::NoScale => Cause::RandomLoss,
        cause => cause,
    }
}

/// A flow on a path that a flow of a few seconds leaves slow start on (its product is at most 500 kB), and that this
/// machine emulates well.
fn drawn(cause: Cause, n: u64, random: &mut Random) -> FlowPlan {
    let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
    let ([short, long], [small, large]) = field::drawn_from(cause, n);
    let (rate, rtt) = loop {
        let rate = Rate::from_f64(between(8e6, 60e6));
        let rtt = Duration::from_millis(between(short, long) as u64);
        if (small..=large).contains(&(rate * rtt).get()) {
            break (rate, rtt);
        }
    };
    let buffer = Volume::Bytes((rate * rtt).max(Bytes::new(60_000)));
    let direction = DirectionSpec::new(rate, rtt / 2, buffer);
    let mtu = [1500, 1500, 1280, 1500][(random.unit() * 4.0) as usize % 4];
    FlowPlan {
        name: format!(
            "{}-{n:02}-{:.0}Mbit-{}ms",
            cause.name(),
            rate.as_f64() / 1e6,
            rtt.as_micros() / 1000
        ),
        cause,
        right: finished(cause, n).class(),
        path: PathSpec { up: direction, down: direction, mtu: Bytes::new(mtu), seed: n + 1 },
        congestion: {
            // The effect of losses depends on the congestion control: BBR ignores them.
            let lossy = finished(cause, n).class() == Class::Congestion;
            let controls: &[_] = if lossy { &["cubic", "reno"] } else { &["cubic", "reno", "bbr"] };
            controls[(random.unit() * controls.len() as f64) as usize % controls.len()]
        },
        receive_buffer: None,
        send_buffer: None,
        read_at: None,
        pause: None,
        piece: Bytes::new(65_536),
        fault: None,
        answer: None,
        proxy: false,
        no_delay: false,
        size: None,
        lasts: Duration::from_secs(3),
        loopback: false,
        offload: cause == Cause::Offload,
        shaped: None,
        // One host in four or so has none.
        timestamps: random.unit() < 0.75,
        talk: Talk::Plain,
        middleboxes: [Middlebox::default(); 2],
        shrinks: None,
        said: None,
    }
}

/// One of three pauses. Where a round trip and a burst are a multiple of the pause, a program that writes at times and one
/// that waits for acknowledgements look the same.
fn pause_of_writer(round_trip: Duration, first: usize) -> Duration {
    let apart = |pause: &Duration| {
        let phase = round_trip.as_secs_f64() / pause.as_secs_f64() % 1.0;
        (0.05..0.7).contains(&phase)
    };
    let pauses = [19, 60, 210].map(Duration::from_millis);
    let mut drawn = pauses.into_iter().cycle().skip(first).take(pauses.len());
    drawn.find(apart).unwrap_or(pauses[2])
}

/// Gives `plan` the ingredients of `cause`, as strong as `random` draws them.
fn shape(plan: &mut FlowPlan, cause: Cause, random: &mut Random) {
    let strong = random.unit();
    let rate = plan.path.up.rate;
    let bdp = rate * (plan.path.up.delay * 2);
    let third = (strong * 3.0) as usize % 3;
    match cause {
        Cause::SmallReceiveBuffer => plan.receive_buffer = Some(bdp.scaled(0.5 - 0.3 * strong)),
        Cause::SmallSendBuffer => {
            plan.send_buffer = Some(bdp.scaled(0.5 - 0.25 * strong));
            // Linux asks for room only when it needs another buffer: a large write, or small ones
            // that Nagle's algorithm lets it gather, pass the limit.
            (plan.piece, plan.no_delay) = (Bytes::new(4096), true);
        }
        Cause::SlowReader => plan.read_at = Some(rate.scaled(0.3 - 0.2 * strong)),
        Cause::SlowWriter => {
            // A burst takes a fifth of the pause.
            let pause = pause_of_writer(plan.path.up.delay * 2, third);
            (plan.piece, plan.pause) = ((rate * pause).scaled(0.2), Some(pause));
        }
        Cause::RandomLoss => {
            plan.path.up.loss = Probability::new(0.01 + 0.02 * strong).unwrap_or_default();
        }
        Cause::SmallRouterBuffer => {
            plan.path.up.buffer = Volume::Packets([4, 6, 8][third]);
            plan.lasts = Duration::from_secs(4);
        }
        Cause::CleanPath => plan.lasts = Duration::from_secs(4),
        Cause::PeerGone | Cause::Outage | Cause::LostAcks => {
            let after = Duration::from_millis(400 + (600.0 * strong) as u64);
            let lasts = (cause == Cause::Outage).then_some(Duration::from_secs(3));
            plan.fault = Some(Fault { after, lasts, at_sender: cause == Cause::LostAcks });
            plan.lasts = Duration::from_secs(6);
        }
        Cause::PingPong => {
            (plan.piece, plan.no_delay) = (Bytes::new([300, 1200, 8000][third]), true);
            plan.answer = Some(Bytes::new([200, 100, 2000][third]));
        }
        Cause::Proxy => {
            plan.read_at = Some(rate.scaled(0.3 - 0.2 * strong));
            plan.proxy = true;
            plan.lasts = Duration::from_secs(6);
        }
        Cause::ShortFlow => plan.size = Some(Bytes::new([5_000, 20_000, 60_000][third])),
        Cause::LoopbackReader => {
            plan.loopback = true;
            // A segment of loopback holds 65,483 bytes.
            plan.receive_buffer = Some(Bytes::new(90_000 + (100_000.0 * strong) as u64));
            plan.read_at = Some(Rate::from_mbit_per_second(20 + (60.0 * strong) as u64));
        }
        Cause::LoopbackRequests => {
            plan.loopback = true;
            (plan.piece, plan.no_delay) = (Bytes::new([300, 8000, 100_000][third]), true);
            plan.answer = Some(Bytes::new([200, 2000, 500][third]));
            // A program works on an answer before it asks again.
            plan.pause = Some(Duration::from_millis([2, 5, 11][third]));
        }
        Cause::Shaper => plan.shaped = Some(rate.scaled(0.7 - 0.4 * strong)),
        Cause::Offload
        | Cause::WindowAbove
        | Cause::Nagle
        | Cause::BlackHole
        | Cause::ShrunkWindow
        | Cause::Middlebox => {}
    }
}
