//! Transfers of files, directories and streams.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use sweetspot_control::TransferSummary;
use sweetspot_control::series::SeriesRecord;
use sweetspot_linux::clock;
use sweetspot_protocol::{PeerText, Role, RttSource};

use sweetspot_units::Duration;

use crate::running::{SWEETSPOT, Serve, file, names, run, send};

fn outcome(stdout: &str) -> TransferSummary {
    let line = stdout.lines().last().expect("an outcome");
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))
}

#[test]
fn both_ends_report_the_same_transfer() {
    let serve = Serve::start(&["--once", "--json"]);
    let (file, content) = file(3_000_001);
    let arguments = ["--name", "moved", "--json", "--sizing", "fixed:1MB", "--congestion", "reno"];
    let sent = send(file.path(), &serve.ticket, &arguments);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let target = serve.directory.join("moved");
    eventually_equal(&target, &content);
    assert_eq!(serve.names(), ["moved"]);
    let received = serve.wait();
    assert_eq!(received.code, Some(0), "{received:?}");

    let (sender, receiver) = (outcome(&sent.stdout), outcome(&received.stdout));
    assert_eq!((sender.role, receiver.role), (Role::Sender, Role::Receiver));
    assert_eq!(sender.hash, Some(blake3::hash(&content).to_hex().as_str().into()));
    assert_eq!(sender.bytes, 3_000_001);
    assert!(sender.hash_ok && sender.goodput_bps > 0.0);
    assert_eq!(sender.sizing, "fixed:1MB");
    assert_eq!(sender.congestion.as_ref().map(PeerText::raw), Some("reno"));
    // Each end reports both ends' counts.
    let same = TransferSummary {
        role: receiver.role,
        peer: receiver.peer.clone(),
        seconds: receiver.seconds,
        goodput_bps: receiver.goodput_bps,
        cpu_seconds: receiver.cpu_seconds,
        ..sender
    };
    assert_eq!(same, receiver);
}

fn eventually_equal(target: &std::path::Path, content: &[u8]) {
    assert!(fs::read(target).unwrap() == content, "the content differs");
}

#[test]
fn an_empty_file_is_transferred() {
    let serve = Serve::start(&["--once"]);
    let (file, _) = file(0);
    assert_eq!(send(file.path(), &serve.ticket, &["--name", "empty"]).code, Some(0));
    assert_eq!(fs::read(serve.directory.join("empty")).unwrap(), b"");
    assert_eq!(serve.wait().code, Some(0));
}

#[test]
fn several_senders_can_send_concurrently() {
    let serve = Serve::start(&["--json"]);
    let (file, content) = file(5_000_000);
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let (file, ticket) = (file.path(), &serve.ticket);
            scope.spawn(move || assert_eq!(send(file, ticket, &["--name", name]).code, Some(0)));
        }
    });
    for name in ["a", "b", "c", "d"] {
        eventually_equal(&serve.directory.join(name), &content);
    }
    let ended = serve.interrupt();
    assert_eq!(ended.code, Some(130));
    assert_eq!(ended.stdout.lines().count(), 4, "{}", ended.stdout);
}

/// The second sender finds the name in use, with the same content.
#[test]
fn concurrent_senders_of_the_same_file_all_succeed() {
    let serve = Serve::start(&[]);
    // Less than a piece: it is written as soon as its content is there, so nobody waits long for a lock.
    let (file, content) = file(200_000);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            let (file, ticket) = (file.path(), &serve.ticket);
            scope.spawn(move || {
                let ended = send(file, ticket, &["--name", "one"]);
                assert_eq!(ended.code, Some(0), "{ended:?}");
            });
        }
    });
    eventually_equal(&serve.directory.join("one"), &content);
    assert_eq!(serve.names(), ["one"]);
}

