//! The causes, and the ingredients of a flow of each.

use serde::{Deserialize, Serialize};
use sweetspot_diagnose::Class;
use sweetspot_emulator::Middlebox;
use sweetspot_path::PathSpec;
use sweetspot_units::{Bytes, Duration, Rate};

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

/// How the two programs talk.
#[derive(Debug, Clone, Copy)]
pub enum Talk {
    /// The sender writes, and waits for an answer where the plan has one.
    Plain,
    /// The sender has at most `window` bytes under way until the receiver grants more with a message, each time it has read
    /// `grant` bytes.
    Granted { window: Bytes, grant: Bytes },
    /// The first `head` bytes of each piece are a write of their own.
    TwoWrites { head: Bytes },
    /// Some small messages before the large pieces.
    SmallFirst { messages: u64, size: Bytes, pause: Duration },
}

/// Words that a capture's report must have beside the class.
#[derive(Debug, Clone, Copy)]
pub struct Said {
    /// Part of the verdict or of a remark.
    pub words: &'static str,
    /// Whether the receiver's capture shows it, too.
    pub at_receiver: bool,
}
