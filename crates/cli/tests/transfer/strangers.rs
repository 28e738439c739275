//! Limits on a service's peers: codes, one-time tickets, connections, measurements, and the clients file.

use std::fs;
use std::process::Command;
use std::sync::{Barrier, Mutex};
use std::thread;

use sweetspot_hostile_peer::{Dial, Raw, Received};
use sweetspot_linux::process;
use sweetspot_protocol::clients::Credential;
use sweetspot_protocol::{MeasureMessage, Message, Role, Secret, Ticket};

use crate::running::{Ended, SWEETSPOT, Serve, eventually, file, names, send, signal};
use crate::service::Service;

/// The number of simultaneous connections.
const CROWD: usize = 30;

const CODE: &str = "code:7-crisp-lemon-orbit guest dir=DIR once\n";

fn secret(number: u8) -> Secret {
    Secret([number; 16])
}

/// A line of a clients file.
fn line(number: u8, name: &str, options: &str) -> String {
    format!("{} {name} dir=DIR {options}\n", Credential::Secret(secret(number)))
}

fn dial(number: u8) -> Dial<'static> {
    Dial { secret: Some(secret(number)), ..Dial::default() }
}

/// Completes the transfer of one file of three bytes.
fn finish(raw: &mut Raw) {
    raw.piece(0, b"abc");
    raw.listed(1, 1, 3);
    raw.send_message(&Message::End);
    raw.wait_for(|received| {
        matches!(received, Received::Message(Message::ReceiverSummary(_))).then_some(())
    });
}

fn is_welcome(received: &Received) -> bool {
    matches!(received, Received::Message(Message::Welcome { .. }))
}

/// Runs `work` in [`CROWD`] threads that start at the same time, and returns the results.
fn at_once<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(CROWD);
    thread::scope(|scope| {
        let run = |i| {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(i)
            })
        };
        let threads: Vec<_> = (0..CROWD).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn concurrent_connections_share_one_attempt_at_a_code() {
    let service = Service::start(CODE);
    let ticket = service.serve.ticket();
    // All connect before any tries a code, and stay connected until all have tried.
    let raws: Vec<_> = (0..CROWD).map(|_| Mutex::new(Raw::connect(&ticket))).collect();
    let tried = at_once(|i| {
        raws[i].lock().unwrap().try_code(7, &format!("7-crisp-lemon-wrong{i}")).is_ok()
    });
    assert_eq!(tried.into_iter().filter(|tried| *tried).count(), 1);
    drop(raws);
    // The correct code comes too late.
    let refused = Raw::connect(&ticket).try_code(7, "7-crisp-lemon-orbit").unwrap_err();
    assert!(
        refused.reason().is_some_and(|r| r.contains("a wrong attempt has invalidated it")),
        "{refused:?}"
    );
    assert!(!service.scratch.join("alice").exists());
}

#[test]
fn a_code_guess_counts_even_if_its_connection_ends_before_the_proof() {
    let service = Service::start(CODE);
    let ticket = service.serve.ticket();
    let mut raw = Raw::connect(&ticket);
    raw.try_code(7, "7-crisp-lemon-wrong").unwrap();
    drop(raw);
    assert!(Raw::connect(&ticket).try_code(7, "7-crisp-lemon-orbit").is_err());
}

#[test]
fn a_one_code_server_exits_when_its_code_is_invalidated() {
    let serve = Serve::start(&["--spoken-code"]);
    let (address, code) = serve.ticket.rsplit_once('/').unwrap();
    let (_, port) = address.rsplit_once(':').unwrap();
    let (number, _) = code.split_once('-').unwrap();
    let number = number.parse().unwrap();
    // The connection for the code presents an arbitrary certificate.
    let other = Serve::start(&[]);
    let dial = Dial { port: Some(port.parse().unwrap()), ..Dial::default() };
    let mut raw = Raw::dial(&other.ticket(), &dial).unwrap();
    raw.try_code(number, &format!("{number}-not-the-code")).unwrap();
    raw.send_message(&raw.hello());
    assert!(raw.next().reason().is_some());
    let ended = serve.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("a wrong attempt has invalidated the code"), "{ended:?}");
}

#[test]
fn a_one_transfer_ticket_admits_one_of_many_concurrent_connections() {
    let service = Service::start(&line(1, "guest", "once"));
    let ticket = service.serve.ticket();
    let raws: Vec<_> =
        (0..CROWD).map(|_| Mutex::new(Raw::dial(&ticket, &dial(1)).unwrap())).collect();
    let received = at_once(|i| {
        let mut raw = raws[i].lock().unwrap();
        let hello = raw.hello();
        raw.send_message(&hello);
        is_welcome(&raw.next())
    });
    assert_eq!(received.into_iter().filter(|welcome| *welcome).count(), 1);
}

