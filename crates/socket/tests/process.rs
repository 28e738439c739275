//! The pool of the process and its thread.

use std::io::{Read, Write};

use sweetspot_socket::{Options, SizedSocket};

#[path = "common/mod.rs"]
mod common;
use common::{pair, wait_until};

/// With the thread of the process, and sockets that come and go.
#[test]
fn hundreds_of_sockets_are_served_by_one_thread() {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let pairs: Vec<_> = (0..400).map(|_| pair()).collect();
    let attach = |(near, _): &(_, _)| SizedSocket::attach(near, Options::default()).unwrap();
    let first = attach(&pairs[0]);
    let before = threads();
    let rest: Vec<_> = pairs[1..].iter().map(attach).collect();
    assert_eq!(threads(), before);
    let is_seen = |sized: &SizedSocket| sized.report().unwrap().rtt.is_some();
    wait_until("samples of all", || is_seen(&first) && rest.iter().all(is_seen));
}

#[test]
fn no_handler_of_a_signal_runs_on_the_thread_of_the_library() {
    let (near, _far) = pair();
    let _sized = SizedSocket::attach(&near, Options::default()).unwrap();
    let read = |task: &std::path::Path, file| std::fs::read_to_string(task.join(file));
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let ours =
        |task: &std::path::PathBuf| read(task, "comm").is_ok_and(|name| name == "sweetspot\n");
    let task = tasks.into_iter().find(ours).expect("a thread");
    let status = read(&task, "status").unwrap();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
    // SIGHUP to SIGTERM, but for SIGKILL (9), which nothing blocks.
    for signal in (1..=15).filter(|signal| *signal != 9) {
        assert!(blocked & (1 << (signal - 1)) != 0, "{signal}");
    }
}

#[test]
fn an_observer_that_panics_stops_no_sizing() {
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
    // The thread still samples.
    let before = received();
    wait_until("a sample", || {
        carry();
        received() > before
    });
}
