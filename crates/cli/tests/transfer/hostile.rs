//! Peers that are hostile or that die.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use sweetspot_hostile_peer::{Raw, offer, piece};
use sweetspot_linux::clock;
use sweetspot_protocol::record::Record;
use sweetspot_protocol::{Message, frame};
use sweetspot_units::Duration;

use crate::running::{Ended, SWEETSPOT, Serve, eventually, file, send, wait};

/// Asserts that an honest transfer still succeeds, and ends the server.
fn still_serves(serve: Serve) -> Ended {
    let (file, content) = file(1000);
    assert_eq!(send(file.path(), &serve.ticket, &["--name", "honest"]).code, Some(0));
    assert_eq!(std::fs::read(serve.directory.join("honest")).unwrap(), content);
    eventually("only the honest file remains", || serve.names() == ["honest"]);
    let ended = serve.interrupt();
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    ended
}

#[test]
fn a_connection_without_tls_is_dropped_and_logged_once() {
    let serve = Serve::start(&[]);
    let mut socket = TcpStream::connect(("127.0.0.1", serve.ticket().port)).unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    let ended = still_serves(serve);
    assert_eq!(ended.stderr.matches("no secure connection").count(), 1, "{ended:?}");
}

/// The default listener takes IPv4 connections as IPv6 ones. Their ports differ, but not the host in the log.
#[test]
fn repeated_rejections_of_an_ipv4_host_are_counted_on_an_ipv6_listener() {
    let scratch = tempfile::tempdir().unwrap();
    let audit = scratch.path().join("audit");
    let serve = Serve::start(&["--listen", "[::]:0", "--audit", audit.to_str().unwrap()]);
    for _ in 0..3 {
        let mut socket = TcpStream::connect(("127.0.0.1", serve.ticket().port)).unwrap();
        socket.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
    }
    let ended = still_serves(serve);
    assert_eq!(ended.stderr.matches("no secure connection").count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("2 more connections were not admitted"), "{ended:?}");
    let log = std::fs::read_to_string(audit).unwrap();
    assert_eq!(log.matches("\"refused\"").count(), 3, "{log}");
    assert!(!log.contains("::ffff:"), "{log}");
}

#[test]
fn a_peer_that_hangs_up_during_the_handshake_is_dropped() {
    let mut serve = Serve::start(&[]);
    drop(TcpStream::connect(("127.0.0.1", serve.ticket().port)).unwrap());
    serve.read_until("closed the connection without sending data");
    still_serves(serve);
}

#[test]
fn unauthenticated_peers_can_neither_read_nor_write() {
    let serve = Serve::start(&[]);
    let ticket = serve.ticket();
    // Content, an end, an oversized frame, an unknown kind, an empty frame, and no JSON, each before any hello.
    let header = frame::PieceHeader { entry: 0, piece: 0, hash: [0; 32], length: 3 };
    let content = [&header.to_bytes()[..], b"abc"].concat();
    let end = Message::End.to_frame();
    let oversized = [1, 0xff, 0xff, 0xff, 0xff];
    let unknown = [9, 0, 0, 0, 1, 0];
    let empty = [1, 0, 0, 0, 0];
    let no_json = frame::message(b"not json");
    for bytes in [&content[..], &end, &oversized, &unknown, &empty, &no_json] {
        let mut raw = Raw::connect(&ticket);
        raw.send(bytes);
        let answer = raw.read_all_text();
        assert!(answer.contains("the handshake was not understood"), "{answer}");
        assert!(serve.names().is_empty());
    }
    let ended = still_serves(serve);
    assert_eq!(ended.stderr.matches("and was dropped").count(), 6, "{ended:?}");
}

#[test]
fn a_proof_replayed_from_another_connection_is_rejected() {
    let serve = Serve::start(&[]);
    let ticket = serve.ticket();
    let overheard = Raw::connect(&ticket).hello();
    let mut raw = Raw::connect(&ticket);
    raw.send_message(&overheard);
    assert!(raw.read_all_text().contains("secret is wrong"));
    still_serves(serve);
}

