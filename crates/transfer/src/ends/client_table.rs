//! The clients of a server, and the usage of their credentials.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sweetspot_linux::clock;
use sweetspot_protocol::clients::{Client, Credential};
use sweetspot_protocol::{PublicKey, Secret, SpokenCode};

use crate::Result;
use crate::ends::claim::{Claim, Unavailable};
use crate::ends::clients_file::ClientsFile;
use crate::ends::turn;
use crate::ends::uses::{Use, Uses};
use crate::limits::{MAX_PEERS_PER_CODE, MAX_WRONG_TRIES};
use crate::lock::lock;

/// The clients that may connect, and the usage of each credential.
pub(crate) struct ClientTable {
    source: Source,
    uses: Mutex<Uses>,
    /// Secrets with which peers that proved a code reconnect, by the code's ID.
    further: Mutex<HashMap<String, Vec<Secret>>>,
}

enum Source {
    /// The holder of the one ticket, or of the one code.
    One(Arc<Client>),
    File(Box<ClientsFile>),
}

/// The only attempt at a code, held by one connection.
pub(crate) struct CodeTry<'a> {
    table: &'a ClientTable,
    pub client: Arc<Client>,
}

impl Drop for CodeTry<'_> {
    fn drop(&mut self) {
        lock(&self.table.uses).tried.remove(&self.client.credential.id());
    }
}

impl CodeTry<'_> {
    /// Notes that the peer proved the code. It reconnects with `secret`, and the code may be tried again.
    pub fn succeed(&self, secret: Secret) -> Result<()> {
        let CodeTry { table, client } = self;
        table.change(client, |used| used.wrong = 0)?;
        let mut further = lock(&table.further);
        let secrets = further.entry(client.credential.id()).or_default();
        if secrets.len() == MAX_PEERS_PER_CODE {
            secrets.remove(0);
        }
        secrets.push(secret);
        Ok(())
    }
}

impl ClientTable {
    /// A table with one ticket or code.
    pub fn of_one(client: Client) -> ClientTable {
        ClientTable::new(Source::One(Arc::new(client)), Uses::default())
    }

    /// A table with the clients in the file at `path`. The usage of their credentials is stored in `uses`.
    pub fn of_file(path: &Path, uses: PathBuf) -> Result<ClientTable> {
        let uses = Uses::load(uses)?;
        Ok(ClientTable::new(Source::File(Box::new(ClientsFile::open(path)?)), uses))
    }

    fn new(source: Source, uses: Uses) -> ClientTable {
        ClientTable { source, uses: Mutex::new(uses), further: Mutex::default() }
    }

    /// All clients in the last valid version of the file.
    pub fn clients(&self) -> Vec<Arc<Client>> {
        match &self.source {
            Source::One(client) => vec![Arc::clone(client)],
            Source::File(file) => file.clients(),
        }
    }

    /// Problems found in the file since the last call.
    pub fn take_complaints(&self) -> Vec<String> {
        match &self.source {
            Source::One(_) => Vec::new(),
            Source::File(file) => file.take_complaints(),
        }
    }

    pub fn code(&self, number: u32) -> Option<(Arc<Client>, SpokenCode)> {
        self.clients().into_iter().find_map(|client| match &client.credential {
            Credential::Code(code) if code.number() == number => {
                let code = code.clone();
                Some((client, code))
            }
            _ => None,
        })
    }

    /// Takes the only attempt at this client's code; `None` if it was tried before, or is being tried. Until it succeeds the
    /// attempt counts as wrong, on disk: a peer that reads the answer and disconnects has used its guess.
    pub fn try_code(&self, client: Arc<Client>) -> Result<Option<CodeTry<'_>>> {
        if !lock(&self.uses).tried.insert(client.credential.id()) {
            return Ok(None);
        }
        let one = CodeTry { table: self, client };
        let is_first = self.change(&one.client, |used| {
            let is_first = used.wrong < MAX_WRONG_TRIES;
            used.wrong += u32::from(is_first);
            is_first
        })?;
        Ok(is_first.then_some(one))
    }

    /// Whether no client can be admitted any more: the only code was tried wrongly before any peer proved it.
    pub fn is_over(&self) -> bool {
        let Source::One(client) = &self.source else { return false };
        let (uses, id) = (lock(&self.uses), client.credential.id());
        uses.of(&id).wrong >= MAX_WRONG_TRIES
            && !uses.tried.contains(&id)
            && !lock(&self.further).contains_key(&id)
    }

    /// The client that holds the private key of `key`.
    pub fn by_key(&self, key: PublicKey) -> Option<Arc<Client>> {
        self.clients().into_iter().find(|client| client.credential == Credential::Key(key))
    }

    /// Whether the file has this key on an invalid line.
    pub fn is_faulty(&self, key: PublicKey) -> bool {
        matches!(&self.source, Source::File(file) if file.is_faulty(key))
    }

    /// The client with a secret that `proved` accepts, and the value that `proved` returned.
    pub fn by_secret<T>(&self, proved: impl Fn(&Secret) -> Option<T>) -> Option<(Arc<Client>, T)> {
        let further = lock(&self.further).clone();
        self.clients().into_iter().find_map(|client| {
            let found = match &client.credential {
                Credential::Secret(secret) => proved(secret),
                Credential::Code(_) => {
                    further.get(&client.credential.id())?.iter().find_map(&proved)
                }
                Credential::Key(_) => None,
            };
            Some((client, found?))
        })
    }

    /// Forgets the peers that proved a code: their transfers are over.
    pub fn forget_peers(&self) {
        lock(&self.further).clear();
    }

    /// Claims the credential of `client` for `transfer`. Waits briefly if another transfer holds a one-time credential, because
    /// that transfer may be about to end.
    pub fn claim(&self, client: &Client, transfer: &str) -> Result<Result<Claim<'_>, Unavailable>> {
        let claim = || Claim::make(&self.uses, client, transfer);
        turn::ask(claim, |claimed| matches!(claimed, Ok(Err(Unavailable::InUse))))
    }

    /// Whether a transfer has completed with the one-time credential of `client`.
    pub fn is_used_up(&self, client: &Client) -> bool {
        client.once && lock(&self.uses).of(&client.credential.id()).completed
    }

    fn change<T>(&self, client: &Client, change: impl FnOnce(&mut Use) -> T) -> Result<T> {
        lock(&self.uses).change(&client.credential.id(), change)
    }
}

