//! No verb outlives its cause: tests every long-running verb with everything that may end it.
//!
//! The tests do not check exact times, because a loaded machine is slow. A process that does not end at all fails the
//! test.

mod copy;
mod started;
mod verbs;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use sweetspot_linux::signals::Signal;

use started::{Started, Surroundings, program};
use verbs::{Output, VERBS, Verb};

/// Everything that may end a verb.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cause {
    /// A signal from another process.
    Signal(Signal),
    /// A signal, with all standard streams closed from the start.
    WithoutStreams,
    /// Its terminal is closed.
    NoTerminal,
    /// The reader of its standard output has ended.
    NoReader,
    /// SIGKILL; processes that the verb started must not outlive it.
    Killed,
}

const CAUSES: [Cause; 8] = [
    Cause::Signal(Signal::TERMINATE),
    Cause::Signal(Signal::INTERRUPT),
    Cause::Signal(Signal::HANG_UP),
    Cause::Signal(Signal::BROKEN_PIPE),
    Cause::WithoutStreams,
    Cause::NoTerminal,
    Cause::NoReader,
    Cause::Killed,
];

/// Runs one verb, ends it by `cause`, and returns the error, if any.
fn outlives(verb: &Verb, cause: Cause, around: &Surroundings) -> Option<String> {
    if verb.needs_terminal && !matches!(cause, Cause::NoTerminal) {
        return None;
    }
    let mut started = match cause {
        Cause::NoTerminal => Started::on_terminal(verb, around),
        Cause::WithoutStreams => Started::without_streams(verb, around),
        _ => Started::on_pipes(verb, around),
    };
    match started.wait_until_ready(verb) {
        // Some verbs end when standard input ends.
        Err(_) if cause == Cause::WithoutStreams => {}
        Err(why) => return Some(why),
        Ok(()) => {}
    }
    match cause {
        Cause::Signal(signal) => signal.send(started.pid),
        Cause::WithoutStreams => Signal::TERMINATE.send(started.pid),
        Cause::Killed => Signal::KILL.send(started.pid),
        Cause::NoTerminal => started.close_terminal(),
        Cause::NoReader => {
            started.close_output();
            if verb.output == Output::Aside {
                // The verb continues: the caller may have read only the first line.
                Signal::TERMINATE.send(started.pid);
            }
        }
    }
    let killed = cause == Cause::Killed;
    started.leftovers(killed, killed && verb.leaves_command)
}

#[test]
fn every_verb_exits_on_a_signal_closed_terminal_or_lost_reader() {
    let Some(around) = Surroundings::new() else { return };
    let is_built = |verb: &&Verb| {
        let found = Path::new(&program(verb)).exists();
        if !found {
            sweetspot_testing::skipped(format!(
                "{}: no sweetspot-research (cargo build -p sweetspot-research)",
                verb.name
            ));
        }
        found
    };
    // A verb started with an ignored signal keeps ignoring it. A closed terminal sends SIGHUP.
    let mut causes = CAUSES.to_vec();
    causes.retain(|cause| match cause {
        Cause::Signal(signal) => !sweetspot_testing::is_ignored(signal.number()),
        Cause::NoTerminal => !sweetspot_testing::is_ignored(Signal::HANG_UP.number()),
        _ => true,
    });
    let runs = VERBS.iter().filter(is_built);
    let runs = runs.flat_map(|verb| causes.iter().map(move |cause| (verb, *cause)));
    let (runs, wrong) = (Mutex::new(runs), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let next = || runs.lock().unwrap().next();
                while let Some((verb, cause)) = next() {
                    if let Some(why) = outlives(verb, cause, &around) {
                        eprintln!("{} by {cause:?}: {why}", verb.name);
                        wrong.lock().unwrap().push(format!("{} by {cause:?}: {why}", verb.name));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same as under nohup(1): SIGHUP is ignored from the start.
#[test]
fn a_server_under_nohup_survives_sighup_and_ends_on_sigterm() {
    let scratch = tempfile::tempdir().unwrap();
    let mut server = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" serve --dir . --listen 127.0.0.1:0"])
        .arg(env!("CARGO_BIN_EXE_sweetspot"))
        .current_dir(scratch.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ticket = String::new();
    let output = server.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut ticket).unwrap();
    Signal::HANG_UP.send(server.id());
    // The server can still receive a file.
    let mut sender = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    sender.args(["send", "-", ticket.trim(), "--name", "kept", "--quiet"]).stdin(Stdio::piped());
    let mut sender = sender.spawn().unwrap();
    sender.stdin.take().unwrap().write_all(b"content").unwrap();
    assert!(sender.wait().unwrap().success());
    assert_eq!(std::fs::read(scratch.path().join("kept")).unwrap(), b"content");
    Signal::TERMINATE.send(server.id());
    server.wait().unwrap();
}
