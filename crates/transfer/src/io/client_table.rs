//! Who may connect to a server, and what was used up.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use sweetspot_linux::{clock, file};
use sweetspot_protocol::clients::{Client, Clients, Credential};
use sweetspot_protocol::{PublicKey, Secret, SpokenCode};

use super::channel::lock;
use super::identity::OWNER_ONLY;
use crate::TransferError;

/// So many wrong tries end a spoken code: with 33 bits, one in three thousand million is guessed.
const MAX_WRONG_TRIES: u32 = 3;
/// What an editor may have written by accident is not read into memory.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Who may connect, and what was used up.
pub(crate) struct ClientTable {
    source: Source,
    uses: Mutex<Uses>,
    /// The secrets by which who came with a code comes again, by the code's id.
    further: Mutex<HashMap<String, Secret>>,
}

enum Source {
    /// Who holds the one ticket, or was told the one code.
    One(Arc<Client>),
    /// Who is named in a file.
    File { path: PathBuf, read: Mutex<Option<ReadFile>> },
}

struct ReadFile {
    /// Device, inode, length, seconds and nanoseconds of the last change: what an edit changes.
    version: (u64, u64, u64, i64, i64),
    clients: Vec<Arc<Client>>,
}

/// What was used up, kept over restarts.
#[derive(Default)]
struct Uses {
    path: Option<PathBuf>,
    by_credential: BTreeMap<String, Use>,
}

/// What was used of one credential.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Use {
    /// The one transfer that it was for.
    transfer: Option<String>,
    /// Whether that has ended well.
    ended: bool,
    /// Wrong tries of a code.
    wrong: u32,
}

impl ClientTable {
    /// For one ticket or code.
    pub fn of_one(client: Client) -> ClientTable {
        ClientTable::new(Source::One(Arc::new(client)), Uses::default())
    }

    /// For those who are named in the file at `path`; what is used up is kept in `uses`.
    pub fn of_file(path: &Path, uses: PathBuf) -> Result<ClientTable, TransferError> {
        let failed = |source| TransferError::State { path: uses.clone(), source };
        let by_credential = match fs::read(&uses) {
            Ok(text) => serde_json::from_slice(&text).map_err(|e| failed(io::Error::other(e)))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(failed(error)),
        };
        let uses = Uses { path: Some(uses.clone()), by_credential };
        let source = Source::File { path: path.to_owned(), read: Mutex::default() };
        let table = ClientTable::new(source, uses);
        table.clients()?;
        Ok(table)
    }

    fn new(source: Source, uses: Uses) -> ClientTable {
        ClientTable { source, uses: Mutex::new(uses), further: Mutex::default() }
    }

    /// All clients, as the file names them now. A file with a mistake admits nobody: who was to be removed by that edit
    /// must not get in by its mistake.
    pub fn clients(&self) -> Result<Vec<Arc<Client>>, TransferError> {
        let (path, read) = match &self.source {
            Source::One(client) => return Ok(vec![Arc::clone(client)]),
            Source::File { path, read } => (path, read),
        };
        let mut read = lock(read);
        let wrong = |reason: String| TransferError::Clients { path: path.clone(), reason };
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let stat = file.metadata().map_err(|error| wrong(error.to_string()))?;
        let version = (stat.dev(), stat.ino(), stat.len(), stat.ctime(), stat.ctime_nsec());
        if let Some(read) = read.as_ref().filter(|read| read.version == version) {
            return Ok(read.clients.clone());
        }
        *read = None;
        if stat.mode() & 0o022 != 0 {
            return Err(wrong("others may write to it; chmod 600 it".into()));
        }
        let mut text = String::new();
        (&file)
            .take(MAX_FILE_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| wrong(error.to_string()))?;
        let clients: Clients = text.parse().map_err(|error| wrong(format!("{error}")))?;
        let is_secret = |client: &Client| !matches!(client.credential, Credential::Key(_));
        if stat.mode() & 0o044 != 0 && clients.list.iter().any(is_secret) {
            return Err(wrong("it holds secrets, and others may read it; chmod 600 it".into()));
        }
        let clients: Vec<Arc<Client>> = clients.list.into_iter().map(Arc::new).collect();
        *read = Some(ReadFile { version, clients: clients.clone() });
        Ok(clients)
    }

    /// The code of this number, unless it was tried wrongly too often.
    pub fn code(&self, number: u32) -> Result<Option<(Arc<Client>, SpokenCode)>, TransferError> {
        for client in self.clients()? {
            if let Credential::Code(code) = &client.credential
                && code.number() == number
            {
                let uses = lock(&self.uses);
                let wrong = uses.by_credential.get(&client.credential.id()).map_or(0, |u| u.wrong);
                drop(uses);
                let code = code.clone();
                return Ok((wrong < MAX_WRONG_TRIES).then_some((client, code)));
            }
        }
        Ok(None)
    }

    /// Somebody tried a code that is not this client's.
    pub fn wrong_try(&self, client: &Client) -> Result<(), TransferError> {
        self.change(client, |used| used.wrong += 1)
    }

    /// Who holds the private key of `key`.
    pub fn by_key(&self, key: PublicKey) -> Result<Option<Arc<Client>>, TransferError> {
        let mut clients = self.clients()?.into_iter();
        Ok(clients.find(|client| client.credential == Credential::Key(key)))
    }

