use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use sweetspot_kernel::{Connections, SocketPrograms, Watch, probe};
use sweetspot_linux::cgroup::Cgroup;
use sweetspot_units::{Bytes, Duration};

/// The connections that the programs report.
pub const WATCH: Watch = Watch {
    bulk: Bytes::new(60_000),
    within: Duration::from_secs(2),
    interval: Duration::from_millis(3),
    uploads: false,
    dry_run: false,
};

/// A process in a cgroup with attached programs.
pub struct Inside {
    pub cgroup: Cgroup,
    pub programs: SocketPrograms,
    pub connections: Connections,
    pub process: Child,
}

impl Inside {
    /// Runs `command` in the cgroup of [`programs`].
    pub fn run(on: (Cgroup, SocketPrograms, Connections), command: &mut Command) -> Inside {
        let (cgroup, programs, connections) = on;
        cgroup.enter_on_exec(command).unwrap();
        let process = command.spawn().unwrap();
        Inside { cgroup, programs, connections, process }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.programs.undo();
        let _ = self.cgroup.dissolve();
    }
}

/// Programs attached to a new, empty cgroup; `None`, after printing why, if this host cannot run them.
pub fn programs() -> Option<(Cgroup, SocketPrograms, Connections)> {
    programs_for(WATCH)
}

/// Like [`programs`], reporting connections that match `watch`.
pub fn programs_for(watch: Watch) -> Option<(Cgroup, SocketPrograms, Connections)> {
    let (cgroup, mut programs, connections) = unattached(watch)?;
    programs.attach(&cgroup).unwrap();
    Some((cgroup, programs, connections))
}

/// Like [`programs_for`], but not attached yet.
pub fn unattached(watch: Watch) -> Option<(Cgroup, SocketPrograms, Connections)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // A rejection by a newer kernel's verifier is a bug.
    if let Some(missing) = probe::obstacle() {
        sweetspot_testing::skipped(missing);
        return None;
    }
    let (programs, connections) = SocketPrograms::load(watch).unwrap();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("sweetspot-test-{}-{number}", std::process::id());
    let cgroup = Cgroup::of(std::process::id()).unwrap().create(&name).unwrap();
    Some((cgroup, programs, connections))
}
