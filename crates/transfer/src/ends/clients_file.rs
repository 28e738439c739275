//! The clients file. The server rereads it whenever it changes, and keeps the last valid version.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sweetspot_linux::clock;
use sweetspot_protocol::PublicKey;
use sweetspot_protocol::clients::{Client, Clients, ClientsError, Credential};
use sweetspot_units::Time;

use crate::limits::{CLIENTS_SETTLE, MAX_CLIENTS_FILE_BYTES};
use crate::lock::lock;
use crate::{ClientsFileError, Result, TransferError};

/// A file of clients.
pub(crate) struct ClientsFile {
    path: PathBuf,
    known: Mutex<Known>,
}

/// The state of the file as last read.
struct Known {
    /// The version in force.
    version: Version,
    clients: Vec<Arc<Client>>,
    /// The keys in lines with mistakes.
    faulty: Vec<PublicKey>,
    /// A version that looks half-written, and the time when it was first seen.
    unfinished: Option<(Version, Time)>,
    /// The complaints about the newest version.
    complaints: Vec<String>,
    /// Complaints not yet reported.
    unreported: Vec<String>,
}

/// Device, inode, length, and time of the last change in seconds and nanoseconds. Every edit changes at
/// least one of them.
type Version = (u64, u64, u64, i64, i64);

impl ClientsFile {
    /// Reads the file at `path`. An invalid line admits no client and causes a complaint.
    pub fn open(path: &Path) -> Result<ClientsFile> {
        let wrong = |reason| TransferError::Clients { path: path.to_owned(), reason };
        let (file, version) = open(path).map_err(wrong)?;
        let (clients, errors) = parse(&file, &read(&file).map_err(wrong)?).map_err(wrong)?;
        let (faulty, unreported) = (keys(&errors), Vec::new());
        let known = Known {
            version,
            clients,
            faulty,
            unfinished: None,
            complaints: Vec::new(),
            unreported,
        };
        let file = ClientsFile { path: path.to_owned(), known: Mutex::new(known) };
        file.complain(&mut lock(&file.known), in_words(&errors));
        Ok(file)
    }

    /// The clients that the file lists now. While the file is unusable, the clients of its last valid
    /// version.
    pub fn clients(&self) -> Vec<Arc<Client>> {
        let mut known = lock(&self.known);
        if let Err(reason) = self.refresh(&mut known, clock::now()) {
            let complaint = format!("{reason}; its last valid version stays in force");
            self.complain(&mut known, vec![complaint]);
        }
        known.clients.clone()
    }

    /// Whether an invalid line has this key.
    pub fn is_faulty(&self, key: PublicKey) -> bool {
        lock(&self.known).faulty.contains(&key)
    }

    /// The problems found since the last call. Each is reported once, until the file changes.
    pub fn take_complaints(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.known).unreported)
    }

    fn refresh(&self, known: &mut Known, now: Time) -> Result<(), ClientsFileError> {
        let (file, version) = open(&self.path)?;
        if version == known.version {
            return Ok(());
        }
        let since = known.unfinished.filter(|seen| seen.0 == version).map(|seen| seen.1);
        let settled = since.is_some_and(|since| now.since(since) >= CLIENTS_SETTLE);
        if since.is_some() && !settled {
            return Err(ClientsFileError::Unfinished);
        }
        let text = read(&file)?;
        // Editors that do not replace a file truncate it first, and write it in parts.
        if !text.ends_with(b"\n") && !settled {
            known.unfinished = Some((version, now));
            return Err(ClientsFileError::Unfinished);
        }
        let (clients, errors) = parse(&file, &text)?;
        (known.version, known.clients, known.unfinished) = (version, clients, None);
        known.faulty = keys(&errors);
        self.complain(known, in_words(&errors));
        Ok(())
    }

    /// Notes the complaints about the file, unless they are the same as the last ones.
    fn complain(&self, known: &mut Known, complaints: Vec<String>) {
        if known.complaints != complaints {
            let line =
                |text: &String| format!("{}: {text}", sweetspot_protocol::Printable(&self.path));
            known.unreported.extend(complaints.iter().map(line));
            known.complaints = complaints;
        }
    }
}

