//! A server with clients, which lives as long as the process.

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
/// Maximum time that a session may continue after its peer has gone. A receiver waiting for its disk notices when it next
/// reports that it is busy, after 5 s.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// The content of a file outside every client's directory.
pub const SECRET: &[u8] = b"a secret of another user, which no client may read";

/// Clients with different rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// May write new files, up to a quota.
    Writer,
    /// May also replace existing files.
    Replacer,
    /// Has no quota.
    Unbounded,
    /// May read existing files.
    Reader,
}

pub struct Fixture {
    pub scratch: PathBuf,
    ticket: Ticket,
    state: &'static State,
    /// Locked during a session: one at a time.
    turn: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The number of admitted transfers that have not ended, and the number admitted or rejected so far.
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

    fn rejected(&self, _: SocketAddr, _: Option<&str>, _: &TransferError) {
        lock(&self.running).1 += 1;
        self.changed.notify_all();
    }
}

/// The server, started on the first call.
pub fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        // Left behind because the server runs until the process ends; tests put it below `target`.
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
            // The owner of a directory without permissions can still change them.
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o700));
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }

    /// A connection with TLS established and short timeouts.
    pub fn connect(self) -> Raw {
        let secret = Some(self.secret());
        let raw = Raw::dial(&fixture().ticket, &Dial { secret, ..Dial::default() }).unwrap();
        raw.socket().set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        raw.socket().set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        raw
    }
}

impl Fixture {
    /// Excludes other sessions of this process.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// The number of connections admitted or rejected so far.
    pub fn judged(&self) -> u64 {
        lock(&self.state.running).1
    }

    /// Waits until every transfer has ended. The caller must have hung up.
    pub fn wait_until_idle(&self) {
        let running = lock(&self.state.running);
        let idle = |running: &mut (u64, u64)| running.0 > 0;
        let waited = self.state.changed.wait_timeout_while(running, PATIENCE, idle);
        let (running, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(running);
        assert!(!timeout.timed_out(), "a session goes on {PATIENCE:?} after its peer has gone");
    }
}
