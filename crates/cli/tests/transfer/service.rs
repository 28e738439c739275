//! Tests `sweetspot serve --clients`: rights, expiry and the audit log.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_protocol::{Ticket, TicketProof};
use sweetspot_transfer::Identity;

use crate::running::{Ended, SWEETSPOT, Serve, eventually, file, names, run, signal};

/// A service, its clients file, and one user with a key.
pub struct Service {
    pub serve: Serve,
    pub scratch: PathBuf,
}

impl Service {
    /// Starts a service with these lines in its clients file; KEY stands for the user's key, and DIR for a
    /// directory.
    pub fn start(lines: &str) -> Service {
        Service::start_by(Command::new(SWEETSPOT), lines)
    }

    /// The same, started by a program that runs `sweetspot` with the arguments that follow.
    pub fn start_by(command: Command, lines: &str) -> Service {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().to_owned();
        write_clients(&path, lines);
        Service { serve: Service::spawn(scratch, command), scratch: path }
    }

    fn spawn(scratch: tempfile::TempDir, mut command: Command) -> Serve {
        let path = scratch.path().to_owned();
        command.args(["serve", "--listen", "127.0.0.1:0", "--clients"]).arg(path.join("clients"));
        command.arg("--state").arg(path.join("state")).arg("--audit").arg(path.join("audit"));
        Serve::spawn(scratch, &path, command)
    }

    pub fn edit(&self, lines: &str) {
        write_clients(&self.scratch, lines);
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(SWEETSPOT);
        command.arg(verb).arg("--identity").arg(self.scratch.join("me.pem"));
        command
    }

    pub fn send(&self, file: &Path, name: &str, ticket: &str) -> Ended {
        let mut command = self.command("send");
        command.arg(file).arg(ticket).args(["--name", name]);
        run(command)
    }

    pub fn invite(&self, arguments: &[&str]) -> Ended {
        let mut command = Command::new(SWEETSPOT);
        let port = self.serve.ticket().port;
        command.args([
            "serve",
            "invite",
            "guest",
            "--to",
            &format!("127.0.0.1:{port}"),
            "--clients",
        ]);
        command.arg(self.scratch.join("clients")).arg("--state").arg(self.scratch.join("state"));
        command.arg("--dir").arg(self.scratch.join("guest")).args(arguments);
        run(command)
    }

    fn audit(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.scratch.join("audit")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn write_clients(scratch: &Path, lines: &str) {
    let key = Identity::load_or_make(&scratch.join("me.pem")).unwrap().public_key().to_string();
    let dir = scratch.join("alice").display().to_string();
    let text = lines.replace("KEY", &key).replace("DIR", &dir);
    let new = scratch.join("clients.new");
    let mut file = fs::File::options();
    let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&new).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    fs::rename(new, scratch.join("clients")).unwrap();
}

#[test]
fn the_audit_log_records_each_file_a_client_sends_or_receives() {
    let service = Service::start("KEY alice dir=DIR rights=read,write\n");
    let (file, content) = file(300_000);
    let ended = service.send(file.path(), "f", &service.serve.ticket);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read(service.scratch.join("alice/f")).unwrap(), content);
    let back = tempfile::tempdir().unwrap();
    let mut command = service.command("receive");
    let ended = run({
        command.arg(&service.serve.ticket).arg(back.path());
        command
    });
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read(back.path().join("f")).unwrap(), content);
    let hash = blake3::hash(&content).to_string();
    let audit = service.audit();
    let files: Vec<_> = audit.iter().filter(|line| line["event"] == "file").collect();
    for (line, direction) in files.iter().zip(["received", "sent"]) {
        assert_eq!((&line["client"], &line["direction"]), (&"alice".into(), &direction.into()));
        assert_eq!((&line["bytes"], &line["blake3"]), (&300_000.into(), &hash.as_str().into()));
        assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
        assert_eq!(line["path"], "f", "both below the client's directory");
    }
    assert_eq!(files.len(), 2);
}

