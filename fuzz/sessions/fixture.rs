//! A server with clients, for the life of the process.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use sweetspot_control::TransferSummary;
use sweetspot_hostile_peer::{Dial, Raw};
use sweetspot_protocol::clients::Credential;
use sweetspot_protocol::{Secret, Ticket};
use sweetspot_transfer::{
    AdmittedTransfer, NullObserver, Purpose, ReceiveOptions, SendOptions, ServeOptions, Server,
    ServerObserver, ServiceOptions, Target, TransferError, TransferObserver,
};

/// The quota of a client's directory, bytes: two pieces.
pub const QUOTA: u64 = 512 << 10;
/// How long a session may go on after its peer has gone. A receiver that waits for its disk notices when it next says that
/// it is busy, after 5 s.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// The content of a file outside of every client's directory.
pub const SECRET: &[u8] = b"a secret of another user, which no client may read";

/// Clients, by what they may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// It may bring what is not there, up to a quota.
    Writer,
    /// It may replace what is there, too.
    Replacer,
    /// It has no quota.
    Unbounded,
    /// It may fetch what is there.
    Reader,
}

pub struct Fixture {
    pub scratch: PathBuf,
    ticket: Ticket,
    state: &'static State,
    /// One session at a time.
    turn: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// Transfers that were admitted and have not ended, and how many were admitted or turned away.
    running: Mutex<(u64, u64)>,
    changed: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerObserver for &'static State {
    fn admitted(&self, _: AdmittedTransfer<'_>) -> Box<dyn TransferObserver> {
        let mut running = lock(&self.running);
        *running = (running.0 + 1, running.1 + 1);
        Box::new(NullObserver)
    }

    fn ended(&self, _: u64, _: &Result<TransferSummary, TransferError>) {
        lock(&self.running).0 -= 1;
        self.changed.notify_all();
    }

    fn turned_away(&self, _: SocketAddr, _: &TransferError) {
        lock(&self.running).1 += 1;
        self.changed.notify_all();
    }
}

/// The server, started at the first call.
pub fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        // It is left behind, as the server runs to the end of the process: by tests below `target`.
        let scratch = match option_env!("CARGO_TARGET_TMPDIR") {
            Some(target) => tempfile::tempdir_in(target),
            None => tempfile::tempdir(),
        };
        let scratch = scratch.unwrap().keep();
        fs::write(scratch.join("secret"), SECRET).unwrap();
        let mut lines = String::new();
        for (client, rights, quota) in [
            (Client::Writer, "write", true),
            (Client::Replacer, "read,overwrite", true),
            (Client::Unbounded, "write", false),
            (Client::Reader, "read", false),
        ] {
            let directory = scratch.join(format!("{client:?}"));
            fs::create_dir(&directory).unwrap();
            let credential = Credential::Secret(client.secret());
            let quota = if quota { format!(" quota={QUOTA}B") } else { String::new() };
            let directory = directory.display();
            lines += &format!("{credential} {client:?} dir={directory} rights={rights}{quota}\n");
        }
        let clients = scratch.join("clients");
        fs::write(&clients, lines).unwrap();
        fs::set_permissions(&clients, fs::Permissions::from_mode(0o600)).unwrap();
        let service = ServiceOptions {
            clients,
            uses: scratch.join("uses.json"),
            receive: ReceiveOptions::at(Target::Into(scratch.join("unused"))),
            send: SendOptions::default(),
        };
        let server = Server::bind(ServeOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            ..ServeOptions::new(Purpose::Clients(Box::new(service)))
        })
        .unwrap();
        let ticket = server.ticket().clone();
        let state: &'static State = Box::leak(Box::default());
        std::thread::spawn(move || server.run(&state).unwrap());
        Fixture { scratch, ticket, state, turn: Mutex::default() }
    })
}

impl Client {
    fn secret(self) -> Secret {
        Secret([1 + self as u8; 16])
    }

    /// The directory that the client sees.
    pub fn directory(self) -> PathBuf {
        fixture().scratch.join(format!("{self:?}"))
    }

    /// Empties the directory.
    pub fn clear(self) {
        for entry in fs::read_dir(self.directory()).unwrap() {
            let path = entry.unwrap().path();
            // A directory that its owner may not enter is still the owner's.
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o700));
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }

    /// A connection with TLS up, which waits for nothing long.
    pub fn connect(self) -> Raw {
        let secret = Some(self.secret());
        let raw = Raw::dial(&fixture().ticket, &Dial { secret, ..Dial::default() }).unwrap();
        raw.socket().set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        raw.socket().set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        raw
    }
}

impl Fixture {
    /// Keeps other sessions of this process out.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// How many connections were admitted or turned away so far.
    pub fn judged(&self) -> u64 {
        lock(&self.state.running).1
    }

    /// Waits until every transfer has ended. The caller has hung up.
    pub fn wait_until_idle(&self) {
        let running = lock(&self.state.running);
        let idle = |running: &mut (u64, u64)| running.0 > 0;
        let waited = self.state.changed.wait_timeout_while(running, PATIENCE, idle);
        let (running, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(running);
        assert!(!timeout.timed_out(), "a session goes on {PATIENCE:?} after its peer has gone");
    }
}
