//! Reads the limits that the host sets on socket buffers. Nothing here writes.

use std::fs;
use std::io;

use sweetspot_units::Bytes;

/// The limits between which autotuning moves a buffer: `net.ipv4.tcp_rmem` or `net.ipv4.tcp_wmem` of a network
/// namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferLimits {
    /// The smallest buffer.
    pub least: Bytes,
    /// The buffer of a new connection.
    pub initial: Bytes,
    /// The largest buffer.
    pub most: Bytes,
}

/// The largest SO_RCVBUF that may be asked for (`net.core.rmem_max`).
pub fn rmem_max() -> io::Result<Bytes> {
    number("/proc/sys/net/core/rmem_max").map(Bytes::new)
}

/// The largest SO_SNDBUF that may be asked for (`net.core.wmem_max`).
pub fn wmem_max() -> io::Result<Bytes> {
    number("/proc/sys/net/core/wmem_max").map(Bytes::new)
}

/// The limits of receive buffers (`net.ipv4.tcp_rmem`).
pub fn tcp_rmem() -> io::Result<BufferLimits> {
    autotuning("/proc/sys/net/ipv4/tcp_rmem")
}

/// The limits of send buffers (`net.ipv4.tcp_wmem`).
pub fn tcp_wmem() -> io::Result<BufferLimits> {
    autotuning("/proc/sys/net/ipv4/tcp_wmem")
}

/// The congestion controls that the kernel offers (`net.ipv4.tcp_available_congestion_control`).
pub fn available_congestion_controls() -> io::Result<Vec<String>> {
    let text = read("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Those of them that a process may use without `CAP_NET_ADMIN` (`net.ipv4.tcp_allowed_congestion_control`).
pub fn allowed_congestion_controls() -> io::Result<Vec<String>> {
    let text = read("/proc/sys/net/ipv4/tcp_allowed_congestion_control")?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

fn number(path: &str) -> io::Result<u64> {
    parse(path, read(path)?.trim())
}

/// The file; its name and the next step are in the error.
fn read(path: &str) -> io::Result<String> {
    fs::read_to_string(path).map_err(|error| {
        io::Error::new(error.kind(), format!("{path}: {error}; is /proc mounted?"))
    })
}

fn autotuning(path: &str) -> io::Result<BufferLimits> {
    let text = read(path)?;
    let mut words = text.split_whitespace();
    let mut next = || parse(path, words.next().unwrap_or("")).map(Bytes::new);
    Ok(BufferLimits { least: next()?, initial: next()?, most: next()? })
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
    fn what_cannot_be_read_is_named_with_the_next_step() {
        let error = number("/proc/sys/net/core/no_such_limit").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let words = error.to_string();
        assert!(words.starts_with("/proc/sys/net/core/no_such_limit: "), "{words}");
        assert!(words.ends_with("; is /proc mounted?"), "{words}");
    }

    #[test]
    fn the_kernel_always_has_reno() {
        assert!(available_congestion_controls().unwrap().iter().any(|name| name == "reno"));
    }
}
