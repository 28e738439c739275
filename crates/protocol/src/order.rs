use thiserror::Error;

use crate::frame::{FrameError, FramePart};
use crate::{Hello, Message, MessageError, SenderSummary};

/// How the peer broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// Its frame is malformed.
    #[error("the other end sent {0}")]
    Frame(#[from] FrameError),
    /// Its message is malformed.
    #[error("the other end sent {0}")]
    Message(#[from] MessageError),
    /// It sent something that is not allowed at this stage.
    #[error("the other end sent {what} {when}")]
    OutOfOrder {
        /// What it sent.
        what: &'static str,
        /// The stage.
        when: &'static str,
    },
    /// It sent more content than the announced length, bytes.
    #[error("the other end sent more than the {0} bytes it announced")]
    TooMuch(u64),
    /// It ended the content this many bytes before the announced length.
    #[error("the other end ended {0} bytes before the announced length")]
    TooLittle(u64),
}

/// The order in which the sender may send, as the receiver checks it.
#[derive(Debug)]
pub struct ReceiverOrder {
    stage: ReceiverStage,
}

#[derive(Debug)]
enum ReceiverStage {
    /// Only a hello may come.
    Handshake,
    /// The hello is being checked: nothing may come.
    Judging { size: u64 },
    /// Content may come, then the end.
    Content { size: u64, left: u64 },
    /// Only the sender's summary may come.
    Ended,
    /// Nothing more may come.
    Closed,
}

/// An item that the sender sent in order.
#[derive(Debug, PartialEq)]
pub enum SenderItem<'a> {
    /// The hello. Answer it with [`ReceiverOrder::accept`] or close the connection.
    Hello(Hello),
    /// The next bytes of the content.
    Content(&'a [u8]),
    /// All content has arrived.
    End {
        /// The content's BLAKE3 as the sender computed it, hexadecimal.
        hash: String,
    },
    /// What the sender counted.
    SenderSummary(SenderSummary),
    /// The sender gave up, for this reason.
    Failed(String),
}

impl Default for ReceiverOrder {
    fn default() -> ReceiverOrder {
        ReceiverOrder { stage: ReceiverStage::Handshake }
    }
}

impl ReceiverOrder {
    /// Accepts the hello: content may come.
    pub fn accept(&mut self) {
        if let ReceiverStage::Judging { size } = self.stage {
            self.stage = ReceiverStage::Content { size, left: size };
        }
    }

    /// Checks that `piece` is allowed now.
    pub fn handle<'a>(&mut self, piece: FramePart<'a>) -> Result<SenderItem<'a>, ProtocolError> {
        let message = match piece {
            FramePart::Content(bytes) => return self.handle_content(bytes),
            FramePart::Message(body) => Message::read(&body)?,
        };
        match (&self.stage, message) {
            (_, Message::Failed { reason }) => Ok(SenderItem::Failed(reason)),
            (ReceiverStage::Handshake, Message::Hello(hello)) => {
                self.stage = ReceiverStage::Judging { size: hello.size };
                Ok(SenderItem::Hello(hello))
            }
            (ReceiverStage::Content { left: 0, .. }, Message::End { hash }) => {
                self.stage = ReceiverStage::Ended;
                Ok(SenderItem::End { hash })
            }
            (ReceiverStage::Content { left, .. }, Message::End { .. }) => {
                Err(ProtocolError::TooLittle(*left))
            }
            (ReceiverStage::Ended, Message::SenderSummary(closing)) => {
                self.stage = ReceiverStage::Closed;
                Ok(SenderItem::SenderSummary(closing))
            }
            (_, message) => {
                Err(ProtocolError::OutOfOrder { what: message.kind(), when: self.when() })
            }
        }
    }

    fn handle_content<'a>(&mut self, bytes: &'a [u8]) -> Result<SenderItem<'a>, ProtocolError> {
        let ReceiverStage::Content { size, left } = &mut self.stage else {
            return Err(ProtocolError::OutOfOrder { what: "content", when: self.when() });
        };
        *left = left.checked_sub(bytes.len() as u64).ok_or(ProtocolError::TooMuch(*size))?;
        Ok(SenderItem::Content(bytes))
    }

    fn when(&self) -> &'static str {
        match self.stage {
            ReceiverStage::Handshake => "before a hello",
            ReceiverStage::Judging { .. } => "before its hello was answered",
            ReceiverStage::Content { .. } => "in the midst of content",
            ReceiverStage::Ended => "after the end",
            ReceiverStage::Closed => "after closing",
        }
    }
}

/// The order in which the receiver may send, as the sender checks it.
#[derive(Debug)]
pub struct SenderOrder {
    stage: SenderStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SenderStage {
    Handshake,
    Sending,
    /// The end was sent: a summary may come.
    Ended,
    Summarised,
}

impl Default for SenderOrder {
    fn default() -> SenderOrder {
        SenderOrder { stage: SenderStage::Handshake }
    }
}

impl SenderOrder {
    /// Notes that [`Message::End`] was sent: a summary may come.
    pub fn end(&mut self) {
        if self.stage == SenderStage::Sending {
            self.stage = SenderStage::Ended;
        }
    }