fn open(path: &Path) -> Result<(File, Version), ClientsFileError> {
    let wrong = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ClientsFileError::Missing,
        _ => ClientsFileError::Unreadable(error),
    };
    let file = File::open(path).map_err(wrong)?;
    let stat = file.metadata().map_err(wrong)?;
    Ok((file, (stat.dev(), stat.ino(), stat.len(), stat.ctime(), stat.ctime_nsec())))
}

fn read(file: &File) -> Result<Vec<u8>, ClientsFileError> {
    let mut text = Vec::new();
    let length = file.take(MAX_CLIENTS_FILE_BYTES + 1).read_to_end(&mut text);
    match length.map_err(ClientsFileError::Unreadable)? as u64 {
        0..=MAX_CLIENTS_FILE_BYTES => Ok(text),
        _ => Err(ClientsFileError::TooLong),
    }
}

type Parsed = (Vec<Arc<Client>>, Vec<ClientsError>);

/// Parses the clients in `text`. Fails if other users may write to `file`, or read it while it contains
/// secrets.
fn parse(file: &File, text: &[u8]) -> Result<Parsed, ClientsFileError> {
    let mode = file.metadata().as_ref().map_or(0, Metadata::mode);
    if mode & 0o022 != 0 {
        return Err(ClientsFileError::OthersMayWrite);
    }
    let (clients, errors) = Clients::read(text);
    let is_secret = |client: &Client| !matches!(client.credential, Credential::Key(_));
    if mode & 0o044 != 0 && clients.list.iter().any(is_secret) {
        return Err(ClientsFileError::OthersMayRead);
    }
    Ok((clients.list.into_iter().map(Arc::new).collect(), errors))
}

fn keys(errors: &[ClientsError]) -> Vec<PublicKey> {
    errors.iter().filter_map(|error| error.key).collect()
}