/// Runs `sweetspot send` with three bytes and this ticket.
fn send_three(ticket: &str, arguments: &[&str]) -> Ended {
    let (file, _) = file(3);
    send(file.path(), ticket, arguments)
}

#[test]
fn a_one_transfer_ticket_is_valid_until_a_transfer_completes() {
    let service = Service::start("");
    let invited = service.invite(&[]).stdout;
    let text = invited.trim();
    let ticket: Ticket = text.parse().unwrap();
    let rehearsed = send_three(text, &["-n", "--name", "f"]);
    assert_eq!(rehearsed.code, Some(0), "{rehearsed:?}");
    let uses = || fs::read_to_string(service.scratch.join("state/uses.json")).unwrap_or_default();
    let is_unused = || !uses().contains("transfer");
    eventually("a dry run leaves it unused", is_unused);
    fs::write(service.scratch.join("guest/f"), "other content").unwrap();
    send_three(text, &["--name", "f"]).failed_saying(&["f already exists"]);
    eventually("a refusal leaves it unused", is_unused);
    // A transfer with this ticket runs, and breaks.
    let running = Raw::accepted_as(&ticket, &Dial::default());
    send_three(text, &["--name", "g"]).failed_saying(&["another transfer", "is running"]);
    drop(running);
    let sent = send_three(text, &["--name", "g"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(uses().contains(r#""completed":true"#), "on disk before its sender knows: {}", uses());
    send_three(text, &["--name", "h"]).failed_saying(&["already been used"]);
    send_three(text, &["-n", "--name", "h"]).failed_saying(&["already been used"]);
    assert_eq!(names(&service.scratch.join("guest")), ["f", "g"]);
}

/// The key of a service persists: the client continues with the restarted service.
#[test]
fn a_stopping_service_sends_its_clients_no_rejection() {
    let service = Service::start(&line(1, "guest", ""));
    let mut running = Raw::accepted_as(&service.serve.ticket(), &dial(1));
    signal(&service.serve.child, "TERM");
    let received = running.drain();
    assert!(received.iter().all(|received| received.reason().is_none()), "{received:?}");
}

#[test]
fn a_busy_server_does_not_use_up_a_ticket() {
    // 64 of 320 descriptors are reserved, and half of the others are for sessions of 128 each: there is room
    // for one.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 320; exec \"$0\" \"$@\"", SWEETSPOT]);
    let lines = line(1, "alice", "") + &line(2, "guest", "once");
    let service = Service::start_by(command, &lines);
    let ticket = service.serve.ticket();
    // Each one is for a separate transfer.
    let answer = || {
        let mut raw = Raw::dial(&ticket, &dial(2)).unwrap();
        raw.send_message(&raw.hello());
        raw.next()
    };
    let alice = Raw::accepted_as(&ticket, &dial(1));
    let refused = answer();
    assert!(refused.reason().is_some_and(|r| r.contains("try again when one")), "{refused:?}");
    drop(alice);
    eventually("the ticket is good for another try", || is_welcome(&answer()));
}

#[test]
fn a_used_ticket_cannot_measure() {
    let service = Service::start("");
    let text = service.invite(&[]).stdout;
    let ticket: Ticket = text.trim().parse().unwrap();
    let measure = || {
        let mut raw = Raw::connect(&ticket);
        raw.send_message(&raw.hello_with(Role::Receiver, true, true));
        raw.next()
    };
    assert!(is_welcome(&measure()), "it is good until its transfer has ended");
    let (file, _) = file(1000);
    assert_eq!(service.send(file.path(), "f", text.trim()).code, Some(0));
    // The sender ends first; only then the service records that the transfer is done.
    let refused = || measure().reason().is_some_and(|r| r.contains("already been used"));
    eventually("a ticket that is used up is refused", refused);
}

#[test]
fn a_measurement_is_logged_with_its_address() {
    let mut serve = Serve::start(&[]);
    let mut measure = Command::new(SWEETSPOT);
    measure.args(["measure", &serve.ticket, "--budget", "20kB", "--json"]);
    assert!(measure.output().unwrap().status.success());
    serve.read_until(" measured the path");
}

#[test]
fn serve_prints_the_address_in_its_ticket_and_warns_of_an_unknown_congestion_control() {
    let serve = Serve::start(&["--listen", "0.0.0.0:0", "--congestion", "nosuch"]);
    let ticket = serve.ticket();
    let ended = serve.interrupt();
    assert!(ended.stderr.contains("this kernel does not offer it"), "{ended:?}");
    // Without another address, the ticket names loopback, and a warning says so.
    let host = ticket.host.to_string();
    let words = match host.starts_with("127.") {
        true => "the ticket names loopback".to_owned(),
        false => format!("the ticket names {host}:{}; --advertise", ticket.port),
    };
    assert!(ended.stderr.contains(&words), "{ended:?}");
}

#[test]
fn a_measurement_ends_when_its_client_is_removed_from_the_file() {
    let service = Service::start(&(line(1, "alice", "") + &line(2, "bob", "")));
    let mut raw = Raw::dial(&service.serve.ticket(), &dial(1)).unwrap();
    raw.send_message(&raw.hello_with(Role::Receiver, true, true));
    assert!(is_welcome(&raw.next()));
    raw.send_message(&Message::Measure(MeasureMessage::Fill {
        duration_ms: 60_000,
        max_bytes: 1 << 50,
    }));
    assert!(raw.next_frame().unwrap().is_some(), "content comes");
    service.edit(&line(2, "bob", ""));
    // A complete measurement ends with a message.
    let mut last = 0;
    while let Ok(Some((kind, _))) = raw.next_frame() {
        last = kind;
    }
    assert_eq!(last, 0, "content, to the end");
}

#[test]
fn a_transfer_has_at_most_64_connections() {
    let service = Service::start(&line(1, "alice", ""));
    let ticket = service.serve.ticket();
    let first = Raw::accepted_as(&ticket, &dial(1));
    let join = |_| {
        let mut raw = first.join(&ticket, &dial(1), Role::Sender).unwrap();
        assert!(is_welcome(&raw.next()));
        raw
    };
    // With the first connection, there are 64: sweetspot_protocol::MAX_STREAMS.
    let mut further: Vec<Raw> = (0..66).map(join).collect();
    for raw in &mut further[63..] {
        let refused = raw.next();
        assert!(refused.reason().is_some_and(|r| r.contains("connections")), "{refused:?}");
    }
}

#[test]
fn one_client_cannot_exhaust_the_file_descriptors() {
    // Without a limit, a server would run out of 2,048 descriptors: 36 sessions have 2,304 connections.
    process::raise_descriptor_limit().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 2048; exec \"$0\" \"$@\"", SWEETSPOT]);
    let lines = line(1, "mallory", "") + &line(2, "alice", "");
    let service = Service::start_by(command, &lines);
    let ticket = service.serve.ticket();
    let mut alice = Raw::accepted_as(&ticket, &dial(2));
    alice.list("f", 3);
    alice.next_record();
    let mut held = Vec::new();
    'sessions: for _ in 0..36 {
        let mut first = Raw::dial(&ticket, &dial(1)).unwrap();
        first.send_message(&first.hello());
        if !is_welcome(&first.next()) {
            break;
        }
        first.send_message(&sweetspot_hostile_peer::offer());
        if !matches!(first.next(), Received::Message(Message::Accept(_))) {
            break;
        }
        for _ in 0..63 {
            let Ok(raw) = first.join(&ticket, &dial(1), Role::Sender) else { break 'sessions };
            held.push(raw);
        }
        held.push(first);
    }
    // The transfer of another client completes, and a new one is served by the current file.
    finish(&mut alice);
    service.edit(&(lines.clone() + &line(3, "bob", "")));
    let mut bob = Raw::dial(&ticket, &dial(3)).unwrap();
    bob.send_message(&bob.hello());
    bob.offer(&sweetspot_hostile_peer::offer());
}

#[test]
fn a_missing_or_invalid_clients_file_disconnects_nobody() {
    let mut service = Service::start(&line(1, "alice", ""));
    let ticket = service.serve.ticket();
    let mut raw = Raw::accepted_as(&ticket, &dial(1));
    raw.list("f", 3);
    raw.next_record();
    let clients = service.scratch.join("clients");
    fs::remove_file(&clients).unwrap();
    service.serve.read_until("its last valid version stays in force");
    drop(Raw::accepted_as(&ticket, &dial(1)));
    // A line with a mistake, and a correct second line.
    let bob = line(2, "bob", "");
    service.edit(&(line(1, "alice", "") + "nonsense\n" + &bob));
    service.serve.read_until("line 2: it is too short");
    drop(Raw::accepted_as(&ticket, &dial(2)));
    // Only half of the second line has been written.
    let half = line(1, "alice", "") + &bob[..bob.len() / 2];
    fs::write(&clients, half.replace("DIR", "/srv")).unwrap();
    service.serve.read_until("half-written");
    drop(Raw::accepted_as(&ticket, &dial(2)));
    // The transfer that was running throughout completes.
    finish(&mut raw);
    assert!(names(&service.scratch.join("alice")).contains(&"f".to_owned()));
    signal(&service.serve.child, "TERM");
    let ended = service.serve.wait();
    // Each error is reported only once.
    assert!(!ended.stderr.contains("clients:"), "{ended:?}");
}
