//! Labels of metrics by the peer's network. Their number is bounded, even for many peers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The number of networks with labels of their own: each label adds a time series per metric to a database.
pub const MAX_PEER_LABELS: usize = 32;
/// The label of all other networks.
pub const OTHER_PEERS: &str = "other";

/// Names peers by their [`network`]s.
///
/// A network keeps its label. Once [`MAX_PEER_LABELS`] networks have one, later networks get none. So one process never exports
/// more labels to a database.
#[derive(Debug, Clone, Default)]
pub struct PeerLabels {
    labels: BTreeMap<IpAddr, String>,
}

impl PeerLabels {
    /// Gives the network of `peer` a label, if one is left.
    pub fn learn(&mut self, peer: IpAddr) {
        let (network, length) = network(peer);
        if self.labels.len() < MAX_PEER_LABELS {
            self.labels.entry(network).or_insert_with(|| format!("{network}/{length}"));
        }
    }

    /// The label of `peer`.
    pub fn of(&self, peer: IpAddr) -> &str {
        self.labels.get(&network(peer).0).map_or(OTHER_PEERS, String::as_str)
    }
}

/// The network of `peer`, with its prefix length: /24 for IPv4 and /48 for IPv6, usually the largest prefix of one site.
pub fn network(peer: IpAddr) -> (IpAddr, u8) {
    match peer.to_canonical() {
        IpAddr::V4(address) => {
            let network = Ipv4Addr::from(u32::from(address) & u32::MAX << (32 - 24));
            (network.into(), 24)
        }
        IpAddr::V6(address) => {
            let network = Ipv6Addr::from(u128::from(address) & u128::MAX << (128 - 48));
            (network.into(), 48)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_of_one_network_share_a_label() {
        let mut labels = PeerLabels::default();
        let all =
            ["192.0.2.7", "192.0.2.200", "::ffff:192.0.2.9", "2001:db8:7:1::1", "2001:db8:7::2"];
        let all = all.map(|peer| peer.parse::<IpAddr>().unwrap());
        all.into_iter().for_each(|peer| labels.learn(peer));
        let named = all.map(|peer| labels.of(peer).to_owned());
        let (four, six) = ("192.0.2.0/24", "2001:db8:7::/48");
        assert_eq!(named, [four, four, four, six, six]);
    }

    #[test]
    fn labels_are_bounded_and_never_withdrawn() {
        let mut labels = PeerLabels::default();
        let peer = |n: u8| IpAddr::from([198, 51, n, 1]);
        (0..=255).for_each(|n| labels.learn(peer(n)));
        let mut names: Vec<&str> = (0..=255).map(|n| labels.of(peer(n))).collect();
        assert_eq!(names[0], "198.51.0.0/24");
        assert_eq!(names[MAX_PEER_LABELS], OTHER_PEERS);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MAX_PEER_LABELS + 1);
    }
}
