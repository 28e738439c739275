use sweetspot_units::Rate;

use super::{ProtocolError, Result};
use crate::frame::{FramePart, PieceHeader};
use crate::peer_text::PeerText;
use crate::record::{Entry, EntryKind, FileEnd, MAX_BATCH, Record};
use crate::{Message, Offer, SenderLimit, SenderSummary};

/// The order in which a sender may send on the first connection after the welcome. The receiver checks it.
#[derive(Debug)]
pub struct ReceiverOrder {
    stage: ReceiverStage,
    entries: u32,
    /// Early content that may still arrive, bytes, and the first entry to which it may belong.
    early: u64,
    next_early: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReceiverStage {
    /// Only an offer is allowed.
    Waiting,
    /// The offer is being checked: nothing is allowed.
    Judging,
    /// Entries and content are allowed, then the end.
    Moving { listed: bool },
    /// Only the sender's summary is allowed.
    Ended,
    /// Nothing more is allowed.
    Closed,
}

/// An item that the sender sent in order.
#[derive(Debug, PartialEq)]
pub enum SenderItem<'a> {
    /// The offer. Answer it with [`ReceiverOrder::accept`] or close the connection.
    Offer(Offer),
    /// The next entries; the first has this number.
    Entries(u32, Vec<Entry>),
    /// All entries were listed.
    Listed {
        /// Files with content.
        files: u32,
        /// Bytes of all files together.
        bytes: u64,
        /// Number of files, directories and links that the sender has and could not list.
        left_out: u32,
    },
    /// The start of an entry's content, which may arrive before the receiver's answer.
    Early(u32, Vec<u8>),
    /// A piece begins; with the number of bytes that follow: fewer than its content has if it is packed.
    Piece(PieceHeader, u32),
    /// The next bytes of that piece.
    Content(&'a [u8]),
    /// Pieces that are holes: the entry, the first piece, the number of pieces.
    Holes(u32, u32, u32),
    /// Ends of files.
    Ends(Vec<FileEnd>),
    /// An entry cannot be delivered, for this reason.
    Gone(u32, PeerText),
    /// The sender's limit.
    SenderLimit(SenderLimit, Option<Rate>),
    /// The sender is busy.
    Busy,
    /// Everything that was requested was sent.
    End,
    /// The sender's counts.
    SenderSummary(SenderSummary),
    /// The sender gave up, for this reason.
    Failed(PeerText),
    /// The sender, which listens, refuses the transfer for this reason.
    Refused(PeerText),
}

impl Default for ReceiverOrder {
    fn default() -> ReceiverOrder {
        ReceiverOrder::taking_early(0)
    }
}

impl ReceiverOrder {
    /// Accepts a sender that may send up to `bytes` of content before its entries are answered.
    pub fn taking_early(bytes: u32) -> ReceiverOrder {
        let stage = ReceiverStage::Waiting;
        ReceiverOrder { stage, entries: 0, early: bytes.into(), next_early: 0 }
    }

    /// Accepts the offer: entries may come.
    pub fn accept(&mut self) {
        if self.stage == ReceiverStage::Judging {
            self.stage = ReceiverStage::Moving { listed: false };
        }
    }

