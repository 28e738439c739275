//! The receiver's side, after the TLS handshake.

use sweetspot_protocol::hash_tree::PieceHash;
use sweetspot_protocol::record::{Answer, Entry, FileResult, Record};
use sweetspot_protocol::{
    Accept, FileCounts, Message, Offer, ProbeSummary, ReceiverSummary, Role, RttSource, Ticket,
};

use crate::raw::{Dial, Raw, Received};

impl Raw {
    /// Connects as a receiver, reads the welcome and the offer, and accepts it.
    pub fn receiving(ticket: &Ticket, dial: &Dial<'_>) -> (Raw, Offer) {
        let mut raw = Raw::dial(ticket, dial).unwrap();
        raw.send_message(&raw.hello_as(Role::Receiver));
        raw.read_welcome();
        let offer = raw.read_offer();
        raw.send_message(&Raw::accept());
        (raw, offer)
    }

    /// Reads the offer.
    pub fn read_offer(&mut self) -> Offer {
        match self.next() {
            Received::Message(Message::Offer(offer)) => offer,
            other => panic!("expected an offer: {other:?}"),
        }
    }

    /// A default acceptance.
    pub fn accept() -> Message {
        let sizing = "kernel".into();
        Message::Accept(Accept { sizing, congestion: None, probes: false })
    }

    /// Reads the sender's list of entries completely.
    pub fn list_of_entries(&mut self) -> Vec<Entry> {
        let mut list = Vec::new();
        loop {
            match self.next() {
                Received::Record(Record::Entries(entries)) => list.extend(entries),
                Received::Record(Record::Listed { .. }) => return list,
                Received::Message(Message::Busy) => {}
                other => panic!("expected entries: {other:?}"),
            }
        }
    }

    /// Answers the next entries.
    pub fn answer(&mut self, answers: Vec<Answer>) {
        self.send_record(&Record::Answers(answers));
    }

    /// Claims to have pieces with these hashes.
    pub fn hashes(&mut self, entry: u32, first: u32, hashes: Vec<PieceHash>) {
        self.send_record(&Record::Hashes { entry, first, hashes });
    }

    /// Reports the results of entries.
    pub fn results(&mut self, results: Vec<FileResult>) {
        self.send_record(&Record::Results(results));
    }

    /// A receiver's last message.
    pub fn receiver_summary(content_bytes: u64) -> ReceiverSummary {
        ReceiverSummary {
            hash: None,
            files: FileCounts::default(),
            content_bytes,
            resumed_bytes: 0,
            streams: 1,
            rtt_s: None,
            rtt_source: RttSource::Kernel,
            probes: ProbeSummary::default(),
            window_final_bytes: None,
            clamp_method: None,
            limits: vec![],
        }
    }
}
