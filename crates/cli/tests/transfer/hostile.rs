//! Peers that are hostile, or die.

use std::io::{Read, Write};
use std::net::TcpStream;

use sweetspot_protocol::{Message, frame};

use crate::raw::Raw;
use crate::running::{Ended, Serve, eventually, file, send};

/// After all that happened, an honest transfer still goes through; then the server is ended.
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
fn what_is_not_tls_is_dropped_with_one_line() {
    let serve = Serve::start(&[]);
    let mut socket = TcpStream::connect(("127.0.0.1", serve.ticket().port)).unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    let ended = still_serves(serve);
    assert_eq!(ended.stderr.matches("no secure connection").count(), 1, "{ended:?}");
}

#[test]
fn a_peer_that_hangs_up_during_the_handshake_is_dropped() {
    let serve = Serve::start(&[]);
    drop(TcpStream::connect(("127.0.0.1", serve.ticket().port)).unwrap());
    still_serves(serve);
}

#[test]
fn unauthenticated_peers_learn_nothing_and_write_nothing() {
    let serve = Serve::start(&[]);
    let ticket = serve.ticket();
    // Content, an end, an oversized frame, an unknown kind, an empty frame, no JSON: before any
    // hello.
    let content = [&frame::content_header(3)[..], b"abc"].concat();
    let end = Message::End { hash: "00".into() }.to_frame();
    let oversized = [1, 0xff, 0xff, 0xff, 0xff];
    let unknown = [9, 0, 0, 0, 1, 0];
    let empty = [1, 0, 0, 0, 0];
    let no_json = frame::message(b"not json");
    for bytes in [&content[..], &end, &oversized, &unknown, &empty, &no_json] {
        let mut raw = Raw::connect(&ticket);
        raw.send(bytes);
        let answer = raw.hear_all();
        assert!(answer.contains("the handshake was not understood"), "{answer}");
        assert!(serve.names().is_empty());
    }
    let ended = still_serves(serve);
    assert_eq!(ended.stderr.matches("and was dropped").count(), 6, "{ended:?}");
}

#[test]
fn a_proof_from_another_connection_is_worth_nothing() {
    let serve = Serve::start(&[]);
    let ticket = serve.ticket();
    let overheard = Raw::connect(&ticket).hello("f", 3);
    let mut raw = Raw::connect(&ticket);
    raw.say(&overheard);
    assert!(raw.hear_all().contains("secret is wrong"));
    still_serves(serve);
}

#[test]
fn an_admitted_peer_that_breaks_the_protocol_leaves_nothing() {
    let serve = Serve::start(&[]);
    let ticket = serve.ticket();
    let content = |n: usize| [&frame::content_header(n as u32)[..], &vec![7; n]].concat();
    let end = Message::End { hash: "00".into() }.to_frame();
    let cases = [
        (content(1001), "more than the 1000 bytes"),
        ([content(999), end.clone()].concat(), "ended 1 bytes before"),
        ([content(1000), end.clone()].concat(), "hash does not match"),
        (vec![0, 0xff, 0xff, 0xff, 0xff], "where 1048576 is the most"),
        (Message::Busy.to_frame(), "sent busy in the midst of content"),
    ];
    for (bytes, words) in cases {
        let mut raw = Raw::accepted(&ticket, "f", 1000);
        raw.send(&bytes);
        let answer = raw.hear_all();
        assert!(answer.contains(words), "{words}: {answer}");
    }
    still_serves(serve);
}

#[test]
fn a_peer_that_goes_away_midway_leaves_nothing() {
    let serve = Serve::start(&["--once"]);
    let mut raw = Raw::accepted(&serve.ticket(), "f", 1000);
    raw.send(&[&frame::content_header(500)[..], &[7; 500]].concat());
    eventually("the unfinished file is there", || serve.names().len() == 1);
    drop(raw);
    let directory = serve.directory.clone();
    eventually("nothing is left", || crate::running::names(&directory).is_empty());
    serve.wait().failed_saying(&["went away after 500 B", "nothing was kept"]);
}

#[test]
fn more_than_the_disk_could_hold_is_refused_at_once() {
    let serve = Serve::start(&[]);
    for size in [1 << 62, u64::MAX] {
        let mut raw = Raw::connect(&serve.ticket());
        raw.say(&raw.hello("f", size));
        let answer = raw.hear_all();
        assert!(answer.contains("failed"), "{answer}");
    }
    still_serves(serve);
}

#[test]
fn interrupted_transfers_leave_nothing() {
    let serve = Serve::start(&[]);
    let mut raw = Raw::accepted(&serve.ticket(), "f", 1000);
    raw.send(&[&frame::content_header(500)[..], &[7; 500]].concat());
    eventually("the unfinished file is there", || serve.names().len() == 1);
    let directory = serve.directory.clone();
    crate::running::signal(&serve.child, "INT");
    eventually("nothing is left", || crate::running::names(&directory).is_empty());
    let ended = serve.wait();
    assert_eq!(ended.code, Some(130));
    assert!(ended.stderr.contains("interrupted; nothing was kept"), "{ended:?}");
}

#[test]
fn what_a_killed_server_left_is_swept_at_the_next_start() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("in");
    std::fs::create_dir(&directory).unwrap();
    let mut first = Serve::start_in(tempfile::tempdir().unwrap(), &directory, &[]);
    let mut raw = Raw::accepted(&first.ticket(), "f", 1000);
    raw.send(&[&frame::content_header(500)[..], &[7; 500]].concat());
    eventually("the unfinished file is there", || first.names().len() == 1);
    // A second server on the same directory leaves alone what a live one is writing.
    let second = Serve::start_in(tempfile::tempdir().unwrap(), &directory, &[]);
    assert_eq!(second.names().len(), 1);
    second.interrupt();
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert_eq!(first.names().len(), 1);
    let third = Serve::start_in(scratch, &directory, &[]);
    assert!(third.names().is_empty());
    third.interrupt();
}

#[test]
fn many_unauthenticated_peers_do_not_keep_others_out_for_ever() {
    let serve = Serve::start(&[]);
    let port = serve.ticket().port;
    let knock = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    // As many as are let in unproven; they say nothing and wait.
    let crowd: Vec<_> = (0..32).map(|_| knock()).collect();
    assert_eq!(knock().read(&mut [0; 1]).unwrap(), 0, "one more is turned away at once");
    drop(crowd);
    let (file, _) = file(10);
    eventually("there is room again", || {
        send(file.path(), &serve.ticket, &["--name", "f"]).code == Some(0)
    });
    std::fs::remove_file(serve.directory.join("f")).unwrap();
    let ended = still_serves(serve);
    assert!(ended.stderr.contains("too many unproven connections"), "{ended:?}");
}
