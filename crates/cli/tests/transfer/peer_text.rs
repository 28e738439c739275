//! Text chosen by a peer is escaped wherever it is shown.

use std::fs;
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use sweetspot_hostile_peer::{Dial, Listener, Raw, RawEntry, Received};
use sweetspot_protocol::clients::Credential;
use sweetspot_protocol::record::{Answer, FileResult, Record};
use sweetspot_protocol::{
    Accept, CongestionMessage, Message, Offer, Secret, SenderSummary, is_printable,
};

use crate::running::{SWEETSPOT, Serve, file, wait};

/// A marker that proves that a text was printed.
const MARK: &str = "MARK";

/// A terminal title, a forged line, the previous line overwritten, a C1 control sequence, right-to-left text,
/// invisible characters, and line separators.
const HOSTILE: &str = "MARK\x1b]0;title\x07\nsweetspot: FORGED\r\x1b[2K\u{9b}2J\u{202e}\u{2066}\u{200b}\u{200f}\u{61c}\u{feff}\u{2028}\u{2029}\x7f\u{e0041}";

/// Asserts that no output of a program acts on a terminal or looks like a line of the program itself.
fn is_harmless(case: &str, output: &[u8]) {
    let text = std::str::from_utf8(output).unwrap_or_else(|e| panic!("{case}: {e}"));
    for c in text.chars().filter(|c| *c != '\n') {
        assert!(is_printable(c), "{case}: {c:?} in {text:?}");
    }
    assert!(!text.lines().any(|line| line.starts_with("sweetspot: FORGED")), "{case}: {text}");
}

/// Disconnects after reading the other end's last messages.
fn leave(raw: &mut Raw) {
    raw.close();
    let _ = raw.socket().shutdown(Shutdown::Write);
    raw.drain();
}

fn text() -> sweetspot_protocol::PeerText {
    HOSTILE.into()
}

fn offer_called(name: &str) -> Message {
    Message::Offer(Offer {
        name: name.into(),
        many: true,
        sizing: Some("kernel".into()),
        ..Offer::default()
    })
}

/// The actions of a hostile sender once it is admitted.
type Step = fn(&mut Raw);

const SENDER: [(&str, Step); 8] = [
    ("the name of the offer", |raw| raw.propose(&offer_called(HOSTILE))),
    ("the sizing", |raw| {
        raw.send_message(&Message::Offer(Offer { sizing: Some(text()), ..Offer::default() }));
    }),
    ("why an entry is gone", |raw| {
        raw.propose(&offer_called("x"));
        raw.entries(&[RawEntry::file("f", 3)]);
        raw.next_record();
        raw.send_record(&Record::Gone { entry: 0, reason: text() });
        raw.listed(1, 1, 3);
        raw.send_message(&Message::End);
    }),
    ("the path of an entry that is gone", |raw| {
        raw.propose(&offer_called("x"));
        raw.entries(&[RawEntry::file(HOSTILE, 3)]);
        raw.next_record();
        raw.send_record(&Record::Gone { entry: 0, reason: "gone".into() });
        raw.listed(1, 1, 3);
        raw.send_message(&Message::End);
    }),
    ("the path of a file that arrives", |raw| {
        raw.propose(&offer_called(HOSTILE));
        raw.send_all(&[(RawEntry::file(HOSTILE, 3), Some(b"abc"))]);
    }),
    ("why it gives up", |raw| {
        raw.propose(&offer_called("x"));
        raw.send_message(&Message::Failed { reason: text() });
    }),
    ("its last numbers", |raw| {
        raw.propose(&offer_called("x"));
        raw.listed(0, 0, 0);
        raw.send_message(&Message::End);
        raw.wait_for(|received| {
            matches!(received, Received::Message(Message::ReceiverSummary(_))).then_some(())
        });
        raw.send_message(&Message::SenderSummary(SenderSummary {
            congestion: text(),
            segments: 1,
            retransmitted_segments: 0,
            limits: vec![text()],
            saved_bytes: 0,
            unlisted: 0,
        }));
    }),
    ("a message of an unknown kind", |raw| {
        raw.propose(&offer_called("x"));
        raw.send_json(&serde_json::json!({ "is": HOSTILE }));
    }),
];

#[test]
fn a_sender_cannot_write_to_the_receivers_terminal() {
    for (case, step) in SENDER {
        for argument in ["--verbose", "--json"] {
            let serve = Serve::start(&["--once", "--retry-for", "1ms", argument]);
            let mut raw = Raw::connect(&serve.ticket());
            raw.send_message(&raw.hello());
            raw.read_welcome();
            step(&mut raw);
            leave(&mut raw);
            let ended = serve.wait_for_try();
            let output = ended.stdout + &ended.stderr;
            is_harmless(case, output.as_bytes());
            assert!(output.contains(MARK), "{case} is not shown: {output}");
        }
    }
}