#[test]
fn an_admitted_peer_that_violates_the_protocol_leaves_no_files() {
    let serve = Serve::start(&[]);
    let ticket = serve.ticket();
    type Step = fn(&mut Raw);
    let cases: [(Step, &str); 8] = [
        (|raw| raw.piece(0, &[7; 999]), "piece 0 with a wrong length"),
        (|raw| raw.piece(1, &[7; 1000]), "piece 1 with a wrong length"),
        (|raw| raw.send(&[0, 0xff, 0xff, 0xff, 0xff]), "above the limit of 262184"),
        (|raw| raw.send_message(&Message::End), "sent end while content was still due"),
        (|raw| raw.send_message(&offer()), "sent offer while content was still due"),
        (|raw| raw.end(7, 1000), "entry 7, which is not open"),
        (|raw| raw.end(0, 999), "did not send the 1000 bytes"),
        (
            |raw| raw.send(&Record::Answers(vec![]).to_frame()),
            "sent answers while content was still due",
        ),
    ];
    for (step, words) in cases {
        let mut raw = Raw::accepted(&ticket);
        raw.list("f", 1000);
        raw.next_record();
        step(&mut raw);
        let answer = raw.read_all_text();
        assert!(answer.contains(words), "{words}: {answer}");
    }
    still_serves(serve);
}

/// Before it has answered, a server accepts only the announced amount of early content, once per entry and never a whole
/// piece.
#[test]
fn excess_early_content_leaves_no_files() {
    let serve = Serve::start(&[]);
    let ticket = serve.ticket();
    let early = |entry, length| Record::Early { entry, content: vec![7; length] }.to_frame();
    let again = [early(0, 10), early(0, 10)].concat();
    for (bytes, words) in [
        (early(0, (64 << 10) + 1), "early content beyond the allowed amount"),
        (early(1, 10), "early content for an entry that accepts none"),
        (early(0, 0), "early content for an entry that accepts none"),
        (again, "early content for an entry that accepts none"),
    ] {
        let mut raw = Raw::accepted(&ticket);
        raw.list("f", 1000);
        raw.send(&bytes);
        let answer = raw.read_all_text();
        assert!(answer.contains(words), "{words}: {answer}");
    }
    // A piece that is neither whole nor lacks only its beginning.
    let mut raw = Raw::accepted(&ticket);
    raw.list("f", 1000);
    raw.send(&early(0, 990));
    raw.next_record();
    raw.send(&piece(0, 0, [0; 32], &[7; 999]));
    let answer = raw.read_text();
    assert!(answer.contains("damaged in transit"), "{answer}");
    drop(raw);
    eventually("nothing is there", || serve.names().is_empty());
    still_serves(serve);
}

#[test]
fn content_with_a_wrong_hash_gets_no_name() {
    let serve = Serve::start(&[]);
    let mut raw = Raw::accepted(&serve.ticket());
    raw.list("f", 3);
    raw.next_record();
    // A piece with the wrong hash, and correct pieces under a wrong hash of the whole.
    let header = frame::PieceHeader { entry: 0, piece: 0, hash: [0; 32], length: 3 };
    raw.send(&[&header.to_bytes()[..], b"abc"].concat());
    let answer = raw.read_text();
    assert!(answer.contains("damaged in transit"), "{answer}");
    drop(raw);
    eventually("nothing is there", || serve.names().is_empty());
    still_serves(serve);
}

#[test]
fn names_from_a_peer_cannot_leave_the_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let outside = scratch.path().join("outside");
    let inside = scratch.path().join("inside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("way-out")).unwrap();
    let serve = Serve::start_in(scratch, &inside, &["--force"]);
    let mut raw = Raw::accepted(&serve.ticket());
    raw.list("way-out/f", 3);
    raw.next_record();
    raw.piece(0, b"abc");
    drop(raw);
    assert!(crate::running::names(&outside).is_empty());
    assert_eq!(serve.names(), ["way-out"]);
    serve.interrupt();
}

