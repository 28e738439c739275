use serde::{Deserialize, Serialize};
use sweetspot_sizing::{CongestionChoice, KnownPath};
use sweetspot_units::{Duration, Rate};
use thiserror::Error;

use super::frame;
use crate::outcome::{Probes, RttSource};

/// What the two ends say to each other, as JSON: a handful per transfer, a few per second while
/// steering. Units stand in the names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Message {
    /// Sender: who I am and what I bring.
    Hello(Hello),
    /// Receiver: come in.
    Accept(Accept),
    /// Receiver: no, because.
    Refuse {
        /// One line for the person at the other end.
        reason: String,
    },
    /// Receiver: how to send, and the window I am about to advertise.
    Steer {
        /// Pace payload at this rate, bits per second; nothing: as you like.
        pacing_bps: Option<u64>,
        /// Have room for this many bytes of payload in flight; nothing: as you like.
        window: Option<u64>,
        /// Use this congestion control, where nobody chose another and the kernel has it.
        congestion: CongestionMessage,
        /// Where the controller stands, for people.
        phase: String,
    },
    /// Receiver: send one packet train.
    Train {
        /// Told apart by.
        id: u32,
        /// Packets.
        packets: u32,
        /// UDP payload of each.
        payload_bytes: u32,
    },
    /// Sender: that was all.
    End {
        /// BLAKE3 of the content, hexadecimal.
        hash: String,
    },
    /// Receiver: still writing to disk; I am alive.
    Busy,
    /// Receiver: the content is whole and has its name.
    ReceiverSummary(ReceiverSummary),
    /// Sender: what I counted.
    SenderSummary(SenderSummary),
    /// Either: it went wrong here.
    Failed {
        /// One line for the person at the other end.
        reason: String,
    },
}

/// The sender's hello.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`super::VERSION`].
    pub version: u32,
    /// Proof of the ticket.
    pub proof: String,
    /// The file's name.
    pub name: String,
    /// The file's length in bytes.
    pub size: u64,
    /// Sizing asked for, if any.
    pub sizing: Option<String>,
    /// Congestion control already chosen at the sender, if any.
    pub congestion: Option<String>,
    /// The path, where the sender was told it.
    pub path: Option<KnownPathMessage>,
    /// Whether the sender will answer probes.
    pub probes: bool,
}

/// [`KnownPath`] in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPathMessage {
    /// Bottleneck rate, bits per second.
    pub rate_bps: u64,
    /// Round-trip propagation, nanoseconds.
    pub rtt_ns: u64,
}

/// [`CongestionChoice`] in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionMessage {
    /// The one the transfer was begun with.
    Own,
    /// Reno's.
    Reno,
    /// BBR.
    Bbr,
}

/// The receiver's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accept {
    /// Proof of the ticket.
    pub proof: String,
    /// The sizing that rules.
    pub sizing: String,
    /// Congestion control that the sender is to use, if the receiver cares.
    pub congestion: Option<String>,
    /// Whether the receiver will probe.
    pub probes: bool,
}

/// The receiver's last word, with what it measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiverSummary {
    /// BLAKE3 of what was written, hexadecimal; equal to the sender's.
    pub hash: String,
    /// Least, median and 99th percentile of the round-trip times, seconds.
    pub rtt_s: Option<[f64; 3]>,
    /// Who measured them.
    pub rtt_source: RttSource,
    /// What became of the probes.
    pub probes: Probes,
    /// The last window advertised while content flowed.
    pub window_final_bytes: Option<u64>,
    /// How the window was steered.
    pub clamp_method: Option<String>,
    /// Limits of the receiving host that were in the way.
    pub limits: Vec<String>,
}

/// The sender's last word, with what it counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderSummary {
    /// Congestion control really used.
    pub congestion: String,
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Segments retransmitted.
    pub retransmitted_segments: u64,
    /// Limits of the sending host that were in the way.
    pub limits: Vec<String>,
}

/// Bytes that are no message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a message that makes no sense ({0})")]
pub struct MessageError(String);

impl Message {
    /// The whole frame that carries it.
    pub fn to_frame(&self) -> Vec<u8> {
        // No message holds a map with keys that are not strings, so none can fail to print.
        frame::message(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads the body of a message frame.
    pub fn read(body: &[u8]) -> Result<Message, MessageError> {
        serde_json::from_slice(body).map_err(|e| MessageError(e.to_string()))
    }

    /// What kind of message it is, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Message::Hello(_) => "hello",
            Message::Accept(_) => "accept",
            Message::Refuse { .. } => "refuse",
            Message::Steer { .. } => "steer",
            Message::Train { .. } => "train",
            Message::End { .. } => "end",
            Message::Busy => "busy",
            Message::ReceiverSummary(_) => "summary",
            Message::SenderSummary(_) => "closing",
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
    fn a_message_is_read_back_as_sent() {
        let steer = Message::Steer {
            pacing_bps: Some(95_000_000),
            window: None,
            congestion: CongestionMessage::Reno,
            phase: "ramping".into(),
        };
        let frame = steer.to_frame();
        assert_eq!(Message::read(&frame[frame::HEADER..]), Ok(steer));
    }

    #[test]
    fn a_message_of_nested_brackets_does_not_exhaust_the_stack() {
        let deep = "[".repeat(frame::LONGEST_MESSAGE as usize);
        assert!(Message::read(deep.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_and_never_a_panic(body in proptest::collection::vec(any::<u8>(), 0..500)) {
            let _ = Message::read(&body);
        }
    }
}
