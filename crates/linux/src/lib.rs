//! Sweetspot's interface to the Linux kernel: clocks, sockets and their options, namespaces, packet rings.
//!
//! This crate is for the parts of Sweetspot that touch a host: the transfer, the tuner, the emulator and the diagnosis
//! of live connections. Everywhere else, time is an argument. Besides `sweetspot-capi`, this is the only crate with
//! `unsafe` code; a comment on each block says why it is sound.
//!
//! - TCP sockets: [`tcp`] reads `TCP_INFO`, sets options and limits the receive window; [`diag`] lists all
//!   connections of a network namespace; [`live`] borrows sockets of other processes.
//! - Datagrams and packets: [`udp`] with arrival times, [`datagrams`] for load, [`packet`] for whole frames.
//! - Time and waiting: [`clock`], [`epoll`], [`event_fd`], [`signals`], [`lifeline`].
//! - Processes: [`process`] and [`processes`], [`isolation`] in namespaces, [`cgroup`], [`guardian`], [`scheduling`].
//! - Programs in the kernel: [`bpf`] attaches them to cgroups.
//! - The host: [`host`], [`sysctl`], [`interfaces`], [`ethtool`], [`qdisc`], [`route`], [`namespace`], [`mod@file`].
//!
//! # Example
//!
//! The kernel's statistics of a connection over loopback:
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::{TcpListener, TcpStream};
//!
//! use sweetspot_linux::tcp::{Info, options};
//! use sweetspot_units::Bytes;
//!
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let mut sender = TcpStream::connect(listener.local_addr()?)?;
//! let (mut receiver, _) = listener.accept()?;
//! options::set_congestion(&sender, "reno")?;
//! sender.write_all(&[0; 10_000])?;
//! receiver.read_exact(&mut [0; 10_000])?;
//!
//! assert_eq!(options::congestion(&sender)?, "reno");
//! assert_eq!(Info::read(&receiver)?.bytes_received, Bytes::new(10_000));
//! # Ok::<(), std::io::Error>(())
//! ```

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "Sweetspot runs on 64-bit machines only: build it for one (--target x86_64-unknown-linux-gnu or \
     aarch64-unknown-linux-gnu)"
);

pub mod bpf;
pub mod cgroup;
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
pub mod lifeline;
pub mod live;
pub mod namespace;
mod netlink;
pub mod packet;
pub mod process;
pub mod processes;
pub mod qdisc;
pub mod route;
pub mod scheduling;
pub mod signals;
mod sockopt;
pub mod sysctl;
pub mod tcp;
pub mod udp;

/// Converts a system call's result: -1 becomes the error in errno.
fn check(result: i32) -> std::io::Result<i32> {
    if result == -1 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}

/// For `map_err`: adds the name of the failed system call, for callers that cannot tell which it was. A seccomp filter
/// may forbid any call.
fn named(call: &'static str) -> impl FnOnce(std::io::Error) -> std::io::Error {
    move |error| std::io::Error::new(error.kind(), format!("{call}: {error}"))
}
