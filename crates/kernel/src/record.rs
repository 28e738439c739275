use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::slice;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// Why the programs report a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// The connection has become a bulk transfer.
    Bulk,
    /// A periodic sample of a bulk transfer.
    Sample,
    /// The connection has ended.
    Closed,
}

impl RecordKind {
    fn from_word(word: u64) -> Option<RecordKind> {
        match word {
            1 => Some(RecordKind::Bulk),
            2 => Some(RecordKind::Sample),
            3 => Some(RecordKind::Closed),
            _ => None,
        }
    }
}

/// The origin of a connection's congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// The host's or its route's.
    OfHost,
    /// The one requested by its [`Command`](crate::Command).
    Chosen,
    /// The host's, because the kernel does not have the requested one.
    Refused,
    /// The one that its program chose, which is never changed.
    OfProgram,
}

impl Congestion {
    fn from_word(word: u64) -> Congestion {
        match word {
            1 => Congestion::Chosen,
            2 => Congestion::Refused,
            3 => Congestion::OfProgram,
            _ => Congestion::OfHost,
        }
    }
}

/// A report about a connection from the programs. Counters run from the start of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Why the connection is reported.
    pub kind: RecordKind,
    /// The socket's cookie.
    pub cookie: u64,
    /// Time of the report, on CLOCK_MONOTONIC.
    pub time: Time,
    /// Payload received in order.
    pub received: Bytes,
    /// Payload sent and acknowledged.
    pub acked: Bytes,
    /// Received payload that the application has not read.
    pub unread: Bytes,
    /// The receiver's estimate of the round-trip time, if it has one.
    pub receiver_rtt: Option<Duration>,
    /// The min RTT of this end's own segments, if it has one.
    pub minimum_rtt: Option<Duration>,
    /// The smoothed RTT of this end's own segments, if it has one.
    pub smoothed_rtt: Option<Duration>,
    /// Segments that arrived out of order.
    pub out_of_order: u64,
    /// The window advertised last.
    pub advertised: Bytes,
    /// The window clamp.
    pub clamp: Bytes,
    /// The MSS advertised to the peer.
    pub advertised_mss: Bytes,
    /// The MSS of segments that this end sends.
    pub mss: Bytes,
    /// Segments that reached the peer.
    pub delivered: u64,
    /// Segments sent and not cumulatively acknowledged.
    pub packets_out: u64,
    /// The part of `packets_out` that was retransmitted.
    pub retransmitted_out: u64,
    /// The part of `packets_out` that was selectively acknowledged.
    pub sacked_out: u64,
    /// The part of `packets_out` considered lost.
    pub lost_out: u64,
    /// The latest delivery rate; zero before the first.
    pub delivery_rate: Rate,
    /// Whether the application limited that rate.
    pub app_limited: bool,
    /// The limit of the pacing rate (SO_MAX_PACING_RATE); `None` if unlimited.
    pub max_pacing_rate: Option<Rate>,
    /// The clamp that the program set itself, if any.
    pub own_clamp: Option<Bytes>,
    /// The window limit in force, if any.
    pub limit: Option<Bytes>,
    /// The initial pacing rate of its upload, if its path was saved and still matches.
    pub saved_pace: Option<Rate>,
    /// The user that made the socket.
    pub uid: u32,
    /// The socket's inode; only in records of kind [`RecordKind::Bulk`], and only once the connection has been accepted.
    pub inode: Option<u64>,
    /// The process that first used the connection, by its ID in this process's PID namespace. `None` if it has no ID there,
    /// or if the connection is older than the programs and has not been used since they were attached.
    pub pid: Option<u32>,
    /// The origin of its congestion control.
    pub congestion: Congestion,
    /// The TCP state number (include/net/tcp_states.h).
    pub state: u8,
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
}

const WORDS: usize = 38;
/// The index of the sending MSS.
const MSS: usize = 13;
const AF_INET6: u64 = 10;

impl Record {
    /// Decodes `struct record` of bpf/tune.bpf.c; `None` for any other data.
    pub fn decode(bytes: &[u8]) -> Option<Record> {
        let (words, rest) = bytes.as_chunks();
        let words: &[[u8; 8]; WORDS] = words.try_into().ok().filter(|_| rest.is_empty())?;
        let [numbers @ .., family, local_port, remote_port, local, local_rest, remote, remote_rest] =
            words.map(u64::from_ne_bytes);
        let address =
            |first, rest, port| SocketAddr::new(address(family, first, rest), port as u16);
        let mss = numbers[MSS];
        let mut words = Words(numbers.iter());
        Some(Record {
            kind: RecordKind::from_word(words.number())?,
            cookie: words.number(),
            time: Time::from_nanos(words.number()),
            received: words.bytes(),
            acked: words.bytes(),
            unread: words.bytes(),
            receiver_rtt: words.micros(),
            minimum_rtt: words.micros(),
            smoothed_rtt: words.micros(),
            out_of_order: words.number(),
            advertised: words.bytes(),
            clamp: words.bytes(),
            advertised_mss: words.bytes(),
            mss: words.bytes(),
            delivered: words.number(),
            packets_out: words.number(),
            retransmitted_out: words.number(),
            sacked_out: words.number(),
            lost_out: words.number(),
            delivery_rate: words.delivery_rate(mss),
            app_limited: words.number() != 0,
            max_pacing_rate: words.pacing_limit(),
            own_clamp: words.unless_zero().map(Bytes::new),
            limit: words.unless_zero().map(Bytes::new),
            saved_pace: words.unless_zero().map(bytes_per_second),
            uid: words.number() as u32,
            inode: words.unless_zero(),
            pid: words.unless_zero().and_then(|pid| u32::try_from(pid).ok()),
            congestion: Congestion::from_word(words.number()),
            state: words.number() as u8,
            local: address(local, local_rest, local_port),
            remote: address(remote, remote_rest, remote_port),
        })
    }
}