/// Sends half of a file of two pieces.
fn half_a_file(raw: &mut Raw) {
    raw.list("f", 2 * sweetspot_protocol::hash_tree::PIECE_BYTES);
    raw.next_record();
    let content = vec![7; sweetspot_protocol::hash_tree::PIECE_BYTES as usize];
    let hash = sweetspot_protocol::hash_tree::piece_hash(0, false, &content);
    let length = content.len() as u32;
    let header = frame::PieceHeader { entry: 0, piece: 0, hash, length };
    raw.send(&[&header.to_bytes()[..], &content].concat());
}

#[test]
fn a_peer_that_disconnects_midway_leaves_only_resumable_data() {
    let serve = Serve::start(&["--once", "--json", "--retry-for", "1ms"]);
    let mut raw = Raw::accepted(&serve.ticket());
    half_a_file(&mut raw);
    eventually("the unfinished file is there", || serve.names().len() == 1);
    drop(raw);
    let names = serve.names();
    assert!(names.iter().all(|name| name.starts_with(".sweetspot-")), "{names:?}");
    let ended = serve.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("disconnected after 262.1 kB"), "{ended:?}");
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(result["error"].as_str().unwrap().contains("disconnected after 262.1 kB"), "{result}");
}

#[test]
fn a_file_too_large_for_the_disk_is_rejected_at_once() {
    let serve = Serve::start(&[]);
    for size in [1 << 62, u64::MAX] {
        let mut raw = Raw::accepted(&serve.ticket());
        raw.list("f", size);
        let answer = String::from_utf8_lossy(&raw.next_record()).into_owned();
        assert!(answer.contains("too large") || answer.contains("space"), "{answer}");
    }
    still_serves(serve);
}

#[test]
fn an_interrupted_server_keeps_resumable_data() {
    let serve = Serve::start(&[]);
    let mut raw = Raw::accepted(&serve.ticket());
    half_a_file(&mut raw);
    eventually("the unfinished file is there", || serve.names().len() == 1);
    crate::running::signal(&serve.child, "INT");
    let ended = serve.wait();
    assert_eq!(ended.code, Some(130));
    assert!(ended.stderr.contains("interrupted; start the transfer again"), "{ended:?}");
}

#[test]
fn silent_connections_do_not_lock_out_other_peers() {
    let serve = Serve::start(&[]);
    let port = serve.ticket().port;
    let knock = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    // Far more connections than the unauthenticated limit; they send nothing and wait.
    let crowd: Vec<_> = (0..300).map(|_| knock()).collect();
    let (file, _) = file(10);
    assert_eq!(send(file.path(), &serve.ticket, &["--name", "f"]).code, Some(0));
    drop(crowd);
    std::fs::remove_file(serve.directory.join("f")).unwrap();
    let ended = still_serves(serve);
    assert!(ended.stderr.lines().count() < 60, "strangers do not fill the log: {ended:?}");
}

/// A forwarder in front of the server accepts this many bytes, then stops reading, and reports that the server is gone.
#[test]
fn a_sender_gives_up_on_a_closed_receiver_with_a_zero_window() {
    const TAKEN: usize = 4_000_000;
    let serve = Serve::start(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut ticket = serve.ticket();
    let inner = ticket.port;
    ticket.port = listener.local_addr().unwrap().port();
    // Far more than the buffers of both sockets.
    let (file, _) = file(60_000_000);
    let mut command = Command::new(SWEETSPOT);
    command.arg("send").arg(file.path()).arg(ticket.to_string()).args(["--retry-for", "1ms"]);
    let mut sender = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();

    let mut outer = listener.accept().unwrap().0;
    let mut server = TcpStream::connect(("127.0.0.1", inner)).unwrap();
    let (mut answers, mut to_sender) = (server.try_clone().unwrap(), outer.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut answers, &mut to_sender));
    let (mut buffer, mut received) = ([0; 65536], 0);
    while received < TAKEN {
        let read = outer.read(&mut buffer).unwrap();
        server.write_all(&buffer[..read]).unwrap();
        received += read;
    }
    outer.shutdown(Shutdown::Write).unwrap();
    let disconnected_at = clock::now();
    assert!(wait(&mut sender).is_some_and(|code| code != 0));
    // The sender does not wait the 30 s that it allows a silent peer (docs/protocol.md).
    assert!(clock::now().since(disconnected_at) < Duration::from_secs(20));
}
