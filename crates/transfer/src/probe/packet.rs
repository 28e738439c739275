use sweetspot_sizing::SenderReport;
use sweetspot_units::{Bytes, Duration};

use super::trains::TrainPacket;
use crate::protocol::Session;

/// An out-of-band packet: one byte of kind, eight bytes that tell connections apart, the fields,
/// zeros up to the size wanted, and a keyed BLAKE3 over all of that, cut to 16 bytes. Numbers are
/// big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet {
    /// Sender to receiver: here I am, probe me. Opens the way through address translators.
    Punch,
    /// Receiver to sender.
    Probe {
        /// Counts probes from 0.
        sequence: u32,
    },
    /// Sender to receiver, never longer than the probe.
    Answer(Answer),
    /// Sender to receiver, in a burst.
    Train(TrainPacket),
}

/// What a probe brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The probe that it answers.
    pub probe: u32,
    /// Counts answers from 0.
    pub sequence: u32,
    /// From the probe's arrival to the answer's departure, whole microseconds.
    pub held: Duration,
    /// What the sender says of itself.
    pub report: SenderReport,
}

/// Authenticates the packets of one connection.
#[derive(Clone)]
pub struct Seal {
    id: [u8; 8],
    key: [u8; 32],
}

const PUNCH: u8 = 1;
const PROBE: u8 = 2;
const ANSWER: u8 = 3;
const TRAIN: u8 = 4;
/// Kind and identity.
const HEAD: usize = 9;
const MAC: usize = 16;
/// The longest fields (an answer's).
const FIELDS: usize = 21;
/// A packet of every kind fits in this.
const LEAST: usize = HEAD + FIELDS + MAC;

impl Seal {
    /// The seal of a connection.
    pub fn new(session: &Session) -> Seal {
        Seal { id: session.probe_id(), key: *session.probe_key() }
    }

    /// The connection that a datagram claims to belong to.
    pub fn claimed_id(datagram: &[u8]) -> Option<[u8; 8]> {
        datagram.get(1..HEAD)?.try_into().ok()
    }

    /// The packet as a datagram of `size` payload bytes, or of the least that holds it.
    pub fn close(&self, packet: &Packet, size: Bytes) -> Vec<u8> {
        let size = (size.get() as usize).max(LEAST);
        let mut datagram = Vec::with_capacity(size);
        let word = |out: &mut Vec<u8>, n: u32| out.extend(n.to_be_bytes());
        let kind = match packet {
            Packet::Punch => PUNCH,
            Packet::Probe { .. } => PROBE,
            Packet::Answer(_) => ANSWER,
            Packet::Train(_) => TRAIN,
        };
        datagram.push(kind);
        datagram.extend(self.id);
        match packet {
            Packet::Punch => {}
            Packet::Probe { sequence } => word(&mut datagram, *sequence),
            Packet::Answer(answer) => {
                let report = &answer.report;
                word(&mut datagram, answer.probe);
                word(&mut datagram, answer.sequence);
                word(&mut datagram, saturated(answer.held.as_micros()));
                word(&mut datagram, saturated(report.retransmitted));
                word(&mut datagram, saturated(report.cwnd.get()));
                datagram.push(report.starved.into());
            }
            Packet::Train(train) => {
                word(&mut datagram, train.train);
                word(&mut datagram, train.index);
            }
        }
        datagram.resize(size - MAC, 0);
        let mac = blake3::keyed_hash(&self.key, &datagram);
        datagram.extend(&mac.as_bytes()[..MAC]);
        datagram
    }

    /// The packet in a datagram; `None` for anything that this connection's other end did not
    /// seal.
    pub fn open(&self, datagram: &[u8]) -> Option<Packet> {
        if datagram.len() < LEAST || Seal::claimed_id(datagram)? != self.id {
            return None;
        }
        let (content, mac) = datagram.split_last_chunk::<MAC>()?;
        let expected = blake3::keyed_hash(&self.key, content);
        if !bool::from(subtle::ConstantTimeEq::ct_eq(&expected.as_bytes()[..MAC], &mac[..])) {
            return None;
        }
        let word = |i: usize| {
            let at = HEAD + 4 * i;
            content.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes)
        };
        match content[0] {
            PUNCH => Some(Packet::Punch),
            PROBE => Some(Packet::Probe { sequence: word(0)? }),
            ANSWER => Some(Packet::Answer(Answer {
                probe: word(0)?,
                sequence: word(1)?,
                held: Duration::from_micros(word(2)?.into()),
                report: SenderReport {
                    retransmitted: word(3)?.into(),
                    cwnd: Bytes::new(word(4)?.into()),
                    starved: *content.get(HEAD + 20)? != 0,
                },
            })),
            TRAIN => Some(Packet::Train(TrainPacket { train: word(0)?, index: word(1)? })),
            _ => None,
        }
    }
}

fn saturated(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seal(key: u8) -> Seal {
        Seal { id: [1; 8], key: [key; 32] }
    }

    fn packet() -> impl Strategy<Value = Packet> {
        let answer = (any::<[u32; 5]>(), any::<bool>()).prop_map(|(n, starved)| {
            let report =
                SenderReport { retransmitted: n[3].into(), cwnd: Bytes::new(n[4].into()), starved };
            let held = Duration::from_micros(n[2].into());
            Packet::Answer(Answer { probe: n[0], sequence: n[1], held, report })
        });
        prop_oneof![
            Just(Packet::Punch),
            any::<u32>().prop_map(|sequence| Packet::Probe { sequence }),
            answer,
            any::<[u32; 2]>()
                .prop_map(|[train, index]| Packet::Train(TrainPacket { train, index })),
        ]
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened(packet in packet(), size in 0u64..1500) {
            let datagram = seal(1).close(&packet, Bytes::new(size));
            prop_assert_eq!(datagram.len(), (size as usize).max(LEAST));
            prop_assert_eq!(seal(1).open(&datagram), Some(packet));
        }

        #[test]
        fn one_wrong_bit_is_noticed(packet in packet(), bit in 0usize..72 * 8) {
            let mut datagram = seal(1).close(&packet, Bytes::new(72));
            datagram[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(seal(1).open(&datagram), None);
        }

        #[test]
        fn another_connections_packets_are_not_opened(packet in packet()) {
            let datagram = seal(2).close(&packet, Bytes::new(72));
            prop_assert_eq!(seal(1).open(&datagram), None);
        }

        #[test]
        fn garbage_is_not_opened(datagram in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(seal(1).open(&datagram), None);
        }
    }

    /// 100 bytes on the wire leave 72 of payload over IPv4 and 52 over IPv6.
    #[test]
    fn an_answer_fits_into_a_probe_over_either_ip() {
        const { assert!(LEAST <= 52) };
    }
}
