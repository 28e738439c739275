//! Attached and detached over and over, nothing is left behind.

use sweetspot_socket::{Options, Pool, SizedSocket, now};

#[path = "common/mod.rs"]
mod common;
use common::{pair, wait_until};

const CYCLES: usize = 100_000;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Resident memory in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn attaching_and_detaching_leaves_neither_descriptors_nor_memory_behind() {
    let pool = Pool::new().unwrap();
    let (_peer, stream) = pair();
    let cycle = |_| {
        let sized = pool.attach(&stream, Options::default()).unwrap();
        pool.poll(now());
        drop(sized);
    };
    // Allocators and caches have their size after this.
    (0..CYCLES / 10).for_each(cycle);
    let (descriptors_before, resident_before) = (descriptors(), resident());
    (0..CYCLES).for_each(cycle);
    assert_eq!(descriptors(), descriptors_before);
    assert_eq!(pool.sockets(), 0);
    // 10 bytes a cycle would be 1 MB.
    let grown = resident().saturating_sub(resident_before);
    assert!(grown < 1_000_000, "{grown} bytes");
}

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
