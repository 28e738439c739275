use sweetspot_sizing::{CongestionChoice, ProbeAnswer, TrainPacket};
use sweetspot_units::{Duration, Rate, Time};

use super::answer::{put_answer, take_answer};
use super::words::{put_long, put_word, take_long, take_word};

/// An out-of-band packet: one byte for the kind, four bytes for the connection number, the fields, zeros up
/// to the requested size, and a keyed BLAKE3 over all of these, truncated to 10 bytes. Numbers are
/// big-endian.
///
/// An answer carries its numbers in two or three bytes each: times in microseconds, rates in bits per second,
/// counters and sizes. Two bytes round down to within 1/2000. Counters observed for growth take three bytes,
/// which round down to within a millionth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbePacket {
    /// Sender to receiver: shows the sender's UDP address, and opens address translators on the way.
    Punch {
        /// Increases with each packet, so that replayed packets are detected.
        sequence: u32,
    },
    /// Receiver to sender: requests an answer.
    Probe {
        /// The probe's number, from 0.
        sequence: u32,
    },
    /// Sender to receiver, never longer than the probe.
    Answer(ProbeAnswer),
    /// Sender to receiver, in a burst.
    Train(TrainPacket),
    /// Either direction on a connection that measures: a packet of a stream.
    Stream(StreamPacket),
    /// From the measuring end: requests an immediate reply.
    Echo {
        /// The echo's number, from 0.
        sequence: u32,
    },
    /// The reply to an echo, no longer than the echo.
    Reflected {
        /// The echo's number.
        sequence: u32,
        /// Arrival time at the far end, on its clock.
        received: Time,
        /// Time for which the far end held it.
        held: Duration,
    },
    /// Receiver to sender, without another channel: requests a train.
    TrainRequest {
        /// The train's number. Each train is sent once.
        train: u32,
        /// Number of packets.
        packets: u32,
        /// UDP payload of each packet.
        payload: u32,
    },
    /// Receiver to sender, without another channel: how to send from now on.
    Steer {
        /// Increases with every change.
        sequence: u32,
        /// How to send.
        steering: Steering,
    },
}

/// A receiver's request to its sender about how to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steering {
    /// The pacing rate of its payload; `None`: no pacing.
    pub pacing: Option<Rate>,
    /// The congestion control.
    pub congestion: CongestionChoice,
}

/// A packet of a stream that measures a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamPacket {
    /// The stream's number.
    pub stream: u32,
    /// The packet's position in the stream, from 0.
    pub index: u32,
    /// Sending time, on the sender's clock.
    pub sent: Time,
}

const PUNCH_KIND: u8 = 1;
const PROBE_KIND: u8 = 2;
const ANSWER_KIND: u8 = 3;
const TRAIN_KIND: u8 = 4;
const STREAM_KIND: u8 = 5;
const ECHO_KIND: u8 = 6;
const REFLECTED_KIND: u8 = 7;
const TRAIN_REQUEST_KIND: u8 = 8;
const STEER_KIND: u8 = 9;
/// The longest fields, which are an answer's: two words, four long numbers, eight short ones, the flags.
pub(super) const MAX_FIELD_BYTES: usize = 2 * 4 + 4 * 3 + 8 * 2 + 1;

impl ProbePacket {
    pub(super) fn kind(&self) -> u8 {
        match self {
            ProbePacket::Punch { .. } => PUNCH_KIND,
            ProbePacket::Probe { .. } => PROBE_KIND,
            ProbePacket::Answer(_) => ANSWER_KIND,
            ProbePacket::Train(_) => TRAIN_KIND,
            ProbePacket::Stream(_) => STREAM_KIND,
            ProbePacket::Echo { .. } => ECHO_KIND,
            ProbePacket::Reflected { .. } => REFLECTED_KIND,
            ProbePacket::TrainRequest { .. } => TRAIN_REQUEST_KIND,
            ProbePacket::Steer { .. } => STEER_KIND,
        }
    }

    pub(super) fn put_fields(&self, out: &mut Vec<u8>) {
        match self {
            ProbePacket::Punch { sequence }
            | ProbePacket::Probe { sequence }
            | ProbePacket::Echo { sequence } => put_word(out, *sequence),
            ProbePacket::Answer(answer) => put_answer(out, answer),
            ProbePacket::Train(train) => {
                put_word(out, train.train);
                put_word(out, train.index);
            }
            ProbePacket::Stream(packet) => {
                put_word(out, packet.stream);
                put_word(out, packet.index);
                put_long(out, packet.sent.as_nanos());
            }
            ProbePacket::Reflected { sequence, received, held } => {
                put_word(out, *sequence);
                put_long(out, received.as_nanos());
                put_long(out, held.as_nanos());
            }
            ProbePacket::TrainRequest { train, packets, payload } => {
                [train, packets, payload].into_iter().for_each(|n| put_word(out, *n));
            }
            ProbePacket::Steer { sequence, steering } => {
                put_word(out, *sequence);
                put_long(out, steering.pacing.unwrap_or(Rate::MAX).bits_per_second());
                out.push(congestion_code(steering.congestion));
            }
        }
    }

    /// Parses the packet of a kind from its fields and the zeros that follow them.
    pub(super) fn take(kind: u8, fields: &mut &[u8]) -> Option<ProbePacket> {
        match kind {
            PUNCH_KIND => Some(ProbePacket::Punch { sequence: take_word(fields)? }),
            PROBE_KIND => Some(ProbePacket::Probe { sequence: take_word(fields)? }),
            ANSWER_KIND => take_answer(fields).map(ProbePacket::Answer),
            TRAIN_KIND => {
                let (train, index) = (take_word(fields)?, take_word(fields)?);
                Some(ProbePacket::Train(TrainPacket { train, index }))
            }
            STREAM_KIND => {
                let (stream, index) = (take_word(fields)?, take_word(fields)?);
                let sent = Time::from_nanos(take_long(fields)?);
                Some(ProbePacket::Stream(StreamPacket { stream, index, sent }))
            }
            ECHO_KIND => Some(ProbePacket::Echo { sequence: take_word(fields)? }),
            REFLECTED_KIND => {
                let sequence = take_word(fields)?;
                let received = Time::from_nanos(take_long(fields)?);
                let held = Duration::from_nanos(take_long(fields)?);
                Some(ProbePacket::Reflected { sequence, received, held })
            }
            TRAIN_REQUEST_KIND => {
                let mut word = || take_word(fields);
                let (train, packets, payload) = (word()?, word()?, word()?);
                Some(ProbePacket::TrainRequest { train, packets, payload })
            }
            STEER_KIND => {
                let sequence = take_word(fields)?;
                let pacing = Rate::from_bits_per_second(take_long(fields)?);
                let pacing = Some(pacing).filter(|pacing| *pacing != Rate::MAX);
                let congestion = congestion_of(*fields.first()?)?;
                Some(ProbePacket::Steer { sequence, steering: Steering { pacing, congestion } })
            }
            _ => None,
        }
    }
}

fn congestion_code(choice: CongestionChoice) -> u8 {
    match choice {
        CongestionChoice::Own => 0,
        CongestionChoice::Reno => 1,
        CongestionChoice::Bbr => 2,
    }
}

pub(super) fn congestion_of(code: u8) -> Option<CongestionChoice> {
    Some(match code {
        0 => CongestionChoice::Own,
        1 => CongestionChoice::Reno,
        2 => CongestionChoice::Bbr,
        _ => return None,
    })
}
