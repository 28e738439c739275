//! Connections that existed before the programs were attached.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

use sweetspot_kernel::{Command as Decision, Record, RecordKind};
use sweetspot_linux::live::{LiveSocket, ProcessHandle};
use sweetspot_linux::tcp::{Info, options};
use sweetspot_linux::{clock, processes};
use sweetspot_units::{Bytes, Duration};

use crate::cgroup::{Inside, WATCH, unattached};

/// Pins its receive buffer at 131,072 bytes and reads; after 100 kB it sets the clamp given as its second argument, unless that
/// is 0. All segments have one size, so the kernel has set its last clamp after the first.
const CLIENT: &str = "\
import socket, sys
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
s.connect(('127.0.0.1', int(sys.argv[1])))
n = 0
while n < 100000: n += len(s.recv(65536))
if int(sys.argv[2]): s.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, int(sys.argv[2]))
while s.recv(65536): pass";

/// Sends to the first client without end; returns the port.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        while stream.write_all(&[7; 20_000]).is_ok() {
            clock::sleep_until(clock::now() + Duration::from_millis(1));
        }
    });
    port
}

/// The result of `wanted` within a minute, renewing the lease in the meantime.
fn eventually<T>(
    inside: &mut Inside,
    what: &str,
    mut wanted: impl FnMut(&mut Inside) -> Option<T>,
) -> T {
    let patience = clock::now() + Duration::from_secs(60);
    loop {
        inside.connections.renew(clock::now()).unwrap();
        if let Some(found) = wanted(inside) {
            return found;
        }
        assert!(clock::now() < patience, "never came: {what}");
        clock::sleep_until(clock::now() + Duration::from_millis(2));
    }
}

/// The next record that `wanted` accepts.
fn record(inside: &mut Inside, what: &str, wanted: impl Fn(&Record) -> bool) -> Record {
    eventually(inside, what, |inside| {
        std::iter::from_fn(|| inside.connections.poll_record()).find(&wanted)
    })
}

fn limit(inside: &mut Inside, cookie: u64, limit: Bytes) {
    let command = Decision {
        limit: Some(limit),
        pace: None,
        congestion: None,
        interval: WATCH.interval,
        left: false,
    };
    inside.connections.command(cookie, command).unwrap();
    inside.connections.flush().unwrap();
}

fn connection(pid: u32) -> Option<LiveSocket> {
    let process = ProcessHandle::open(pid).ok()?;
    processes::sockets(pid).ok()?.into_iter().find_map(|d| {
        let socket = LiveSocket::name(&process, d.fd, d.inode, None).ok()?;
        socket.with(|fd| options::ends(fd)).ok()?.ok()??;
        Some(socket)
    })
}

fn clamp(socket: &LiveSocket) -> Bytes {
    socket.with(|fd| options::window_clamp(fd)).unwrap().unwrap()
}

fn received(socket: &LiveSocket) -> Bytes {
    socket.with(|fd| Info::read(fd)).unwrap().unwrap().bytes_received
}

/// 65,536 is half of the buffer. The kernel's own clamp is more than 70,000: 1388 of each segment's 2304 bytes are payload,
/// which makes 78,961 bytes of the buffer.
#[test]
fn an_existing_clamp_is_never_loosened_and_is_restored_exactly() {
    let (low, high) = (Bytes::new(40_001), Bytes::new(70_000));
    for own in [65_536, 50_003, 0] {
        let Some(on) = unattached(WATCH) else { return };
        let mut client = Command::new("python3");
        client.args(["-c", CLIENT, &server().to_string(), &own.to_string()]);
        let mut inside = Inside::run(on, client.stderr(Stdio::null()));
        let pid = inside.process.id();
        let socket = eventually(&mut inside, "the client's clamp", |_| {
            let socket = connection(pid)?;
            let is_there = match own {
                0 => received(&socket) > Bytes::new(200_000),
                own => clamp(&socket) == Bytes::new(own),
            };
            is_there.then_some(socket)
        });
        let before = clamp(&socket);
        assert!(own > 0 || before > high, "{before}");
        inside.programs.attach(&inside.cgroup).unwrap();
        if !inside.programs.find_present().unwrap() {
            return sweetspot_testing::skipped("BPF follows no existing connection (Linux 6.12)");
        }
        let cookie = record(&mut inside, "bulk", |r| r.kind == RecordKind::Bulk).cookie;
        limit(&mut inside, cookie, low);
        record(&mut inside, "the low limit", |r| r.clamp == low);
        limit(&mut inside, cookie, high);
        let max = before.min(high);
        record(&mut inside, "the high limit", |r| r.clamp == max);
        for _ in 0..50 {
            let sample = record(&mut inside, "samples", |r| r.kind == RecordKind::Sample);
            assert_eq!(sample.clamp, max);
        }
        limit(&mut inside, cookie, low);
        record(&mut inside, "the low limit again", |r| r.clamp == low);
        inside.programs.undo();
        assert_eq!(clamp(&socket), before);
    }
}
