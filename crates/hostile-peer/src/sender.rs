//! The sender's side, after the TLS handshake.

use std::io;

use sweetspot_protocol::hash_tree::{PIECE_BYTES, piece_hash};
use sweetspot_protocol::record::{FileEnd, Record};
use sweetspot_protocol::{Message, Offer, Role, SenderSummary, Ticket};

use crate::raw::{Dial, Raw, Received};
use crate::wire::{self, RawEntry};

/// An offer of one file.
pub fn offer() -> Message {
    Message::Offer(Offer {
        name: "f".into(),
        one_file: true,
        sizing: Some("kernel".into()),
        ..Offer::default()
    })
}

impl Raw {
    /// Connects, sends a hello with a valid proof and an offer of one file, and waits until the server accepts both.
    pub fn accepted(ticket: &Ticket) -> Raw {
        Raw::accepted_as(ticket, &Dial::default())
    }

    /// As [`Raw::accepted`], with a client's credentials.
    pub fn accepted_as(ticket: &Ticket, dial: &Dial<'_>) -> Raw {
        let mut raw = Raw::dial(ticket, dial).unwrap();
        raw.send_message(&raw.hello());
        raw.offer(&offer());
        raw
    }

    /// Reads the welcome, sends an offer, and waits until the receiver accepts it.
    pub fn offer(&mut self, offer: &Message) {
        self.read_welcome();
        self.propose(offer);
    }

    /// Reads the welcome.
    pub fn read_welcome(&mut self) {
        let welcome = self.next();
        assert!(matches!(welcome, Received::Message(Message::Welcome { .. })), "{welcome:?}");
    }

    /// Sends an offer, and waits until the receiver accepts it.
    pub fn propose(&mut self, offer: &Message) {
        self.send_message(offer);
        let answer = self.next();
        assert!(matches!(answer, Received::Message(Message::Accept(_))), "{answer:?}");
    }

    /// An offer of several top-level entries.
    pub fn offer_many() -> Message {
        let (name, sizing) = ("x".into(), Some("kernel".into()));
        Message::Offer(Offer { name, many: true, sizing, ..Offer::default() })
    }

    /// Lists one file of `size` bytes.
    pub fn list(&mut self, path: &str, size: u64) {
        self.send(&wire::entries(&[RawEntry { modified: (1, 0), ..RawEntry::file(path, size) }]));
    }

    /// Lists entries.
    pub fn entries(&mut self, list: &[RawEntry]) {
        self.send(&wire::entries(list));
    }

    /// Ends the list.
    pub fn listed(&mut self, entries: u32, files: u32, bytes: u64) {
        self.send_record(&Record::Listed { entries, files, bytes, left_out: 0 });
    }

    /// Sends a piece of the first file, which is its entire content.
    pub fn piece(&mut self, piece: u32, content: &[u8]) {
        self.send(&wire::piece(0, piece, piece_hash(piece, true, content), content));
    }

    /// Sends all pieces of a file with correct hashes.
    pub fn content(&mut self, entry: u32, content: &[u8]) -> io::Result<()> {
        let only = content.len() as u64 <= PIECE_BYTES;
        for (number, bytes) in content.chunks(PIECE_BYTES as usize).enumerate() {
            let hash = piece_hash(number as u32, only, bytes);
            self.try_send(&wire::piece(entry, number as u32, hash, bytes))?;
        }
        Ok(())
    }

    /// Reports pieces as holes.
    pub fn holes(&mut self, entry: u32, first: u32, pieces: u32) {
        self.send_record(&Record::Holes { entry, first, pieces });
    }

    /// Ends a file without any piece, with a wrong hash.
    pub fn end(&mut self, entry: u32, size: u64) {
        self.ends(vec![FileEnd { entry, size, pieces_sent: 0, hash: [0; 32] }]);
    }

    /// Ends files.
    pub fn ends(&mut self, ends: Vec<FileEnd>) {
        self.send_record(&Record::Ends(ends));
    }

    /// A sender's last message.
    pub fn sender_summary() -> Message {
        Message::SenderSummary(SenderSummary {
            congestion: "cubic".into(),
            segments: 1,
            retransmitted_segments: 0,
            limits: vec![],
            saved_bytes: 0,
            unlisted: 0,
        })
    }

    /// After the offer: lists the entries, sends the content of those that have some, whatever the receiver answers, ends
    /// in order, and returns everything received. Errors while sending are ignored, because the received messages explain
    /// them.
    pub fn send_all(&mut self, list: &[(RawEntry, Option<&[u8]>)]) -> Vec<Received> {
        let entries: Vec<_> = list.iter().map(|(entry, _)| entry.clone()).collect();
        let contents = list.iter().filter_map(|(_, content)| *content);
        let (files, bytes) = (contents.clone().count(), contents.map(<[u8]>::len).sum::<usize>());
        let listed = Record::Listed {
            entries: list.len() as u32,
            files: files as u32,
            bytes: bytes as u64,
            left_out: 0,
        };
        let mut received = Vec::new();
        let _ = self.try_send(&wire::entries(&entries));
        let _ = self.try_send(&listed.to_frame());
        // Pieces of unanswered entries would be rejected.
        let mut answers = 0;
        while answers < list.len() {
            let next = self.next();
            if let Received::Record(Record::Answers(list)) = &next {
                answers += list.len();
            }
            let ended = matches!(next, Received::Closed(_) | Received::Silent);
            received.push(next);
            if ended {
                return received;
            }
        }
        for (entry, (_, content)) in list.iter().enumerate() {
            let _ = content.map(|content| self.content(entry as u32, content));
        }
        let _ = self.try_send(&Message::End.to_frame());
        loop {
            let next = self.next();
            let summary = matches!(next, Received::Message(Message::ReceiverSummary(_)));
            let ended = matches!(next, Received::Closed(_) | Received::Silent);
            received.push(next);
            if summary {
                let _ = self.try_send(&Raw::sender_summary().to_frame());
                self.close();
            }
            if ended {
                return received;
            }
        }
    }

    /// Connects as a sender that measures the path.
    pub fn measuring(ticket: &Ticket, dial: &Dial<'_>) -> Raw {
        let mut raw = Raw::dial(ticket, dial).unwrap();
        raw.send_message(&raw.hello_with(Role::Sender, true, true));
        raw
    }
}
