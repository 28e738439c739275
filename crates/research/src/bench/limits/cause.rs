//! Causes of a limited flow, and the parameters that produce each.

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
    /// Only the path limits the flow.
    CleanPath,
    /// The flow ends after a few segments.
    ShortFlow,
    /// The receiving host disappears at some point.
    PeerGone,
    /// The receiving host is unreachable for some seconds.
    Outage,
    /// The receiver's ACKs leave it but no longer reach the sender.
    LostAcks,
    /// Requests and responses alternate.
    PingPong,
    /// A proxy terminates the connection and forwards the data to a slow reader.
    Proxy,
    /// A slow reader on the sender's own host, where one segment holds more than half of a window.
    LoopbackReader,
    /// Requests and responses within one host.
    LoopbackRequests,
    /// Some of the causes above, captured where the network card has not yet split segments or has already merged them.
    Offload,
    /// A shaper on the sender's own device limits the rate.
    Shaper,
    /// The protocol above TCP has its own window.
    WindowAbove,
    /// Two small writes, then a read: the second write waits for a delayed ACK.
    Nagle,
    /// Full segments are lost, small ones pass.
    BlackHole,
    /// A slow reader shrinks its buffer, and its kernel takes back part of the window.
    ShrunkWindow,
    /// A middlebox changes sequence numbers or strips options; losses or the remaining window limit the flow.
    Middlebox,
}

impl Cause {
    /// All causes.
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

    /// The correct class; with offloads, the class of the captured segments.
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
    /// The receiver's maximum read rate.
    pub read_at: Option<Rate>,
    /// The sender's pause after each write.
    pub pause: Option<Duration>,
    /// Size of one write.
    pub piece: Bytes,
    /// A period in which one end receives nothing.
    pub fault: Option<Fault>,
    /// The size of the receiver's response to each piece, for which the sender waits.
    pub answer: Option<Bytes>,
    /// The receiver forwards the data to another program on its host, which reads it at its own rate.
    pub proxy: bool,
    /// The sender turns off Nagle's algorithm.
    pub no_delay: bool,
    /// The sender stops after this many bytes; `None` if it stops after `lasts`.
    pub size: Option<Bytes>,
    pub lasts: Duration,
    /// Both ends are on the same host.
    pub loopback: bool,
    /// Runs of segments are merged in the captures, as by a network card.
    pub offload: bool,
    /// The rate to which the sender's own device is shaped.
    pub shaped: Option<Rate>,
    /// Both ends offer timestamps.
    pub timestamps: bool,
    /// How the two programs exchange data.
    pub talk: ExchangePattern,
    /// The middleboxes at the entrance of the path, forward and reverse.
    pub middleboxes: [Middlebox; 2],
    /// The receiving program repeatedly shrinks its buffer to this size, and its kernel takes the window back.
    pub shrinks: Option<Bytes>,
    /// The words that the report on a capture must contain, besides the class.
    pub expected_words: Option<ExpectedWords>,
}

/// A fault: one end of a connection receives no segments.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Start of the fault, relative to the start of the flow.
    pub after: Duration,
    /// Duration of the fault; `None` until the end of the flow.
    pub lasts: Option<Duration>,
    /// Whether the sender, rather than the receiver, receives nothing.
    pub at_sender: bool,
}

/// How the two programs exchange data.
#[derive(Debug, Clone, Copy)]
pub enum ExchangePattern {
    /// The sender writes, and waits for a response if the plan has one.
    Plain,
    /// The sender keeps at most `window` bytes outstanding until the receiver grants more, with a message after each
    /// `grant` bytes read.
    Granted { window: Bytes, grant: Bytes },
    /// The first `head` bytes of each piece are written separately.
    TwoWrites { head: Bytes },
    /// Some small messages precede the large pieces.
    SmallFirst { messages: u64, size: Bytes, pause: Duration },
}

/// Words that the report on a capture must contain, besides the class.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedWords {
    /// Part of the verdict or of a remark.
    pub words: &'static str,
    /// Whether the receiver's capture shows them, too.
    pub at_receiver: bool,
}
