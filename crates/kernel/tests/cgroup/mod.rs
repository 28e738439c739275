use std::sync::atomic::{AtomicU32, Ordering};

use sweetspot_kernel::{Connections, SocketPrograms, Watch, probe};
use sweetspot_linux::cgroup::Cgroup;
use sweetspot_units::{Bytes, Duration};

/// What the programs look for.
pub const WATCH: Watch = Watch {
    bulk: Bytes::new(60_000),
    within: Duration::from_secs(2),
    interval: Duration::from_millis(3),
    uploads: false,
};

/// Programs on a new cgroup, with nobody in it yet; `None`, with a word why, where they cannot be had.
pub fn programs() -> Option<(Cgroup, SocketPrograms, Connections)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // That the verifier refuses a program is a fault, and no host's lack.
    if let Some(missing) = probe::lacking() {
        sweetspot_testing::skipped(missing);
        return None;
    }
    let (mut programs, connections) = SocketPrograms::load(WATCH).unwrap();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("sweetspot-test-{}-{number}", std::process::id());
    let cgroup = Cgroup::of(std::process::id()).unwrap().create(&name).unwrap();
    programs.attach(&cgroup).unwrap();
    Some((cgroup, programs, connections))
}
