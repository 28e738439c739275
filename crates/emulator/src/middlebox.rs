use sweetspot_units::Bytes;

use crate::checksum::fold;
use crate::veth::ETHERNET_HEADER;

/// A device on the path that modifies the TCP packets of one direction. The default passes all of them unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Middlebox {
    /// Maximum packet size; larger packets are dropped without an ICMP message.
    pub passes: Option<Bytes>,
    /// Added to sequence numbers.
    pub sequence: u32,
    /// Added to acknowledgement numbers, and not to SACK blocks.
    pub acknowledgement: u32,
    /// The TCP option to overwrite with padding.
    pub strips: Option<StrippedOption>,
}

/// A TCP option that is stripped, by its kind (RFC 9293 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrippedOption {
    /// Stripped from segments with SYN.
    FromSyn(u8),
    /// Stripped from all other segments.
    FromOthers(u8),
}

/// Positions in an Ethernet frame, and in IPv4 and TCP headers.
const ETHER_TYPE: std::ops::Range<usize> = 12..14;
const IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL: usize = 9;
const TCP: u8 = 6;
const SEQUENCE: usize = 4;
const ACKNOWLEDGEMENT: usize = 8;
const DATA_OFFSET: usize = 12;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const MIN_HEADER: usize = 20;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;

impl Middlebox {
    /// Whether a frame of `length` bytes is dropped.
    pub(crate) fn swallows(&self, length: usize) -> bool {
        self.passes.is_some_and(|max| (length - ETHERNET_HEADER.min(length)) as u64 > max.get())
    }

    /// Rewrites `frame` and updates its checksum, unless that is left to a network card.
    pub(crate) fn rewrite(&self, frame: &mut [u8], left_to_card: bool) {
        if let Some(mut header) = TcpHeader::of(frame, left_to_card) {
            let flags = header.bytes[FLAGS];
            header.add(SEQUENCE, self.sequence);
            if flags & ACK != 0 {
                header.add(ACKNOWLEDGEMENT, self.acknowledgement);
            }
            match self.strips {
                Some(StrippedOption::FromSyn(kind)) if flags & SYN != 0 => header.strip(kind),
                Some(StrippedOption::FromOthers(kind)) if flags & SYN == 0 => header.strip(kind),
                _ => {}
            }
        }
    }
}

struct TcpHeader<'a> {
    bytes: &'a mut [u8],
    left_to_card: bool,
}

