//! The only crate that touches the kernel: clocks, raw socket options, namespaces, packet rings.
//!
//! It is also the only crate in which `unsafe` may stand; every block says why it is sound.

pub mod clock;
pub mod datagrams;
pub mod diag;
pub mod epoll;
pub mod ethtool;
pub mod event_fd;
pub mod file;
pub mod guardian;
pub mod host;
pub mod interfaces;
pub mod isolation;
pub mod live;
pub mod namespace;
mod netlink;
pub mod packet;
pub mod process;
pub mod processes;
pub mod qdisc;
pub mod scheduling;
pub mod signals;
mod sockopt;
pub mod sysctl;
pub mod tcp;
pub mod udp;

/// A system call's result as Rust has it: -1 means that errno holds the reason.
fn check(result: i32) -> std::io::Result<i32> {
    if result == -1 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}
