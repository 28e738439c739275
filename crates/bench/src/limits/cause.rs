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
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 8] = [
        Cause::SmallReceiveBuffer,
        Cause::SmallSendBuffer,
        Cause::SlowReader,
        Cause::SlowWriter,
        Cause::RandomLoss,
        Cause::SmallRouterBuffer,
        Cause::CleanPath,
        Cause::ShortFlow,
    ];

    /// The correct class.
    pub fn class(self) -> Class {
        match self {
            Cause::SmallReceiveBuffer => Class::ReceiverWindow,
            Cause::SmallSendBuffer => Class::SenderWindow,
            Cause::SlowReader => Class::ReceiverApplication,
            Cause::SlowWriter => Class::Application,
            Cause::RandomLoss | Cause::SmallRouterBuffer => Class::Congestion,
            Cause::CleanPath => Class::Bandwidth,
            Cause::ShortFlow => Class::Opportunity,
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
    /// The sender switches Nagle's algorithm off.
    pub no_delay: bool,
    /// The sender ends after this many bytes; `None`: when `lasts` is over.
    pub size: Option<Bytes>,
    pub lasts: Duration,
}

/// A path's rate and round trip: Mbit/s, ms. The products, from 25 to 500 kB, are such that a
/// flow of a few seconds leaves slow start, and that this machine emulates them well.
const PATHS: [(u64, u64); 8] =
    [(20, 20), (50, 20), (10, 40), (20, 40), (50, 40), (10, 80), (20, 80), (50, 80)];

/// A hundred flows: thirteen of each of the first four causes, twelve of the others.
pub fn plans() -> Vec<FlowPlan> {
    let count = |cause: Cause| if cause as usize <= Cause::SlowWriter as usize { 13 } else { 12 };
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
        Cause::ShortFlow => plan.size = Some(Bytes::new([5_000, 20_000, 60_000][strong])),
    }
    plan
}
