use sweetspot_sizing::{CongestionChoice, CongestionState, ProbeAnswer, SenderReport, TrainPacket};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::float_code::{THREE_BYTES, TWO_BYTES};
use crate::Session;

/// An out-of-band packet: one byte for the kind, four bytes that name the connection, the fields, zeros up to
/// the wanted size, and a keyed BLAKE3 over all of that, cut to 10 bytes. Numbers are big-endian.
///
/// An answer carries its numbers in two or three bytes each: times in microseconds, rates in bits per second,
/// counters and sizes. Two bytes round down to a two-thousandth. Counters that are watched for growth take
/// three bytes, which round down to a millionth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbePacket {
    /// Sender to receiver: shows the sender's UDP address, and opens address translators on the way.
    Punch {
        /// Counts up, so that a replayed packet is known from a new one.
        sequence: u32,
    },
    /// Receiver to sender: asks for an answer.
    Probe {
        /// The probe's number, from 0.
        sequence: u32,
    },
    /// Sender to receiver, never longer than the probe.
    Answer(ProbeAnswer),
    /// Sender to receiver, in a burst.
    Train(TrainPacket),
    /// Either way on a connection that measures: a packet of a stream.
    Stream(StreamPacket),
    /// From the measuring end: send it back at once.
    Echo {
        /// Its number, from 0.
        sequence: u32,
    },
    /// An echo that comes back, no longer than it was.
    Reflected {
        /// Its number.
        sequence: u32,
        /// When it was received at the far end, on that clock.
        received: Time,
        /// How long it was held there.
        held: Duration,
    },
    /// Receiver to sender, where no other channel carries it: asks for a train.
    TrainRequest {
        /// The train's number. Each is sent once.
        train: u32,
        /// Its packets.
        packets: u32,
        /// UDP payload of each.
        payload: u32,
    },
    /// Receiver to sender, where no other channel carries it: how to send from now on.
    Steer {
        /// Counts up with every change.
        sequence: u32,
        /// How to send.
        steering: Steering,
    },
}

/// How a receiver asks its sender to send.
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
    /// Its place in the stream, from 0.
    pub index: u32,
    /// When it was sent, on the sender's clock.
    pub sent: Time,
}

/// Makes and checks the authenticated packets of one connection.
#[derive(Clone)]
pub struct PacketAuthenticator {
    id: [u8; ID_BYTES],
    key: [u8; 32],
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
const ID_BYTES: usize = 4;
/// Bytes of kind and connection number.
const PACKET_HEADER_BYTES: usize = 1 + ID_BYTES;
/// Eighty bits, SRTP's default authentication tag (RFC 3711, section 5.2).
const MAC_BYTES: usize = 10;
/// The longest fields (an answer's): two words, four long numbers, eight short ones, the flags.
const MAX_FIELD_BYTES: usize = 2 * 4 + 4 * 3 + 8 * 2 + 1;
/// The shortest datagram: a packet of every kind fits in it.
const MIN_PACKET_BYTES: usize = PACKET_HEADER_BYTES + MAX_FIELD_BYTES + MAC_BYTES;

/// In an answer's flags, above the three bits of the congestion state.
const APP_LIMITED_FLAG: u8 = 1 << 3;
const STARVED_FLAG: u8 = 1 << 4;
const STATE_MASK: u8 = 0b111;

impl PacketAuthenticator {
    /// The authenticator of a connection.
    pub fn new(session: &Session) -> PacketAuthenticator {
        PacketAuthenticator { id: session.probe_id(), key: *session.probe_key() }
    }

    /// The authenticator of the streams that measure a connection's path.
    pub fn of_streams(session: &Session) -> PacketAuthenticator {
        PacketAuthenticator { id: session.stream_id(), key: *session.stream_key() }
    }

    /// The authenticator of one purpose, from a key that both ends know.
    pub(crate) fn derive(purpose: &str, key: &[u8]) -> PacketAuthenticator {
        let [a, b, c, d, ..] = blake3::derive_key(&format!("{purpose}: number"), key);
        PacketAuthenticator { id: [a, b, c, d], key: blake3::derive_key(purpose, key) }
    }

