//! Refusals: each prints one line that names the object and the next step.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use sweetspot_hostile_peer::Raw;
use sweetspot_protocol::hash_tree::PIECE_BYTES;
use sweetspot_protocol::{Secret, TicketProof};
use sweetspot_units::Time;

use crate::running::{Ended, SWEETSPOT, Serve, file, run, send, wait};

#[test]
fn a_wrong_secret_is_rejected_and_the_server_keeps_running() {
    let serve = Serve::start(&["--once"]);
    let (file, _) = file(10);
    let mut ticket = serve.ticket();
    ticket.proof = TicketProof::Secret { secret: Secret([0; 16]), expires: Time::MAX };
    send(file.path(), &ticket.to_string(), &[]).failed_saying(&["refused", "secret is wrong"]);
    assert_eq!(send(file.path(), &serve.ticket, &["--name", "f"]).code, Some(0));
    let ended = serve.wait();
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("rejected: it does not hold this ticket's secret"), "{ended:?}");
}

#[test]
fn a_server_with_another_certificate_is_rejected() {
    let serve = Serve::start(&["--once"]);
    let (file, _) = file(10);
    let mut ticket = serve.ticket();
    ticket.fingerprint = [0; 32];
    send(file.path(), &ticket.to_string(), &[])
        .failed_saying(&["not the host that this ticket names", "ask for the ticket"]);
    assert!(serve.names().is_empty());
}

#[test]
fn an_invalid_ticket_is_rejected_with_the_reason() {
    let (file, _) = file(10);
    for (ticket, words) in [
        ("hello", &["not a ticket", "sweetspot serve"][..]),
        ("sweetspot1:abc", &["damaged", "copy the whole line"]),
        ("sweetspot9:abc", &["version 9", "same version"]),
    ] {
        send(file.path(), ticket, &[]).failed_saying(words);
    }
}

#[test]
fn stdin_holds_only_one_of_content_list_and_ticket() {
    for arguments in [
        &["-", "--ticket-file", "-"][..],
        &["src", "--ticket-file", "-", "--files-from", "-"],
        &["-", "--files-from", "-", "--offer"],
    ] {
        let mut command = Command::new(SWEETSPOT);
        command.arg("send").args(arguments).stdin(Stdio::null());
        let ended = run(command);
        ended.failed_saying(&["standard input can be used only once"]);
        assert_eq!(ended.code, Some(2));
    }
}

#[test]
fn an_unreachable_receiver_is_reported() {
    let serve = Serve::start(&[]);
    let ticket = serve.ticket.clone();
    serve.interrupt();
    let (file, _) = file(10);
    send(file.path(), &ticket, &[]).failed_saying(&["cannot reach", "still runs there"]);
}

#[test]
fn an_error_names_each_file_that_cannot_be_sent() {
    let serve = Serve::start(&[]);
    let scratch = tempfile::tempdir().unwrap();
    let missing = scratch.path().join("missing");
    send(&missing, &serve.ticket, &[]).failed_saying(&["missing", "No such file"]);
    send("/dev/null".as_ref(), &serve.ticket, &[]).failed_saying(&["/dev/null", "a device"]);
}

#[test]
fn an_error_names_the_port_that_is_in_use() {
    let serve = Serve::start(&[]);
    let port = serve.ticket().port;
    let mut command = Command::new(SWEETSPOT);
    let listen = format!("127.0.0.1:{port}");
    command.args(["serve", "--dir", "/tmp", "--listen", &listen]);
    run(command).failed_saying(&["cannot listen on", &listen, "in use", "--listen"]);
}

#[test]
fn an_error_names_a_directory_that_cannot_be_served() {
    let serve = |dir: &str| {
        let mut command = Command::new(SWEETSPOT);
        command.args(["serve", "--listen", "127.0.0.1:0", "--dir", dir]);
        run(command)
    };
    serve("/proc/nowhere").failed_saying(&["/proc/nowhere", "--dir"]);
    // If most of a longer path is missing, the path is probably a mistake.
    serve("/tmp/no/such/place").failed_saying(&["/tmp/no/such/place", "--dir"]);
    serve("/dev/null").failed_saying(&["/dev/null", "name a directory"]);
    serve("/proc").failed_saying(&["/proc"]);
}