impl TcpHeader<'_> {
    /// The TCP header of an IPv4 frame, if it is present and complete.
    fn of(frame: &mut [u8], left_to_card: bool) -> Option<TcpHeader<'_>> {
        let is_ipv4 = frame.get(ETHER_TYPE)? == IPV4;
        let is_tcp = *frame.get(ETHERNET_HEADER + PROTOCOL)? == TCP;
        let start = ETHERNET_HEADER + usize::from(frame[ETHERNET_HEADER] & 0x0f) * 4;
        let length = usize::from(frame.get(start + DATA_OFFSET)? >> 4) * 4;
        let bytes = frame.get_mut(start..start + length)?;
        (is_ipv4 && is_tcp && length >= MIN_HEADER).then_some(TcpHeader { bytes, left_to_card })
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// Writes a word, and updates the checksum (RFC 1624: HC' = ~(~HC + ~m + m')).
    fn put(&mut self, at: usize, word: u16) {
        let before = self.word(at);
        self.bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
        if !self.left_to_card {
            let sum = u32::from(!self.word(CHECKSUM)) + u32::from(!before) + u32::from(word);
            self.bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!fold(sum)).to_be_bytes());
        }
    }

    fn add(&mut self, at: usize, number: u32) {
        let before = (u32::from(self.word(at)) << 16) | u32::from(self.word(at + 2));
        let after = before.wrapping_add(number);
        self.put(at, (after >> 16) as u16);
        self.put(at + 2, after as u16);
    }

    /// Overwrites the option `kind`.
    fn strip(&mut self, kind: u8) {
        let mut at = MIN_HEADER;
        while let Some(&found) = self.bytes.get(at) {
            let length = match found {
                END_OF_OPTIONS => return,
                NO_OPERATION => 1,
                _ => usize::from(self.bytes.get(at + 1).copied().unwrap_or(0)).max(2),
            };
            let end = (at + length).min(self.bytes.len());
            if found == kind {
                (at..end).for_each(|at| self.pad(at));
            }
            at = end;
        }
    }

    fn pad(&mut self, at: usize) {
        let [high, low] = self.word(at & !1).to_be_bytes();
        let word = if at.is_multiple_of(2) { [NO_OPERATION, low] } else { [high, NO_OPERATION] };
        self.put(at & !1, u16::from_be_bytes(word));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: usize = ETHERNET_HEADER + 20;

    /// A frame with this sequence number, acknowledgement number, flags and options, and a correct checksum.
    fn frame(seq: u32, ack: u32, flags: u8, options: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 140, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x9c, 0x40, 0x0f, 0xa0]);
        frame.extend(seq.to_be_bytes());
        frame.extend(ack.to_be_bytes());
        frame.extend([((MIN_HEADER + options.len()) << 2) as u8, flags, 1, 0, 0, 0, 0, 0]);
        frame.extend(options);
        let checksum = !fold(sum(&frame));
        frame[HEADER + CHECKSUM..][..2].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    /// The sum of the words from the TCP header on. The rest that the checksum covers does not change.
    fn sum(frame: &[u8]) -> u32 {
        let words = frame[HEADER..].chunks(2);
        words.map(|pair| (u32::from(pair[0]) << 8) | u32::from(pair[1])).sum()
    }

    /// The options of a Linux SYN: MSS, SACK permitted, timestamps, window scale.
    const OF_SYN: [u8; 20] = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 1, 0, 0, 0, 2, 0, 1, 3, 3, 7];
    /// Timestamps and a SACK block.
    const OF_ACK: [u8; 24] =
        [1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 2, 0, 1, 1, 5, 10, 0, 0, 3, 0, 0, 0, 4, 0];

    proptest! {
        #[test]
        fn rewriting_sequence_numbers_keeps_sack_blocks_and_a_valid_checksum(
            seq: u32, ack: u32, sequence: u32, acknowledgement: u32,
        ) {
            let middlebox = Middlebox { sequence, acknowledgement, ..Middlebox::default() };
            let mut rewritten = frame(seq, ack, ACK, &OF_ACK);
            middlebox.rewrite(&mut rewritten, false);
            let moved = (seq.wrapping_add(sequence), ack.wrapping_add(acknowledgement));
            let mut expected = frame(moved.0, moved.1, ACK, &OF_ACK);
            // 0 and 0xffff are both correct: ones' complement has two zeros.
            prop_assert_eq!(fold(sum(&rewritten)), 0xffff);
            expected[HEADER + CHECKSUM..][..2].copy_from_slice(&rewritten[HEADER + CHECKSUM..][..2]);
            prop_assert_eq!(rewritten, expected);
        }

        #[test]
        fn arbitrary_bytes_cause_no_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), ipv4: bool, kind: u8) {
            if ipv4 && bytes.len() > ETHERNET_HEADER + PROTOCOL {
                bytes[ETHER_TYPE].copy_from_slice(&IPV4);
                bytes[ETHERNET_HEADER + PROTOCOL] = TCP;
            }
            let strips = Some(StrippedOption::FromOthers(kind));
            let middlebox = Middlebox { sequence: 1, acknowledgement: 1, strips, ..Middlebox::default() };
            let length = bytes.len();
            middlebox.rewrite(&mut bytes, false);
            prop_assert_eq!(bytes.len(), length);
        }
    }

    #[test]
    fn a_stripped_option_becomes_padding_and_the_checksum_stays_valid() {
        for (strips, options, at) in [
            (StrippedOption::FromSyn(3), OF_SYN.as_slice(), 17..20),
            (StrippedOption::FromSyn(4), &OF_SYN, 4..6),
            (StrippedOption::FromOthers(8), &OF_ACK, 2..12),
        ] {
            let flags = if matches!(strips, StrippedOption::FromSyn(_)) { SYN } else { ACK };
            let mut expected = options.to_vec();
            expected[at].fill(NO_OPERATION);
            let mut rewritten = frame(1, 1, flags, options);
            Middlebox { strips: Some(strips), ..Middlebox::default() }
                .rewrite(&mut rewritten, false);
            assert_eq!(rewritten[HEADER + MIN_HEADER..], expected, "{strips:?}");
            assert_eq!(fold(sum(&rewritten)), 0xffff, "{strips:?}");
            // Segments of the other kind keep the option.
            let mut other = frame(1, 1, flags ^ (SYN | ACK), options);
            let before = other.clone();
            Middlebox { strips: Some(strips), ..Middlebox::default() }.rewrite(&mut other, false);
            assert_eq!(other, before, "{strips:?}");
        }
    }

    #[test]
    fn only_packets_above_the_size_limit_are_dropped() {
        let middlebox = Middlebox { passes: Some(Bytes::new(1400)), ..Middlebox::default() };
        let of = |packet: usize| middlebox.swallows(ETHERNET_HEADER + packet);
        assert_eq!([of(40), of(1400), of(1401), of(1500)], [false, false, true, true]);
        assert!(!Middlebox::default().swallows(9014));
    }
}