    /// The number that its packets carry.
    pub fn id(&self) -> [u8; ID_BYTES] {
        self.id
    }

    /// The connection number in a datagram, before it is authenticated; `None` if the datagram is too short.
    pub fn claimed_id(datagram: &[u8]) -> Option<[u8; ID_BYTES]> {
        datagram.get(1..PACKET_HEADER_BYTES)?.try_into().ok()
    }

    /// The packet as a datagram of `size` bytes of UDP payload, or more if it does not fit.
    pub fn close(&self, packet: &ProbePacket, size: Bytes) -> Vec<u8> {
        let size = (size.get() as usize).max(MIN_PACKET_BYTES);
        let mut datagram = Vec::with_capacity(size);
        datagram.push(match packet {
            ProbePacket::Punch { .. } => PUNCH_KIND,
            ProbePacket::Probe { .. } => PROBE_KIND,
            ProbePacket::Answer(_) => ANSWER_KIND,
            ProbePacket::Train(_) => TRAIN_KIND,
            ProbePacket::Stream(_) => STREAM_KIND,
            ProbePacket::Echo { .. } => ECHO_KIND,
            ProbePacket::Reflected { .. } => REFLECTED_KIND,
            ProbePacket::TrainRequest { .. } => TRAIN_REQUEST_KIND,
            ProbePacket::Steer { .. } => STEER_KIND,
        });
        datagram.extend(self.id);
        match packet {
            ProbePacket::Punch { sequence }
            | ProbePacket::Probe { sequence }
            | ProbePacket::Echo { sequence } => put_word(&mut datagram, *sequence),
            ProbePacket::Answer(answer) => put_answer(&mut datagram, answer),
            ProbePacket::Train(train) => {
                put_word(&mut datagram, train.train);
                put_word(&mut datagram, train.index);
            }
            ProbePacket::Stream(packet) => {
                put_word(&mut datagram, packet.stream);
                put_word(&mut datagram, packet.index);
                put_long(&mut datagram, packet.sent.as_nanos());
            }
            ProbePacket::Reflected { sequence, received, held } => {
                put_word(&mut datagram, *sequence);
                put_long(&mut datagram, received.as_nanos());
                put_long(&mut datagram, held.as_nanos());
            }
            ProbePacket::TrainRequest { train, packets, payload } => {
                [train, packets, payload].into_iter().for_each(|n| put_word(&mut datagram, *n));
            }
            ProbePacket::Steer { sequence, steering } => {
                put_word(&mut datagram, *sequence);
                put_long(&mut datagram, steering.pacing.unwrap_or(Rate::MAX).bits_per_second());
                datagram.push(congestion_code(steering.congestion));
            }
        }
        datagram.resize(size - MAC_BYTES, 0);
        let mac = blake3::keyed_hash(&self.key, &datagram);
        datagram.extend(&mac.as_bytes()[..MAC_BYTES]);
        datagram
    }