#[test]
fn a_client_cannot_forge_lines_of_the_audit_log() {
    for (case, step) in SENDER {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().to_owned();
        fs::create_dir(path.join("in")).unwrap();
        let secret = Secret([7; 16]);
        let line = format!(
            "{} alice dir={} rights=read,overwrite\n",
            Credential::Secret(secret.clone()),
            path.join("in").display()
        );
        fs::write(path.join("clients"), line).unwrap();
        fs::set_permissions(path.join("clients"), fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = Command::new(SWEETSPOT);
        command.args(["serve", "--listen", "127.0.0.1:0", "--clients"]).arg(path.join("clients"));
        command.arg("--state").arg(path.join("state")).arg("--audit").arg(path.join("audit"));
        let serve = Serve::spawn(scratch, &path, command);
        let dial = Dial { secret: Some(secret), ..Dial::default() };
        let mut raw = Raw::dial(&serve.ticket(), &dial).unwrap();
        raw.send_message(&raw.hello());
        raw.read_welcome();
        step(&mut raw);
        leave(&mut raw);
        crate::running::eventually("the end is in the audit log", || {
            fs::read_to_string(path.join("audit")).unwrap().contains("transfer ends")
        });
        let audit = fs::read(path.join("audit")).unwrap();
        is_harmless(case, &audit);
        for line in String::from_utf8(audit).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(line["event"].is_string(), "{case}: {line}");
        }
        let ended = serve.interrupt();
        is_harmless(case, (ended.stdout + &ended.stderr).as_bytes());
    }
}

fn refuse(raw: &mut Raw) {
    raw.send_message(&Message::Refuse { reason: text() });
}

fn accept_with(raw: &mut Raw, sizing: &str, congestion: Option<&str>) {
    let congestion = congestion.map(Into::into);
    raw.send_message(&Message::Accept(Accept { sizing: sizing.into(), congestion, probes: false }));
}

/// Accepts the offer, answers for its single file, and reads its content.
fn take(raw: &mut Raw, answer: Answer) {
    raw.send_message(&Raw::accept());
    raw.list_of_entries();
    raw.answer(vec![answer]);
    raw.wait_for(|received| {
        matches!(received, Received::Piece { .. } | Received::Message(Message::End)).then_some(())
    });
}

fn summarise(raw: &mut Raw) {
    let mut summary = Raw::receiver_summary(3);
    summary.clamp_method = Some(text());
    summary.limits = vec![text()];
    summary.hash = Some(text());
    raw.send_message(&Message::ReceiverSummary(summary));
}

const RECEIVER: [(&str, Step); 8] = [
    ("why it refuses", refuse),
    ("why it gives up", |raw| {
        raw.send_message(&Raw::accept());
        raw.send_message(&Message::Failed { reason: text() });
    }),
    ("the sizing", |raw| accept_with(raw, HOSTILE, None)),
    ("the congestion control", |raw| accept_with(raw, "kernel", Some(HOSTILE))),
    ("why it refuses an entry", |raw| {
        take(raw, Answer::Refused { reason: text() });
        summarise(raw);
    }),
    ("why a file failed", |raw| {
        take(raw, Answer::All);
        raw.results(vec![FileResult { entry: 0, outcome: Err(text()) }]);
        raw.wait_for(|received| matches!(received, Received::Message(Message::End)).then_some(()));
        summarise(raw);
    }),
    ("its summary", |raw| {
        take(raw, Answer::All);
        raw.results(vec![FileResult { entry: 0, outcome: Ok(*blake3::hash(b"abc").as_bytes()) }]);
        raw.wait_for(|received| matches!(received, Received::Message(Message::End)).then_some(()));
        summarise(raw);
    }),
    ("the phase of its controller", |raw| {
        raw.send_message(&Raw::accept());
        raw.send_message(&Message::Steer {
            pacing_bps: None,
            window: None,
            congestion: CongestionMessage::Own,
            phase: text(),
        });
        raw.send_message(&Message::Failed { reason: text() });
    }),
];

#[test]
fn a_receiver_cannot_write_to_the_senders_terminal() {
    let (source, _) = file(0);
    fs::write(source.path(), b"abc").unwrap();
    for (case, step) in RECEIVER {
        for argument in ["--verbose", "--json"] {
            let listener = Listener::start();
            let mut command = Command::new(SWEETSPOT);
            command.arg("send").arg(source.path()).arg(listener.ticket().to_string());
            command.args(["--retry-for", "1ms", argument]);
            let output = attacked(
                command,
                |raw| {
                    raw.read_offer();
                    step(raw);
                },
                &listener,
            );
            is_harmless(case, &output);
            let output = String::from_utf8(output).unwrap();
            assert!(output.contains(MARK), "{case} is not shown: {output}");
        }
    }
}

#[test]
fn a_listening_sender_cannot_write_to_the_receivers_terminal() {
    for (case, step) in SENDER {
        let directory = tempfile::tempdir().unwrap();
        let listener = Listener::start();
        let mut command = Command::new(SWEETSPOT);
        command.arg("receive").arg(listener.ticket().to_string()).arg(directory.path());
        command.args(["--retry-for", "1ms", "--verbose"]);
        let output = attacked(command, step, &listener);
        is_harmless(case, &output);
    }
}

/// Runs a program that connects to `listener`, which performs `step`, and returns everything that the program
/// printed.
fn attacked(mut command: Command, step: impl FnOnce(&mut Raw), listener: &Listener) -> Vec<u8> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut raw, _) = listener.welcome();
    step(&mut raw);
    leave(&mut raw);
    drop(raw);
    wait(&mut child);
    let output = child.wait_with_output().unwrap();
    [output.stdout, output.stderr].concat()
}
