//! The pool of the process and its thread.

use std::io::{Read, Write};
use std::path::PathBuf;

use sweetspot_socket::{Options, SizedSocket};

#[path = "common/mod.rs"]
mod common;
use common::{pair, wait_until};

/// The library's threads, by their directories in /proc.
fn threads() -> Vec<PathBuf> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    // Threads of the test harness may end at any time.
    let name = |task: &PathBuf| std::fs::read_to_string(task.join("comm")).unwrap_or_default();
    tasks.filter(|task| name(task) == "sweetspot\n").collect()
}

#[test]
fn one_thread_serves_hundreds_of_sockets() {
    let pairs: Vec<_> = (0..400).map(|_| pair()).collect();
    let attach = |(client, _): &(_, _)| SizedSocket::attach(client, Options::default()).unwrap();
    let sized: Vec<_> = pairs.iter().map(attach).collect();
    assert_eq!(threads().len(), 1);
    let is_seen = |sized: &SizedSocket| sized.report().unwrap().rtt.is_some();
    wait_until("samples of all", || sized.iter().all(is_seen));
}

#[test]
fn the_library_thread_blocks_signals() {
    let (client, _server) = pair();
    let _sized = SizedSocket::attach(&client, Options::default()).unwrap();
    let status = std::fs::read_to_string(threads()[0].join("status")).unwrap();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
    // SIGHUP to SIGTERM, except SIGKILL (9), which cannot be blocked.
    for signal in (1..=15).filter(|signal| *signal != 9) {
        assert!(blocked & (1 << (signal - 1)) != 0, "{signal}");
    }
}

#[test]
fn a_panicking_observer_does_not_stop_sizing() {
    let (mut sender, mut receiver) = pair();
    let sizing = sweetspot_socket::SocketSizing::Fixed(sweetspot_units::Bytes::new(300_000));
    let observer: sweetspot_socket::Observer = std::sync::Arc::new(|_: &_| panic!("an observer"));
    let options = Options { sizing, observer: Some(observer), ..Options::default() };
    let sized = SizedSocket::attach(&receiver, options).unwrap();
    let received = || sized.report().unwrap().received;
    let mut carry = || {
        sender.write_all(&[0; 50_000]).unwrap();
        receiver.read_exact(&mut [0; 50_000]).unwrap();
    };
    wait_until("a limit", || {
        carry();
        sized.report().unwrap().limit.is_some()
    });
    // The thread still samples the socket.
    let before = received();
    wait_until("a sample", || {
        carry();
        received() > before
    });
}