    /// Checks that `piece` is allowed now.
    pub fn handle(&mut self, piece: FramePart<'_>) -> Result<Message, ProtocolError> {
        let message = match piece {
            FramePart::Content(_) => {
                return Err(ProtocolError::OutOfOrder { what: "content", when: "to a sender" });
            }
            FramePart::Message(body) => Message::read(&body)?,
        };
        let (next, when) = match self.stage {
            SenderStage::Handshake => (SenderStage::Sending, "before answering the hello"),
            SenderStage::Sending => (SenderStage::Sending, "in the midst of content"),
            SenderStage::Ended => (SenderStage::Ended, "after the end"),
            SenderStage::Summarised => (SenderStage::Summarised, "after its summary"),
        };
        let running = matches!(self.stage, SenderStage::Sending | SenderStage::Ended);
        self.stage = match &message {
            Message::Failed { .. } => self.stage,
            Message::Accept(_) | Message::Refuse { .. } if self.stage == SenderStage::Handshake => {
                next
            }
            Message::Steer { .. } | Message::Train { .. } | Message::Busy if running => next,
            Message::ReceiverSummary(_) if self.stage == SenderStage::Ended => {
                SenderStage::Summarised
            }
            other => return Err(ProtocolError::OutOfOrder { what: other.kind(), when }),
        };
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FRAME_HEADER_BYTES;
    use proptest::prelude::*;

    fn hello(size: u64) -> Message {
        Message::Hello(Hello {
            version: crate::VERSION,
            proof: String::new(),
            name: "f".into(),
            size,
            sizing: None,
            congestion: None,
            path: None,
            probes: true,
        })
    }

    fn end() -> Message {
        Message::End { hash: "h".into() }
    }

    fn closing() -> Message {
        let congestion = "cubic".into();
        Message::SenderSummary(SenderSummary {
            congestion,
            segments: 1,
            retransmitted_segments: 0,
            limits: vec![],
        })
    }

    fn say(order: &mut ReceiverOrder, message: Message) -> Result<(), ProtocolError> {
        order
            .handle(FramePart::Message(message.to_frame().split_off(FRAME_HEADER_BYTES)))
            .map(|_| ())
    }

    fn accepted(size: u64) -> ReceiverOrder {
        let mut order = ReceiverOrder::default();
        say(&mut order, hello(size)).unwrap();
        order.accept();
        order
    }

    #[test]
    fn an_orderly_transfer_passes() {
        let mut order = accepted(3);
        assert_eq!(order.handle(FramePart::Content(b"ab")), Ok(SenderItem::Content(b"ab")));
        assert_eq!(order.handle(FramePart::Content(b"c")), Ok(SenderItem::Content(b"c")));
        say(&mut order, end()).unwrap();
        say(&mut order, closing()).unwrap();
    }

    #[test]
    fn content_never_exceeds_what_was_announced() {
        let mut order = accepted(3);
        assert_eq!(order.handle(FramePart::Content(b"abcd")), Err(ProtocolError::TooMuch(3)));
    }

    #[test]
    fn an_early_end_is_noticed() {
        let mut order = accepted(3);
        order.handle(FramePart::Content(b"a")).unwrap();
        assert_eq!(say(&mut order, end()), Err(ProtocolError::TooLittle(2)));
    }

    #[test]
    fn nothing_comes_before_the_hello_is_accepted() {
        let mut order = ReceiverOrder::default();
        assert!(order.handle(FramePart::Content(b"a")).is_err());
        assert!(say(&mut order, end()).is_err());
        say(&mut order, hello(3)).unwrap();
        assert!(order.handle(FramePart::Content(b"a")).is_err());
        assert!(say(&mut order, hello(3)).is_err());
    }

    proptest! {
        /// Whatever a hostile sender says in whatever order, content passed on never exceeds what
        /// the accepted hello announced, and an end comes only when all of it came.
        #[test]
        fn no_order_of_messages_breaks_the_count(
            steps in proptest::collection::vec(0u8..6, 0..40),
            size in 0u64..20,
        ) {
            let (mut order, mut passed, mut is_accepted) = (ReceiverOrder::default(), 0, false);
            for step in steps {
                match step {
                    0 => { let _ = say(&mut order, hello(size)); }
                    1 => { order.accept(); is_accepted = true; }
                    2 => if order.handle(FramePart::Content(b"xyz")).is_ok() { passed += 3 },
                    3 => if say(&mut order, end()).is_ok() {
                        prop_assert!(is_accepted && passed == size);
                    },
                    4 => { let _ = say(&mut order, closing()); }
                    _ => { let _ = say(&mut order, Message::Busy); }
                }
                prop_assert!(passed <= size);
            }
        }
    }
}