/// Reads a record's words in order.
struct Words<'a>(slice::Iter<'a, u64>);

impl Words<'_> {
    fn number(&mut self) -> u64 {
        self.0.next().copied().unwrap_or(0)
    }

    fn unless_zero(&mut self) -> Option<u64> {
        Some(self.number()).filter(|n| *n > 0)
    }

    fn bytes(&mut self) -> Bytes {
        Bytes::new(self.number())
    }

    /// A time that the kernel keeps in 32 bits; zero and all ones mean that there is none (tcp_min_rtt).
    fn micros(&mut self) -> Option<Duration> {
        let known = Some(self.number()).filter(|us| *us < u64::from(u32::MAX))?;
        Duration::from_micros(known).nonzero()
    }

    /// From the number of segments and the time in which they were delivered.
    fn delivery_rate(&mut self, mss: u64) -> Rate {
        let delivered = Bytes::new(mss.saturating_mul(self.number()));
        self.micros().map_or(Rate::ZERO, |interval| delivered / interval)
    }

    /// All ones, in 32 or 64 bits, mean no limit.
    fn pacing_limit(&mut self) -> Option<Rate> {
        Some(self.number()).filter(|limit| *limit < u64::from(u32::MAX)).map(bytes_per_second)
    }
}

fn bytes_per_second(n: u64) -> Rate {
    Rate::from_bits_per_second(n.saturating_mul(8))
}

/// An address from words in network byte order. An IPv4-mapped IPv6 address becomes IPv4.
fn address(family: u64, first: u64, rest: u64) -> IpAddr {
    let octets = |word: u64| word.to_ne_bytes();
    if family == AF_INET6 {
        let mut all = [0; 16];
        all[..8].copy_from_slice(&octets(first));
        all[8..].copy_from_slice(&octets(rest));
        return IpAddr::V6(Ipv6Addr::from(all)).to_canonical();
    }
    let [a, b, c, d, ..] = octets(first);
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: [u64; WORDS]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Each word has its own index as value, so a misplaced word shows.
    fn numbered() -> [u64; WORDS] {
        let mut words = std::array::from_fn(|n| n as u64);
        words[0] = 2;
        words
    }

    #[test]
    fn every_field_is_decoded_at_the_bpf_programs_offset() {
        let record = Record::decode(&bytes(numbered())).unwrap();
        assert_eq!((record.kind, record.cookie), (RecordKind::Sample, 1));
        assert_eq!(record.time, Time::from_nanos(2));
        assert_eq!((record.received, record.unread), (Bytes::new(3), Bytes::new(5)));
        assert_eq!(record.minimum_rtt, Some(Duration::from_micros(7)));
        assert_eq!((record.clamp, record.delivered), (Bytes::new(11), 14));
        // 13 x 19 bytes in 20 us.
        assert_eq!(record.delivery_rate, Bytes::new(247) / Duration::from_micros(20));
        assert_eq!(record.max_pacing_rate, Some(Rate::from_bits_per_second(8 * 22)));
        assert_eq!(record.limit, Some(Bytes::new(24)));
        assert_eq!(record.saved_pace, Some(Rate::from_bits_per_second(8 * 25)));
        assert_eq!((record.uid, record.inode, record.pid), (26, Some(27), Some(28)));
        assert_eq!((record.state, record.local.port(), record.remote.port()), (30, 32, 33));
    }

    #[test]
    fn addresses_are_in_network_byte_order() {
        let mut words = numbered();
        let low = |bytes: [u8; 4]| u64::from(u32::from_ne_bytes(bytes));
        (words[31], words[34], words[36]) = (2, low([192, 0, 2, 1]), low([198, 51, 100, 7]));
        let record = Record::decode(&bytes(words)).unwrap();
        assert_eq!(record.local, "192.0.2.1:32".parse().unwrap());
        assert_eq!(record.remote, "198.51.100.7:33".parse().unwrap());
        let mapped: Ipv6Addr = "::ffff:198.51.100.7".parse().unwrap();
        words[31] = AF_INET6;
        for (word, octets) in words[36..].iter_mut().zip(mapped.octets().chunks_exact(8)) {
            *word = u64::from_ne_bytes(octets.try_into().unwrap());
        }
        let record = Record::decode(&bytes(words)).unwrap();
        assert_eq!(record.remote, "198.51.100.7:33".parse().unwrap());
    }

    #[test]
    fn sentinel_values_decode_to_none() {
        let mut words = numbered();
        (words[7], words[22], words[23]) = (u64::from(u32::MAX), u64::MAX, 0);
        (words[27], words[28], words[29]) = (0, 0, 0);
        let record = Record::decode(&bytes(words)).unwrap();
        assert_eq!(record.minimum_rtt, None);
        assert_eq!((record.max_pacing_rate, record.own_clamp), (None, None));
        assert_eq!((record.inode, record.pid), (None, None));
        assert_eq!(record.congestion, Congestion::OfHost);
    }

    proptest::proptest! {
        #[test]
        fn invalid_records_are_rejected_without_a_panic(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600),
        ) {
            let kind = bytes.first_chunk().map(|word| u64::from_ne_bytes(*word));
            let whole = bytes.len() == 8 * WORDS && kind.is_some_and(|kind| (1..=3).contains(&kind));
            proptest::prop_assert_eq!(Record::decode(&bytes).is_some(), whole);
        }

        #[test]
        fn any_numbers_in_a_valid_record_decode(mut words: [u64; WORDS], kind in 1..=3_u64) {
            words[0] = kind;
            proptest::prop_assert!(Record::decode(&bytes(words)).is_some());
        }
    }
}
