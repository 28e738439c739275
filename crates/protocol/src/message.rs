use serde::{Deserialize, Serialize};
use sweetspot_sizing::{CongestionChoice, KnownPath};
use sweetspot_units::{Duration, Rate};
use thiserror::Error;

use crate::frame;
use crate::measure_message::MeasureMessage;
use crate::peer_text::PeerText;
use crate::record::Owner;
use crate::{ProbeSummary, Role, RttSource};

/// The maximum number of connections of one transfer.
pub const MAX_STREAMS: u32 = 64;

/// The messages of the protocol, as JSON: a few per transfer, and a few per second while the receiver controls the sender. The
/// keys contain the units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Message {
    /// Either end, before the hello of a peer with a code: its element of SPAKE2 (RFC 9382).
    Pake {
        /// Number of the code.
        code: u32,
        /// The element, in hexadecimal.
        element: PeerText,
    },
    /// Connecting end: its proof, and the connection's transfer.
    Hello(Hello),
    /// Listener: its proof. The hello is accepted.
    Welcome {
        /// Proof of the ticket's secret, in hexadecimal (see [`crate::Session`]).
        proof: PeerText,
        /// Content that this end accepts as receiver before it has answered, bytes. Older peers accept none.
        #[serde(default)]
        early_bytes: u32,
        /// Whether its key is lost when its program ends, so that nobody can reconnect once its port refuses connections. Older
        /// peers do not report this.
        #[serde(default)]
        ends_with_program: bool,
    },
    /// Sender: its files, and its capabilities.
    Offer(Offer),
    /// Receiver: the transfer is accepted.
    Accept(Accept),
    /// Either end, before the transfer is accepted: it is refused.
    Refuse {
        /// The reason, in one line for the user at the other end.
        reason: PeerText,
    },
    /// Receiver: how to send, and the window that it is about to advertise, for all connections together.
    Steer {
        /// The rate at which to pace payload, bits per second; `None`: no limit.
        pacing_bps: Option<u64>,
        /// The payload that may be in flight, bytes, which the send buffer must hold; `None`: unknown.
        window: Option<u64>,
        /// The congestion control to use, unless the user chose another or the kernel lacks it.
        congestion: CongestionMessage,
        /// The controller's phase, for display.
        phase: PeerText,
    },
    /// Receiver: send one packet train.
    Train {
        /// The train's number.
        id: u32,
        /// Number of packets.
        packets: u32,
        /// UDP payload of each packet, bytes.
        payload_bytes: u32,
    },
    /// Receiver: use this number of connections for content from now on, at most [`MAX_STREAMS`]. The end that connected first
    /// opens further connections.
    Streams {
        /// Total number of connections.
        count: u32,
    },
    /// Sender: its host limits it in a way that more connections would remedy.
    SenderLimit {
        /// The limit.
        by: SenderLimit,
        /// The rate that the limit allows per connection, bits per second, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        each_bps: Option<u64>,
    },
    /// Sender: everything that was requested was sent.
    End,
    /// Either end: it is busy with its disk. This message prevents a timeout of the connection.
    Busy,
    /// Receiver: the content is verified and has its final names.
    ReceiverSummary(ReceiverSummary),
    /// Sender: its counts.
    SenderSummary(SenderSummary),
    /// On a connection that measures the path: a command, or its result.
    Measure(MeasureMessage),
    /// Either end: the transfer failed.
    Failed {
        /// The reason, in one line for the user at the other end.
        reason: PeerText,
    },
}

/// The limit of a sender on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SenderLimit {
    /// The kernel lacks the congestion control that the receiver requested, and losses hold down the current one.
    Congestion,
    /// Losses without a queue hold down its congestion control.
    Losses,
    /// The send buffer is as large as the host allows, and full.
    SendBuffer,
}

/// The connecting end's first message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol's version, [`crate::VERSION`].
    pub version: u32,
    /// Proof of the ticket's secret, in hexadecimal (see [`crate::Session`]).
    pub proof: PeerText,
    /// Whether it sends or receives. Versions before 4 omit this; they only sent.
    #[serde(default = "sender")]
    pub role: Role,
    /// The transfer, 16 random bytes in hexadecimal: the same on all of its connections, and after a reconnection.
    #[serde(default)]
    pub transfer: PeerText,
    /// Whether this is a further connection of a running transfer.
    #[serde(default)]
    pub joins: bool,
    /// Whether it only measures the path, whatever its role.
    #[serde(default)]
    pub measures: bool,
    /// Content that this end accepts as receiver before it has answered, bytes. Older peers accept none.
    #[serde(default)]
    pub early_bytes: u32,
}

fn sender() -> Role {
    Role::Sender
}

