//! Parses an end of a connection: an address or a host name, with a port.

use core::fmt;
#[cfg(target_os = "linux")]
use std::net::IpAddr;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// All addresses of `ADDRESS:PORT` or `HOST:PORT`; a name may have several. IPv4 addresses mapped into IPv6
/// become IPv4 addresses, as in the kernel's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    typed: String,
    addresses: Vec<SocketAddr>,
}

impl Ends {
    #[cfg(target_os = "linux")]
    pub fn contains(&self, address: SocketAddr) -> bool {
        self.addresses.contains(&address)
    }

    #[cfg(any(test, target_os = "linux"))]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl FromStr for Ends {
    type Err = String;

    fn from_str(typed: &str) -> Result<Ends, String> {
        const EXAMPLES: &str = "write it like 192.0.2.7:443, [2001:db8::7]:443 or example.org:443";
        // No connection has port 0.
        if let Some(port) = port_out_of_range(typed).or(typed.ends_with(":0").then_some("0")) {
            return Err(format!("expected a port from 1 to 65535, not {port}; {EXAMPLES}"));
        }
        if !has_port(typed) {
            return Err(format!("expected HOST:PORT; {EXAMPLES}"));
        }
        let found = typed
            .to_socket_addrs()
            .map_err(|error| format!("{typed} has no address ({error}); {EXAMPLES}"))?;
        let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        let mut addresses: Vec<SocketAddr> = found.map(plain).collect();
        addresses.sort();
        addresses.dedup();
        Ok(Ends { typed: typed.to_owned(), addresses })
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.typed)
    }
}

/// Whether `typed` has the form `HOST:PORT`.
pub fn has_port(typed: &str) -> bool {
    let end = typed.rsplit_once(':');
    end.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// The port in `typed`, `HOST:PORT`, if it is a number that is too large for a port.
pub fn port_out_of_range(typed: &str) -> Option<&str> {
    let (host, port) = typed.rsplit_once(':')?;
    let is_number = !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    (is_number && !host.is_empty() && port.parse::<u16>().is_err()).then_some(port)
}

/// Parses an address, or resolves the name of a host.
#[cfg(target_os = "linux")]
pub fn host(typed: &str) -> Result<IpAddr, String> {
    let found = (typed, 0).to_socket_addrs().map_err(|error| {
        format!("no address found for {typed} ({error}); check the name, or give an address such as 192.0.2.7")
    })?;
    let mut addresses = found.map(|end| end.ip().to_canonical());
    addresses.next().ok_or_else(|| format!("{typed} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_and_plain_ipv4_endpoints_have_the_same_addresses() {
        let plain: Ends = "192.0.2.7:443".parse().unwrap();
        let mapped: Ends = "[::ffff:192.0.2.7]:443".parse().unwrap();
        assert_eq!(plain.addresses(), mapped.addresses());
        assert_eq!(plain.addresses(), ["192.0.2.7:443".parse().unwrap()]);
    }

    #[test]
    fn a_host_name_resolves_to_its_addresses() {
        let local: Ends = "localhost:443".parse().unwrap();
        assert!(local.addresses().iter().all(|end| end.ip().is_loopback() && end.port() == 443));
        assert!(!local.addresses().is_empty());
        assert!(host("localhost").unwrap().is_loopback());
    }

    #[test]
    fn an_invalid_endpoint_is_rejected_with_an_example() {
        for wrong in ["", "443", "host", "host:", ":443", "host:70000", "host:0", "host:http"] {
            let error = wrong.parse::<Ends>().expect_err(wrong);
            assert!(error.contains("example.org:443"), "{wrong}: {error}");
        }
    }
}