#[test]
fn a_read_only_client_gets_no_advice_to_send() {
    for (rights, words) in
        [("read", "the operator has put nothing"), ("read,write", "send something first")]
    {
        let service = Service::start(&format!("KEY alice dir=DIR rights={rights}\n"));
        let back = tempfile::tempdir().unwrap();
        let mut command = service.command("receive");
        command.arg(&service.serve.ticket).arg(back.path());
        let ended = run(command);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
}

#[test]
fn the_json_of_a_service_names_the_client_of_each_transfer() {
    let mut program = Command::new(SWEETSPOT);
    program.env("SWEETSPOT_JSON", "true");
    let mut service = Service::start_by(program, "KEY alice dir=DIR\n");
    let ((first, _), (second, _)) = (file(1000), file(2000));
    assert_eq!(service.send(first.path(), "f", &service.serve.ticket).code, Some(0));
    // The client may not overwrite.
    assert_ne!(service.send(second.path(), "f", &service.serve.ticket).code, Some(0));
    // Not interrupted before: an interrupted transfer has another error.
    let printed = service.serve.printed_line() + &service.serve.printed_line();
    let objects: Vec<serde_json::Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [moved, refused] = &objects[..] else { panic!("{printed}") };
    assert_eq!((&moved["bytes"], moved.get("error")), (&1000.into(), None), "{printed}");
    assert!(refused["error"].as_str().unwrap().contains("exists"), "{printed}");
    for object in [moved, refused] {
        assert_eq!(object["client"], "alice");
        assert!(object["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{printed}");
    }
}

#[test]
fn each_log_line_about_a_client_has_its_name_and_address() {
    let mut service = Service::start("KEY alice dir=DIR\n");
    let ((first, _), (second, _)) = (file(1000), file(2000));
    assert_eq!(service.send(first.path(), "f", &service.serve.ticket).code, Some(0));
    // First without the right to overwrite, then without the right to read.
    assert_ne!(service.send(second.path(), "f", &service.serve.ticket).code, Some(0));
    let mut command = service.command("receive");
    command.arg(&service.serve.ticket).arg(service.scratch.join("back"));
    assert_ne!(run(command).code, Some(0));
    let ends = ["f: 1 kB\n", "f: 1 kB in ", "f already exists", "rejected: it has no right"];
    let mut lines = BufReader::new(service.serve.child.stderr.take().unwrap());
    let mut stderr = String::new();
    while !ends.iter().all(|end| stderr.contains(end)) {
        assert_ne!(lines.read_line(&mut stderr).unwrap(), 0, "{stderr}");
    }
    for end in ends {
        let line = stderr.split_inclusive('\n').find(|line| line.contains(end)).unwrap_or_default();
        let named = line.strip_prefix("sweetspot: alice at 127.0.0.1:");
        let port = named.and_then(|rest| rest.split([':', ' ']).next());
        assert!(port.is_some_and(|port| port.parse::<u16>().is_ok()), "{end}: {stderr}");
    }
}

#[test]
fn a_client_without_the_right_is_rejected_and_audited() {
    let service = Service::start("KEY alice dir=DIR rights=write\n");
    let (one, _) = file(1000);
    let (two, _) = file(1001);
    assert_eq!(service.send(one.path(), "f", &service.serve.ticket).code, Some(0));
    // The client may not replace it.
    let ended = service.send(two.path(), "f", &service.serve.ticket);
    ended.failed_saying(&["f already exists"]);
    let back = tempfile::tempdir().unwrap();
    let mut command = service.command("receive");
    command.arg(&service.serve.ticket).arg(back.path());
    run(command).failed_saying(&["you have no right to receive"]);
    assert!(names(back.path()).is_empty());
    // The log is written at about the time when the client gets the answer.
    eventually("the audit log names the client and peer of the refusal", || {
        service.audit().iter().any(|line| {
            let peer = line["peer"].as_str().and_then(|peer| peer.parse::<SocketAddr>().ok());
            let is_refusal = line["event"] == "refused" && line["client"] == "alice";
            is_refusal && peer.is_some_and(|peer| peer.ip().is_loopback())
        })
    });
}

#[test]
fn a_directory_holds_no_more_than_its_quota() {
    let service = Service::start("KEY alice dir=DIR quota=2MB rights=overwrite\n");
    let (first, _) = file(900_000);
    assert_eq!(service.send(first.path(), "f", &service.serve.ticket).code, Some(0));
    let (large, _) = file(1_200_000);
    let refused = |name| {
        let ended = service.send(large.path(), name, &service.serve.ticket);
        ended.failed_saying(&[&format!("{name} does not fit in the quota of 2 MB ")]);
        assert_eq!(names(&service.scratch.join("alice")), ["f"]);
    };
    // 0.9 MB and 1.2 MB, either as another file or as a replacement: both are on the disk at the same time.
    refused("g");
    refused("f");
    let (other, content) = file(900_001);
    assert_eq!(service.send(other.path(), "f", &service.serve.ticket).code, Some(0));
    assert_eq!(fs::read(service.scratch.join("alice/f")).unwrap(), content);
    // The replaced file no longer counts against the quota.
    assert_eq!(service.send(first.path(), "g", &service.serve.ticket).code, Some(0));
}

#[test]
fn standard_input_stops_at_the_quota() {
    let service = Service::start("KEY alice dir=DIR quota=1MB\n");
    let (large, _) = file(2_000_000);
    let mut command = service.command("send");
    command.args(["-", &service.serve.ticket, "--name", "f"]).stdin(large.reopen().unwrap());
    run(command).failed_saying(&["f does not fit in the quota of 1 MB "]);
    assert!(!names(&service.scratch.join("alice")).contains(&"f".to_owned()));
}

#[test]
fn a_service_keeps_its_identity_and_rejects_unknown_keys() {
    let service = Service::start("KEY alice dir=DIR\n");
    let before = service.serve.ticket().fingerprint;
    let again = Identity::load_or_make(&service.scratch.join("state/identity.pem")).unwrap();
    assert_eq!(again.public_key().0, before);
    let (file, _) = file(10);
    let stranger = service.scratch.join("stranger.pem");
    let send = || {
        let mut command = Command::new(SWEETSPOT);
        command.arg("send").arg(file.path()).arg(&service.serve.ticket);
        command.arg("--identity").arg(&stranger);
        run(command)
    };
    send().failed_saying(&["stranger.pem: there is no such file", "`sweetspot serve key"]);
    assert!(!stranger.exists());
    Identity::load_or_make(&stranger).unwrap();
    send().failed_saying(&["unknown key", "sweetspot-key1:"]);
}

#[test]
fn a_client_removed_from_the_file_is_rejected_and_its_transfer_ended() {
    let service = Service::start("KEY alice dir=DIR\n");
    // A source that never ends; it is stopped after three pieces.
    let mut command = service.command("send");
    command.args(["-", &service.serve.ticket, "--name", "f", "--retry-for", "0s"]);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child = command.stdin(reader).stderr(std::process::Stdio::null()).spawn().unwrap();
    (&writer).write_all(&vec![1; 800_000]).unwrap();
    let part = || names(&service.scratch.join("alice")).iter().any(|n| n.ends_with(".part"));
    eventually("content is written", || service.scratch.join("alice").exists() && part());
    service.edit("# nobody\n");
    eventually("the transfer ends", || child.try_wait().unwrap().is_some());
    drop(writer);
    assert!(!child.wait().unwrap().success());
    let (file, _) = file(10);
    let ended = service.send(file.path(), "g", &service.serve.ticket);
    ended.failed_saying(&["unknown key"]);
    service.edit("KEY alice directory=DIR\n");
    let ended = service.send(file.path(), "g", &service.serve.ticket);
    ended.failed_saying(&["your line in the clients file has a mistake"]);
}

#[test]
fn an_invitation_is_valid_for_one_transfer() {
    let service = Service::start("");
    let ticket = service.invite(&[]).stdout;
    let (file, content) = file(1000);
    let ended = service.send(file.path(), "f", ticket.trim());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read(service.scratch.join("guest/f")).unwrap(), content);
    service.send(file.path(), "g", ticket.trim()).failed_saying(&["already been used"]);
    assert_eq!(names(&service.scratch.join("guest")), ["f"]);
}

/// The key of a service is in its --state, so a ticket with a new key fits only a service that starts with it.
#[test]
fn an_invitation_with_a_new_key_warns_about_the_state_directory() {
    let service = Service::start("");
    let note = "no service has used ";
    assert!(!service.invite(&[]).stderr.contains(note));
    fs::remove_file(service.scratch.join("state/identity.pem")).unwrap();
    let invited = service.invite(&[]);
    assert!(invited.stderr.contains(note) && invited.stderr.contains("--state"), "{invited:?}");
    assert!(!service.invite(&[]).stderr.contains(note));
}

#[test]
fn a_spoken_code_works_once_and_one_wrong_attempt_invalidates_it() {
    let service = Service::start("");
    let (file, content) = file(3_000_000);
    let send = |code: &str, name: &str| {
        let mut command = Command::new(SWEETSPOT);
        // Several connections, which the code alone would not admit.
        command.arg("send").arg(file.path()).args(["--code", code.trim(), "--name", name]);
        run({
            command.args(["--streams", "3"]);
            command
        })
    };
    let code = service.invite(&["--spoken-code"]).stdout;
    let ended = send(&code.to_uppercase(), "f");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read(service.scratch.join("guest/f")).unwrap(), content);
    send(&code, "g").failed_saying(&["already been used"]);

    let code = service.invite(&["--spoken-code"]).stdout;
    let (start, _) = code.trim().rsplit_once('-').unwrap();
    send(&format!("{start}-zzz"), "h").failed_saying(&["the code is wrong", "invalidated it"]);
    send(&code, "h").failed_saying(&["no such code"]);
    assert_eq!(names(&service.scratch.join("guest")), ["f"]);
}

