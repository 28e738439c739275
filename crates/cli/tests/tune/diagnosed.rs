//! `sweetspot diagnose` on downloads that a tuner limits.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sweetspot_linux::clock;
use sweetspot_linux::live::LiveSocket;
use sweetspot_units::{Bytes, Duration};

use crate::download::{clamp, wait_for};
use crate::emulated::{Emulated, SENDS, connection};
use crate::inside::limited;

/// The policy's memory limits a download to less than half of its BDP. `diagnose` must blame the tuner, and no buffer.
fn names_the_tuner(socket: &LiveSocket, scratch: &Path) {
    // The window shrinks only as data arrive: 500 kB in 40 ms.
    clock::sleep_until(clock::now() + Duration::from_secs(1));
    let client = socket.process().pid().to_string();
    let diagnosed = || {
        let output = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
            .args(["diagnose", &client, "--for", "2s", "--json"])
            .env("RUNTIME_DIRECTORY", scratch)
            .output()
            .unwrap();
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["flows"][0].take()
    };
    // On a busy machine the sender or the emulator pauses now and then; the window is then not the limit of those two seconds.
    let flow = wait_for("a download that its window limits", || {
        let flow = diagnosed();
        assert!(!flow["fix"].to_string().contains("SO_RCVBUF"), "{flow}");
        (flow["verdict"]["class"] == "receiver_window").then_some(flow)
    });
    assert!(
        flow["verdict"]["words"].to_string().contains("sweetspot tune holds the window"),
        "{flow}"
    );
}

#[test]
fn diagnose_attributes_a_window_limited_via_pidfd_to_the_tuner() {
    const MEMORY: Bytes = Bytes::new(200_000);
    let scratch = tempfile::tempdir().unwrap();
    let policy = "memory = \"200kB\"\n[[rule]]\nprograms = [\"wanted\"]\ngoal = \"throughput\"\n";
    std::fs::write(scratch.path().join("policy.toml"), policy).unwrap();
    let line = format!(
        "cd {}; ln -s \"$(python3 -c 'import sys; print(sys.executable)')\" wanted; \
         RUNTIME_DIRECTORY=$PWD $SWEETSPOT tune daemon --via pidfd --policy policy.toml --quiet & \
         ./wanted -c \"$CLIENT\" {SENDS} & wait",
        scratch.path().display(),
    );
    let path = "rate=100Mbit/s rtt=40ms buffer=500kB";
    let Some(emulated) = Emulated::start(path, &line) else { return };
    let socket = connection(emulated.client(), SENDS);
    wait_for("the limit", || (clamp(&socket) <= MEMORY).then_some(()));
    names_the_tuner(&socket, scratch.path());
}

#[test]
fn diagnose_attributes_a_window_limited_via_bpf_to_the_tuner() {
    let scratch = tempfile::tempdir().unwrap();
    if let Some(host) = limited(scratch.path()) {
        names_the_tuner(&host.socket, scratch.path());
    }
}
