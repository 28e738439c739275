//! Clamps that programs set themselves (TCP_WINDOW_CLAMP).

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use sweetspot_linux::clock;
use sweetspot_linux::signals::Signal;
use sweetspot_linux::tcp::Info;
use sweetspot_units::{Bytes, Duration};

use crate::download::{Server, Tuned, clamp, pinned, receive_buffer, wait_for};
use crate::emulated::connection;
use crate::inside::{OwnCgroup, daemon_on, ended, possible};
use crate::laws::quiet;

/// A client that downloads and, when its standard input ends, sets the clamp given as the second argument.
const CLAMPING: &str = "\
import socket, sys, threading
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
def clamp():
    sys.stdin.read()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, int(sys.argv[2]))
    print('set', flush=True)
threading.Thread(target=clamp, daemon=True).start()
while s.recv(65536): pass";

fn clamping(port: u16, own: Bytes) -> [String; 5] {
    ["python3", "-c", CLAMPING, &port.to_string(), &own.get().to_string()].map(str::to_owned)
}

impl Tuned {
    /// Waits until the client has set its clamp.
    fn is_set(&mut self) {
        let mut line = String::new();
        let output = self.guardian.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "set\n");
    }
}

/// Waits for a second: the tuner samples ten times a second.
fn wait_for_samples() {
    clock::sleep_until(clock::now() + Duration::from_secs(1));
}

/// 65,536 and 4,096 are a half and a 32nd of the buffer, so the kernel might have set them, too. Limits on this path are some
/// 10 kB: below the first value and above the second.
#[test]
fn a_program_with_a_pinned_buffer_keeps_its_clamp() {
    for own in [65_536, 4_096, 50_003].map(Bytes::new) {
        for later in [false, true] {
            let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
            let client = pinned(server.port, own, later);
            let mut tuned = Tuned::start_client(client, server.port, scratch.path(), &[]);
            let connection = tuned.connection();
            tuned.wait_for_event("taken");
            if later {
                drop(tuned.guardian.stdin.take());
            }
            tuned.is_set();
            wait_for_samples();
            quiet(&server, &connection);
            assert_eq!(receive_buffer(&connection), Bytes::new(131_072));
            assert!(clamp(&connection) <= own, "{} is above {own}", clamp(&connection));
            Signal::KILL.send(tuned.tuner());
            wait_for("the program's own clamp", || (clamp(&connection) == own).then_some(()));
            server.stop();
        }
    }
}

/// 65,536 and 32,768 are a half and a quarter of the usual receive buffer of 131,072, so the kernel might have set them, too.
#[test]
fn a_clamp_set_during_tuning_is_restored_whatever_its_value() {
    for own in [65_536, 32_768, 50_003].map(Bytes::new) {
        let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
        let client = clamping(server.port, own);
        let mut tuned = Tuned::start_client(client, server.port, scratch.path(), &[]);
        let connection = tuned.connection();
        tuned.wait_for_event("taken");
        quiet(&server, &connection);
        wait_for_samples();
        drop(tuned.guardian.stdin.take());
        tuned.is_set();
        wait_for_samples();
        wait_for("a limit within the clamp", || (clamp(&connection) <= own).then_some(()));
        Signal::KILL.send(tuned.tuner());
        wait_for("the program's own clamp", || (clamp(&connection) == own).then_some(()));
        server.stop();
    }
}

/// The kernel's own clamp exceeds a quarter of the buffer: each segment has 1388 bytes of payload and counts at most 2304
/// bytes.
#[test]
fn a_program_without_a_clamp_gets_the_kernel_default_back() {
    let (server, scratch) = (Server::start(), tempfile::tempdir().unwrap());
    let client = pinned(server.port, Bytes::ZERO, false);
    let tuned = Tuned::start_client(client, server.port, scratch.path(), &[]);
    let connection = tuned.connection();
    tuned.wait_for_event("taken");
    quiet(&server, &connection);
    Signal::KILL.send(tuned.tuner());
    let quarter = receive_buffer(&connection) / 4;
    wait_for("the kernel's own clamp", || (clamp(&connection) > quarter).then_some(()));
    server.stop();
}

/// 65,536 is half of the pinned buffer; 4,096 is below every limit on this path.
#[test]
fn a_clamp_set_before_tuning_is_never_raised_and_is_restored() {
    if !possible() {
        return;
    }
    for own in [65_536, 4_096].map(Bytes::new) {
        let (scratch, cgroup, server) =
            (tempfile::tempdir().unwrap(), OwnCgroup::make(), Server::start());
        let [python, words @ ..] = pinned(server.port, own, false);
        let mut download = Command::new(python);
        download.args(words).stdout(Stdio::null());
        cgroup.0.enter_on_exec(&mut download).unwrap();
        let mut download = download.spawn().unwrap();
        let socket = connection(download.id(), server.port);
        wait_for("the program's own clamp", || (clamp(&socket) == own).then_some(()));
        let daemon = daemon_on(&cgroup, scratch.path(), &["--quiet"]);
        wait_for("taken", || {
            let log = std::fs::read_to_string(scratch.path().join("events.jsonl")).ok()?;
            log.contains("\"event\":\"taken\"").then_some(())
        });
        let received = || socket.with(|fd| Info::read(fd)).unwrap().unwrap().bytes_received;
        let before = received();
        wait_for("more data", || {
            assert!(clamp(&socket) <= own, "{} is above {own}", clamp(&socket));
            (received() > before + Bytes::new(10_000_000)).then_some(())
        });
        Signal::TERMINATE.send(daemon.id());
        assert_eq!(ended(daemon), (Some(0), String::new()));
        assert_eq!(clamp(&socket), own);
        server.stop();
        assert!(download.wait().unwrap().success());
    }
}