#[test]
fn serve_creates_a_missing_directory() {
    let (file, content) = file(1000);
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("incoming");
    let serve = Serve::start_in(scratch, &directory, &["--once"]);
    assert_eq!(send(file.path(), &serve.ticket, &["--name", "f"]).code, Some(0));
    assert_eq!(fs::read(serve.directory.join("f")).unwrap(), content);
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let (file, content) = file(1000);
    for (arguments, forced) in [(&["--once"][..], false), (&["--once", "--force"], true)] {
        let serve = Serve::start(arguments);
        let target = serve.directory.join("f");
        fs::write(&target, "old").unwrap();
        let sent = send(file.path(), &serve.ticket, &["--name", "f"]);
        if forced {
            assert_eq!(sent.code, Some(0));
            assert_eq!(fs::read(target).unwrap(), content);
        } else {
            sent.failed_saying(&["already exists", "--force", "--name"]);
            assert_eq!(fs::read(target).unwrap(), b"old");
        }
        assert_eq!(serve.names(), ["f"]);
    }
}

/// Writes to the name of a device must still reach the device.
#[test]
fn force_does_not_replace_a_pipe_or_a_device() {
    let (file, _) = file(1000);
    let serve = Serve::start(&["--force"]);
    let pipe = serve.directory.join("p");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let sent = send(file.path(), &serve.ticket, &["--name", "p"]);
    sent.failed_saying(&["refused", "p is a pipe and was left unchanged"]);
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(serve.names(), ["p"]);
    let null = serve.directory.join("null");
    if Command::new("mknod").arg(&null).args(["c", "1", "3"]).status().unwrap().success() {
        let sent = send(file.path(), &serve.ticket, &["--name", "null"]);
        sent.failed_saying(&["refused", "null is a device and was left unchanged"]);
        assert!(fs::symlink_metadata(&null).unwrap().file_type().is_char_device());
    } else {
        sweetspot_testing::skipped("a device is tested as root only");
    }
}

#[test]
fn force_does_not_replace_a_directory() {
    let (file, _) = file(1000);
    let serve = Serve::start(&["--force"]);
    fs::create_dir(serve.directory.join("d")).unwrap();
    let sent = send(file.path(), &serve.ticket, &["--name", "d"]);
    sent.failed_saying(&["refused", "is a directory", "--name"]);
    assert_eq!(serve.names(), ["d"]);
}

#[test]
fn an_invalid_listen_address_is_rejected_with_an_example() {
    for wrong in ["no.such.host.invalid:7411", "7411", ":7411", "192.0.2.7", "0.0.0.0:99999"] {
        let mut command = Command::new(SWEETSPOT);
        command.args(["serve", "--dir", ".", "--listen", wrong]);
        run(command).failed_saying(&[wrong, "write it like 0.0.0.0:7411"]);
    }
}

#[test]
fn names_that_leave_the_directory_are_refused() {
    let (file, _) = file(10);
    let scratch = tempfile::tempdir().unwrap();
    let inside = scratch.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let serve = Serve::start_in(scratch, &inside, &[]);
    for name in ["../f", "/tmp/f", "a/b", "..", ".", ""] {
        send(file.path(), &serve.ticket, &["--name", name])
            .failed_saying(&["is refused", "--name"]);
    }
    assert!(serve.names().is_empty());
    assert_eq!(crate::running::names(inside.parent().unwrap()), ["inside"]);
}

#[test]
fn unknown_sizing_policies_and_congestion_controls_are_usage_errors() {
    let serve = Serve::start(&[]);
    let (file, _) = file(10);
    let send = |arguments: &[&str]| send(file.path(), &serve.ticket, arguments);
    send(&["--congestion", "warp"]).failed_saying(&["\"warp\"", "this kernel offers", "cubic"]);
    send(&["--sizing", "bdp", "--path-rate", "1Gbit/s"]).failed_saying(&["--path-rtt"]);
    for wrong in [
        &["--congestion", "warp"][..],
        &["--sizing", "huge"],
        &["--path-rate", "1Gbit/s"],
        &["--path-rate", "1Gbit/s", "--path-rtt", "10ms"],
        &["--name", ""],
        &["--name", ".."],
        &["--name", "a/b"],
        &["--name", "x", "--", "/dev/null"],
    ] {
        assert_eq!(send(wrong).code, Some(2), "{wrong:?}");
    }
    assert!(serve.names().is_empty());
}