/// A congestion control other than reno that does not need root here; `None` if the host's default is reno.
fn beside_reno() -> Option<String> {
    let allowed = sweetspot_linux::sysctl::allowed_congestion_controls().unwrap();
    let other = allowed.into_iter().find(|name| name != "reno");
    if other.is_none() {
        sweetspot_testing::skipped("reno is the only congestion control that needs no root here");
    }
    other
}

#[test]
fn the_receiver_overrides_the_sizing_and_congestion_control() {
    let Some(other) = beside_reno() else { return };
    let serve = Serve::start(&["--once", "--sizing", "kernel", "--congestion", &other]);
    let (file, _) = file(100_000);
    let arguments = ["--json", "--sizing", "max", "--congestion", "reno"];
    let outcome = outcome(&send(file.path(), &serve.ticket, &arguments).stdout);
    assert_eq!(
        (&*outcome.sizing, outcome.congestion.as_ref().map(PeerText::raw)),
        ("kernel", Some(other.as_str()))
    );
    assert_eq!(outcome.clamp_method, None);
}

#[test]
fn a_transfer_keeps_the_requested_congestion_control() {
    for congestion in beside_reno().into_iter().chain(["reno".to_owned()]) {
        let congestion = congestion.as_str();
        let serve = Serve::start(&["--once", "--sizing", "sobas"]);
        let (file, _) = file(3_000_000);
        let arguments = ["--json", "--congestion", congestion];
        let outcome = outcome(&send(file.path(), &serve.ticket, &arguments).stdout);
        assert_eq!(outcome.congestion.as_ref().map(PeerText::raw), Some(congestion));
    }
}

/// A sender that listens.
#[test]
fn an_offer_keeps_the_requested_congestion_control() {
    for congestion in beside_reno().into_iter().chain(["reno".to_owned()]) {
        let (file, _) = file(10);
        let scratch = tempfile::tempdir().unwrap();
        let mut command = Command::new(SWEETSPOT);
        command.arg("send").arg(file.path()).args(["--json", "--listen", "127.0.0.1:0"]);
        command.args(["--congestion", &congestion]);
        let target = scratch.path().to_owned();
        let offer = Serve::spawn(scratch, &target, command);
        let mut receive = Command::new(SWEETSPOT);
        receive.args(["receive", "--json", &offer.ticket]).arg(&target);
        let outcome = outcome(&run(receive).stdout);
        assert_eq!(outcome.congestion.as_ref().map(PeerText::raw), Some(congestion.as_str()));
    }
    let mut command = Command::new(SWEETSPOT);
    command.args(["send", "/dev/null", "--offer", "--congestion", "warp"]);
    let refused = run(command);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
}

#[test]
fn sobas_sizes_the_window_by_default() {
    let serve = Serve::start(&["--once"]);
    let (file, _) = file(100_000);
    assert_eq!(outcome(&send(file.path(), &serve.ticket, &["--json"]).stdout).sizing, "sobas");
}

#[test]
fn without_probes_the_rtt_comes_from_the_kernel() {
    for (arguments, fallback) in [(&["--json"][..], false), (&["--json", "--no-probes"], true)] {
        let serve = Serve::start(&["--once", "--sizing", "sobas:paper"]);
        let (file, _) = file(20_000_000);
        let outcome = outcome(&send(file.path(), &serve.ticket, arguments).stdout);
        assert_eq!(outcome.probes.fallback, fallback);
        assert_eq!(outcome.probes.sent == 0, fallback);
        assert_eq!(outcome.rtt_source == RttSource::Probes, !fallback);
        assert_eq!(outcome.probes.lost_forward, 0);
    }
}

/// Five trains of five packets would be more than 0.5 % of the packets.
#[test]
fn a_short_transfer_is_neither_probed_nor_limited() {
    let serve = Serve::start(&["--once"]);
    let (file, _) = file(5_000_000);
    let outcome = outcome(&send(file.path(), &serve.ticket, &["--json"]).stdout);
    assert_eq!((&*outcome.sizing, outcome.probes.sent), ("sobas", 0));
    assert!(outcome.limits.is_empty(), "{:?}", outcome.limits);
}