/// The files that a sender offers, and its capabilities.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// A name for the transfer: the file's or directory's name, or the number of entries.
    pub name: PeerText,
    /// The content's length in bytes, if it is one file.
    pub size: Option<u64>,
    /// Whether it is one file, or standard input.
    pub one_file: bool,
    /// Whether several entries are at the top level: several sources, or the contents of a directory.
    pub many: bool,
    /// Whether existing files with the same length and time are compared by content.
    pub checksum: bool,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// The sizing that the sender requests, if any.
    pub sizing: Option<PeerText>,
    /// The congestion control that the sender's user chose, if any.
    pub congestion: Option<PeerText>,
    /// The path's rate and RTT, if the sender's user gave them.
    pub path: Option<KnownPathMessage>,
    /// Whether the sender will answer probes.
    pub probes: bool,
    /// The number of connections that the sender's user chose, if any.
    pub streams: Option<u32>,
    /// Whether several connections may together use more than one flow's fair share.
    pub greedy: bool,
    /// Whether the entries include all extended attributes of their files, so that any others do not belong to them.
    pub attributes: bool,
    /// The first directory sent as its contents, for the attributes of the target directory. Older peers do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents_of: Option<DirectoryStatus>,
}

/// The attributes of a directory that is not itself an entry, because its contents are at the top level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryStatus {
    /// The permission bits (0o777).
    pub mode: u32,
    /// Modification time: seconds since 1970, and nanoseconds of the second.
    pub modified: (i64, u32),
    /// Its owner, if owners were requested.
    pub owner: Option<Owner>,
}

/// [`KnownPath`] as a message carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPathMessage {
    /// Bottleneck rate, bits per second.
    pub rate_bps: u64,
    /// Round-trip propagation delay, nanoseconds.
    pub rtt_ns: u64,
}

/// [`CongestionChoice`] as a message carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionMessage {
    /// The congestion control with which the transfer began.
    Own,
    /// Reno.
    Reno,
    /// BBR.
    Bbr,
}

/// The receiver's answer to an [`Offer`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accept {
    /// The sizing in use.
    pub sizing: PeerText,
    /// The congestion control that the sender must use, if the receiver's user chose one.
    pub congestion: Option<PeerText>,
    /// Whether the receiver will probe.
    pub probes: bool,
}

/// The receiver's last message: its counts and measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiverSummary {
    /// BLAKE3 of the written content, hexadecimal, if it is one file. Equal to the sender's hash.
    pub hash: Option<PeerText>,
    /// The number of files by result.
    pub files: FileCounts,
    /// Bytes of content that arrived.
    pub content_bytes: u64,
    /// Bytes of these files that an interrupted transfer had already received.
    #[serde(default)]
    pub resumed_bytes: u64,
    /// The maximum number of connections used at once.
    pub streams: u32,
    /// Minimum, median and 99th percentile of the round-trip times, seconds.
    pub rtt_s: Option<[f64; 3]>,
    /// The source of the round-trip times.
    pub rtt_source: RttSource,
    /// The number of probes sent, answered and lost.
    pub probes: ProbeSummary,
    /// The last window advertised while content was in flight, over all connections, bytes.
    pub window_final_bytes: Option<u64>,
    /// How the window was limited; `None` if it was left to the kernel.
    pub clamp_method: Option<PeerText>,
    /// Limits of the receiving host that held the transfer back.
    pub limits: Vec<PeerText>,
}

/// Counts of a transfer's files by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCounts {
    /// Files that were written.
    pub written: u64,
    /// Files that already existed with the same content and attributes.
    pub unchanged: u64,
    /// Files, directories and links with the same content but another mode, owner, time or other extended attributes, which the
    /// receiver updated.
    #[serde(default)]
    pub updated: u64,
    /// Entries of any kind that were rejected or failed.
    pub failed: u64,
    /// Files, directories and links that the receiver deleted, because the sender does not have them.
    #[serde(default)]
    pub deleted: u64,
}

impl FileCounts {
    /// The number of files at the receiver that equal the sender's.
    pub fn present(&self) -> u64 {
        self.written + self.unchanged + self.updated
    }
}

/// The sender's last message: its counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderSummary {
    /// The congestion control that was in use, read back from the socket.
    pub congestion: PeerText,
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Segments retransmitted.
    pub retransmitted_segments: u64,
    /// Limits of the sending host that held the transfer back.
    pub limits: Vec<PeerText>,
    /// Bytes of content saved by compression.
    #[serde(default)]
    pub saved_bytes: u64,
    /// Entries that the sender could not send and did not list.
    #[serde(default)]
    pub unlisted: u64,
}

/// The body of a frame is not a message. Holds the JSON reader's reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("an invalid message ({0})")]
pub struct MessageError(PeerText);