/// The service also ignores such a line.
#[test]
fn an_invalid_line_does_not_block_invitations() {
    let service = Service::start("KEY alice directory=DIR\n");
    let invited = service.invite(&[]);
    assert_eq!(invited.code, Some(0), "{invited:?}");
    assert!(invited.stderr.contains("line 1: unknown option"), "{invited:?}");
    let (file, _) = file(10);
    assert_eq!(service.send(file.path(), "f", invited.stdout.trim()).code, Some(0));
}

#[test]
fn a_world_readable_clients_file_gets_no_secret() {
    let service = Service::start("KEY alice dir=DIR\n");
    let clients = service.scratch.join("clients");
    fs::set_permissions(&clients, fs::Permissions::from_mode(0o644)).unwrap();
    let before = fs::read(&clients).unwrap();
    service.invite(&[]).failed_saying(&["chmod 600"]);
    assert_eq!(fs::read(&clients).unwrap(), before);
}

#[test]
fn sigterm_ends_a_service_with_0_and_a_waiting_server_with_143() {
    let service = Service::start("KEY alice dir=DIR\n");
    signal(&service.serve.child, "TERM");
    assert_eq!(service.serve.wait().code, Some(0), "systemd's stop is no failure");
    // A server that waits for its only transfer has not completed its task: 128 + 15.
    let serve = Serve::start(&["--once"]);
    signal(&serve.child, "TERM");
    assert_eq!(serve.wait().code, Some(143));
}

#[test]
fn a_key_is_not_written_to_a_missing_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("no-such/identity.pem");
    let mut command = Command::new(SWEETSPOT);
    command.args(["serve", "key", "--identity"]).arg(&path);
    run(command).failed_saying(&["there is no directory", "no-such", "create it"]);
    assert!(!scratch.path().join("no-such").exists());
}

#[test]
fn a_json_ticket_includes_its_expiry() {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(SWEETSPOT);
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--dir"]).arg(scratch.path());
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    signal(&child, "INT");
    child.wait().unwrap();
    let invitation: serde_json::Value = serde_json::from_str(&line).unwrap();
    let ticket: Ticket = invitation["ticket"].as_str().unwrap().parse().unwrap();
    let TicketProof::Secret { expires, .. } = ticket.proof else { panic!("a secret") };
    assert_eq!(invitation["expires_unix_s"], expires.as_nanos() / 1_000_000_000);
}