/// A small disk, mounted in a new mount namespace.
#[test]
fn both_ends_report_a_full_disk() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().to_owned();
    let mut probe = Command::new("unshare");
    probe.args(["--user", "--map-root-user", "--mount", "true"]);
    if !probe.status().is_ok_and(|status| status.success()) {
        sweetspot_testing::skipped("no mount namespace can be had here (run as root)");
        return;
    }
    let mut command = Command::new("unshare");
    let script = r#"mount -t tmpfs -o size=1m tmpfs "$0" && exec "$1" serve --dir "$0" --listen 127.0.0.1:0 --once"#;
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    command.arg(&directory).arg(SWEETSPOT);
    let serve = Serve::spawn(scratch, &directory, command);
    let (file, _) = file(2_000_000);
    send(file.path(), &serve.ticket, &[])
        .failed_saying(&["No space left on device", "free some space there"]);
    serve.wait_for_try().failed_saying(&["No space left on device", "free some space"]);
}

#[test]
fn a_file_size_limit_is_reported_and_no_file_remains() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().to_owned();
    let mut command = Command::new("sh");
    let script = r#"ulimit -f 100; exec "$1" serve --dir "$0" --listen 127.0.0.1:0 --once"#;
    command.args(["-c", script]).arg(&directory).arg(SWEETSPOT);
    let serve = Serve::spawn(scratch, &directory, command);
    let (file, _) = file(2_000_000);
    send(file.path(), &serve.ticket, &[]).failed_saying(&["File too large"]);
    assert!(serve.names().is_empty());
    serve.wait_for_try().failed_saying(&["File too large", "ulimit"]);
}

