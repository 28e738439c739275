use std::net::IpAddr;
use std::str::FromStr;

/// A block of addresses such as `10.0.0.0/8`, or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peers {
    network: IpAddr,
    length: u8,
}

impl Peers {
    /// Whether the block contains `address`.
    pub fn contain(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                u32::from(network) & mask == u32::from(address) & mask
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                u128::from(network) & mask == u128::from(address) & mask
            }
            _ => false,
        }
    }

    /// Whether all addresses of `other` lie in the block.
    pub(super) fn include(&self, other: &Peers) -> bool {
        self.length <= other.length && self.contain(other.network)
    }
}

impl FromStr for Peers {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Peers, &'static str> {
        const PEER_USAGE: &str = "write it like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7";
        let (network, length) = match text.split_once('/') {
            Some((network, length)) => {
                (network, Some(length.parse::<u8>().map_err(|_| PEER_USAGE)?))
            }
            None => (text, None),
        };
        let network: IpAddr = network.parse().map_err(|_| PEER_USAGE)?;
        let max = if network.is_ipv4() { 32 } else { 128 };
        let length = length.unwrap_or(max);
        if length > max { Err(PEER_USAGE) } else { Ok(Peers { network, length }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cidr_block_contains_addresses_with_its_prefix() {
        let contain = |block: &str, address: &str| {
            block.parse::<Peers>().unwrap().contain(address.parse().unwrap())
        };
        assert!(contain("10.0.0.0/8", "10.255.0.1"));
        assert!(!contain("10.0.0.0/8", "11.0.0.1"));
        assert!(contain("0.0.0.0/0", "203.0.113.9"));
        assert!(contain("::/0", "2001:db8::1"));
        assert!(contain("192.0.2.7", "::ffff:192.0.2.7"));
        assert!(!contain("192.0.2.7", "192.0.2.8"));
        assert!(contain("2001:db8::/32", "2001:db8:ffff::1"));
        assert!(!contain("2001:db8::/32", "10.0.0.1"));
    }
}
