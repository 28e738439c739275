use sweetspot_units::Bytes;

use super::packet::{MAX_FIELD_BYTES, ProbePacket};
use crate::Session;

/// Creates and verifies the authenticated packets of one connection.
#[derive(Clone)]
pub struct PacketAuthenticator {
    id: [u8; ID_BYTES],
    key: [u8; 32],
}

const ID_BYTES: usize = 4;
/// Bytes of the kind and the connection number.
const PACKET_HEADER_BYTES: usize = 1 + ID_BYTES;
/// Eighty bits, SRTP's default authentication tag (RFC 3711, section 5.2).
const MAC_BYTES: usize = 10;
/// The shortest datagram; a packet of any kind fits into it.
const MIN_PACKET_BYTES: usize = PACKET_HEADER_BYTES + MAX_FIELD_BYTES + MAC_BYTES;

impl PacketAuthenticator {
    /// The authenticator of a connection.
    pub fn new(session: &Session) -> PacketAuthenticator {
        PacketAuthenticator { id: session.probe_id(), key: *session.probe_key() }
    }

    /// The authenticator of the streams that measure a connection's path.
    pub fn of_streams(session: &Session) -> PacketAuthenticator {
        PacketAuthenticator { id: session.stream_id(), key: *session.stream_key() }
    }

    /// The authenticator for one purpose, derived from a key that both ends know.
    pub(crate) fn derive(purpose: &str, key: &[u8]) -> PacketAuthenticator {
        let [a, b, c, d, ..] = blake3::derive_key(&format!("{purpose}: number"), key);
        PacketAuthenticator { id: [a, b, c, d], key: blake3::derive_key(purpose, key) }
    }

    /// The connection number in its packets.
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
        datagram.push(packet.kind());
        datagram.extend(self.id);
        packet.put_fields(&mut datagram);
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
        ProbePacket::take(content[0], &mut fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::answer::state_of;
    use crate::probe::float_code::{FloatCode, THREE_BYTES, TWO_BYTES};
    use crate::probe::packet::congestion_of;
    use crate::probe::{Steering, StreamPacket};
    use proptest::prelude::*;
    use sweetspot_sizing::{ProbeAnswer, SenderReport, TrainPacket};
    use sweetspot_units::{Duration, Rate, Time};

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
                // The highest rate represents no pacing.
                let pacing = pacing.map(|n| Rate::from_bits_per_second(n >> 1));
                let congestion = congestion_of(code).unwrap();
                ProbePacket::Steer { sequence, steering: Steering { pacing, congestion } }
            }),
        ]
    }

    /// Whether `read` equals `n` after rounding in `format`.
    fn rounded(format: FloatCode, n: u64, read: u64) -> bool {
        format.decode(format.encode(n)) == read
    }

    proptest! {
        #[test]
        fn a_sealed_packet_can_be_opened(packet in packet(), size in 0u64..1500) {
            let datagram = authenticator(1).close(&packet, Bytes::new(size));
            prop_assert_eq!(datagram.len(), (size as usize).max(MIN_PACKET_BYTES));
            let opened = authenticator(1).open(&datagram).unwrap();
            if !matches!(packet, ProbePacket::Answer(_)) {
                prop_assert_eq!(opened, packet);
            }
            // A value is rounded only once.
            let again = authenticator(1).close(&opened, Bytes::new(size));
            prop_assert_eq!(authenticator(1).open(&again), Some(opened));
        }

        #[test]
        fn every_report_field_survives_encoding(
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
        fn a_flipped_bit_is_detected(packet in packet(), bit in 0usize..72 * 8) {
            let mut datagram = authenticator(1).close(&packet, Bytes::new(72));
            datagram[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(authenticator(1).open(&datagram), None);
        }

        #[test]
        fn packets_of_another_connection_are_rejected(packet in packet()) {
            let datagram = authenticator(2).close(&packet, Bytes::new(72));
            prop_assert_eq!(authenticator(1).open(&datagram), None);
        }

        #[test]
        fn garbage_is_rejected(datagram in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(authenticator(1).open(&datagram), None);
        }
    }

    /// 100 bytes on the wire contain 72 bytes of payload over IPv4 and 52 over IPv6.
    #[test]
    fn an_answer_fits_into_a_probe_over_ipv4_and_ipv6() {
        const { assert!(MIN_PACKET_BYTES <= 52) };
    }
}