    /// The client whose secret is `proved`, and what that gives.
    pub fn by_secret<T>(
        &self,
        proved: impl Fn(&Secret) -> Option<T>,
    ) -> Result<Option<(Arc<Client>, T)>, TransferError> {
        let further = lock(&self.further).clone();
        Ok(self.clients()?.into_iter().find_map(|client| {
            let found = match &client.credential {
                Credential::Secret(secret) => proved(secret),
                Credential::Code(_) => further.get(&client.credential.id()).and_then(&proved),
                Credential::Key(_) => None,
            };
            Some((client, found?))
        }))
    }

    /// The secret by which who came with a code comes again.
    pub fn remember(&self, client: &Client, secret: Secret) {
        lock(&self.further).insert(client.credential.id(), secret);
    }

    /// Notes that `client` is used for `transfer`. False if it is used up.
    pub fn begin(&self, client: &Client, transfer: &str) -> Result<bool, TransferError> {
        if !client.once {
            return Ok(true);
        }
        let known = lock(&self.uses).by_credential.get(&client.credential.id()).cloned();
        match known.unwrap_or_default() {
            Use { ended: true, .. } => Ok(false),
            Use { transfer: Some(first), .. } => Ok(first == transfer),
            Use { transfer: None, .. } => {
                self.change(client, |used| used.transfer = Some(transfer.to_owned()))?;
                Ok(true)
            }
        }
    }

    /// Notes that the one transfer of `client` has ended well.
    pub fn end(&self, client: &Client) -> Result<(), TransferError> {
        if client.once { self.change(client, |used| used.ended = true) } else { Ok(()) }
    }

    /// Changes what is used, on disk before it counts.
    fn change(&self, client: &Client, change: impl FnOnce(&mut Use)) -> Result<(), TransferError> {
        let mut uses = lock(&self.uses);
        change(uses.by_credential.entry(client.credential.id()).or_default());
        let Some(path) = &uses.path else { return Ok(()) };
        let failed = |source| TransferError::State { path: path.clone(), source };
        let text = serde_json::to_vec(&uses.by_credential).map_err(|e| failed(e.into()))?;
        file::replace(path, &text, OWNER_ONLY).map_err(failed)
    }
}

/// When `client` is no longer admitted has come.
pub(crate) fn has_expired(client: &Client) -> bool {
    client.expires.is_some_and(|expires| clock::wall() >= expires)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Scratch(tempfile::TempDir);

    impl Scratch {
        fn new(clients: &str) -> Scratch {
            let scratch = Scratch(tempfile::tempdir().unwrap());
            scratch.write(clients);
            scratch
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("clients")
        }

        fn write(&self, clients: &str) {
            // As an editor does: a new file in place of the old one.
            let new = self.0.path().join("clients.new");
            fs::write(&new, clients).unwrap();
            fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
            fs::rename(new, self.path()).unwrap();
        }

        fn table(&self) -> Result<ClientTable, TransferError> {
            ClientTable::of_file(&self.path(), self.0.path().join("uses.json"))
        }
    }

    const CODE: &str = "code:7-crisp-lemon-orbit guest dir=/srv/guest once";

    fn key() -> PublicKey {
        PublicKey([3; 32])
    }

    #[test]
    fn who_is_taken_out_of_the_file_is_not_admitted_any_more() {
        let scratch = Scratch::new(&format!("{} alice dir=/srv/alice\n", key()));
        let table = scratch.table().unwrap();
        let alice = table.by_key(key()).unwrap().expect("she is named");
        assert!(table.clients().unwrap().contains(&alice));
        scratch.write("# nobody\n");
        assert_eq!(table.by_key(key()).unwrap(), None);
        assert!(!table.clients().unwrap().contains(&alice));
    }

    #[test]
    fn a_file_with_a_mistake_admits_nobody() {
        let scratch = Scratch::new(&format!("{} alice dir=/srv/alice\n", key()));
        let table = scratch.table().unwrap();
        scratch.write(&format!("{} alice dir=/srv/alice\nnonsense\n", key()));
        let error = table.by_key(key()).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }

    #[test]
    fn what_others_could_change_or_read_is_refused() {
        let scratch = Scratch::new(CODE);
        let mode = |bits| fs::set_permissions(scratch.path(), fs::Permissions::from_mode(bits));
        mode(0o644).unwrap();
        assert!(scratch.table().err().unwrap().to_string().contains("others may read"));
        mode(0o622).unwrap();
        assert!(scratch.table().err().unwrap().to_string().contains("others may write"));
        mode(0o600).unwrap();
        scratch.table().unwrap();
    }

    #[test]
    fn what_is_for_one_transfer_stays_used_after_a_restart() {
        let scratch = Scratch::new(CODE);
        let table = scratch.table().unwrap();
        let guest = Arc::clone(&table.clients().unwrap()[0]);
        assert!(table.begin(&guest, "one").unwrap());
        // The same transfer goes on; another one is none of it.
        assert!(table.begin(&guest, "one").unwrap());
        let again = scratch.table().unwrap();
        assert!(again.begin(&guest, "one").unwrap());
        assert!(!again.begin(&guest, "two").unwrap());
        again.end(&guest).unwrap();
        assert!(!scratch.table().unwrap().begin(&guest, "one").unwrap());
    }

    #[test]
    fn three_wrong_tries_end_a_code_for_good() {
        let scratch = Scratch::new(CODE);
        for tries in 0..MAX_WRONG_TRIES {
            let table = scratch.table().unwrap();
            let (guest, _) = table.code(7).unwrap().unwrap_or_else(|| panic!("after {tries}"));
            table.wrong_try(&guest).unwrap();
        }
        assert!(scratch.table().unwrap().code(7).unwrap().is_none());
    }
}