#[test]
fn send_without_a_ticket_or_the_offer_option_is_a_usage_error() {
    let (file, _) = file(10);
    for (argument, words) in [
        ("", "an argument is empty"),
        ("-n", "give its ticket"),
        ("-q", "there is no ticket: give the one that `sweetspot serve` printed, or add --offer"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_sweetspot"))
            .arg("send")
            .arg(file.path())
            .arg(argument)
            .env_remove("SWEETSPOT_TICKET")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{argument}: {stderr}");
        assert!(stderr.contains(words), "{argument}: {stderr}");
    }
}

#[test]
fn a_dry_run_lists_the_files_and_sends_none() {
    let serve = Serve::start(&[]);
    let (file, _) = file(3000);
    let dry = send(file.path(), &serve.ticket, &["-n", "--name", "rehearsed"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    let named = dry.stdout.contains("would send") && dry.stdout.contains("(3 kB)");
    assert!(named && dry.stderr.contains("would write 1 file (3 kB)"), "{dry:?}");
    assert!(serve.names().is_empty());
    let sent = send(file.path(), &serve.ticket, &["--name", "rehearsed"]);
    assert_eq!((sent.code, serve.names()), (Some(0), vec!["rehearsed".into()]), "{sent:?}");
}

/// Runs `sweetspot send` with the ticket or the code that `serve` printed.
fn sending(file: &Path, serve: &Serve, arguments: &[&str]) -> Ended {
    let mut command = Command::new(SWEETSPOT);
    command.arg("send").arg(file).args(arguments);
    match serve.ticket.contains('/') {
        true => command.args(["--code", &serve.ticket]),
        false => command.arg(&serve.ticket),
    };
    run(command)
}

/// A dry run, and a refusal before anything was written, do not count as the transfer.
#[test]
fn a_one_transfer_server_survives_a_dry_run_and_a_rejection() {
    let (file, content) = file(1000);
    for argument in ["--once", "--spoken-code"] {
        let mut serve = Serve::start(&[argument]);
        fs::write(serve.directory.join("f"), "old").unwrap();
        let rehearsed = sending(file.path(), &serve, &["-n", "--name", "g"]);
        assert_eq!(rehearsed.code, Some(0), "{rehearsed:?}");
        serve.read_until("waiting for another try");
        sending(file.path(), &serve, &["--name", "f"]).failed_saying(&["already exists", "--name"]);
        serve.read_until("f already exists");
        let sent = sending(file.path(), &serve, &["--name", "g"]);
        assert_eq!(sent.code, Some(0), "{argument}: {sent:?}");
        assert_eq!(fs::read(serve.directory.join("g")).unwrap(), content);
        assert_eq!(serve.wait().code, Some(0));
    }
}

/// Runs `sweetspot serve --stdout`, and returns its ticket.
fn serve_to_output() -> (Child, String) {
    let mut command = Command::new(SWEETSPOT);
    command.args(["serve", "--stdout", "--listen", "127.0.0.1:0"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut ticket = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut ticket).unwrap();
    (child, ticket.trim().to_owned())
}

#[test]
fn a_transfer_to_stdout_can_be_retried_until_data_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let (file, content) = file(1000);
    let (serve, ticket) = serve_to_output();
    send(directory.path(), &ticket, &["--name", "d"]).failed_saying(&["standard output takes one"]);
    // Of two files, nothing is written either.
    let mut both = Command::new(SWEETSPOT);
    let (other, _) = self::file(10);
    both.arg("send").args([file.path(), other.path()]).arg(&ticket);
    run(both).failed_saying(&["standard output takes one"]);
    let sent = send(file.path(), &ticket, &[]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let output = serve.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), content));

    let (mut serve, ticket) = serve_to_output();
    let mut raw = Raw::accepted(&ticket.parse().unwrap());
    raw.list("f", 2 * PIECE_BYTES);
    raw.next_record();
    raw.content(0, &vec![1; 2 * PIECE_BYTES as usize]).unwrap();
    let mut output = serve.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    // A new transfer would start from the beginning.
    drop(raw);
    thread::spawn(move || output.read_to_end(&mut Vec::new()));
    assert_eq!(wait(&mut serve), Some(1));
}

#[test]
fn a_server_exits_when_the_reader_of_its_output_exits() {
    let (file, _) = file(1000);
    let (mut serve, ticket) = serve_to_output();
    drop(serve.stdout.take());
    let sent = send(file.path(), &ticket, &[]);
    sent.failed_saying(&["the program that reads the receiver's output has exited"]);
    assert_eq!(wait(&mut serve), Some(1));
}

/// One file already exists, and another one with the same name is not replaced. Nothing was written, so the single transfer is
/// still to come.
#[test]
fn a_transfer_that_wrote_nothing_does_not_end_a_one_transfer_server() {
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path().join("top");
    let mut serve = Serve::start(&["--once"]);
    for directory in [&top, &serve.directory.join("top")] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("same"), "content").unwrap();
    }
    fs::write(top.join("changed"), "new").unwrap();
    fs::write(serve.directory.join("top/changed"), "other").unwrap();
    let sent = sending(&top, &serve, &[]);
    assert_eq!(sent.code, Some(23), "{sent:?}");
    serve.read_until("waiting for another try with this ticket");
    let sent = sending(&top, &serve, &["--name", "again"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(serve.wait().code, Some(0));
}

#[test]
fn a_server_without_tls_is_reported_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let code = format!("{}/42-crisp-lemon-orbit", listener.local_addr().unwrap());
    thread::spawn(move || {
        // A receiver tries more than once.
        for client in listener.incoming() {
            let mut client = client.unwrap();
            // The receiver must have sent a request, or a reset discards the answer.
            client.read_exact(&mut [0]).unwrap();
            client.write_all(b"HTTP/1.0 400 Bad request\r\n\r\n").unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let _ = client.read_to_end(&mut Vec::new());
        }
    });
    let mut receive = Command::new(SWEETSPOT);
    receive.args(["receive", "--code", &code, "--retry-for", "0s"]);
    run(receive).failed_saying(&["does not use TLS", "is the port right?"]);
}

#[test]
fn an_error_names_the_missing_directory_of_a_target_name() {
    let serve = Serve::start(&["--once"]);
    let (file, _) = file(10);
    let mut command = Command::new(SWEETSPOT);
    command.args(["send", "-", &serve.ticket, "--name", "foo/bar"]).stdin(file.reopen().unwrap());
    run(command).failed_saying(&["there is no directory foo there", "--name"]);
    let served = serve.wait_for_try();
    assert!(served.stderr.contains("create its directory first"), "{served:?}");
}

/// An offer prints a ticket instead of using one, so the last argument is a source.
#[test]
fn an_offer_names_its_missing_sources_and_does_not_mention_a_ticket() {
    let mut command = Command::new(SWEETSPOT);
    command.args(["send", "/nowhere/a", "/nowhere/b", "--offer", "--json"]);
    let ended = run(command);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for words in ["/nowhere/a: No such file", "/nowhere/b: No such file", "2 failed"] {
        ended.failed_saying(&[words]);
    }
    let summary: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(summary["failed"], 2, "{summary}");
    assert!(!ended.stderr.contains("ticket"), "{ended:?}");
}