    /// The packet in a datagram; `None` if it has no valid authentication tag of this connection.
    pub fn open(&self, datagram: &[u8]) -> Option<ProbePacket> {
        if datagram.len() < MIN_PACKET_BYTES
            || PacketAuthenticator::claimed_id(datagram)? != self.id
        {
            return None;
        }
        let (content, mac) = datagram.split_last_chunk::<MAC_BYTES>()?;
        let expected = blake3::keyed_hash(&self.key, content);
        if !bool::from(subtle::ConstantTimeEq::ct_eq(&expected.as_bytes()[..MAC_BYTES], &mac[..])) {
            return None;
        }
        let mut fields = content.get(PACKET_HEADER_BYTES..)?;
        match content[0] {
            PUNCH_KIND => Some(ProbePacket::Punch { sequence: take_word(&mut fields)? }),
            PROBE_KIND => Some(ProbePacket::Probe { sequence: take_word(&mut fields)? }),
            ANSWER_KIND => take_answer(&mut fields).map(ProbePacket::Answer),
            TRAIN_KIND => {
                let (train, index) = (take_word(&mut fields)?, take_word(&mut fields)?);
                Some(ProbePacket::Train(TrainPacket { train, index }))
            }
            STREAM_KIND => {
                let (stream, index) = (take_word(&mut fields)?, take_word(&mut fields)?);
                let sent = Time::from_nanos(take_long(&mut fields)?);
                Some(ProbePacket::Stream(StreamPacket { stream, index, sent }))
            }
            ECHO_KIND => Some(ProbePacket::Echo { sequence: take_word(&mut fields)? }),
            REFLECTED_KIND => {
                let sequence = take_word(&mut fields)?;
                let received = Time::from_nanos(take_long(&mut fields)?);
                let held = Duration::from_nanos(take_long(&mut fields)?);
                Some(ProbePacket::Reflected { sequence, received, held })
            }
            TRAIN_REQUEST_KIND => {
                let mut word = || take_word(&mut fields);
                let (train, packets, payload) = (word()?, word()?, word()?);
                Some(ProbePacket::TrainRequest { train, packets, payload })
            }
            STEER_KIND => {
                let sequence = take_word(&mut fields)?;
                let pacing = Rate::from_bits_per_second(take_long(&mut fields)?);
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

fn congestion_of(code: u8) -> Option<CongestionChoice> {
    Some(match code {
        0 => CongestionChoice::Own,
        1 => CongestionChoice::Reno,
        2 => CongestionChoice::Bbr,
        _ => return None,
    })
}

fn put_word(out: &mut Vec<u8>, n: u32) {
    out.extend(n.to_be_bytes());
}

fn take_word(rest: &mut &[u8]) -> Option<u32> {
    let (word, left) = rest.split_first_chunk::<4>()?;
    *rest = left;
    Some(u32::from_be_bytes(*word))
}

fn put_long(out: &mut Vec<u8>, n: u64) {
    out.extend(n.to_be_bytes());
}

fn take_long(rest: &mut &[u8]) -> Option<u64> {
    let (long, left) = rest.split_first_chunk::<8>()?;
    *rest = left;
    Some(u64::from_be_bytes(*long))
}

fn put_answer(out: &mut Vec<u8>, answer: &ProbeAnswer) {
    let report = &answer.report;
    put_word(out, answer.probe);
    put_word(out, answer.sequence);
    let counters = [
        report.retransmitted,
        report.marked.into(),
        report.busy.as_micros(),
        report.window_limited.as_micros(),
    ];
    counters.into_iter().for_each(|n| THREE_BYTES.put(out, THREE_BYTES.encode(n)));
    let threshold = report.ssthresh.map_or(TWO_BYTES.none(), |n| TWO_BYTES.encode(n.get()));
    TWO_BYTES.put(out, threshold);
    let others = [
        answer.held.as_micros(),
        report.cwnd.get(),
        report.in_flight.get(),
        report.delivery_rate.bits_per_second(),
        report.minimum_rtt.as_micros(),
        report.reordering.into(),
        report.dsacks.into(),
    ];
    others.into_iter().for_each(|n| TWO_BYTES.put(out, TWO_BYTES.encode(n)));
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    out.push(
        state_code(report.state)
            | flag(report.app_limited, APP_LIMITED_FLAG)
            | flag(report.starved, STARVED_FLAG),
    );
}

fn take_answer(rest: &mut &[u8]) -> Option<ProbeAnswer> {
    let (probe, sequence) = (take_word(rest)?, take_word(rest)?);
    let mut long = || THREE_BYTES.take_number(rest);
    let (retransmitted, marked, busy, window_limited) = (long()?, long()?, long()?, long()?);
    let threshold = TWO_BYTES.take(rest)?;
    let mut short = || TWO_BYTES.take_number(rest);
    let held = Duration::from_micros(short()?);
    let (cwnd, in_flight) = (Bytes::new(short()?), Bytes::new(short()?));
    let delivery_rate = Rate::from_bits_per_second(short()?);
    let minimum_rtt = Duration::from_micros(short()?);
    let (reordering, dsacks) = (short()?, short()?);
    let flags = *rest.first()?;
    let report = SenderReport {
        retransmitted,
        cwnd,
        ssthresh: (threshold != TWO_BYTES.none()).then(|| Bytes::new(TWO_BYTES.decode(threshold))),
        in_flight,
        delivery_rate,
        app_limited: flags & APP_LIMITED_FLAG != 0,
        busy: Duration::from_micros(busy),
        window_limited: Duration::from_micros(window_limited),
        minimum_rtt,
        state: state_of(flags & STATE_MASK)?,
        reordering: u32::try_from(reordering).ok()?,
        dsacks: u32::try_from(dsacks).ok()?,
        marked: u32::try_from(marked).ok()?,
        starved: flags & STARVED_FLAG != 0,
    };
    Some(ProbeAnswer { probe, sequence, held, report })
}

/// Linux's own numbers (`enum tcp_ca_state`).
fn state_code(state: CongestionState) -> u8 {
    match state {
        CongestionState::Open => 0,
        CongestionState::Disorder => 1,
        CongestionState::Reduced => 2,
        CongestionState::Recovery => 3,
        CongestionState::Loss => 4,
    }
}

fn state_of(code: u8) -> Option<CongestionState> {
    Some(match code {
        0 => CongestionState::Open,
        1 => CongestionState::Disorder,
        2 => CongestionState::Reduced,
        3 => CongestionState::Recovery,
        4 => CongestionState::Loss,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn authenticator(key: u8) -> PacketAuthenticator {
        PacketAuthenticator { id: [1; ID_BYTES], key: [key; 32] }
    }

    fn report() -> impl Strategy<Value = SenderReport> {
        let flags = (any::<[bool; 2]>(), 0u8..5);
        (any::<[u32; 5]>(), any::<[u64; 3]>(), any::<Option<u64>>(), any::<[u32; 3]>(), flags)
            .prop_map(|(small, large, threshold, counters, ([app_limited, starved], state))| {
                let [retransmitted, cwnd, in_flight, minimum_rtt, _] = small;
                let [busy, window_limited, rate] = large.map(|n| n >> 14);
                let [reordering, dsacks, marked] = counters;
                SenderReport {
                    retransmitted: retransmitted.into(),
                    cwnd: Bytes::new(cwnd.into()),
                    ssthresh: threshold.map(Bytes::new),
                    in_flight: Bytes::new(in_flight.into()),
                    delivery_rate: Rate::from_bits_per_second(rate),
                    app_limited,
                    busy: Duration::from_micros(busy),
                    window_limited: Duration::from_micros(window_limited),
                    minimum_rtt: Duration::from_micros(minimum_rtt.into()),
                    state: state_of(state).unwrap(),
                    reordering,
                    dsacks,
                    marked,
                    starved,
                }
            })
    }

    fn packet() -> impl Strategy<Value = ProbePacket> {
        let answer = (any::<[u32; 3]>(), report()).prop_map(|([probe, sequence, held], report)| {
            let held = Duration::from_micros(held.into());
            ProbePacket::Answer(ProbeAnswer { probe, sequence, held, report })
        });
        prop_oneof![
            any::<u32>().prop_map(|sequence| ProbePacket::Punch { sequence }),
            any::<u32>().prop_map(|sequence| ProbePacket::Probe { sequence }),
            answer,
            any::<[u32; 2]>()
                .prop_map(|[train, index]| ProbePacket::Train(TrainPacket { train, index })),
            (any::<[u32; 2]>(), any::<u64>()).prop_map(|([stream, index], sent)| {
                ProbePacket::Stream(StreamPacket { stream, index, sent: Time::from_nanos(sent) })
            }),
            any::<u32>().prop_map(|sequence| ProbePacket::Echo { sequence }),
            (any::<u32>(), any::<[u64; 2]>()).prop_map(|(sequence, [received, held])| {
                let received = Time::from_nanos(received);
                ProbePacket::Reflected { sequence, received, held: Duration::from_nanos(held) }
            }),
            any::<[u32; 3]>().prop_map(|[train, packets, payload]| {
                ProbePacket::TrainRequest { train, packets, payload }
            }),
            (any::<u32>(), any::<Option<u64>>(), 0u8..3).prop_map(|(sequence, pacing, code)| {
                // The highest rate stands for no pace.
                let pacing = pacing.map(|n| Rate::from_bits_per_second(n >> 1));
                let congestion = congestion_of(code).unwrap();
                ProbePacket::Steer { sequence, steering: Steering { pacing, congestion } }
            }),
        ]
    }

    /// Whether `read` is `n` rounded in `format`.
    fn rounded(format: crate::probe::float_code::FloatCode, n: u64, read: u64) -> bool {
        format.decode(format.encode(n)) == read
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened(packet in packet(), size in 0u64..1500) {
            let datagram = authenticator(1).close(&packet, Bytes::new(size));
            prop_assert_eq!(datagram.len(), (size as usize).max(MIN_PACKET_BYTES));
            let opened = authenticator(1).open(&datagram).unwrap();
            if !matches!(packet, ProbePacket::Answer(_)) {
                prop_assert_eq!(opened, packet);
            }
            // Rounded once, and never again.
            let again = authenticator(1).close(&opened, Bytes::new(size));
            prop_assert_eq!(authenticator(1).open(&again), Some(opened));
        }

        #[test]
        fn every_field_of_a_report_arrives(
            report in report(), numbers in any::<[u32; 2]>(), held in any::<u32>(),
        ) {
            let ([probe, sequence], held) = (numbers, Duration::from_micros(held.into()));
            let packet = ProbePacket::Answer(ProbeAnswer { probe, sequence, held, report });
            let opened = authenticator(1).open(&authenticator(1).close(&packet, Bytes::ZERO));
            let Some(ProbePacket::Answer(read)) = opened else { panic!("{opened:?}") };
            prop_assert_eq!((read.probe, read.sequence), (probe, sequence));
            prop_assert!(rounded(TWO_BYTES, held.as_micros(), read.held.as_micros()));
            let got = read.report;
            let flags = |r: &SenderReport| (r.app_limited, r.starved, r.state);
            prop_assert_eq!(flags(&got), flags(&report));
            let long = |r: &SenderReport| {
                [r.retransmitted, r.marked.into(), r.busy.as_micros(), r.window_limited.as_micros()]
            };
            for (n, read) in long(&report).into_iter().zip(long(&got)) {
                prop_assert!(rounded(THREE_BYTES, n, read), "{} {}", n, read);
            }
            let short = |r: &SenderReport| {
                [
                    r.cwnd.get(),
                    r.in_flight.get(),
                    r.delivery_rate.bits_per_second(),
                    r.minimum_rtt.as_micros(),
                    r.reordering.into(),
                    r.dsacks.into(),
                ]
            };
            for (n, read) in short(&report).into_iter().zip(short(&got)) {
                prop_assert!(rounded(TWO_BYTES, n, read), "{} {}", n, read);
            }
            prop_assert_eq!(got.ssthresh.is_some(), report.ssthresh.is_some());
            if let Some((n, read)) = report.ssthresh.zip(got.ssthresh) {
                prop_assert!(rounded(TWO_BYTES, n.get(), read.get()));
            }
        }

        #[test]
        fn one_wrong_bit_is_noticed(packet in packet(), bit in 0usize..72 * 8) {
            let mut datagram = authenticator(1).close(&packet, Bytes::new(72));
            datagram[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(authenticator(1).open(&datagram), None);
        }

        #[test]
        fn another_connections_packets_are_not_opened(packet in packet()) {
            let datagram = authenticator(2).close(&packet, Bytes::new(72));
            prop_assert_eq!(authenticator(1).open(&datagram), None);
        }

        #[test]
        fn garbage_is_not_opened(datagram in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(authenticator(1).open(&datagram), None);
        }
    }

    /// 100 bytes on the wire leave 72 of payload over IPv4 and 52 over IPv6.
    #[test]
    fn an_answer_fits_into_a_probe_over_either_ip() {
        const { assert!(MIN_PACKET_BYTES <= 52) };
    }
}
