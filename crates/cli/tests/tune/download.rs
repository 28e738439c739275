use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use sweetspot_linux::live::{LiveSocket, ProcessHandle};
use sweetspot_linux::tcp::options;
use sweetspot_linux::{clock, processes};
use sweetspot_units::{Bytes, Duration};

/// A clamp without effect.
pub const UNCLAMPED: Bytes = Bytes::new(i32::MAX as u64);

/// Connects, reads to the end of the stream and prints the number of bytes.
const CLIENT: &str = "\
import socket, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
n = 0
while True:
    data = s.recv(65536)
    if not data: break
    n += len(data)
print(n)";

/// Like [`CLIENT`], but after 50 MB, long after it was limited, it forks. The child continues with the connection under another
/// descriptor.
const MOVER: &str = "\
import os, socket, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
n = 0
while n < 50000000: n += len(s.recv(65536))
child = os.fork()
if child:
    s.close()
    os.waitpid(child, 0)
    sys.exit()
os.dup2(s.fileno(), 200)
s.close()
while os.read(200, 65536): pass";

/// Like [`CLIENT`], but sets a clamp of its own after the number of seconds in its second argument.
const CLAMPED: &str = "\
import socket, sys, time
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
time.sleep(int(sys.argv[2]))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, 50003)
while s.recv(65536): pass";

/// Pins its receive buffer at 131,072 bytes, downloads, and sets the clamp given as the second argument: after 50 kB or, if the
/// third argument is `later`, when its standard input ends. All segments have one size, so the kernel sets its last clamp after
/// the first.
const PINNED: &str = "\
import socket, sys, threading
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
s.connect(('127.0.0.1', int(sys.argv[1])))
own, later = int(sys.argv[2]), sys.argv[3] == 'later'
def clamp():
    if later: sys.stdin.read()
    if own: s.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, own)
    print('set', flush=True)
n = 0
while n < 50000: n += len(s.recv(65536))
if later: threading.Thread(target=clamp, daemon=True).start()
else: clamp()
while s.recv(65536): pass";

/// A server in this process that sends about 40 MB/s until it is stopped.
pub struct Server {
    pub port: u16,
    stop: Arc<AtomicBool>,
    sending: Arc<Mutex<Sending>>,
}

/// The state shared by all downloads.
#[derive(Default)]
struct Sending {
    paused: bool,
    written: u64,
}

impl Server {
    pub fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Server { port, stop: Arc::default(), sending: Arc::default() };
        let (stop, sending) = (Arc::clone(&server.stop), Arc::clone(&server.sending));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (stop, sending) = (Arc::clone(&stop), Arc::clone(&sending));
                thread::spawn(move || send(stream, &stop, &sending));
            }
        });
        server
    }

    /// Pauses sending until [`Server::go_on`]. Returns the number of bytes sent.
    pub fn pause(&self) -> u64 {
        // No thread writes while this is locked.
        let mut sending = self.sending.lock().unwrap();
        sending.paused = true;
        sending.written
    }

    /// Resumes sending.
    pub fn go_on(&self) {
        self.sending.lock().unwrap().paused = false;
    }

    /// Ends all downloads.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn send(mut stream: TcpStream, stop: &AtomicBool, sending: &Mutex<Sending>) {
    static PIECE: [u8; 40_000] = [7; 40_000];
    while !stop.load(Ordering::Relaxed) {
        let mut sending = sending.lock().unwrap();
        if !sending.paused {
            if stream.write_all(&PIECE).is_err() {
                return;
            }
            sending.written += PIECE.len() as u64;
        }
        drop(sending);
        clock::sleep_until(clock::now() + Duration::from_millis(1));
    }
}

/// A client that downloads from `port`.
pub fn client(port: u16) -> [String; 4] {
    ["python3", "-c", CLIENT, &port.to_string()].map(str::to_owned)
}

/// A client that moves its connection to a child.
pub fn mover(port: u16) -> [String; 4] {
    ["python3", "-c", MOVER, &port.to_string()].map(str::to_owned)
}

/// A client that sets a clamp of 50,003 bytes `after` seconds after it has connected.
pub fn clamped(port: u16, after: u64) -> [String; 5] {
    ["python3", "-c", CLAMPED, &port.to_string(), &after.to_string()].map(str::to_owned)
}

