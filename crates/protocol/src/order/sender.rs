use super::{ProtocolError, Result};
use crate::Message;
use crate::frame::FramePart;
use crate::hash_tree::PieceHash;
use crate::peer_text::PeerText;
use crate::record::{Answer, FileResult, MAX_HASHES, Record};

/// The order in which the receiver may send after the welcome. The sender checks it.
#[derive(Debug)]
pub struct SenderOrder {
    stage: SenderStage,
    /// Entries that were listed and are not answered yet.
    unanswered: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SenderStage {
    /// Only the answer to the offer is allowed.
    Offered,
    Sending,
    /// The end was sent: a summary is allowed.
    Ended,
    Summarised,
}

/// An item that the receiver sent in order.
#[derive(Debug, PartialEq)]
pub enum ReceiverItem {
    /// A message.
    Message(Message),
    /// Answers to the next entries.
    Answers(Vec<Answer>),
    /// Hashes of pieces: the entry, the first piece, the hashes.
    Hashes(u32, u32, Vec<PieceHash>),
    /// The results of files.
    Results(Vec<FileResult>),
    /// Names that the receiver deleted, or would delete, and the reasons for failed deletions.
    Deleted(Vec<PeerText>, Vec<PeerText>),
}

impl Default for SenderOrder {
    fn default() -> SenderOrder {
        SenderOrder { stage: SenderStage::Offered, unanswered: 0 }
    }
}

impl SenderOrder {
    /// Records that the sender listed `entries` more entries; the receiver may answer each.
    pub fn listed(&mut self, entries: u64) {
        self.unanswered += entries;
    }

    /// Records that [`Message::End`] was sent: a summary is allowed.
    pub fn end(&mut self) {
        if self.stage == SenderStage::Sending {
            self.stage = SenderStage::Ended;
        }
    }

    /// Checks that `part` is allowed now.
    pub fn handle(&mut self, part: FramePart<'_>) -> Result<ReceiverItem> {
        match part {
            FramePart::Piece(..) | FramePart::Content(_) => {
                Err(ProtocolError::OutOfOrder { what: "content", when: "to a sender" })
            }
            FramePart::Message(body) => self.handle_message(Message::read(&body)?),
            FramePart::Record(body) => self.handle_record(Record::read(&body)?),
        }
    }

    fn handle_message(&mut self, message: Message) -> Result<ReceiverItem> {
        let running = matches!(self.stage, SenderStage::Sending | SenderStage::Ended);
        self.stage = match &message {
            Message::Failed { .. } => self.stage,
            Message::Accept(_) | Message::Refuse { .. } if self.stage == SenderStage::Offered => {
                SenderStage::Sending
            }
            Message::Steer { .. }
            | Message::Train { .. }
            | Message::Streams { .. }
            | Message::Busy
                if running =>
            {
                self.stage
            }
            Message::ReceiverSummary(_) if self.stage == SenderStage::Ended => {
                SenderStage::Summarised
            }
            other => return Err(self.out_of_order(other.kind())),
        };
        Ok(ReceiverItem::Message(message))
    }

    fn handle_record(&mut self, record: Record) -> Result<ReceiverItem> {
        if !matches!(self.stage, SenderStage::Sending | SenderStage::Ended) {
            return Err(self.out_of_order(record.kind()));
        }
        match record {
            Record::Answers(answers) if answers.len() as u64 <= self.unanswered => {
                self.unanswered -= answers.len() as u64;
                Ok(ReceiverItem::Answers(answers))
            }
            Record::Hashes { entry, first, hashes } if hashes.len() <= MAX_HASHES => {
                Ok(ReceiverItem::Hashes(entry, first, hashes))
            }
            Record::Results(results) => Ok(ReceiverItem::Results(results)),
            Record::Deleted { names, failures } if self.stage == SenderStage::Ended => {
                Ok(ReceiverItem::Deleted(names, failures))
            }
            other => Err(self.out_of_order(other.kind())),
        }
    }

    fn out_of_order(&self, what: &'static str) -> ProtocolError {
        let when = match self.stage {
            SenderStage::Offered => "before answering the offer",
            SenderStage::Sending => "while content was still due",
            SenderStage::Ended => "after the end of the content",
            SenderStage::Summarised => "after its summary",
        };
        ProtocolError::OutOfOrder { what, when }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FRAME_HEADER_BYTES;

    fn part(bytes: Vec<u8>) -> Vec<u8> {
        bytes[FRAME_HEADER_BYTES..].to_vec()
    }

    #[test]
    fn a_receiver_may_answer_only_listed_entries() {
        let mut order = SenderOrder::default();
        let accept = Message::Refuse { reason: PeerText::default() }.to_frame();
        order.handle(FramePart::Message(part(accept))).unwrap();
        let answer = |order: &mut SenderOrder, n| {
            let record = Record::Answers(vec![Answer::All; n]);
            order.handle(FramePart::Record(part(record.to_frame()))).is_ok()
        };
        assert!(!answer(&mut order, 1));
        order.listed(2);
        assert!(answer(&mut order, 2) && !answer(&mut order, 1));
    }

    #[test]
    fn deleted_names_are_accepted_only_after_the_end() {
        let mut order = SenderOrder::default();
        let deleted = |order: &mut SenderOrder| {
            let record = Record::Deleted { names: vec!["old".into()], failures: vec![] };
            order.handle(FramePart::Record(part(record.to_frame())))
        };
        assert!(deleted(&mut order).is_err(), "the offer is not answered");
        let accept = Message::Refuse { reason: PeerText::default() }.to_frame();
        order.handle(FramePart::Message(part(accept))).unwrap();
        assert!(deleted(&mut order).is_err(), "content still flows");
        order.end();
        assert_eq!(deleted(&mut order), Ok(ReceiverItem::Deleted(vec!["old".into()], vec![])));
    }
}
