//! Further hosts at the ends of the path, in pairs, as in a dumbbell topology.

use sweetspot_units::Duration;

use crate::error::EmulatorError;

/// A pair of hosts, one on each side, whose flows cross the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostPair {
    /// Propagation delay behind the bottleneck in addition to the path's own, each way.
    pub extra_delay: Duration,
    /// TCP's initial congestion window, in packets; `None`: the kernel's.
    pub initial_window: Option<u32>,
    /// Whether TCP acknowledges every segment at once, instead of every second.
    pub quick_acks: bool,
}

/// The most pairs of hosts on one path.
pub const MAX_HOST_PAIRS: usize = 1000;

/// The first two bytes of the addresses of host pairs on either side.
pub(crate) const NEAR_PAIR_PREFIX: [u8; 2] = [10, 78];
pub(crate) const FAR_PAIR_PREFIX: [u8; 2] = [10, 79];

/// The last two bytes of the addresses of host pair number `host_pair`; 0 is nobody's.
pub(crate) fn tag(host_pair: usize) -> u16 {
    host_pair as u16 + 1
}

pub(crate) fn check(host_pairs: &[HostPair]) -> Result<(), EmulatorError> {
    let few = host_pairs.len() <= MAX_HOST_PAIRS;
    if few { Ok(()) } else { Err(EmulatorError::TooManyHostPairs(host_pairs.len())) }
}

/// The extra delay of each host pair's packets.
#[derive(Debug)]
pub(crate) struct ExtraDelays {
    /// By the tag of the host pair; the first is for packets of nobody's. Empty: nobody has one.
    by_tag: Vec<Duration>,
}

impl ExtraDelays {
    pub fn new(host_pairs: &[HostPair]) -> ExtraDelays {
        if host_pairs.iter().all(|host_pair| host_pair.extra_delay == Duration::ZERO) {
            return ExtraDelays { by_tag: Vec::new() };
        }
        let all = host_pairs.iter().map(|host_pair| host_pair.extra_delay);
        ExtraDelays { by_tag: std::iter::once(Duration::ZERO).chain(all).collect() }
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.by_tag.is_empty()
    }

    /// The tag of the host pair that sent `frame`; 0: none did.
    pub fn pair_of(&self, frame: &[u8]) -> u16 {
        // Ethernet's type, and the source in IPv4's header (RFC 791) behind it.
        const TYPE_OFFSET: usize = 12;
        const SOURCE_OFFSET: usize = 14 + 12;
        const IPV4_TYPE: &[u8] = &[8, 0];
        match (frame.get(TYPE_OFFSET..TYPE_OFFSET + 2), frame.get(SOURCE_OFFSET..SOURCE_OFFSET + 4))
        {
            (Some(IPV4_TYPE), Some(&[a, b, high, low]))
                if [NEAR_PAIR_PREFIX, FAR_PAIR_PREFIX].contains(&[a, b]) =>
            {
                u16::from_be_bytes([high, low])
            }
            _ => 0,
        }
    }

    /// The extra delay of the host pair with this tag.
    pub fn of(&self, tag: u16) -> Duration {
        self.by_tag.get(usize::from(tag)).copied().unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn from(source: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[26..30].copy_from_slice(&source);
        frame
    }

    #[test]
    fn a_packet_gets_the_extra_delay_of_who_sent_it() {
        let host_pair = |ms| HostPair { extra_delay: MS(ms), ..HostPair::default() };
        let extra_delays = ExtraDelays::new(&[host_pair(0), host_pair(7)]);
        let of = |frame: &[u8]| extra_delays.of(extra_delays.pair_of(frame));
        // Host pair 1 has tag 2, on both sides.
        assert_eq!(of(&from([10, 78, 0, 2])), MS(7));
        assert_eq!(of(&from([10, 79, 0, 2])), MS(7));
        for other in [[10, 78, 0, 1], [10, 77, 0, 2], [10, 78, 0, 9], [10, 78, 0, 0]] {
            assert_eq!(of(&from(other)), Duration::ZERO, "{other:?}");
        }
        assert_eq!(of(&[0; 20]), Duration::ZERO);
        let mut other_protocol = from([10, 78, 0, 2]);
        other_protocol[12] = 9;
        assert_eq!(of(&other_protocol), Duration::ZERO);
    }

    #[test]
    fn host_pairs_without_extra_delay_need_no_fan() {
        assert!(ExtraDelays::new(&[HostPair::default(); 3]).is_empty());
    }
}