/// A client with a pinned buffer. If `own` is not zero, it sets this clamp before or during tuning.
pub fn pinned(port: u16, own: Bytes, later: bool) -> [String; 6] {
    let when = if later { "later" } else { "before" };
    ["python3", "-c", PINNED, &port.to_string(), &own.get().to_string(), when].map(str::to_owned)
}

/// A download under `sweetspot tune run`.
pub struct Tuned {
    pub guardian: Child,
    pub events: PathBuf,
    port: u16,
}

impl Tuned {
    pub fn start(port: u16, scratch: &Path, options: &[&str]) -> Tuned {
        Tuned::start_client(client(port), port, scratch, options)
    }

    /// Like [`Tuned::start`], for another client.
    pub fn start_client(
        client: impl IntoIterator<Item = String>,
        port: u16,
        scratch: &Path,
        options: &[&str],
    ) -> Tuned {
        let events = scratch.join("events.jsonl");
        let guardian = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
            .args(["tune", "run", "--quiet", "--events"])
            .arg(&events)
            .args(if options.contains(&"--via") { &[][..] } else { &["--via", "pidfd"] })
            .args(options)
            .arg("--")
            .args(client)
            // The directory for the record of limits.
            .env("RUNTIME_DIRECTORY", scratch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Tuned { guardian, events, port }
    }

    /// The tuner's process: the guardian's child.
    pub fn tuner(&self) -> u32 {
        let guardian = self.guardian.id();
        let child = |pid: &u32| processes::Process::read(*pid).is_ok_and(|p| p.parent == guardian);
        wait_for("the tuner", || processes::family(guardian).into_iter().find(child))
    }

    /// The client's connection, in any process of the family. The tuner's process is left out: it holds duplicates only for
    /// moments.
    pub fn connection(&self) -> LiveSocket {
        let (guardian, port) = (self.guardian.id(), self.port);
        let program = Path::new(env!("CARGO_BIN_EXE_sweetspot"));
        let is_client = |pid: &u32| {
            fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|running| running != program)
        };
        wait_for("the connection", || {
            let mut clients = processes::family(guardian).into_iter().filter(is_client);
            clients.find_map(|pid| connection_of(pid, port))
        })
    }

    /// Waits until the log has an event of kind `kind`.
    pub fn wait_for_event(&self, kind: &str) {
        let marker = format!("\"event\":\"{kind}\"");
        wait_for(kind, || {
            let file = File::open(&self.events).ok()?;
            BufReader::new(file).lines().map_while(Result::ok).find(|l| l.contains(&marker))
        });
    }

    /// The client's output, and the exit code.
    pub fn finish(self) -> (String, Option<i32>) {
        let output = self.guardian.wait_with_output().unwrap();
        (String::from_utf8_lossy(&output.stdout).trim().to_owned(), output.status.code())
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.events).unwrap_or_default()
    }
}

/// The connection of process `pid` to `port`, if it has one.
pub fn connection_of(pid: u32, port: u16) -> Option<LiveSocket> {
    let process = ProcessHandle::open(pid).ok()?;
    processes::sockets(pid).ok()?.into_iter().find_map(|d| {
        let socket = LiveSocket::name(&process, d.fd, d.inode, None).ok()?;
        let ends = socket.with(|fd| options::ends(fd)).ok()?.ok()??;
        (ends.1.port() == port).then_some(socket)
    })
}

/// The size of a connection's receive buffer.
pub fn receive_buffer(socket: &LiveSocket) -> Bytes {
    socket.with(|fd| options::receive_buffer(fd)).unwrap().unwrap()
}

/// The window clamp of a connection.
pub fn clamp(socket: &LiveSocket) -> Bytes {
    socket.with(|fd| options::window_clamp(fd)).unwrap().unwrap()
}

/// Whether a connection is no longer limited to `held`. A limit above the kernel's own clamp, which is at least half of the
/// buffer before data arrive, leaves that clamp as it is.
pub fn is_lifted(connection: &LiveSocket, held: Bytes) -> bool {
    clamp(connection) > held || held > receive_buffer(connection) / 4
}

/// Waits up to a minute until `look` returns a value.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let patience = clock::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(clock::now() < patience, "{what} never came");
        clock::sleep_until(clock::now() + Duration::from_millis(10));
    }
}
