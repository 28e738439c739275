//! A hostile receiver.

use std::fs;
use std::net::Shutdown;
use std::os::unix::fs::symlink;
use std::time::Duration;

use sweetspot_hostile_peer::{Raw, Received, frame};
use sweetspot_protocol::record::{Answer, FileResult, Record};
use sweetspot_protocol::{CongestionMessage, Message};

use super::choices::Choices;
use super::fixture::{Client, SECRET, fixture};

/// The files that the client may read.
const FILES: [(&str, usize); 3] = [("a", 3), ("b", 600_000), ("d/c", 1000)];

/// A session of a hostile receiver, helped by other clients of the same directory.
pub fn outgoing(data: &[u8]) {
    let fixture = fixture();
    let _turn = fixture.turn();
    let client = Client::Reader;
    client.clear();
    fs::create_dir(client.directory().join("d")).unwrap();
    for (name, length) in FILES {
        fs::write(client.directory().join(name), vec![7; length]).unwrap();
    }
    let mut choices = Choices(data);
    while choices.are_left() {
        session(client, &mut choices);
        fixture.wait_until_idle();
    }
}

fn session(client: Client, choices: &mut Choices<'_>) {
    let mut raw = client.connect();
    if raw.try_send(&raw.hello_accepting(u32::MAX).to_frame()).is_err() {
        return;
    }
    let (welcome, offer) = (raw.next(), raw.next());
    if !matches!((welcome, offer), (Received::Message(_), Received::Message(Message::Offer(_)))) {
        return;
    }
    if !choices.rarely() {
        let _ = raw.try_send(&Raw::accept().to_frame());
        // The list arrives immediately.
        while !matches!(
            raw.next(),
            Received::Record(Record::Listed { .. }) | Received::Closed(_) | Received::Silent
        ) {}
    }
    while choices.are_left() {
        if choices.byte() % 16 == 15 && choices.byte().is_multiple_of(4) {
            break;
        }
        let bytes = operation(client, choices);
        if raw.try_send(&bytes).is_err() {
            break;
        }
    }
    let _ = raw.socket().shutdown(Shutdown::Write);
    if !choices.rarely() {
        let _ = raw.socket().set_read_timeout(Some(Duration::from_millis(100)));
        raw.drain().iter().for_each(stays_secret);
    }
}

fn stays_secret(received: &Received) {
    if let Received::Piece { content, .. } | Received::Record(Record::Early { content, .. }) =
        received
    {
        let leaked = content.windows(SECRET.len()).any(|bytes| bytes == SECRET);
        assert!(!leaked, "a file outside of the client's directory was sent");
    }
}

fn operation(client: Client, choices: &mut Choices<'_>) -> Vec<u8> {
    let entry = choices.of(&[0, 1, 2, 3, u32::MAX]);
    match choices.byte() % 12 {
        0..=3 => {
            let answers = (0..1 + choices.below(4)).map(|_| answer(choices)).collect();
            Record::Answers(answers).to_frame()
        }
        4 => {
            let hashes = vec![[choices.byte(); 32]; choices.below(200)];
            Record::Hashes { entry, first: choices.of(&[0, 1, u32::MAX]), hashes }.to_frame()
        }
        5 => {
            let outcome = if choices.rarely() { Ok([0; 32]) } else { Err("\x1b[2J".into()) };
            Record::Results(vec![FileResult { entry, outcome }]).to_frame()
        }
        6 => swap(client, choices),
        7 => Message::Steer {
            pacing_bps: choices.of(&[None, Some(0), Some(1), Some(u64::MAX)]),
            window: choices.of(&[None, Some(0), Some(u64::MAX)]),
            congestion: choices.of(&[CongestionMessage::Own, CongestionMessage::Bbr]),
            phase: "\x1b[31m\n".into(),
        }
        .to_frame(),
        8 => Message::Train {
            id: entry,
            packets: u32::MAX,
            payload_bytes: choices.of(&[0, u32::MAX]),
        }
        .to_frame(),
        9 => Message::Streams { count: choices.of(&[0, 1, 64, u32::MAX]) }.to_frame(),
        10 => Message::ReceiverSummary(Raw::receiver_summary(u64::MAX)).to_frame(),
        _ => frame(choices.byte() % 4, &choices.bytes(64)),
    }
}

fn answer(choices: &mut Choices<'_>) -> Answer {
    match choices.byte() % 6 {
        0..=1 => Answer::All,
        2 => Answer::Nothing,
        3 => Answer::Different { pieces: choices.of(&[0, 1, 3, u32::MAX]) },
        4 => Answer::Compare { pieces: choices.of(&[0, 1, u32::MAX]) },
        _ => Answer::Refused { reason: "\x1b[2J\n".into() },
    }
}

/// Another client of the directory replaces, truncates or removes a file. Sends nothing to the
/// server.
fn swap(client: Client, choices: &mut Choices<'_>) -> Vec<u8> {
    let (name, length) = choices.of(&FILES);
    let path = client.directory().join(name);
    match choices.byte() % 4 {
        0 | 1 => {
            let _ = fs::remove_file(&path);
            let _ = symlink(fixture().scratch.join("secret"), &path);
        }
        2 => {
            // Not through a link placed there by an earlier step.
            if !path.is_symlink() {
                let _ = fs::write(&path, vec![8; length / 2]);
            }
        }
        _ => {
            let _ = fs::remove_file(&path);
        }
    }
    Vec::new()
}
