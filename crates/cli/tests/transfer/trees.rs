//! Trees, existing files, and resumed transfers.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sweetspot_control::TransferSummary;
use sweetspot_protocol::hash_tree::PIECE_BYTES;
use sweetspot_testing::assert_same_tree;

use crate::running::{Ended, SWEETSPOT, Serve, eventually, file, names, run, send};

fn outcome(ended: &Ended) -> TransferSummary {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap()
}

fn tree() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("top");
    fs::create_dir_all(top.join("a/b")).unwrap();
    fs::write(top.join("a/one"), vec![3; 3 * PIECE_BYTES as usize + 17]).unwrap();
    fs::write(top.join("a/b/two"), "two").unwrap();
    fs::write(top.join("empty"), "").unwrap();
    fs::write(top.join(OsStr::from_bytes(b"odd\xff\n name")), "odd").unwrap();
    fs::set_permissions(top.join("a/b/two"), fs::Permissions::from_mode(0o604)).unwrap();
    fs::set_permissions(top.join("a/b"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(top.join("a/one"), top.join("uno")).unwrap();
    symlink("nowhere/at/all", top.join("dangling")).unwrap();
    let sparse = fs::File::create(top.join("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(b"in the middle", 33 << 20).unwrap();
    (dir, top)
}

#[test]
fn a_tree_arrives_unaltered_and_is_not_sent_again() {
    let (_dir, top) = tree();
    let serve = Serve::start(&[]);
    let sent = outcome(&send(&top, &serve.ticket, &["--json"]));
    let received_top = serve.directory.join("top");
    assert_same_tree(&top, &received_top);
    let status = |path: &str| fs::symlink_metadata(received_top.join(path)).unwrap();
    for path in ["a/b/two", "a/b", "a/one", ""] {
        let from = fs::metadata(top.join(path)).unwrap();
        assert_eq!(status(path).mode() & 0o777, from.mode() & 0o777, "{path}");
        assert_eq!(
            (status(path).mtime(), status(path).mtime_nsec()),
            (from.mtime(), from.mtime_nsec()),
            "{path}"
        );
    }
    assert_eq!(status("uno").ino(), status("a/one").ino());
    assert!(status("sparse").blocks() * 512 < 4 << 20, "holes stay holes");
    assert!(sent.bytes < 4 << 20, "holes are not sent: {sent:?}");
    // A file with the same length and time is not sent again. A changed file is refused unless overwriting is allowed.
    let again = outcome(&send(&top, &serve.ticket, &["--json"]));
    assert_eq!(again.bytes, 0);
    fs::write(top.join("a/b/two"), "three").unwrap();
    let refused = send(&top, &serve.ticket, &[]);
    assert_eq!(refused.code, Some(23), "{refused:?}");
    assert!(refused.stderr.contains("top/a/b/two already exists"), "{refused:?}");
}

#[test]
fn an_identical_existing_file_counts_as_unchanged() {
    let (file, content) = file(600_000);
    let serve = Serve::start(&[]);
    fs::write(serve.directory.join("f"), &content).unwrap();
    let sent = outcome(&send(file.path(), &serve.ticket, &["--name", "f", "--json"]));
    assert_eq!((sent.bytes, sent.files.unchanged), (0, 1));
}

#[test]
fn contents_are_compared_only_with_checksum() {
    let (file, content) = file(3 * PIECE_BYTES as usize);
    let serve = Serve::start(&["--force"]);
    let target = serve.directory.join("f");
    outcome(&send(file.path(), &serve.ticket, &["--name", "f", "--json"]));
    let modified = fs::metadata(&target).unwrap().modified().unwrap();
    let received_top = fs::File::options().write(true).open(&target).unwrap();
    received_top.write_all_at(b"changed", PIECE_BYTES).unwrap();
    received_top.set_modified(modified).unwrap();
    let by_time = outcome(&send(file.path(), &serve.ticket, &["--name", "f", "--json"]));
    assert_eq!((by_time.bytes, by_time.present_bytes), (0, 3 * PIECE_BYTES));
    let arguments = ["--name", "f", "--json", "--checksum"];
    let by_content = outcome(&send(file.path(), &serve.ticket, &arguments));
    assert_eq!(by_content.bytes, PIECE_BYTES, "only the piece that differs");
    assert_eq!(by_content.present_bytes, 2 * PIECE_BYTES, "the others");
    assert!(fs::read(&target).unwrap() == content);
}

#[test]
fn data_received_before_a_kill_is_not_sent_again() {
    let (file, content) = file(400 << 20);
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("in");
    fs::create_dir(&directory).unwrap();
    let mut first = Serve::start_in(tempfile::tempdir().unwrap(), &directory, &[]);
    let mut command = Command::new(SWEETSPOT);
    command.arg("send").arg(file.path()).arg(&first.ticket).args(["--name", "f"]);
    command.args(["--sizing", "fixed:1MB", "--retry-for", "1ms"]);
    let mut sender = command.stderr(Stdio::null()).spawn().unwrap();
    let partial = || {
        let received_top =
            names(&directory).into_iter().find(|name| name.starts_with(".sweetspot-"));
        received_top.map_or(0, |name| fs::metadata(directory.join(name)).unwrap().blocks() * 512)
    };
    let arrived = || {
        let received_top =
            names(&directory).into_iter().find(|name| name.starts_with(".sweetspot-"));
        received_top.map_or(0, |name| fs::metadata(directory.join(name)).unwrap().len())
    };
    eventually("some has arrived", || arrived() > 40 << 20 || names(&directory) == ["f"]);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    sender.wait().unwrap();
    let before = arrived();
    assert!(before > 0 && partial() > 0, "the kill came too late to test anything");
    let second = Serve::start_in(scratch, &directory, &[]);
    let sent = outcome(&send(file.path(), &second.ticket, &["--name", "f", "--json"]));
    assert!(fs::read(directory.join("f")).unwrap() == content);
    assert_eq!(names(&directory), ["f"]);
    // Data in flight when the kill came is sent again: a few pieces.
    let again = (sent.bytes + before).saturating_sub(400 << 20);
    assert!(again <= 4_000_000, "{again} bytes were sent again");
}

#[test]
fn only_changed_and_missing_pieces_are_sent_after_an_interruption() {
    let (source, mut content) = file(8 * PIECE_BYTES as usize);
    let serve = Serve::start(&[]);
    // A transfer that broke after six pieces left them under the name that the next transfer looks for.
    let mut raw = sweetspot_hostile_peer::Raw::accepted(&serve.ticket());
    raw.list("f", content.len() as u64);
    raw.next_record();
    for piece in 0..6u32 {
        let at = piece as usize * PIECE_BYTES as usize;
        let bytes = &content[at..at + PIECE_BYTES as usize];
        let hash = sweetspot_protocol::hash_tree::piece_hash(piece, false, bytes);
        let length = bytes.len() as u32;
        let header = sweetspot_protocol::frame::PieceHeader { entry: 0, piece, hash, length };
        raw.send(&[&header.to_bytes()[..], bytes].concat());
    }
    let directory = serve.directory.clone();
    let written = || {
        let name = names(&directory).into_iter().next();
        name.map_or(0, |name| fs::metadata(directory.join(name)).unwrap().len())
    };
    eventually("six pieces are written", || written() >= 6 * PIECE_BYTES);
    drop(raw);
    // Meanwhile, the second piece of the source changes.
    content[PIECE_BYTES as usize + 5] ^= 1;
    fs::write(source.path(), &content).unwrap();
    let sent = outcome(&send(source.path(), &serve.ticket, &["--name", "f", "--json"]));
    assert!(fs::read(serve.directory.join("f")).unwrap() == content);
    assert_eq!(sent.bytes, 3 * PIECE_BYTES, "the changed piece and the two that lacked");
}

#[test]
fn stdin_can_be_sent_to_stdout() {
    let (_file, content) = file(1_000_003);
    let mut serve = Command::new(SWEETSPOT);
    serve.args(["serve", "--stdout", "--listen", "127.0.0.1:0"]);
    let mut serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ticket = String::new();
    let mut stderr = std::io::BufReader::new(serve.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut ticket).unwrap();
    let mut sender = Command::new(SWEETSPOT);
    sender.args(["send", "-", ticket.trim(), "--quiet"]);
    let mut sender = sender.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = sender.stdin.take().unwrap();
    let bytes = content.clone();
    let writer = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let received = serve.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(sender.wait().unwrap().success());
    assert!(received.stdout == content, "{} bytes came", received.stdout.len());
}

#[test]
fn a_file_from_a_pipe_gets_its_arrival_time_as_mtime() {
    let serve = Serve::start(&[]);
    let (file, _) = file(10_000);
    let mut command = Command::new(SWEETSPOT);
    command.args(["send", "-", &serve.ticket, "--name", "f"]).stdin(file.reopen().unwrap());
    assert_eq!(run(command).code, Some(0));
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let arrived = modified(&serve.directory.join("f"));
    // It arrived after the source was written.
    assert!(arrived >= modified(file.path()), "{arrived:?}");
}

#[test]
fn a_receiver_fetches_a_tree_from_an_offer() {
    let (_dir, top) = tree();
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(SWEETSPOT);
    command.arg("send").arg(&top).args(["--listen", "127.0.0.1:0"]);
    let offer = Serve::spawn(tempfile::tempdir().unwrap(), &top, command);
    let target = scratch.path().join("target");
    let mut receive = Command::new(SWEETSPOT);
    receive.args(["receive", &offer.ticket]).arg(&target);
    let received = run(receive);
    assert_eq!(received.code, Some(0), "{received:?}");
    assert_same_tree(&top, &target.join("top"));
    assert_eq!(offer.wait().code, Some(0));
}

#[test]
fn receive_with_a_ticket_for_sending_suggests_send() {
    let serve = Serve::start(&[]);
    let mut receive = Command::new(SWEETSPOT);
    receive.args(["receive", &serve.ticket]);
    run(receive).failed_saying(&["that ticket is for sending", "sweetspot send"]);
}

#[test]
fn send_names_a_source_that_it_skips_and_sends_the_rest() {
    let (_dir, top) = tree();
    let pipe = top.with_file_name("pipe");
    Command::new("mkfifo").arg(&pipe).status().unwrap();
    let serve = Serve::start(&[]);
    let mut command = Command::new(SWEETSPOT);
    command
        .arg("send")
        .args(["--exclude", "a"])
        .args([&top, &pipe, &top.with_file_name("none")])
        .arg(&serve.ticket);
    let sent = run(command);
    assert_eq!(sent.code, Some(23), "{sent:?}");
    // The failures are counted under all sources, not under the one that arrived.
    assert!(sent.stderr.contains("3 items: "), "{sent:?}");
    let words = "pipe is a pipe and was left out; to send its content, give `-` as the source";
    assert!(sent.stderr.contains(words), "{sent:?}");
    let received_top = names(&serve.directory.join("top"));
    assert!(
        received_top.contains(&"empty".to_owned()) && !received_top.contains(&"a".to_owned()),
        "{received_top:?}"
    );
}

#[test]
fn a_ticket_may_come_from_a_file_or_the_environment() {
    let serve = Serve::start(&["--force"]);
    let (file, _) = file(10);
    let ticket = serve.directory.join("ticket");
    // As shown on a terminal of 80 columns, or with a note after it.
    let (head, tail) = serve.ticket.split_at(80);
    let broken = format!("{head}\n  {tail}\n");
    for text in
        [format!("{}\n", serve.ticket), broken.clone(), format!("{}\nfor ann", serve.ticket)]
    {
        fs::write(&ticket, text).unwrap();
        let mut by_file = Command::new(SWEETSPOT);
        by_file.arg("send").arg(file.path()).arg("--ticket-file").arg(&ticket);
        assert_eq!(run(by_file).code, Some(0));
    }
    assert_eq!(send(file.path(), &broken, &[]).code, Some(0));
    let mut wrong_order = Command::new(SWEETSPOT);
    wrong_order.arg("send").arg(&serve.ticket).arg(file.path());
    let wrong_order = run(wrong_order);
    assert_eq!(wrong_order.code, Some(2), "{wrong_order:?}");
    assert!(wrong_order.stderr.contains("the ticket comes last"), "{wrong_order:?}");
    let mut by_environment = Command::new(SWEETSPOT);
    by_environment.arg("send").arg(file.path()).env("SWEETSPOT_TICKET", &serve.ticket);
    assert_eq!(run(by_environment).code, Some(0));
}

#[test]
fn without_a_ticket_argument_receive_takes_its_operand_as_the_target() {
    let (file, content) = file(10);
    let scratch = tempfile::tempdir().unwrap();
    let ticket_file = scratch.path().join("ticket");
    for (target, by_file) in [("by-file", true), ("by-environment", false), ("-", true)] {
        let mut command = Command::new(SWEETSPOT);
        command.arg("send").arg(file.path()).args(["--listen", "127.0.0.1:0"]);
        let offer = Serve::spawn(tempfile::tempdir().unwrap(), file.path(), command);
        fs::write(&ticket_file, &offer.ticket).unwrap();
        let mut receive = Command::new(SWEETSPOT);
        receive.arg("receive").arg(target).current_dir(scratch.path());
        match by_file {
            true => receive.arg("--ticket-file").arg(&ticket_file),
            false => receive.env("SWEETSPOT_TICKET", &offer.ticket),
        };
        let output = receive.output().unwrap();
        assert!(output.status.success(), "{target}: {output:?}");
        let received = match target {
            "-" => output.stdout,
            name => fs::read(scratch.path().join(name)).unwrap(),
        };
        assert_eq!(received, content, "{target}");
        assert_eq!(offer.wait().code, Some(0));
    }
}

#[test]
fn several_connections_carry_one_transfer() {
    let (file, content) = file(50 << 20);
    let serve = Serve::start(&["--once"]);
    let arguments = ["--name", "f", "--json", "--streams", "4", "--sizing", "fixed:256kB"];
    let sent = outcome(&send(file.path(), &serve.ticket, &arguments));
    assert_eq!(sent.streams, 4);
    assert!(fs::read(serve.directory.join("f")).unwrap() == content);
    assert_eq!(serve.wait().code, Some(0));
}

/// A quarter of 100 kB is less than a segment on the loopback device (64 kB). With such a window, a sender would probe only
/// every 200 ms, and a receiver would delay its ACKs by 40 ms (TCP_RTO_MIN, TCP_DELACK_MIN).
#[test]
fn a_window_too_small_for_its_connections_causes_no_timer_stalls() {
    let (file, content) = file(20 << 20);
    let serve = Serve::start(&["--once", "--sizing", "fixed:100kB"]);
    let sent =
        outcome(&send(file.path(), &serve.ticket, &["--name", "f", "--json", "--streams", "4"]));
    assert_eq!(sent.streams, 4);
    assert!(sent.rtt_median_s.unwrap() < 0.04, "{sent:?}");
    assert!(fs::read(serve.directory.join("f")).unwrap() == content);
    assert_eq!(serve.wait().code, Some(0));
}
