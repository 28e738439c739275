//! Additional hosts at the ends of the path, in pairs, as in a dumbbell topology.

use sweetspot_units::Duration;

use crate::error::{EmulatorError, MAX_HOST_PAIRS, Result};

/// A pair of hosts, one on each side, with flows across the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostPair {
    /// Propagation delay beyond the path's own, in each direction.
    pub extra_delay: Duration,
    /// The first and last hop that the pair's packets cross, counted from the near side; `None`: all
    /// hops.
    pub hops: Option<(usize, usize)>,
    /// TCP's initial congestion window, in packets; `None`: the kernel's.
    pub initial_window: Option<u32>,
    /// Whether TCP acknowledges every segment at once, instead of every second one.
    pub quick_acks: bool,
}

/// The first two bytes of the host pairs' addresses on each side.
pub(crate) const NEAR_PAIR_PREFIX: [u8; 2] = [10, 78];
pub(crate) const FAR_PAIR_PREFIX: [u8; 2] = [10, 79];

/// The last two bytes of the addresses of host pair number `host_pair`; 0 means no pair.
pub(crate) fn tag(host_pair: usize) -> u16 {
    host_pair as u16 + 1
}

pub(crate) fn check(host_pairs: &[HostPair]) -> Result<()> {
    let few = host_pairs.len() <= MAX_HOST_PAIRS;
    if few { Ok(()) } else { Err(EmulatorError::TooManyHostPairs(host_pairs.len())) }
}

/// The extra delay of each host pair's packets, and the hops they cross.
#[derive(Debug)]
pub(crate) struct Routes {
    /// Indexed by tag; the first entry is for packets of no pair. Empty if all packets cross all
    /// hops.
    by_tag: Vec<(Duration, (usize, usize))>,
    all_hops: (usize, usize),
}

impl Routes {
    /// The routes of packets from near to far, or `reverse`, through `hops` hops.
    pub fn new(host_pairs: &[HostPair], hops: usize, reverse: bool) -> Routes {
        let last = hops - 1;
        let all_hops = (0, last);
        let alike = |pair: &HostPair| pair.extra_delay == Duration::ZERO && pair.hops.is_none();
        if host_pairs.iter().all(alike) {
            return Routes { by_tag: Vec::new(), all_hops };
        }
        let all = host_pairs.iter().map(|pair| {
            let (from, to) = pair.hops.map_or(all_hops, |(a, b)| (a.min(last), b.min(last)));
            (pair.extra_delay, if reverse { (last - to, last - from) } else { (from, to) })
        });
        let no_pair = std::iter::once((Duration::ZERO, all_hops));
        Routes { by_tag: no_pair.chain(all).collect(), all_hops }
    }

    /// Whether all packets take the same route.
    pub fn is_empty(&self) -> bool {
        self.by_tag.is_empty()
    }

    /// The tag of the host pair that sent `frame`; 0 if none did.
    pub fn pair_of(&self, frame: &[u8]) -> u16 {
        // Offsets of the Ethernet type, and of the source address in the IPv4 header (RFC 791).
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
    pub fn extra_delay(&self, tag: u16) -> Duration {
        self.by_tag.get(usize::from(tag)).map_or(Duration::ZERO, |(delay, _)| *delay)
    }

    /// The first and last hop of the host pair with this tag.
    pub fn hops(&self, tag: u16) -> (usize, usize) {
        self.by_tag.get(usize::from(tag)).map_or(self.all_hops, |(_, hops)| *hops)
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
    fn a_packet_gets_the_extra_delay_of_its_host_pair() {
        let host_pair = |ms| HostPair { extra_delay: MS(ms), ..HostPair::default() };
        let routes = Routes::new(&[host_pair(0), host_pair(7)], 1, false);
        let of = |frame: &[u8]| routes.extra_delay(routes.pair_of(frame));
        // Host pair 1 has tag 2 on both sides.
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
    fn identical_host_pairs_need_no_routes() {
        assert!(Routes::new(&[HostPair::default(); 3], 2, false).is_empty());
    }

    #[test]
    fn the_reverse_path_crosses_the_same_hops_in_reverse_order() {
        let pair = HostPair { hops: Some((0, 1)), ..HostPair::default() };
        let forward = Routes::new(&[pair], 3, false);
        let reverse = Routes::new(&[pair], 3, true);
        assert_eq!((forward.hops(1), reverse.hops(1)), ((0, 1), (1, 2)));
        assert_eq!((forward.hops(0), reverse.hops(0)), ((0, 2), (0, 2)));
    }
}
