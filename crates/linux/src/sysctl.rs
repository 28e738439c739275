//! Reading the limits that the host sets on sockets. Nothing here writes.

use std::fs;
use std::io;

use sweetspot_units::Bytes;

/// `net.ipv4.tcp_rmem` or `net.ipv4.tcp_wmem`: the limits between which autotuning moves a
/// buffer. They belong to the network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Autotuning {
    /// Never below this.
    pub least: Bytes,
    /// Where a connection starts.
    pub initial: Bytes,
    /// Never above this.
    pub most: Bytes,
}

/// `net.core.rmem_max`: the most that SO_RCVBUF may be asked for.
pub fn rmem_max() -> io::Result<Bytes> {
    number("/proc/sys/net/core/rmem_max").map(Bytes::new)
}

/// `net.core.wmem_max`: the most that SO_SNDBUF may be asked for.
pub fn wmem_max() -> io::Result<Bytes> {
    number("/proc/sys/net/core/wmem_max").map(Bytes::new)
}

/// `net.ipv4.tcp_rmem`.
pub fn tcp_rmem() -> io::Result<Autotuning> {
    autotuning("/proc/sys/net/ipv4/tcp_rmem")
}

/// `net.ipv4.tcp_wmem`.
pub fn tcp_wmem() -> io::Result<Autotuning> {
    autotuning("/proc/sys/net/ipv4/tcp_wmem")
}

/// `net.ipv4.tcp_available_congestion_control`.
pub fn available_congestion_controls() -> io::Result<Vec<String>> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

fn number(path: &str) -> io::Result<u64> {
    parse(path, fs::read_to_string(path)?.trim())
}

fn autotuning(path: &str) -> io::Result<Autotuning> {
    let text = fs::read_to_string(path)?;
    let mut words = text.split_whitespace();
    let mut next = || parse(path, words.next().unwrap_or("")).map(Bytes::new);
    Ok(Autotuning { least: next()?, initial: next()?, most: next()? })
}

fn parse(path: &str, text: &str) -> io::Result<u64> {
    text.parse().map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{path} holds \"{text}\", no number"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_autotuning_come_in_order() {
        for limits in [tcp_rmem().unwrap(), tcp_wmem().unwrap()] {
            assert!(limits.least <= limits.most, "{limits:?}");
        }
    }

    #[test]
    fn the_kernel_always_has_reno() {
        assert!(available_congestion_controls().unwrap().iter().any(|name| name == "reno"));
    }
}