#[test]
fn policies_that_use_the_kernel_rtt_send_no_probes() {
    for sizing in ["kernel", "drs", "heffner:twice", "rledbat"] {
        let serve = Serve::start(&["--once", "--sizing", sizing]);
        let (file, _) = file(20_000_000);
        let outcome = outcome(&send(file.path(), &serve.ticket, &["--json"]).stdout);
        assert_eq!(outcome.probes.sent, 0, "{sizing}");
        assert_ne!(outcome.rtt_source, RttSource::Probes, "{sizing}");
    }
}

#[test]
fn a_written_series_can_be_read_back() {
    let scratch = tempfile::tempdir().unwrap();
    let paths = ["near", "far"].map(|name| scratch.path().join(name));
    let [sender, receiver] = paths.each_ref().map(|path| path.to_str().unwrap());
    let serve = Serve::start(&["--once", "--series", receiver]);
    let (file, _) = file(200_000_000);
    let arguments = ["--sizing", "fixed:2MB", "--series", sender];
    assert_eq!(send(file.path(), &serve.ticket, &arguments).code, Some(0));
    serve.wait();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<SeriesRecord> =
            text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let times: Vec<f64> = lines
            .iter()
            .filter_map(|line| match line {
                SeriesRecord::Row(row) => Some(row.t_s),
                SeriesRecord::Event(_) => None,
            })
            .collect();
        assert!(!times.is_empty() && times.is_sorted(), "{path:?}");
    }
    let limited = |text: &str| text.contains(r#""event":"limited","window_bytes":2000000"#);
    assert!(limited(&fs::read_to_string(&paths[1]).unwrap()));
}

#[test]
fn a_received_file_has_the_mode_and_mtime_of_its_source() {
    let serve = Serve::start(&["--once"]);
    let (file, _) = file(10);
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    file.as_file().set_modified(long_ago).unwrap();
    assert_eq!(send(file.path(), &serve.ticket, &["--name", "f"]).code, Some(0));
    let received = fs::metadata(serve.directory.join("f")).unwrap();
    assert_eq!(received.permissions().mode() & 0o777, 0o640);
    assert_eq!(received.modified().unwrap(), long_ago);
    assert_eq!(names(&serve.directory), ["f"]);
}

/// A TCP forwarder in front of the server, on a port without a UDP listener.
#[test]
fn blocked_udp_is_reported_and_the_kernel_rtt_is_used_instead() {
    let serve = Serve::start(&["--once", "--verbose", "--sizing", "sobas:paper"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut ticket = serve.ticket();
    let inner = ticket.port;
    ticket.port = listener.local_addr().unwrap().port();
    let forwarder = std::thread::spawn(move || {
        let outer = listener.accept().unwrap().0;
        let inner = TcpStream::connect(("127.0.0.1", inner)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| forward(&outer, &inner, true));
            scope.spawn(|| forward(&inner, &outer, false));
        });
    });
    let (file, content) = file(2_000_000);
    let arguments = ["--name", "f", "--json"];
    let outcome = outcome(&send(file.path(), &ticket.to_string(), &arguments).stdout);
    assert!(outcome.probes.fallback && outcome.probes.answered == 0, "{outcome:?}");
    assert_ne!(outcome.rtt_source, RttSource::Probes);
    eventually_equal(&serve.directory.join("f"), &content);
    let stderr = serve.wait().stderr;
    assert_eq!(stderr.matches("UDP blocked?").count(), 1, "{stderr}");
    forwarder.join().unwrap();
}

/// Forwards bytes until the end. With `pausing`, it stops once in the middle, for longer than probes may stay
/// unanswered.
fn forward(mut from: &TcpStream, mut to: &TcpStream, pausing: bool) {
    let (mut buffer, mut passed, mut pausing) = ([0; 65536], 0, pausing);
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
        passed += n;
        if pausing && passed > 1_000_000 {
            pausing = false;
            clock::sleep_until(clock::now() + Duration::from_millis(1500));
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
