//! Repeated attaching and detaching leaves nothing behind. The only test of its process, so that no other test opens
//! descriptors meanwhile.

use sweetspot_socket::{Options, Pool, now};

#[path = "common/mod.rs"]
mod common;
use common::pair;

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
fn attaching_and_detaching_leaks_no_descriptors_or_memory() {
    let pool = Pool::new().unwrap();
    let (_peer, stream) = pair();
    let cycle = |n| {
        let sized = pool.attach(&stream, Options::default()).unwrap();
        // Rarely, so that leftovers that only polls would remove are noticed.
        if n % 1000 == 0 {
            pool.poll(now());
        }
        drop(sized);
    };
    // After this, allocators and caches have reached their size.
    (0..CYCLES / 10).for_each(cycle);
    let (descriptors_before, resident_before) = (descriptors(), resident());
    (0..CYCLES).for_each(cycle);
    assert_eq!(descriptors(), descriptors_before);
    assert_eq!(pool.sockets(), 0);
    // A leak of 8 bytes per cycle would be 800 kB.
    let grown = resident().saturating_sub(resident_before);
    assert!(grown < 400_000, "{grown} bytes");
}