impl Message {
    /// The frame that carries this message.
    pub fn to_frame(&self) -> Vec<u8> {
        // No message has a map with keys that are not text, so serialisation cannot fail.
        frame::message(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Parses a message from the body of its frame.
    pub fn read(body: &[u8]) -> Result<Message, MessageError> {
        serde_json::from_slice(body).map_err(|e| MessageError(e.to_string().into()))
    }

    /// The kind of message in one word, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Message::Pake { .. } => "pake",
            Message::Hello(_) => "hello",
            Message::Welcome { .. } => "welcome",
            Message::Offer(_) => "offer",
            Message::Accept(_) => "accept",
            Message::Refuse { .. } => "refuse",
            Message::Steer { .. } => "steer",
            Message::Train { .. } => "train",
            Message::Streams { .. } => "streams",
            Message::SenderLimit { .. } => "its limit",
            Message::End => "end",
            Message::Busy => "busy",
            Message::ReceiverSummary(_) => "summary",
            Message::SenderSummary(_) => "closing",
            Message::Measure(_) => "a measurement",
            Message::Failed { .. } => "failed",
        }
    }
}

impl From<KnownPath> for KnownPathMessage {
    fn from(path: KnownPath) -> KnownPathMessage {
        KnownPathMessage { rate_bps: path.rate.bits_per_second(), rtt_ns: path.rtt.as_nanos() }
    }
}

impl From<KnownPathMessage> for KnownPath {
    fn from(path: KnownPathMessage) -> KnownPath {
        KnownPath::new(Rate::from_bits_per_second(path.rate_bps), Duration::from_nanos(path.rtt_ns))
    }
}

impl From<CongestionChoice> for CongestionMessage {
    fn from(choice: CongestionChoice) -> CongestionMessage {
        match choice {
            CongestionChoice::Own => CongestionMessage::Own,
            CongestionChoice::Reno => CongestionMessage::Reno,
            CongestionChoice::Bbr => CongestionMessage::Bbr,
        }
    }
}

impl From<CongestionMessage> for CongestionChoice {
    fn from(choice: CongestionMessage) -> CongestionChoice {
        match choice {
            CongestionMessage::Own => CongestionChoice::Own,
            CongestionMessage::Reno => CongestionChoice::Reno,
            CongestionMessage::Bbr => CongestionChoice::Bbr,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_decodes_as_sent() {
        let steer = Message::Steer {
            pacing_bps: Some(95_000_000),
            window: None,
            congestion: CongestionMessage::Reno,
            phase: "ramping".into(),
        };
        let frame = steer.to_frame();
        assert_eq!(Message::read(&frame[frame::FRAME_HEADER_BYTES..]), Ok(steer));
    }

    #[test]
    fn a_peer_without_early_content_support_accepts_none() {
        let welcome = Message::read(br#"{"is":"welcome","proof":"00"}"#);
        let expected =
            Message::Welcome { proof: "00".into(), early_bytes: 0, ends_with_program: false };
        assert_eq!(welcome, Ok(expected));
        let hello = Message::read(br#"{"is":"hello","version":5,"proof":"00","role":"receiver"}"#);
        assert!(matches!(hello, Ok(Message::Hello(Hello { early_bytes: 0, .. }))), "{hello:?}");
        let later = Message::read(br#"{"is":"welcome","proof":"00","later":1}"#);
        assert_eq!(later, welcome, "fields of later versions are passed over");
    }

    #[test]
    fn directory_attributes_are_compatible_with_older_peers() {
        let told = |contents_of| {
            let offer = Message::Offer(Offer { contents_of, ..Offer::default() });
            serde_json::to_string(&offer).unwrap()
        };
        let older = told(None);
        assert!(!older.contains("contents_of"), "{older}");
        assert_eq!(Message::read(older.as_bytes()), Ok(Message::Offer(Offer::default())));
        let owner = Owner { user: 7, group: 8, user_name: "ann".into(), group_name: "x".into() };
        let status = DirectoryStatus { mode: 0o750, modified: (-1, 999), owner: Some(owner) };
        let offer = Offer { contents_of: Some(status.clone()), ..Offer::default() };
        let read = Message::read(told(Some(status)).as_bytes());
        assert_eq!(read, Ok(Message::Offer(offer)));
    }

    #[test]
    fn deeply_nested_brackets_do_not_exhaust_the_stack() {
        let deep = "[".repeat(frame::MAX_MESSAGE_BYTES as usize);
        assert!(Message::read(deep.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn garbage_causes_no_panic(body in proptest::collection::vec(any::<u8>(), 0..500)) {
            let _ = Message::read(&body);
        }
    }
}
