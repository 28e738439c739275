//! Reads the limits that the host sets on socket buffers. Nothing here writes.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

use sweetspot_units::Bytes;

use crate::sockopt;

/// The range within which autotuning adjusts a buffer: `net.ipv4.tcp_rmem` or `net.ipv4.tcp_wmem` of a network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferLimits {
    /// The minimum buffer.
    pub min: Bytes,
    /// The buffer of a new connection (the default).
    pub initial: Bytes,
    /// The maximum buffer.
    pub max: Bytes,
}

/// The largest SO_RCVBUF that may be requested (`net.core.rmem_max`).
pub fn rmem_max() -> io::Result<Bytes> {
    core_limit("/proc/sys/net/core/rmem_max", libc::SO_RCVBUF)
}

/// The largest SO_SNDBUF that may be requested (`net.core.wmem_max`).
pub fn wmem_max() -> io::Result<Bytes> {
    core_limit("/proc/sys/net/core/wmem_max", libc::SO_SNDBUF)
}

/// A limit from `net.core`. On older kernels (5.10, 6.1) these files exist only in the initial network namespace. Elsewhere a
/// scratch socket shows the limit: for a request that is far too large, the kernel grants the limit, doubled (socket(7)).
fn core_limit(path: &str, option: i32) -> io::Result<Bytes> {
    match number(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let scratch = UnixDatagram::unbound()?;
            sockopt::set(&scratch, libc::SOL_SOCKET, option, 1 << 30)?;
            let granted: i32 = sockopt::get(&scratch, libc::SOL_SOCKET, option)?;
            Ok(Bytes::new(granted as u64 / 2))
        }
        read => read.map(Bytes::new),
    }
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

/// The default congestion control of new sockets (`net.ipv4.tcp_congestion_control`).
pub fn default_congestion_control() -> io::Result<String> {
    Ok(read("/proc/sys/net/ipv4/tcp_congestion_control")?.trim().to_owned())
}

/// The congestion controls that a process may use without `CAP_NET_ADMIN` (`net.ipv4.tcp_allowed_congestion_control`).
pub fn allowed_congestion_controls() -> io::Result<Vec<String>> {
    let text = read("/proc/sys/net/ipv4/tcp_allowed_congestion_control")?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Whether the kernel offers this congestion control. With CAP_NET_ADMIN, a request for a missing one makes the kernel load its
/// module (`tcp_ca_find_autoload`, net/ipv4/tcp_cong.c).
pub fn offers_congestion_control(name: &str) -> io::Result<bool> {
    let is_listed = || Ok(available_congestion_controls()?.iter().any(|have| have == name));
    if is_listed()? {
        return Ok(true);
    }
    let Ok(scratch) = TcpListener::bind("127.0.0.1:0") else { return Ok(false) };
    let _ = sockopt::set_from(&scratch, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes());
    is_listed()
}

fn number(path: &str) -> io::Result<u64> {
    parse(path, read(path)?.trim())
}

/// Reads the file; an error includes its name and the next step.
fn read(path: &str) -> io::Result<String> {
    fs::read_to_string(path).map_err(|error| {
        io::Error::new(error.kind(), format!("{path}: {error}; is /proc mounted?"))
    })
}

fn autotuning(path: &str) -> io::Result<BufferLimits> {
    let text = read(path)?;
    let mut words = text.split_whitespace();
    let mut next = || parse(path, words.next().unwrap_or("")).map(Bytes::new);
    Ok(BufferLimits { min: next()?, initial: next()?, max: next()? })
}

fn parse(path: &str, text: &str) -> io::Result<u64> {
    text.parse().map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{path} holds \"{text}\", not a number"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autotuning_limits_are_in_ascending_order() {
        for limits in [tcp_rmem().unwrap(), tcp_wmem().unwrap()] {
            assert!(limits.min <= limits.max, "{limits:?}");
        }
    }

    #[test]
    fn an_unreadable_sysctl_is_named_with_the_next_step() {
        let error = number("/proc/sys/net/core/no_such_limit").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let words = error.to_string();
        assert!(words.starts_with("/proc/sys/net/core/no_such_limit: "), "{words}");
        assert!(words.ends_with("; is /proc mounted?"), "{words}");
    }

    #[test]
    fn a_scratch_socket_shows_the_limit_from_the_sysctl_file() {
        let missing = "/proc/sys/net/core/no_such_limit";
        if let Ok(limit) = number("/proc/sys/net/core/rmem_max") {
            let shown = core_limit(missing, libc::SO_RCVBUF).unwrap();
            assert_eq!(shown, Bytes::new(limit));
        }
        if let Ok(limit) = number("/proc/sys/net/core/wmem_max") {
            let shown = core_limit(missing, libc::SO_SNDBUF).unwrap();
            assert_eq!(shown, Bytes::new(limit));
        }
    }

    #[test]
    fn the_kernel_always_has_reno() {
        assert!(available_congestion_controls().unwrap().iter().any(|name| name == "reno"));
    }
}