/// The fault of each invalid line.
fn in_words(errors: &[ClientsError]) -> Vec<String> {
    errors.iter().map(|error| format!("{error}; this line admits no client")).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A directory with a file of clients.
    pub(crate) struct Scratch(pub tempfile::TempDir);

    impl Scratch {
        pub fn new(clients: &str) -> Scratch {
            let scratch = Scratch(tempfile::tempdir().unwrap());
            scratch.replace(clients);
            scratch
        }

        pub fn path(&self) -> PathBuf {
            self.0.path().join("clients")
        }

        /// Replaces the file by a new one, as careful editors do.
        pub fn replace(&self, clients: &str) {
            let new = self.0.path().join("clients.new");
            fs::write(&new, clients).unwrap();
            fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
            fs::rename(new, self.path()).unwrap();
        }

        fn open(&self) -> ClientsFile {
            ClientsFile::open(&self.path()).unwrap()
        }
    }

    #[test]
    fn the_error_for_a_missing_file_names_the_invite_command() {
        let scratch = tempfile::tempdir().unwrap();
        let error = ClientsFile::open(&scratch.path().join("clients")).err().unwrap();
        assert!(error.to_string().contains("`sweetspot serve invite` creates it"), "{error}");
    }

    fn line(key: u8, name: &str) -> String {
        format!("{} {name} dir=/srv/{name}\n", PublicKey([key; 32]))
    }

    fn names(file: &ClientsFile) -> Vec<String> {
        file.clients().iter().map(|client| client.name.clone()).collect()
    }

    #[test]
    fn a_client_removed_from_the_file_is_no_longer_admitted() {
        let scratch = Scratch::new(&(line(1, "alice") + &line(2, "bob")));
        let file = scratch.open();
        assert_eq!(names(&file), ["alice", "bob"]);
        scratch.replace(&line(2, "bob"));
        assert_eq!(names(&file), ["bob"]);
        scratch.replace("# nobody\n");
        assert_eq!(names(&file), [""; 0]);
        assert_eq!(file.take_complaints(), [""; 0]);
    }

    #[test]
    fn an_invalid_line_is_skipped_and_reported_once() {
        let scratch = Scratch::new(&line(1, "alice"));
        let file = scratch.open();
        scratch.replace(&(line(1, "alice") + "nonsense\n" + &line(2, "bob")));
        for _ in 0..3 {
            assert_eq!(names(&file), ["alice", "bob"]);
        }
        let complaints = file.take_complaints();
        let [complaint] = &complaints[..] else { panic!("{complaints:?}") };
        assert!(complaint.contains("line 2: it is too short"), "{complaint}");
        assert_eq!((names(&file).len(), file.take_complaints().len()), (2, 0));
        // A complaint at the start is reported, too.
        assert_eq!(scratch.open().take_complaints().len(), 1);
    }

    /// Lines 1 and 3 lack a directory; line 2 is valid, and line 4 has no key.
    #[test]
    fn every_invalid_line_is_reported_by_number_and_its_key_recorded() {
        let scratch = Scratch::new(&format!(
            "{} alice\n{}{} carol\nnonsense\n",
            PublicKey([1; 32]),
            line(2, "bob"),
            PublicKey([3; 32])
        ));
        let file = scratch.open();
        let complaints = file.take_complaints();
        assert!(complaints[0].contains("line 1: dir= is missing"), "{complaints:?}");
        assert!(complaints[1].contains("line 3: dir= is missing"), "{complaints:?}");
        assert!(complaints[2].contains("line 4: it is too short"), "{complaints:?}");
        assert_eq!(complaints.len(), 3);
        let faulty = [1, 2, 3, 4].map(|key| file.is_faulty(PublicKey([key; 32])));
        assert_eq!(faulty, [true, false, true, false]);
    }

    #[test]
    fn an_unusable_file_leaves_the_last_valid_version_in_force() {
        let scratch = Scratch::new(&line(1, "alice"));
        let file = scratch.open();
        let unusable: [fn(&Scratch); 4] = [
            // The file is missing.
            |_| {},
            // Opening the file fails even for root.
            |scratch| std::os::unix::fs::symlink("clients", scratch.path()).unwrap(),
            |scratch| {
                scratch.replace(&line(2, "mallory"));
                fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o622)).unwrap();
            },
            |scratch| scratch.replace(&"#".repeat(MAX_CLIENTS_FILE_BYTES as usize + 1)),
        ];
        for break_it in unusable {
            let _ = fs::remove_file(scratch.path());
            break_it(&scratch);
            for _ in 0..3 {
                assert_eq!(names(&file), ["alice"]);
            }
            let complaints = file.take_complaints();
            let [complaint] = &complaints[..] else { panic!("{complaints:?}") };
            assert!(complaint.contains("last valid version stays in force"), "{complaint}");
            assert!(ClientsFile::open(&scratch.path()).is_err(), "no service starts with it");
        }
        scratch.replace(&line(2, "bob"));
        assert_eq!(names(&file), ["bob"]);
    }

    #[test]
    fn a_file_being_written_takes_effect_when_complete_or_settled() {
        let whole = line(1, "alice") + &line(2, "bob");
        let scratch = Scratch::new(&whole);
        let file = scratch.open();
        // An editor truncates the file, and writes it in two parts that split a line.
        for length in [0, 10, whole.len() - 5] {
            fs::write(scratch.path(), &whole[..length]).unwrap();
            assert_eq!(names(&file), ["alice", "bob"], "{length} bytes are written");
        }
        fs::write(scratch.path(), &whole).unwrap();
        assert_eq!(names(&file), ["alice", "bob"]);
        // An empty file lists no client.
        fs::write(scratch.path(), "").unwrap();
        let mut known = lock(&file.known);
        let now = clock::now();
        let just_before = Time::from_nanos((now + CLIENTS_SETTLE).as_nanos() - 1);
        assert!(file.refresh(&mut known, now).is_err());
        assert!(file.refresh(&mut known, just_before).is_err());
        assert_eq!(known.clients.len(), 2);
        file.refresh(&mut known, now + CLIENTS_SETTLE).unwrap();
        assert_eq!(known.clients.len(), 0);
    }

    #[test]
    fn a_file_accessible_to_other_users_is_rejected_at_start() {
        let scratch = Scratch::new("code:7-crisp-lemon-orbit guest dir=/srv/guest once");
        let mode = |bits| fs::set_permissions(scratch.path(), fs::Permissions::from_mode(bits));
        for (bits, words) in [(0o644, "others may read"), (0o622, "others may write")] {
            mode(bits).unwrap();
            let error = ClientsFile::open(&scratch.path()).err().unwrap().to_string();
            assert!(error.contains(words), "{error}");
        }
        mode(0o600).unwrap();
        assert_eq!(names(&scratch.open()), ["guest"]);
    }
}