/// The name of `client` in the clients file; `None` for the holder of the one ticket or code.
pub(crate) fn name_of(client: &Client) -> Option<&str> {
    Some(client.name.as_str()).filter(|name| !name.is_empty())
}

/// `client` at this address, for the operator: `ann at 192.0.2.1:5`, or the address alone.
pub(crate) fn at(client: &Client, peer: SocketAddr) -> String {
    name_of(client).map_or_else(|| peer.to_string(), |name| format!("{name} at {peer}"))
}

/// Whether `client` has expired.
pub(crate) fn has_expired(client: &Client) -> bool {
    client.expires.is_some_and(|expires| clock::wall() >= expires)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::ends::clients_file::tests::Scratch;

    const CODE: &str = "code:7-crisp-lemon-orbit guest dir=/srv/guest once\n";

    fn table(scratch: &Scratch) -> ClientTable {
        let uses = scratch.0.path().join("uses.json");
        ClientTable::of_file(&scratch.path(), uses).unwrap()
    }

    fn guest(table: &ClientTable) -> Arc<Client> {
        Arc::clone(&table.clients()[0])
    }

    /// Runs `work` in 30 threads at once, and counts how often it returned true.
    fn at_once(work: impl Fn(usize) -> bool + Sync) -> usize {
        let barrier = Barrier::new(30);
        thread::scope(|scope| {
            let run = |i| {
                let (barrier, work) = (&barrier, &work);
                scope.spawn(move || {
                    barrier.wait();
                    work(i)
                })
            };
            let threads: Vec<_> = (0..30).map(run).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count()
        })
    }

    /// Claims the guest's credential for `transfer`, without waiting.
    fn claim<'a>(table: &'a ClientTable, transfer: &str) -> Result<Claim<'a>, Unavailable> {
        Claim::make(&table.uses, &guest(table), transfer).unwrap()
    }

    /// The usage of the guest's credential as a restarted server reads it: the transfer, and whether it has completed.
    fn stored(scratch: &Scratch) -> (Option<String>, bool) {
        let table = table(scratch);
        let used = lock(&table.uses).of(&guest(&table).credential.id());
        (used.transfer, used.completed)
    }

    #[test]
    fn a_completed_one_time_credential_stays_spent_after_a_restart() {
        let scratch = Scratch::new(CODE);
        let first = table(&scratch);
        let one = claim(&first, "one").unwrap();
        one.complete().unwrap();
        // The process is killed here: neither the claim nor its peer has noticed.
        let restarted = table(&scratch);
        assert!(restarted.is_used_up(&guest(&restarted)));
        for transfer in ["one", "two"] {
            assert_eq!(claim(&restarted, transfer).err(), Some(Unavailable::Spent));
        }
        // Nothing that the old session does later changes that.
        one.release().unwrap();
        drop(one);
        assert_eq!(claim(&first, "one").err(), Some(Unavailable::Spent));
        assert_eq!(stored(&scratch), (Some("one".into()), true));
    }

    #[test]
    fn a_broken_transfer_frees_its_credential_and_a_running_one_does_not() {
        let scratch = Scratch::new(CODE);
        let first = table(&scratch);
        assert_eq!(stored(&scratch), (None, false), "unused");
        let running = claim(&first, "one").unwrap();
        assert_eq!(stored(&scratch), (Some("one".into()), false));
        assert_eq!(claim(&first, "two").err(), Some(Unavailable::InUse));
        // Its path broke, and a new connection arrived before this end noticed.
        let newer = claim(&first, "one").unwrap();
        drop(running);
        assert_eq!(claim(&first, "two").err(), Some(Unavailable::InUse));
        drop(newer);
        drop(claim(&first, "two").unwrap());
        assert_eq!(stored(&scratch), (Some("two".into()), false), "broken");
        // The server was killed and started again.
        let restarted = table(&scratch);
        assert!(claim(&restarted, "three").is_ok());
        assert!(!restarted.is_used_up(&guest(&restarted)));
    }

    #[test]
    fn a_transfer_without_writes_leaves_its_credential_unchanged() {
        let scratch = Scratch::new(CODE);
        let table = table(&scratch);
        let rehearse = |transfer| claim(&table, transfer).unwrap().release().unwrap();
        rehearse("one");
        assert_eq!(stored(&scratch), (None, false));
        drop(claim(&table, "two").unwrap());
        rehearse("three");
        assert_eq!(stored(&scratch), (Some("two".into()), false));
        // An older session cannot release the claim of a newer session of the same transfer.
        let (older, _newer) = (claim(&table, "four").unwrap(), claim(&table, "four").unwrap());
        older.release().unwrap();
        assert_eq!(stored(&scratch), (Some("four".into()), false));
    }

    #[test]
    fn usage_recorded_by_an_earlier_version_still_counts() {
        let scratch = Scratch::new(CODE);
        let id = guest(&table(&scratch)).credential.id();
        let text = format!(r#"{{"{id}":{{"transfer":"one","ended":true,"wrong":0}}}}"#);
        std::fs::write(scratch.0.path().join("uses.json"), text).unwrap();
        assert_eq!(stored(&scratch), (Some("one".into()), true));
    }

    #[test]
    fn only_one_of_many_concurrent_transfers_claims_a_one_time_ticket() {
        let scratch = Scratch::new(CODE);
        let guest = guest(&table(&scratch));
        // Many rounds: an implementation that checks before it changes lets two through only occasionally.
        for _ in 0..200 {
            let table = ClientTable::of_one(Client::clone(&guest));
            let claims = Mutex::new(Vec::new());
            let won = at_once(|i| {
                let claimed = claim(&table, &i.to_string());
                let won = claimed.is_ok();
                lock(&claims).extend(claimed);
                won
            });
            assert_eq!(won, 1);
        }
    }

    #[test]
    fn one_wrong_try_invalidates_a_code_permanently() {
        let scratch = Scratch::new(CODE);
        let first = table(&scratch);
        // Whether the peer left or its proof was wrong makes no difference.
        drop(first.try_code(guest(&first)).unwrap().expect("a first try"));
        assert!(first.try_code(guest(&first)).unwrap().is_none());
        let restarted = table(&scratch);
        assert!(restarted.try_code(guest(&restarted)).unwrap().is_none());
    }

    #[test]
    fn concurrent_connections_share_one_try() {
        let scratch = Scratch::new(CODE);
        let table = table(&scratch);
        let tries = Mutex::new(Vec::new());
        let won = at_once(|_| {
            let one = table.try_code(guest(&table)).unwrap();
            let is_first = one.is_some();
            lock(&tries).extend(one);
            is_first
        });
        assert_eq!(won, 1);
    }

    #[test]
    fn an_unfinished_try_of_a_code_counts_after_a_restart() {
        let scratch = Scratch::new(CODE);
        let first = table(&scratch);
        let _under_way = first.try_code(guest(&first)).unwrap().unwrap();
        // The process is killed here.
        let restarted = table(&scratch);
        assert!(restarted.try_code(guest(&restarted)).unwrap().is_none());
    }

    #[test]
    fn peers_that_proved_a_code_return_by_secret_after_a_wrong_try() {
        let scratch = Scratch::new(CODE);
        let table = table(&scratch);
        for n in 0..3 {
            let one = table.try_code(guest(&table)).unwrap().expect("each was right");
            one.succeed(Secret([n; 16])).unwrap();
        }
        drop(table.try_code(guest(&table)).unwrap().unwrap());
        // A wrong guess does not affect peers that proved the code before.
        for n in 0..3 {
            let (client, ()) = table.by_secret(|s| (s.0 == [n; 16]).then_some(())).unwrap();
            assert_eq!(client.name, "guest");
        }
    }

    #[test]
    fn a_wrong_try_ends_a_server_of_one_unproved_code() {
        let scratch = Scratch::new(CODE);
        let one = || ClientTable::of_one(Client::clone(&guest(&table(&scratch))));
        let table = one();
        let attempt = table.try_code(guest(&table)).unwrap();
        assert!(!table.is_over(), "it may prove right");
        drop(attempt);
        assert!(table.is_over());
        let table = one();
        table.try_code(guest(&table)).unwrap().unwrap().succeed(Secret([1; 16])).unwrap();
        drop(table.try_code(guest(&table)).unwrap());
        assert!(!table.is_over(), "its peer may come again");
    }

    #[test]
    fn a_claim_or_try_that_cannot_be_recorded_is_denied() {
        let scratch = Scratch::new(CODE);
        let uses = scratch.0.path().join("no-such-directory/uses.json");
        let table = ClientTable::of_file(&scratch.path(), uses).unwrap();
        let guest = guest(&table);
        for transfer in ["one", "two"] {
            assert!(table.claim(&guest, transfer).is_err());
            assert!(table.try_code(Arc::clone(&guest)).is_err());
        }
    }
}
