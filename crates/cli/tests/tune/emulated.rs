//! Programs at both ends of an emulated path, watched from outside.

use std::process::{Child, Command};

use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::processes::{self, Process};
use sweetspot_linux::signals::Signal;

use crate::download::{connection_of, wait_for};

/// The port at which the far end sends to every client, and the port at which it receives.
pub const SENDS: u16 = 8080;
pub const RECEIVES: u16 = 9090;

/// Serves both ports, with CUBIC.
const SERVER: &str = "\
import socket, threading
def serve(port, work):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'cubic')
    listener.bind(('', port)); listener.listen()
    while True:
        threading.Thread(target=work, args=(listener.accept()[0],), daemon=True).start()
def send(s):
    while True: s.sendall(bytes(65536))
def receive(s):
    while s.recv(1 << 18): pass
threading.Thread(target=serve, args=(8080, send)).start()
serve(9090, receive)";

/// Connects to a port of the far end, and then sends or receives forever. Uses CUBIC or, with `host`, the host's default.
const CLIENT: &str = "\
import socket, sys, time
s = None
while s is None:
    try:
        s = socket.socket()
        if sys.argv[2:] != ['host']: s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'cubic')
        s.connect(('10.77.0.2', int(sys.argv[1])))
    except OSError:
        s = None; time.sleep(0.1)
while True: s.sendall(bytes(65536)) if sys.argv[1] == '9090' else s.recv(1 << 18)";

/// A path with a server at its far end. When it is dropped, all processes on it end.
pub struct Emulated {
    child: Child,
}

impl Emulated {
    /// Runs `line` in a shell at the near end, where `$0 -c \"$CLIENT\" PORT` is a client. If this user may not create
    /// namespaces, prints why and returns `None`.
    pub fn start(path: &str, line: &str) -> Option<Emulated> {
        Emulated::start_with(path, &format!("exec python3 -c \"{SERVER}\""), line)
    }

    /// Like [`Emulated::start`], but runs `far` in a shell at the far end.
    pub fn start_with(path: &str, far: &str, line: &str) -> Option<Emulated> {
        let program = env!("CARGO_BIN_EXE_sweetspot");
        let emulate = |arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(["emulate", "--quiet", "--path", path]).args(arguments);
            command
        };
        let tried = emulate(&["--", "true"]).output().unwrap();
        if !tried.status.success() {
            sweetspot_testing::skipped(String::from_utf8_lossy(&tried.stderr));
            return None;
        }
        let mut command = emulate(&["--far", far, "--", "sh", "-c", line]);
        command.env("CLIENT", CLIENT).env("SWEETSPOT", program);
        Some(Emulated { child: command.spawn().unwrap() })
    }

    /// Waits until exactly `count` processes are called `name`, and returns them.
    pub fn processes(&self, name: &str, count: usize) -> Vec<u32> {
        wait_for(name, || {
            let mut family = processes::family(self.child.id());
            family.retain(|pid| Process::read(*pid).is_ok_and(|p| p.name == name));
            (family.len() == count).then_some(family)
        })
    }

    /// The client's process, which runs [`CLIENT`].
    pub fn client(&self) -> u32 {
        let runs = |pid: &u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|b| *b == 0).nth(2) == Some(CLIENT.as_bytes())
        };
        wait_for("the client", || processes::family(self.child.id()).into_iter().find(runs))
    }

    /// The guardian and the tuner, in this order, of the only `sweetspot tune` on the path.
    pub fn tuner(&self) -> [u32; 2] {
        let tunes = |pid: u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|b| *b == 0).nth(1) == Some(b"tune")
        };
        wait_for("the tuner", || {
            let family = processes::family(self.child.id());
            // The last guardian has no parent among these processes.
            family.into_iter().filter(|pid| tunes(*pid)).find_map(|tuner| {
                let guardian = Process::read(tuner).ok()?.parent;
                tunes(guardian).then_some([guardian, tuner])
            })
        })
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        Signal::TERMINATE.send(self.child.id());
        let _ = self.child.wait();
    }
}

/// The connection of process `pid` to `port`.
pub fn connection(pid: u32, port: u16) -> LiveSocket {
    wait_for("the connection", || connection_of(pid, port))
}
