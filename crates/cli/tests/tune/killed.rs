//! The limits left after the tuner's processes are killed.

use std::path::Path;
use std::process::Command;

use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::processes::{self, Process};
use sweetspot_linux::signals::Signal;
use sweetspot_units::Bytes;

use crate::download::{Server, Tuned, clamp, is_lifted, wait_for};
use crate::laws::quiet;

/// A download with a limited window, paused by the server, and its clamp.
fn limited(server: &Server, tuned: &Tuned) -> (LiveSocket, Bytes) {
    tuned.wait_for_event("taken");
    let connection = tuned.connection();
    quiet(server, &connection);
    let held = clamp(&connection);
    (connection, held)
}

/// The tuner's processes: those with the scratch directory on their command line.
fn tuners(scratch: &Path) -> Vec<u32> {
    let directory = scratch.display().to_string();
    let is_tuner = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let sweetspot = Process::read(*pid).is_ok_and(|process| process.name == "sweetspot");
        sweetspot && String::from_utf8_lossy(&line).contains(&directory)
    };
    processes::all().unwrap().into_iter().filter(is_tuner).collect()
}

fn none_runs(scratch: &Path) -> Option<()> {
    tuners(scratch).is_empty().then_some(())
}

/// Kills processes together: it first stops all of them, so that none can react to the end of another.
fn kill_at_once(all: &[u32]) {
    let pids = all.iter().map(u32::to_string);
    // Uses the shell's builtin, because not every host has a kill program.
    let stop = Command::new("sh").args(["-c", "kill -STOP \"$@\"", "sh"]).args(pids).status();
    assert!(stop.unwrap().success());
    all.iter().for_each(|pid| Signal::KILL.send(*pid));
}

#[test]
fn limits_are_lifted_when_the_tuner_and_its_guardian_are_killed() {
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let tuned = Tuned::start(server.port, scratch.path(), &[]);
    let (connection, held) = limited(&server, &tuned);
    kill_at_once(&[tuned.guardian.id(), tuned.tuner()]);
    wait_for("the end of the limit", || is_lifted(&connection, held).then_some(()));
    wait_for("the end of the last guardian", || none_runs(scratch.path()));
    server.stop();
}

#[test]
fn undo_lifts_the_limits_of_a_killed_tuner() {
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let tuned = Tuned::start(server.port, scratch.path(), &[]);
    let (connection, held) = limited(&server, &tuned);
    let all = tuners(scratch.path());
    assert_eq!(all.len(), 3, "tuner, guardian, last guardian");
    kill_at_once(&all);
    wait_for("the end of all three", || none_runs(scratch.path()));
    assert_eq!(clamp(&connection), held);
    let undo = || {
        let mut undo = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        undo.args(["tune", "undo"]).env("RUNTIME_DIRECTORY", scratch.path());
        String::from_utf8(undo.output().unwrap().stdout).unwrap()
    };
    assert_eq!(undo(), "lifted the limits of a killed tuner on 1 connection\n");
    assert!(is_lifted(&connection, held));
    assert_eq!(undo(), "killed tuners left no limits\n");
    server.stop();
}
