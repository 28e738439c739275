use std::path::Path;

use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::signals::Signal;
use sweetspot_linux::tcp::{Info, options};
use sweetspot_units::{Duration, Rate};

use crate::download::wait_for;
use crate::emulated::{Emulated, RECEIVES, connection};

/// One BDP is 125 kB; the buffer holds two BDPs.
const PATH: &str = "rate=50Mbit/s rtt=20ms buffer=250kB";

/// An upload that has been held, with its log.
fn held(scratch: &Path) -> Option<(Emulated, LiveSocket)> {
    let log = scratch.join("events.jsonl");
    let line = format!(
        "python3 -c \"$CLIENT\" {RECEIVES} & \
         $SWEETSPOT tune attach --send --quiet --events {} $!; wait",
        log.display()
    );
    let emulated = Emulated::start(PATH, &line)?;
    let event = wait_for("held", || event(&log, "held"));
    let near = emulated.processes("python3", 2);
    // One of these processes is the server at the far end.
    let client = near.into_iter().find(|pid| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.ends_with(b"9090\0")
    });
    let socket = connection(client.unwrap(), RECEIVES);
    // 1448 of 1500 bytes are payload: 48.3 Mbit/s. A busy machine may show a higher rate at first.
    let path = Rate::from_mbit_per_second(44)..Rate::from_mbit_per_second(49);
    let mut looks = 0;
    wait_for("the path's rate", || {
        let held = pace(&socket).is_some_and(|pace| path.contains(&pace));
        looks = if held { looks + 1 } else { 0 };
        // Five samples fall between two trials of a faster rate; a trial may come every seven RTTs.
        (looks == 5).then_some(())
    });
    assert_eq!(event["pace_from_bps"].is_u64(), event["pace_kernel_bps"].is_u64());
    Some((emulated, socket))
}

fn event(log: &Path, kind: &str) -> Option<serde_json::Value> {
    let text = std::fs::read_to_string(log).ok()?;
    let mut events = text.lines().filter_map(|l| serde_json::from_str(l).ok());
    events.find(|event: &serde_json::Value| event["event"] == kind)
}

fn pace(socket: &LiveSocket) -> Option<Rate> {
    socket.with(|fd| options::max_pacing_rate(fd)).unwrap().unwrap()
}

#[test]
fn an_upload_is_paced_via_pidfd_and_its_queue_drains() {
    let scratch = tempfile::tempdir().unwrap();
    let Some((emulated, socket)) = held(scratch.path()) else { return };
    // Without a tuner, two BDPs (40 ms) would stand in the buffer.
    wait_for("an empty buffer", || {
        let info = socket.with(|fd| Info::read(fd)).unwrap().unwrap();
        (info.rtt < Duration::from_millis(26)).then_some(())
    });
    // When asked to end, the tuner lifts the limit and logs it.
    Signal::TERMINATE.send(emulated.tuner()[0]);
    wait_for("the end of pacing", || pace(&socket).is_none().then_some(()));
    let lifted = wait_for("lifted", || event(&scratch.path().join("events.jsonl"), "lifted"));
    assert!(lifted["pace_from_bps"].is_u64() && lifted["pace_to_bps"].is_null(), "{lifted}");
    // The log has every change of the pacing rate, including the beginning and end of trials.
    let text = std::fs::read_to_string(scratch.path().join("events.jsonl")).unwrap();
    let events: Vec<serde_json::Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let paced: Vec<_> = events.iter().filter(|event| event.get("pace_to_bps").is_some()).collect();
    for pair in paced.windows(2) {
        assert_eq!(pair[0]["pace_to_bps"], pair[1]["pace_from_bps"], "{pair:?}");
    }
}

#[test]
fn a_pacing_rate_is_lifted_when_the_tuner_is_killed() {
    let scratch = tempfile::tempdir().unwrap();
    let Some((emulated, socket)) = held(scratch.path()) else { return };
    Signal::KILL.send(emulated.tuner()[1]);
    wait_for("the end of pacing", || pace(&socket).is_none().then_some(()));
}

#[test]
fn a_dry_run_names_the_pacing_rate_it_would_set() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path();
    let line = format!(
        "python3 -c \"$CLIENT\" {RECEIVES} & \
         $SWEETSPOT tune attach --send --dry-run --events {0}/events {1} $! 2>{0}/messages; wait",
        path.display(),
        "--via pidfd",
    );
    let Some(emulated) = Emulated::start(PATH, &line) else { return };
    let event = wait_for("taken", || event(&path.join("events"), "taken"));
    assert_eq!(event["dry_run"], true);
    assert!(event["pace_to_bps"].is_u64() && event["pace_from_bps"].is_null(), "{event}");
    let messages = || std::fs::read_to_string(path.join("messages")).unwrap_or_default();
    let would = wait_for("the line", || {
        messages().lines().find(|line| line.contains(": would pace it at ")).map(str::to_owned)
    });
    assert!(would.starts_with("sweetspot: dry run: python3[") && !would.contains("SO_"), "{would}");
    drop(emulated);
}
