use serde::{Deserialize, Serialize};
use sweetspot_diagnose::Class;
use sweetspot_path::{DirectionSpec, PathSpec};
use sweetspot_units::{Bytes, Duration, Probability, Rate, Volume};

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
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 13] = [
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
    ];

    /// The correct class.
    pub fn class(self) -> Class {
        match self {
            Cause::SmallReceiveBuffer => Class::ReceiverWindow,
            Cause::SmallSendBuffer => Class::SenderWindow,
            Cause::SlowReader | Cause::Proxy => Class::ReceiverApplication,
            Cause::SlowWriter | Cause::PingPong => Class::Application,
            Cause::RandomLoss | Cause::SmallRouterBuffer => Class::Congestion,
            Cause::CleanPath => Class::Bandwidth,
            Cause::ShortFlow => Class::Opportunity,
            Cause::PeerGone | Cause::Outage | Cause::LostAcks => Class::Stalled,
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
        }
    }
}

/// The plan of one flow.
#[derive(Debug, Clone)]
pub struct FlowPlan {
    pub name: String,
    pub cause: Cause,
    pub path: PathSpec,
    pub congestion: &'static str,
    pub receive_buffer: Option<Bytes>,
    pub send_buffer: Option<Bytes>,
    /// The receiver reads at this rate at most.
    pub read_at: Option<Rate>,
    /// The sender pauses so long after each write.
    pub pause: Option<Duration>,
    /// Size of one write.
    pub piece: Bytes,
    /// An end hears nothing for a while.
    pub fault: Option<Fault>,
    /// The receiver answers each piece with so many bytes, and the sender waits for that.
    pub answer: Option<Bytes>,
    /// The receiver hands the data on to another program of its host, which is the one that reads.
    pub proxy: bool,
    /// The sender switches Nagle's algorithm off.
    pub no_delay: bool,
    /// The sender ends after this many bytes; `None`: when `lasts` is over.
    pub size: Option<Bytes>,
    pub lasts: Duration,
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

/// A path's rate and round trip: Mbit/s, ms. The products, from 25 to 500 kB, are such that a
/// flow of a few seconds leaves slow start, and that this machine emulates them well.
const PATHS: [(u64, u64); 8] =
    [(20, 20), (50, 20), (10, 40), (20, 40), (50, 40), (10, 80), (20, 80), (50, 80)];

/// Two hundred flows: thirteen of each of the first four causes, twelve of the next four, twenty of
/// each of the others.
pub fn plans() -> Vec<FlowPlan> {
    let count = |cause: Cause| match cause {
        _ if cause <= Cause::SlowWriter => 13,
        _ if cause <= Cause::ShortFlow => 12,
        _ => 20,
    };
    let all = Cause::ALL.into_iter().flat_map(|cause| (0..count(cause)).map(move |n| (cause, n)));
    all.map(|(cause, n)| plan(cause, n)).collect()
}

/// Flow number `n` of `cause`.
fn plan(cause: Cause, n: usize) -> FlowPlan {
    let (mbit, ms) = PATHS[n % PATHS.len()];
    let (rate, rtt) = (Rate::from_mbit_per_second(mbit), Duration::from_millis(ms));
    let bdp = rate * rtt;
    let buffer = Volume::Bytes(bdp.max(Bytes::new(60_000)));
    let direction = DirectionSpec::new(rate, rtt / 2, buffer);
    let mut plan = FlowPlan {
        name: format!("{}-{n:02}-{mbit}Mbit-{ms}ms", cause.name()),
        cause,
        path: PathSpec {
            up: direction,
            down: direction,
            mtu: Bytes::new(1500),
            seed: n as u64 + 1,
        },
        congestion: ["cubic", "reno"][n / 2 % 2],
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
    };
    // How strong the cause is varies with n, too.
    let strong = n % 3;
    match cause {
        Cause::SmallReceiveBuffer => {
            plan.receive_buffer = Some(bdp.scaled([0.5, 0.35, 0.2][strong]))
        }
        Cause::SmallSendBuffer => {
            plan.send_buffer = Some(bdp.scaled([0.5, 0.35, 0.25][strong]));
            // Linux asks for room only when it needs another buffer: a large write, or small ones
            // that Nagle's algorithm lets it gather, pass the limit.
            (plan.piece, plan.no_delay) = (Bytes::new(4096), true);
        }
        Cause::SlowReader => plan.read_at = Some(rate.scaled([0.3, 0.2, 0.1][strong])),
        Cause::SlowWriter => {
            // No multiple of these is a round trip and a burst: then a program that writes at times
            // and one that waits for acknowledgements look the same.
            let pause = Duration::from_millis([19, 60, 210][strong]);
            (plan.piece, plan.pause) = ((rate * pause).scaled(0.2), Some(pause));
        }
        Cause::RandomLoss => {
            plan.path.up.loss = Probability::new([0.01, 0.02, 0.03][strong]).unwrap_or_default();
        }
        Cause::SmallRouterBuffer => {
            plan.path.up.buffer = Volume::Packets([4, 6, 8][strong]);
            plan.lasts = Duration::from_secs(4);
        }
        Cause::CleanPath => plan.lasts = Duration::from_secs(4),
        Cause::PeerGone | Cause::Outage | Cause::LostAcks => {
            let after = Duration::from_millis([400, 700, 1000][strong]);
            let lasts = (cause == Cause::Outage).then_some(Duration::from_secs(3));
            plan.fault = Some(Fault { after, lasts, at_sender: cause == Cause::LostAcks });
            plan.lasts = Duration::from_secs(6);
        }
        Cause::PingPong => {
            (plan.piece, plan.no_delay) = (Bytes::new([300, 1200, 8000][strong]), true);
            plan.answer = Some(Bytes::new([200, 100, 2000][strong]));
        }
        Cause::Proxy => {
            plan.read_at = Some(rate.scaled([0.3, 0.2, 0.1][strong]));
            plan.proxy = true;
            plan.lasts = Duration::from_secs(6);
        }
        Cause::ShortFlow => plan.size = Some(Bytes::new([5_000, 20_000, 60_000][strong])),
    }
    plan
}