    /// Checks that `part` is allowed now.
    pub fn handle<'a>(&mut self, part: FramePart<'a>) -> Result<SenderItem<'a>> {
        match part {
            FramePart::Message(body) => self.handle_message(Message::read(&body)?),
            FramePart::Record(body) => self.handle_record(Record::read(&body)?),
            FramePart::Piece(header, length) if self.is_moving() => {
                Ok(SenderItem::Piece(header, length))
            }
            FramePart::Content(bytes) if self.is_moving() => Ok(SenderItem::Content(bytes)),
            FramePart::Piece(..) | FramePart::Content(_) => Err(self.out_of_order("content")),
        }
    }

    fn handle_message<'a>(&mut self, message: Message) -> Result<SenderItem<'a>> {
        match (self.stage, message) {
            (_, Message::Failed { reason }) => Ok(SenderItem::Failed(reason)),
            (ReceiverStage::Waiting, Message::Offer(offer)) => {
                self.stage = ReceiverStage::Judging;
                Ok(SenderItem::Offer(offer))
            }
            (ReceiverStage::Waiting, Message::Refuse { reason }) => {
                self.stage = ReceiverStage::Closed;
                Ok(SenderItem::Refused(reason))
            }
            (ReceiverStage::Moving { .. }, Message::Busy) => Ok(SenderItem::Busy),
            (ReceiverStage::Moving { .. }, Message::SenderLimit { by, each_bps }) => {
                Ok(SenderItem::SenderLimit(by, each_bps.map(Rate::from_bits_per_second)))
            }
            (ReceiverStage::Moving { listed: true }, Message::End) => {
                self.stage = ReceiverStage::Ended;
                Ok(SenderItem::End)
            }
            (ReceiverStage::Ended, Message::SenderSummary(summary)) => {
                self.stage = ReceiverStage::Closed;
                Ok(SenderItem::SenderSummary(summary))
            }
            (_, message) => Err(self.out_of_order(message.kind())),
        }
    }

    fn handle_record<'a>(&mut self, record: Record) -> Result<SenderItem<'a>> {
        match (self.stage, record) {
            (ReceiverStage::Moving { listed: false }, Record::Entries(entries)) => {
                let first = self.entries;
                let refers_back = |(number, entry): (u32, &Entry)| match entry.kind {
                    EntryKind::HardLink { to } => to < number,
                    _ => true,
                };
                let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
                let next = first.checked_add(count).ok_or(self.out_of_order("too many entries"))?;
                if entries.len() > MAX_BATCH || !(first..).zip(&entries).all(refers_back) {
                    return Err(self.out_of_order("entries"));
                }
                self.entries = next;
                Ok(SenderItem::Entries(first, entries))
            }
            (
                ReceiverStage::Moving { listed: false },
                Record::Listed { entries, files, bytes, left_out },
            ) if entries == self.entries => {
                self.stage = ReceiverStage::Moving { listed: true };
                Ok(SenderItem::Listed { files, bytes, left_out })
            }
            (ReceiverStage::Moving { .. }, Record::Holes { entry, first, pieces }) => {
                Ok(SenderItem::Holes(entry, first, pieces))
            }
            (ReceiverStage::Moving { .. }, Record::Early { entry, content }) => {
                self.take_early(entry, content)
            }
            (ReceiverStage::Moving { .. }, Record::Ends(ends)) => Ok(SenderItem::Ends(ends)),
            (ReceiverStage::Moving { .. }, Record::Gone { entry, reason }) => {
                Ok(SenderItem::Gone(entry, reason))
            }
            (_, record) => Err(self.out_of_order(record.kind())),
        }
    }

    /// Checks early content: each entry must be listed and may have early content once, and the total must not
    /// exceed the receiver's limit.
    fn take_early<'a>(&mut self, entry: u32, content: Vec<u8>) -> Result<SenderItem<'a>> {
        let what = "early content";
        let is_listed = (self.next_early..self.entries).contains(&entry);
        if !is_listed || entry as usize >= MAX_BATCH || content.is_empty() {
            return Err(ProtocolError::OutOfOrder { what, when: "for an entry that accepts none" });
        }
        let Some(left) = self.early.checked_sub(content.len() as u64) else {
            return Err(ProtocolError::OutOfOrder { what, when: "beyond the allowed amount" });
        };
        (self.early, self.next_early) = (left, entry + 1);
        Ok(SenderItem::Early(entry, content))
    }

    fn is_moving(&self) -> bool {
        matches!(self.stage, ReceiverStage::Moving { .. })
    }

    fn out_of_order(&self, what: &'static str) -> ProtocolError {
        let when = match self.stage {
            ReceiverStage::Waiting => "before an offer",
            ReceiverStage::Judging => "before its offer was answered",
            ReceiverStage::Moving { .. } => "while content was still due",
            ReceiverStage::Ended => "after the end of its content",
            ReceiverStage::Closed => "after its last message",
        };
        ProtocolError::OutOfOrder { what, when }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RelativePath;
    use crate::frame::FRAME_HEADER_BYTES;
    use proptest::prelude::*;

    fn offer() -> Message {
        Message::Offer(Offer { name: "f".into(), one_file: true, probes: true, ..Offer::default() })
    }

    fn closing() -> Message {
        let congestion = "cubic".into();
        Message::SenderSummary(SenderSummary {
            congestion,
            segments: 1,
            retransmitted_segments: 0,
            limits: vec![],
            saved_bytes: 0,
            unlisted: 0,
        })
    }

    fn entries(kinds: Vec<EntryKind>) -> Record {
        let entry = |kind| Entry {
            path: RelativePath::new("f").unwrap(),
            kind,
            mode: 0o644,
            modified: (0, 0),
            owner: None,
            attributes: vec![],
        };
        Record::Entries(kinds.into_iter().map(entry).collect())
    }

    fn receive_message(order: &mut ReceiverOrder, message: Message) -> Result<()> {
        order
            .handle(FramePart::Message(message.to_frame().split_off(FRAME_HEADER_BYTES)))
            .map(|_| ())
    }

    fn receive_record(order: &mut ReceiverOrder, record: &Record) -> Result<()> {
        order.handle(FramePart::Record(record.to_frame().split_off(FRAME_HEADER_BYTES))).map(|_| ())
    }

    fn accepted() -> ReceiverOrder {
        let mut order = ReceiverOrder::default();
        receive_message(&mut order, offer()).unwrap();
        order.accept();
        order
    }

    #[test]
    fn an_orderly_transfer_is_accepted() {
        let mut order = accepted();
        receive_record(&mut order, &entries(vec![EntryKind::Directory, EntryKind::Stream]))
            .unwrap();
        let piece = PieceHeader { entry: 1, piece: 0, hash: [0; 32], length: 2 };
        assert_eq!(order.handle(FramePart::Piece(piece, 2)), Ok(SenderItem::Piece(piece, 2)));
        assert_eq!(order.handle(FramePart::Content(b"ab")), Ok(SenderItem::Content(b"ab")));
        receive_record(&mut order, &Record::Listed { entries: 2, files: 1, bytes: 2, left_out: 0 })
            .unwrap();
        receive_message(&mut order, Message::End).unwrap();
        receive_message(&mut order, closing()).unwrap();
    }

    #[test]
    fn a_hard_link_may_refer_only_to_an_earlier_entry() {
        let link = |to| EntryKind::HardLink { to };
        assert!(receive_record(&mut accepted(), &entries(vec![link(0)])).is_err());
        assert!(
            receive_record(&mut accepted(), &entries(vec![EntryKind::Stream, link(0)])).is_ok()
        );
        assert!(
            receive_record(&mut accepted(), &entries(vec![EntryKind::Stream, link(1)])).is_err()
        );
    }

    #[test]
    fn early_content_is_accepted_only_on_request_and_within_limits() {
        let asked = |bytes, listed: usize| {
            let mut order = ReceiverOrder::taking_early(bytes);
            receive_message(&mut order, offer()).unwrap();
            order.accept();
            receive_record(&mut order, &entries(vec![EntryKind::Stream; listed])).unwrap();
            order
        };
        let early = |entry, length| Record::Early { entry, content: vec![7; length] };
        assert!(receive_record(&mut asked(0, 1), &early(0, 1)).is_err(), "nobody asked for it");
        let mut order = asked(100, 3);
        assert!(receive_record(&mut order, &early(0, 60)).is_ok());
        assert!(receive_record(&mut order, &early(0, 1)).is_err(), "once of each entry");
        assert!(
            receive_record(&mut order, &early(1, 41)).is_err(),
            "all of it together is bounded"
        );
        assert!(receive_record(&mut order, &early(1, 0)).is_err(), "it could be sent for ever");
        assert!(receive_record(&mut order, &early(2, 40)).is_ok());
        assert!(
            receive_record(&mut asked(100, 1), &early(1, 1)).is_err(),
            "the entry is not listed"
        );
        assert!(
            receive_record(
                &mut asked(100, 1),
                &Record::Listed { entries: 1, files: 1, bytes: 9, left_out: 0 }
            )
            .is_ok()
        );
        let mut order = ReceiverOrder::taking_early(100);
        assert!(receive_record(&mut order, &early(0, 1)).is_err(), "it comes after the offer");
        receive_message(&mut order, offer()).unwrap();
        order.accept();
        for _ in 0..2 {
            receive_record(&mut order, &entries(vec![EntryKind::Stream; MAX_BATCH])).unwrap();
        }
        let last = MAX_BATCH as u32 - 1;
        assert!(
            receive_record(&mut order, &early(last + 1, 1)).is_err(),
            "so many are kept at most"
        );
        assert!(receive_record(&mut order, &early(last, 1)).is_ok());
    }

    #[test]
    fn the_list_ends_once_with_the_right_count() {
        let mut order = accepted();
        let listed = |entries| Record::Listed { entries, files: 0, bytes: 0, left_out: 0 };
        assert!(receive_message(&mut order, Message::End).is_err());
        assert!(receive_record(&mut order, &listed(1)).is_err());
        assert!(receive_record(&mut order, &listed(0)).is_ok());
        assert!(receive_record(&mut order, &listed(0)).is_err());
        assert!(receive_record(&mut order, &entries(vec![EntryKind::Stream])).is_err());
    }

    #[test]
    fn a_refusal_replaces_the_offer() {
        let refuse = || Message::Refuse { reason: "it has begun".into() };
        let mut order = ReceiverOrder::default();
        let frame = refuse().to_frame().split_off(FRAME_HEADER_BYTES);
        let refused = order.handle(FramePart::Message(frame));
        assert_eq!(refused, Ok(SenderItem::Refused("it has begun".into())));
        assert!(receive_message(&mut order, offer()).is_err(), "nothing follows it");
        assert!(
            receive_message(&mut accepted(), refuse()).is_err(),
            "it comes first or not at all"
        );
    }

    #[test]
    fn messages_before_acceptance_of_the_offer_are_rejected() {
        let mut order = ReceiverOrder::default();
        assert!(order.handle(FramePart::Content(b"a")).is_err());
        assert!(receive_message(&mut order, Message::End).is_err());
        receive_message(&mut order, offer()).unwrap();
        assert!(order.handle(FramePart::Content(b"a")).is_err());
        assert!(receive_record(&mut order, &entries(vec![EntryKind::Stream])).is_err());
        assert!(receive_message(&mut order, offer()).is_err());
    }

    proptest! {
        /// Regardless of a hostile sender's messages and their order, the end is accepted only after a complete
        /// list, and nothing is accepted before the offer is.
        #[test]
        fn no_message_order_ends_a_transfer_without_a_complete_list(
            steps in proptest::collection::vec(0u8..7, 0..40),
        ) {
            let (mut order, mut listed, mut sent, mut is_accepted) =
                (ReceiverOrder::default(), false, 0, false);
            for step in steps {
                match step {
                    0 => { let _ = receive_message(&mut order, offer()); }
                    1 => { is_accepted |= order.stage == ReceiverStage::Judging; order.accept(); }
                    2 => if receive_record(&mut order, &entries(vec![EntryKind::Stream])).is_ok() {
                        prop_assert!(is_accepted && !listed);
                        sent += 1;
                    },
                    3 => if receive_record(&mut order, &Record::Listed { entries: sent, files: 0, bytes: 0, left_out: 0 }).is_ok() {
                        listed = true;
                    },
                    4 => if receive_message(&mut order, Message::End).is_ok() {
                        prop_assert!(is_accepted && listed);
                    },
                    5 => { let _ = receive_message(&mut order, closing()); }
                    _ => { let _ = receive_message(&mut order, Message::Busy); }
                }
            }
        }
    }
}
